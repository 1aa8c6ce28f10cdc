package policy

import (
	"path"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// ServerSection overrides the rest of the policy for the servers that it
// matches: each of Name, Command and URL that it gives must match.
type ServerSection struct {
	Name    string `yaml:"name" doc:"The name that the server has in the client's configuration."`
	Command string `yaml:"command" type:"pattern" doc:"The server's command line, its words joined by spaces; * stands for any characters."`
	URL     string `yaml:"url" type:"pattern" doc:"The server's URL; * stands for any characters."`

	source Source
	node   *ast.MappingNode // what it overrides, and its own keys
}

// Source is where the section begins.
func (s *ServerSection) Source() Source { return s.source }

// For is the policy for one server: the first section of Servers that matches
// is put over the general part, and flags over both. A list takes the place
// of the general one, but for icons.rules, which go in front. server is the
// name that the client's configuration gives it, "" if that is not known;
// command is the command line, or the URL alone. The result has no Servers.
func (c *Config) For(server string, command []string) *Config {
	base := c
	if c.base != nil {
		base = c.base
	}
	out := base.clone()
	for i := range c.Servers {
		if c.Servers[i].matches(server, command) {
			out.override(&c.Servers[i], i) // Parse has seen that it fits
			break
		}
	}
	out.Servers = nil
	for _, f := range c.flags {
		out.setFlag(f.name, f.value) // SetFlag has seen that it is valid
	}
	return out
}

func (s *ServerSection) matches(server string, command []string) bool {
	if s.Name == "" && s.Command == "" && s.URL == "" {
		return false
	}
	isURL := len(command) == 1 && strings.Contains(command[0], "://")
	if s.Name != "" && s.Name != server {
		return false
	}
	if s.URL != "" && !(isURL && glob(s.URL, command[0])) {
		return false
	}
	if s.Command == "" {
		return true
	}
	if isURL || len(command) == 0 {
		return false
	}
	line := strings.Join(command, " ")
	bare := path.Base(strings.ReplaceAll(command[0], `\`, "/")) + line[len(command[0]):]
	return glob(s.Command, line) || glob(s.Command, bare)
}

// glob matches all of s; * in the pattern stands for any characters.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(s, part)
		if !ok {
			return false
		}
		s = after
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}

// override puts a server's section, the index-th, over c.
func (c *Config) override(s *ServerSection, index int) Errors {
	d := &decoder{file: c.file, into: c, prefix: serverPath(index) + ".", override: true}
	d.section(s.node, reflect.ValueOf(c).Elem(), "", serverKeys)
	return d.errs
}
