package proxy

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRunURLHeaders: what each request of a legacy session carries.
func TestRunURLHeaders(t *testing.T) {
	p := &Proxy{Header: http.Header{"X-Key": {"k"}}}
	server := legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
		if !noStream(w, r) {
			writeJSON(w, resultOne)
		}
	})
	var seen []seenRequest
	runBridge(t, p, server, func(t *testing.T, b *testBridge) {
		begin(b)
		b.send(callOne)
		b.want(resultOne)
		b.in.Close()
		<-b.ended
		for _, m := range []string{"POST", "GET", "DELETE"} {
			seen = append(seen, b.requests(m)...)
		}
	})
	want := []struct{ method, session, version, accept string }{
		{"POST", "", "", "application/json, text/event-stream"},
		{"POST", "s1", "2025-11-25", "application/json, text/event-stream"},
		{"POST", "s1", "2025-11-25", "application/json, text/event-stream"},
		{"GET", "s1", "2025-11-25", "text/event-stream"},
		{"DELETE", "s1", "2025-11-25", ""},
	}
	if len(seen) != len(want) {
		t.Fatalf("%d requests, want %d", len(seen), len(want))
	}
	for i, w := range want {
		h := seen[i].header
		if seen[i].method != w.method || h.Get("Mcp-Session-Id") != w.session || h.Get("Mcp-Protocol-Version") != w.version || h.Get("Accept") != w.accept {
			t.Errorf("request %d: %s %v, want %+v", i, seen[i].method, h, w)
		}
		if h.Get("X-Key") != "k" || h.Get("Accept-Encoding") != "identity" {
			t.Errorf("request %d lacks X-Key or Accept-Encoding: %v", i, h)
		}
		if w.method == "POST" && h.Get("Content-Type") != "application/json" {
			t.Errorf("request %d is not of JSON: %v", i, h)
		}
		for name := range h {
			if strings.HasPrefix(name, "Mcp-Method") || strings.HasPrefix(name, "Mcp-Name") {
				t.Errorf("request %d has a header of the modern era: %v", i, h)
			}
		}
	}
}

// TestRunURLAnswers: every form that an answer may have, and that its bytes stay.
func TestRunURLAnswers(t *testing.T) {
	odd := `{"jsonrpc":"2.0","id":1,"result":{"n":9007199254740993,"f":1.50,"x":"<\u00e9>","_meta":{"a/b":1},"z":1,"a":2}}`
	tests := []struct {
		name   string
		server http.HandlerFunc
		want   []string
	}{
		{"JSON", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, odd) }, []string{odd}},
		{"JSON with parameters", func(w http.ResponseWriter, r *http.Request) {
			writeStatus(w, 200, "Application/JSON; charset=utf-8", odd)
		}, []string{odd}},
		{"no content type", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, odd) }, []string{odd}},
		{"several lines", func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"result\":{}}\n")
		}, []string{`{"jsonrpc":"2.0",  "id":1, "result":{}} `}},
		{"gzip", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, odd)
			z.Close()
		}, []string{odd}},
		{"events", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: "+notification+"\n\nevent: other\ndata: {}\n\ndata: "+odd+"\n\n")
		}, []string{notification, odd}},
		{"an event of several lines", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, "data: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":1,\r\ndata: \"result\":{}}\r\n\r\n")
		}, []string{`{"jsonrpc":"2.0", "id":1, "result":{}}`}},
		{"a stream that stays open", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, "data: "+odd+"\n\n")
			<-r.Context().Done()
		}, []string{odd}},
		{"twice in a stream", func(w http.ResponseWriter, r *http.Request) { // both pass, as on every other way
			writeEvents(w, "data: "+odd+"\n\ndata: "+odd+"\n\n")
		}, []string{odd, odd}},
		{"a text of which a byte comes every second", func(w http.ResponseWriter, r *http.Request) {
			for _, b := range []byte(odd) {
				time.Sleep(time.Second)
				writeJSON(w, string(b))
			}
		}, []string{odd}},
		{"a stream of which a byte comes every second", func(w http.ResponseWriter, r *http.Request) {
			for _, b := range []byte("data: " + odd + "\n\n") {
				time.Sleep(time.Second)
				writeEvents(w, string(b))
			}
		}, []string{odd}},
		{"an error with a status", func(w http.ResponseWriter, r *http.Request) {
			writeStatus(w, 400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"n":1.0}}}`)
		}, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"n":1.0}}}`}},
		{"an error without an id", func(w http.ResponseWriter, r *http.Request) {
			writeStatus(w, 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}`)
		}, []string{`{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":1}`}},
		{"a batch", func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, `[`+notification+`,`+resultOne+`]`)
		}, []string{`[` + notification + `,` + resultOne + `]`}},
		{"another address on the same origin", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				w.Header().Set("Location", "/mcp/")
				w.WriteHeader(http.StatusTemporaryRedirect)
				return
			}
			writeJSON(w, odd)
		}, []string{odd}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runBridge(t, &Proxy{}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
				if !noStream(w, r) {
					tt.server(w, r)
				}
			}), func(t *testing.T, b *testBridge) {
				begin(b)
				b.send(callOne)
				for _, w := range tt.want {
					b.want(w)
				}
				b.silent()
			})
		})
	}
}

// TestRunURLFaults: whatever a server does, the call is answered, and the error
// says what to look at.
func TestRunURLFaults(t *testing.T) {
	tests := []struct {
		name   string
		server http.HandlerFunc
		says   []string
	}{
		{"breaks off before it answers", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"connection reset", "check that it is running"}},
		{"breaks off in a text", func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, resultOne[:20])
			panic(http.ErrAbortHandler)
		}, []string{"connection reset"}},
		{"a text that breaks off", func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, resultOne[:20])
			panic(http.ErrAbortHandler)
		}, []string{"broke off", "connection reset", "may have had its effect"}},
		{"half a text", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, resultOne[:20]) }, []string{"is no message"}},
		{"no message", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, `{"ok":true}`) }, []string{"is no message"}},
		{"another id", func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, `{"jsonrpc":"2.0","method":"notifications/x"}`)
		}, nil},
		{"nothing", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, "") }, []string{"is empty"}},
		{"null", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, "null\n") }, []string{"is empty"}},
		{"202", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(202) }, []string{"202", "no stream"}},
		{"204", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, []string{"204", "no stream"}},
		{"a page", func(w http.ResponseWriter, r *http.Request) { writeStatus(w, 200, "text/html", "<p>") }, []string{"text/html", "check that the URL"}},
		{"an encoding that can't be undone", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "compress")
			writeJSON(w, "x")
		}, []string{"compress"}},
		{"a stream without the answer", func(w http.ResponseWriter, r *http.Request) { writeEvents(w, ": x\n\n") }, []string{"ended the stream", "may have had its effect"}},
		{"a stream that breaks off", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, "data: "+resultOne)
			panic(http.ErrAbortHandler)
		}, []string{"broke off", "may have had its effect"}},
		{"500", func(w http.ResponseWriter, r *http.Request) { writeStatus(w, 500, "text/plain", "out of\nluck") }, []string{"500", "out of", "see its log"}},
		{"503", func(w http.ResponseWriter, r *http.Request) { writeStatus(w, 503, "text/html", "<p>secret") }, []string{"503"}},
		{"429", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) }, []string{"429", "wait"}},
		{"405", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(405) }, []string{"405", "check that the URL"}},
		{"401", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, []string{"401", "--token-env", "-H 'Authorization: Bearer", "--no-login"}},
		{"403", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403) }, []string{"403", "check what the credentials allow"}},
		{"a redirect to elsewhere", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://evil.example/mcp?x=1")
			w.WriteHeader(307)
		}, []string{"redirects to", "https://evil.example/mcp", "where nothing is sent"}},
		{"a redirect in a circle", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/mcp")
			w.WriteHeader(308)
		}, []string{"again and again"}},
		{"a redirect to nowhere", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(302) }, []string{"without saying where"}},
		{"too large a text", func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, `{"jsonrpc":"2.0","id":1,"result":{"x":"`+strings.Repeat("x", 5000)+`"}}`)
		}, []string{"larger than the largest message allowed, 4KiB"}},
		{"too large an event", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, `data: {"jsonrpc":"2.0","id":1,"result":{"x":"`+strings.Repeat("x", 50000)+"\"}}\n\n")
		}, []string{"larger than the largest message allowed, 4KiB"}},
		{"a page for an answer", func(w http.ResponseWriter, r *http.Request) { writeStatus(w, 200, "text/plain", resultOne) }, []string{"text/plain", "check that the URL"}},
		{"another id than asked for", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, "data: "+strings.Replace(resultOne, "1", "99", 1)+"\n\n")
		}, []string{"ended the stream", "may have had its effect"}},
	}
	small := defaultPolicy(t)
	small().Config.Limits.MaxMessage = 4 << 10
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runBridge(t, &Proxy{Policy: small}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
				switch {
				case noStream(w, r):
				case strings.Contains(bodyOf(r), `"id":2,`):
					writeJSON(w, resultTwo)
				default:
					tt.server(w, r)
				}
			}), func(t *testing.T, b *testBridge) {
				begin(b)
				b.send(callOne)
				if strings.HasPrefix(tt.name, "another id") {
					b.next() // it is a message, so it passes
				}
				b.wantError("1", tt.says...)
				b.send(callTwo) // and the session goes on
				b.want(resultTwo)
			})
		})
	}
}

// TestRunURLCredentialsRefused: with credentials given, the error is about them.
func TestRunURLCredentialsRefused(t *testing.T) {
	p := &Proxy{Header: http.Header{"Authorization": {"Bearer hunter2"}}}
	runBridge(t, p, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, func(t *testing.T, b *testBridge) {
		b.send(sayInitialize)
		line := b.next()
		for _, s := range []string{`"id":0,"error"`, "refuses the credentials", "--token-env", "expired"} {
			if !strings.Contains(line, s) {
				t.Errorf("%s does not say %q", line, s)
			}
		}
		if strings.Contains(line, "hunter2") {
			t.Errorf("the token is told: %s", line)
		}
	})
}

// TestRunURLNoDeadline: a call waits for a human as long as he takes, and
// initialize for a server that never answers does not.
func TestRunURLNoDeadline(t *testing.T) {
	const human = 24 * time.Hour
	runBridge(t, &Proxy{}, legacyServer("", func(w http.ResponseWriter, r *http.Request) {
		if !noStream(w, r) {
			time.Sleep(human)
			writeJSON(w, resultOne)
		}
	}), func(t *testing.T, b *testBridge) {
		begin(b)
		start := time.Now()
		b.send(callOne)
		b.want(resultOne)
		if d := time.Since(start); d != human {
			t.Errorf("it took %v", d)
		}
	})
	runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, b *testBridge) {
		start := time.Now()
		b.send(sayInitialize)
		b.wantError("0", "did not answer initialize within 1m0s")
		if d := time.Since(start); d != handshakeTimeout {
			t.Errorf("it took %v", d)
		}
	})
}

// TestRunURLOrder: what waits for what.
func TestRunURLOrder(t *testing.T) {
	release := make(map[string]chan bool)
	for _, m := range []string{"initialize", "initialized", "list_changed", `"id":1,`} {
		release[m] = nil
	}
	var order []string
	server := func(w http.ResponseWriter, r *http.Request) {
		if noStream(w, r) {
			return
		}
		body := bodyOf(r)
		for m, c := range release {
			if c != nil && strings.Contains(body, m+`"`) || c != nil && strings.Contains(body, m) && strings.HasPrefix(m, `"`) {
				<-c
			}
		}
		switch {
		case strings.Contains(body, `"method":"initialize"`):
			writeJSON(w, initResult)
		case strings.Contains(body, `"id":`):
			writeJSON(w, strings.Replace(resultOne, `"id":1`, `"id":`+idOf(body), 1))
		default:
			w.WriteHeader(202)
		}
	}
	posts := func(b *testBridge) []string {
		order = nil
		for _, r := range b.requests("POST") {
			order = append(order, r.body)
		}
		return order
	}
	runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) { server(w, r) }, func(t *testing.T, b *testBridge) {
		for m := range release {
			release[m] = make(chan bool)
		}
		b.send(sayInitialize, sayInitialized, callOne, callTwo, notification)
		if got := posts(b); !slices.Equal(got, []string{sayInitialize}) {
			t.Errorf("before initialize is answered: %q", got)
		}
		close(release["initialize"])
		if got := posts(b); !slices.Equal(got, []string{sayInitialize, sayInitialized}) {
			t.Errorf("before notifications/initialized is acknowledged: %q", got)
		}
		close(release["initialized"])
		got := posts(b)
		slices.Sort(got[2:4])
		if !slices.Equal(got, []string{sayInitialize, sayInitialized, callOne, callTwo, notification}) {
			t.Errorf("calls run at once, and the notification behind them: %q", got)
		}
		b.want(initResult)
		b.want(resultTwo) // the first one is still under way
		b.send(strings.Replace(callTwo, `"id":2`, `"id":3`, 1))
		if n := len(posts(b)); n != 5 {
			t.Errorf("a call overtook the notification: %d", n)
		}
		time.Sleep(ackWait)
		if n := len(posts(b)); n != 6 {
			t.Errorf("a call waits for a notification for longer than %v: %d", ackWait, n)
		}
		b.want(strings.Replace(resultTwo, `"id":2`, `"id":3`, 1))
		close(release["list_changed"])
		close(release[`"id":1,`])
		b.want(resultOne)
	})
}

// TestRunURLServerAsks: requests of the server come on the call's stream, and
// the client's answers are posts of their own.
func TestRunURLServerAsks(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`
	const answer = `{"jsonrpc":"2.0","id":0,"result":{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}}`
	answered := make(chan bool)
	runBridge(t, &Proxy{Policy: defaultPolicy(t)}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
		switch body := bodyOf(r); {
		case noStream(w, r):
		case body == answer:
			w.WriteHeader(202)
			close(answered)
		default:
			writeEvents(w, "data: "+ask+"\n\n")
			<-answered
			_, _ = io.WriteString(w, "data: "+resultOne+"\n\n")
		}
	}), func(t *testing.T, b *testBridge) {
		answered = make(chan bool)
		begin(b)
		b.send(callOne)
		b.want(ask)
		b.send(answer)
		b.want(resultOne)
	})
}

// TestRunURLCancel: before 2026-07-28 a cancellation is told, since then the
// stream is closed. Either way nothing is left open.
func TestRunURLCancel(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	var gone time.Time
	server := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case noStream(w, r):
		case strings.Contains(bodyOf(r), "cancelled"):
			w.WriteHeader(202)
		default:
			writeEvents(w, ": open\n\n")
			<-r.Context().Done()
			gone = time.Now()
		}
	}
	for _, say := range []string{cancel, "[" + notification + "," + cancel + "]"} {
		gone = time.Time{}
		runBridge(t, &Proxy{}, legacyServer("s1", server), func(t *testing.T, b *testBridge) {
			begin(b)
			b.send(callOne, say)
			posts := b.requests("POST")
			if got := posts[len(posts)-1].body; got != say {
				t.Errorf("the last post is %s", got)
			}
			time.Sleep(afterAnswer)
			synctest.Wait()
			if gone.IsZero() {
				t.Errorf("after %s, the stream of a call that was given up stays open", say)
			}
			b.silent()
		})
	}
	gone = time.Time{}
	runBridge(t, &Proxy{}, server, func(t *testing.T, b *testBridge) {
		b.send(modern(1, "tools/call", `"name":"t"`), cancel)
		synctest.Wait()
		if !gone.Equal(time.Now()) {
			t.Error("the stream was not closed at once")
		}
		if n := len(b.requests("POST")); n != 1 {
			t.Errorf("%d posts, want the call alone", n)
		}
		b.silent()
	})
}

// TestRunURLEnd: calls under way when the client leaves have limits.grace.
func TestRunURLEnd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes time.Duration
		want  string
	}{
		{"in time", time.Second, resultOne},
		{"too late", time.Minute, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"mcp-refit: this proxy was ended before the server answered"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runBridge(t, &Proxy{Policy: defaultPolicy(t)}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
				if noStream(w, r) {
					return
				}
				select {
				case <-time.After(tt.takes):
					writeJSON(w, resultOne)
				case <-r.Context().Done():
				}
			}), func(t *testing.T, b *testBridge) {
				begin(b)
				b.send(callOne)
				b.in.Close()
				b.want(tt.want)
				if err := <-b.ended; err != nil {
					t.Error(err)
				}
				if n := len(b.requests("DELETE")); n != 1 {
					t.Errorf("%d DELETEs", n)
				}
			})
		})
	}
}
