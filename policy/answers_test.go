package policy

import (
	"strings"
	"testing"
)

// accept is an ElicitResult with that content.
func accept(content string) string { return `{"action":"accept","content":` + content + `}` }

// form1 is a form with one field, f.
func form1(schema string) string { return `{"type":"object","properties":{"f":` + schema + `}}` }

// failed lists a decision's problems as "field rule".
func failed(d AnswerDecision) string {
	var s []string
	for _, p := range d.Problems {
		s = append(s, p.Field+" "+p.Rule)
	}
	return strings.Join(s, ", ")
}

func TestAnswers(t *testing.T) {
	const legacy = `{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}`
	const titles = `{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}`
	const multi = `{"type":"array","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"},{"const":"c","title":"C"}]}}`
	const defs = `,"$defs":{"P":{"type":"string","enum":["a","b"]}}}`
	tests := []struct {
		name, schema, result string
		problems             string // fields and rules; "" passes
		message              string // part of the problems' text
	}{
		{"boolean as string", form1(`{"type":"boolean"}`), accept(`{"f":"true"}`), "f type", `f: "true" is a string, the server asked for true or false`},
		{"1.0 is an integer", form1(`{"type":"integer","minimum":1,"maximum":3}`), accept(`{"f":1.0}`), "", ""},
		{"10e-1 is an integer", form1(`{"type":"integer"}`), accept(`{"f":10e-1}`), "", ""},
		{"fraction", form1(`{"type":"integer"}`), accept(`{"f":1.5}`), "f type", "f: 1.5 is not a whole number, the server asked for an integer"},
		{"string for integer", form1(`{"type":"integer","minimum":1,"maximum":100}`), accept(`{"f":"5"}`), "f type", `f: "5" is a string, the server asked for an integer between 1 and 100`},
		{"out of range", form1(`{"type":"integer","minimum":1,"maximum":3}`), accept(`{"f":9}`), "f maximum", "f: 9 is too large, the server asked for an integer between 1 and 3"},
		{"required left out", `{"type":"object","properties":{"scoops":{"type":"integer","minimum":1,"maximum":3}},"required":["scoops"]}`, accept(`{}`), "scoops required", "scoops: is missing, the server asked for an integer between 1 and 3"},
		{"required, no content", `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`, `{"action":"accept"}`, "ok required", "ok: is missing"},
		{"no content, nothing required", form1(`{"type":"boolean"}`), `{"action":"accept"}`, "", ""},
		{"no content, no schema", ``, `{"action":"accept"}`, "", ""},
		{"content, no schema", ``, accept(`{"f":{"x":[1]}}`), "", ""},
		{"cancel with null", form1(`{"type":"string"}`), `{"action":"cancel","content":null}`, "", ""},
		{"decline with bad content", form1(`{"type":"integer"}`), `{"action":"decline","content":{"f":"x","f":1}}`, "", ""},
		{"action reject", form1(`{}`), `{"action":"reject"}`, "action action", `action: "reject" is not one of accept, decline, cancel`},
		{"action Accept", form1(`{}`), `{"action":"Accept","content":{}}`, "action action", `"Accept"`},
		{"action missing", form1(`{}`), `{"content":{}}`, "action required", "action: is missing"},
		{"action null", form1(`{}`), `{"action":null}`, "action action", "action: null is not"},
		{"closed", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, accept(`{"a":"x","b":1}`), "b additionalProperties", "b: the server did not ask for this field"},
		{"open", form1(`{"type":"string"}`), accept(`{"f":"x","b":1,"c":["x"]}`), "", ""},
		{"undeclared object", form1(`{"type":"string"}`), accept(`{"f":"x","b":{"y":1}}`), "b type", "b: an object was sent"},
		{"undeclared null", form1(`{"type":"string"}`), accept(`{"b":null}`), "b type", "b: null was sent"},
		{"undeclared mixed list", form1(`{"type":"string"}`), accept(`{"b":["x",1]}`), "b type", "b: a list was sent"},
		{"undeclared object, open by word", `{"properties":{"f":{}},"additionalProperties":true}`, accept(`{"b":{"y":1}}`), "", ""},
		{"numbers for strings", form1(`{"type":"array","items":{"type":"string","enum":["1","2"]}}`), accept(`{"f":[1]}`), "f type", "f: 1 is a number"},
		{"null", form1(`{"type":"string"}`), accept(`{"f":null}`), "f type", "f: null was sent, the server asked for a string"},
		{"content is a list", form1(`{}`), accept(`[]`), "content type", "content: a list was sent"},
		{"content is null", form1(`{}`), accept(`null`), "content type", "content: null was sent"},
		{"nested for string", form1(`{"type":"string"}`), accept(`{"f":{"x":1}}`), "f type", "f: an object was sent, the server asked for a string"},
		{"empty string, enum", form1(`{"type":"string","enum":["r","g"]}`), accept(`{"f":""}`), "f enum", `f: "" is not an option, the server asked for one of "r", "g"`},
		{"empty string, required", `{"properties":{"s":{"type":"string"}},"required":["s"]}`, accept(`{"s":""}`), "", ""},
		{"title for value, enumNames", form1(legacy), accept(`{"f":"Red"}`), "f enum", `one of "r" (Red), "g" (Green)`},
		{"title for value, oneOf", form1(titles), accept(`{"f":"Red"}`), "f oneOf", `f: "Red" is not an option, the server asked for one of "r" (Red), "g" (Green)`},
		{"option", form1(titles), accept(`{"f":"g"}`), "", ""},
		{"option, anyOf", form1(`{"type":"string","anyOf":[{"const":"a","title":"A"}]}`), accept(`{"f":"A"}`), "f anyOf", `the server asked for "a" (A)`},
		{"option listed twice", form1(`{"type":"string","oneOf":[{"const":"a","title":"A1"},{"const":"a","title":"A2"}]}`), accept(`{"f":"a"}`), "", ""},
		{"integer enum", form1(`{"type":"integer","enum":[1,2]}`), accept(`{"f":2.0}`), "", ""},
		{"integer enum, text", form1(`{"type":"integer","enum":[1,2]}`), accept(`{"f":"2"}`), "f type", `f: "2" is a string, the server asked for one of 1, 2`},
		{"null enum member", form1(`{"type":"string","enum":["a",null]}`), accept(`{"f":null}`), "f type", ""},
		{"multi empty", form1(multi), accept(`{"f":[]}`), "f minItems", "f: the list has 0 items, the server asked for a list of 1 to 2 items, each one of"},
		{"multi unknown", form1(multi), accept(`{"f":["a","z"]}`), "f anyOf", `f: "z" is not an option`},
		{"multi too many", form1(multi), accept(`{"f":["a","b","c"]}`), "f maxItems", "f: the list has 3 items"},
		{"multi scalar", form1(multi), accept(`{"f":"a"}`), "f type", `f: "a" is a string, the server asked for a list`},
		{"multi left out", form1(multi), accept(`{}`), "", ""},
		{"multi twice", form1(`{"type":"array","uniqueItems":true,"items":{"enum":["a","b"]}}`), accept(`{"f":["a","b","a"]}`), "f uniqueItems", `f: "a" is there twice`},
		{"items.oneOf", form1(`{"type":"array","items":{"oneOf":[{"const":"a"},{"const":"b"}]}}`), accept(`{"f":["b","c"]}`), "f oneOf", `"c"`},
		{"unknown format", form1(`{"type":"integer","format":"int32"}`), accept(`{"f":7}`), "", ""},
		{"uuid", form1(`{"type":"string","format":"uuid"}`), accept(`{"f":"7"}`), "f format", `f: "7" is something else, the server asked for a UUID`},
		{"pattern", form1(`{"type":"string","pattern":"^[A-Z]+$"}`), accept(`{"f":"ab"}`), "f pattern", `a string that matches "^[A-Z]+$"`},
		{"code points", form1(`{"type":"string","maxLength":1}`), accept(`{"f":"😀"}`), "", ""},
		{"code points, escaped", form1(`{"type":"string","maxLength":1}`), accept(`{"f":"\ud83d\ude00"}`), "", ""},
		{"too long", form1(`{"type":"string","minLength":1,"maxLength":2}`), accept(`{"f":"äöü"}`), "f maxLength", `f: "äöü" has 3 characters, the server asked for a string of 1 to 2 characters`},
		{"two fields", `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0}},"required":["name"]}`, accept(`{"name":42,"age":-5}`), "name type, age minimum", "age: -5 is too small"},
		{"ref", form1(`{"$ref":"#/$defs/P"}`)[:len(form1(`{"$ref":"#/$defs/P"}`))-1] + defs, accept(`{"f":"c"}`), "f enum", `f: "c" is not an option`},
		{"allOf ref", `{"properties":{"f":{"allOf":[{"$ref":"#/$defs/P"}],"default":"a"}}` + defs, accept(`{"f":"c"}`), "f enum", `one of "a", "b"`},
		{"nullable, null", form1(`{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}`), accept(`{"f":null}`), "", ""},
		{"nullable, bad", form1(`{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}`), accept(`{"f":"b"}`), "f enum", `f: "b" is not an option`},
		{"nullable, wrong type", form1(`{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}`), accept(`{"f":1}`), "f anyOf", `f: 1 is not an option, the server asked for "a" or null`},
		{"type list", form1(`{"type":["integer","null"]}`), accept(`{"f":"x"}`), "f type", "an integer or null"},
		{"nullable: true", form1(`{"type":"string","nullable":true}`), accept(`{"f":null}`), "", ""},
		{"nested field", form1(`{"type":"object","properties":{"k":{"type":"string"}},"required":["k","l"]}`), accept(`{"f":{"k":1}}`), "f.l required, f.k type", "f.k: 1 is a number"},
		{"exact minimum", form1(`{"type":"integer","minimum":9007199254740993}`), accept(`{"f":9007199254740992}`), "f minimum", "9007199254740992 is too small"},
		{"exact multiple", form1(`{"type":"number","multipleOf":0.1}`), accept(`{"f":0.3}`), "", ""},
		{"not a multiple", form1(`{"type":"number","multipleOf":0.1}`), accept(`{"f":0.35}`), "f multipleOf", "a number that is a multiple of 0.1"},
		{"huge exponent", form1(`{"type":"integer","maximum":5}`), accept(`{"f":1e999999999}`), "f maximum", ""},
		{"huge multiple", form1(`{"type":"integer","multipleOf":7}`), accept(`{"f":1e999999999}`), "f multipleOf", ""},
		{"endless exponent", form1(`{"type":"number"}`), accept(`{"f":1e9999999999999999999}`), "f type", "no reader keeps exactly"},
		{"unknown keyword", form1(`{"type":"string","x-order":1,"enumNames":7}`), accept(`{"f":"x"}`), "", ""},
		{"field named like a keyword", `{"properties":{"enum":{"type":"boolean"},"oneOf":{"type":"integer"},"required":{"type":"string"}}}`, accept(`{"enum":true,"oneOf":1,"required":1}`), "required type", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := new(Answers).Decide([]byte(tt.schema), []byte(tt.result))
			if got := failed(d); got != tt.problems {
				t.Errorf("problems %q, want %q", got, tt.problems)
			}
			if text := ProblemText(d.Problems); !strings.Contains(text, tt.message) {
				t.Errorf("text %q lacks %q", text, tt.message)
			}
			if want := tt.problems == ""; want != (d.Outcome == Pass) {
				t.Errorf("outcome %v with problems %q", d.Outcome, tt.problems)
			}
			if d.Content != nil || d.DropContent || len(d.Unchecked) > 0 {
				t.Errorf("content %s, drop %v, unchecked %q: want none", d.Content, d.DropContent, d.Unchecked)
			}
		})
	}
}

// What two readers could read in two ways is refused, and the reason says so.
func TestAnswersAmbiguous(t *testing.T) {
	schema := []byte(form1(`{"type":"integer","maximum":3}`))
	tests := []struct{ name, result, problems string }{
		{"action twice", `{"action":"decline","action":"accept","content":{"f":1}}`, "action duplicate"},
		{"action twice, escaped", `{"action":"decline","\u0061ction":"accept","content":{"f":1}}`, "action duplicate"},
		{"action in another case", `{"action":"decline","Action":"accept","content":{"f":9}}`, "action case"},
		{"content twice", `{"action":"accept","content":{"f":1},"content":{"f":9}}`, "content duplicate"},
		{"content in another case", `{"action":"accept","content":{"f":1},"CONTENT":{"f":9}}`, "content case"},
		{"content in another case alone", `{"action":"accept","Content":{"f":9}}`, "content case"},
		{"escaped names", `{"\u0061ction":"accept","c\u006fntent":{"f":9}}`, "f maximum"},
		{"field twice", accept(`{"f":9,"f":1}`), "f duplicate"},
		{"field twice, escaped", accept(`{"f":9,"\u0066":1}`), "f duplicate"},
		{"field in another case", accept(`{"F":9}`), "F case"},
		{"member of a value twice", accept(`{"o":{"a":1,"a":2}}`), "o duplicate, o type"},
		{"bad UTF-8", accept("{\"f\":1,\"g\":\"\xff\"}"), "content encoding"},
		{"bad UTF-8 in a name", accept("{\"f\":1,\"\xff\":1}"), "content encoding"},
		{"half a surrogate pair", accept(`{"g":"\ud83d"}`), "content encoding"},
		{"a pair the wrong way round", accept(`{"g":"\ude00\ud83d"}`), "content encoding"},
		{"not JSON", `{"action":"accept",`, "action encoding"},
		{"nothing", ``, "action encoding"},
		{"two values", `{"action":"decline"} {"action":"accept"}`, "action encoding"},
		{"no object", `["accept"]`, "action type"},
		{"deep", accept(`{"g":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), "content size"},
		{"very deep", accept(`{"g":` + strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6) + `}`), "action encoding"},
		{"many values", accept(`{"g":[` + strings.Repeat("1,", maxValues) + `1]}`), "content size"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := new(Answers).Decide(schema, []byte(tt.result))
			if got := failed(d); got != tt.problems || d.Outcome != Refuse {
				t.Errorf("%v with problems %q, want a refusal with %q", d.Outcome, got, tt.problems)
			}
		})
	}
}
