package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// sample is a generated form and an answer's content.
type sample struct{ schema, content string }

// kindOfField is a field's schema and values on both sides of its rules.
type kindOfField struct {
	schema string
	values []string
}

// anyValues are values that a field may get whatever its type is.
var anyValues = []string{`null`, `true`, `false`, `0`, `1`, `-1`, `1.0`, `1.5`, `2e0`, `"a"`, `""`, `"1"`, `"true"`, `[]`, `["a"]`, `["a","a"]`, `[1]`, `{}`, `{"k":"a"}`}

// randomField makes a field out of the keywords that forms use.
func randomField(r *rand.Rand) kindOfField {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	switch r.IntN(14) {
	case 0, 1:
		low, high := r.IntN(4), 3+r.IntN(3)
		return kindOfField{fmt.Sprintf(`{"type":%q,%q:%d,%q:%d}`, pick("integer", "number"), pick("minimum", "exclusiveMinimum"), low, pick("maximum", "exclusiveMaximum"), high),
			[]string{fmt.Sprint(low), fmt.Sprint(high), fmt.Sprintf("%d.0", low+1), fmt.Sprintf("%d.5", low), fmt.Sprintf("%d0e-1", high), "9007199254740993", "-0.5", fmt.Sprintf("%q", fmt.Sprint(low+1))}}
	case 2:
		return kindOfField{fmt.Sprintf(`{"type":"number","multipleOf":%s}`, pick("2", "3", "0.5", "1")), []string{"3", "4", "4.5", "4.25", "0", "-6", "1e3"}}
	case 3:
		low := r.IntN(3)
		return kindOfField{fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, low, low+r.IntN(2)), []string{`"a"`, `"ab"`, `"abc"`, `"abcd"`, `"😀"`, `"😀ä"`, `"\ud83d\ude00"`, `"e\u0301"`}}
	case 4:
		return kindOfField{`{"type":"string","pattern":` + pick(`"^[A-Z]+$"`, `"b"`, `"^\\d{2}-\\d{2}$"`, `"^(a|b)*$"`) + `}`, []string{`"AB"`, `"Ab"`, `"b"`, `"12-34"`, `"12-345"`, `"abba"`, `"abc"`}}
	case 5:
		format := pick("email", "uri", "date", "date-time", "uuid", "ipv4", "ipv6", "hostname", "x-unknown")
		return kindOfField{`{"type":"string","format":"` + format + `"}`, []string{`"a@b.example"`, `"a"`, `"a@"`, `"https://h.example/p?q#f"`, `"urn:a:b"`, `"mailto:a@b.example"`, `"/p"`,
			`"2026-02-28"`, `"2026-02-30"`, `"2024-02-29"`, `"2026-01-31T10:00:00Z"`, `"2026-01-31T10:00:00.5+01:00"`, `"2026-01-31T25:00:00Z"`, `"2026-01-31T10:00:00"`,
			`"2eb8aa08-aa98-11ea-b4aa-73b441d16380"`, `"2eb8aa08"`, `"192.0.2.1"`, `"192.0.2.256"`, `"::1"`, `"2001:db8::g"`, `"h.example"`, `"-h.example"`}}
	case 6, 7:
		shape := pick(`{"type":"string","enum":["a","b"]}`, `{"enum":["a","b"]}`, `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`,
			`{"anyOf":[{"const":"a","title":"A"},{"const":"b"}]}`, `{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`, `{"const":"a"}`,
			`{"type":"string","enum":["a","b"],"oneOf":[{"const":"a"}]}`)
		return kindOfField{shape, []string{`"a"`, `"b"`, `"A"`, `"c"`}}
	case 8:
		return kindOfField{`{"type":"integer","enum":[1,2]}`, []string{"1", "2.0", "3", `"1"`}}
	case 9, 10:
		items := pick(`{"type":"string","enum":["a","b","c"]}`, `{"anyOf":[{"const":"a","title":"A"},{"const":"b"},{"const":"c"}]}`, `{"oneOf":[{"const":"a"},{"const":"b"},{"const":"c"}]}`)
		return kindOfField{fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d,"uniqueItems":%v}`, items, r.IntN(2), 1+r.IntN(2), r.IntN(2) == 0),
			[]string{`["a"]`, `["a","b"]`, `["a","a"]`, `["z"]`, `["a","b","c"]`, `[]`, `["a",1]`}}
	case 11:
		inner := randomField(r)
		around := pick(`{"anyOf":[%s,{"type":"null"}]}`, `{"allOf":[%s]}`, `{"not":%s}`, `{"oneOf":[%s,{"type":"null"}]}`, `{"if":%s,"then":{"type":"string"}}`)
		return kindOfField{fmt.Sprintf(around, inner.schema), inner.values}
	case 12:
		inner := randomField(r)
		return kindOfField{`{"type":"object","properties":{"k":` + inner.schema + `},"required":["k"],"additionalProperties":` + pick("true", "false") + `}`,
			[]string{`{"k":` + inner.values[0] + `}`, `{"k":` + pick(inner.values...) + `}`, `{"k":"a","l":1}`, `{}`}}
	}
	return kindOfField{pick(`{"type":"boolean"}`, `{"type":["string","null"]}`, `{"type":["integer","boolean"]}`, `{}`, `{"$ref":"#/$defs/choice"}`, `{"allOf":[{"$ref":"#/$defs/choice"}],"title":"T"}`), []string{`"a"`, `"b"`, `true`}}
}

// randomSample makes a form of one to four fields and an answer to it.
func randomSample(r *rand.Rand) sample {
	var properties, content, required []string
	for i := range 1 + r.IntN(4) {
		field := randomField(r)
		name := fmt.Sprintf("f%d", i)
		properties = append(properties, fmt.Sprintf(`%q:%s`, name, field.schema))
		if r.IntN(3) == 0 {
			required = append(required, fmt.Sprintf(`%q`, name))
		}
		values := field.values
		if r.IntN(4) == 0 {
			values = anyValues
		}
		if r.IntN(5) > 0 {
			content = append(content, fmt.Sprintf(`%q:%s`, name, values[r.IntN(len(values))]))
		}
	}
	if r.IntN(6) == 0 {
		content = append(content, `"more":"x"`)
	}
	closed := ""
	if r.IntN(3) == 0 {
		closed = `,"additionalProperties":false`
	}
	return sample{
		`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]` + closed + `,"$defs":{"choice":{"type":"string","enum":["a"]}}}`,
		`{` + strings.Join(content, ",") + `}`,
	}
}

// For generated forms and answers the verdict is that of an independent
// implementation of JSON Schema, which is too slow to start for the proxy.
func TestAgainstJSONSchema(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	passed := 0
	const samples = 1000
	for range samples {
		s := randomSample(r)
		schema, err := jsonschema.UnmarshalJSON(strings.NewReader(s.schema))
		if err != nil {
			t.Fatalf("%s: %v", s.schema, err)
		}
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("urn:form", schema); err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile("urn:form")
		if err != nil {
			t.Fatalf("%s: %v", s.schema, err)
		}
		content, err := jsonschema.UnmarshalJSON(strings.NewReader(s.content))
		if err != nil {
			t.Fatal(err)
		}
		want := compiled.Validate(content)
		got := new(Answers).Decide([]byte(s.schema), []byte(accept(s.content)))
		if (want == nil) != (got.Outcome == Pass) || len(got.Unchecked) > 0 {
			t.Errorf("%s\n%s\nhere: %s, unchecked %q\nthere: %v", s.schema, s.content, ProblemText(got.Problems), got.Unchecked, want)
		}
		if want == nil {
			passed++
		}
	}
	if passed < samples/10 || passed > samples*9/10 {
		t.Errorf("%d of %d answers are valid: the generator tells little", passed, samples)
	}
}
