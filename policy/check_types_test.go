package policy

import (
	"strings"
	"testing"
)

// Every type that a field can have, against a value of every other.
func TestCheckTypes(t *testing.T) {
	values := map[string]string{
		"null": `null`, "true": `true`, "false": `false`, "integer": `7`, "integer 1.0": `1.0`,
		"fraction": `1.5`, "string": `"abc"`, "empty string": `""`, "digits": `"7"`,
		"true in quotes": `"true"`, "list": `["abc"]`, "empty list": `[]`, "list of numbers": `[7]`,
		"object": `{"a":"b"}`, "empty object": `{}`,
	}
	types := []struct{ name, schema, fits, wish string }{
		{"string", `{"type":"string"}`, "string, empty string, digits, true in quotes", "a string"},
		{"email", `{"type":"string","format":"email"}`, "", "an email address"},
		{"number", `{"type":"number"}`, "integer, integer 1.0, fraction", "a number"},
		{"integer", `{"type":"integer"}`, "integer, integer 1.0", "an integer"},
		{"boolean", `{"type":"boolean"}`, "true, false", "true or false"},
		{"enum", `{"type":"string","enum":["abc"]}`, "string", `"abc"`},
		{"untyped enum", `{"enum":["abc"]}`, "string", `"abc"`},
		{"integer enum", `{"type":"integer","enum":[7,8]}`, "integer", "one of 7, 8"},
		{"boolean enum", `{"enum":[true]}`, "true", "true"},
		{"titled", `{"type":"string","oneOf":[{"const":"abc","title":"A"}]}`, "string", `"abc" (A)`},
		{"titled anyOf", `{"anyOf":[{"const":"abc","title":"A"}]}`, "string", `"abc" (A)`},
		{"legacy titled", `{"type":"string","enum":["abc"],"enumNames":["A"]}`, "string", `"abc" (A)`},
		{"const", `{"const":7}`, "integer", "7"},
		{"multi", `{"type":"array","items":{"type":"string","enum":["abc"]}}`, "list, empty list", `"abc"`},
		{"titled multi", `{"type":"array","items":{"anyOf":[{"const":"abc","title":"A"}]}}`, "list, empty list", `"abc" (A)`},
		{"nullable", `{"anyOf":[{"type":"integer"},{"type":"null"}]}`, "null, integer, integer 1.0", "an integer"},
		{"type list", `{"type":["boolean","null"]}`, "null, true, false", "true or false or null"},
		{"object", `{"type":"object"}`, "object, empty object", "an object"},
		{"null", `{"type":"null"}`, "null", "null"},
		{"anything", `{}`, "null, true, false, integer, integer 1.0, fraction, string, empty string, digits, true in quotes, list, empty list, list of numbers, object, empty object", ""},
		{"anything, in a word", `true`, "null, true, false, integer, integer 1.0, fraction, string, empty string, digits, true in quotes, list, empty list, list of numbers, object, empty object", ""},
		{"nothing", `false`, "", "is not wanted"},
	}
	for _, tt := range types {
		fits := map[string]bool{}
		for name := range strings.SplitSeq(tt.fits, ", ") {
			fits[name] = true
		}
		for name, value := range values {
			d := new(Answers).Decide([]byte(form1(tt.schema)), []byte(accept(`{"f":`+value+`}`)))
			if fits[name] != (d.Outcome == Pass) {
				t.Errorf("%s for %s: %v, %s", name, tt.name, d.Outcome, ProblemText(d.Problems))
			}
			for _, p := range d.Problems {
				if p.Field != "f" || !strings.HasPrefix(p.Message, "f: ") || !strings.Contains(p.Message, tt.wish) {
					t.Errorf("%s for %s: %q does not say %q", name, tt.name, p.Message, tt.wish)
				}
			}
		}
	}
}

func TestCheckKeywords(t *testing.T) {
	tests := []struct{ schema, good, bad, rule string }{
		{`{"minimum":1}`, `1`, `0.999`, "minimum"},
		{`{"maximum":1}`, `1.0`, `1.0000000000000000000001`, "maximum"},
		{`{"exclusiveMinimum":1}`, `1.1`, `1.0`, "exclusiveMinimum"},
		{`{"exclusiveMaximum":1}`, `-1`, `1`, "exclusiveMaximum"},
		{`{"multipleOf":0.01}`, `19.99`, `19.999`, "multipleOf"},
		{`{"minLength":2}`, `"éé"`, `"é"`, "minLength"},
		{`{"minLength":2.0}`, `"éé"`, `"é"`, "minLength"},
		{`{"maxLength":2}`, `"\n\t"`, `"abc"`, "maxLength"},
		{`{"maxItems":1}`, `[1]`, `[1,2]`, "maxItems"},
		{`{"uniqueItems":true}`, `[1,"1",true]`, `[1,2,1.0]`, "uniqueItems"},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2},{"a":2,"b":1}]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, "uniqueItems"},
		{`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `["a",1]`, `[1,1]`, "type"},
		{`{"contains":{"const":1}}`, `[0,1]`, `[0]`, "contains"},
		{`{"contains":{"const":1},"minContains":0}`, `[0]`, ``, ""},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,0]`, `[1,1]`, "maxContains"},
		{`{"not":{"type":"string"}}`, `1`, `"a"`, "not"},
		{`{"if":{"type":"string"},"then":{"minLength":1},"else":{"minimum":1}}`, `"a"`, `0`, "minimum"},
		{`{"if":{"type":"string"},"then":{"minLength":1}}`, `0`, `""`, "minLength"},
		{`{"oneOf":[{"type":"string"},{"type":"integer"}]}`, `1`, `true`, "oneOf"},
		{`{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1.5`, `1`, "oneOf"},
		{`{"allOf":[{"minimum":1},{"maximum":3}]}`, `2`, `4`, "maximum"},
		{`{"minProperties":1}`, `{"a":1}`, `{}`, "minProperties"},
		{`{"maxProperties":1}`, `{"a":1}`, `{"a":1,"b":2}`, "maxProperties"},
		{`{"propertyNames":{"maxLength":1}}`, `{"a":1}`, `{"ab":1}`, "propertyNames"},
		{`{"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, `{"xa":1}`, `{"a":1}`, "additionalProperties"},
		{`{"patternProperties":{"^x":{"type":"integer"}}}`, `{"a":"b"}`, `{"xa":"b"}`, "type"},
		{`{"additionalProperties":{"type":"integer"}}`, `{"a":1}`, `{"a":"b"}`, "type"},
		{`{"dependentRequired":{"a":["b"]}}`, `{"b":1}`, `{"a":1}`, "dependentRequired"},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1,"b":1}`, `{"a":1}`, "required"},
		{`{"const":{"a":[1,2.0]}}`, `{"a":[1.0,2]}`, `{"a":[2,1]}`, "const"},
		{`{"enum":[{"a":1},[1]]}`, `[1.0]`, `[2]`, "enum"},
	}
	for _, tt := range tests {
		check := func(value string) AnswerDecision {
			return new(Answers).Decide([]byte(form1(tt.schema)), []byte(accept(`{"f":`+value+`}`)))
		}
		if d := check(tt.good); d.Outcome != Pass {
			t.Errorf("%s, %s: %s", tt.schema, tt.good, ProblemText(d.Problems))
		}
		if tt.bad == "" {
			continue
		}
		d := check(tt.bad)
		if len(d.Problems) != 1 || d.Problems[0].Rule != tt.rule || !strings.HasPrefix(d.Problems[0].Field, "f") {
			t.Errorf("%s, %s: %q, want one problem with %s", tt.schema, tt.bad, failed(d), tt.rule)
		}
	}
}

func TestDecimal(t *testing.T) {
	parse := func(s string) decimal {
		d, ok := parseDecimal([]byte(s))
		if !ok {
			t.Fatalf("%s is not read", s)
		}
		return d
	}
	// In ascending order, those in one row equal.
	order := [][]string{
		{"-1e400"}, {"-9007199254740993", "-9007199254740993.0"}, {"-9007199254740992"}, {"-1.1"}, {"-1"},
		{"-1e-400"}, {"0", "-0", "0.0", "0e99", "-0e-7"}, {"1e-999999999"}, {"0.3", "3e-1", "0.30", "30e-2"},
		{"1", "1.0", "10e-1", "0.1e1", "1e0", "1E+0", "100000e-5"}, {"1.0000000000000000000000000001"}, {"2"}, {"10", "1e1"},
		{"9007199254740992"}, {"9007199254740993"}, {"12345678901234567890123"}, {"12345678901234567890124"}, {"1e999999999"},
	}
	for i, a := range order {
		for j, b := range order {
			for _, x := range a {
				for _, y := range b {
					if got, want := parse(x).compare(parse(y)), max(-1, min(1, i-j)); got != want {
						t.Errorf("%s compared with %s: %d, want %d", x, y, got, want)
					}
					if same := parse(x).String() == parse(y).String(); same != (i == j) {
						t.Errorf("%s and %s have the same canonical text: %v", x, y, same)
					}
				}
			}
		}
	}
	multiples := []struct {
		number, of string
		want       bool
	}{
		{"0.3", "0.1", true}, {"0.35", "0.1", false}, {"19.99", "0.01", true}, {"0", "7", true}, {"-14", "7", true},
		{"15", "7", false}, {"1e999999999", "7", false}, {"7e999999999", "7", true}, {"1e999999999", "5e999999998", true},
		{"1e-999999999", "1", false}, {"9007199254740993", "2", false}, {"9007199254740994", "2", true}, {"3", "1.5", true},
		{"1e3", "0.25", true}, {"0.5", "10", false},
	}
	for _, tt := range multiples {
		if got := parse(tt.number).multipleOf(parse(tt.of)); got != tt.want {
			t.Errorf("%s is a multiple of %s: %v", tt.number, tt.of, got)
		}
	}
	for _, s := range []string{"1" + strings.Repeat("0", maxNumberBytes), "1e1000000000000000000", "1e-99999999999999999999"} {
		if _, ok := parseDecimal([]byte(s)); ok {
			t.Errorf("%.30s is read", s)
		}
	}
}
