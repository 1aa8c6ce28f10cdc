package proxy

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// underFuzz is a session with a request of each kind in flight, both ways, and
// the reference's view of it.
type underFuzz struct {
	*session
	ref *reference
}

const (
	modernToolCall = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	sealedForm     = `{"method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{"n":{"type":"integer","enum":[1,2]},"s":{"type":"string","enum":["d"],"enumNames":["Day"]}},"required":["n"]}}}`
)

func newUnderFuzz(t testing.TB) underFuzz {
	p := &Proxy{Policy: testPolicy(t)}
	u := underFuzz{&session{proxy: p, known: true}, &reference{policy: p.policy(), open: [2]map[string]*refCall{{}, {}}}}
	one := func(to Direction, raw string, c *refCall) {
		if out, err := u.handle(to, []byte(raw)); err != nil || out.forward == nil {
			t.Fatalf("%s: %v", raw, err)
		}
		v, _, _ := plant([]byte(raw))
		c.id, _ = get(v, "id")
		c.method = getText(v, "method")
		u.ref.open[to][canonicalID(text(c.id))] = c
	}
	one(ToServer, initialize, &refCall{})
	u.ref.rules = (&message{session: u.session, policy: p.policy()}).rules()
	one(ToServer, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, &refCall{})
	one(ToServer, modernToolCall, &refCall{modern: true})
	one(ToServer, `{"jsonrpc":"2.0","id":"p","method":"prompts/get","params":{"name":"p"}}`, &refCall{})
	one(ToServer, `{"jsonrpc":"2.0","id":4,"method":"resources/list"}`, &refCall{})
	form := question("1", "size")
	v, _, _ := plant([]byte(form))
	schema, _ := get(v, "params", "requestedSchema")
	one(ToClient, form, &refCall{schema: text(schema)})
	one(ToClient, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com/","elicitationId":"e"}}`, &refCall{url: true})
	one(ToClient, `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"messages":[]}}`, &refCall{})

	u.ref.sealed = State{
		ServerState: []byte(`"its own"`), Call: CallDigest("tools/call", "t", []byte(`{"a":1}`)),
		Forms: []SealedForm{{Key: "f", Request: []byte(sealedForm), Rules: uint32(u.ref.rules)}, {Key: "u", Request: []byte(`{}`), URL: true}},
	}
	var err error
	if u.ref.token, err = p.sealer(p.policy()).Seal(u.ref.sealed); err != nil {
		t.Fatal(err)
	}
	return u
}

// compare handles one message in both ways. In the message, STATE stands for
// a state that was sealed.
func (u underFuzz) compare(t testing.TB, to Direction, raw []byte) {
	raw = bytes.ReplaceAll(raw, []byte("STATE"), []byte(u.ref.token))
	was := bytes.Clone(raw)
	out, err := u.handle(to, raw)
	if !bytes.Equal(raw, was) {
		t.Fatalf("handle wrote into the message %s", was)
	}
	if !utf8.Valid(raw) || hasSurrogate(raw) {
		return // encoding/json would repair it
	}
	v, depth, invalid := plant(raw)
	if invalid != nil || depth > rewrite.MaxDepth {
		if err == nil {
			t.Fatalf("%s passed, which is no JSON within the bounds", raw)
		}
		return
	}
	if usesTasks(v) {
		return
	}
	before := text(v)
	want, ok := u.ref.handle(to, v)
	if ok != (err == nil) {
		t.Fatalf("%s\nis a message: %v, want %v", raw, err, ok)
	}
	if !ok {
		return
	}
	u.equal(t, raw, "forward", out.forward, want.forward)
	u.equal(t, raw, "reply", out.reply, want.reply)
	if want.forward != nil && bytes.Equal(before, text(want.forward)) && !bytes.Contains(raw, []byte(`\`)) && !same(out.forward, raw) {
		t.Fatalf("%s\nhas nothing of ours, and went out as another slice", raw)
	}
}

func hasSurrogate(raw []byte) bool { return bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) }

// usesTasks reports whether a message has to do with tasks, which the reference leaves out.
func usesTasks(v any) bool {
	list, _ := v.([]any)
	for _, e := range append(list, v) {
		if m := getText(e, "method"); strings.HasPrefix(m, "tasks/") || strings.HasPrefix(m, "notifications/tasks") {
			return true
		}
	}
	return false
}

func (u underFuzz) equal(t testing.TB, raw []byte, which string, got []byte, want any) {
	t.Helper()
	if got == nil || want == nil {
		if got != nil || want != nil {
			t.Fatalf("%s\n%s: got %s\nwant %s", raw, which, got, text(want))
		}
		return
	}
	v, _, err := plant(got)
	if err != nil {
		t.Fatalf("%s\nleft as %s, which is no JSON", raw, got)
	}
	u.unseal(t, v)
	if !reflect.DeepEqual(value(bare(v, want)), value(want)) {
		t.Fatalf("%s\n%s: got %s\nwant %s", raw, which, got, text(want))
	}
}

// bare takes out of an error of ours what the reference does not know: its text.
func bare(got, want any) any {
	list, isList := got.([]any)
	wants, _ := want.([]any)
	if isList && len(list) == len(wants) {
		for i := range list {
			list[i] = bare(list[i], wants[i])
		}
	}
	ours, _ := get(want, "error")
	fault, _ := get(got, "error")
	e, ok := fault.(*tree)
	if o, _ := ours.(*tree); ok && o != nil && len(o.members) == 1 && o.members[0].key == "code" {
		code, _ := get(e, "code")
		got.(*tree).set("error", &tree{[]branch{{"code", code}}})
	}
	return got
}

// unseal checks what stands in the place of a requestState that we sealed.
func (u underFuzz) unseal(t testing.TB, v any) {
	list, _ := v.([]any)
	for _, e := range append(list, v) {
		result, _ := get(e, "result")
		token := getText(result, "requestState")
		if u.ref.asks == nil || token == u.ref.token || !strings.HasPrefix(token, sealPrefix) {
			continue
		}
		state, err := u.proxy.Seal.Open(token, u.ref.sealed.Call)
		if err != nil || len(state.Forms) != u.ref.asks.forms || (state.ServerState != nil) != u.ref.asks.sent {
			t.Fatalf("sealed: %v, %d forms, state %s; want %+v", err, len(state.Forms), state.ServerState, u.ref.asks)
		}
		if state.ServerState != nil {
			own, _, _ := plant(state.ServerState)
			if !reflect.DeepEqual(value(own), value(u.ref.asks.serverState)) {
				t.Fatalf("sealed the state %s, want %s", state.ServerState, text(u.ref.asks.serverState))
			}
		}
		result.(*tree).set("requestState", sealedMark)
	}
}

// What the messages of the tests are made of. Each is a message, and all the
// others are its parts too.
var handleSeeds = []string{
	`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","icons":[{"src":"https://x.example/i.png"}],"inputSchema":{"properties":{"icons":{"type":"array"}}}},{"name":"b","icons":[]},{"Icons":[1],"icons":null}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","websiteUrl":"https://x.example/","icons":[{"src":"data:,"}]}}}}`,
	`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1","icons":[{"src":"https://x.example/i.png"}],"websiteUrl":"javascript:0","WebsiteURL":"x"}}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"resource_link","uri":"u","name":"n","icons":[{}]},{"type":"tool_result","content":[{"icons":[2],"type":"resource_link"}]},{"type":"text","text":"<icons>","icons":[3]}],"structuredContent":{"icons":[{"src":"mine"}],"n":12345678901234567890}}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"f":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"s":{"type":"string","enum":["d","n"],"enumNames":["Day","Night"]}}}}},"x":{"method":"sampling/createMessage","params":{"messages":[],"tools":[{"name":"a","icons":[{}]}]}}},"requestState":{"n":1.0}}}`,
	`{"jsonrpc":"2.0","id":2,"result":{"inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","url":"https://example.com/"}}},"RequestState":"x"}}`,
	`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"s":{"type":"string","enum":["d","n"],"enumNames":["Day","Night"]},"n":{"enum":[1,2]}}},"RequestedSchema":{}}}`,
	`{"jsonrpc":"2.0","id":10,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"resource_link","icons":[{}]}}],"tools":[{"icons":[{}]}]}}`,
	`{"jsonrpc":"2.0","id":"p","result":{"messages":[{"role":"user","content":{"type":"resource_link","icons":[{}]}}]}}`,
	`{"jsonrpc":"2.0","id":4,"result":{"resources":[{"uri":"u","icons":[{}]}],"tools":[{"icons":["not here"]}]}}`,
	`{"jsonrpc":"2.0","id":4,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"url":"http://x.example/"}]}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"size":"d"}}}`,
	`{"jsonrpc":"2.0","id":"1","result":{"action":"accept","content":{"size":"x"}}}`,
	`{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`,
	`{"jsonrpc":"2.0","id":7,"result":{"role":"assistant","content":{"type":"text","text":"t"}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"inputResponses":{"f":{"action":"accept","content":{"n":"1","s":"d"}},"u":{"action":"accept"},"z":{"action":"accept","content":{}}},"requestState":"STATE","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","Name":"u","arguments":{"requestState":"STATE","inputResponses":1}}}`,
	`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"icons":[1],"inputResponses":{"f":{"action":"accept","content":{}}}}}}`,
	`[{"jsonrpc":"2.0","id":1,"result":{"tools":[{"icons":[{}]}]}},{"jsonrpc":"2.0","id":11,"method":"ping","ID":1}]`,
}

// Whatever handle does for speed, the outcome is that of the reference.
func FuzzHandle(f *testing.F) {
	for _, s := range handleSeeds {
		f.Add(true, []byte(s))
		f.Add(false, []byte(s))
	}
	f.Fuzz(func(t *testing.T, toClient bool, raw []byte) {
		to := ToServer
		if toClient {
			to = ToClient
		}
		newUnderFuzz(t).compare(t, to, raw)
	})
}

// The same for messages that are put together at random from parts of others,
// which no mutation of bytes would find.
func TestHandleLikeReference(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and slow")
	}
	const messages = 1500
	r := rand.New(rand.NewPCG(9, 7))
	m := mixer{r: r}
	for _, s := range handleSeeds {
		v, _, err := plant([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		m.collect(v)
	}
	for range messages {
		v, _, _ := plant([]byte(handleSeeds[r.IntN(len(handleSeeds))]))
		for range 1 + r.IntN(4) {
			v = m.mix(v)
		}
		newUnderFuzz(t).compare(t, Direction(r.IntN(2)), text(v))
	}
}

// A mixer changes trees with parts of others.
type mixer struct {
	r      *rand.Rand
	keys   []string
	values []any
}

func (m *mixer) collect(v any) {
	m.values = append(m.values, v)
	switch v := v.(type) {
	case *tree:
		for _, b := range v.members {
			m.keys = append(m.keys, b.key)
			m.collect(b.value)
		}
	case []any:
		for _, e := range v {
			m.collect(e)
		}
	}
}

// key is one of the messages' keys, at times in another case.
func (m *mixer) key() string {
	k := m.keys[m.r.IntN(len(m.keys))]
	switch m.r.IntN(8) {
	case 0:
		return strings.ToUpper(k[:1]) + k[1:]
	case 1:
		return strings.Replace(k, "s", "\u017f", 1)
	}
	return k
}

func (m *mixer) value() any { return m.values[m.r.IntN(len(m.values))] }

// mix makes one change somewhere in a value. The value itself stays as it is.
func (m *mixer) mix(v any) any {
	switch v := v.(type) {
	case *tree:
		t := &tree{append([]branch(nil), v.members...)}
		at := m.r.IntN(len(t.members) + 1)
		if at == len(t.members) || m.r.IntN(6) == 0 {
			b := branch{m.key(), m.value()}
			if len(t.members) > 0 && m.r.IntN(2) == 0 {
				b = branch{t.members[m.r.IntN(len(t.members))].key, b.value}
			}
			t.members = append(t.members[:at:at], append([]branch{b}, t.members[at:]...)...)
			return t
		}
		switch m.r.IntN(16) {
		case 0:
			t.members = append(t.members[:at:at], t.members[at+1:]...)
		case 1:
			t.members[at].key = m.key()
		default:
			t.members[at].value = m.mix(t.members[at].value)
		}
		return t
	case []any:
		list := append([]any(nil), v...)
		if len(list) == 0 || m.r.IntN(6) == 0 {
			return append(list, m.value())
		}
		at := m.r.IntN(len(list))
		list[at] = m.mix(list[at])
		return list
	}
	if m.r.IntN(2) == 0 {
		return m.value()
	}
	return v
}
