package rewrite

import "testing"

func TestRestore(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"level":{"type":"integer","enum":[1,2.0,30e-1],"enumNames":["Low","Mid","High"]},
		"on":{"type":"boolean","enum":[true,false]},
		"many":{"type":"array","items":{"enum":[1,2]}},
		"opt":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},
		"opt\u0065num":{"type":["integer","null"],"enum":[1,null]},
		"free":{"type":["string","null"]},
		"text":{"type":"string","enum":["1","2"],"enumNames":["One","Two"]}
	},"required":["opt","optenum","level"]}`
	tests := []struct{ name, in, want string }{
		{"integer", `{"level":"1","opt":1,"optenum":"1"}`, `{"level":1,"opt":1,"optenum":1}`},
		{"digits of the server", ` { "opt":1, "level" : "2.0" , "optenum":null} `, ` { "opt":1, "level" : 2.0 , "optenum":null} `},
		{"exponent", `{"level":"30e-1","opt":1,"optenum":1}`, `{"level":30e-1,"opt":1,"optenum":1}`},
		{"other digits", `{"level":"2","opt":1,"optenum":1}`, ``},
		{"escaped", `{"l\u0065vel":"\u0031","opt":1,"optenum":1}`, `{"l\u0065vel":1,"opt":1,"optenum":1}`},
		{"title", `{"level":"Low","opt":1,"optenum":1}`, ``},
		{"its own type already", `{"level":1,"on":true,"many":[1],"opt":1,"optenum":1}`, ``},
		{"boolean", `{"on":"false","opt":1,"optenum":1}`, `{"on":false,"opt":1,"optenum":1}`},
		{"list", `{"many":["2", "1","3",1],"opt":1,"optenum":1}`, `{"many":[2, 1,"3",1],"opt":1,"optenum":1}`},
		{"scalar for a list", `{"many":"2","opt":1,"optenum":1}`, ``},
		{"list for a scalar", `{"level":["1"],"opt":1,"optenum":1}`, ``},
		{"left out", `{"text":"1"}`, `{"text":"1","opt":null,"opt\u0065num":null}`},
		{"all left out", `{ }`, `{ "opt":null,"opt\u0065num":null}`},
		{"null already", `{"opt":null,"optenum":null,"free":null}`, ``},
		{"twice", `{"level":"1","opt":1,"level":"2.0","optenum":1,"level":"1"}`, `{"opt":1,"optenum":1,"level":1}`},
		{"twice and no option", `{"level":"1","opt":1,"level":"x","optenum":1}`, ``},
		{"string stays string", `{"text":"1","opt":1,"optenum":1}`, ``},
		{"no object", `["level"]`, ``},
		{"null", `null`, ``},
		{"empty", ``, ``},
	}
	form := RefitForm([]byte(schema), Titled, DefaultRules)
	for _, tt := range tests {
		in := []byte(tt.in)
		got := form.Restore(in)
		if tt.want == "" {
			if string(got) != tt.in || len(in) > 0 && &got[0] != &in[0] {
				t.Errorf("%s: got %s, want the same slice", tt.name, got)
			}
		} else if string(got) != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	unchanged := RefitForm([]byte(`{"type":"object","properties":{"p":{"type":"integer"}}}`), Titled, DefaultRules)
	if in := []byte(`{"p":"1"}`); &unchanged.Restore(in)[0] != &in[0] {
		t.Error("a form without a way back copies the answer")
	}
	if in := []byte(`{"p":"1"}`); &(Form{}).Restore(in)[0] != &in[0] {
		t.Error("the zero form copies the answer")
	}
}
