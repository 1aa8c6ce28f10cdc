package policy

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"strings"
)

// Value is one value of a policy and where it comes from.
type Value struct {
	Path   string
	Text   string // as the file would write it; a Secret's is hidden
	Source Source
}

// Values yields all values in the order of the file; of a list, each entry
// ("icons.rules[0]"), or "[]" for one that is empty.
func (c *Config) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		v := reflect.ValueOf(c).Elem()
		for _, f := range Fields() {
			for _, value := range c.values(&f, v.FieldByIndex(f.index)) {
				if !yield(value) {
					return
				}
			}
		}
	}
}

func (c *Config) values(f *Field, v reflect.Value) []Value {
	if !f.List {
		return []Value{{f.Path, f.yaml(v), c.Source(f.Path)}}
	}
	if v.Len() == 0 {
		return []Value{{f.Path, "[]", c.Source(f.Path)}}
	}
	values := make([]Value, v.Len())
	for i := range values {
		path := fmt.Sprintf("%s[%d]", f.Path, i)
		switch item := v.Index(i).Addr().Interface().(type) {
		case *IconRule:
			values[i] = Value{path, fmt.Sprintf("{host: %s, action: %v}", quoteYAML(item.Host), item.Action), item.source}
		case *ServerSection:
			values[i] = Value{path, item.yaml(), item.source}
		case *string:
			source, ok := c.sources[path]
			if !ok {
				source = c.Source(f.Path)
			}
			text := *item
			if f.Secret {
				text, _, _ = strings.Cut(text, ":")
				text += ": (hidden)"
			}
			values[i] = Value{path, quoteYAML(text), source}
		}
	}
	return values
}

// yaml writes a single value as the file would.
func (f *Field) yaml(v reflect.Value) string {
	if f.Values == nil && v.Kind() == reflect.String {
		return quoteYAML(v.String())
	}
	return f.text(v)
}

// yaml writes what the section matches by; what it overrides is seen in the
// policy of the server (Config.For).
func (s *ServerSection) yaml() string {
	var parts []string
	for _, p := range []struct{ key, value string }{{"name", s.Name}, {"command", s.Command}, {"url", s.URL}} {
		if p.value != "" {
			parts = append(parts, p.key+": "+quoteYAML(p.value))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quoteYAML writes text in double quotes, in which YAML reads what JSON does.
func quoteYAML(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // strings always marshal
	}
	return string(b)
}

// Show writes the policy as a policy file, each value with a comment that
// says where it comes from.
func (c *Config) Show() string {
	var b strings.Builder
	var section []string
	for v := range c.Values() {
		path, _, isItem := strings.Cut(v.Path, "[")
		keys := strings.Split(path, ".")
		same := 0
		for same < len(section) && same < len(keys) && section[same] == keys[same] {
			same++
		}
		for n := same; n < len(keys); n++ {
			if n == len(keys)-1 && !isItem {
				break
			}
			fmt.Fprintf(&b, "%s%s:\n", indent(n), keys[n])
		}
		if isItem {
			section = keys
			fmt.Fprintf(&b, "%s- %s  # %v\n", indent(len(keys)), v.Text, v.Source)
			continue
		}
		section = keys[:len(keys)-1]
		fmt.Fprintf(&b, "%s%s: %s  # %v\n", indent(len(keys)-1), keys[len(keys)-1], v.Text, v.Source)
	}
	return b.String()
}

func indent(n int) string { return strings.Repeat("  ", n) }

// Diff lists, as sentences for a log, what differs between an earlier policy
// and c.
func (c *Config) Diff(earlier *Config) []string {
	var lines []string
	before := texts(earlier)
	after := texts(c)
	for _, f := range Fields() {
		if a, b := before[f.Path], after[f.Path]; a != b {
			lines = append(lines, fmt.Sprintf("%s: %s, was %s", f.Path, b, a))
		}
	}
	return lines
}

// texts is each value as one line, lists included.
func texts(c *Config) map[string]string {
	lines := make(map[string]string)
	for v := range c.Values() {
		path, _, isItem := strings.Cut(v.Path, "[")
		switch {
		case !isItem:
			lines[path] = v.Text
		case lines[path] == "":
			lines[path] = "[" + v.Text + "]"
		default:
			lines[path] = strings.TrimSuffix(lines[path], "]") + ", " + v.Text + "]"
		}
	}
	return lines
}
