package proxy

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// scriptedArg makes the test binary an MCP server that does as it is told.
const scriptedArg = "bridge-test-server"

func init() {
	if len(os.Args) > 1 && os.Args[1] == scriptedArg {
		os.Exit(scriptedServer())
	}
}

// scriptedServer answers each tools/call as the tool's name says.
func scriptedServer() int {
	in := bufio.NewReader(os.Stdin)
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	var cancelled, waiting string
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
		at := func(path ...string) string {
			span, _ := rewrite.Lookup(raw, env.Params, path...)
			return string(span.Of(raw))
		}
		id := string(env.ID.Of(raw))
		switch {
		case env.Method == "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, id)
		case env.Method == "notifications/cancelled":
			cancelled += at("requestId") + " "
		case env.Kind == rewrite.KindResult || env.Kind == rewrite.KindError:
			say(`{"jsonrpc":"2.0","id":%s,"result":{"told":%s}}`, waiting, env.Result.Of(raw))
		case env.Method == "tools/list":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"mirror","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}}`, id)
		case env.Method == "subscriptions/listen":
			say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{}}}`, id)
		case env.Method == "tools/call":
			switch at("name") {
			case `"ask"`:
				waiting = id
				say("%s", question("0", "size"))
			case `"progress"`:
				say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, at("_meta", "progressToken"))
				say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			case `"die"`:
				return 3
			case `"hang"`:
			case `"cancelled"`:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"cancelled":"%s"}}`, id, cancelled)
			case `"nan"`:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"text":`, id) // a log of what comes
				say(`{"jsonrpc":"2.0","id":%s,"result":{"mean":NaN}}`, id)
			case `"large"`:
				say(`{"jsonrpc":"2.0","result":{"text":"%s"},"id":%s}`, strings.Repeat("x", 200<<10), id)
			default:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"name":%s,"big":1915883588174806058}}`, id, at("name"))
			}
		}
	}
}

// A bridge is a proxy in front of scripted children.
type bridge struct {
	front
	children *ChildTransport
	counts   chan int
}

func startBridge(t *testing.T, change ...func(*ChildTransport)) bridge {
	t.Helper()
	counts := make(chan int, 64)
	children := &ChildTransport{
		Start: func() (*Child, error) {
			c := &Child{Command: []string{os.Args[0], scriptedArg}, Grace: 5 * time.Second}
			return c, c.Start(context.Background())
		},
		OnChildren: func(n int) { counts <- n },
	}
	for _, f := range change {
		f(children)
	}
	p := &Proxy{Policy: testPolicy(t), Upstream: &url.URL{Scheme: "stdio", Host: "child", Path: "/mcp"}, Transport: children}
	listens := httptest.NewServer(p)
	t.Cleanup(func() {
		listens.CloseClientConnections()
		children.Close()
		listens.Close()
	})
	return bridge{front{p, listens.URL}, children, counts}
}

// session begins a session and returns its header.
func (b bridge) session(t *testing.T) headers {
	t.Helper()
	res := b.do(t, http.MethodPost, "/mcp", initialize, nil)
	if body := readAll(t, res); res.StatusCode != http.StatusOK || body != initialzed {
		t.Fatalf("initialize: %d %s", res.StatusCode, body)
	}
	return headers{headerSession: res.Header.Get(headerSession), headerVersion: "2025-11-25"}
}

func toolCall(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`
}

func TestBridgeSession(t *testing.T) {
	b := startBridge(t)
	h := b.session(t)
	if status, body := b.post(t, toolCall(`"a"`, "echo"), h); status != 200 || body != `{"jsonrpc":"2.0","id":"a","result":{"name":"echo","big":1915883588174806058}}` {
		t.Errorf("call: %d %s", status, body)
	}
	if status, _ := b.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h); status != http.StatusAccepted {
		t.Errorf("notification: %d", status)
	}
	res := b.do(t, http.MethodDelete, "/mcp", "", h)
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	if status, body := b.post(t, toolCall("1", "echo"), h); status != http.StatusNotFound || !strings.Contains(body, "begin again with initialize") {
		t.Errorf("after DELETE: %d %s", status, body)
	}
	for _, want := range []int{1, 0} {
		if n := <-b.counts; n != want {
			t.Errorf("%d children, want %d", n, want)
		}
	}
}

// A question comes on the stream of the call that it belongs to, in today's
// form, and its answer by a POST of its own.
func TestBridgeQuestion(t *testing.T) {
	b := startBridge(t)
	h := b.session(t)
	res := b.do(t, http.MethodPost, "/mcp", toolCall("7", "ask"), h)
	stream := events(res)
	if got, want := stream.next(t), "id: p2-0\ndata:\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := stream.next(t), "event: message\nid: p2-1\ndata: "+asked("0", "size")+"\n\n"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if status, body := b.post(t, accept("0", `{"size":"d"}`), h); status != http.StatusAccepted {
		t.Errorf("answer: %d %s", status, body)
	}
	if got, want := stream.next(t), "event: message\nid: p2-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"told\":{\"action\":\"accept\",\"content\":{\"size\":\"d\"}}}}\n\n"; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A client that was cut off comes back for what it missed.
func TestBridgeResume(t *testing.T) {
	b := startBridge(t)
	h := b.session(t)
	res := b.do(t, http.MethodPost, "/mcp", toolCall("7", "ask"), h)
	stream := events(res)
	stream.next(t)
	res.Body.Close()
	if status, _ := b.post(t, accept("0", `{"size":"n"}`), h); status != http.StatusAccepted {
		t.Fatalf("answer: %d", status)
	}
	again := headers{"Last-Event-ID": "p2-0", "Accept": typeEvents}
	for k, v := range h {
		again[k] = v
	}
	stream = events(b.do(t, http.MethodGet, "/mcp", "", again))
	if got := stream.next(t); !strings.Contains(got, "elicitation/create") {
		t.Errorf("got %q, want the question again", got)
	}
	if got := stream.next(t); !strings.Contains(got, `"id":7,"result":{"told":{"action":"accept"`) {
		t.Errorf("got %q, want the answer", got)
	}
	if status, body := b.post(t, toolCall("8", "echo"), h); status != 200 || !strings.Contains(body, `"id":8`) {
		t.Errorf("the session after that: %d %s", status, body)
	}
}

func TestBridgeChildDies(t *testing.T) {
	b := startBridge(t)
	h := b.session(t)
	if status, body := b.post(t, toolCall("1", "die"), h); status != 200 || !strings.Contains(body, `"id":1,"error"`) || !strings.Contains(body, "the server exited with code 3 before it answered") {
		t.Errorf("the call: %d %s", status, body)
	}
	if status, _ := b.post(t, toolCall("2", "echo"), h); status != http.StatusNotFound {
		t.Errorf("after that: %d", status)
	}
}

func TestBridgeLimits(t *testing.T) {
	b := startBridge(t, func(c *ChildTransport) { c.Children, c.FullText, c.MaxMessage = 1, "come back later", 1024 })
	h := b.session(t)
	if status, body := b.post(t, initialize, nil); status != http.StatusOK || !strings.Contains(body, "come back later") {
		t.Errorf("one session more: %d %s", status, body)
	}
	if status, body := b.post(t, toolCall("1", "large"), h); status != 200 || !strings.Contains(body, `"id":1,"error"`) || !strings.Contains(body, "1KiB") {
		t.Errorf("a large answer: %d %s", status, body)
	}
	if status, body := b.post(t, toolCall("2", "echo"), h); status != 200 || !strings.Contains(body, `"id":2,"result"`) {
		t.Errorf("after that: %d %s", status, body)
	}
	limits := ChildLimits{Children: 2, FullText: "later"}
	b.children.Limits = func() ChildLimits { return limits }
	b.session(t)
	if status, body := b.post(t, initialize, nil); status != http.StatusOK || !strings.Contains(body, `"later"`) {
		t.Errorf("a third session, with other limits: %d %s", status, body)
	}
	if status, body := b.post(t, toolCall("3", "echo"), nil); status != http.StatusBadRequest || !strings.Contains(body, "begin with initialize") {
		t.Errorf("without a session: %d %s", status, body)
	}
}

// An answer that is no JSON leaves nobody waiting, in a session or without one.
func TestBridgeUnreadable(t *testing.T) {
	b := startBridge(t)
	const want = `"error":{"code":-32600,"message":"mcp-refit: this message was not passed on: not valid JSON at byte `
	h := b.session(t)
	if status, body := b.post(t, toolCall(`"a"`, "nan"), h); status != 200 || !strings.Contains(body, `"id":"a",`+want) {
		t.Errorf("in a session: %d %s", status, body)
	}
	body, h := modernCall("2", "tools/call", `"name":"nan",`)
	if status, body := b.post(t, body, h); status != 200 || !strings.Contains(body, `"id":2,`+want) {
		t.Errorf("without one: %d %s", status, body)
	}
}

// modernCall is a request of 2026-07-28, with its headers.
func modernCall(id, method, params string) (string, headers) {
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `"_meta":{"progressToken":"tok","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	h := headers{headerVersion: "2026-07-28", headerMethod: method}
	if _, name, ok := strings.Cut(params, `"name":"`); ok {
		h[headerName], _, _ = strings.Cut(name, `"`)
	}
	return body, h
}

// Clients that use the same ids and tokens share a child and never meet.
func TestBridgeShared(t *testing.T) {
	b := startBridge(t)
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			tool := fmt.Sprintf("tool%d", i)
			body, h := modernCall(`"same"`, "tools/call", `"name":"`+tool+`",`)
			if status, got := b.post(t, body, h); status != 200 || got != `{"jsonrpc":"2.0","id":"same","result":{"name":"`+tool+`","big":1915883588174806058}}` {
				t.Errorf("%s: %d %s", tool, status, got)
			}
		})
	}
	clients.Wait()
	body, h := modernCall("1", "tools/call", `"name":"progress",`)
	if _, got := b.post(t, body, h); got != "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"tok\",\"progress\":1}}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n" {
		t.Errorf("progress: %q", got)
	}
	if n := <-b.counts; n != 1 || len(b.counts) > 0 {
		t.Errorf("%d children and %d changes, want one child", n, len(b.counts))
	}
}

// Closing the stream cancels the request, once, by the number that the child knows.
func TestBridgeCancel(t *testing.T) {
	b := startBridge(t)
	body, h := modernCall("5", "subscriptions/listen", `"notifications":{},`)
	res := b.do(t, http.MethodPost, "/mcp", body, h)
	if got := events(res).next(t); !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":5`) {
		t.Errorf("acknowledged: %q", got)
	}
	res.Body.Close()
	for range 200 {
		body, h := modernCall("6", "tools/call", `"name":"cancelled",`)
		_, got := b.post(t, body, h)
		if _, list, _ := strings.Cut(got, `"cancelled":"`); regexp.MustCompile(`^[0-9]+ "`).MatchString(list) {
			return
		}
	}
	t.Error("the child was never told")
}

// A child that dies has its calls answered, and the next request starts another.
func TestBridgeRestart(t *testing.T) {
	b := startBridge(t)
	body, h := modernCall("1", "tools/call", `"name":"die",`)
	if status, got := b.post(t, body, h); status != 200 || !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "exited with code 3") {
		t.Errorf("the call: %d %s", status, got)
	}
	for range 2 { // started, ended
		<-b.counts
	}
	deadline := time.Now().Add(10 * time.Second)
	body, h = modernCall("2", "tools/call", `"name":"echo",`)
	for {
		status, got := b.post(t, body, h)
		if status == 200 && strings.Contains(got, `"id":2,"result"`) {
			return
		}
		if status != http.StatusBadGateway || !strings.Contains(got, "it is started again in") || time.Now().After(deadline) {
			t.Fatalf("the next call: %d %s", status, got)
		}
	}
}

func TestBridgeHeaders(t *testing.T) {
	b := startBridge(t)
	list, h := modernCall("0", "tools/list", "")
	if status, body := b.post(t, list, h); status != 200 {
		t.Fatalf("tools/list: %d %s", status, body)
	}
	tests := []struct {
		name   string
		change headers
		want   string // in the error; empty if there is none
	}{
		{"right", headers{"Mcp-Param-Region": "eu"}, ""},
		{"in base64", headers{"Mcp-Param-Region": "=?base64?ZXU=?="}, ""},
		{"other method", headers{"Mcp-Param-Region": "eu", headerMethod: "tools/list"}, `Mcp-Method is \"tools/list\"`},
		{"no method", headers{"Mcp-Param-Region": "eu", headerMethod: ""}, `Mcp-Method is \"\"`},
		{"other name", headers{"Mcp-Param-Region": "eu", headerName: "x"}, `Mcp-Name is \"x\"`},
		{"other revision", headers{"Mcp-Param-Region": "eu", headerVersion: "2027-01-01"}, `Mcp-Protocol-Version is \"2027-01-01\"`},
		{"other parameter", headers{"Mcp-Param-Region": "us"}, `Mcp-Param-Region is \"us\", the argument region is \"eu\"`},
		{"no parameter", nil, `Mcp-Param-Region is \"\"`},
	}
	for _, tt := range tests {
		body, h := modernCall("1", "tools/call", `"name":"mirror","arguments":{"region":"eu"},`)
		for k, v := range tt.change {
			h[k] = v
		}
		status, got := b.post(t, body, h)
		switch {
		case tt.want == "" && (status != 200 || !strings.Contains(got, `"result"`)):
			t.Errorf("%s: %d %s", tt.name, status, got)
		case tt.want != "" && (status != http.StatusBadRequest || !strings.Contains(got, `"code":-32020`) || !strings.Contains(got, tt.want)):
			t.Errorf("%s: %d %s, want %s", tt.name, status, got, tt.want)
		}
	}
}

func TestBridgeIdle(t *testing.T) {
	b := startBridge(t, func(c *ChildTransport) { c.Idle = time.Millisecond })
	h := b.session(t)
	for range 2 {
		<-b.counts // one child, and then none
	}
	if status, _ := b.post(t, toolCall("1", "echo"), h); status != http.StatusNotFound {
		t.Errorf("after the idle time: %d", status)
	}
}
