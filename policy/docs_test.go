package policy

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The sample has every key, loads strictly, and says the defaults.
func TestSamplePolicy(t *testing.T) {
	data, err := os.ReadFile("../deploy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("policy.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile(); err != nil {
		t.Fatal(err)
	}
	d := Default()
	got, want := reflect.ValueOf(c).Elem(), reflect.ValueOf(d).Elem()
	for _, f := range Fields() {
		if _, ok := c.sources[f.Path]; !ok {
			t.Errorf("the sample has no %s", f.Path)
		}
		if f.List {
			continue
		}
		if g, w := got.FieldByIndex(f.index).Interface(), want.FieldByIndex(f.index).Interface(); g != w {
			t.Errorf("the sample says %s: %v, and the default is %v", f.Path, g, w)
		}
	}
	for _, s := range []struct {
		server  string
		command []string
	}{{"github", nil}, {"", []string{"/usr/bin/npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31"}}, {"", []string{"https://mcp.example.com/mcp"}}} {
		if diff := c.For(s.server, s.command).Diff(c.For("another", nil)); len(diff) == 0 {
			t.Errorf("no section of the sample is for %q", s)
		}
	}
}

// Struct, docs table, flags and schema say the same.
func TestFieldsDocsAndSchemaAgree(t *testing.T) {
	docs := Docs()
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	paths, flags := make(map[string]bool), make(map[string]bool)
	for _, f := range Fields() {
		if paths[f.Path] {
			t.Errorf("%s is there twice", f.Path)
		}
		paths[f.Path] = true
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: the doc %q is no sentence", f.Path, f.Doc)
		}
		if f.Type != "text" && f.Type != "file" && f.Default == "" && !f.List {
			t.Errorf("%s (%s) has no default", f.Path, f.Type)
		}
		if !strings.Contains(docs, "\n| `"+f.Path+"` |") || !strings.Contains(docs, cell(f.Doc)+" |\n") {
			t.Errorf("the docs table lacks %s", f.Path)
		}
		checkProperty(t, schema, &f)
	}
	for _, path := range []string{"icons.rules[].host", "icons.rules[].action", "servers[].name", "servers[].command", "servers[].url"} {
		if !strings.Contains(docs, "\n| `"+path+"` |") {
			t.Errorf("the docs table lacks %s", path)
		}
	}
	for _, f := range Flags() {
		if flags[f.Flag] {
			t.Errorf("--%s is there twice", f.Flag)
		}
		flags[f.Flag] = true
		if !strings.Contains(docs, "`--"+f.Flag+"`") {
			t.Errorf("the docs table lacks --%s", f.Flag)
		}
		if !paths[f.Path] {
			t.Errorf("--%s sets %s, which is no key", f.Flag, f.Path)
		}
	}
	if got := countProperties(schema); got != len(paths) {
		t.Errorf("the schema has %d keys, the struct %d", got, len(paths))
	}
	for _, name := range []string{
		"observe", "enums", "icons", "icon-trust", "icon-inline", "icon-strip", "icon-private", "on-invalid", "fill-defaults", "listen", "path",
		"allow-host", "allow-origin", "header", "admin", "audit", "state-key-file", "max-message", "max-inflight", "host", "tls-cert", "tls-key",
		"upstream-ca", "token-env", "compat", "log-level", "log-format",
	} {
		if !flags[name] {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

// checkProperty holds a field's entry in the schema to the field.
func checkProperty(t *testing.T, schema map[string]any, f *Field) {
	t.Helper()
	at := schema
	for key := range strings.SplitSeq(f.Path, ".") {
		if at["additionalProperties"] != false {
			t.Errorf("%s: a section above it takes unknown keys", f.Path)
		}
		next, ok := at["properties"].(map[string]any)[key].(map[string]any)
		if !ok {
			t.Errorf("the schema lacks %s", f.Path)
			return
		}
		at = next
	}
	if at["description"] != f.Doc {
		t.Errorf("%s: the schema says %q", f.Path, at["description"])
	}
	if def, ok := at["default"]; ok != (f.Default != "") || ok && strings.Trim(string(mustJSON(t, def)), `"`) != f.Default {
		t.Errorf("%s: the schema's default is %v, the field's %s", f.Path, def, f.Default)
	}
	if values, ok := at["enum"].([]any); ok != (f.Values != nil) || len(values) != len(f.Values) {
		t.Errorf("%s: the schema's values are %v, the field's %v", f.Path, values, f.Values)
	}
	if _, ok := at["items"]; ok != f.List {
		t.Errorf("%s: a list is %v in the schema", f.Path, ok)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func countProperties(section map[string]any) int {
	n := 0
	for _, p := range section["properties"].(map[string]any) {
		p := p.(map[string]any)
		if p["properties"] != nil {
			n += countProperties(p)
			continue
		}
		n++
	}
	return n
}

// A tag's values are those of the type behind it.
func TestValuesAreThoseOfTheType(t *testing.T) {
	for _, f := range Fields() {
		switch f.Path {
		case "icons.default":
			if !slices.Equal(f.Values, verdictNames[:]) {
				t.Errorf("%v, want %v", f.Values, verdictNames)
			}
		case "answers.on-invalid":
			for _, v := range f.Values {
				if a := NewAnswers(AnswersConfig{OnInvalid: v}); a.OnInvalid.String() != v {
					t.Errorf("%s is the outcome %v", v, a.OnInvalid)
				}
			}
		}
	}
}

// Every default is what its text says, and every bound of a number holds it.
func TestEveryTagCanBeRead(t *testing.T) {
	v := reflect.ValueOf(Default()).Elem()
	for _, f := range Fields() {
		if f.List {
			continue
		}
		if err := f.check(v.FieldByIndex(f.index)); err != nil {
			t.Errorf("%s: the default: %v", f.Path, err)
		}
		for _, text := range append([]string{f.Min, f.Max}, f.Values...) {
			if text == "" {
				continue
			}
			if err := f.setText(reflect.New(v.FieldByIndex(f.index).Type()).Elem(), text); err != nil {
				t.Errorf("%s: %v", f.Path, err)
			}
		}
		if f.Off {
			if err := f.setText(reflect.New(v.FieldByIndex(f.index).Type()).Elem(), off); err != nil {
				t.Errorf("%s: %v", f.Path, err)
			}
		}
	}
}
