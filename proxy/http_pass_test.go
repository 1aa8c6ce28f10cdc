package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Everything else passes: methods, paths, queries, statuses and headers.
func TestHTTPPasses(t *testing.T) {
	var got *http.Request
	var body string
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		for name, value := range map[string]string{
			"Mcp-Session-Id": "s9", "Allow": "GET, POST", "Access-Control-Expose-Headers": "Mcp-Session-Id", "X-Accel-Buffering": "no",
			"Access-Control-Allow-Origin": "*", "WWW-Authenticate": "Bearer", "Etag": `"1"`, "Content-Type": "application/octet-stream", "Set-Cookie": "a=b",
		} {
			w.Header().Set(name, value)
		}
		if status := r.URL.Query().Get("status"); status == "304" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte{0, 1, 2, 0xff})
	})
	sent := headers{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?w6k=?=", "Mcp-Param-X": "1", "Last-Event-Id": "7",
		"Authorization": "Bearer t", "Traceparent": "00-1-2-01", "X-Forwarded-For": "1.2.3.4, 5.6.7.8", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "h",
		"Forwarded": "for=1.2.3.4", "Access-Control-Request-Headers": "mcp-session-id", "Origin": "http://localhost:1", "Cookie": "c=d", "User-Agent": "ua",
		"If-None-Match": `"1"`,
	}
	for _, method := range []string{"GET", "PUT", "PATCH", "OPTIONS", "DELETE", "QUERY"} {
		for _, path := range []string{"/", "/.well-known/oauth-protected-resource/mcp", "/mcp/below?a=1;b=2&c=%zz&&=", "/a%2Fb//c/./d?", "/messages?sid=1"} {
			res := f.do(t, method, path, "x", sent)
			answer := readAll(t, res)
			if got.Method != method || got.RequestURI != path || body != "x" {
				t.Errorf("%s %s arrived as %s %s with %q", method, path, got.Method, got.RequestURI, body)
			}
			for name, value := range sent {
				if got.Header.Get(name) != value {
					t.Errorf("%s %s: %s arrived as %q", method, path, name, got.Header.Get(name))
				}
			}
			if res.StatusCode != http.StatusTeapot || answer != "\x00\x01\x02\xff" {
				t.Errorf("%s %s: %d %q", method, path, res.StatusCode, answer)
			}
			for _, name := range []string{"Mcp-Session-Id", "Allow", "Access-Control-Expose-Headers", "Www-Authenticate", "Etag", "X-Accel-Buffering", "Set-Cookie"} {
				if res.Header.Get(name) == "" {
					t.Errorf("%s %s: no %s", method, path, name)
				}
			}
			if want := f.Upstream.Host; got.Host != want {
				t.Errorf("%s: Host %q, want %q", method, got.Host, want)
			}
		}
	}
	if res := f.do(t, http.MethodHead, "/mcp", "", nil); res.StatusCode != http.StatusTeapot {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
	if res := f.do(t, http.MethodGet, "/mcp?status=304", "", nil); res.StatusCode != http.StatusNotModified {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestHTTPHopByHop(t *testing.T) {
	var got http.Header
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "4")
	})
	res := f.do(t, http.MethodGet, "/", "", headers{"Connection": "Upgrade, X-Mine", "Upgrade": "websocket", "X-Mine": "1", "Te": "trailers", "Proxy-Authorization": "x"})
	if body := readAll(t, res); body != "body" || res.Header.Get("X-Hop") != "" || res.Trailer.Get("X-Sum") != "4" {
		t.Errorf("%q, %v, trailer %v", body, res.Header, res.Trailer)
	}
	for _, name := range []string{"Connection", "Upgrade", "X-Mine", "Proxy-Authorization"} {
		if got.Get(name) != "" {
			t.Errorf("%s: %q arrived", name, got.Get(name))
		}
	}
}

// A server that switches protocols all the same is refused.
func TestHTTPUpgrade(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello")
		conn.Close()
	})
	res := f.do(t, http.MethodGet, "/", "", headers{"Connection": "Upgrade", "Upgrade": "websocket"})
	if body := readAll(t, res); res.StatusCode != http.StatusBadGateway || strings.Contains(body, "hello") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestHTTPClientHost(t *testing.T) {
	var got *http.Request
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Location", "http://"+r.Host+"/mcp/")
		w.WriteHeader(http.StatusPermanentRedirect)
	}, func(p *Proxy) { p.ClientHost = true })
	res := f.do(t, http.MethodPost, "/mcp", callTool, headers{"Host": "mcp.example.com"})
	if got.Host != "mcp.example.com" || got.Header.Get("X-Forwarded-Host") != "mcp.example.com" || got.Header.Get("X-Forwarded-Proto") != "http" {
		t.Errorf("Host %q, %v", got.Host, got.Header)
	}
	if res.Header.Get("Location") != "/mcp/" {
		t.Errorf("%d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	f.do(t, http.MethodPost, "/mcp", callTool, headers{"X-Forwarded-Host": "outer", "X-Forwarded-Proto": "https"})
	if got.Header.Get("X-Forwarded-Host") != "outer" || got.Header.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("what a proxy in front of us said is lost: %v", got.Header)
	}
}

func TestHTTPAddedHeaders(t *testing.T) {
	var got *http.Request
	f := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r }, func(p *Proxy) {
		p.Header = http.Header{"Authorization": {"Bearer ours"}, "X-Two": {"1", "2"}}
		p.Upstream = mustURL(p.Upstream.String() + "?key=k")
	})
	f.do(t, http.MethodPost, "/mcp?a=b", callTool, headers{"Authorization": "Bearer theirs"})
	if got.Header.Get("Authorization") != "Bearer ours" || !slices.Equal(got.Header["X-Two"], []string{"1", "2"}) || got.URL.RawQuery != "key=k&a=b" {
		t.Errorf("%v ?%s", got.Header, got.URL.RawQuery)
	}
	if f.do(t, http.MethodGet, "/other?a=b", "", nil); got.URL.RawQuery != "a=b" {
		t.Errorf("?%s", got.URL.RawQuery)
	}
}

// The server is reached over HTTP/2 where it can be.
func TestHTTP2Upstream(t *testing.T) {
	back := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", r.ProtoMajor)
		}
		startEvents(w)
		say(w, "data: "+question("0", "t")+"\n\n")
	}))
	back.EnableHTTP2 = true
	back.StartTLS()
	t.Cleanup(back.Close)
	f := serve(t, nil, func(p *Proxy) {
		p.Upstream = mustURL(back.URL + "/mcp")
		p.Transport.(*http.Transport).TLSClientConfig.RootCAs = back.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	})
	if status, got := f.post(t, callTool, nil); status != http.StatusOK || got != "data: "+asked("0", "t")+"\n\n" {
		t.Errorf("%d %s", status, got)
	}
}

type noAnswer struct{ err error }

func (f noAnswer) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// Where there is no answer, the client is told what to check, in an error that
// carries its id.
func TestHTTPNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		holds  string
	}{
		"refused":     {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, 502, "dial: connection refused): check that it is running"},
		"reset":       {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, 502, "reset by peer"},
		"timed out":   {&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, 504, "check that it can be reached"},
		"no such":     {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}, 502, "check the host name"},
		"closed":      {io.ErrUnexpectedEOF, 502, "unexpected EOF"},
		"certificate": {&url.Error{Op: "Post", Err: x509.UnknownAuthorityError{}}, 502, "--upstream-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil, func(p *Proxy) { p.Transport = noAnswer{c.err} })
			status, body := f.post(t, callTool, nil)
			if status != c.status || !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"mcp-refit: no answer from the server at `+originOf(f.Upstream)) || !strings.Contains(body, c.holds) {
				t.Errorf("%d %s", status, body)
			}
			_, body = f.post(t, "["+callTool+","+listTools+"]", nil)
			if !strings.HasPrefix(body, `[{"jsonrpc":"2.0","id":3,"error"`) || !strings.Contains(body, `},{"jsonrpc":"2.0","id":2,"error"`) {
				t.Errorf("%s", body)
			}
		})
	}
	var none Proxy
	w := httptest.NewRecorder()
	none.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(callTool)))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("without an upstream: %d", w.Code)
	}
}

// A server whose OAuth metadata speaks of another URL is warned about, and
// passed on as it is.
func TestHTTPOAuth(t *testing.T) {
	const metadata = `{ "resource": "https://upstream.example/mcp", "authorization_servers": ["https://as.example"] }`
	core, logs := observer.New(zap.WarnLevel)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			answerJSON(w, metadata)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="m", resource_metadata="https://upstream.example/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	}, func(p *Proxy) { p.Log = zap.New(core) })
	if got := readAll(t, f.do(t, http.MethodGet, "/.well-known/oauth-protected-resource/mcp", "", nil)); got != metadata {
		t.Errorf("%s", got)
	}
	res := f.do(t, http.MethodPost, "/mcp", callTool, nil)
	if res.StatusCode != http.StatusUnauthorized || !strings.Contains(res.Header.Get("WWW-Authenticate"), `resource_metadata="https://upstream.example/`) {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if logs.Len() != 1 || !strings.Contains(logs.All()[0].Message, "OAuth metadata names another host") {
		t.Errorf("%d warnings: %v", logs.Len(), logs.All())
	}
}
