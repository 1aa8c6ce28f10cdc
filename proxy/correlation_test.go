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

// Whatever is asked, answered and cancelled, and in which order: an answer is
// checked against its own question, and against none if it has none.
func TestCorrelation(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	correlate(t, rand.New(rand.NewPCG(seed, 0)), 20_000)
}

func FuzzCorrelation(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(7310))
	f.Fuzz(func(t *testing.T, seed uint64) { correlate(t, rand.New(rand.NewPCG(seed, 0)), 500) })
}

// correlate plays at random against a model: what is open, by its id. The
// field of question i is f<i>, and is to be true.
func correlate(t *testing.T, random *rand.Rand, steps int) {
	k := newTalk(t, func(c *policy.Config) { c.Limits.Calls = 24 })
	ids := []string{`0`, `1`, `-1`, `"0"`, `"1"`, `"a"`, `2`, `""`, `"é"`, `4294967296`}
	open := make(map[string]int) // the question of an id; 0 is a ping
	for i := 1; i <= steps; i++ {
		id := ids[random.IntN(len(ids))]
		question, isOpen := open[id]
		loose := !isOpen && id != `"a"` && id != `"é"` // another may be meant
		switch random.IntN(6) {
		case 0, 1:
			if forward, reply := k.say(ToClient, asks(id, fmt.Sprintf("f%d", i), `{"type":"boolean"}`)); forward == "" {
				t.Fatalf("step %d: %d are open, and %s was refused: %s", i, len(open), id, reply)
			}
			open[id] = i
		case 2:
			k.say(ToClient, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
			open[id] = 0
		case 3:
			k.say(ToClient, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			delete(open, id)
		case 4:
			if loose {
				continue
			}
			text := accept(id, fmt.Sprintf(`{"f%d":true}`, question))
			if forward, _ := k.say(ToServer, text); forward != text {
				t.Fatalf("step %d: the good answer to question %d: %s", i, question, forward)
			}
			delete(open, id)
		case 5:
			if loose {
				continue
			}
			text := accept(id, fmt.Sprintf(`{"f%d":"no"}`, question))
			forward, _ := k.say(ToServer, text)
			if checked := strings.Contains(forward, fmt.Sprintf(`f%d: \"no\" is a string`, question)); checked != (question > 0) {
				t.Fatalf("step %d: the bad answer to question %d: %s", i, question, forward)
			}
			delete(open, id)
		}
		forms := 0
		for _, question := range open {
			forms += min(question, 1)
		}
		if len(k.calls.open) != len(open) || k.calls.forms != forms || len(open) == 0 && k.calls.bytes != 0 {
			t.Fatalf("step %d: %d open with %d forms in %d bytes, not %d and %d", i, len(k.calls.open), k.calls.forms, k.calls.bytes, len(open), forms)
		}
	}
}

// A human may take as long as it takes: nothing of ours runs out meanwhile.
func TestAnswerWithoutDeadline(t *testing.T) {
	for _, wait := range []time.Duration{11 * time.Minute, 25 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(t, nil)
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
