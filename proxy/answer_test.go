package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// badN is an answer to field n that is no integer, and badText what is said of it.
const (
	badN     = `{"n":"5"}`
	refusedN = `~"error":{"code":-32602~n: \"5\" is a string`
)

func TestAnswers(t *testing.T) {
	asked := line{ToClient, asks("0", "n", asksInt), "=", "", ""}
	tests := []struct {
		name   string
		change func(*policy.Config)
		lines  []line
	}{
		{"good, bytes kept", nil, []line{asked,
			{ToServer, `{"jsonrpc":"2.0", "id":0,"result":{ "action":"accept","content":{"n":1.0, "x":true}}}`, "=", "", ""}}},
		{"bad", nil, []line{asked, {ToServer, accept("0", badN), refusedN, "", ""}}},
		{"bad, cancel", onInvalid("cancel"), []line{asked,
			{ToServer, accept("0", badN), `{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}`, "", ""}}},
		{"bad, decline", onInvalid("decline"), []line{asked,
			{ToServer, accept("0", badN), `{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}`, "", ""}}},
		{"bad, pass", onInvalid("pass"), []line{asked, {ToServer, accept("0", badN), "=", "", ""}}},
		{"bad, observed", observe, []line{asked, {ToServer, accept("0", badN), "=", "", ""}}},
		{"no content", nil, []line{asked, {ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, `~-32602~n: `, "", ""}}},
		{"decline is not checked", nil, []line{asked, {ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"decline","content":{"n":"x"}}}`, "=", "", ""}}},
		{"unknown action", nil, []line{asked, {ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"Accept","content":{"n":1}}}`, `~-32602~"Accept\" is not one of`, "", ""}}},
		{"no object", nil, []line{asked, {ToServer, `{"jsonrpc":"2.0","id":0,"result":null}`, `~-32602~not an object`, "", ""}}},
		{"an error is passed, and closes", nil, []line{asked,
			{ToServer, `{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}`, "=", "", ""},
			{ToServer, accept("0", badN), "=", "", ""}}}, // the server does not wait for it any more
		{"answered twice", nil, []line{asked,
			{ToServer, accept("0", `{"n":1}`), "=", "", ""}, {ToServer, accept("0", badN), "=", "", ""}}},
		{"cancelled", nil, []line{asked,
			{ToClient, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`, "=", "", ""},
			{ToServer, accept("0", badN), "=", "", ""}}},
		{"cancelled by the other side", nil, []line{asked,
			{ToServer, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`, "=", "", ""},
			{ToServer, accept("0", badN), refusedN, "", ""}}},
		{"asked again under the same id", nil, []line{asked, {ToClient, asks("0", "a", asksText), "=", "", ""},
			{ToServer, accept("0", `{"n":1}`), "~a: is missing", "", ""}}},
		{"the directions are apart", nil, []line{
			{ToServer, `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"t"}}`, "=", "", ""}, asked,
			{ToServer, accept("0", badN), refusedN, "", ""},
			{ToClient, `{"jsonrpc":"2.0","id":0,"result":{"content":[]}}`, "=", "", ""}}},
		{"never asked", nil, []line{{ToServer, accept("99", badN), "=", "", ""}}},
		{"two members, one spelled otherwise", nil, []line{asked,
			{ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"decline","Action":"accept","content":{"n":"5"}}}`, `~-32602~also spelled`, "", ""}}},
		{"two contents", nil, []line{asked,
			{ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"n":"5"},"c\u006fntent":{"n":1}}}`, `~-32602~more than once`, "", ""}}},
		{"two results: the last goes on alone", nil, []line{asked,
			{ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"n":"5"}},"Result":{},"result":{"action":"cancel"}}`,
				`{"jsonrpc":"2.0","id":0,"result":{"action":"cancel"}}`, "", ""}}},
		{"two ids", nil, []line{asked, {ToClient, asks("1", "a", asksText), "=", "", ""},
			{ToServer, `{"id":0,"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":"5"}}}`, `~"id":1~a: is missing`, "", ""}}},
		{"params that are no object", onInvalid("retry"), []line{
			{ToClient, `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":[1]}`, "=", "", ""},
			{ToServer, accept("0", `[]`), "", "", `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":[1]}`}}},
		{"no params", onInvalid("retry"), []line{
			{ToClient, ` {"jsonrpc":"2.0","id":0,"method":"elicitation/create"}`, "=", "", ""},
			{ToServer, accept("0", `[]`), "", "", ` {"jsonrpc":"2.0","id":0,"method":"elicitation/create"}`}}},
		{"mode null is form", nil, []line{
			{ToClient, strings.Replace(asks("0", "n", asksInt), `"message"`, `"mode":null,"message"`, 1), "=", "", ""},
			{ToServer, accept("0", badN), refusedN, "", ""}}},
		{"a mode of another case, with a schema", nil, []line{
			{ToClient, strings.Replace(asks("0", "n", asksInt), `"message"`, `"mode":"Form","message"`, 1), "=", "", ""},
			{ToServer, accept("0", badN), refusedN, "", ""}}},
		{"an unknown mode", nil, []line{
			{ToClient, `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"mode":7}}`, "=", "", ""},
			{ToServer, accept("0", badN), "~-32602~no form that we know", "", ""}}},
		{"an unknown mode, declined", nil, []line{
			{ToClient, `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"mode":"voice"}}`, "=", "", ""},
			{ToServer, `{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}`, "=", "", ""}}},
		{"two modes: the last counts", nil, []line{
			{ToClient, strings.Replace(asks("0", "n", asksInt), `"message"`, `"mode":"url","mode":"form","message"`, 1),
				strings.Replace(asks("0", "n", asksInt), `"message"`, `"mode":"form","message"`, 1), "", ""},
			{ToServer, accept("0", badN), refusedN, "", ""}}},
		{"url mode", nil, []line{
			{ToClient, `{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://auth.example/x?y=1&z=2","message":"m"}}`, "=", "", ""},
			{ToServer, `{"jsonrpc":"2.0","id":2,"result":{"action":"accept"}}`, "=", "", ""}}},
		{"url mode, an unknown action", nil, []line{
			{ToClient, `{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url","url":"https://auth.example/"}}`, "=", "", ""},
			{ToServer, `{"jsonrpc":"2.0","id":2,"result":{"action":"ok"}}`, "~-32602~not one of", "", ""}}},
		{"an elicitation that is a notification asks nothing", nil, []line{
			{ToClient, `{"jsonrpc":"2.0","method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, "=", "", ""}}},
		{"the way back of numbers as choices", nil, []line{
			{ToClient, asks("0", "n", `{"type":"integer","enum":[1,2]}`), asks("0", "n", `{"type":"string","enum":["1","2"]}`), "", ""},
			{ToServer, accept("0", `{"n":"2"}`), accept("0", `{"n":2}`), "", ""}}},
		{"defaults are filled in", func(c *policy.Config) { c.Answers.FillDefaults = true }, []line{
			{ToClient, asks("0", "n", `{"type":"integer","default":0}`), "=", "", ""},
			{ToServer, accept("0", `{}`), accept("0", `{"n":0}`), "", ""}}},
		{"a response to another request is not checked", nil, []line{
			{ToClient, `{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}`, "=", "", ""},
			{ToServer, accept("0", badN), "=", "", ""}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			change := test.change
			if change == nil {
				change = func(*policy.Config) {}
			}
			k := newTalk(t, change)
			k.play(test.lines)
		})
	}
}

// Whatever a server might read as the id of its question is that question's, and
// goes on as the server wrote it. Or an answer under the one would close the
// question here, and one under the other would pass unchecked.
func TestAnswerIDs(t *testing.T) {
	for _, test := range []struct{ asked, answered string }{
		{`5`, `"5"`}, {`5`, `5.0`}, {`5`, `5e0`}, {`5`, `0.5E1`}, {`5`, `5.7`}, {`5`, `" 5\n"`}, {`5`, `"\ufeff5"`}, {`5`, `"+5"`},
		{`5`, `"0x5"`}, {`5`, `"0b101"`}, {`5`, `"0o5"`}, {`5`, `"5."`}, {`5`, `"05"`}, {`5`, `"5.2"`}, {`50`, `"5_0"`}, {`5`, `"٥"`}, {`5`, `"𝟝"`},
		{`0`, `""`}, {`0`, `-0`}, {`0`, `"1e-400"`}, {`-3`, `"-3"`}, {`"7"`, `7`}, {`"é"`, `"\u00e9"`},
		{`9007199254740992`, `9007199254740993`}, {`18446744073709551615`, `18446744073709551615.0`},
	} {
		for _, first := range []string{accept(test.answered, badN), `{"jsonrpc":"2.0","id":` + test.answered + `,"result":{"action":"decline"}}`, `{"jsonrpc":"2.0","id":` + test.answered + `,"error":{"code":1,"message":"m"}}`} {
			k := newTalk(t)
			k.play([]line{{ToClient, asks(test.asked, "n", asksInt), "=", "", ""}})
			forward, _ := k.say(ToServer, first)
			if !strings.Contains(forward, `"id":`+test.asked+`,`) || strings.Contains(forward, "accept") {
				t.Errorf("%s answered as %s: %s", test.asked, test.answered, forward)
			}
			if len(k.calls.open) != 0 || k.calls.bytes != 0 || k.calls.forms != 0 {
				t.Errorf("%s answered as %s: still open: %v", test.asked, test.answered, k.calls)
			}
		}
	}
	for _, other := range []string{`6`, `"a"`, `"5a"`, `"infinity"`, `"0x"`, `"0x1p2"`, `"nan"`, `1e400`, `"5 5"`} {
		k := newTalk(t)
		k.play([]line{{ToClient, asks("5", "n", asksInt), "=", "", ""}, {ToServer, accept(other, badN), "=", "", ""}, {ToServer, accept("5", badN), refusedN, "", ""}})
	}
	k := newTalk(t) // the type counts where both are open
	k.play([]line{{ToClient, asks(`"1"`, "a", asksText), "=", "", ""}, {ToClient, asks(`1`, "n", asksInt), "=", "", ""},
		{ToServer, accept(`1`, `{"n":2}`), "=", "", ""}, {ToServer, accept(`"1"`, `{"a":"x"}`), "=", "", ""}})
}

func TestAnswerRetry(t *testing.T) {
	ask := asks("0", "n", asksInt)
	t.Run("twice, then an error", func(t *testing.T) {
		k := newTalk(t, onInvalid("retry"))
		k.play([]line{{ToClient, ask, "=", "", ""},
			{ToServer, accept("0", badN), "", "", `~"id":0,"method":"elicitation/create"~m\n\n~n: \"5\" is a string`},
			{ToServer, accept("0", `{"n":true}`), "", "", `~m\n\n~n: true is a boolean`},
			{ToServer, accept("0", badN), refusedN, "", ""},
			{ToServer, accept("0", badN), "=", "", ""}})
		if len(k.calls.open) != 0 {
			t.Error("left open:", k.calls.open)
		}
	})
	t.Run("the problems of one round alone", func(t *testing.T) {
		k := newTalk(t, onInvalid("retry"))
		k.play([]line{{ToClient, ask, "=", "", ""}, {ToServer, accept("0", badN), "", "", "~string"}})
		k.say(ToServer, accept("0", `{"n":true}`))
		if strings.Contains(k.sent[1], "string") {
			t.Error(k.sent[1])
		}
		k.play([]line{{ToServer, accept("0", `{"n":3}`), "=", "", ""}})
	})
	t.Run("cancelled meanwhile", func(t *testing.T) {
		k := newTalk(t, onInvalid("retry"))
		k.play([]line{{ToClient, ask, "=", "", ""}, {ToServer, accept("0", badN), "", "", "~m"},
			{ToClient, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`, "=", "", ""},
			{ToServer, accept("0", badN), "=", "", ""}})
	})
	t.Run("cancelled while it is checked", func(t *testing.T) {
		k := newTalk(t, onInvalid("retry"))
		k.play([]line{{ToClient, ask, "=", "", ""}})
		k.proxy.OnDecision = func(d Decision) { k.calls.remove(callKey{ToClient, "0"}) }
		k.play([]line{{ToServer, accept("0.0", badN), refusedN, "", ""}})
	})
	t.Run("no stream", func(t *testing.T) {
		k := newTalk(t, onInvalid("retry"))
		k.deaf = true
		k.play([]line{{ToClient, ask, "=", "", ""}, {ToServer, accept("0", badN), refusedN, "", ""}})
	})
	t.Run("begun under another policy", func(t *testing.T) {
		k := newTalk(t)
		k.play([]line{{ToClient, ask, "=", "", ""}})
		k.set(onInvalid("retry"))
		k.play([]line{{ToServer, accept("0", badN), refusedN, "", ""}})
	})
}

// A policy may change while a human answers.
func TestAnswerReload(t *testing.T) {
	ask, asked := asks("0", "n", `{"type":"integer","enum":[1,2]}`), asks("0", "n", `{"type":"string","enum":["1","2"]}`)
	t.Run("to observe: what was refitted is turned back, and nothing refused", func(t *testing.T) {
		k := newTalk(t)
		k.play([]line{{ToClient, ask, asked, "", ""}})
		k.set(observe, func(c *policy.Config) { c.Answers.FillDefaults = true })
		k.play([]line{{ToServer, accept("0", `{"n":"2"}`), accept("0", `{"n":2}`), "", ""},
			{ToClient, ask, "=", "", ""}, {ToServer, accept("0", `{"n":"7"}`), "=", "", ""}})
	})
	t.Run("from observe: the server's own form was shown", func(t *testing.T) {
		k := newTalk(t, observe)
		k.play([]line{{ToClient, ask, "=", "", ""}})
		k.set()
		k.play([]line{{ToServer, accept("0", `{"n":"2"}`), "~-32602~n: ", "", ""}})
		k.play([]line{{ToClient, ask, asked, "", ""}, {ToServer, accept("0", `{"n":"2"}`), accept("0", `{"n":2}`), "", ""}})
	})
	t.Run("rules off: the way back stays", func(t *testing.T) {
		k := newTalk(t)
		k.play([]line{{ToClient, ask, asked, "", ""}})
		k.set(func(c *policy.Config) { c.Enums = policy.EnumsNever })
		k.play([]line{{ToServer, accept("0", `{"n":"1"}`), accept("0", `{"n":1}`), "", ""}})
	})
}

func TestAnswerUnknownSession(t *testing.T) {
	for _, test := range []struct{ text, passes string }{
		{accept("0", `{}`), "~-32602~a session that we do not know"},
		{`{"jsonrpc":"2.0","id":0,"result":{"Action":" ACCEPT ","conten\u0074":{}}}`, "~-32602"},
		{`{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}`, "="},
		{`{"jsonrpc":"2.0","id":0,"result":{"action":"decline","content":{}}}`, "="},
		{`{"jsonrpc":"2.0","id":0,"result":{"role":"assistant","content":{}}}`, "="},
	} {
		k := newTalk(t)
		k.known = false
		k.play([]line{{ToServer, test.text, test.passes, "", ""}})
		k = newTalk(t, func(c *policy.Config) { c.Answers.UnknownSession = policy.AcceptPass })
		k.known = false
		k.play([]line{{ToServer, test.text, "=", "", ""}})
	}
}

func TestAnswerBatch(t *testing.T) {
	ask := line{ToClient, asks("0", "n", asksInt), "=", "", ""}
	ping := `{"jsonrpc":"2.0","method":"notifications/x"}`
	t.Run("good", func(t *testing.T) {
		newTalk(t).play([]line{ask, {ToServer, `[` + ping + `,` + accept("0", `{"n":1}`) + `]`, "=", "", ""}})
	})
	t.Run("bad", func(t *testing.T) {
		newTalk(t).play([]line{ask, {ToServer, `[` + accept("0", badN) + `]`, refusedN, "", ""}})
	})
	t.Run("nobody is asked again in vain", func(t *testing.T) {
		k := newTalk(t, onInvalid("retry"))
		k.play([]line{ask, {ToServer, `[` + ping + `,` + accept("0", badN) + `]`, refusedN + "~notifications/x", "", ""}})
		if len(k.calls.open) != 0 {
			t.Error("left open:", k.calls.open)
		}
	})
	t.Run("with a request that is refused", func(t *testing.T) {
		k := newTalk(t)
		k.play([]line{ask, {ToServer, `[` + accept(`"0"`, `{"n":1}`) + `,{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"t","inputResponses":{"q":7}}}]`,
			`~"id":0,"error":{"code":-32600~another element`, `~"id":8~not an object`, ""}})
		if len(k.calls.open) != 0 {
			t.Error("left open:", k.calls.open)
		}
	})
	t.Run("two answers to one question", func(t *testing.T) {
		k := newTalk(t)
		k.settles = true
		k.play([]line{ask, {ToServer, `[` + accept("0", `{"n":1}`) + `,` + accept("0", badN) + `]`, `~"n":1~` + refusedN[1:], "", ""}})
	})
}

// At the bound of the table, what could not be checked is refused to the server.
func TestCallsBound(t *testing.T) {
	few := func(c *policy.Config) { c.Limits.Calls = 2 }
	k := newTalk(t, few)
	k.play([]line{
		{ToClient, asks("1", "n", asksInt), "=", "", ""}, {ToClient, asks("2", "n", asksInt), "=", "", ""},
		{ToClient, asks("3", "n", asksInt), "", "~\"id\":3,\"error\":{\"code\":-32600~limits.calls", ""},
		{ToClient, `{"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{"mode":"voice"}}`, "", "~limits.calls", ""},
		{ToClient, `{"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"t"}}`, "", "~limits.calls", ""},
		{ToClient, `{"jsonrpc":"2.0","id":6,"method":"ping"}`, "=", "", ""},
		{ToServer, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, "=", "", ""},
		{ToServer, accept("1", badN), refusedN, "", ""},
		{ToClient, asks("3", "n", asksInt), "=", "", ""},
	})
	k.set(few, observe)
	k.play([]line{{ToClient, asks("9", "n", asksInt), "=", "", ""}, {ToServer, accept("9", badN), "=", "", ""}})

	k = newTalk(t, func(c *policy.Config) { c.Limits.Calls = -1 }) // off; the bytes are bounded all the same
	long := strings.Repeat("x", 6<<20)
	k.play([]line{{ToClient, asks("1", long, asksInt), "=", "", ""}})
	if _, reply := k.say(ToClient, asks("2", long, asksInt)); !strings.Contains(reply, "too large") {
		t.Errorf("remembered %d bytes", k.calls.bytes)
	}
	k.say(ToServer, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+long+`"}}`)
	if k.calls.bytes > maxCallBytes {
		t.Errorf("remembered %d bytes", k.calls.bytes)
	}
}

// Task-augmented elicitation of 2025-11-25: the client answers with a task, and
// with the ElicitResult once the server asks for the task's result.
func TestAnswerTask(t *testing.T) {
	ask := func(id, schema string) string {
		return strings.Replace(asks(id, "n", schema), `"message"`, `"task":{"ttl":1},"message"`, 1)
	}
	task := func(id, name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"task":{"taskId":"%s","status":"working"}}}`, id, name)
	}
	result := func(id, name string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tasks/result","params":{"taskId":"%s"}}`, id, name)
	}
	pass := func(to Direction, text string) line { return line{to, text, "=", "", ""} }
	for _, test := range []struct {
		name  string
		lines []line
	}{
		{"several results", []line{pass(ToClient, ask("0", asksInt)), pass(ToServer, task("0", "t")),
			pass(ToClient, result("1", "t")), {ToServer, accept("1", badN), refusedN, "", ""},
			pass(ToClient, result("2", "t")), pass(ToServer, accept("2", `{"n":1}`)),
			pass(ToClient, result("3", "t")), {ToServer, accept(`"3"`, badN), refusedN, "", ""}}},
		{"the result overtakes the task", []line{pass(ToClient, ask("0", asksInt)), {ToServer, accept("0", badN), refusedN, "", ""}}},
		{"an unknown task", []line{pass(ToClient, result("1", "t")), {ToServer, accept(`"1"`, badN), "~-32602~no form that we know", "", ""}}},
		{"an unknown task's other result", []line{pass(ToClient, result("1", "t")), pass(ToServer, `{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{}}}`)}},
		{"a task that nobody offered", []line{pass(ToClient, asks("0", "n", asksInt)), {ToServer, task("0", "t"), "~-32602~action: is missing", "", ""}}},
		{"a task that is an answer, too", []line{pass(ToClient, ask("0", asksInt)),
			{ToServer, `{"jsonrpc":"2.0","id":0,"result":{"task":{"taskId":"t"},"Action":"accept","content":{"n":"5"}}}`, "~-32602", "", ""}}},
		{"one id for two tasks", []line{pass(ToClient, ask("0", asksInt)), pass(ToServer, task("0", "t")),
			pass(ToClient, ask("1", asksText)), {ToServer, task("1", "t"), "~-32602~another question's task", "", ""},
			pass(ToClient, result("2", "t")), {ToServer, accept("2", badN), refusedN, "", ""}}},
	} {
		t.Run(test.name, func(t *testing.T) { newTalk(t).play(test.lines) })
	}
	k := newTalk(t) // those that were forgotten are unknown
	for i := range maxTaskForms + 1 {
		id := fmt.Sprint(i)
		k.play([]line{pass(ToClient, ask(id, asksInt)), pass(ToServer, task(id, "t"+id))})
	}
	if len(k.tasks.byID) != maxTaskForms || len(k.tasks.order) != maxTaskForms {
		t.Errorf("%d forms are kept", len(k.tasks.byID))
	}
	k.play([]line{pass(ToClient, result(`"a"`, "t0")), {ToServer, accept(`"a"`, badN), "~-32602~no form", "", ""}})
}

// Form safety holds for requests of their own, too.
func TestFormSafety(t *testing.T) {
	careful := func(c *policy.Config) {
		c.Forms.Secrets, c.Forms.URLHosts = policy.FormDecline, []string{"auth.example"}
	}
	url := func(id, to string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{"mode":"url","url":"` + to + `"}}`
	}
	required := func(code, member, to string) string {
		return `{"jsonrpc":"2.0","id":3,"error":{"code":` + code + `,"message":"m","data":{"` + member + `":[{"mode":"url","url":"https://auth.example/"},{"mode":"url","url":"` + to + `"}]}}}`
	}
	lines := []line{
		{ToClient, asks("0", "password", asksText), "", `{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}`, ""},
		{ToClient, url("1", "https://auth.example/a"), "=", "", ""},
		{ToClient, url("2", "https://evil.example/a"), "", `{"jsonrpc":"2.0","id":2,"result":{"action":"decline"}}`, ""},
		{ToClient, required("-32042", "elicitations", "https://auth.example/b"), "=", "", ""},
		{ToClient, required("-32042", "elicitations", "https://evil.example/b"), `~"id":3,"error":{"code":-32600~does not allow`, "", ""},
		{ToClient, required("-32042.0", "Elicitation\\u0073", "https://evil.example/b"), `~"code":-32600~does not allow`, "", ""},
		{ToClient, required("-32043", "elicitations", "https://evil.example/b"), "=", "", ""},
	}
	k := newTalk(t, careful)
	k.play(lines)
	if k.calls.forms != 1 {
		t.Errorf("%d forms are open, not the one that was passed on", k.calls.forms)
	}
	for _, change := range []func(*policy.Config){func(*policy.Config) {}, func(c *policy.Config) { careful(c); c.Observe = true }} {
		k := newTalk(t, change)
		for _, l := range lines {
			k.play([]line{{l.to, l.text, "=", "", ""}})
		}
	}
}
