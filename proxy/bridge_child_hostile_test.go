//go:build unix

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// hostileArg makes the test binary an MCP server that fails as it is told, at
// the method that its second argument names.
const hostileArg = "bridge-hostile-server"

func init() {
	if len(os.Args) > 3 && os.Args[1] == hostileArg {
		os.Exit(hostileServer(os.Args[2], os.Args[3]))
	}
}

func hostileServer(method, how string) int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0
		}
		raw := []byte(line)
		env, err := rewrite.Scan(raw)
		if err != nil {
			return 4
		}
		id := string(env.ID.Of(raw))
		if env.Method == method {
			switch how {
			case "exit":
				return 3
			case "kill":
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case "stop":
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				time.Sleep(time.Hour) // what ends it may wake it first, and read on it must not
			case "close":
				os.Stdout.Close()
				continue
			case "half":
				fmt.Print(`{"jsonrpc":"2.0","id":` + id + `,"resu`)
				return 0
			case "error":
				fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32602,"message":"no"}}`)
				continue
			case "mute":
				continue
			case "deaf": // reads no more
				waitForKill()
			case "twice":
				fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
			case "other id":
				fmt.Println(`{"jsonrpc":"2.0","id":99,"result":{}}`)
				continue
			case "no json":
				fmt.Println("listening on port 1")
				continue
			case "bad json":
				fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{"mean":NaN}}`)
				continue
			case "trickle":
				for _, b := range []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}` + "\n") {
					fmt.Print(string(b))
				}
				continue
			case "flood":
				for range 4096 {
					fmt.Fprintln(os.Stderr, strings.Repeat("e", 1<<10))
				}
			}
		}
		switch {
		case env.Method == "initialize":
			fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
		case env.Kind == rewrite.KindRequest:
			fmt.Println(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		}
	}
}

// hostile is a bridge to children that fail.
func hostile(t *testing.T, method, how string) bridge {
	return startBridge(t, func(c *ChildTransport) {
		c.Start = func() (*Child, error) {
			child := &Child{Command: []string{os.Args[0], hostileArg, method, how}, Grace: 100 * time.Millisecond, KillAfter: 100 * time.Millisecond, Stderr: discard{}}
			return child, child.Start(context.Background())
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Whatever becomes of the child, and whenever, whoever waits has an answer and
// no child is left.
func TestBridgeChildFails(t *testing.T) {
	noLeak(t)
	ends := map[string]string{
		"exit": "the server exited with code 3 before it answered", "kill": "the server was killed by signal 9",
		"close": "the server closed its output before it answered", "half": "the server exited with code 0 before it answered",
		"error": `"code":-32602`, "flood": `"result"`,
	}
	for how, want := range ends {
		for _, method := range []string{"initialize", "notifications/initialized", "tools/call", "server/discover", "modern"} {
			if how == "error" && method == "notifications/initialized" {
				continue
			}
			t.Run(how+" at "+method, func(t *testing.T) {
				at := method
				if method == "modern" {
					at = "tools/call"
				}
				b := hostile(t, at, how)
				if method == "modern" || method == "server/discover" {
					params := ""
					if method == "modern" {
						params = `"name":"x",`
					}
					body, h := modernCall("1", at, params)
					if status, got := b.post(t, body, h); status != http.StatusOK || !strings.Contains(got, want) || !strings.Contains(got, `"id":1,`) {
						t.Errorf("%d %s, want %s", status, got, want)
					}
					return
				}
				res := b.do(t, http.MethodPost, "/mcp", initialize, nil)
				body := readAll(t, res)
				id := res.Header.Get(headerSession)
				if method == "initialize" {
					if !strings.Contains(body, want) || (id != "") != (how == "flood") {
						t.Errorf("initialize: %s, session %q, want %s", body, id, want)
					}
					if how != "flood" {
						b.none(t)
					}
					return
				}
				h := headers{headerSession: id, headerVersion: "2025-11-25"}
				standing := b.do(t, http.MethodGet, "/mcp", "", headers{headerSession: id, "Accept": typeEvents})
				if status, _ := b.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h); status != http.StatusAccepted {
					t.Errorf("notification: %d", status)
				}
				status, got := b.post(t, toolCall("1", "x"), h)
				if status != http.StatusNotFound && !strings.Contains(got, want) && !(strings.Contains(got, "does not read") || method == "notifications/initialized" && strings.Contains(got, `"error"`)) {
					t.Errorf("call: %d %s, want %s", status, got, want)
				}
				if how != "flood" && how != "error" {
					readAll(t, standing) // it ends
					b.none(t)
				}
			})
		}
	}
}

// none waits until no child runs.
func (b bridge) none(t *testing.T) {
	t.Helper()
	for n := range b.counts {
		if n == 0 {
			return
		}
	}
}

// A child that is stopped and reads nothing holds up nobody who leaves, and is
// ended all the same.
func TestBridgeStoppedChild(t *testing.T) {
	noLeak(t)
	b := hostile(t, "tools/call", "stop")
	h := b.session(t)
	large := strings.Replace(toolCall("1", "x"), `"x"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1)
	for _, body := range []string{toolCall("0", "x"), large, strings.Replace(large, `"id":1`, `"id":2`, 1)} {
		b.leave(t, body, h)
	}
	b.idle(t)
	if res := b.do(t, http.MethodDelete, "/mcp", "", h); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	b.none(t)
}

// leave sends a request and leaves as soon as it is on its way to the child.
func (b bridge) leave(t *testing.T, body string, h headers) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(body))
	r.Header.Set("Accept", bothTypes)
	r.Header.Set("Content-Type", "application/json")
	for k, v := range h {
		r.Header.Set(k, v)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.children.RoundTrip(r)
	}()
	cancel()
	<-done
}

// idle waits until no session has a request under way.
func (b bridge) idle(t *testing.T) {
	t.Helper()
	b.children.mu.Lock()
	defer b.children.mu.Unlock()
	for _, s := range b.children.sessions {
		s.mu.Lock()
		if s.active != 0 {
			t.Errorf("%d requests are under way", s.active)
		}
		s.mu.Unlock()
	}
}

// An initialize whose client leaves, or that the server refuses, leaves no
// child behind.
func TestBridgeAbandonedInitialize(t *testing.T) {
	b := hostile(t, "initialize", "stop")
	b.leave(t, initialize, nil)
	b.none(t)
	b.children.mu.Lock()
	defer b.children.mu.Unlock()
	if n := len(b.children.sessions); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

// What is open when a session ends is answered at once, with the reason.
func TestBridgeDeleteDuringCalls(t *testing.T) {
	b := startBridge(t)
	h := b.session(t)
	standing := b.do(t, http.MethodGet, "/mcp", "", headers{headerSession: h[headerSession], "Accept": typeEvents})
	var calls sync.WaitGroup
	for i := range 5 {
		calls.Go(func() {
			if status, body := b.post(t, toolCall(fmt.Sprint(i), "hang"), h); status != 200 || !strings.Contains(body, "the client has ended the session") {
				t.Errorf("call: %d %s", status, body)
			}
		})
	}
	b.waitFor(5)
	if res := b.do(t, http.MethodDelete, "/mcp", "", h); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	calls.Wait()
	readAll(t, standing)
	b.none(t)
}

// waitFor waits until that many calls are in flight.
func (b bridge) waitFor(n int) {
	for found := -1; found != n; {
		found = 0
		b.children.mu.Lock()
		for _, s := range b.children.sessions {
			s.mu.Lock()
			found += len(s.calls)
			s.mu.Unlock()
		}
		b.children.mu.Unlock()
		runtime.Gosched()
	}
}

// Close answers what is open, in both eras, and leaves no child, also with
// sessions that are just being opened.
func TestBridgeCloseDuringTraffic(t *testing.T) {
	noLeak(t)
	b := startBridge(t, func(c *ChildTransport) { c.Children = -1 })
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() { b.post(t, initialize, nil) })
		clients.Go(func() {
			body, h := modernCall(fmt.Sprint(i), "tools/call", `"name":"hang",`)
			if status, got := b.post(t, body, h); status != 200 && status != http.StatusBadGateway || !strings.Contains(got, `"error"`) {
				t.Errorf("call: %d %s", status, got)
			}
		})
	}
	if n := <-b.counts; n < 1 {
		t.Errorf("%d children", n)
	}
	b.children.Close()
	clients.Wait()
	b.children.mu.Lock()
	defer b.children.mu.Unlock()
	if b.children.running != 0 || len(b.children.peers) != 0 {
		t.Errorf("%d children run after Close", b.children.running)
	}
}

func TestBridgeHundredSessions(t *testing.T) {
	b := startBridge(t, func(c *ChildTransport) { c.Children, c.OnChildren = -1, nil })
	var clients sync.WaitGroup
	for i := range 100 {
		clients.Go(func() {
			h := b.session(t)
			tool := fmt.Sprint("tool", i)
			if status, body := b.post(t, toolCall("1", tool), h); status != 200 || !strings.Contains(body, `"name":"`+tool+`"`) {
				t.Errorf("%s: %d %s", tool, status, body)
			}
			if res := b.do(t, http.MethodDelete, "/mcp", "", h); res.StatusCode != http.StatusNoContent {
				t.Errorf("DELETE: %d", res.StatusCode)
			}
		})
	}
	clients.Wait()
	b.children.Close()
	if n := b.children.running; n != 0 {
		t.Errorf("%d children", n)
	}
}

func TestBridgeRefusals(t *testing.T) {
	b := startBridge(t)
	h, other := b.session(t), b.session(t)
	with := func(h headers, more headers) headers {
		all := headers{}
		for _, m := range []headers{h, more} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	events := headers{"Accept": typeEvents}
	stream := b.do(t, http.MethodPost, "/mcp", toolCall("7", "ask"), h) // p2 of h
	defer stream.Body.Close()
	standing := b.do(t, http.MethodGet, "/mcp", "", with(h, events))
	defer standing.Body.Close()
	tests := []struct {
		name, method, body string
		h                  headers
		status             int
		want               string
	}{
		{"an id that is in flight", "POST", toolCall("7", "echo"), h, 400, "id 7 is in flight already"},
		{"the same id as a float", "POST", toolCall("7.0", "echo"), h, 400, "is in flight already"},
		{"an id twice in a batch", "POST", "[" + toolCall("8", "echo") + "," + toolCall("8", "echo") + "]", h, 400, "in flight already"},
		{"the id in another session", "POST", toolCall("7", "echo"), other, 200, `"id":7,"result"`},
		{"a second GET", "GET", "", with(h, events), 409, "has a GET stream already"},
		{"Last-Event-ID of nothing", "GET", "", with(h, headers{"Accept": typeEvents, "Last-Event-Id": "p99-0"}), 400, "names no stream"},
		{"Last-Event-ID without sense", "GET", "", with(h, headers{"Accept": typeEvents, "Last-Event-Id": "p2-x"}), 400, "names no stream"},
		{"Last-Event-ID in the future", "GET", "", with(h, headers{"Accept": typeEvents, "Last-Event-Id": "p2-99"}), 400, "is not kept any more"},
		{"Last-Event-ID of another session", "GET", "", with(other, headers{"Accept": typeEvents, "Last-Event-Id": "p2-0"}), 400, "names no stream"},
		{"GET for JSON", "GET", "", with(other, headers{"Accept": "application/json"}), 406, ""},
		{"GET without a session", "GET", "", events, 405, ""},
		{"DELETE without a session", "DELETE", "", nil, 405, ""},
		{"an invented session", "POST", toolCall("1", "echo"), headers{headerSession: "mine"}, 404, "begin again"},
		{"DELETE of an invented session", "DELETE", "", headers{headerSession: "mine"}, 404, ""},
		{"a revision that never was", "POST", toolCall("1", "echo"), headers{headerSession: h[headerSession], headerVersion: "2025-01-01"}, 400, `\"2025-01-01\" is no revision`},
		{"a session without the header", "POST", toolCall("1", "echo"), headers{headerSession: h[headerSession]}, 200, `"result"`},
		{"PUT", "PUT", toolCall("1", "echo"), h, 405, ""},
	}
	for _, tt := range tests {
		res := b.do(t, tt.method, "/mcp", tt.body, tt.h)
		if body := readAll(t, res); res.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, res.StatusCode, body, tt.status, tt.want)
		}
	}
	// The client's own id is not taken over.
	res := b.do(t, http.MethodPost, "/mcp", initialize, headers{headerSession: "mine"})
	if id := res.Header.Get(headerSession); len(id) < 22 || id == "mine" {
		t.Errorf("session id %q", id)
	}
}

// What a client cancels is not answered, and not in the way of what follows.
func TestBridgeCancelledCall(t *testing.T) {
	b := startBridge(t)
	h := b.session(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/mcp", strings.NewReader(toolCall("1", "hang")))
	r.Header.Set("Accept", bothTypes)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerSession, h[headerSession])
	left := make(chan struct{})
	go func() {
		defer close(left)
		if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
			res.Body.Close()
		}
	}()
	b.waitFor(1)
	if status, _ := b.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, h); status != http.StatusAccepted {
		t.Errorf("cancelled: %d", status)
	}
	cancel()
	<-left
	b.waitFor(0)
	if status, body := b.post(t, toolCall("1", "cancelled"), h); status != 200 || !strings.Contains(body, `"cancelled":"1 "`) {
		t.Errorf("the same id again: %d %s", status, body)
	}
}

// A child that does not know this era is gone before the client goes on, and
// takes no session's place.
func TestBridgeProbe(t *testing.T) {
	noLeak(t)
	b := hostile(t, "server/discover", "error")
	b.children.Children = 1
	for range 3 {
		body, h := modernCall("1", "server/discover", "")
		if status, got := b.post(t, body, h); status != 200 || !strings.Contains(got, `"code":-32602`) {
			t.Errorf("probe: %d %s", status, got)
		}
	}
	h := b.session(t)
	if status, body := b.post(t, toolCall("1", "x"), h); status != 200 || !strings.Contains(body, `"result"`) {
		t.Errorf("call: %d %s", status, body)
	}
}

// Ids and tokens of every kind come back as they were.
func TestBridgeIDs(t *testing.T) {
	b := startBridge(t)
	for _, id := range []string{"0", "-1", "1.5", "1e3", "9007199254740993", "123456789012345678901234567890", `""`, `"a\"b"`, `"\u0041"`, `"7"`} {
		body, h := modernCall(id, "tools/call", `"name":"progress",`)
		body = strings.Replace(body, `"tok"`, id, 1)
		want := `"progressToken":` + id + `,"progress":1}}` + "\n\nevent: message\ndata: " + `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` + "\n\n"
		if status, got := b.post(t, body, h); status != 200 || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %d %s", id, status, got)
		}
	}
}

// The children's messages are under the proxy's bound on all together.
func TestBridgeInflight(t *testing.T) {
	b := startBridge(t, func(c *ChildTransport) {
		c.MaxMessage = -1
		c.Proxy = &Proxy{Policy: testPolicy(t, func(c *policy.Config) { c.Limits.MaxMessage, c.Limits.MaxInflight = 100*policy.KiB, 100*policy.KiB })}
	})
	h := b.session(t)
	if status, body := b.post(t, toolCall("1", "large"), h); status != 200 || !strings.Contains(body, `"id":1,"error"`) || !strings.Contains(body, "--max-inflight") {
		t.Errorf("a large answer: %d %.200s", status, body)
	}
	if status, body := b.post(t, toolCall("2", "echo"), h); status != 200 || !strings.Contains(body, `"id":2,"result"`) {
		t.Errorf("after that: %d %s", status, body)
	}
}

// A reload's bound on one message holds for open sessions, from the next
// message of their children on.
func TestBridgeMaxMessageReload(t *testing.T) {
	var p atomic.Pointer[policy.Policy]
	set := func(limit policy.Size) {
		p.Store(testPolicy(t, func(c *policy.Config) { c.Limits.MaxMessage = limit })())
	}
	set(policy.MiB)
	b := startBridge(t, func(c *ChildTransport) { c.Proxy = &Proxy{Policy: p.Load} })
	h := b.session(t)
	if status, body := b.post(t, toolCall("1", "large"), h); status != 200 || !strings.HasPrefix(body, `{"jsonrpc":"2.0","result"`) {
		t.Errorf("within the bound: %d %.200s", status, body)
	}
	set(100 * policy.KiB)
	b.post(t, toolCall("2", "echo"), h) // what is read next has been asked for under the bound before
	if status, body := b.post(t, toolCall("3", "large"), h); status != 200 || !strings.Contains(body, `"id":3,"error"`) || !strings.Contains(body, "--max-message") {
		t.Errorf("a large answer after the reload: %d %.200s", status, body)
	}
	if status, body := b.post(t, toolCall("4", "echo"), h); status != 200 || !strings.Contains(body, `"id":4,"result"`) {
		t.Errorf("after that: %d %s", status, body)
	}
}

// A child that ends by itself without a message is told of; one that has
// answered, or that we end, is not.
func TestBridgeSilentEnd(t *testing.T) {
	ends := make(chan string, 4)
	told := func(c *ChildTransport) { c.OnSilentEnd = func(how string) { ends <- how } }
	mute := hostile(t, "initialize", "exit")
	told(mute.children)
	mute.post(t, initialize, nil)
	if how := <-ends; how != "exited with code 3" {
		t.Errorf("told %q", how)
	}
	b := startBridge(t, told)
	h := b.session(t)
	b.post(t, toolCall("1", "die"), h)
	hangs := hostile(t, "initialize", "stop")
	told(hangs.children)
	left, leave := context.WithCancel(t.Context())
	go func() {
		<-hangs.counts
		leave()
	}()
	r, err := http.NewRequestWithContext(left, http.MethodPost, hangs.url+"/mcp", strings.NewReader(initialize))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultClient.Do(r); err == nil {
		t.Errorf("a server that is stopped answered: %d", res.StatusCode)
	}
	b.children.Close()
	hangs.children.Close()
	if len(ends) > 0 {
		t.Errorf("told %q of a child that has answered or was ended", <-ends)
	}
}
