package rewrite

import (
	"encoding/json"
	"strings"
	"testing"
)

// A ruleTest is one property before and after, in a form that requires it.
type ruleTest struct {
	name     string
	dialect  Dialect
	in       string
	want     string   // empty: the same slice
	did      []string // "rule: reason"
	warned   []string
	optional bool // the form no longer requires it
}

const (
	formHead     = `{"type": "object" ,"properties":{"before":{ "type" :"boolean"}, "p" : `
	formTail     = ` ,"after":{"type":"string","maxLength":3} },"$defs":{"Color":{"type":"string","title":"Color","enum":["r","g"],"enumNames":["Red","Green"]},"Level":{"enum":[1,2]},"a/b":{"$ref":"#/$defs/Color"},"Loop":{"$ref":"#/$defs/Loop"},"Odd":{"x-a":2,"x-b":2,"type":"string"}},`
	formRequired = `"required":["p","after"]}`
	formOptional = `"required":["after"]}`
)

func (tt ruleTest) run(t *testing.T, on Rules) {
	t.Helper()
	schema := []byte(formHead + tt.in + formTail + formRequired)
	form := RefitForm(schema, tt.dialect, on)
	if tt.want == "" {
		if &form.Schema[0] != &schema[0] || len(form.Schema) != len(schema) {
			t.Errorf("got %s, want it unchanged", form.Schema)
		}
	} else {
		want := formHead + tt.want + formTail + formRequired
		if tt.optional {
			want = formHead + tt.want + formTail + formOptional
		}
		if string(form.Schema) != want {
			t.Errorf("got  %s\nwant %s", form.Schema, want)
		}
	}
	if !json.Valid(form.Schema) {
		t.Error("the result is no JSON")
	}
	compare(t, "changes", form.Changes, tt.did)
	compare(t, "warnings", form.Warnings, tt.warned)
	if again := RefitForm(form.Schema, tt.dialect, on); &again.Schema[0] != &form.Schema[0] || len(again.Changes) > 0 {
		t.Errorf("refitted again, it changes to %s: %v", again.Schema, again.Changes)
	}
}

func compare(t *testing.T, what string, got []Change, want []string) {
	t.Helper()
	var lines []string
	for _, c := range got {
		if c.Property != "p" {
			t.Errorf("%s: property %q", what, c.Property)
		}
		lines = append(lines, c.Rule+": "+c.Reason)
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got %q, want %q", what, lines, want)
	}
}

func runRule(t *testing.T, tests []ruleTest) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, DefaultRules) })
	}
}

const (
	titled      = "enum-names: enum and enumNames to titled oneOf"
	named       = "enum-names: titled oneOf to enum and enumNames"
	byValue     = "options: the value in the place of a title that said nothing"
	omittable   = "nullable: null as an alternative left out; the field may be omitted instead"
	toStrings   = "typed-enums: an enum of numbers or booleans to strings, mapped back in the answer"
	typeString  = "missing-type: no type; it can only be string"
	inlined     = "local-ref: a reference within the schema put in its place"
	badDefault  = "defaults: a default that is no valid answer left out"
	anotherType = "defaults: a default of another type put into the right one"
)

func TestRuleEnumNames(t *testing.T) {
	runRule(t, []ruleTest{
		{name: "all else stays in place", in: `{"type": "string","title":"P", "x-a":[1 , 2],"enum":["a","b"],"enumNames":["A","B"], "default" : "b"}`,
			want: `{"type": "string","title":"P", "x-a":[1 , 2],"oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default" : "b"}`,
			did:  []string{titled}},
		{name: "names first", in: `{"enumNames":["A"],"enum":["a"],"type":"string"}`,
			want: `{"oneOf":[{"const":"a","title":"A"}],"type":"string"}`, did: []string{titled}},
		{name: "text kept as it is written", in: `{"type":"string","enum":["\u0061","é<&>"],"enumNames":["A\u00e9\n","\ud83d"]}`,
			want: `{"type":"string","oneOf":[{"const":"\u0061","title":"A\u00e9\n"},{"const":"é<&>","title":"\ud83d"}]}`, did: []string{titled}},
		{name: "null", in: `{"type":"string","enum":["a"],"enumNames":null}`,
			want: `{"type":"string","enum":["a"]}`, did: []string{"enum-names: " + didNoNames}},
		{name: "no names", in: `{"type":"string","enumNames":[],"enum":["a","b"]}`,
			want: `{"type":"string","enum":["a","b"]}`, did: []string{"enum-names: " + didNoNames}},
		{name: "no list", in: `{"type":"string","enum":["a"],"enumNames":{"a":"A"}}`,
			want: `{"type":"string","enum":["a"]}`, did: []string{"enum-names: " + didNoNames}, warned: []string{"enum-names: " + didNoNames}},
		{name: "no values", in: `{"type":"string","enumNames":["A"]}`,
			want: `{"type":"string"}`, did: []string{"enum-names: " + didNoNames}, warned: []string{"enum-names: " + didNoNames}},
		{name: "empty value", in: `{"type":"string","enum":["","a"],"enumNames":["None","A"]}`,
			warned: []string{"enum-names: an empty value, which cannot be titled; enum and enumNames kept"}},
		{name: "plain enum", in: `{"type":"string","enum":["a","b"]}`},
		{name: "titled already", in: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`},
		{name: "2025-06-18 keeps it", dialect: Named, in: `{"type":"string","enum":["a"],"enumNames":["A"],"default":"A"}`},
		{name: "2025-06-18 null", dialect: Named, in: `{"type":"string","enum":["a"],"enumNames":null}`,
			want: `{"type":"string","enum":["a"]}`, did: []string{"enum-names: " + didNoNames}},
		{name: "2025-06-18 from oneOf", dialect: Named, in: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"b"}`,
			want: `{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"b"}`, did: []string{named}},
		{name: "2025-06-18 empty value", dialect: Named, in: `{"type":"string","oneOf":[{"const":"","title":"None"}]}`,
			want: `{"type":"string","enum":[""],"enumNames":["None"]}`, did: []string{named}},
	})
}

func TestRuleItemEnumNames(t *testing.T) {
	const did = "item-enum-names: items.enum and enumNames to titled items.anyOf"
	runRule(t, []ruleTest{
		{name: "basic", in: `{"type":"array","minItems":1,"uniqueItems":true,"items":{"type":"string","enum":["mo","tu"],"enumNames":["Monday","Tuesday"]},"default":["mo"]}`,
			want: `{"type":"array","minItems":1,"uniqueItems":true,"items":{"anyOf":[{"const":"mo","title":"Monday"},{"const":"tu","title":"Tuesday"}]},"default":["mo"]}`,
			did:  []string{did}},
		{name: "mended", in: `{"type":"array","items":{"enum":["a","a","b"],"enumNames":["A","A2","","D"],"type":"string"}}`,
			want:   `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"b"}]}}`,
			did:    []string{"options: a repeated value offered once; the value in the place of a title that said nothing; titles without a value left out", did},
			warned: []string{"options: titles without a value left out: 1"}},
		{name: "null", in: `{"type":"array","items":{"type":"string","enum":["a"],"enumNames":null}}`,
			want: `{"type":"array","items":{"type":"string","enum":["a"]}}`, did: []string{"item-enum-names: " + didNoNames}},
		{name: "empty value", in: `{"type":"array","items":{"type":"string","enum":[""],"enumNames":["None"]}}`,
			warned: []string{"item-enum-names: an empty value, which cannot be titled; enum and enumNames kept"}},
		{name: "untitled", in: `{"type":"array","items":{"type":"string","enum":["a"]},"maxItems":1}`},
		{name: "titled already", in: `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`},
		{name: "2025-06-18", dialect: Named, in: `{"type":"array","items":{"type":"string","enum":["a"],"enumNames":["A"]}}`,
			warned: []string{"unsupported: a choice of several, which revision 2025-06-18 does not know; passed unchanged"}},
	})
}

func TestRuleMissingType(t *testing.T) {
	runRule(t, []ruleTest{
		{name: "titled oneOf", in: `{ "oneOf":[{"const":"lo","title":"Low"}]}`,
			want: `{"type":"string", "oneOf":[{"const":"lo","title":"Low"}]}`, did: []string{typeString}},
		{name: "enum", in: `{"enum":["a"]}`, want: `{"type":"string","enum":["a"]}`, did: []string{typeString}},
		{name: "text", in: `{"minLength":1}`, want: `{"type":"string","minLength":1}`, did: []string{typeString}},
		{name: "format", in: `{"format":"email"}`, want: `{"type":"string","format":"email"}`, did: []string{typeString}},
		{name: "number", in: `{"maximum":1}`, want: `{"type":"number","maximum":1}`, did: []string{"missing-type: no type; it can only be number"}},
		{name: "items", in: `{"items":{"enum":["a"]}}`, want: `{"type":"array","items":{"type":"string","enum":["a"]}}`,
			did: []string{typeString, "missing-type: no type; it can only be array"}},
		{name: "several", in: `{"minimum":1,"minLength":1}`, warned: []string{"unsupported: no type, and nothing that tells which"}},
		{name: "unknown format", in: `{"format":"int32"}`, warned: []string{"unsupported: no type, and nothing that tells which"}},
		{name: "none", in: `{}`, warned: []string{"unsupported: no type, and nothing that tells which"}},
		{name: "union", in: `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, warned: []string{"unsupported: no type, and nothing that tells which"}},
	})
}

func TestRuleAnyOf(t *testing.T) {
	const did = "any-of: anyOf of a single choice to oneOf"
	runRule(t, []ruleTest{
		{name: "basic", in: `{"type":"string","anyOf":[{"const":"a","title":"A", "x":1}]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A", "x":1}]}`, did: []string{did}},
		{name: "no type", in: `{"anyOf":[{"const":"a","title":"A"}]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, did: []string{did, typeString}},
		{name: "no choice", in: `{"type":"string","anyOf":[{"format":"email"},{"const":"x"}]}`},
		{name: "2025-06-18", dialect: Named, in: `{"type":"string","anyOf":[{"const":"a","title":"A"}]}`,
			want: `{"type":"string","enum":["a"],"enumNames":["A"]}`, did: []string{did, named}},
	})
}

func TestRuleItemOneOf(t *testing.T) {
	const did = "item-one-of: items.oneOf to items.anyOf"
	runRule(t, []ruleTest{
		{name: "basic", in: `{"type":"array","items":{"oneOf":[{"const":"a","title":"A"}]}}`,
			want: `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, did: []string{did}},
		{name: "with type", in: `{"type":"array","items":{"type":"string","oneOf":[{"const":"a","title":"A"}]}}`,
			want: `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, did: []string{did}},
		{name: "anyOf with type", in: `{"type":"array","items":{"type":"string","anyOf":[{"const":"a","title":"A"}]}}`,
			want: `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, did: []string{"item-one-of: items.type beside items.anyOf left out"}},
		{name: "no choice", in: `{"type":"array","items":{"oneOf":[{"type":"string"}]}}`,
			warned: []string{"unsupported: a list of anything but options; passed unchanged"}},
	})
}

func TestRuleNullable(t *testing.T) {
	const severalTypes = "nullable: several types; passed unchanged"
	runRule(t, []ruleTest{
		{name: "optional enum", in: `{"anyOf":[{"type":"string","enum":["a","b"],"enumNames":["A","B"]},{"type":"null"}],"default":null}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, did: []string{omittable, titled}, optional: true},
		{name: "own title wins", in: `{"title":"P","anyOf":[{"type":"null"},{"title":"Int","type":"integer","minimum":1}],"default":3}`,
			want: `{"title":"P","type":"integer","minimum":1,"default":3}`, did: []string{omittable}, optional: true},
		{name: "oneOf", in: `{"oneOf":[{"type":"boolean"},{"type":"null"}]}`, want: `{"type":"boolean"}`, did: []string{omittable}, optional: true},
		{name: "list of types", in: `{"type":["null","integer"],"default":null}`, want: `{"type":"integer"}`, did: []string{omittable}, optional: true},
		{name: "with null in the enum", in: `{"type":["string","null"],"enum":["a",null,"b"],"enumNames":["A","None","B"]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, did: []string{omittable, titled}, optional: true},
		{name: "enum forbids null", in: `{"type":["string","null"],"enum":["a"],"default":null}`,
			want: `{"type":"string","enum":["a"]}`, did: []string{"nullable: null that could not be an answer left out"}},
		{name: "type forbids null", in: `{"type":"string","anyOf":[{"minLength":1},{"type":"null"}]}`,
			want: `{"type":"string","minLength":1}`, did: []string{"nullable: null that could not be an answer left out"}},
		{name: "one type", in: `{"type":["string"]}`, want: `{"type":"string"}`, did: []string{"nullable: a list of one type to that type"}},
		{name: "null option", in: `{"oneOf":[{"const":"a","title":"A"},{"const":null,"title":"None"}]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, did: []string{omittable, typeString}, optional: true},
		{name: "nested", in: `{"anyOf":[{"anyOf":[{"type":"boolean"},{"type":"null"}]},{"type":"null"}]}`, want: `{"type":"boolean"}`, did: []string{omittable}, optional: true},
		{name: "list", in: `{"anyOf":[{"type":"array","items":{"oneOf":[{"const":"a","title":"A"}]}},{"type":"null"}]}`,
			want:     `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`,
			did:      []string{omittable, "item-one-of: items.oneOf to items.anyOf"},
			optional: true},
		{name: "2025-06-18", dialect: Named, in: `{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`, want: `{"type":"string"}`, did: []string{omittable}, optional: true},
		{name: "union", in: `{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}],"default":null}`, warned: []string{severalTypes}},
		{name: "types", in: `{"type":["string","integer","null"]}`, warned: []string{severalTypes}},
		{name: "null only", in: `{"anyOf":[{"type":"null"}]}`, warned: []string{"nullable: null and no other type; passed unchanged"}},
		{name: "null type", in: `{"type":"null"}`, warned: []string{"unsupported: a type that no field of a form can have; passed unchanged"}},
		{name: "anything", in: `{"anyOf":[true,{"type":"null"}]}`, warned: []string{"nullable: anything or null; passed unchanged"}},
		{name: "object", in: `{"anyOf":[{"type":"object","properties":{"x":{"type":"string"}}},{"type":"null"}]}`, warned: []string{"unsupported: a nested object; passed unchanged"}},
	})
}

func TestRuleLocalRef(t *testing.T) {
	runRule(t, []ruleTest{
		{name: "own title wins", in: `{"$ref":"#/$defs/Color","title":"Pick"}`,
			want: `{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"title":"Pick"}`, did: []string{inlined, titled}},
		{name: "own members win", in: `{"x-a":1,"$ref":"#/$defs/Odd","title":"P","type":"integer"}`,
			want: `{"x-a":1,"x-b":2,"title":"P","type":"integer"}`, did: []string{inlined}},
		{name: "allOf", in: `{"allOf":[{"$ref":"#/$defs/Level"}],"default":1}`,
			want: `{"type":"string","enum":["1","2"],"default":"1"}`,
			did:  []string{"local-ref: an allOf of one put in its place", inlined, toStrings, typeString}},
		{name: "in an alternative", in: `{"anyOf":[{"$ref":"#/$defs/Level"},{"type":"null"}],"default":null}`,
			want: `{"type":"string","enum":["1","2"]}`, did: []string{omittable, inlined, toStrings, typeString}, optional: true},
		{name: "in items", in: `{"type":"array","items":{"$ref":"#/%24defs/Level"}}`,
			want: `{"type":"array","items":{"type":"string","enum":["1","2"]}}`, did: []string{inlined, toStrings, typeString}},
		{name: "chain and escape", in: `{"$ref":"#/$defs/a~1b"}`,
			want: `{"type":"string","title":"Color","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}`, did: []string{inlined, titled}},
		{name: "2025-06-18", dialect: Named, in: `{"$ref":"#/$defs/Color"}`,
			want: `{"type":"string","title":"Color","enum":["r","g"],"enumNames":["Red","Green"]}`, did: []string{inlined}},
		{name: "remote", in: `{"$ref":"https://schemas.example/p.json"}`,
			warned: []string{"local-ref: a reference to another document, which is never fetched; passed unchanged"}},
		{name: "relative", in: `{"title":"P","$ref":"other.json#/$defs/Color"}`,
			warned: []string{"local-ref: a reference to another document, which is never fetched; passed unchanged"}},
		{name: "nothing", in: `{"$ref":"#/$defs/None"}`, warned: []string{"local-ref: a reference to nothing in the schema; passed unchanged"}},
		{name: "anchor", in: `{"$ref":"#Color"}`, warned: []string{"local-ref: a reference to nothing in the schema; passed unchanged"}},
		{name: "no schema", in: `{"$ref":"#/$defs/Color/type"}`, warned: []string{"local-ref: a reference to what is no schema of a field; passed unchanged"}},
		{name: "circle", in: `{"$ref":"#/$defs/Loop"}`, warned: []string{"local-ref: a reference that leads back to itself or too far; passed unchanged"}},
		{name: "the form itself", in: `{"$ref":"#"}`, warned: []string{"unsupported: a nested object; passed unchanged"}},
	})
}

func TestRuleConst(t *testing.T) {
	const did = "const: const to an enum of one"
	runRule(t, []ruleTest{
		{name: "basic", in: `{"const":"only"}`, want: `{"type":"string","enum":["only"]}`, did: []string{did, typeString}},
		{name: "in place", in: `{"title":"P","const":"only","type":"string"}`, want: `{"title":"P","enum":["only"],"type":"string"}`, did: []string{did}},
		{name: "number", in: `{"const":5.50,"type":"number"}`, want: `{"enum":["5.50"],"type":"string"}`, did: []string{did, toStrings}},
		{name: "boolean", in: `{"const":true}`, want: `{"type":"string","enum":["true"]}`, did: []string{did, toStrings, typeString}},
		{name: "beside enum", in: `{"type":"string","const":"a","enum":["b","\u0061"],"enumNames":["B","A"]}`,
			want: `{"type":"string","oneOf":[{"const":"\u0061","title":"A"}]}`, did: []string{"const: const and enum to an enum of one", titled}},
		{name: "in items", in: `{"type":"array","items":{"const":"a"}}`, want: `{"type":"array","items":{"type":"string","enum":["a"]}}`, did: []string{did, typeString}},
		{name: "null", in: `{"const":null}`, warned: []string{"const: a constant that no option can stand for; passed unchanged"}},
		{name: "object", in: `{"const":{"a":1}}`, warned: []string{"const: a constant that no option can stand for; passed unchanged"}},
		{name: "not in enum", in: `{"const":"x","enum":["a"]}`, warned: []string{"const: a constant that is not in its enum; passed unchanged"}},
	})
}

func TestRuleTypedEnums(t *testing.T) {
	runRule(t, []ruleTest{
		{name: "integer", in: `{"type":"integer","enum":[1,2],"enumNames":["Low","High"],"default":2}`,
			want: `{"type":"string","oneOf":[{"const":"1","title":"Low"},{"const":"2","title":"High"}],"default":"2"}`, did: []string{toStrings, titled}},
		{name: "digits", in: `{"enum":[1.50,-2e3,9007199254740993],"default":1.5}`,
			want: `{"type":"string","enum":["1.50","-2e3","9007199254740993"],"default":"1.50"}`, did: []string{toStrings, typeString}},
		{name: "boolean", in: `{"type":"boolean","enum":[true,false],"enumNames":["Yes","No"],"default":false}`,
			want: `{"type":"string","oneOf":[{"const":"true","title":"Yes"},{"const":"false","title":"No"}],"default":"false"}`, did: []string{toStrings, titled}},
		{name: "oneOf", in: `{"type":"integer","oneOf":[{"const":1,"title":"One","type":"integer"},{"const":2, "title":"Two"}]}`,
			want: `{"type":"string","oneOf":[{"const":"1","title":"One","type":"string"},{"const":"2", "title":"Two"}]}`, did: []string{toStrings}},
		{name: "items", in: `{"type":"array","items":{"type":"integer","enum":[1,2]},"default":[2,1.0]}`,
			want: `{"type":"array","items":{"type":"string","enum":["1","2"]},"default":["2","1"]}`, did: []string{toStrings}},
		{name: "2025-06-18", dialect: Named, in: `{"type":"integer","enum":[1,2],"enumNames":["Low","High"]}`,
			want: `{"type":"string","enum":["1","2"],"enumNames":["Low","High"]}`, did: []string{toStrings}},
		{name: "null member", in: `{"type":"string","enum":["a",null],"enumNames":["A","None"]}`,
			warned: []string{"typed-enums: null among the values of an enum; passed unchanged"}},
		{name: "mixed", in: `{"enum":[1,"a"]}`, warned: []string{"typed-enums: an enum of several types; passed unchanged"}},
		{name: "mixed oneOf", in: `{"oneOf":[{"const":1,"title":"A"},{"const":"a","title":"B"}]}`, warned: []string{"typed-enums: an enum of several types; passed unchanged"}},
		{name: "objects", in: `{"enum":[{},{"a":1}],"enumNames":["A","B"]}`, warned: []string{"typed-enums: an enum of values that are no text, number or boolean; passed unchanged"}},
		{name: "another type", in: `{"type":"string","enum":[1,2]}`, warned: []string{"typed-enums: an enum of values that are not of its type; passed unchanged"}},
	})
}

func TestRuleFormats(t *testing.T) {
	const did = "formats: a format that clients refuse left out; the answer is still checked"
	runRule(t, []ruleTest{
		{name: "uuid", in: `{"type":"string","format":"uuid"}`, want: `{"type":"string"}`, did: []string{did}},
		{name: "no string", in: `{"type":"string","format":null,"title":"P"}`, want: `{"type":"string","title":"P"}`, did: []string{did}},
		{name: "2025-06-18", dialect: Named, in: `{"type":"string","format":"time"}`, want: `{"type":"string"}`, did: []string{did}},
		{name: "email", in: `{"type":"string","format":"email"}`},
		{name: "uri", in: `{"type":"string","format":"uri"}`},
		{name: "date", in: `{"type":"string","format":"date"}`},
		{name: "date-time", in: `{"type":"string","format":"date-time"}`},
		{name: "number", in: `{"type":"integer","format":"int32"}`},
		{name: "choice", in: `{"type":"string","enum":["a"],"format":"color"}`},
	})
}

func TestRuleDefaults(t *testing.T) {
	out := func(name, in, want string) ruleTest {
		return ruleTest{name: name, in: in, want: want, did: []string{badDefault}, warned: []string{badDefault}}
	}
	in := func(name, in, want string) ruleTest {
		return ruleTest{name: name, in: in, want: want, did: []string{anotherType}}
	}
	runRule(t, []ruleTest{
		in("integer", `{"type":"integer","default":"5"}`, `{"type":"integer","default":5}`),
		in("number", `{"type":"number","default":"-1.50"}`, `{"type":"number","default":-1.50}`),
		in("boolean", `{"type":"boolean","default":"true"}`, `{"type":"boolean","default":true}`),
		in("string", `{"type":"string","default":1.0}`, `{"type":"string","default":"1.0"}`),
		in("option", `{"type":"string","enum":["5"],"default":5}`, `{"type":"string","enum":["5"],"default":"5"}`),
		out("null", `{"type":"string","default":null}`, `{"type":"string"}`),
		out("fraction", `{"type":"integer","default":5.5}`, `{"type":"integer"}`),
		out("fraction as text", `{"type":"integer","default":"5.5"}`, `{"type":"integer"}`),
		out("no number", `{"type":"number","default":"five"}`, `{"type":"number"}`),
		out("no JSON number", `{"type":"number","default":"05"}`, `{"type":"number"}`),
		out("exponent as text", `{"type":"number","default":"1e2"}`, `{"type":"number"}`),
		out("twice", `{"type":"array","uniqueItems":true,"items":{"type":"string","enum":["a","b"]},"default":["a","\u0061"]}`, `{"type":"array","uniqueItems":true,"items":{"type":"string","enum":["a","b"]}}`),
		out("yes", `{"type":"boolean","default":"yes"}`, `{"type":"boolean"}`),
		out("one", `{"type":"boolean","default":1}`, `{"type":"boolean"}`),
		out("list", `{"type":"string","default":["a"]}`, `{"type":"string"}`),
		out("below", `{"type":"integer","minimum":1,"default":0}`, `{"type":"integer","minimum":1}`),
		out("above", `{"type":"number","default":"9","maximum":8}`, `{"type":"number","maximum":8}`),
		out("on an exclusive bound", `{"type":"number","exclusiveMinimum":0,"default":0.0}`, `{"type":"number","exclusiveMinimum":0}`),
		out("beyond an exclusive bound", `{"type":"integer","exclusiveMaximum":10,"default":"11"}`, `{"type":"integer","exclusiveMaximum":10}`),
		out("too short", `{"type":"string","minLength":3,"default":"éé"}`, `{"type":"string","minLength":3}`),
		out("scalar for a list", `{"type":"array","items":{"type":"string","enum":["a"]},"default":"a"}`, `{"type":"array","items":{"type":"string","enum":["a"]}}`),
		out("no option", `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]},"default":["a","b"]}`, `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`),
		out("too many", `{"type":"array","items":{"enum":["a","b"],"type":"string"},"maxItems":1,"default":["a","b"]}`, `{"type":"array","items":{"enum":["a","b"],"type":"string"},"maxItems":1}`),
		{name: "title", in: `{"type":"string","enum":["a"],"enumNames":["Alpha"],"default":"Alpha"}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"Alpha"}]}`, did: []string{titled, badDefault}, warned: []string{badDefault}},
		{name: "no option of a number", in: `{"type":"integer","enum":[1,2],"default":3}`,
			want: `{"type":"string","enum":["1","2"]}`, did: []string{toStrings, badDefault}, warned: []string{badDefault}},
		{name: "2025-06-18 boolean", dialect: Named, in: `{"type":"boolean","default":"false"}`, want: `{"type":"boolean","default":false}`, did: []string{anotherType}},
		{name: "2025-06-18 others pass", dialect: Named, in: `{"type":"integer","default":"five"}`},
		{name: "valid empty", in: `{"type":"string","default":""}`},
		{name: "valid false", in: `{"type":"boolean","default":false}`},
		{name: "valid integer", in: `{"type":"integer","default":5.0,"minimum":5,"maximum":1e1}`},
		{name: "valid number", in: `{"type":"number","default":95.5,"exclusiveMinimum":95,"exclusiveMaximum":1e2}`},
		{name: "valid length", in: `{"type":"string","maxLength":2,"default":"\ud83d\ude00é"}`},
		{name: "valid option", in: `{"type":"string","enum":["\u0061"],"default":"a"}`},
		{name: "valid list", in: `{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["b","a"]}`},
		{name: "valid twice", in: `{"type":"array","items":{"type":"string","enum":["a"]},"default":["a","a"]}`},
		{name: "valid empty list", in: `{"type":"array","items":{"type":"string","enum":["a"]},"default":[]}`},
	})
}

func TestRuleEnumBesideOneOf(t *testing.T) {
	const did = "enum-beside-one-of: enum beside titled choices left out"
	runRule(t, []ruleTest{
		{name: "basic", in: `{"type":"string","enum":["a"],"oneOf":[{"const":"a","title":"A"}]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, did: []string{did}},
		{name: "with names", in: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"enum":["a","b"],"enumNames":["A","B"]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}`, did: []string{did}},
		{name: "names alone", in: `{"type":"string","enumNames":["A"],"oneOf":[{"const":"a","title":"A"}]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`, did: []string{did}},
		{name: "only what both have", in: `{"type":"string","enum":["a","b"],"oneOf":[{"const":"\u0061","title":"A"},{"const":"c","title":"C"}]}`,
			want: `{"type":"string","oneOf":[{"const":"\u0061","title":"A"}]}`, did: []string{did}},
		{name: "items", in: `{"type":"array","items":{"type":"string","enum":["a"],"anyOf":[{"const":"a","title":"A"}]}}`,
			want: `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`, did: []string{"item-one-of: items.type beside items.anyOf left out", did}},
		{name: "2025-06-18", dialect: Named, in: `{"type":"string","enum":["a"],"enumNames":["A"],"oneOf":[{"const":"a","title":"A"}]}`,
			want: `{"type":"string","enum":["a"],"enumNames":["A"]}`, did: []string{did, named}},
		{name: "nothing in common", in: `{"type":"string","enum":["a"],"oneOf":[{"const":"b","title":"B"}]}`,
			warned: []string{"enum-beside-one-of: an enum and titled choices that have no value in common; passed unchanged"}},
		{name: "no choices", in: `{"type":"string","enum":["a"],"oneOf":[{"minLength":1}]}`},
	})
}

func TestRuleOptions(t *testing.T) {
	runRule(t, []ruleTest{
		{name: "no strings", in: `{"type":"string","enum":["1","2","3"],"enumNames":["One",2,null]}`,
			want: `{"type":"string","oneOf":[{"const":"1","title":"One"},{"const":"2","title":"2"},{"const":"3","title":"3"}]}`, did: []string{byValue, titled}},
		{name: "blank", in: `{"type":"string","enum":["a","b","c","d"],"enumNames":[""," \t","\u00a0\n","D"]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"a"},{"const":"b","title":"b"},{"const":"c","title":"c"},{"const":"d","title":"D"}]}`, did: []string{byValue, titled}},
		{name: "too few", in: `{"type":"string","enum":["a","b"],"enumNames":["A"]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"b"}]}`, did: []string{byValue, titled}},
		{name: "too many", in: `{"type":"string","enum":["a"],"enumNames":["A","B","C"]}`,
			want:   `{"type":"string","oneOf":[{"const":"a","title":"A"}]}`,
			did:    []string{"options: titles without a value left out", titled},
			warned: []string{"options: titles without a value left out: 2"}},
		{name: "repeated", in: `{"type":"string","enum":["a","\u0061","b"],"enumNames":["A1","A2","B"]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"A1"},{"const":"b","title":"B"}]}`, did: []string{"options: a repeated value offered once", titled}},
		{name: "repeated in a long list", in: `{"type":"string","enum":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","\u0061"]}`,
			want: `{"type":"string","enum":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]}`, did: []string{"options: a repeated value offered once"}},
		{name: "repeated without names", in: `{"type":"string","enum":["a","a"]}`,
			want: `{"type":"string","enum":["a"]}`, did: []string{"options: a repeated value offered once"}},
		{name: "not repeated", in: `{"type":"string","enum":["\ud800","\ud801"," "],"enumNames":["A","B"," "]}`,
			want: `{"type":"string","oneOf":[{"const":"\ud800","title":"A"},{"const":"\ud801","title":"B"},{"const":" ","title":" "}]}`, did: []string{titled}},
		{name: "oneOf", in: `{"type":"string","oneOf":[{"const":"a","title":null,"x":1}, {"const":"b","Title":"C"},{"const":"a","title":"A"},{"title":"C","const":"c"}]}`,
			want: `{"type":"string","oneOf":[{"const":"a","title":"a","x":1}, {"const":"b","title":"b"},{"title":"C","const":"c"}]}`,
			did:  []string{"options: a repeated value offered once; the value in the place of a title that said nothing"}},
		{name: "anyOf of items", in: `{"type":"array","items":{"anyOf":[{"const":"a"},{"const":"b","title":"B"}]}}`,
			want: `{"type":"array","items":{"anyOf":[{"const":"a","title":"a"},{"const":"b","title":"B"}]}}`, did: []string{byValue}},
		{name: "2025-06-18", dialect: Named, in: `{"type":"string","enum":["a","b"],"enumNames":[null,"B","C"]}`,
			want:   `{"type":"string","enum":["a","b"],"enumNames":["a","B"]}`,
			did:    []string{"options: the value in the place of a title that said nothing; titles without a value left out"},
			warned: []string{"options: titles without a value left out: 1"}},
	})
}

func TestUnsupported(t *testing.T) {
	runRule(t, []ruleTest{
		{name: "object", in: `{"type":"object","properties":{"kind":{"type":"string","enum":["h"],"enumNames":["Home"]}},"default":null}`,
			warned: []string{"unsupported: a nested object; passed unchanged"}},
		{name: "list of text", in: `{"type":"array","items":{"type":"string"},"default":null}`,
			warned: []string{"unsupported: a list of anything but options; passed unchanged"}},
		{name: "list of anything", in: `{"type":"array"}`, warned: []string{"unsupported: a list that does not say of what; passed unchanged"}},
		{name: "unknown type", in: `{"type":"file","default":null}`, warned: []string{"unsupported: a type that no field of a form can have; passed unchanged"}},
		{name: "true", in: `true`, warned: []string{"unsupported: not an object, so there is nothing to show"}},
	})
}

// Each rule is a switch of its own: off, its shape passes, and the others work.
func TestRulesOff(t *testing.T) {
	tests := []struct {
		off  Rules
		test ruleTest
	}{
		{RuleEnumNames, ruleTest{in: `{"type":"string","enum":["a"],"enumNames":["A"]}`}},
		{RuleItemEnumNames, ruleTest{in: `{"type":"array","items":{"type":"string","enum":["a"],"enumNames":["A"]}}`}},
		{RuleMissingType, ruleTest{in: `{"enum":["a"]}`, warned: []string{"unsupported: no type, and nothing that tells which"}}},
		{RuleAnyOf, ruleTest{in: `{"type":"string","anyOf":[{"const":"a","title":"A"}]}`}},
		{RuleItemOneOf, ruleTest{in: `{"type":"array","items":{"oneOf":[{"const":"a","title":"A"}]}}`}},
		{RuleNullable, ruleTest{in: `{"type":["string","null"]}`, warned: []string{"unsupported: a type that no field of a form can have; passed unchanged"}}},
		{RuleLocalRef, ruleTest{in: `{"$ref":"#/$defs/Color"}`, warned: []string{"unsupported: no type, and nothing that tells which"}}},
		{RuleConst, ruleTest{in: `{"type":"string","const":"a"}`}},
		{RuleTypedEnums, ruleTest{in: `{"type":"integer","enum":[1,2]}`}},
		{RuleTypedEnums, ruleTest{in: `{"type":"integer","enum":[1],"enumNames":["A"]}`, warned: []string{"enum-names: titles for values that are no strings; passed unchanged"}}},
		{RuleFormats, ruleTest{in: `{"type":"string","format":"uuid"}`}},
		{RuleDefaults, ruleTest{in: `{"type":"string","default":null}`}},
		{RuleEnumBesideOneOf, ruleTest{in: `{"type":"string","enum":["a"],"enumNames":["A"],"oneOf":[{"const":"a","title":"A"}]}`}},
		{RuleOptions, ruleTest{in: `{"type":"string","enum":["a","a"]}`}},
		{RuleOptions, ruleTest{in: `{"type":"string","enum":["a"],"enumNames":["A","B"]}`, warned: []string{"enum-names: 2 titles for 1 values; passed unchanged"}}},
		{RuleOptions, ruleTest{in: `{"type":"string","enum":["a"],"enumNames":[null]}`, warned: []string{"enum-names: a title that is no string; passed unchanged"}}},
		{allRules, ruleTest{in: `{"anyOf":[{"enum":[1]},{"type":"null"}],"default":null}`}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(collectNames(tt.off), ","), func(t *testing.T) { tt.test.run(t, DefaultRules&^tt.off) })
	}
}

func collectNames(on Rules) (names []string) {
	for n := range on.Names() {
		names = append(names, n)
	}
	return names
}

func TestRuleNames(t *testing.T) {
	want := "enum-names item-enum-names missing-type any-of item-one-of nullable local-ref const typed-enums formats defaults enum-beside-one-of options"
	if got := strings.Join(collectNames(DefaultRules), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var all Rules
	for name := range DefaultRules.Names() {
		r, ok := RuleByName(name)
		if !ok || r.name() != name {
			t.Errorf("%s is not found by its name", name)
		}
		all |= r
	}
	if all != DefaultRules {
		t.Errorf("the names are those of %b, want %b", all, DefaultRules)
	}
	if _, ok := RuleByName("enum"); ok {
		t.Error("a rule that does not exist is found")
	}
}
