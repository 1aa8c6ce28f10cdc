package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"testing"
)

// canned answers each request with the same bytes.
type canned struct{ body []byte }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(c.body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header       { return n.h }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Flush()                      {}

// What a call costs in the handler, beside that of a bare ReverseProxy.
func BenchmarkHTTPCall(b *testing.B) {
	answer := canned{[]byte(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"hello"}]}}`)}
	p := &Proxy{Upstream: mustURL("http://server.example/mcp"), Transport: answer, Policy: testPolicy(b)}
	bare := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(mustURL("http://server.example")) }, Transport: answer, FlushInterval: -1}
	for _, c := range []struct {
		name    string
		handler http.Handler
	}{{"proxy", p}, {"bare", bare}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/mcp", bytes.NewReader([]byte(callTool)))
				r.Header["Content-Type"] = jsonType
				c.handler.ServeHTTP(nowhere{make(http.Header)}, r)
			}
		})
	}
}
