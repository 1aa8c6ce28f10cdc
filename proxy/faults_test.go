package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

const callResult = `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`

// httpFaults is each way in which a server over HTTP fails in the middle of a
// call, and what its client gets. What a client on stdio gets is in
// TestRunURLFaults; clients that fail are in faults_client_test.go and
// http_bounds_test.go.
var httpFaults = []struct {
	name   string
	fault  func(w http.ResponseWriter, r *http.Request)
	status int
	gets   string
}{
	{"it resets the connection", func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}, 502, `"id":3,"error":{"code":-32603,"message":"mcp-refit: no answer from the server at http://`},
	{"it hangs up before it answers", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 502, `"id":3,"error":{"code":-32603,"message":"mcp-refit: no answer from the server at http://`},
	{"half a message, then it is gone", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(callResult)))
		answerJSON(w, callResult[:20])
		say(w, "")
		panic(http.ErrAbortHandler)
	}, 502, `"id":3,"error"`},
	{"half a message, and that is all", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, callResult[:20]) }, 200, `"id":3,"error":{"code":-32603,"message":"mcp-refit: the server's answer was not passed on: it is not valid JSON`},
	{"a byte at a time", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, b := range []byte(callResult) {
			say(w, string(b))
		}
	}, 200, callResult},
	{"a stream a byte at a time", func(w http.ResponseWriter, _ *http.Request) {
		startEvents(w)
		for _, b := range []byte("data: " + callResult + "\n\n") {
			say(w, string(b))
		}
	}, 200, "data: " + callResult + "\n\n"},
	{"a stream that breaks off", func(w http.ResponseWriter, _ *http.Request) {
		startEvents(w)
		say(w, ("data: " + callResult)[:20])
		panic(http.ErrAbortHandler)
	}, 200, `data: {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"` + textBrokeOff},
	{"it answers twice", func(w http.ResponseWriter, _ *http.Request) {
		startEvents(w)
		say(w, "data: "+callResult+"\n\ndata: "+callResult+"\n\n")
	}, 200, "data: " + callResult + "\n\ndata: " + callResult + "\n\n"},
	{"an answer to another request", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, strings.Replace(callResult, "3", "99", 1))
	}, 200, strings.Replace(callResult, "3", "99", 1)},
	{"a page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>")
	}, 200, `"id":3,"error":{"code":-32603,"message":"mcp-refit: the server's answer was not passed on: it is neither JSON nor an event stream`},
}

func TestFaultsOfAServer(t *testing.T) {
	for _, tt := range httpFaults {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, faulting(tt.fault))
			end := f.meanwhile(t)
			status, got := f.post(t, callTool, nil)
			if status != tt.status || !strings.Contains(got, tt.gets) {
				t.Errorf("the client gets %d %s, want %d %s", status, got, tt.status, tt.gets)
			}
			end()
		})
	}
}

// A server that never answers holds up its own client alone, and is let go with it.
func TestFaultsOfASilentServer(t *testing.T) {
	asked, left := make(chan bool), make(chan bool)
	f := serve(t, faulting(func(_ http.ResponseWriter, r *http.Request) {
		asked <- true
		<-r.Context().Done()
		left <- true
	}))
	near, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	end := f.meanwhile(t)
	fmt.Fprintf(near, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(callTool), callTool)
	<-asked
	f.well(t)
	_ = near.Close()
	<-left
	end()
}

// faulting is a server that fails at tools/call and answers all else.
func faulting(fault http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body := bodyOf(r); !strings.Contains(body, "tools/call") {
			answerJSON(w, `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`)
			return
		}
		fault(w, r)
	}
}

// well checks that another client feels nothing.
func (f front) well(t *testing.T) {
	t.Helper()
	if status, got := f.post(t, listTools, in("another")); status != 200 || got != `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}` {
		t.Errorf("another client got %d %s", status, got)
	}
}
