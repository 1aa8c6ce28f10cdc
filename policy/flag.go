package policy

import (
	"fmt"
	"reflect"
	"slices"
)

// SetFlag puts a flag of the command (of those that Flags lists, without its
// dashes) over what the file says. The first of a flag that can be repeated
// takes the place of the file's list, the next are added; the hosts of
// icon-trust, icon-inline and icon-strip become rules in front of the file's,
// in the order in which they are set. What flags and file say together is
// checked by Validate.
func (c *Config) SetFlag(name, value string) error {
	base := c.base
	if base == nil {
		base = c.clone()
	}
	if err := c.setFlag(name, value); err != nil {
		return &Error{Source: Source{Flag: name}, Path: err.path, Msg: err.msg}
	}
	c.base = base
	c.flags = append(c.flags, flagSetting{name, value})
	return nil
}

type flagError struct{ path, msg string }

func (c *Config) setFlag(name, value string) *flagError {
	source := Source{Flag: name}
	if action, ok := ruleFlags[name]; ok {
		if err := CheckHost(value); err != nil {
			return &flagError{"icons.rules", err.Error()}
		}
		rules := c.Icons.Rules
		at := 0
		for at < len(rules) && rules[at].source.Flag != "" {
			at++
		}
		rule := IconRule{Host: value, Action: action, source: source}
		c.Icons.Rules = slices.Concat(rules[:at], []IconRule{rule}, rules[at:])
		return nil
	}
	for _, f := range Fields() {
		if f.Flag != name {
			continue
		}
		v := reflect.ValueOf(c).Elem().FieldByIndex(f.index)
		set := reflect.New(v.Type()).Elem()
		if f.List && c.sources[f.Path].Flag != "" {
			set.Set(v)
		}
		if err := f.setText(set, value); err != nil {
			return &flagError{f.Path, err.Error()}
		}
		v.Set(set)
		c.setSource(f.Path, source)
		return nil
	}
	return &flagError{"", fmt.Sprintf("there is no flag --%s", name)}
}
