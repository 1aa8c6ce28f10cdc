package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// forgetful is a server that forgets its session when told so.
type forgetful struct {
	sessions atomic.Int32
	forgot   atomic.Bool
	refuse   func(http.ResponseWriter)
	call     http.HandlerFunc // of a call in a session that is known
	revision string           // in the second session
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := bodyOf(r)
	current := fmt.Sprint("s", f.sessions.Load())
	switch {
	case strings.Contains(body, `"method":"initialize"`):
		result := strings.Replace(initResult, `"id":0`, `"id":`+idOf(body), 1)
		if f.sessions.Add(1) > 1 && f.revision != "" {
			result = strings.Replace(result, "2025-11-25", f.revision, 1)
		}
		f.forgot.Store(false)
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", f.sessions.Load()))
		writeJSON(w, result)
	case noStream(w, r):
	case f.forgot.Load() || r.Header.Get("Mcp-Session-Id") != current:
		f.refuse(w)
	case strings.Contains(body, "notifications/"):
		w.WriteHeader(202)
	default:
		f.call(w, r)
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, strings.Replace(resultOne, `"id":1`, `"id":`+idOf(bodyOf(r)), 1))
}

// TestRunURLLostSession: a session that the server has forgotten is made anew,
// with what the client itself said.
func TestRunURLLostSession(t *testing.T) {
	refusals := map[string]func(http.ResponseWriter){
		"404": func(w http.ResponseWriter) { w.WriteHeader(404) },
		"404 with an error": func(w http.ResponseWriter) {
			writeStatus(w, 404, "application/json", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		},
		"400": func(w http.ResponseWriter) {
			writeStatus(w, 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
	}
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			f := &forgetful{refuse: refuse, call: answer}
			runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
				begin(b)
				f.forgot.Store(true)
				b.send(callOne)
				b.want(resultOne)
				var said []string
				for _, r := range b.requests("POST") {
					said = append(said, r.header.Get("Mcp-Session-Id")+" "+r.body)
				}
				again := strings.Replace(sayInitialize, `"id":0`, `"id":"mcp-refit-initialize-1"`, 1)
				want := []string{" " + sayInitialize, "s1 " + sayInitialized, "s1 " + callOne, " " + again, "s2 " + sayInitialized, "s2 " + callOne}
				if strings.Join(said, "\n") != strings.Join(want, "\n") {
					t.Errorf("the server was told\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
				}
				b.send(callTwo)
				b.want(resultTwo)
				b.silent()
			})
		})
	}
}

// TestRunURLLostSessionMany: calls that are turned away at once make one new session.
func TestRunURLLostSessionMany(t *testing.T) {
	f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }, call: answer}
	runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
		begin(b)
		f.forgot.Store(true)
		const n = 50
		for i := range n {
			b.send(strings.Replace(callOne, `"id":1`, fmt.Sprintf(`"id":%d`, i+1), 1))
		}
		for range n {
			if line := b.next(); !strings.Contains(line, `"result"`) {
				t.Errorf("a call got %s", line)
			}
		}
		if s := f.sessions.Load(); s != 2 {
			t.Errorf("%d sessions", s)
		}
	})
}

// TestRunURLLostSessionCalls: what was under way is not repeated. It is
// answered with an error, at once where an answer had begun.
func TestRunURLLostSessionCalls(t *testing.T) {
	f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }}
	var runs atomic.Int32
	f.call = func(w http.ResponseWriter, r *http.Request) {
		switch body := bodyOf(r); {
		case strings.Contains(body, `"id":1,`):
			runs.Add(1)
			writeEvents(w, ": it has begun\n\n")
			<-r.Context().Done()
		case strings.Contains(body, `"id":2,`):
			runs.Add(1)
			<-r.Context().Done()
		default:
			answer(w, r)
		}
	}
	runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
		begin(b)
		b.send(callOne, callTwo)
		synctest.Wait()
		f.forgot.Store(true)
		start := time.Now()
		b.send(strings.Replace(callOne, `"id":1`, `"id":3`, 1))
		b.wantError("1", "lost the session", "may have had its effect")
		b.want(strings.Replace(resultOne, `"id":1`, `"id":3`, 1))
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
		b.wantError("2", "lost the session")
		if d := time.Since(start); d != lostGrace {
			t.Errorf("it took %v, want %v", d, lostGrace)
		}
		if n := runs.Load(); n != 2 {
			t.Errorf("the calls ran %d times", n)
		}
	})
}

// TestRunURLLostForGood: where no new session helps, each call has its error.
func TestRunURLLostForGood(t *testing.T) {
	t.Run("another revision", func(t *testing.T) {
		f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }, call: answer, revision: "2025-06-18"}
		runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
			begin(b)
			f.forgot.Store(true)
			b.send(callOne)
			b.wantError("1", "lost the session", "2025-06-18", "start the session again")
			b.silent()
		})
	})
	t.Run("again at once", func(t *testing.T) {
		f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }}
		f.call = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }
		runBridge(t, &Proxy{}, f.ServeHTTP, func(t *testing.T, b *testBridge) {
			begin(b)
			b.send(callOne)
			b.wantError("1", "does not know the session that it has just made")
			if s := f.sessions.Load(); s != 2 {
				t.Errorf("%d sessions", s)
			}
		})
	})
	t.Run("no initialize", func(t *testing.T) {
		runBridge(t, &Proxy{}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
			if !noStream(w, r) {
				w.WriteHeader(404)
			}
		}), func(t *testing.T, b *testBridge) {
			b.send(callOne) // it never said initialize, so there is no session to be lost
			b.wantError("1", "404", "check that the URL")
		})
	})
	t.Run("the server is gone", func(t *testing.T) {
		var gone atomic.Bool
		f := &forgetful{call: answer}
		f.refuse = func(w http.ResponseWriter) {
			gone.Store(f.sessions.Load() == 1)
			w.WriteHeader(404)
		}
		runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			if gone.Load() {
				panic(http.ErrAbortHandler)
			}
			f.ServeHTTP(w, r)
		}, func(t *testing.T, b *testBridge) {
			begin(b)
			f.forgot.Store(true)
			b.send(callOne)
			b.wantError("1", "lost the session, and made no new one", "connection reset")
			b.send(callTwo)
			b.wantError("2", "connection reset")
			gone.Store(false) // it is back
			f.sessions.Store(5)
			b.send(strings.Replace(callOne, `"id":1`, `"id":3`, 1))
			b.want(strings.Replace(resultOne, `"id":1`, `"id":3`, 1))
		})
	})
}

// TestRunURLStream: the server's own stream, which is taken up again where it
// stopped.
func TestRunURLStream(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	var gets atomic.Int32
	runBridge(t, &Proxy{}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
		switch gets.Add(1) {
		case 1:
			writeEvents(w, "id: e1\ndata: "+changed+"\n\nid: e2\ndata: {\"jsonrpc\"") // breaks off in an event
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(503)
		case 4:
			writeEvents(w, "retry: 50\nid: e3\ndata: "+changed+"\n\n")
		case 5:
			writeEvents(w, "data: "+changed+"\n\n")
			<-r.Context().Done()
		default:
			t.Error("one GET too many")
		}
	}), func(t *testing.T, b *testBridge) {
		begin(b)
		for range 3 {
			b.want(changed)
		}
		b.silent()
		var last []string
		requests := b.requests("GET")
		for _, r := range requests {
			last = append(last, r.header.Get("Last-Event-Id"))
		}
		if got := strings.Join(last, ","); got != ",e1,e1,e1,e3" {
			t.Errorf("Last-Event-ID was %s", got)
		}
		if d := requests[1].at.Sub(requests[0].at); d < firstRetry {
			t.Errorf("the stream was asked for again after %v", d)
		}
		if a, b := requests[2].at.Sub(requests[1].at), requests[3].at.Sub(requests[2].at); b <= a {
			t.Errorf("no backing off: %v, then %v", a, b)
		}
		if d := requests[4].at.Sub(requests[3].at); d != 50*time.Millisecond {
			t.Errorf("the server's retry of 50 ms was taken for %v", d)
		}
	})
}

// TestRunURLNoStream: a server without a stream of its own is asked once.
func TestRunURLNoStream(t *testing.T) {
	for _, status := range []int{405, 404, 400, 200} {
		f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }, call: answer}
		runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				w.WriteHeader(status)
				return
			}
			f.ServeHTTP(w, r)
		}, func(t *testing.T, b *testBridge) {
			begin(b)
			time.Sleep(time.Hour)
			if n := len(b.requests("GET")); n != 1 {
				t.Errorf("%d: %d GETs", status, n)
			}
			b.send(callOne)
			b.want(resultOne)
			if s := f.sessions.Load(); s != 1 {
				t.Errorf("%d: %d sessions", status, s)
			}
		})
	}
}

// TestRunURLStreamLost: a 404 to the server's stream, once it has been open, is
// a lost session.
func TestRunURLStreamLost(t *testing.T) {
	f := &forgetful{refuse: func(w http.ResponseWriter) { w.WriteHeader(404) }, call: answer}
	runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != "GET":
			f.ServeHTTP(w, r)
		case r.Header.Get("Mcp-Session-Id") != "s1":
			writeEvents(w, ": open\n\n")
			<-r.Context().Done()
		case f.forgot.Load():
			w.WriteHeader(404)
		default:
			writeEvents(w, ": open\n\n")
			f.forgot.Store(true)
		}
	}, func(t *testing.T, b *testBridge) {
		begin(b)
		time.Sleep(time.Minute)
		b.send(callOne)
		b.want(resultOne)
		if s := f.sessions.Load(); s != 2 {
			t.Errorf("%d sessions", s)
		}
	})
}

// TestRunURLResume: the stream of a call that breaks off is taken up again
// where the server numbers its events (SEP-1699), as often as it takes.
func TestRunURLResume(t *testing.T) {
	progress := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}`, n)
	}
	t.Run("polling", func(t *testing.T) {
		var gets atomic.Int32
		runBridge(t, &Proxy{}, legacyServer("", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				writeEvents(w, "id: a0\nretry: 200\ndata:\n\n")
				return
			}
			last := r.Header.Get("Last-Event-Id")
			if last == "" {
				w.WriteHeader(405)
				return
			}
			n := gets.Add(1)
			if want := fmt.Sprint("a", n-1); last != want {
				t.Errorf("Last-Event-ID %s, want %s", last, want)
			}
			if n == 20 {
				writeEvents(w, "id: a20\ndata: "+resultOne+"\n\n")
				return
			}
			writeEvents(w, fmt.Sprintf("id: a%d\ndata: %s\n\n", n, progress(int(n))))
		}), func(t *testing.T, b *testBridge) {
			begin(b)
			start := time.Now()
			b.send(callOne)
			for n := 1; n < 20; n++ {
				b.want(progress(n))
			}
			b.want(resultOne)
			if d := time.Since(start); d != 20*200*time.Millisecond {
				t.Errorf("it took %v", d)
			}
		})
	})
	t.Run("broken connections", func(t *testing.T) {
		var gets atomic.Int32
		runBridge(t, &Proxy{}, legacyServer("", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				writeEvents(w, "id: a0\ndata: "+progress(0)+"\n\nid: a1\ndata: {\"half")
				panic(http.ErrAbortHandler)
			}
			switch last := r.Header.Get("Last-Event-Id"); {
			case last == "":
				w.WriteHeader(405)
			case last != "a0":
				t.Errorf("Last-Event-ID %s", last)
			case gets.Add(1) < maxResumes:
				panic(http.ErrAbortHandler)
			default:
				writeEvents(w, "id: a1\ndata: "+resultOne+"\n\n")
			}
		}), func(t *testing.T, b *testBridge) {
			begin(b)
			b.send(callOne)
			b.want(progress(0))
			b.want(resultOne)
		})
	})
	for _, tt := range []struct {
		name string
		get  http.HandlerFunc
		says string
	}{
		{"refused", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(405) }, "405"},
		{"the session is lost", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }, "404"},
		{"gone for good", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "could not be taken up again"},
		{"always overloaded", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }, "503"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runBridge(t, &Proxy{}, legacyServer("", func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					writeEvents(w, "id: a0\ndata:\n\n")
				case r.Header.Get("Last-Event-Id") == "":
					w.WriteHeader(405)
				default:
					tt.get(w, r)
				}
			}), func(t *testing.T, b *testBridge) {
				begin(b)
				b.send(callOne)
				b.wantError("1", tt.says)
				b.silent()
			})
		})
	}
}

// TestRunURLAnswerElsewhere: an answer may come on the server's own stream.
func TestRunURLAnswerElsewhere(t *testing.T) {
	answers := make(chan string)
	runBridge(t, &Proxy{}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(202)
			answers <- resultOne
			return
		}
		writeEvents(w, ": open\n\n")
		select {
		case a := <-answers:
			_, _ = io.WriteString(w, "data: "+a+"\n\n")
		case <-r.Context().Done():
			return
		}
		<-r.Context().Done()
	}), func(t *testing.T, b *testBridge) {
		answers = make(chan string)
		begin(b)
		b.send(callOne)
		b.want(resultOne)
	})
}
