package rewrite

import (
	"strings"
	"testing"
)

func TestFindQuestions(t *testing.T) {
	tests := []struct {
		name, raw string
		want      string // key path mode schema, one question a line
		surplus   string // what goes
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"a":1}}}`, ` params form {"a":1}`, ""},
		{"url", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","url":"u"}}`, ` params url `, ""},
		{"null mode", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":null}}`, ` params form `, ""},
		{"odd mode", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":7}}`, ` params ? `, ""},
		{"other method", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"requestedSchema":{}}}`, ``, ""},
		{"two schemas", `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"requestedSchema":{"a":1},"RequestedSchema":{},"requestedSchema":{"b":1}}}`, ` params form {"b":1}`, `"RequestedSchema":{} "requestedSchema":{"a":1}`},
		{"modern", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"q":{"method":"elicitation/create","params":{"requestedSchema":{}}},"r":{"method":"roots/list"}},"requestState":"s"}}`, `q result.inputRequests.q.params form {}`, ""},
		{"task", `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","inputRequests":{"q":{"method":"elicitation/create","params":{}}}}}`, `q params.inputRequests.q.params form `, ""},
		{"a key twice", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"url"}},"q":{"method":"elicitation/create","params":{}}}}}`, `q result.inputRequests.q.params form `, `"q":{"method":"elicitation/create","params":{"mode":"url"}}`},
		{"a method in another case", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"q":{"Method":"elicitation/create","method":"roots/list","params":{}}}}}`, ``, `"Method":"elicitation/create"`},
		{"input requests twice", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{},"inputrequests":{},"inputRequests":{"q":{"method":"elicitation/create","params":{}}}}}`, `q result.inputRequests.q.params form `, `"inputrequests":{} "inputRequests":{}`},
		{"no object", `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":[1]}}`, ``, ""},
	}
	for _, tt := range tests {
		raw := []byte(tt.raw)
		env, err := Scan(raw)
		if err != nil {
			t.Fatal(err)
		}
		q := FindQuestions(raw, env)
		var got, surplus []string
		for _, one := range q.List {
			got = append(got, one.Key+" "+one.Path+" "+one.ModeOf(raw)+" "+string(one.Schema.Of(raw)))
		}
		for _, s := range q.Surplus {
			surplus = append(surplus, string(s.Of(raw)))
		}
		if g := strings.Join(got, "\n"); g != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, g, tt.want)
		}
		if g := strings.Join(surplus, " "); g != tt.surplus {
			t.Errorf("%s: surplus %q, want %q", tt.name, g, tt.surplus)
		}
	}
}

func TestFindAnswers(t *testing.T) {
	raw := []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"inputResponses":{"q":1,"q":2,"r":3},"requestState":"a","requestState":"s","RequestState":"b"}}`)
	env, _ := Scan(raw)
	a := FindAnswers(raw, env)
	if len(a.List) != 2 || a.List[0].Key != "q" || string(a.List[0].Value.Of(raw)) != "2" || a.List[1].Key != "r" {
		t.Errorf("answers %+v", a.List)
	}
	if got := string(a.State.Value.Of(raw)); got != `"s"` {
		t.Errorf("state %s", got)
	}
	var e Edits
	for _, s := range a.Surplus {
		e.Remove(s)
	}
	want := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"inputResponses":{"q":2,"r":3},"requestState":"s"}}`
	if got := string(e.Apply(raw)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
