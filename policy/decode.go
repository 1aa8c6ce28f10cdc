package policy

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder sets a Config from the nodes of a policy file, and collects what is
// wrong with them.
type decoder struct {
	file     string
	into     *Config // the one being set
	prefix   string  // of paths in errors: "" or "servers[0]."
	override bool    // whether it is a server's section that is read
	errs     Errors
}

func (d *decoder) source(t *token.Token) Source {
	return Source{File: d.file, Line: t.Position.Line, Column: t.Position.Column}
}

func (d *decoder) fail(n ast.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &Error{Source: d.source(n.GetToken()), Path: d.prefix + path, Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) whole(root *ast.MappingNode, c *Config) {
	d.into = c
	d.section(root, reflect.ValueOf(c).Elem(), "", nil)
	versioned := slices.ContainsFunc(root.Values, func(entry *ast.MappingValueNode) bool {
		key, ok := entry.Key.(*ast.StringNode)
		return ok && key.Value == "version"
	})
	if !versioned {
		d.errs = append(Errors{{
			Source: Source{File: d.file, Line: 1, Column: 1},
			Msg:    `the version is missing; the file begins with "version: 1"`,
		}}, d.errs...)
	}
}

// section sets the fields of a struct from a mapping; skip names the keys
// that somebody else reads.
func (d *decoder) section(m *ast.MappingNode, v reflect.Value, path string, skip map[string]bool) {
	fields := sections()[v.Type()]
	for _, entry := range m.Values {
		key, ok := d.key(entry, path)
		if !ok || skip[key] {
			continue
		}
		n := slices.IndexFunc(fields, func(f Field) bool { return f.Path == key })
		if n < 0 {
			d.fail(entry.Key, path+key, "there is no such key%s", suggestKey(key, path, fields))
			continue
		}
		f := fields[n]
		f.Path = path + key
		if d.override && (f.Path == "version" || f.Path == "servers") {
			d.fail(entry.Key, f.Path, "this key does not belong in a server's section")
			continue
		}
		if _, ok := entry.Value.(*ast.NullNode); ok {
			d.fail(entry.Key, f.Path, "the value is missing")
			continue
		}
		d.value(entry.Value, v.FieldByIndex(f.index), &f)
	}
}

// key reads the key of an entry; the parser has seen to it that no plain key
// stands twice.
func (d *decoder) key(entry *ast.MappingValueNode, path string) (string, bool) {
	if s, ok := entry.Key.(*ast.StringNode); ok {
		return s.Value, true
	}
	d.fail(entry.Key, path+entry.Key.GetToken().Value, "this is not a plain key")
	return "", false
}

func (d *decoder) value(n ast.Node, v reflect.Value, f *Field) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.fail(n, f.Path, "anchors, aliases and tags are not part of this format")
		return
	case *ast.LiteralNode:
		d.fail(n, f.Path, "the value must stand on one line")
		return
	}
	switch {
	case f.section:
		m, ok := n.(*ast.MappingNode)
		if !ok {
			d.fail(n, f.Path, "this is a section of keys, not a value%s", suggestInside(f.Path))
			return
		}
		d.section(m, v, f.Path+".", nil)
	case f.List:
		d.list(n, v, f)
	default:
		d.scalar(n, v, f)
	}
}

// scalar sets a single value.
func (d *decoder) scalar(n ast.Node, v reflect.Value, f *Field) {
	text, ok := d.text(n, v, f)
	if !ok {
		return
	}
	if err := f.setText(v, text); err != nil {
		d.fail(n, f.Path, "%v", err)
		return
	}
	d.into.setSource(f.Path, d.source(n.GetToken()))
}

// text is a scalar's text, if the scalar is of a type that v can be written
// in: numbers and booleans without quotes, text that looks like them with.
func (d *decoder) text(n ast.Node, v reflect.Value, f *Field) (string, bool) {
	t := n.GetToken()
	switch n := n.(type) {
	case *ast.StringNode:
		quoted := t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
		if quoted && (v.Kind() == reflect.Bool || v.Type() == reflect.TypeFor[Count]()) {
			d.fail(n, f.Path, "%q is text; write it without quotes", n.Value)
			return "", false
		}
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		if isText(v.Type()) && f.Values == nil {
			d.fail(n, f.Path, "%s is not text; write it in quotes", t.Value)
			return "", false
		}
		return t.Value, true
	case *ast.MappingNode:
		d.fail(n, f.Path, "this is a single value (%s), not a section of keys", f.Type)
	case *ast.SequenceNode:
		d.fail(n, f.Path, "this is a single value (%s), not a list", f.Type)
	default:
		d.fail(n, f.Path, "this is not a value that the format knows")
	}
	return "", false
}

func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String
}

// list sets a whole list. A server's own rules go in front of the general
// ones; every other list takes the place of the one before.
func (d *decoder) list(n ast.Node, v reflect.Value, f *Field) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, f.Path, "this is a %s; write it as [a, b], or one a line behind a dash", f.Type)
		return
	}
	before := len(d.errs)
	list := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, item := range seq.Values {
		at := *f
		at.Path = fmt.Sprintf("%s[%d]", f.Path, i)
		at.List = false
		switch v.Type().Elem() {
		case reflect.TypeFor[IconRule]():
			rule := IconRule{source: d.source(item.GetToken())}
			d.rule(item, &rule, at.Path)
			list = reflect.Append(list, reflect.ValueOf(rule))
		case reflect.TypeFor[ServerSection]():
			list = reflect.Append(list, reflect.ValueOf(d.server(item, at.Path)))
		default:
			d.item(item, &list, &at)
		}
	}
	if len(d.errs) > before {
		return
	}
	if d.override && f.Path == "icons.rules" {
		list = reflect.AppendSlice(list, v)
	}
	v.Set(list)
	d.into.setSource(f.Path, d.source(n.GetToken()))
}

func (d *decoder) item(n ast.Node, list *reflect.Value, f *Field) {
	if _, ok := n.(*ast.NullNode); ok {
		d.fail(n, f.Path, "the value is missing")
		return
	}
	text, ok := d.text(n, *list, f)
	if !ok {
		return
	}
	grown := reflect.New(list.Type()).Elem()
	grown.Set(*list)
	if err := f.setText(grown, text); err != nil {
		d.fail(n, f.Path, "%v", err)
		return
	}
	*list = grown
	d.into.setSource(f.Path, d.source(n.GetToken()))
}

// rule reads {host, action}, both of which must be there.
func (d *decoder) rule(n ast.Node, rule *IconRule, path string) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(n, path, "a rule is written {host: cdn.example.com, action: keep}")
		return
	}
	scratch := &decoder{file: d.file, into: new(Config), prefix: d.prefix}
	scratch.section(m, reflect.ValueOf(rule).Elem(), path+".", nil)
	d.errs = append(d.errs, scratch.errs...)
	if len(scratch.errs) > 0 {
		return
	}
	for _, key := range []string{"host", "action"} {
		if _, ok := scratch.into.sources[path+"."+key]; !ok {
			d.fail(n, path, "the rule has no %s; it is written {host: cdn.example.com, action: keep}", key)
		}
	}
}

// serverKeys are the keys of a server's section that are its own.
var serverKeys = map[string]bool{"name": true, "command": true, "url": true}

// server reads what a section matches by; what it overrides is read when it
// is applied (Config.override).
func (d *decoder) server(n ast.Node, path string) ServerSection {
	s := ServerSection{source: d.source(n.GetToken())}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(n, path, "a server's section is a mapping that begins with name, command or url")
		return s
	}
	s.node = m
	own := *m
	own.Values = nil
	for _, entry := range m.Values {
		if key, ok := entry.Key.(*ast.StringNode); ok && serverKeys[key.Value] {
			own.Values = append(own.Values, entry)
		}
	}
	before := len(d.errs)
	d.section(&own, reflect.ValueOf(&s).Elem(), path+".", nil)
	if len(d.errs) == before && s.Name == "" && s.Command == "" && s.URL == "" {
		d.fail(n, path, "the section matches no server: it needs a name, a command or a url")
	}
	return s
}
