package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A pipeListener is a listener in memory, so that what takes time over HTTP can
// be tested where time is not real.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// dial opens a connection that ends with the test.
func (l *pipeListener) dial(t *testing.T) *bufio.ReadWriter {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close() })
	l.conns <- far
	return bufio.NewReadWriter(bufio.NewReader(near), bufio.NewWriter(near))
}

// A roundTripper is a server without a network.
type roundTripper func(*http.Request) string

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	body := f(r)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// inMemory runs a test of a proxy whose two sides are in memory, and whose time
// is not real.
func inMemory(t *testing.T, server roundTripper, change func(*policy.Config), test func(t *testing.T, l *pipeListener)) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{Policy: testPolicy(t, change), Upstream: &url.URL{Scheme: "http", Host: "server.example", Path: "/mcp"}, Transport: server}
		l := &pipeListener{make(chan net.Conn), make(chan struct{})}
		s := &http.Server{Handler: p}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close() })
		test(t, l)
	})
}

// beginPost sends the header of a POST, and as much of its body as is given. It
// returns at once: a pipe holds nothing.
func beginPost(c *bufio.ReadWriter, length int, body string) {
	go func() {
		fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
		_ = c.Flush() // what did not get there is not answered
	}()
	synctest.Wait()
}

// answered reads the answer to a request.
func answered(t *testing.T, c *bufio.ReadWriter) (status int, body string) {
	t.Helper()
	res, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(b)
}

// A client that stops in the middle of a body is not waited for; one that is
// slow but goes on is, however long it takes.
func TestHTTPBodyStall(t *testing.T) {
	inMemory(t, func(*http.Request) string { return `{"jsonrpc":"2.0","id":3,"result":{}}` }, func(*policy.Config) {}, func(t *testing.T, l *pipeListener) {
		c, start := l.dial(t), time.Now()
		beginPost(c, len(callTool), callTool[:10])
		if status, body := answered(t, c); status != http.StatusRequestTimeout || !strings.Contains(body, "did not arrive in time") {
			t.Errorf("one that stopped: %d %s", status, body)
		}
		if took := time.Since(start); took != bodyStall {
			t.Errorf("given up after %v, want %v", took, bodyStall)
		}
		closes := func(what string, c *bufio.ReadWriter) {
			t.Helper()
			start := time.Now()
			if _, err := c.ReadByte(); err != io.EOF || time.Since(start) > bodyLinger+time.Second {
				t.Errorf("%s: the connection was closed after %v: %v", what, time.Since(start), err)
			}
		}
		closes("one that stopped", c)
		for name, head := range map[string]string{
			"one that is too large": "Content-Length: 999999999", "an encoding": "Content-Encoding: x\r\nContent-Length: 9",
			"a strange origin": "Origin: http://evil.example\r\nContent-Length: 9", "two sessions": "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\nTransfer-Encoding: chunked",
		} {
			c, start := l.dial(t), time.Now()
			if _, err := c.WriteString("POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\n\r\n"); err != nil || c.Flush() != nil {
				t.Fatal(err)
			}
			if status, _ := answered(t, c); status < 400 || time.Since(start) > bodyLinger {
				t.Errorf("%s, refused: %d after %v", name, status, time.Since(start))
			}
			closes(name, c)
		}

		c, start = l.dial(t), time.Now()
		beginPost(c, 10*steadyPiece+len(callTool), "")
		for range 10 {
			time.Sleep(bodyStall - time.Second)
			if _, err := c.WriteString(strings.Repeat(" ", steadyPiece)); err != nil || c.Flush() != nil {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
		}
		if _, err := c.WriteString(callTool); err != nil || c.Flush() != nil {
			t.Fatal(err)
		}
		if status, body := answered(t, c); status != http.StatusOK || !strings.Contains(body, `"result"`) {
			t.Errorf("a slow one: %d %s", status, body)
		}

		time.Sleep(2 * bodyStall) // the deadline was for the body alone
		beginPost(c, len(callTool), callTool)
		if status, body := answered(t, c); status != http.StatusOK {
			t.Errorf("the next on that connection: %d %s", status, body)
		}
	})
}

// A client that does not read a large answer does not keep the room that it takes.
func TestHTTPAnswerStall(t *testing.T) {
	const most = 300 * policy.KiB
	large := `{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", int(most)*2/3) + `"}`
	inMemory(t, func(*http.Request) string { return large }, func(c *policy.Config) { c.Limits.MaxMessage, c.Limits.MaxInflight = most, most }, func(t *testing.T, l *pipeListener) {
		deaf, slow := l.dial(t), l.dial(t)
		beginPost(deaf, len(callTool), callTool)
		time.Sleep(bodyStall + time.Second)
		beginPost(slow, len(callTool), callTool)
		start := time.Now()
		res, err := http.ReadResponse(slow.Reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the next one waited %v for room", took)
		}
		if _, err := io.ReadAll(deaf); err != nil && err != io.EOF {
			t.Errorf("the connection of one that does not read: %v", err)
		}
		for n := 0; n < len(large); {
			time.Sleep(bodyStall / 2)
			more, err := io.ReadFull(res.Body, make([]byte, copyBuffer))
			if n += more; err != nil && n < len(large) {
				t.Fatalf("one that reads slowly: %v after %d bytes", err, n)
			}
		}
		time.Sleep(2 * bodyStall)
		beginPost(slow, len(callTool), callTool)
		if status, body := answered(t, slow); status != http.StatusOK || body != large {
			t.Errorf("the next on that connection: %d, %d bytes", status, len(body))
		}
	})
}

// Messages share the bytes that may be in flight: beyond them one waits, and is
// refused if the others take too long.
func TestHTTPInflight(t *testing.T) {
	const most = 100 * policy.KiB
	large := strings.Replace(callTool, "{", "{"+strings.Repeat(" ", int(most)*2/3), 1)
	for name, c := range map[string]struct {
		hold   time.Duration // for how long the server keeps the first one waiting
		status int
		holds  string
		after  time.Duration
	}{
		"there is room in time":   {InflightWait / 2, http.StatusOK, `"result"`, InflightWait / 2},
		"there is no room so far": {2 * InflightWait, http.StatusServiceUnavailable, "limits.max-inflight", InflightWait},
	} {
		t.Run(name, func(t *testing.T) {
			hold := c.hold
			inMemory(t, func(*http.Request) string {
				time.Sleep(hold)
				hold = 0
				return `{"jsonrpc":"2.0","id":3,"result":{}}`
			}, func(c *policy.Config) { c.Limits.MaxMessage, c.Limits.MaxInflight = most, most }, func(t *testing.T, l *pipeListener) {
				start := time.Now()
				first, second := l.dial(t), l.dial(t)
				beginPost(first, len(large), large)
				beginPost(second, len(large), large)
				go func() {
					if status, body := answered(t, first); status != http.StatusOK || !strings.Contains(body, `"result"`) {
						t.Errorf("the first: %d %s", status, body)
					}
				}()
				if status, body := answered(t, second); status != c.status || !strings.Contains(body, c.holds) {
					t.Errorf("the second: %d %s", status, body)
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("the second was answered after %v, want %v", took, c.after)
				}
				time.Sleep(c.hold)
				third := l.dial(t)
				beginPost(third, len(large), large)
				if status, _ := answered(t, third); status != http.StatusOK {
					t.Errorf("the room was not given back: %d", status)
				}
			})
		})
	}
}
