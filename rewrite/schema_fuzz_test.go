package rewrite

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

var fuzzForms = []string{
	`{"type":"object","properties":{"p":{"type":"string","enum":["a","a",""],"enumNames":["A",null]}},"required":["p"]}`,
	`{"properties":{"p":{"anyOf":[{"$ref":"#/$defs/E"},{"type":"null"}],"default":null},"p":{"const":1}},"$defs":{"E":{"enum":[1,2.0]}},"required":["p","p"]}`,
	`{"properties":{"p":{"type":"array","items":{"oneOf":[{"const":true},{"const":false,"title":" "}]},"default":[true]},"q":{"type":["string","null"],"Type":"x","format":"uuid","default":5}}}`,
	`{"properties":{"p":{"allOf":[{"$ref":"#/properties/p"}]},"q":{"type":"string","enum":["a"],"oneOf":[{"const":"a","title":"A"}],"enumNames":["A"]}}}`,
	`{"properties":{"p":{"anyOf":[{"const":"\ud800","title":"\ud801"},{"const":"\ud801"}],"d\u0065fault":"x"}},"Properties":{},"required":[1,"p"]}`,
	`{"properties":{"p":{"type":"integer","enum":[0,-0,1e400,1E-400],"default":"0"},"q":{"type":"array","items":{"type":"integer","enum":[1],"enumNames":["x"]},"default":[1.0]}}}`,
}

func FuzzRefitForm(f *testing.F) {
	for _, s := range fuzzForms {
		f.Add([]byte(s), false, uint32(DefaultRules))
		f.Add([]byte(s), true, uint32(DefaultRules))
	}
	f.Fuzz(func(t *testing.T, schema []byte, named bool, on uint32) {
		if !checked(schema) {
			t.Skip()
		}
		dialect := Titled
		if named {
			dialect = Named
		}
		refitInvariants(t, schema, dialect, Rules(on))
	})
}

// refitInvariants checks what holds for any schema.
func refitInvariants(t *testing.T, schema []byte, dialect Dialect, on Rules) {
	t.Helper()
	before := bytes.Clone(schema)
	form := RefitForm(schema, dialect, on)
	if !bytes.Equal(schema, before) {
		t.Errorf("the input was written to")
	}
	if !json.Valid(form.Schema) {
		t.Errorf("no JSON: %s", form.Schema)
	}
	if len(form.Changes) == 0 && (len(schema) > 0 && &form.Schema[0] != &schema[0] || len(form.Schema) != len(schema)) {
		t.Errorf("changed without a change: %s", form.Schema)
	}
	// {"const":"1","title":"1"}, for "1," is the most that a byte can grow to; references add what they stand for.
	if most := 16 * (len(schema) + len(schema)*len(schema)/len(`{"$ref":"#"}`)); len(form.Schema) > most {
		t.Errorf("%d bytes grew to %d", len(schema), len(form.Schema))
	}
	again := RefitForm(form.Schema, dialect, on)
	if !bytes.Equal(again.Schema, form.Schema) {
		t.Errorf("refitted again, it changes\nfrom %s\nto   %s\n%v", form.Schema, again.Schema, again.Changes)
	}
	sameOutside(t, schema, form)
	if on&allRules == allRules && dialect == Titled {
		sameValues(t, schema, form)
	}
}

// checked reports whether a text is what a message that passed Scan may hold.
func checked(schema []byte) bool {
	message := slices.Concat([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"requestedSchema":`), schema, []byte("}}"))
	_, err := Scan(message)
	return err == nil && json.Valid(schema)
}

func lastMembers(raw []byte, at Span) map[string]string {
	m := map[string]string{}
	walkMembers(raw, at, func(key, value Span, _ bool) bool {
		m[nameOf(key.Of(raw))] = string(value.Of(raw))
		return true
	})
	return m
}

// sameOutside checks that what no change speaks of has the same bytes.
func sameOutside(t *testing.T, schema []byte, form Form) {
	t.Helper()
	changed := map[string]bool{}
	for _, c := range form.Changes {
		changed[c.Property] = true
	}
	was, is := lastMembers(schema, Span{0, len(schema)}), lastMembers(form.Schema, Span{0, len(form.Schema)})
	for k, v := range was {
		switch k {
		case "properties", "required":
		default:
			if variant := Fold(k); is[k] != v && variant != "type" && variant != "properties" && variant != "required" {
				t.Errorf("member %q was %s and is %s", k, v, is[k])
			}
		}
	}
	props, refitted := []byte(was["properties"]), []byte(is["properties"])
	if len(props) == 0 {
		return
	}
	was, is = lastMembers(props, Span{0, len(props)}), lastMembers(refitted, Span{0, len(refitted)})
	for name, v := range was {
		if !changed[name] && is[name] != v {
			t.Errorf("property %q was %s and is %s", name, v, is[name])
		}
	}
	if len(was) != len(is) {
		t.Errorf("%d properties became %d", len(was), len(is))
	}
	order := func(raw []byte) (names []string) {
		walkMembers(raw, Span{0, len(raw)}, func(key, _ Span, _ bool) bool {
			name := nameOf(key.Of(raw))
			names = append(slices.DeleteFunc(names, func(n string) bool { return n == name }), name)
			return true
		})
		return names
	}
	if a, b := order(props), order(refitted); !slices.Equal(a, b) {
		t.Errorf("the order %q became %q", a, b)
	}
}

// sameValues checks that every value of a plain enum can still be chosen, and
// that what is chosen comes back as the server's own text.
func sameValues(t *testing.T, schema []byte, form Form) {
	t.Helper()
	was, _ := Lookup(schema, Span{0, len(schema)}, "properties")
	is, _ := Lookup(form.Schema, Span{0, len(form.Schema)}, "properties")
	after := lastMembers(form.Schema, is)
	for name, text := range lastMembers(schema, was) {
		old, refitted := []byte(text), []byte(after[name])
		members := lastMembers(old, Span{0, len(old)})
		if members["const"] != "" || members["oneOf"] != "" || members["anyOf"] != "" || members["allOf"] != "" || members["$ref"] != "" || strings.HasPrefix(members["type"], "[") {
			continue
		}
		list := []byte(members["enum"])
		options := map[string]bool{}
		for _, k := range []string{"enum", "oneOf"} {
			m := lastMembers(refitted, Span{0, len(refitted)})
			for s := range Elements([]byte(m[k]), Span{0, len(m[k])}) {
				value := s.Of([]byte(m[k]))
				if c, ok := Get(value, Span{0, len(value)}, "const"); ok && k == "oneOf" {
					value = c.Value.Of(value)
				}
				options[canonical(value)] = true
			}
		}
		for s := range Elements(list, Span{0, len(list)}) {
			value := s.Of(list)
			if bytes.Equal(old, refitted) {
				continue
			}
			if !options[canonical(asText(value))] {
				t.Errorf("property %q: %s is not among %q", name, value, slices.Collect(maps.Keys(options)))
			}
			key := Quote(name)
			if nameOf(key) != name {
				continue
			}
			content := slices.Concat([]byte(`{`), key, []byte(`:`), asText(value), []byte(`}`))
			back := form.Restore(content)
			if got := lastMembers(back, Span{0, len(back)})[name]; canonical([]byte(got)) != canonical(value) {
				t.Errorf("property %q: %s came back as %s", name, value, got)
			}
		}
	}
}

// asText is a scalar as a JSON string of the same text.
func asText(value []byte) []byte {
	if value[0] == '"' {
		return value
	}
	return Quote(string(value))
}

func FuzzRestore(f *testing.F) {
	for _, s := range fuzzForms {
		f.Add([]byte(s), []byte(`{"p":"1","q":["1",1],"p":"2.0"}`))
		f.Add([]byte(s), []byte(`{ }`))
	}
	f.Fuzz(func(t *testing.T, schema, content []byte) {
		if !checked(schema) || !checked(content) {
			t.Skip()
		}
		form := RefitForm(schema, Titled, DefaultRules)
		back := form.Restore(content)
		if !json.Valid(back) {
			t.Errorf("no JSON: %s", back)
		}
		derived := RefitForm(schema, Titled, DefaultRules)
		if !bytes.Equal(derived.Restore(content), back) {
			t.Error("the way back cannot be derived again")
		}
		way := map[string]bool{}
		for _, b := range form.back {
			way[b.name] = true
		}
		was, is := lastMembers(content, Span{0, len(content)}), lastMembers(back, Span{0, len(back)})
		for name, v := range was {
			if !way[name] && is[name] != v {
				t.Errorf("%q was %s and is %s", name, v, is[name])
			}
		}
		if again := form.Restore(back); !bytes.Equal(again, back) {
			t.Errorf("restored again, %s changes to %s", back, again)
		}
	})
}
