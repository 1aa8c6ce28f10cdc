package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
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
		select {
		case <-a.release:
			_, _ = io.WriteString(w, "data: "+sayAsk+"\n\n")
			<-r.Context().Done()
		case <-r.Context().Done():
		}
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

// answerForms are the ways to say sayAnswer that are no call.
var answerForms = map[string]string{
	"alone":                            sayAnswer,
	"in a batch":                       "[" + sayAnswer + "]",
	"in a batch behind a notification": "[" + notification + "," + sayAnswer + "]",
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
		for form, say := range answerForms {
			t.Run(tt.name+", "+form, func(t *testing.T) {
				for name, standing := range map[string]bool{"on the call's stream": false, "on the server's own": true} {
					t.Run(name, func(t *testing.T) {
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
							b.send(say)
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
			})
		}
	}
}

// TestRunURLMixedBatchUndelivered: a batch of a call and an answer is sent once
// alone, since the call may have had its effect. The call has an error, and so
// has the server, in the answer's place.
func TestRunURLMixedBatchUndelivered(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	tests := []struct {
		name    string
		fail    func(w http.ResponseWriter)
		instead bool   // the server is told in the answer's place; else the first call is over
		says    string // to the call in the batch
	}{
		{"503", func(w http.ResponseWriter) { w.WriteHeader(503) }, true, "503 Service Unavailable"},
		{"400", func(w http.ResponseWriter) { w.WriteHeader(400) }, true, "400 Bad Request"},
		{"broken connection", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, false, "broke off"},
		{"refused connection", func(http.ResponseWriter) { panic(refused) }, false, "connection refused"},
		{"taken, and the call broken off", func(w http.ResponseWriter) {
			writeEvents(w, "\n")
			panic(http.ErrAbortHandler)
		}, false, "broke off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &asker{}
			taken := strings.HasPrefix(tt.name, "taken")
			server := func(w http.ResponseWriter, r *http.Request) {
				switch body := bodyOf(r); {
				case strings.HasPrefix(body, "["):
					if taken {
						a.taken <- body
					}
					tt.fail(w)
				case strings.Contains(body, `"id":"q1"`):
					w.WriteHeader(http.StatusAccepted)
					a.taken <- body
				case strings.Contains(body, "cancelled"):
					w.WriteHeader(http.StatusAccepted)
				default:
					a.ServeHTTP(w, r)
				}
			}
			runBridge(t, &Proxy{}, legacyServer("s1", server), func(t *testing.T, b *testBridge) {
				a.taken = make(chan string, 1)
				begin(b)
				b.send(callOne)
				b.want(sayAsk)
				b.send("[" + callTwo + "," + sayAnswer + "]")
				lines := []string{b.next(), b.next()} // in any order
				slices.Sort(lines)
				if one := lines[0]; one != resultOne && (tt.instead || taken) || !strings.Contains(one, `"id":1,`) ||
					!tt.instead && !taken && !strings.Contains(one, "did not get there") {
					t.Errorf("the call in which the server asked got %s", one)
				}
				if two := lines[1]; !strings.Contains(two, `"id":2,"error"`) || !strings.Contains(two, tt.says) {
					t.Errorf("the call in the batch got %s", two)
				}
				answers, cancelled := answersIn(b)
				want := 1
				if tt.instead {
					want = 2
				}
				if len(answers) != want || tt.instead && !strings.Contains(answers[1], `"code":-32603`) {
					t.Errorf("the server was told %q", answers)
				}
				if (len(cancelled) == 1) != (!tt.instead && !taken) {
					t.Errorf("the server was told %q", cancelled)
				}
				b.silent()
			})
		})
	}
}

// TestRunURLAnswerTaken: of an answer that the server has taken nothing is left:
// no warning, no question that a lost session would take back, and nothing that
// the end waits for. What is sent behind it waits until it is taken.
func TestRunURLAnswerTaken(t *testing.T) {
	for form, say := range answerForms {
		for name, standing := range map[string]bool{"on the call's stream": false, "on the server's own": true} {
			t.Run(form+" "+name, func(t *testing.T) {
				core, logged := observer.New(zap.WarnLevel)
				a := &asker{standing: standing}
				f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }}
				f.call = func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(bodyOf(r), `"id":2,`) {
						answer(w, r)
						return
					}
					a.ServeHTTP(w, r)
				}
				a.take = func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(ackWait / 2)
					w.WriteHeader(http.StatusAccepted)
					a.taken <- bodyOf(r)
				}
				server := func(w http.ResponseWriter, r *http.Request) {
					switch body := bodyOf(r); {
					case r.Method == http.MethodDelete:
					case r.Method == http.MethodGet, strings.Contains(body, `"id":"q1"`):
						a.ServeHTTP(w, r)
					default:
						f.ServeHTTP(w, r)
					}
				}
				runBridge(t, &Proxy{Policy: defaultPolicy(t), Log: zap.New(core)}, server, func(t *testing.T, b *testBridge) {
					a.taken, a.release = make(chan string, 1), make(chan bool)
					begin(b)
					b.send(callOne)
					b.want(sayAsk)
					b.send(say, callTwo)
					if posts := b.requests("POST"); posts[len(posts)-1].body != say {
						t.Errorf("%s overtook the answer", posts[len(posts)-1].body)
					}
					lines := []string{b.next(), b.next()}
					slices.Sort(lines)
					if lines[0] != resultOne || lines[1] != resultTwo {
						t.Errorf("the client got %q", lines)
					}
					f.forgot.Store(true)
					b.send(callTwo)
					b.want(resultTwo) // and no cancellation
					for _, entry := range logged.All() {
						if !strings.Contains(entry.Message, "lost the session") {
							t.Errorf("logged: %s %v", entry.Message, entry.ContextMap())
						}
					}
					left := time.Now()
					b.in.Close()
					<-b.ended
					if d := time.Since(left); d != 0 {
						t.Errorf("the end took %v", d)
					}
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
		for form, say := range answerForms {
			t.Run(name+", "+form, func(t *testing.T) {
				first := first
				if first == sayAnswer {
					first = say
				}
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
						b.send(say)
					}
					synctest.Wait()
					for _, r := range b.requests("POST") {
						if r.body == say && r.header.Get("Mcp-Session-Id") != "s1" {
							t.Errorf("the answer was sent in session %s", r.header.Get("Mcp-Session-Id"))
						}
					}
					b.silent()
				})
			})
		}
	}
}

// TestRunURLAnswersOfTwoSessions: a batch with an answer to a lost session does
// not go out, and what the server had asked in the new one ends all the same.
func TestRunURLAnswersOfTwoSessions(t *testing.T) {
	f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }}
	f.call = func(w http.ResponseWriter, r *http.Request) {
		writeEvents(w, "data: "+strings.Replace(sayAsk, "q1", fmt.Sprint("q", f.sessions.Load()), 1)+"\n\n")
		<-r.Context().Done()
	}
	runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
		begin(b)
		b.send(callOne)
		b.want(sayAsk)
		f.forgot.Store(true)
		b.send(callTwo)
		b.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1","reason":"mcp-refit: the server has lost the session"}}`)
		b.wantError("1", "lost the session")
		b.want(strings.Replace(sayAsk, "q1", "q2", 1))
		b.send("[" + sayAnswer + "," + strings.Replace(sayAnswer, "q1", "q2", 1) + "]")
		b.wantError("2", "did not get there", "the session in which the server asked is lost")
		if answers, cancelled := answersIn(b); len(answers) != 0 || len(cancelled) != 1 || !strings.Contains(cancelled[0], `"requestId":2,`) {
			t.Errorf("the server was told %q and %q", answers, cancelled)
		}
		b.silent()
	})
}

// TestRunURLAnswerLateForItsSession: what becomes of an answer to a lost session
// is nothing to the question of the same id in the new one.
func TestRunURLAnswerLateForItsSession(t *testing.T) {
	f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }}
	f.call = func(w http.ResponseWriter, r *http.Request) {
		switch body := bodyOf(r); {
		case !strings.Contains(body, `"id":"q1"`):
			writeEvents(w, "data: "+sayAsk+"\n\n")
			<-r.Context().Done()
		case f.sessions.Load() == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}
	runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
		begin(b)
		b.send(callOne)
		b.want(sayAsk)
		b.send(sayAnswer)
		time.Sleep(firstRetry * 3 / 2) // it is sent again, and will be once more
		f.forgot.Store(true)
		b.send(callTwo)
		b.next() // of the cancellation
		b.wantError("1", "lost the session")
		b.want(sayAsk)
		time.Sleep(time.Minute)
		b.silent()
		b.send(sayAnswer)
		answers, _ := answersIn(b)
		if len(answers) != 3 {
			t.Errorf("the server was told %q", answers)
		}
	})
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
