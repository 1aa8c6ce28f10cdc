package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector takes spans as an OTLP receiver does.
type collector struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	service string
	header  http.Header
	path    string
	failing atomic.Int32 // answers that are errors, first
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	raw, err := io.ReadAll(body)
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(raw, &data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if c.failing.Add(-1) >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header, c.path = r.Header, r.URL.Path
	for _, rs := range data.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

// flat is a span as one line.
func flat(s *tracepb.Span) string {
	var attributes []string
	for _, a := range s.Attributes {
		attributes = append(attributes, a.Key+"="+a.Value.GetStringValue())
	}
	slices.Sort(attributes)
	return fmt.Sprintf("%s %v %x<%x %v [%s]", s.Name, s.Kind, s.TraceId, s.ParentSpanId, s.Status.GetCode(), strings.Join(attributes, " "))
}

// The command sends the spans of its requests to a collector, joined to the
// trace that came in _meta.
func TestTraces(t *testing.T) {
	c := &collector{}
	c.failing.Store(1) // and is asked again
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_SERVICE_NAME", "my-proxy")
	in, w := io.Pipe()
	r, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), []string{"--log-level", "error", "--", "echo-server"}, stdio{in, out, io.Discard})
		out.Close()
	}()
	before := time.Now()
	lines := bufio.NewScanner(r)
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`,
	} {
		fmt.Fprintln(w, m)
		if !lines.Scan() {
			t.Fatal("no answer")
		}
	}
	w.Close()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.service != "my-proxy" || c.path != "/v1/traces" || c.header.Get("X-Key") != "a b" || c.header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("service %s, path %s, header %v", c.service, c.path, c.header)
	}
	if len(c.spans) != 2 {
		t.Fatalf("%d spans", len(c.spans))
	}
	if got, want := flat(c.spans[1]), "tools/call t SPAN_KIND_SERVER 0af7651916cd43dd8448eb211c80319c<b7ad6b7169203331 STATUS_CODE_UNSET"+
		" [gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call mcp_refit.outcome=answered network.transport=pipe]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := flat(c.spans[0]); !strings.HasPrefix(got, "tools/list SPAN_KIND_SERVER ") || !strings.Contains(got, "<  STATUS") && !strings.Contains(got, "< STATUS") {
		t.Errorf("got %s", got)
	}
	for _, s := range c.spans {
		if s.StartTimeUnixNano < uint64(before.UnixNano()) || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s: from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
	}
}

// When traces are sent, and to where.
func TestTracesWanted(t *testing.T) {
	for _, c := range []struct {
		env      map[string]string
		want     bool
		endpoint string
	}{
		{nil, false, ""},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, false, ""},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, "http://localhost:4318/v1/traces"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example/a/"}, true, "https://c.example/a/v1/traces"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t.example/x"}, true, "https://t.example/x"},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example", "OTEL_SDK_DISABLED": "TRUE"}, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c.example:4317"}, true, "error"},
	} {
		env := func(name string) string { return c.env[name] }
		if got := tracesWanted(env); got != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
		if !c.want {
			continue
		}
		client, err := newOTLPClient(env)
		switch {
		case err != nil && c.endpoint != "error":
			t.Errorf("%v: %v", c.env, err)
		case err == nil && client.endpoint != c.endpoint:
			t.Errorf("%v: %s", c.env, client.endpoint)
		}
	}
}
