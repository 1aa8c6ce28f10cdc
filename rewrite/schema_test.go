package rewrite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Names that another reader might take for a path, a keyword or an end.
var hurtfulNames = []string{
	`:0`, `a.b`, `#.!true`, `#`, `@this`, `@pretty:{}`, `*`, `?`, `|`, ``, ` `, `-1`, `0`, `\\`, `\"`, `\u0000`, `\ud800`, `\ud801`,
	`enum`, `enumNames`, `oneOf`, `type`, `properties`, `required`, `$ref`, `__proto__`, `constructor`, `é`, `\u00e9x`, `~0/~1`,
}

func TestRefitHurtfulNames(t *testing.T) {
	var in, want []string
	for i, name := range hurtfulNames {
		in = append(in, fmt.Sprintf(`"%s":{"type":"string","enum":["a"],"enumNames":["A%d"]}`, name, i))
		want = append(want, fmt.Sprintf(`"%s":{"type":"string","oneOf":[{"const":"a","title":"A%d"}]}`, name, i))
	}
	const head, tail = `{"type":"object","properties":{`, `},"required":[]}`
	form := RefitForm([]byte(head+strings.Join(in, ",")+tail), Titled, DefaultRules)
	if got := string(form.Schema); got != head+strings.Join(want, ",")+tail {
		t.Errorf("got %s", got)
	}
	if len(form.Changes) != len(hurtfulNames) || len(form.Warnings) != 0 {
		t.Errorf("%d changes and %d warnings", len(form.Changes), len(form.Warnings))
	}
	for _, name := range hurtfulNames { // alone, so that one cannot hide behind another
		const there = `:{"type":["integer","null"],"enum":[7,null]},"other":{"type":"string"}},"required":["other",`
		schema := fmt.Sprintf(`{"type":"object","properties":{"%s"%s"%s"]}`, name, there, name)
		form := RefitForm([]byte(schema), Titled, DefaultRules)
		want := fmt.Sprintf(`{"type":"object","properties":{"%s":{"type":"string","enum":["7"]},"other":{"type":"string"}},"required":["other"]}`, name)
		if string(form.Schema) != want {
			t.Errorf("%s: got %s", name, form.Schema)
		}
		if got, want := string(form.Restore([]byte(`{}`))), fmt.Sprintf(`{"%s":null}`, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if got, want := string(form.Restore(fmt.Appendf(nil, `{"%s":"7"}`, name))), fmt.Sprintf(`{"%s":7}`, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestRefitManyProperties(t *testing.T) {
	const n = 10_000
	var in, want strings.Builder
	for i := range n {
		if i > 0 {
			in.WriteByte(',')
			want.WriteByte(',')
		}
		fmt.Fprintf(&in, `"p%d":{"$ref":"#/$defs/d%d"}`, n-i, i)
		fmt.Fprintf(&want, `"p%d":{"type":"string","enum":["%d"]}`, n-i, i)
	}
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"const":"%d"}`, i, i))
	}
	tail := `},"$defs":{` + strings.Join(defs, ",") + `}}`
	form := RefitForm([]byte(`{"type":"object","properties":{`+in.String()+tail), Titled, DefaultRules)
	if string(form.Schema) != `{"type":"object","properties":{`+want.String()+tail {
		t.Errorf("not what it should be; warnings %v", form.Warnings[:min(3, len(form.Warnings))])
	}
}

// Of a member that stands twice the last counts, and after an edit it is the
// only one left; likewise of one that stands there in another case.
func TestRefitDuplicates(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"keyword", `{"type":"object","properties":{"p":{"enumNames":["old"],"enum":["x"],"type":"string","enum":["a"],"enumNames":["A"]}}}`,
			`{"type":"object","properties":{"p":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}`},
		{"escaped keyword", `{"type":"object","properties":{"p":{"enum":["x"],"type":"string","e\u006eum":["a"],"enumNames":["A"]}}}`,
			`{"type":"object","properties":{"p":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}`},
		{"keyword in another case", `{"type":"object","properties":{"p":{"Enum":["x"],"OneOf":[],"type":"string","enum":["a"],"ENUMNAMES":["X"],"enumNames":["A"],"TITLE":"kept"}}}`,
			`{"type":"object","properties":{"p":{"type":"string","oneOf":[{"const":"a","title":"A"}],"TITLE":"kept"}}}`},
		{"property", `{"type":"object","properties":{"p":{"type":"string","enum":["x"],"enumNames":["X"]},"q":{"type":"boolean"},"\u0070":{"type":"string","enum":["a"],"enumNames":["A"]},"P":{"type":"string"}}}`,
			`{"type":"object","properties":{"q":{"type":"boolean"},"\u0070":{"type":"string","oneOf":[{"const":"a","title":"A"}]},"P":{"type":"string"}}}`},
		{"properties", `{"properties":{"p":{"type":"string","enum":["x"],"enumNames":["X"]}},"type":"object","Properties":{},"properties":{"p":{"type":"string","enum":["a"],"enumNames":["A"]}}}`,
			`{"type":"object","properties":{"p":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}}`},
		{"required", `{"required":["q"],"type":"object","properties":{"p":{"type":["string","null"]},"q":{"type":"string"}},"Required":["p"],"required":["p","p"]}`,
			`{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"string"}},"required":[]}`},
		{"nothing to do", `{"type":"x","type":"object","properties":{"p":{"type":"number","type":"string"},"p":{"type":"boolean","Type":"x"}}}`, ""},
	}
	for _, tt := range tests {
		form := RefitForm([]byte(tt.in), Titled, DefaultRules)
		if got := string(form.Schema); got != tt.want && (tt.want != "" || got != tt.in) {
			t.Errorf("%s: got %s", tt.name, got)
		}
	}
}

func TestRefitForm(t *testing.T) {
	tests := []struct {
		name, in, want string
		changes, warns string // "rule property reason", one
	}{
		{"no type", `{ "properties":{"p":{"type":"string"}}}`, `{"type":"object", "properties":{"p":{"type":"string"}}}`, "missing-type  no type; a form is always an object", ""},
		{"no properties", `{"type":"object"}`, ``, "", ""},
		{"properties no object", `{"properties":[{"enum":["a"],"enumNames":["A"]}]}`, ``, "", ""},
		{"empty", `{}`, ``, "", ""},
		{"null", `null`, ``, "", ""},
		{"list", `[{"type":"object"}]`, ``, "", ""},
		{"white space", " {\n\t\"type\" : \"object\", \"properties\" : { \"p\" : { \"type\" : \"string\" , \"enum\" : [ \"a\" ] , \"enumNames\" : [ \"A\" ] } } } ",
			" {\n\t\"type\" : \"object\", \"properties\" : { \"p\" : { \"type\" : \"string\" , \"oneOf\":[{\"const\":\"a\",\"title\":\"A\"}]  } } } ",
			"enum-names p enum and enumNames to titled oneOf", ""},
		{"keywords as names", `{"type":"object","properties":{"enumNames":{"type":"string"},"icons":{"type":"string"},"enum":{"type":"boolean"},"oneOf":{"type":"integer"}}}`, ``, "", ""},
		{"in the order of the server", `{"type":"object","properties":{"zeta": {"type":"string"},"alpha":{"type":"string","enum":["z","a"],"enumNames":["Zed","Aye"]},"mid":{"type" :"boolean"}}}`,
			`{"type":"object","properties":{"zeta": {"type":"string"},"alpha":{"type":"string","oneOf":[{"const":"z","title":"Zed"},{"const":"a","title":"Aye"}]},"mid":{"type" :"boolean"}}}`,
			"enum-names alpha enum and enumNames to titled oneOf", ""},
		{"too long", `{"properties":{"p":{"title":"` + strings.Repeat("x", MaxFormBytes) + `"}}}`, ``, "", "unsupported  a form of more than 4194304 bytes; passed unchanged"},
		{"too many properties", `{"properties":{` + strings.Repeat(`"p":{},`, MaxFormProperties) + `"p":{}}}`, ``, "", "unsupported  more than 65536 properties; the form passed unchanged"},
		{"too many options", `{"type":"object","properties":{"p":{"type":"string","enum":["a"` + strings.Repeat(`,"a"`, MaxFormOptions) + `],"enumNames":["A"]}}}`, ``, "", "typed-enums p more than 16384 options; passed unchanged"},
		{"too much inlined", `{"type":"object","properties":{"p":{"$ref":"#/$defs/d"},"q":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string","description":"` + strings.Repeat("x", MaxFormInlined/2) + `"}}}`, ``, "",
			"local-ref  references that stand for more than 1048576 bytes; the form passed unchanged"},
	}
	for _, tt := range tests {
		schema := []byte(tt.in)
		form := RefitForm(schema, Titled, DefaultRules)
		got := string(form.Schema)
		if tt.want == "" && (&form.Schema[0] != &schema[0] || got != tt.in) || tt.want != "" && got != tt.want {
			t.Errorf("%s: got %.300s", tt.name, got)
		}
		for what, is := range map[string][]Change{tt.changes: form.Changes, tt.warns: form.Warnings} {
			if len(is) > 1 || len(is) == 0 && what != "" || len(is) == 1 && strings.Join([]string{is[0].Rule, is[0].Property, is[0].Reason}, " ") != what {
				t.Errorf("%s: got %v, want %q", tt.name, is, what)
			}
		}
	}
}

func TestRefitChain(t *testing.T) {
	for hops, want := range map[int]int{MaxFormHops: 0, MaxFormHops + 1: 1} {
		var defs []string
		for i := 1; i < hops; i++ {
			defs = append(defs, fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1))
		}
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"string"}`, hops))
		form := RefitForm([]byte(`{"type":"object","properties":{"p":{"$ref":"#/$defs/d1"}},"$defs":{`+strings.Join(defs, ",")+`}}`), Titled, DefaultRules)
		if len(form.Warnings) != want {
			t.Errorf("%d references in a row: %v", hops, form.Warnings)
		}
	}
}

// Which changes there are, and in which order, is told once a rule and property.
func TestRefitChangesInOrder(t *testing.T) {
	schema := `{"properties":{"b":{"type":["integer","null"],"enum":[1,null],"default":3},"a":{"$ref":"#/x"},"c":{"type":"object"}},"x":{"$ref":"#/y"},"y":{"const":true}}`
	form := RefitForm([]byte(schema), Titled, DefaultRules)
	var got []string
	for _, c := range slices.Concat(form.Changes, form.Warnings) {
		got = append(got, c.Property+" "+c.Rule)
	}
	want := "b nullable,b typed-enums,b defaults,a local-ref,a const,a typed-enums,a missing-type, missing-type,b defaults,c unsupported"
	if strings.Join(got, ",") != want {
		t.Errorf("got %s", strings.Join(got, ","))
	}
	if !json.Valid(form.Schema) {
		t.Errorf("no JSON: %s", form.Schema)
	}
}

func BenchmarkRefitForm(b *testing.B) {
	kinds := map[string]string{
		"current": `"f%d":{"type":"string","title":"F","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"}`,
		"text":    `"f%d":{"type":"string","title":"F","minLength":1,"default":"x"}`,
		"old":     `"f%d":{"type":"string","title":"F","enum":["a","b","c"],"enumNames":["A","B","C"],"default":"a"}`,
		"python":  `"f%d":{"anyOf":[{"$ref":"#/$defs/E"},{"type":"null"}],"title":"F","default":null}`,
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for _, n := range []int{20, 2000} {
			var p []string
			for i := range n {
				p = append(p, fmt.Sprintf(kinds[kind], i))
			}
			schema := []byte(`{"type":"object","properties":{` + strings.Join(p, ",") + `},"$defs":{"E":{"type":"integer","enum":[1,2,3]}}}`)
			b.Run(fmt.Sprintf("%s/fields=%d", kind, n), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(schema)))
				for b.Loop() {
					RefitForm(schema, Titled, DefaultRules)
				}
			})
		}
	}
}
