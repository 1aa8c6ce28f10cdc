package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sseServer speaks HTTP+SSE (2024-11-05), one stream at a time.
type sseServer struct {
	endpoint string
	refusal  int
	out      chan string
	ends     chan bool
	streams  atomic.Int32
}

func (s *sseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/mcp":
		s.streams.Add(1)
		writeEvents(w, ": hello\r\n\r\nevent: endpoint\r\ndata: "+s.endpoint+"\r\n\r\n")
		for {
			select {
			case m := <-s.out:
				_, _ = io.WriteString(w, "event: message\ndata: "+m+"\n\n")
			case <-s.ends:
				return
			case <-r.Context().Done():
				return
			}
		}
	case r.Method == http.MethodPost && r.URL.Path == "/messages":
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "Accepted")
		switch body := bodyOf(r); {
		case strings.Contains(body, `"method":"initialize"`):
			s.out <- strings.Replace(initResult, `"id":0`, `"id":`+idOf(body), 1)
		case strings.Contains(body, "slow"):
		case strings.Contains(body, `"id":`):
			s.out <- strings.Replace(resultOne, `"id":1`, `"id":`+idOf(body), 1)
		}
	default:
		w.WriteHeader(s.refusal)
	}
}

// TestRunURLOld: where a POST of initialize is refused, HTTP+SSE is tried.
func TestRunURLOld(t *testing.T) {
	for _, refusal := range []int{400, 404, 405} {
		s := &sseServer{endpoint: "/messages?sid=1", refusal: refusal}
		runBridge(t, &Proxy{Header: http.Header{"X-Key": {"k"}}}, s.ServeHTTP, func(t *testing.T, b *testBridge) {
			s.out, s.ends = make(chan string), make(chan bool)
			begin(b)
			b.send(callOne)
			b.want(resultOne)
			s.out <- notification
			b.want(notification)
			for _, r := range b.requests("POST") {
				if r.header.Get("X-Key") != "k" {
					t.Errorf("a request lacks the user's header: %v", r.header)
				}
			}
			b.in.Close()
			<-b.ended
			if n := len(b.requests("DELETE")); n != 0 {
				t.Error("there is no session to be deleted")
			}
		})
	}
}

// TestRunURLOldBreaks: without its stream the session is gone. The calls under
// way are told so, and the next message makes a new one.
func TestRunURLOldBreaks(t *testing.T) {
	s := &sseServer{endpoint: "http://server.example/messages", refusal: 405}
	runBridge(t, &Proxy{}, s.ServeHTTP, func(t *testing.T, b *testBridge) {
		s.out, s.ends = make(chan string), make(chan bool)
		begin(b)
		b.send(strings.Replace(callOne, `"t"`, `"slow"`, 1))
		synctest.Wait()
		s.ends <- true
		b.wantError("1", "lost the session", "may have had its effect")
		b.silent()
		b.send(callTwo)
		b.want(resultTwo)
		if n := s.streams.Load(); n != 2 {
			t.Errorf("%d streams", n)
		}
		posts := b.requests("POST")
		if again := posts[len(posts)-3].body; !strings.Contains(again, "mcp-refit-initialize-1") {
			t.Errorf("the session was not made anew: %s", again)
		}
	})
}

// TestRunURLNotOld: what is not HTTP+SSE after all leaves the first refusal.
func TestRunURLNotOld(t *testing.T) {
	tests := []struct {
		name string
		get  http.HandlerFunc
		body string
		says string
		gets int
	}{
		{"no GET", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(405) }, "", "404", 1},
		{"a stream that ends", func(w http.ResponseWriter, r *http.Request) { writeEvents(w, "data: {}\n\n") }, "", "404", 1},
		{"a stream without an endpoint", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, ": x\n\n")
			<-r.Context().Done()
		}, "", "404", 1},
		{"an endpoint elsewhere", func(w http.ResponseWriter, r *http.Request) {
			writeEvents(w, "event: endpoint\ndata: https://evil.example/messages\n\n")
			<-r.Context().Done()
		}, "", "404", 1},
		{"an error of the modern era", nil, `{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"use 2026-07-28"}}`, "use 2026-07-28", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					tt.get(w, r)
					return
				}
				writeStatus(w, 404, "application/json", tt.body)
			}, func(t *testing.T, b *testBridge) {
				start := time.Now()
				b.send(sayInitialize)
				b.wantError("0", tt.says)
				if d := time.Since(start); d > endpointWait {
					t.Errorf("it took %v", d)
				}
				if n := len(b.requests("GET")); n != tt.gets {
					t.Errorf("%d GETs, want %d", n, tt.gets)
				}
				for _, r := range b.requests("POST") {
					if r.path != "/mcp" {
						t.Errorf("something was sent to %s", r.path)
					}
				}
			})
		})
	}
}
