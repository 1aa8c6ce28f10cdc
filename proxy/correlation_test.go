package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
)

// Whatever is asked, answered and cancelled, in which order and in which
// direction: an answer is checked against its own question, and against none if
// it has none.
func TestCorrelation(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	steps := make([]byte, 20_000)
	for i := range steps {
		steps[i] = byte(random.Uint32())
	}
	correlate(t, fewCalls(t), steps)
}

// FuzzCorrelation takes each byte for a step, so that what is found is a short
// way to it.
func FuzzCorrelation(f *testing.F) {
	few := fewCalls(f)
	for seed := range byte(8) {
		steps := make([]byte, 60)
		for i := range steps {
			steps[i] = byte(i)*(2*seed+1) + seed
		}
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, steps []byte) { correlate(t, few, steps[:min(len(steps), 256)]) })
}

// fewCalls is a policy by which a session has room for the calls of correlate, and few more.
func fewCalls(t testing.TB) func() *policy.Policy {
	return testPolicy(t, func(c *policy.Config) { c.Limits.Calls = policy.Count(2*len(correlateIDs) + 4) })
}

var correlateIDs = []string{`0`, `1`, `-1`, `"0"`, `"1"`, `"a"`, `2`, `""`, `"é"`, `4294967296`}

// correlate plays steps against a model: what is open, by its id, in either
// direction. The field of question i is f<i>, and is to be true.
func correlate(t *testing.T, p func() *policy.Policy, steps []byte) {
	k := talkUnder(t, p)
	asked := make(map[string]int)   // by the server: the question of an id; 0 is a ping
	called := make(map[string]bool) // by the client
	for i, step := range steps {
		i++
		id := correlateIDs[int(step)%len(correlateIDs)]
		question, isAsked := asked[id]
		loose := !isAsked && id != `"a"` && id != `"é"` // another may be meant
		switch int(step) / len(correlateIDs) % 9 {
		case 0, 1:
			if forward, reply := k.say(ToClient, asks(id, fmt.Sprintf("f%d", i), `{"type":"boolean"}`)); forward == "" {
				t.Fatalf("step %d: %d are open, and %s was refused: %s", i, len(asked), id, reply)
			}
			asked[id] = i
		case 2:
			k.say(ToClient, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
			asked[id] = 0
		case 3:
			k.say(ToClient, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			delete(asked, id)
		case 4:
			if loose {
				continue
			}
			text := accept(id, fmt.Sprintf(`{"f%d":true}`, question))
			if forward, _ := k.say(ToServer, text); forward != text {
				t.Fatalf("step %d: the good answer to question %d: %s", i, question, forward)
			}
			delete(asked, id)
		case 5:
			if loose {
				continue
			}
			text := accept(id, fmt.Sprintf(`{"f%d":"no"}`, question))
			forward, _ := k.say(ToServer, text)
			if checked := strings.Contains(forward, fmt.Sprintf(`f%d: \"no\" is a string`, question)); checked != (question > 0) {
				t.Fatalf("step %d: the bad answer to question %d: %s", i, question, forward)
			}
			delete(asked, id)
		case 6:
			k.say(ToServer, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"t"}}`)
			called[id] = true
		case 7:
			text := accept(id, fmt.Sprintf(`{"f%d":"no"}`, question)) // reads like an answer, and is a result
			if forward, _ := k.say(ToClient, text); forward != text {
				t.Fatalf("step %d: the result of call %s: %s", i, id, forward)
			}
			delete(called, id)
		case 8:
			k.say(ToServer, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			delete(called, id)
		}
		forms := 0
		for _, question := range asked {
			forms += min(question, 1)
		}
		if open := len(asked) + len(called); len(k.calls.open) != open || k.calls.forms != forms || open == 0 && k.calls.bytes != 0 {
			t.Fatalf("step %d: %d open with %d forms in %d bytes, not %d and %d", i, len(k.calls.open), k.calls.forms, k.calls.bytes, open, forms)
		}
	}
}

// A human may take as long as it takes: nothing of ours runs out meanwhile.
func TestAnswerWithoutDeadline(t *testing.T) {
	for _, wait := range []time.Duration{11 * time.Minute, 25 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t, nil, nil)
			defer w.end()
			call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}` + "\n"
			for _, said := range []struct {
				to   Direction
				text string
			}{{ToServer, call}, {ToClient, asks("0", "n", asksInt) + "\n"}, {ToServer, accept("0", badN) + "\n"}, {ToClient, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}` + "\n"}} {
				if strings.Contains(said.text, badN) {
					time.Sleep(wait)
				}
				w.says[said.to].add(said.text)
				synctest.Wait()
				got := w.hears[said.to].take()
				if bad := strings.Contains(said.text, badN); got == "" || bad != strings.Contains(got, "n: ") {
					t.Errorf("after %v: %s became %s", wait, said.text, got)
				}
			}
		})
	}
}
