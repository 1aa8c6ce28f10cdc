package proxy

import (
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A talk is a session whose two peers are the test.
type talk struct {
	*session
	t    *testing.T
	sent []string // what we sent from the side
	deaf bool     // there is no stream for that
}

func newTalk(t *testing.T, change ...func(*policy.Config)) *talk {
	t.Helper()
	return talkUnder(t, testPolicy(t, change...))
}

func talkUnder(t *testing.T, p func() *policy.Policy) *talk {
	k := &talk{t: t}
	k.session = &session{proxy: &Proxy{Policy: p}, known: true}
	k.session.send = func(_ Direction, raw []byte) bool {
		if k.deaf {
			return false
		}
		k.sent = append(k.sent, string(raw))
		return true
	}
	return k
}

// set changes the policy from here on.
func (k *talk) set(change ...func(*policy.Config)) {
	k.t.Helper()
	k.proxy.Policy = testPolicy(k.t, change...)
}

// say has one peer say something, and returns what the other is told and what
// the one is told in return. The bytes of the message are gone after that, as
// they are in a read buffer.
func (k *talk) say(to Direction, text string) (forward, reply string) {
	k.t.Helper()
	raw := []byte(text)
	out, err := k.handle(to, raw)
	if err != nil {
		k.t.Fatalf("%s: %v", text, err)
	}
	if forward = string(out.forward); forward == text && !same(out.forward, raw) {
		k.t.Errorf("%s: passed on as a copy", text)
	}
	reply = string(out.reply)
	for i := range raw {
		raw[i] = '#'
	}
	return forward, reply
}

// A line is one thing that a peer says, and what has to come of it.
type line struct {
	to   Direction
	text string
	// passes is what the other peer is told: "=" the very bytes, "" nothing,
	// "~a~b" something with a and b in it.
	passes string
	back   string // what the one is told in return, likewise
	sent   string // what we send to the client from the side, likewise
}

func (k *talk) play(lines []line) {
	k.t.Helper()
	for _, l := range lines {
		k.sent = nil
		forward, reply := k.say(l.to, l.text)
		check := func(what, got, want string) {
			k.t.Helper()
			if parts, loose := strings.CutPrefix(want, "~"); loose {
				for part := range strings.SplitSeq(parts, "~") {
					if !strings.Contains(got, part) {
						k.t.Errorf("%s: %s %q, without %q", l.text, what, got, part)
					}
				}
				return
			}
			if want == "=" {
				want = l.text
			}
			if got != want {
				k.t.Errorf("%s: %s\n%q, not\n%q", l.text, what, got, want)
			}
		}
		check("passes", forward, l.passes)
		check("is answered", reply, l.back)
		check("sends", strings.Join(k.sent, "\n"), l.sent)
	}
}

// asks is an elicitation/create of the server with one field.
func asks(id, field, schema string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"` + field + `":` + schema + `},"required":["` + field + `"]}}}`
}

const (
	asksInt  = `{"type":"integer"}`
	asksText = `{"type":"string"}`
)

func onInvalid(outcome string) func(*policy.Config) {
	return func(c *policy.Config) { c.Answers.OnInvalid = outcome }
}

func observe(c *policy.Config) { c.Observe = true }
