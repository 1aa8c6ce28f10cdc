package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
)

// A client that shuts down its write side and reads on. net/http takes that for
// a client that is gone, and so the server is let go at once; the client is told
// so. A bare ReverseProxy answers the same 502 without a word.
func TestFaultsOfAHalfClosedClient(t *testing.T) {
	noLeak(t)
	asked, left := make(chan bool), make(chan bool)
	hold := func(_ http.ResponseWriter, r *http.Request) {
		asked <- true
		<-r.Context().Done()
		left <- true
	}
	const gaveUp = `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"` + textLeft + `"}}`
	for _, tt := range []struct {
		name   string
		fault  http.HandlerFunc // of the server
		say    string           // as much of the call as is sent
		status int
		gets   string
		breaks bool // the answer, in its middle
	}{
		{"in the middle of its request", nil, callTool[:20], 400, `"id":null,"error":{"code":-32600,"message":"mcp-refit: the body of the request could not be read"`, false},
		{"while it waits", hold, callTool, 502, gaveUp, false},
		{"in the middle of its answer", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			say(w, callResult[:20])
			hold(w, r)
		}, callTool, 502, gaveUp, false},
		{"in the middle of a stream", func(w http.ResponseWriter, r *http.Request) {
			startEvents(w)
			say(w, ": here\n\n")
			hold(w, r)
		}, callTool, 200, ": here\n\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, faulting(tt.fault))
			end := f.meanwhile(t)
			status, got, err := halfClose(t, f.url, tt.say, func(in *bufio.Reader) {
				if tt.fault != nil {
					<-asked
				}
				if tt.breaks {
					_, _ = in.Peek(1) // the answer has begun
				}
			})
			if status != tt.status || !strings.Contains(got, tt.gets) || (err != nil) != tt.breaks {
				t.Errorf("the client gets %d %s, %v, want %d %s", status, got, err, tt.status, tt.gets)
			}
			if tt.fault != nil {
				<-left
			}
			end()
		})
	}
	t.Run("of a bare ReverseProxy", func(t *testing.T) {
		f := serve(t, faulting(hold))
		up := *f.Upstream
		up.Path = ""
		transport := NewTransport()
		defer transport.CloseIdleConnections()
		bare := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&up) }, Transport: transport, ErrorLog: discardLog()})
		defer bare.Close()
		if status, got, err := halfClose(t, bare.URL, callTool, func(*bufio.Reader) { <-asked }); status != http.StatusBadGateway || got != "" || err != nil {
			t.Errorf("%d %q, %v", status, got, err)
		}
		<-left
	})
}

// halfClose sends a call, or the beginning of one, shuts down the write side
// once it is to, and reads on until the connection ends.
func halfClose(t *testing.T, to, body string, once func(in *bufio.Reader)) (status int, got string, err error) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(callTool), body)
	in := bufio.NewReader(c)
	once(in)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("behind the answer stands %q", rest)
	}
	return res.StatusCode, string(b), err
}
