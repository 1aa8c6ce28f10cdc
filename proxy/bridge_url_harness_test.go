package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A memoryTransport carries requests to a handler without a network, so that a
// test can run on synctest's clock. A handler that panics with
// http.ErrAbortHandler breaks the connection off, and one that panics with an
// error of package net fails with that.
type memoryTransport struct {
	handler http.Handler
	dial    func(context.Context) error // before the request leaves
	seen    func(seenRequest)
}

var errReset = errors.New("connection reset by peer")

func (m *memoryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	in := req.Clone(ctx)
	in.Body = http.NoBody
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		in.Body = io.NopCloser(bytes.NewReader(body))
	}
	if err := m.dial(ctx); err != nil {
		return nil, err
	}
	m.seen(seenRequest{req.Method, req.URL.Path, string(body), req.Header, time.Now()})
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	r, w := io.Pipe()
	out := &memoryWriter{header: make(http.Header), w: w, begun: make(chan int, 1), failed: make(chan *net.OpError, 1)}
	go func() {
		defer func() {
			if failed := recover(); failed != nil {
				err, _ := failed.(*net.OpError)
				w.CloseWithError(errReset)
				out.failed <- err
				out.begun <- 0
				return
			}
			out.WriteHeader(http.StatusOK)
			w.Close()
		}()
		m.handler.ServeHTTP(out, in)
	}()
	context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case status := <-out.begun:
		if status == 0 {
			if err := <-out.failed; err != nil {
				return nil, err
			}
			return nil, errReset
		}
		return &http.Response{
			StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)),
			Header: out.header.Clone(), Body: r, ContentLength: -1, Request: req,
		}, nil
	}
}

type memoryWriter struct {
	header http.Header
	w      *io.PipeWriter
	begun  chan int
	failed chan *net.OpError
	once   sync.Once
}

func (m *memoryWriter) Header() http.Header { return m.header }
func (m *memoryWriter) Flush()              {}
func (m *memoryWriter) WriteHeader(status int) {
	m.once.Do(func() { m.begun <- status })
}
func (m *memoryWriter) Write(b []byte) (int, error) {
	m.WriteHeader(http.StatusOK)
	return m.w.Write(b)
}

// A testBridge is RunURL between a test that plays the client and a handler
// that plays the server.
type testBridge struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *io.PipeReader
	lines chan string
	ended chan error
	stop  context.CancelFunc
	dial  func(context.Context) error // connects to the server; nil: at once

	mu   sync.Mutex
	seen []seenRequest
}

type seenRequest struct {
	method, path, body string
	header             http.Header
	at                 time.Time
}

// runBridge runs a test in a bubble of synctest, and sees that nothing is left
// of the bridge behind it.
func runBridge(t *testing.T, p *Proxy, h http.HandlerFunc, test func(t *testing.T, b *testBridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &testBridge{t: t, lines: make(chan string, 1000), ended: make(chan error, 1)}
		p.Upstream = &url.URL{Scheme: "http", Host: "server.example", Path: "/mcp"}
		dial := func(ctx context.Context) error {
			if b.dial == nil {
				return nil
			}
			return b.dial(ctx)
		}
		p.Transport = &memoryTransport{h, dial, func(r seenRequest) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.seen = append(b.seen, r)
		}}
		fromClient, in := io.Pipe()
		out, toClient := io.Pipe()
		b.in, b.out = in, out
		ctx, stop := context.WithCancel(t.Context())
		b.stop = stop
		go func() {
			b.ended <- p.RunURL(ctx, Stream{R: fromClient, W: toClient})
			toClient.Close()
		}()
		go func() {
			defer close(b.lines)
			scanner := bufio.NewScanner(out)
			scanner.Buffer(nil, 1<<26)
			for scanner.Scan() {
				b.lines <- scanner.Text()
			}
		}()
		test(t, b)
		in.Close()
		for range b.lines {
		}
		stop()
		synctest.Wait()
	})
}

func (b *testBridge) send(messages ...string) {
	for _, m := range messages {
		if _, err := io.WriteString(b.in, m+"\n"); err != nil {
			b.t.Error("send: ", err)
		}
	}
}

// next is the next line that the client gets.
func (b *testBridge) next() string {
	b.t.Helper()
	line, ok := <-b.lines
	if !ok {
		b.t.Fatal("the bridge has ended")
	}
	return line
}

// want checks the next line.
func (b *testBridge) want(line string) {
	b.t.Helper()
	if got := b.next(); got != line {
		b.t.Errorf("the client got\n%s\nwant\n%s", got, line)
	}
}

// wantError checks that the next line answers id with an error that says all of this.
func (b *testBridge) wantError(id string, says ...string) {
	b.t.Helper()
	got := b.next()
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":{`) {
		b.t.Errorf("the client got\n%.200s\nwant an error for %s", got, id)
	}
	for _, s := range says {
		if !strings.Contains(got, s) {
			b.t.Errorf("the error\n%.500s\ndoes not say %q", got, s)
		}
	}
}

// silent checks that nothing has come to the client.
func (b *testBridge) silent() {
	b.t.Helper()
	synctest.Wait()
	select {
	case line := <-b.lines:
		b.t.Errorf("the client got %s", line)
	default:
	}
}

// requests are those that the server has seen, of an HTTP method.
func (b *testBridge) requests(method string) []seenRequest {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []seenRequest
	for _, r := range b.seen {
		if r.method == method {
			out = append(out, r)
		}
	}
	return out
}

const (
	sayInitialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	sayInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	initResult     = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`
	callOne        = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`
	resultOne      = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	callTwo        = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`
	resultTwo      = `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`
	notification   = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
)

func begin(b *testBridge) {
	b.send(sayInitialize)
	b.want(initResult)
	b.send(sayInitialized)
	synctest.Wait()
}

// legacyServer answers what begins a session, and leaves the rest to a handler.
func legacyServer(session string, rest http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch body := bodyOf(r); {
		case r.Method == http.MethodDelete:
		case strings.Contains(body, `"method":"initialize"`):
			if session != "" {
				w.Header().Set("Mcp-Session-Id", session)
			}
			writeJSON(w, strings.Replace(initResult, `"id":0`, `"id":`+idOf(body), 1))
		case strings.Contains(body, `"notifications/initialized"`):
			w.WriteHeader(http.StatusAccepted)
		default:
			rest(w, r)
		}
	}
}

func bodyOf(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// idOf is the id of a message that begins like those above.
func idOf(body string) string {
	_, rest, _ := strings.Cut(body, `"id":`)
	id, _, _ := strings.Cut(rest, ",")
	return id
}

func writeJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

func writeStatus(w http.ResponseWriter, status int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func writeEvents(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
}

// noStream answers the GET of a server that has no stream of its own.
func noStream(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return true
	}
	return false
}

// defaultPolicy is what is in force without a policy file.
func defaultPolicy(t *testing.T) func() *policy.Policy {
	t.Helper()
	p, err := policy.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	return func() *policy.Policy { return p }
}
