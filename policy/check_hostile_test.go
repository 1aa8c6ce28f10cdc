package policy

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// What cannot be checked is named; the rest is checked.
func TestUnchecked(t *testing.T) {
	rest := func(schema string) string { return `{"properties":{"f":` + schema + `,"n":{"type":"integer"}}}` }
	tests := []struct{ name, schema, unchecked string }{
		{"remote ref", rest(`{"$ref":"https://schemas.example/p.json"}`), `f: $ref "https://schemas.example/p.json" is not fetched`},
		{"file ref", rest(`{"$ref":"p.json#/a"}`), `f: $ref "p.json#/a" is not fetched`},
		{"dangling ref", rest(`{"$ref":"#/$defs/none"}`), `f: $ref "#/$defs/none" leads nowhere`},
		{"anchor", rest(`{"$ref":"#here"}`), `f: $ref "#here" is not a JSON pointer`},
		{"ref of a wrong type", rest(`{"$ref":1}`), `f: $ref is not a string`},
		{"ref to itself", rest(`{"$ref":"#/properties/f"}`), `f: its schema refers to itself`},
		{"ring of refs", rest(`{"anyOf":[{"$ref":"#/properties/f"},{"$ref":"#/properties/f"}]}`), `f: its schema refers to itself`},
		{"pattern", rest(`{"type":"string","pattern":"(["}`), `f: pattern "([" does not compile`},
		{"look-ahead", rest(`{"type":"string","pattern":"^(?=.*[A-Z]).+$"}`), `f: pattern "^(?=.*[A-Z]).+$" uses a group that cannot be checked`},
		{"pattern of a wrong type", rest(`{"pattern":1}`), `f: its pattern is not a string`},
		{"unknown type", rest(`{"type":"text"}`), `f: its type "text" is not a type of JSON Schema`},
		{"type of a wrong type", rest(`{"type":7}`), `f: its type is neither a name nor a list of names`},
		{"enum of a wrong type", rest(`{"enum":"x"}`), `f: its enum is not a list`},
		{"bound of a wrong type", rest(`{"minLength":"x"}`), `f: minLength "x" is no count`},
		{"negative length", rest(`{"maxLength":-1}`), `f: maxLength -1 is no count`},
		{"empty anyOf", rest(`{"anyOf":[]}`), `f: its anyOf is not a list of schemas`},
		{"no schema", rest(`"string"`), `f: its schema is neither an object nor a boolean`},
		{"dynamic ref", rest(`{"$dynamicRef":"#x"}`), `f: $dynamicRef is not evaluated`},
		{"under not", rest(`{"not":{"pattern":"(["}}`), `f: pattern "([" does not compile`},
		{"under if", rest(`{"if":{"pattern":"(["},"then":false,"else":false}`), `f: pattern "([" does not compile`},
		{"in oneOf", rest(`{"oneOf":[{"pattern":"(["},{"type":"string"}]}`), `f: pattern "([" does not compile`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := new(Answers).Decide([]byte(tt.schema), []byte(accept(`{"f":"x","n":"y"}`)))
			if got := strings.Join(d.Unchecked, "; "); got != tt.unchecked || failed(d) != "n type" {
				t.Errorf("unchecked %q, problems %q", got, failed(d))
			}
			d = new(Answers).Decide([]byte(tt.schema), []byte(accept(`{"f":"x","n":1}`)))
			if d.Outcome != Pass || len(d.Unchecked) != 1 {
				t.Errorf("%v, unchecked %q, %s", d.Outcome, d.Unchecked, ProblemText(d.Problems))
			}
		})
	}
}

// A requestedSchema that is none leaves nothing to check but the answer's shape.
func TestUncheckedForm(t *testing.T) {
	tests := []struct{ name, schema, unchecked string }{
		{"not JSON", `{"type":`, "requestedSchema: is not valid JSON"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "requestedSchema: is not valid UTF-8"},
		{"a list", `[]`, "requestedSchema: is not an object"},
		{"a boolean", `false`, "requestedSchema: is not an object"},
		{"of strings", `{"type":"string"}`, "requestedSchema: its type is not object"},
		{"large", `{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "requestedSchema: is larger than 1048576 bytes"},
		{"deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), "requestedSchema: is nested too deeply to be checked"},
		{"many values", `{"enum":[` + strings.Repeat("1,", maxValues) + `1]}`, "requestedSchema: holds too many values to be checked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := new(Answers).Decide([]byte(tt.schema), []byte(accept(`{"f":{}}`)))
			if d.Outcome != Pass || strings.Join(d.Unchecked, "; ") != tt.unchecked {
				t.Errorf("%v, unchecked %q, %s", d.Outcome, d.Unchecked, ProblemText(d.Problems))
			}
			if d := new(Answers).Decide([]byte(tt.schema), []byte(accept(`[]`))); failed(d) != "content type" {
				t.Errorf("content that is a list: %q", failed(d))
			}
			if d := new(Answers).Decide([]byte(tt.schema), []byte(accept(`{"f":1,"f":2}`))); failed(d) != "f duplicate" {
				t.Errorf("a field twice: %q", failed(d))
			}
		})
	}
}

// Schemas that would keep a library busy for minutes, or for ever.
func TestBoundedWork(t *testing.T) {
	var twice strings.Builder
	for i := range 40 {
		fmt.Fprintf(&twice, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	choice := strings.ReplaceAll(twice.String(), "allOf", "anyOf")
	options := strings.Repeat(`"aaaaaaaa",`, 5_000) + `"b"`
	list := `{"f":["` + strings.Repeat(`c","`, 50_000) + `c"]}`
	tests := []struct{ name, schema, content string }{
		{"2^40 references", `{"properties":{"f":{"$ref":"#/$defs/d0"}},"$defs":{` + twice.String() + `"d40":{}}}`, `{"f":1}`},
		{"2^40 choices", `{"properties":{"f":{"$ref":"#/$defs/d0"}},"$defs":{` + choice + `"d40":{"type":"string"}}}`, `{"f":1}`},
		{"many chosen of many", form1(`{"type":"array","items":{"enum":[` + options + `]}}`), list},
		{"a long text for a large pattern", form1(`{"pattern":"^(a?b?c?){500}$"}`), `{"f":"` + strings.Repeat("abd", 100_000) + `"}`},
		{"large patterns", form1(`{"additionalProperties":false,"patternProperties":{` + largePatterns(10_000) + `}}`), `{"f":{"x":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := new(Answers).Decide([]byte(tt.schema), []byte(accept(tt.content)))
			last := d.Problems[len(d.Problems)-1]
			if last.Rule != "size" || last.Field != "content" || d.Outcome != Refuse {
				t.Errorf("%v: %.200s", d.Outcome, ProblemText(d.Problems))
			}
		})
	}
}

func largePatterns(n int) string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf(`"^a{900}%d":{}`, i))
	}
	return strings.Join(s, ",")
}

// Large is not hostile.
func TestLargeForms(t *testing.T) {
	var properties, content, options []string
	for i := range 1000 {
		options = append(options, fmt.Sprintf(`{"const":"o%d","title":"Option %d"}`, i, i))
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"integer","minimum":0}`, i))
		content = append(content, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	schema := `{"properties":{"f":{"type":"array","items":{"anyOf":[` + strings.Join(options, ",") + `]}},` + strings.Join(properties, ",") + `}}`
	chosen := `"f":["o1","o999"],"long":"` + strings.Repeat("x", 5<<20) + `"`
	d := new(Answers).Decide([]byte(schema), []byte(accept(`{`+strings.Join(content, ",")+`,`+chosen+`}`)))
	if d.Outcome != Pass || len(d.Unchecked) > 0 {
		t.Errorf("%v: %.200s", d.Outcome, ProblemText(d.Problems))
	}
}

// A sentence quotes little of the answer, nothing that hides, and no secret.
func TestMessages(t *testing.T) {
	const secret = "hunter2hunter2"
	fields := map[string]string{
		"password": `{"type":"integer"}`, "API-Key": `{"type":"integer"}`, "githubToken": `{"enum":["x"]}`, "pin": `{"pattern":"^.$"}`,
		"a": `{"type":"string","format":"password","maxLength":3}`, "b": `{"type":"integer","writeOnly":true}`,
		"c": `{"type":"string","title":"Your secret","format":"uuid"}`, "d.secret": `{"oneOf":[{"const":"x"}]}`,
		"e_passwd": `{"not":{"type":"string"}}`, "f_credentials": `{"type":"array","items":{"type":"integer"}}`,
		"h":        `{"type":"object","writeOnly":true,"properties":{"v":{"type":"integer"}}}`,
		"g_secret": `{"type":"object","properties":{"v":{"type":"integer"}}}`,
	}
	for name, schema := range fields {
		value := `"` + secret + `"`
		switch name[0] {
		case 'f':
			value = `[` + value + `]`
		case 'g', 'h':
			value = `{"v":` + value + `}`
		}
		d := new(Answers).Decide([]byte(`{"properties":{"`+name+`":`+schema+`}}`), []byte(accept(`{"`+name+`":`+value+`}`)))
		text := ProblemText(d.Problems)
		if len(d.Problems) != 1 || strings.Contains(text, "hunter") || !strings.Contains(text, name) {
			t.Errorf("%s: %d problems, %s", name, len(d.Problems), text)
		}
	}
	for _, value := range []string{strings.Repeat("x", 1000), strings.Repeat("ä", 1000), strings.Repeat("\u202e", 1000), "\x00\u200b\u2028", strings.Repeat(`\`, 60)} {
		quoted := quote(value)
		if len(quoted) > maxQuoted || !utf8.ValidString(quoted) || strings.ContainsAny(quoted, "\u202e\u200b\u2028\x00") {
			t.Errorf("%.20q is quoted as %s, %d bytes", value, quoted, len(quoted))
		}
		d := new(Answers).Decide([]byte(form1(`{"type":"integer"}`)), fmt.Appendf(nil, `{"action":"accept","content":{"f":%q}}`, "plain "+value[:1]))
		if len(d.Problems) != 1 {
			t.Errorf("%d problems", len(d.Problems))
		}
	}
	d := new(Answers).Decide([]byte(`{"properties":{"f":{}},"additionalProperties":false}`), []byte(accept(`{"x: was fine; `+strings.Repeat("y", 500)+`":1}`)))
	if m := d.Problems[0].Message; len(m) > 200 || !strings.HasPrefix(m, `"x: was fine; `) {
		t.Errorf("a long name is shown as %s", m)
	}
	long := strings.Repeat("ä", 500)
	d = (&Answers{Coerce: Coerce{DropUndeclared: true}}).Decide([]byte(form1(`{}`)), []byte(accept(`{"`+long+`":1,"f":2}`)))
	if f := d.Applied[0].Field; len(f) > maxName+len("…") || !utf8.ValidString(f) {
		t.Errorf("a long name is recorded as %s", f)
	}
	d = new(Answers).Decide([]byte(form1(`{}`)), []byte(accept(`{"`+long+`":null}`)))
	if f := d.Problems[0].Field; len(f) > maxName+len("…") || !utf8.ValidString(f) {
		t.Errorf("a long name is reported as %s", f)
	}
}

func TestProblemText(t *testing.T) {
	if got := ProblemText(nil); got != "" {
		t.Errorf("no problems: %q", got)
	}
	two := []Problem{{"a", "type", "a: one"}, {"b", "required", "b: two"}}
	if got := ProblemText(two); got != "a: one (type); b: two (required)" {
		t.Errorf("two problems: %q", got)
	}
	var many []Problem
	for i := range maxProblems {
		field := fmt.Sprintf("field_%02d", i)
		many = append(many, Problem{field, "maximum", field + ": " + strings.Repeat("long ", 50)})
	}
	text := ProblemText(many)
	if len(text) > maxProblemText {
		t.Errorf("%d bytes", len(text))
	}
	for _, p := range many {
		if !strings.Contains(text, p.Field) {
			t.Errorf("%s is not named", p.Field)
		}
	}
	for i := range many {
		many[i].Field = strings.Repeat("f", 90) + many[i].Field
	}
	if text := ProblemText(many); len(text) > maxProblemText || !strings.HasSuffix(text, " more") {
		t.Errorf("%d bytes that end in %s", len(text), text[len(text)-20:])
	}
}
