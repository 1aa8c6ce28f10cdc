package proxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// Whatever becomes of calls, streams and sessions, and in which order: each call
// runs once at most and is answered once, and each answer of the client reaches
// the session in which it was asked for, once, or none.
func TestRunURLLife(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		steps := make([]byte, 40)
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		urlLife(t, steps)
	}
}

func FuzzRunURLLife(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 0, 4, 0, 6, 1})
	f.Add([]byte{0, 5, 8, 0, 4, 0, 7, 3, 0, 2, 5, 8, 1})
	f.Add([]byte{0, 5, 0, 5, 4, 0, 8, 7, 8, 7, 0, 14, 8, 1, 10}) // answers to a session that is lost
	f.Fuzz(func(t *testing.T, steps []byte) { urlLife(t, steps[:min(len(steps), 64)]) })
}

// A lifeServer does with each call what it is told, and forgets its session.
type lifeServer struct {
	t *testing.T

	mu       sync.Mutex
	session  int
	sessions int
	runs     map[string]int // by the id of the call
	act      map[string]chan byte
	asked    map[string]int // the session in which a question was asked, by its id
	answered map[string]int // how often a question was
}

// What becomes of a call.
const (
	lifeAnswer = iota
	lifeStream
	lifeBreak
	lifeAsk
	lifeLeft // nothing: its client is gone
)

func (s *lifeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw := []byte(bodyOf(r))
	env, _ := rewrite.Scan(raw)
	id := string(env.ID.Of(raw))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case env.Method == "initialize":
		s.sessions++
		s.session = s.sessions
		w.Header().Set(headerSession, fmt.Sprint(s.session))
		writeJSON(w, strings.Replace(initResult, `"id":0`, `"id":`+id, 1))
		return
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case r.Header.Get(headerSession) != fmt.Sprint(s.session):
		w.WriteHeader(http.StatusNotFound)
		return
	case env.Kind == rewrite.KindResult || env.Kind == rewrite.KindError:
		if s.answered[id]++; s.answered[id] > 1 || s.asked[id] != s.session {
			s.t.Errorf("the answer %s came %d times, to session %d, and was asked for in session %d", raw, s.answered[id], s.session, s.asked[id])
		}
	}
	if env.Method != "tools/call" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if s.runs[id]++; s.runs[id] > 1 {
		s.t.Errorf("call %s ran %d times", id, s.runs[id])
	}
	result := `{"jsonrpc":"2.0","id":` + id + `,"result":{"of":` + id + `}}`
	act := s.act[id]
	for begun := false; ; {
		s.mu.Unlock()
		what := byte(lifeLeft)
		select {
		case <-r.Context().Done():
		case what = <-act:
		}
		s.mu.Lock()
		switch {
		case what == lifeLeft:
			return
		case what == lifeBreak:
			panic(http.ErrAbortHandler)
		case what == lifeAsk:
			begun = true
			q := fmt.Sprintf(`"q%d"`, len(s.asked))
			s.asked[q], _ = strconv.Atoi(r.Header.Get(headerSession))
			writeEvents(w, "data: "+asks(q, "n", asksInt)+"\n\n")
		case what == lifeStream || begun:
			writeEvents(w, "data: "+result+"\n\n")
			return
		default:
			writeJSON(w, result)
			return
		}
	}
}

func urlLife(t *testing.T, steps []byte) {
	s := &lifeServer{t: t, runs: map[string]int{}, act: map[string]chan byte{}, asked: map[string]int{}, answered: map[string]int{}}
	runBridge(t, &Proxy{}, s.ServeHTTP, func(t *testing.T, b *testBridge) {
		begin(b)
		heard, cancelled, forgot, calls := map[string]int{}, map[string]bool{}, 0, 0
		var questions []string // that the client has not answered
		hear := func(line string) {
			raw := []byte(line)
			env, err := rewrite.Scan(raw)
			id := string(env.ID.Of(raw))
			switch {
			case err != nil:
				t.Errorf("%s: %v", line, err)
			case env.Method == "elicitation/create":
				questions = append(questions, id)
			case env.Method == "notifications/cancelled": // of a question in a lost session
			case env.Kind == rewrite.KindResult && !strings.Contains(line, `"of":`+id+`}`):
				t.Errorf("call %s got %s", id, line)
			default:
				heard[id]++
			}
		}
		for _, step := range steps {
			open := slices.Sorted(maps.Keys(s.act))
			open = slices.DeleteFunc(open, func(id string) bool { return heard[id] > 0 || cancelled[id] })
			switch what, which := step%9, int(step/9); {
			case what == 0 && len(open) < 8:
				calls++
				id := fmt.Sprint(calls)
				s.mu.Lock()
				s.act[id] = make(chan byte, 64)
				s.mu.Unlock()
				b.send(strings.Replace(callOne, `"id":1`, `"id":`+id, 1))
			case what == 4:
				s.mu.Lock()
				s.session = 0
				s.mu.Unlock()
				forgot++
			case what == 7:
				time.Sleep(time.Duration(which) * time.Second)
			case what == 8 && len(questions) > 0:
				b.send(accept(questions[0], `{"n":1}`)) // given up by the server, perhaps
				questions = questions[1:]
			case what == 8, len(open) == 0:
			case what == 6:
				id := open[which%len(open)]
				cancelled[id] = true
				b.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			case what != 0:
				s.act[open[which%len(open)]] <- []byte{1: lifeAnswer, 2: lifeStream, 3: lifeBreak, 5: lifeAsk}[what]
			}
			synctest.Wait()
			for len(b.lines) > 0 {
				hear(<-b.lines)
				synctest.Wait()
			}
		}
		b.in.Close()
		for line := range b.lines {
			hear(line)
		}
		for id := range s.act {
			if n := heard[id]; n != 1 && !(n == 0 && cancelled[id]) {
				t.Errorf("call %s was answered %d times", id, n)
			}
		}
		if len(heard) > len(s.act) || s.sessions > forgot+1 {
			t.Errorf("%d calls answered of %d, %d sessions and %d forgotten", len(heard), len(s.act), s.sessions, forgot)
		}
	})
}
