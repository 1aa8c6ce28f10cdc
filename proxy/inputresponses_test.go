package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`

// calls is a modern request, with what else its params have.
func calling(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `,` + modernMeta + `}}`
}

// entry is one member of inputRequests.
func entry(key, field, schema string) string {
	return `"` + key + `":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"` + field + `":` + schema + `},"required":["` + field + `"]}}}`
}

// needs is a result with inputRequests.
func needs(id, rest, entries string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{` + rest + `"inputRequests":{` + entries + `}}}`
}

// round lets a client call t, and the server ask; it returns the state that the client gets.
func (k *talk) round(rest, entries string) (state string) {
	k.t.Helper()
	k.say(ToServer, calling("1", "tools/call", `"name":"t","arguments":{"a":1}`))
	forward, _ := k.say(ToClient, needs("1", rest, entries))
	return k.stateIn(forward)
}

// stateIn is the requestState of a result, in its quotes.
func (k *talk) stateIn(result string) string {
	k.t.Helper()
	at, ok := rewrite.Lookup([]byte(result), rewrite.Span{Start: 0, End: len(result)}, "result", "requestState")
	if !ok || !strings.HasPrefix(result[at.Start:at.End], `"`+sealPrefix) {
		k.t.Fatalf("no sealed state in %s", result)
	}
	return result[at.Start:at.End]
}

// again is the retry of that call.
func again(state, responses string) string {
	return calling("2", "tools/call", `"name":"t","arguments":{"a":1.0},"requestState":`+state+`,"inputResponses":{`+responses+`}`)
}

const (
	goodAnswer = `{"action":"accept","content":{"n":1}}`
	badAnswer1 = `{"action":"accept","content":{"n":"5"}}`
)

func TestInputResponses(t *testing.T) {
	const own = `"requestState":"b64.op\u0061que==",`
	for _, test := range []struct {
		name     string
		rest     string // of the result, besides inputRequests
		answered string // inputResponses
		passes   string // what the server gets as its params, from "arguments" on
		back     string // what the client is answered
	}{
		{"good", own, `"q":` + goodAnswer, `"requestState":"b64.op\u0061que==","inputResponses":{"q":` + goodAnswer + `},`, ""},
		{"good, the server had no state", "", `"q":` + goodAnswer, `"inputResponses":{"q":` + goodAnswer + `},`, ""},
		{"a state that is null", `"requestState":null,`, `"q":` + goodAnswer, `"requestState":null,"inputResponses":{"q":` + goodAnswer + `},`, ""},
		{"a result of another type", `"resultType":"complete",`, `"q":` + goodAnswer, `"inputResponses":{"q":` + goodAnswer + `},`, ""},
		{"bad", own, `"q":` + badAnswer1, "", `~"id":2,"error":{"code":-32602~n: \"5\" is a string`},
		{"declined", "", `"q":{"action":"decline"}`, `"inputResponses":{"q":{"action":"decline"}},`, ""},
		{"left out", "", ``, `"inputResponses":{},`, ""},
		{"twice, the last is bad", "", `"q":` + goodAnswer + `,"\u0071":` + badAnswer1, "", "~-32602~n: "},
		{"twice, the last is good and goes on alone", "", `"q":` + badAnswer1 + `,"q":` + goodAnswer, `"inputResponses":{"q":` + goodAnswer + `},`, ""},
		{"two actions", "", `"q":{"action":"decline","ACTION":"accept","content":{"n":"5"}}`, "", "~-32602~also spelled"},
		{"no object", "", `"q":7`, "", `~-32602~\"q\" is not an object`},
		{"others beside", "", `"r":{"roots":[]},"s":{"role":"user","content":{}},"q":` + goodAnswer, `"inputResponses":{"r":{"roots":[]},"s":{"role":"user","content":{}},"q":` + goodAnswer + `},`, ""},
		{"a key that was not asked", "", `"x":` + goodAnswer + `,"q":` + goodAnswer, `"inputResponses":{"q":` + goodAnswer + `},`, ""},
		{"keys swapped", "", `"q":{"action":"accept","content":{"a":"x"}},"p":` + goodAnswer, "", "~-32602~n: is missing~a: is missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newTalk(t)
			state := k.round(test.rest, entry("q", "n", asksInt)+`,`+entry("p", "a", asksText)+`,"r":{"method":"roots/list"}`)
			forward, reply := k.say(ToServer, again(state, test.answered))
			want := test.passes
			if want != "" {
				want = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1.0},` + want + modernMeta + `}}`
			}
			if forward != want {
				t.Errorf("the server gets\n%s, not\n%s", forward, want)
			}
			if (test.back == "") != (reply == "") {
				t.Errorf("the client gets %q", reply)
			}
			for part := range strings.SplitSeq(strings.TrimPrefix(test.back, "~"), "~") {
				if !strings.Contains(reply, part) {
					t.Errorf("the client gets %q, without %q", reply, part)
				}
			}
			if len(k.calls.open) > 1 || k.calls.open[callKey{ToServer, "1"}] != nil {
				t.Error("left open:", k.calls.open)
			}
		})
	}
}

// Without a state of ours, or with one of another call, nothing that accepts gets through.
func TestInputResponsesRefused(t *testing.T) {
	k := newTalk(t)
	state := k.round("", entry("q", "n", asksInt))
	lax := k.round("", entry("q", "n", `{}`))
	answer := `"inputResponses":{"q":` + badAnswer1 + `}`
	for _, test := range []struct{ name, text, back string }{
		{"another tool", calling("2", "tools/call", `"name":"u","arguments":{"a":1},"requestState":`+state+`,`+answer), "~another call"},
		{"another tool, to one reader", calling("2", "tools/call", `"name":"t","Name":"u","arguments":{"a":1},"requestState":`+state+`,`+answer), "~n: "},
		{"other arguments", calling("2", "tools/call", `"name":"t","arguments":{"a":2},"requestState":`+lax+`,`+answer), "~another call"},
		{"another method", calling("2", "prompts/get", `"name":"t","arguments":{"a":1},"requestState":`+lax+`,`+answer), "~another call"},
		{"a method of another case", calling("2", "Tools/call", `"name":"t","arguments":{"a":1},"requestState":`+lax+`,`+answer), "~another call"},
		{"altered", calling("2", "tools/call", `"name":"t","arguments":{"a":1},"requestState":`+state[:len(state)-3]+`AA",`+answer), "~was altered"},
		{"no state", calling("2", "tools/call", `"name":"t","arguments":{"a":1},`+answer), "~no state that we sealed"},
		{"the server's own state", calling("2", "tools/call", `"name":"t","requestState":"s",`+answer), "~no state that we sealed"},
		{"a state that is no string", calling("2", "tools/call", `"name":"t","requestState":{},`+answer), "~no state that we sealed"},
		{"a list", calling("2", "tools/call", `"name":"t","requestState":`+state+`,"inputResponses":[`+badAnswer1+`]`), "~not an object"},
		{"a string", calling("2", "tools/call", `"name":"t","inputResponses":"x"`), "~not an object"},
		{"another method's", calling("2", "x/y", answer), "~no state that we sealed"},
		{"action and content in another case", calling("2", "x/y", `"inputResponses":{"q":{"Action":"ACCEPT","C\u006fntent":{}}}`), "~no state that we sealed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(k.calls.open)
			k.t = t
			k.play([]line{{ToServer, test.text, "", `~"id":2,"error":{"code":-32602` + test.back, ""}})
			if len(k.calls.open) != before {
				t.Error("left open:", k.calls.open)
			}
		})
	}
	k.t = t
	k.play([]line{
		{ToServer, strings.Replace(calling("2", "tools/call", `"name":"t",`+answer), `"id":2,`, "", 1), "", "", ""}, // nobody to tell
		{ToServer, strings.Replace(calling("2", "tools/call", `"name":"t","inputResponses":{"q":{"action":"cancel"}}`), `"id":2,`, "", 1), "=", "", ""},
		{ToServer, calling("2", "tools/call", `"name":"t","inputResponses":{"q":{"action":"decline"}},"requestState":"s"`), "=", "", ""},
		{ToServer, calling("3", "tools/call", `"name":"t","inputResponses":null`), "=", "", ""},
		{ToServer, calling("4", "tools/call", `"name":"t","arguments":{"inputResponses":{"q":7},"requestState":"s"}`), "=", "", ""},
		{ToServer, calling("5", "tools/call", `"name":"t","arguments":{"a":1},"requestState":`+state), calling("5", "tools/call", `"name":"t","arguments":{"a":1}`), "", ""},
		{ToServer, calling("6", "tools/call", `"name":"t","InputResponses":{"q":7},"name":"t"`), calling("6", "tools/call", `"name":"t"`), "", ""},
	})
	k.set(func(c *policy.Config) { c.Answers.UnsealedAccept = policy.AcceptPass })
	k.play([]line{{ToServer, calling("7", "tools/call", `"name":"t",`+answer), "=", "", ""}})
}

// Only the bad questions are asked again, the good answers are kept in the
// state, and a client may give them once more.
func TestInputResponsesRetry(t *testing.T) {
	both := entry("q", "n", asksInt) + `,` + entry("p", "a", asksText)
	k := newTalk(t, onInvalid("retry"))
	state := k.round(`"requestState":"s",`, both)
	_, reply := k.say(ToServer, again(state, `"q":`+badAnswer1+`,"p":{"action":"accept","content":{"a":"kept"}}`))
	for _, part := range []string{`"id":2,"result":{"resultType":"input_required"`, `"q":{"method":"elicitation/create"`, `n: \"5\" is a string`} {
		if !strings.Contains(reply, part) {
			t.Fatalf("%s has no %s", reply, part)
		}
	}
	if strings.Contains(reply, `"p":`) {
		t.Errorf("what was good is asked again: %s", reply)
	}
	second := k.stateIn(reply)
	kept := `"p":{"action":"accept","content":{"a":"kept"}}`
	tail := `"arguments":{"a":1.0},"requestState":"s","inputResponses":{`
	k.play([]line{
		{ToServer, again(second, `"q":`+goodAnswer), `~` + tail + kept + `,"q":` + goodAnswer + `}`, "", ""},
		{ToServer, again(second, ``), `~` + tail + kept + `}`, "", ""},
		{ToServer, again(second, `"p":{"action":"decline"},"q":`+goodAnswer), `~` + tail + `"p":{"action":"decline"},"q":` + goodAnswer + `}`, "", ""},
		{ToServer, calling("2", "tools/call", `"name":"t","arguments":{"a":1},"requestState":`+second), `~"inputResponses":{` + kept + `}`, "", ""},
	})
	_, reply = k.say(ToServer, again(second, `"q":`+goodAnswer+`,"p":{"action":"accept","content":{"a":7}}`))
	if !strings.Contains(reply, `"p":{"method"`) || strings.Contains(reply, `"q":{"method"`) {
		t.Errorf("an answer that was good, and is bad now: %s", reply)
	}
	_, reply = k.say(ToServer, again(second, `"q":`+badAnswer1))
	third := k.stateIn(reply)
	k.play([]line{{ToServer, again(third, `"q":`+badAnswer1), "", "~-32602~n: ", ""}}) // twice at most
	if len(k.calls.open) > 1 {
		t.Error("left open:", k.calls.open)
	}
}

func TestInputResponsesOutcomes(t *testing.T) {
	for _, outcome := range []string{"cancel", "decline"} {
		k := newTalk(t, onInvalid(outcome))
		state := k.round("", entry("q", "n", asksInt))
		k.play([]line{{ToServer, again(state, `"q":`+badAnswer1), `~"inputResponses":{"q":{"action":"` + outcome + `"}}`, "", ""}})
	}
	k := newTalk(t, onInvalid("pass"))
	state := k.round("", entry("q", "n", asksInt))
	k.play([]line{{ToServer, again(state, `"q":`+badAnswer1), `~"inputResponses":{"q":` + badAnswer1 + `}`, "", ""}})
}

// A state that was sealed before the policy came to observe only is still opened.
func TestInputResponsesObserved(t *testing.T) {
	k := newTalk(t)
	state := k.round(`"requestState":"s",`, entry("q", "n", `{"type":"integer","enum":[1,2]}`))
	k.set(observe)
	k.play([]line{
		{ToServer, again(state, `"q":{"action":"accept","content":{"n":"2"}}`), `~"requestState":"s","inputResponses":{"q":{"action":"accept","content":{"n":2}}}`, "", ""},
		{ToServer, again(state, `"q":{"action":"accept","content":{"n":"7"}},"x":`+goodAnswer+`,"y":7`), `~"requestState":"s","inputResponses":{"q":{"action":"accept","content":{"n":"7"}},"x":` + goodAnswer + `,"y":7}`, "", ""},
		{ToServer, again(`"mcpr1.AAAA"`, `"q":`+goodAnswer), "", "~was altered", ""}, // which the server can't read
		{ToServer, calling("2", "tools/call", `"name":"t","inputResponses":[]`), "=", "", ""},
	})
	k = newTalk(t, observe)
	k.say(ToServer, calling("1", "tools/call", `"name":"t"`))
	k.play([]line{{ToClient, needs("1", `"requestState":"s",`, entry("q", "n", asksInt)), "=", "", ""},
		{ToServer, calling("2", "tools/call", `"name":"t","requestState":"s","inputResponses":{"q":`+badAnswer1+`}`), "=", "", ""}})
}

// Where a result may not ask, its questions get no state, and no answer to them gets through.
func TestInputRequestsUnasked(t *testing.T) {
	k := newTalk(t)
	asked := needs("1", "", entry("q", "n", asksInt))
	k.play([]line{{ToClient, asked, "=", "", ""}, // to nothing
		{ToServer, calling("1", "tools/list", `"cursor":"c"`), "=", "", ""}, {ToClient, asked, "=", "", ""}})
	k.say(ToServer, calling("1", "tools/call", `"name":"t"`))
	k.play([]line{{ToClient, needs("1", "", `"q":{"method":"Elicitation/create","params":{}},"p":{"method":"elicitation/create"},"r":7`), "=", "", ""}})
	k.say(ToServer, calling("1", "tools/call", `"name":"t"`))
	k.play([]line{{ToClient, `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":[1]}}`, "=", "", ""}})
	k.say(ToServer, calling("1", "tools/call", `"name":"t"`))
	k.play([]line{{ToClient, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"inputRequests":{}}}}`, "=", "", ""}})

	// What other readers could take for the question is gone, from what is asked again as well.
	k = newTalk(t, onInvalid("retry"))
	k.say(ToServer, calling("1", "tools/call", `"name":"t","arguments":{"a":1}`))
	twice := strings.Replace(entry("q", "n", asksInt), `"message"`, `"RequestedSchema":{},"message"`, 1)
	forward, _ := k.say(ToClient, needs("1", `"InputRequests":{},`, `"q":7,`+twice))
	if strings.Contains(forward, "RequestedSchema") || strings.Contains(forward, "InputRequests") || strings.Contains(forward, "7") && strings.Contains(forward, `"q":7`) {
		t.Error(forward)
	}
	_, reply := k.say(ToServer, again(k.stateIn(forward), `"q":`+badAnswer1))
	if strings.Contains(reply, "RequestedSchema") || !strings.Contains(reply, "requestedSchema") {
		t.Error(reply)
	}
}

// One replica asks and another one checks, after a rotation of the keys too; an old state is refused.
func TestInputResponsesReplicas(t *testing.T) {
	key := func(fill string) Key {
		k, err := NewKey([]byte(strings.Repeat(fill, KeySize)))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	now := time.Now()
	replica := func(keys ...Key) *talk {
		k := newTalk(t)
		k.proxy.Seal = &Sealer{Keys: keys, Now: func() time.Time { return now }}
		return k
	}
	state := replica(key("a")).round(`"requestState":"s",`, entry("q", "n", asksInt))
	good := line{ToServer, again(state, `"q":`+goodAnswer), `~"requestState":"s"~` + goodAnswer, "", ""}
	bad := line{ToServer, again(state, `"q":`+badAnswer1), "", "~n: ", ""}
	replica(key("a")).play([]line{good, bad})
	replica(key("b"), key("a")).play([]line{good, bad})
	replica(key("b")).play([]line{{ToServer, good.text, "", "~a key that is not in use here", ""}})
	now = now.Add(DefaultStateExpiry - time.Minute) // a human who takes a day
	replica(key("a")).play([]line{good, bad})
	now = now.Add(2 * time.Minute)
	replica(key("a")).play([]line{{ToServer, good.text, "", "~has expired", ""}})
}

// A task's questions come in tasks/get and notifications/tasks, and its answers, some at a time, in tasks/update.
func TestTaskQuestions(t *testing.T) {
	update := func(task, responses string) string {
		return calling("9", "tasks/update", `"taskId":"`+task+`","inputResponses":{`+responses+`}`)
	}
	got := func(id, task, entries string) string {
		return needs(id, `"taskId":"`+task+`","status":"input_required",`, entries)
	}
	refused := line{ToServer, update("t", `"q":`+badAnswer1), "", `~"id":9~-32602~n: `, ""}
	k := newTalk(t)
	k.play([]line{
		{ToServer, calling("1", "tasks/get", `"taskId":"t"`), "=", "", ""},
		{ToClient, got("1", "t", entry("q", "n", `{"type":"integer","enum":[1]}`)+`,`+entry("p", "a", asksText)), `~"taskId":"t"~"n":{"type":"string","enum":["1"]}`, "", ""},
		{ToServer, update("t", `"q":{"action":"accept","content":{"n":"1"}}`), update("t", `"q":`+goodAnswer), "", ""},
		{ToServer, update("t", `"p":{"action":"accept","content":{"a":"x"}}`), "=", "", ""},
		{ToServer, update("t", `"p":{"action":"accept","content":{"a":"x"}},"q":`+badAnswer1), "", "~n: ", ""},
		{ToServer, update("t", `"z":`+goodAnswer), "", "~ask tasks/get again", ""},
		{ToServer, update("t", `"z":{"action":"decline"},"s":{"role":"user","content":{}}`), "=", "", ""},
		{ToServer, update("u", `"q":`+goodAnswer), "", "~ask tasks/get again", ""},
		{ToServer, calling("9", "tasks/update", `"inputResponses":{"q":`+goodAnswer+`}`), "", "~-32602", ""},
		{ToServer, calling("9", "tasks/update", `"taskId":"t","TaskId":"u","inputResponses":{"p":{"action":"decline"}}`), calling("9", "tasks/update", `"taskId":"t","inputResponses":{"p":{"action":"decline"}}`), "", ""},
	})
	k = newTalk(t)
	k.play([]line{{ToClient, `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","inputRequests":{` + entry("q", "n", asksInt) + `}}}`, "=", "", ""}, refused})
	k = newTalk(t) // a server that reads the first of two ids says itself which task it is
	k.play([]line{{ToClient, `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","inputRequests":{` + entry("q", "n", asksInt) + `}}}`, "=", "", ""},
		{ToServer, calling("1", "tasks/get", `"taskId":"u","taskId":"t"`), "=", "", ""}, {ToClient, got("1", "u", entry("q", "n", `{}`)), "~", "", ""}, refused})

	// What we have not seen is asked of the server, if it has to be checked.
	var asked []string
	k = newTalk(t)
	k.session.ask = func(method string, params []byte) ([]byte, error) {
		asked = append(asked, method+" "+string(params))
		return []byte(got(`"x"`, "t", entry("q", "n", asksInt))), nil
	}
	k.play([]line{{ToServer, update("t", `"q":{"action":"cancel"}`), "=", "", ""}, refused, {ToServer, update("t", `"q":`+goodAnswer), "=", "", ""},
		{ToServer, update("t", `"z":`+goodAnswer), "", "~ask tasks/get again", ""}})
	if want := `tasks/get {"taskId":"t",` + modernMeta + `}`; len(asked) != 2 || asked[0] != want {
		t.Errorf("the server was asked %q, not %q", asked, want)
	}
	for i := range maxTaskQuestions + 1 {
		k.proxy.tasks.add(taskKey{strings.Repeat("t", i%7), string(rune(i))}, &form{schema: make([]byte, 8<<10)})
	}
	if c := &k.proxy.tasks; c.bytes > maxTaskBytes || len(c.forms) != len(c.order) {
		t.Errorf("%d bytes in %d forms, %d in order", c.bytes, len(c.forms), len(c.order))
	}
}
