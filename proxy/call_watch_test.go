package proxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// compiled is the built-in policy, but for what becomes of icons.
func compiled(t *testing.T, icons policy.Verdict) *policy.Policy {
	t.Helper()
	c := policy.Default()
	c.Icons.Default = icons
	p, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What is told of each request when it is over.
func TestOnCall(t *testing.T) {
	const (
		parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		meta   = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"` + parent + `","tracestate":"a=b"}`
	)
	for _, c := range []struct {
		name string
		msgs []string // to the server and to the client, by turns
		want string
	}{
		{"answered", []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`}, "tools/list||answered|0|"},
		{"a tool's error", []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, `{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[]}}`}, "tools/call|t|tool_error|0|"},
		{"an error", []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`}, "ping||error|-32601|"},
		{"a round and its trace", []string{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + meta + `}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}}}}`,
		}, "tools/call|t|asked|0|" + parent},
		{"cancelled", []string{`{"jsonrpc":"2.0","id":"x","method":"ping"}`, "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`}, "ping||cancelled|0|"},
		{"refused", []string{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + meta + `,"inputResponses":{"k":{"action":"accept","content":{"a":1}}}}}`,
		}, "tools/call|t|refused|0|" + parent},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			inForce := compiled(t, policy.Strip)
			px := &Proxy{Policy: func() *policy.Policy { return inForce }, OnCall: func(one Call) {
				if one.Start.IsZero() || one.Duration < 0 {
					t.Errorf("it took no time: %+v", one)
				}
				if one.TraceParent != "" && (one.TraceState != "a=b" || one.Revision != "2026-07-28") {
					t.Errorf("got %+v", one)
				}
				got = append(got, fmt.Sprintf("%s|%s|%s|%d|%s", one.Method, one.Target, one.Outcome, one.Code, one.TraceParent))
			}}
			s := &session{proxy: px, known: true}
			to := ToServer
			for _, raw := range c.msgs {
				if raw != "" {
					if _, err := s.handle(to, []byte(raw)); err != nil {
						t.Fatal(err)
					}
				}
				to = to.back()
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What the server never answers is lost when it ends.
func TestOnCallLost(t *testing.T) {
	var got []Call
	s := &session{proxy: &Proxy{OnCall: func(c Call) { got = append(got, c) }}, known: true}
	if _, err := s.handle(ToServer, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	s.failCalls(ToServer, "gone")
	if len(got) != 1 || got[0].Outcome != CallLost {
		t.Errorf("got %+v", got)
	}
}

// The name that a server gives itself can change the policy, for the very
// message that says it.
func TestOnServer(t *testing.T) {
	inForce := compiled(t, policy.Strip)
	px := &Proxy{
		Policy: func() *policy.Policy { return inForce },
		OnServer: func(name string) {
			if name != "github" {
				t.Errorf("name %q", name)
			}
			inForce = compiled(t, policy.Keep)
		},
	}
	s := &session{proxy: px, known: true}
	if _, err := s.handle(ToServer, []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)); err != nil {
		t.Fatal(err)
	}
	in := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"github","version":"1","icons":[{"src":"https://cdn.example.com/a.png"}]}}}`
	out, err := s.handle(ToClient, []byte(in))
	if err != nil || string(out.forward) != in {
		t.Errorf("got %s, %v", out.forward, err)
	}
}
