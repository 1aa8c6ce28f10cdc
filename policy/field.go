package policy

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Field is one key of the policy file, as Config's tags describe it.
type Field struct {
	Path    string   // "icons.budget.per-icon"
	Flag    string   // the flag that sets the same value, "" if none does
	Short   string   // the flag's letter, "" if it has none
	Type    string   // for people: "true|false", "size", "list of hosts"…
	Values  []string // the values that there are, nil if they cannot be listed
	Default string   // as the file would write it; "" for none
	Min     string   // least value of a number, "" for none
	Max     string   // greatest value of a number, "" for none
	Off     bool     // whether the bound may be lifted
	List    bool     // whether it has many values (its flag can be repeated)
	Bool    bool     // whether its flag needs no value
	Secret  bool     // whether its value is not to be shown
	Doc     string   // one sentence

	section bool
	kind    string // the type tag
	index   []int  // of the field in Config
}

// Key is the last part of the path.
func (f *Field) Key() string { return f.Path[strings.LastIndexByte(f.Path, '.')+1:] }

var ruleFlags = map[string]Verdict{"icon-trust": Keep, "icon-inline": Inline, "icon-strip": Strip}

// Fields lists the keys of the policy file in their order in Config, without
// the sections that hold them. The caller must not change the slice.
var Fields = sync.OnceValue(func() []Field {
	return leaves(reflect.TypeFor[Config](), "", nil, nil)
})

// Flags lists the flags that say what the policy file can say: those of
// Fields, and the three that put rules in front of icons.rules.
func Flags() []Field {
	var flags []Field
	for _, f := range Fields() {
		if f.Flag != "" {
			flags = append(flags, f)
		}
		if f.Flag != "icons" {
			continue
		}
		for _, r := range []struct{ flag, doc string }{
			{"icon-trust", "A host whose icon URLs are kept as they are; *.example.com is any subdomain and not the apex. As often as needed."},
			{"icon-inline", "A host whose icons are always inlined. As often as needed."},
			{"icon-strip", "A host whose icons are always stripped. As often as needed."},
		} {
			flags = append(flags, Field{Path: "icons.rules", Flag: r.flag, Type: "host", List: true, Doc: r.doc})
		}
	}
	return flags
}

// sections has the fields of each struct of the policy file, sections and
// leaves, by the struct's type: reading the tags of all takes longer than
// most files do. The paths begin at the struct.
var sections = sync.OnceValue(func() map[reflect.Type][]Field {
	m := make(map[reflect.Type][]Field)
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for i := range t.NumField() {
			sf := t.Field(i)
			f, ok := newField(sf, "")
			if !ok {
				continue
			}
			f.index = []int{i}
			m[t] = append(m[t], f)
			if f.section {
				add(sf.Type)
			}
		}
	}
	add(reflect.TypeFor[Config]())
	add(reflect.TypeFor[IconRule]())
	add(reflect.TypeFor[ServerSection]())
	return m
})

func leaves(t reflect.Type, prefix string, index []int, fields []Field) []Field {
	for i := range t.NumField() {
		sf := t.Field(i)
		f, ok := newField(sf, prefix)
		if !ok {
			continue
		}
		f.index = append(index[:len(index):len(index)], i)
		if f.section {
			fields = leaves(sf.Type, f.Path+".", f.index, fields)
			continue
		}
		fields = append(fields, f)
	}
	return fields
}

// newField reads the tags of a field; ok is false for one that is no key.
func newField(sf reflect.StructField, prefix string) (f Field, ok bool) {
	key := sf.Tag.Get("yaml")
	if key == "" {
		return Field{}, false
	}
	f = Field{
		Path:    prefix + key,
		Flag:    sf.Tag.Get("flag"),
		Short:   sf.Tag.Get("short"),
		Default: sf.Tag.Get("default"),
		Min:     sf.Tag.Get("min"),
		Max:     sf.Tag.Get("max"),
		Off:     sf.Tag.Get("off") == "yes",
		Secret:  sf.Tag.Get("secret") == "yes",
		Doc:     sf.Tag.Get("doc"),
		kind:    sf.Tag.Get("type"),
		List:    sf.Type.Kind() == reflect.Slice,
		Bool:    sf.Type.Kind() == reflect.Bool,
		section: sf.Type.Kind() == reflect.Struct,
	}
	if v := sf.Tag.Get("values"); v != "" {
		f.Values = strings.Split(v, "|")
	}
	f.Type = typeName(sf.Type, &f)
	return f, true
}

func typeName(t reflect.Type, f *Field) string {
	switch {
	case f.Values != nil:
		return strings.Join(f.Values, "|")
	case t.Kind() == reflect.Bool:
		return "true|false"
	case t == reflect.TypeFor[[]IconRule]():
		return "list of rules"
	case t == reflect.TypeFor[[]ServerSection]():
		return "list of sections"
	case f.section:
		return "section"
	}
	name := f.kind
	if name == "" {
		name = "text"
	}
	if t.Kind() == reflect.Slice {
		return "list of " + name + "s"
	}
	if v, ok := reflect.Zero(t).Interface().(interface{ Type() string }); ok {
		return v.Type()
	}
	return name
}

// setText reads a value as the file or a flag writes it; to a list it
// appends.
func (f *Field) setText(v reflect.Value, text string) error {
	if f.Values != nil && !slices.Contains(f.Values, text) {
		return fmt.Errorf("%q is none of %s%s", text, strings.Join(f.Values, ", "), suggest(text, f.Values))
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return err
		}
		return f.checkRange(v)
	}
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	case reflect.String:
		if err := f.checkString(text); err != nil {
			return err
		}
		v.SetString(text)
	case reflect.Slice:
		if err := f.checkString(text); err != nil {
			return err
		}
		v.Set(reflect.Append(v, reflect.ValueOf(text)))
	default:
		return fmt.Errorf("%s cannot be written as text", f.Path)
	}
	return nil
}

// checkRange holds a number to the field's bounds.
func (f *Field) checkRange(v reflect.Value) error {
	if v.Kind() != reflect.Int && v.Kind() != reflect.Int64 {
		return nil
	}
	text := fmt.Sprint(v.Interface())
	if v.Int() < 0 {
		if f.Off {
			return nil
		}
		return fmt.Errorf("this bound cannot be off")
	}
	bound := reflect.New(v.Type())
	for _, b := range []struct {
		text, than string
		sign       int64
	}{{f.Min, "less than", 1}, {f.Max, "more than", -1}} {
		if b.text == "" {
			continue
		}
		if err := bound.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(b.text)); err != nil {
			return err
		}
		if (v.Int()-bound.Elem().Int())*b.sign < 0 {
			return fmt.Errorf("%s is %s %s", text, b.than, b.text)
		}
	}
	return nil
}

// checkString holds a string to what the field's type tag says.
func (f *Field) checkString(s string) error {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return fmt.Errorf("%q holds a control character", s)
		}
	}
	switch f.kind {
	case "host":
		return CheckHost(s)
	case "path":
		if !strings.HasPrefix(s, "/") {
			return fmt.Errorf("%q is not a path; write %q", s, "/"+s)
		}
	case "header":
		name, _, ok := strings.Cut(s, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return fmt.Errorf("%q is not a header; write it as 'Name: value'", s)
		}
	}
	return nil
}

// text is the value as the file would write it; of a list it is not used.
func (f *Field) text(v reflect.Value) string {
	if m, ok := v.Interface().(fmt.Stringer); ok {
		return m.String()
	}
	return fmt.Sprint(v.Interface())
}
