package policy

import (
	"fmt"
	"reflect"
	"strings"
)

// Docs is the table of all keys, as Markdown.
func Docs() string {
	var b strings.Builder
	b.WriteString("| key | flag | values | default | meaning |\n| --- | --- | --- | --- | --- |\n")
	row := func(f Field) {
		flag := ""
		if f.Flag != "" {
			flag = "`--" + f.Flag + "`"
		}
		if f.Short != "" {
			flag = "`-" + f.Short + "`, " + flag
		}
		def := ""
		if f.Default != "" {
			def = "`" + f.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Path, flag, cell(f.Range()), def, cell(f.Doc))
	}
	for _, f := range Fields() {
		if f.Path == "icons.rules" {
			f.Flag = "icon-trust`, `--icon-inline`, `--icon-strip"
		}
		row(f)
		switch f.Path {
		case "icons.rules":
			for _, sub := range entryFields(reflect.TypeFor[IconRule](), f.Path+"[].") {
				row(sub)
			}
		case "servers":
			for _, sub := range entryFields(reflect.TypeFor[ServerSection](), f.Path+"[].") {
				row(sub)
			}
		}
	}
	return b.String()
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "\n", " ").Replace(s)
}

func entryFields(t reflect.Type, prefix string) []Field { return leaves(t, prefix, nil, nil) }

// Range is the field's type with its bounds, for people.
func (f *Field) Range() string {
	text := f.Type
	switch {
	case f.Min != "" && f.Max != "":
		text += ", " + f.Min + " to " + f.Max
	case f.Min != "":
		text += ", at least " + f.Min
	}
	if f.Off {
		text += ", or off"
	}
	return text
}
