package policy

import (
	"fmt"
	"maps"
)

// Source is where a value comes from. The zero Source is the default.
type Source struct {
	File         string // of the policy file
	Line, Column int    // in File, from 1; columns count characters
	Flag         string // of the command, without its dashes
}

// String is "default", "policy.yaml:3:5" or "--icons".
func (s Source) String() string {
	switch {
	case s.Flag != "":
		return "--" + s.Flag
	case s.File != "" || s.Line > 0:
		return fmt.Sprintf("%s:%d:%d", s.File, s.Line, s.Column)
	}
	return "default"
}

// provenance is what a Config knows about where it comes from.
type provenance struct {
	file    string // name of the policy file
	sources map[string]Source
	base    *Config // as it was before any flag; nil if no flag was set
	flags   []flagSetting
}

type flagSetting struct{ name, value string }

// Source is where the value at a path ("icons.default", "icons.rules[0]")
// comes from.
func (c *Config) Source(path string) Source { return c.sources[path] }

func (c *Config) setSource(path string, s Source) {
	if c.sources == nil {
		c.sources = make(map[string]Source)
	}
	c.sources[path] = s
}

func (p provenance) clone() provenance {
	p.sources = maps.Clone(p.sources)
	p.flags = append([]flagSetting(nil), p.flags...)
	return p
}

// Source is where the rule is written.
func (r *IconRule) Source() Source { return r.source }
