package proxy

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	sayAsk    = `{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	sayAnswer = `{"jsonrpc":"2.0","id":"q1","result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}`
)

// asker is a server that asks while it answers a call, and does with what is
// posted to it as a test says. The call is answered once an answer is taken.
type asker struct {
	standing bool             // it asks on its own stream
	take     http.HandlerFunc // of an answer or a notification; taken if it writes nothing else
	taken    chan string      // answers that were taken
	release  chan bool
}

func (a *asker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch body := bodyOf(r); {
	case r.Method == http.MethodGet && !a.standing:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet:
		writeEvents(w, "\n")
		<-a.release
		_, _ = io.WriteString(w, "data: "+sayAsk+"\n\n")
		<-r.Context().Done()
	case strings.Contains(body, `"tools/call"`):
		if writeEvents(w, "\n"); a.standing {
			a.release <- true
		} else {
			_, _ = io.WriteString(w, "data: "+sayAsk+"\n\n")
		}
		select {
		case <-a.taken:
			_, _ = io.WriteString(w, "data: "+resultOne+"\n\n")
		case <-r.Context().Done():
		}
	default:
		a.take(w, r)
	}
}

// answersIn are the bodies of the answers, and of the cancellations, that were
// posted.
func answersIn(b *testBridge) (answers, cancelled []string) {
	for _, r := range b.requests("POST") {
		switch {
		case strings.Contains(r.body, `"id":"q1"`):
			answers = append(answers, r.body)
		case strings.Contains(r.body, "notifications/cancelled"):
			cancelled = append(cancelled, r.body)
		}
	}
	return answers, cancelled
}

// TestRunURLAnswerUndelivered: a client's answer that does not reach the server
// is sent again where that may help; else the server is told so; else the call
// in which it asked is over. Nobody hangs.
func TestRunURLAnswerUndelivered(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	status := func(n int) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, _ string) { w.WriteHeader(n) }
	}
	tests := []struct {
		name     string
		take     func(w http.ResponseWriter, body string)
		times    int32 // that take is asked, before all is taken
		attempts int   // of the answer, and of what is sent in its place
		instead  bool  // an error was sent in its place
		fails    string
	}{
		{"refused connection, once", func(http.ResponseWriter, string) { panic(refused) }, 1, 2, false, ""},
		{"broken connection, once", func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, 1, 2, false, ""},
		{"503, twice", status(503), 2, 3, false, ""},
		{"500, three times", status(500), 3, 4, false, ""},
		{"too large for the server", func(w http.ResponseWriter, body string) {
			if strings.Contains(body, `"result"`) {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			} else {
				w.WriteHeader(http.StatusAccepted)
			}
		}, 2, 2, true, ""},
		{"refused altogether", status(400), 99, 2, true, "400 Bad Request"},
		{"500 for ever", status(500), 99, 8, true, "500 Internal Server Error"},
		{"a server that is gone", func(http.ResponseWriter, string) { panic(refused) }, 99, 4, false, "connection refused"},
		{"forbidden", status(403), 99, 1, false, "forbids"},
	}
	for _, tt := range tests {
		for name, standing := range map[string]bool{"on the call's stream": false, "on the server's own": true} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				a := &asker{standing: standing}
				var asked atomic.Int32
				a.take = func(w http.ResponseWriter, r *http.Request) {
					body := bodyOf(r)
					isAnswer := strings.Contains(body, `"id":"q1"`)
					if isAnswer && asked.Add(1) <= tt.times {
						if tt.take(w, body); !tt.instead || strings.Contains(body, `"result"`) || tt.fails != "" {
							return
						}
					} else {
						w.WriteHeader(http.StatusAccepted)
					}
					if isAnswer {
						a.taken <- body
					}
				}
				runBridge(t, &Proxy{}, legacyServer("s1", a.ServeHTTP), func(t *testing.T, b *testBridge) {
					a.taken, a.release = make(chan string, 1), make(chan bool)
					begin(b)
					b.send(callOne)
					b.want(sayAsk)
					b.send(sayAnswer)
					if tt.fails == "" {
						b.want(resultOne)
					} else {
						b.wantError("1", tt.fails, "did not get there", "may have had its effect")
					}
					answers, cancelled := answersIn(b)
					if len(answers) != tt.attempts {
						t.Errorf("%d attempts, want %d: %q", len(answers), tt.attempts, answers)
					}
					if last := answers[len(answers)-1]; strings.Contains(last, `"code":-32603`) != tt.instead {
						t.Errorf("the last was %s", last)
					}
					if want := tt.fails != ""; (len(cancelled) == 1) != want || want && !strings.Contains(cancelled[0], `"requestId":1,`) {
						t.Errorf("the server was told %q", cancelled)
					}
					b.silent()
				})
			})
		}
	}
}

// TestRunURLNotificationRepeated: a notification that the server has not seen
// is sent again, and one that it may have seen is not.
func TestRunURLNotificationRepeated(t *testing.T) {
	tests := map[string]struct {
		fail     func(w http.ResponseWriter)
		attempts int
	}{
		"refused connection": {func(http.ResponseWriter) { panic(&net.OpError{Op: "dial", Err: errors.New("refused")}) }, 1 + maxRepeats},
		"429":                {func(w http.ResponseWriter) { w.WriteHeader(429) }, 1 + maxRepeats},
		"broken connection":  {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 1},
		"500":                {func(w http.ResponseWriter) { w.WriteHeader(500) }, 1},
		"400":                {func(w http.ResponseWriter) { w.WriteHeader(400) }, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			runBridge(t, &Proxy{}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
				if !noStream(w, r) {
					tt.fail(w)
				}
			}), func(t *testing.T, b *testBridge) {
				begin(b)
				b.send(notification)
				time.Sleep(time.Minute)
				if n := len(b.requests("POST")) - 2; n != tt.attempts {
					t.Errorf("%d attempts, want %d", n, tt.attempts)
				}
				b.silent()
			})
		})
	}
}

// TestRunURLQuestionOfLostSession: the client is told that nobody waits for its
// answer any more, and one that comes all the same is not sent in the new
// session, where it would answer another question.
func TestRunURLQuestionOfLostSession(t *testing.T) {
	f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }}
	f.call = func(w http.ResponseWriter, r *http.Request) {
		if f.sessions.Load() > 1 {
			answer(w, r)
			return
		}
		writeEvents(w, "data: "+sayAsk+"\n\n")
		<-r.Context().Done()
	}
	const told = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1","reason":"mcp-refit: the server has lost the session"}}`
	for name, first := range map[string]string{"found by a call": callTwo, "found by the answer": sayAnswer} {
		t.Run(name, func(t *testing.T) {
			f.sessions.Store(0)
			runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
				begin(b)
				b.send(callOne)
				b.want(sayAsk)
				f.forgot.Store(true)
				b.send(first)
				b.want(told)
				b.wantError("1", "lost the session", "may have had its effect")
				if first == callTwo {
					b.want(resultTwo)
					b.send(sayAnswer)
				}
				synctest.Wait()
				for _, r := range b.requests("POST") {
					if r.body == sayAnswer && r.header.Get("Mcp-Session-Id") != "s1" {
						t.Errorf("the answer was sent in session %s", r.header.Get("Mcp-Session-Id"))
					}
				}
				b.silent()
			})
		})
	}
}

// TestRunURLAnswerChecked: a question is open until an answer has arrived at
// the server, so a second answer, which may overtake the first, is checked too.
func TestRunURLAnswerChecked(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}`
	good := `{"jsonrpc":"2.0","id":"q1","result":{"action":"accept","content":{"n":1}}}`
	bad := strings.Replace(good, `"n":1`, `"n":"x"`, 1)
	a := &asker{}
	a.take = func(w http.ResponseWriter, r *http.Request) {
		if body := bodyOf(r); body == good {
			<-a.release
		}
		w.WriteHeader(http.StatusAccepted)
	}
	runBridge(t, &Proxy{Policy: defaultPolicy(t)}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(bodyOf(r), `"tools/call"`) {
			writeEvents(w, "data: "+ask+"\n\n")
			<-r.Context().Done()
			return
		}
		a.ServeHTTP(w, r)
	}), func(t *testing.T, b *testBridge) {
		a.release = make(chan bool)
		begin(b)
		b.send(callOne)
		b.want(ask)
		b.send(good, bad)
		time.Sleep(2 * ackWait)
		answers, _ := answersIn(b)
		if len(answers) != 2 || answers[0] != good || !strings.Contains(answers[1], `"code":-32602`) {
			t.Errorf("the server got %q", answers)
		}
		close(a.release)
	})
}
