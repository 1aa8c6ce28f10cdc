package policy

import (
	"fmt"
	"strings"
	"testing"
)

// applied lists a decision's alterations as "field rule".
func applied(d AnswerDecision) string {
	var s []string
	for _, a := range d.Applied {
		s = append(s, a.Field+" "+a.Rule)
	}
	return strings.Join(s, ", ")
}

func TestFillDefaults(t *testing.T) {
	const all = `{"type":"object","properties":{"n":{"type":"string","default":"Ann"},"a":{"type":"integer","default":30},"s":{"type":"number","default":95.50},` +
		`"e":{"type":"string","enum":["on","off"],"default":"on"},"v":{"type":"boolean","default":true}}}`
	tests := []struct{ name, schema, content, want, applied, problems string }{
		{"all", all, `{}`, `{"n":"Ann","a":30,"s":95.50,"e":"on","v":true}`, "n default, a default, s default, e default, v default", ""},
		{"some", all, ` { "v" : false , "a":1.0}`, `{ "v" : false , "a":1.0,"n":"Ann","s":95.50,"e":"on"}`, "n default, s default, e default", ""},
		{"none left out", all, `{"n":"","a":0,"s":0,"e":"off","v":false}`, "", "", ""},
		{"required", `{"properties":{"f":{"type":"string","default":"d"}},"required":["f"]}`, `{}`, `{"f":"d"}`, "f default", ""},
		{"falsy", `{"properties":{"b":{"type":"boolean","default":false},"n":{"type":"integer","default":0},"s":{"type":"string","default":""}}}`, `{}`,
			`{"b":false,"n":0,"s":""}`, "b default, n default, s default", ""},
		{"over no value", form1(`{"type":"integer","default":42}`), `{"f":0}`, "", "", ""},
		{"over no bad value", form1(`{"type":"integer","default":42}`), `{"f":"x"}`, "", "", "f type"},
		{"null", form1(`{"type":"string","default":null}`), `{}`, "", "", ""},
		{"null, nullable", form1(`{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`), `{}`, "", "", ""},
		{"wrong type", form1(`{"type":"array","items":{"type":"string","enum":["a"]},"default":"a"}`), `{}`, "", "", ""},
		{"a title", form1(`{"type":"string","enum":["a"],"enumNames":["Alpha"],"default":"Alpha"}`), `{}`, "", "", ""},
		{"list", form1(`{"type":"array","items":{"enum":["a","b"]},"default":[ "a" ]}`), `{}`, `{"f":[ "a" ]}`, "f default", ""},
		{"behind a ref", `{"properties":{"f":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"integer","default":1e2}}}`, `{}`, `{"f":1e2}`, "f default", ""},
		{"beside a ref", `{"properties":{"f":{"allOf":[{"$ref":"#/$defs/P"}],"default":"a"}},"$defs":{"P":{"type":"string","enum":["a","b"]}}}`, `{}`, `{"f":"a"}`, "f default", ""},
		{"form behind a ref", `{"$ref":"#/$defs/F","$defs":{"F":{"properties":{"f":{"default":1}}}}}`, `{}`, `{"f":1}`, "f default", ""},
		{"escaped name", `{"properties":{"\u0066":{"default":"\u00e4"}}}`, `{}`, `{"\u0066":"\u00e4"}`, "f default", ""},
		{"declared twice", `{"properties":{"f":{"default":1},"f":{"default":2}},"allOf":[{"properties":{"f":{"default":2}}}]}`, `{}`, `{"f":2}`, "f default", ""},
		{"no schema", ``, `{}`, "", "", ""},
		{"other field missing", `{"properties":{"f":{"default":1},"g":{}},"required":["g"]}`, `{}`, `{"f":1}`, "f default", "g required"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := (&Answers{FillDefaults: true}).Decide([]byte(tt.schema), []byte(accept(tt.content)))
			if string(d.Content) != tt.want || applied(d) != tt.applied || failed(d) != tt.problems {
				t.Errorf("%s; applied %q, problems %q", d.Content, applied(d), failed(d))
			}
			if d := new(Answers).Decide([]byte(tt.schema), []byte(accept(tt.content))); d.Content != nil || d.Applied != nil {
				t.Errorf("off by default, but %s", d.Content)
			}
		})
	}
}

func TestCoerce(t *testing.T) {
	const titles = `{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"x","title":"Same"},{"const":"y","title":"Same"}]}`
	tests := []struct {
		name                    string
		coerce                  Coerce
		schema, content         string
		want, applied, problems string
	}{
		{"integer", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{ "f": "5" }`, `{ "f": 5 }`, "f string", ""},
		{"digits kept", Coerce{Strings: true}, form1(`{"type":"number"}`), `{"f":"-1.50e0"}`, `{"f":-1.50e0}`, "f string", ""},
		{"big", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{"f":"9007199254740993"}`, `{"f":9007199254740993}`, "f string", ""},
		{"boolean", Coerce{Strings: true}, form1(`{"type":"boolean"}`), `{"f":"false"}`, `{"f":false}`, "f string", ""},
		{"nullable", Coerce{Strings: true}, form1(`{"anyOf":[{"type":"integer"},{"type":"null"}]}`), `{"f":"5"}`, `{"f":5}`, "f string", ""},
		{"no null of a text", Coerce{Strings: true}, form1(`{"anyOf":[{"type":"integer"},{"type":"null"}]}`), `{"f":"null"}`, "", "", "f anyOf"},
		{"not a number", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{"f":"5 "}`, "", "", "f type"},
		{"leading zero", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{"f":"05"}`, "", "", "f type"},
		{"plus", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{"f":"+5"}`, "", "", "f type"},
		{"fraction", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{"f":"5.5"}`, "", "", "f type"},
		{"out of range", Coerce{Strings: true}, form1(`{"type":"integer","maximum":3}`), `{"f":"5"}`, "", "", "f type"},
		{"True", Coerce{Strings: true}, form1(`{"type":"boolean"}`), `{"f":"True"}`, "", "", "f type"},
		{"1 for true", Coerce{Strings: true}, form1(`{"type":"boolean"}`), `{"f":"1"}`, "", "", "f type"},
		{"string stays", Coerce{Strings: true}, form1(`{"type":"string"}`), `{"f":"5"}`, "", "", ""},
		{"string or number stays", Coerce{Strings: true}, form1(`{"type":["number","string"]}`), `{"f":"5"}`, "", "", ""},
		{"list", Coerce{Strings: true}, form1(`{"type":"array","items":{"type":"integer"}}`), `{"f":[ 1, "2" ,3, "4"]}`, `{"f":[ 1, 2 ,3, 4]}`, "f string", ""},
		{"list, one bad", Coerce{Strings: true}, form1(`{"type":"array","items":{"type":"integer"}}`), `{"f":["1","x"]}`, "", "", "f type, f type"},
		{"title", Coerce{Titles: true}, form1(titles), `{"f":"Red"}`, `{"f":"r"}`, "f title", ""},
		{"title used twice", Coerce{Titles: true}, form1(titles), `{"f":"Same"}`, "", "", "f oneOf"},
		{"title in another case", Coerce{Titles: true}, form1(titles), `{"f":"red"}`, "", "", "f oneOf"},
		{"title, enumNames", Coerce{Titles: true}, form1(`{"enum":["a","b"],"enumNames":["b","A"]}`), `{"f":"A"}`, `{"f":"b"}`, "f title", ""},
		{"a value that is a title too", Coerce{Titles: true}, form1(`{"enum":["a","b"],"enumNames":["b","A"]}`), `{"f":"b"}`, "", "", ""},
		{"title of an integer", Coerce{Titles: true}, form1(`{"type":"integer","enum":[1,2],"enumNames":["One","Two"]}`), `{"f":"Two"}`, `{"f":2}`, "f title", ""},
		{"titles in a list", Coerce{Titles: true}, form1(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}`), `{"f":["A","b"]}`, `{"f":["a","b"]}`, "f title", ""},
		{"title, nullable", Coerce{Titles: true}, form1(`{"anyOf":[{"enum":["a"],"enumNames":["A"]},{"type":"null"}]}`), `{"f":"A"}`, `{"f":"a"}`, "f title", ""},
		{"title behind a ref", Coerce{Titles: true}, `{"properties":{"f":{"$ref":"#/$defs/P"}},"$defs":{"P":` + titles + `}}`, `{"f":"Green"}`, `{"f":"g"}`, "f title", ""},
		{"empty", Coerce{DropEmpty: true}, form1(`{"type":"string","enum":["a"]}`), `{"f":""}`, `{}`, "f empty", ""},
		{"null", Coerce{DropEmpty: true}, `{"properties":{"e":{},"f":{"type":"string"},"g":{}}}`, `{ "e":1, "f":null, "g":2 }`, `{ "e":1, "g":2 }`, "f empty", ""},
		{"first null", Coerce{DropEmpty: true}, `{"properties":{"f":{"type":"string"},"g":{}}}`, `{ "f":null, "g":2 }`, `{ "g":2 }`, "f empty", ""},
		{"last null", Coerce{DropEmpty: true}, `{"properties":{"f":{"type":"string"},"g":{}}}`, `{ "g":2, "f":null }`, `{ "g":2 }`, "f empty", ""},
		{"empty, required", Coerce{DropEmpty: true}, `{"properties":{"f":{"type":"integer"}},"required":["f"]}`, `{"f":""}`, "", "", "f type"},
		{"empty, wanted", Coerce{DropEmpty: true}, form1(`{"type":"string"}`), `{"f":""}`, "", "", ""},
		{"undeclared", Coerce{DropUndeclared: true}, `{"properties":{"f":{}},"additionalProperties":false}`, `{"x":1,"f":2,"y":{}}`, `{"f":2}`, "x undeclared, y undeclared", ""},
		{"undeclared, not ruled out", Coerce{DropUndeclared: true}, form1(`{}`), `{"x":1}`, `{}`, "x undeclared", ""},
		{"undeclared, in another case", Coerce{DropUndeclared: true}, form1(`{}`), `{"F":1}`, `{}`, "F undeclared", ""},
		{"undeclared, but open", Coerce{DropUndeclared: true}, `{"properties":{"f":{}},"additionalProperties":true}`, `{"x":1}`, "", "", ""},
		{"twice", Coerce{Strings: true}, form1(`{"type":"integer"}`), `{"f":"1","f":"2"}`, `{"f":"1","f":2}`, "f string", "f duplicate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := (&Answers{Coerce: tt.coerce}).Decide([]byte(tt.schema), []byte(accept(tt.content)))
			if string(d.Content) != tt.want || applied(d) != tt.applied || failed(d) != tt.problems {
				t.Errorf("%s; applied %q, problems %q", d.Content, applied(d), failed(d))
			}
			if d := new(Answers).Decide([]byte(tt.schema), []byte(accept(tt.content))); d.Content != nil || d.Applied != nil {
				t.Errorf("off by default, but %s", d.Content)
			}
		})
	}
}

// A value that was emptied on purpose is not replaced by its default.
func TestDropEmptyBeforeDefault(t *testing.T) {
	a := &Answers{FillDefaults: true, Coerce: Coerce{DropEmpty: true}}
	d := a.Decide([]byte(form1(`{"type":"integer","default":3}`)), []byte(accept(`{"f":""}`)))
	if string(d.Content) != `{}` || d.Outcome != Pass {
		t.Errorf("%s, %v", d.Content, d.Outcome)
	}
}

func TestApply(t *testing.T) {
	schema := []byte(form1(`{"type":"integer","default":3}`))
	policy := Answers{FillDefaults: true, Coerce: Coerce{Strings: true}, RejectAsDecline: true, DropDeclinedContent: true, DropURLContent: true}
	tests := []struct{ result, want string }{
		{`{"action":"accept","content":{"f":1}}`, ``},
		{` {"_meta":{"x": 1} , "action":"accept","content": { "f" : "1" } , "z":0}` + "\n", ` {"_meta":{"x": 1} , "action":"accept","content": { "f" : 1 } , "z":0}` + "\n"},
		{`{"action":"accept","c\u006fntent":{}}`, `{"action":"accept","c\u006fntent":{"f":3}}`},
		{`{"action":"accept"}`, `{"action":"accept","content":{"f":3}}`},
		{`{ "action":"accept" }`, `{ "action":"accept","content":{"f":3} }`},
		{`{"action":"decline"}`, ``},
		{`{"action":"decline","content":{"f":"secret"}}`, `{"action":"decline"}`},
		{`{"Content":1,"content":null,"action":"cancel","content":2,"_meta":{}}`, `{"action":"cancel","_meta":{}}`},
		{`{"content":{"f":1},"action":"reject"}`, `{"action":"decline"}`},
	}
	for _, tt := range tests {
		d := policy.Decide(schema, []byte(tt.result))
		result := []byte(tt.result)
		got := d.Apply(result)
		if tt.want == "" {
			if &got[0] != &result[0] {
				t.Errorf("%s was copied to %s", tt.result, got)
			}
		} else if string(got) != tt.want {
			t.Errorf("%s became\n%s, want\n%s", tt.result, got, tt.want)
		}
		if d.Outcome != Pass {
			t.Errorf("%s: %v, %s", tt.result, d.Outcome, ProblemText(d.Problems))
		}
		if string(result) != tt.result {
			t.Errorf("%s was written to: %s", tt.result, result)
		}
	}
	d := policy.DecideURL([]byte(`{"action":"accept","content":{"f":"x"}}`))
	if got := string(d.Apply([]byte(`{"action":"accept","content":{"f":"x"}}`))); got != `{"action":"accept"}` || d.Outcome != Pass {
		t.Errorf("URL mode: %s, %v", got, d.Outcome)
	}
}

func TestDecideURL(t *testing.T) {
	tests := []struct{ result, problems string }{
		{`{"action":"accept"}`, ""},
		{`{"action":"accept","content":["any"]}`, ""},
		{`{"action":"cancel"}`, ""},
		{`{"action":"opened"}`, "action action"},
		{`{"action":"decline","ACTION":"accept"}`, "action case"},
	}
	for _, tt := range tests {
		d := new(Answers).DecideURL([]byte(tt.result))
		if failed(d) != tt.problems || (d.Outcome == Pass) != (tt.problems == "") || d.DropContent {
			t.Errorf("%s: %v, %q", tt.result, d.Outcome, failed(d))
		}
	}
}

func TestOutcomes(t *testing.T) {
	bad, good := []byte(accept(`{"f":"x"}`)), []byte(accept(`{"f":1}`))
	schema := []byte(form1(`{"type":"integer"}`))
	for o, name := range outcomeNames {
		a := NewAnswers(AnswersConfig{OnInvalid: name})
		if d := a.Decide(schema, bad); d.Outcome != Outcome(o) || d.Outcome.String() != name || failed(d) != "f type" {
			t.Errorf("%s: a bad answer is %v with %q", name, d.Outcome, failed(d))
		}
		if d := a.Decide(schema, good); d.Outcome != Pass {
			t.Errorf("%s: a good answer is %v", name, d.Outcome)
		}
	}
	if a := NewAnswers(AnswersConfig{OnInvalid: "Pass"}); a.OnInvalid != Refuse {
		t.Errorf("an unknown outcome is %v", a.OnInvalid)
	}
	if err := new(Outcome).UnmarshalText([]byte("refuse")); err == nil || fmt.Sprint(err) != `"refuse" is not one of error, cancel, decline, retry, pass` {
		t.Errorf("refuse: %v", err)
	}
	var zero AnswerDecision
	if zero.Outcome != Refuse {
		t.Errorf("the zero decision is %v", zero.Outcome)
	}
}
