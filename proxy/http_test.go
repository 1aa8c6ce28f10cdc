package proxy

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// testPolicy compiles the built-in policy with changes.
func testPolicy(t testing.TB, change ...func(*policy.Config)) func() *policy.Policy {
	t.Helper()
	c := policy.Default()
	for _, f := range change {
		f(c)
	}
	p, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return func() *policy.Policy { return p }
}

// A front is a proxy that listens, in front of a server of the test's own.
type front struct {
	*Proxy
	url string
}

// serve puts a proxy in front of a handler.
func serve(t *testing.T, server http.HandlerFunc, change ...func(*Proxy)) front {
	t.Helper()
	back := httptest.NewServer(server)
	t.Cleanup(back.Close)
	u, err := url.Parse(back.URL + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	p := &Proxy{Policy: testPolicy(t), Upstream: u, Transport: transport}
	for _, f := range change {
		f(p)
	}
	listens := httptest.NewServer(p)
	t.Cleanup(listens.Close)
	return front{p, listens.URL}
}

// with changes the policy of a proxy.
func with(t *testing.T, change func(*policy.Config)) func(*Proxy) {
	return func(p *Proxy) { p.Policy = testPolicy(t, change) }
}

type headers map[string]string

const bothTypes = "application/json, text/event-stream"

// do sends a request and returns the answer, whose body is still to be read.
func (f front) do(t *testing.T, method, path, body string, h headers) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", bothTypes)
	}
	for name, value := range h {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	client := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	res, err := client.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// post sends a POST to the endpoint and returns the status and body.
func (f front) post(t *testing.T, body string, h headers) (int, string) {
	t.Helper()
	res := f.do(t, http.MethodPost, "/mcp", body, h)
	return res.StatusCode, readAll(t, res)
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An eventReader reads a stream event by event.
type eventReader struct{ *bufio.Reader }

func events(res *http.Response) eventReader { return eventReader{bufio.NewReader(res.Body)} }

// next returns the bytes of the next event, with its end.
func (e eventReader) next(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := e.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		if line == "\n" {
			return b.String()
		}
	}
}

func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`
	initialzed = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	listTools  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	callTool   = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}`
)

// question is an elicitation with an old enum, and asked is what the client
// gets of it.
func question(id, field string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{"message":"Fill this in","requestedSchema":{"type":"object","properties":{"` + field + `":{"type":"string","enum":["d","n"],"enumNames":["Day","Night"]}},"required":["` + field + `"]}}}`
}

func asked(id, field string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{"message":"Fill this in","requestedSchema":{"type":"object","properties":{"` + field + `":{"type":"string","oneOf":[{"const":"d","title":"Day"},{"const":"n","title":"Night"}]}},"required":["` + field + `"]}}}`
}

func accept(id, content string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":` + content + `}}`
}

func mustURL(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
