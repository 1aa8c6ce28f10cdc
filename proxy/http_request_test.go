package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

func TestHTTPRequests(t *testing.T) {
	deep := strings.Repeat("[", rewrite.MaxDepth) + strings.Repeat("]", rewrite.MaxDepth)
	const form = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		body, kind string
		status     int    // 0: it reaches the server
		holds      string // what the error says
		want       string // what reaches the server; "": the same
	}{
		"a message":                          {body: ` { "jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":1.0} }`},
		"a batch":                            {body: `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"n"}]`},
		"a duplicate member":                 {body: `{"jsonrpc":"2.0","id":1,"method":"a","method":"ping"}`, want: `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		"not JSON":                           {body: `{"jsonrpc":"2.0","id":1,`, status: 400, holds: `"id":null,"error":{"code":-32700`},
		"two messages":                       {body: listTools + listTools, status: 400, holds: `-32700`},
		"not JSON under another type":        {body: `{"jsonrpc":"2.0","id":1,`, kind: "text/plain", status: 400, holds: `-32700`},
		"too deep":                           {body: strings.Repeat("[", 2000), status: 400, holds: `-32700`},
		"a request that is too deep":         {body: `{"jsonrpc":"2.0","method":"tools/call","params":` + deep + `,"id":"d"}`, status: 200, holds: `"id":"d","error":{"code":-32600`},
		"an answer that is too deep":         {body: `{"jsonrpc":"2.0","result":` + deep + `,"id":"d"}`, want: `{"jsonrpc":"2.0","id":"d","error":{"code":-32600,"message":"mcp-refit: this message was not passed on: nested deeper than 1000 at byte 1025"}}`},
		"an empty batch":                     {body: `[]`, status: 200, holds: `-32600`},
		"nearly a message":                   {body: `{"id":0,"result":{"action":"accept","content":{}}}`, status: 400, holds: `-32600`},
		"nearly a message, in another case":  {body: `{"ID":0,"Result":{"action":"accept","content":{}}}`, status: 400, holds: `-32600`},
		"a batch with something else":        {body: `[{"id":0,"result":{}}]`, status: 400, holds: `-32600`},
		"an OAuth client registers":          {body: `{"redirect_uris":["http://localhost/cb"],"client_name":"c"}`},
		"an OAuth token":                     {body: "grant_type=authorization_code&code=1", kind: form},
		"nothing":                            {body: ""},
		"an answer in no session":            {body: accept("0", `{"a":"x"}`), want: `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"mcp-refit: this answer belongs to a session that we do not know, so it cannot be checked"}}`},
		"a declined question in no session":  {body: `{"jsonrpc":"2.0","id":0,"result":{"action":"decline"}}`},
		"modern input that asks nothing":     {body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"inputResponses":{"q":{"action":"decline"}},"requestState":"s"}}`},
		"modern input that is no ElicitResu": {body: `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"inputResponses":{"q":7}}}`, status: 200, holds: `{"jsonrpc":"2.0","id":2,"error":{"code":-32602`},
	} {
		t.Run(name, func(t *testing.T) {
			var got atomic.Pointer[string]
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				s := string(b)
				got.Store(&s)
				if r.ContentLength != int64(len(b)) {
					t.Errorf("Content-Length %d of %d bytes", r.ContentLength, len(b))
				}
				w.WriteHeader(http.StatusAccepted)
			})
			h := headers{}
			if c.kind != "" {
				h["Content-Type"] = c.kind
			}
			status, answer := f.post(t, c.body, h)
			if c.status != 0 {
				if status != c.status || !strings.Contains(answer, c.holds) {
					t.Errorf("status %d, %s; want %d with %s", status, answer, c.status, c.holds)
				}
				if s := got.Load(); s != nil {
					t.Errorf("the server got %s", *s)
				}
				return
			}
			if c.want == "" {
				c.want = c.body
			}
			if s := got.Load(); status != http.StatusAccepted || s == nil || *s != c.want {
				t.Errorf("status %d, %s; the server got %v, want %s", status, answer, s, c.want)
			}
		})
	}
}

var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":         func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate":      func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"deflate, raw": func(w io.Writer) io.WriteCloser { e, _ := flate.NewWriter(w, 9); return e },
	"br":           func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd":         func(w io.Writer) io.WriteCloser { e, _ := zstd.NewWriter(w); return e },
}

func encode(t *testing.T, with, text string) string {
	t.Helper()
	var b bytes.Buffer
	e := encoders[with](&b)
	if _, err := io.WriteString(e, text); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func codingName(with string) string { name, _, _ := strings.Cut(with, ","); return name }

func TestHTTPEncodings(t *testing.T) {
	stripped := `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`
	for with := range encoders {
		t.Run(with, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				if string(b) != listTools || r.Header.Get("Content-Encoding") != "" || r.Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("the server got %q as %q, and may answer in %q", b, r.Header.Get("Content-Encoding"), r.Header.Get("Accept-Encoding"))
				}
				w.Header().Set("Content-Encoding", codingName(with))
				kind, body := "application/json", iconList
				if r.URL.RawQuery == "stream" {
					kind, body = typeEvents, "data: "+iconList+"\n\n"
				}
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, encode(t, with, body))
			})
			for query, want := range map[string]string{"": stripped, "?stream": "data: " + stripped + "\n\n"} {
				res := f.do(t, http.MethodPost, "/mcp"+query, encode(t, with, listTools), headers{"Content-Encoding": codingName(with), "Accept-Encoding": "gzip, br"})
				if got := readAll(t, res); got != want || res.Header.Get("Content-Encoding") != "" {
					t.Errorf("%s: %s", query, got)
				}
			}
		})
	}
}

func TestHTTPBadEncodings(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.Query().Get("as"))
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		_, _ = io.WriteString(w, r.URL.Query().Get("body"))
	})
	for _, c := range []struct {
		path  string
		h     headers
		code  int
		holds string
	}{
		{"/mcp", headers{"Content-Encoding": "compress"}, 415, "Content-Encoding"},
		{"/mcp", headers{"Content-Encoding": "gzip, br"}, 415, "Content-Encoding"},
		{"/mcp", headers{"Content-Encoding": "gzip"}, 400, "could not be read"},
		{"/mcp?type=application/json&as=compress&body={}", nil, 200, `"id":2,"error":{"code":-32603`},
		{"/mcp?type=text/event-stream&as=compress&body=data:", nil, 200, `"id":2,"error":{"code":-32603`},
		{"/mcp?type=application/json&as=gzip&body={}", nil, 502, "broke off or is damaged"},
	} {
		res := f.do(t, http.MethodPost, c.path, listTools, c.h)
		if got := readAll(t, res); res.StatusCode != c.code || !strings.Contains(got, c.holds) {
			t.Errorf("%s %v: %d %s", c.path, c.h, res.StatusCode, got)
		}
	}
}

func TestHTTPTooLarge(t *testing.T) {
	large := `{"jsonrpc":"2.0","id":2,"result":{"x":"` + strings.Repeat("x", 3000) + `"}}`
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := large
		switch {
		case strings.Contains(r.URL.RawQuery, "bomb"):
			w.Header().Set("Content-Encoding", "gzip")
			body = encode(t, "gzip", strings.Repeat(" ", 1<<20))
		case strings.Contains(r.URL.RawQuery, "stream"):
			w.Header().Set("Content-Type", typeEvents)
			fmt.Fprintf(w, ": hi\n\nid: 7\ndata: %s\n\n", body)
			return
		}
		answerJSON(w, body)
	}, with(t, func(c *policy.Config) { c.Limits.MaxMessage = 2048 }))
	for _, c := range []struct {
		name, path, body string
		h                headers
		status           int
		want             string
	}{
		{"a request", "/mcp", large, nil, 413, `--max-message`},
		{"a request that unfolds", "/mcp", encode(t, "zstd", large), headers{"Content-Encoding": "zstd"}, 413, `--max-message`},
		{"an answer", "/mcp", listTools, nil, 200, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"mcp-refit: the server's answer was not passed on: it is larger than the largest message allowed, 2KiB (--max-message)"}}`},
		{"an answer that unfolds", "/mcp?bomb", listTools, nil, 200, `"id":2,"error"`},
		{"an event", "/mcp?stream", listTools, nil, 200, `"id":2,"error":{"code":-32600,"message":"mcp-refit: this message was not passed on`},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := f.do(t, http.MethodPost, c.path, c.body, c.h)
			if got := readAll(t, res); res.StatusCode != c.status || !strings.Contains(got, c.want) || strings.Contains(got, "xxx") {
				t.Errorf("%d %.300s", res.StatusCode, got)
			}
		})
	}
}

// A body of which the length is not said is bounded as it comes.
func TestHTTPTooLargeInChunks(t *testing.T) {
	f := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it reached the server") },
		with(t, func(c *policy.Config) { c.Limits.MaxMessage = 2048 }))
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, io.MultiReader(strings.NewReader(strings.Repeat(" ", 3000))))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", res.StatusCode)
	}
}

// A body that ends before its length reaches the server in no form.
func TestHTTPRequestCutShort(t *testing.T) {
	f := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it reached the server") })
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(listTools)+10, listTools)
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("%s", answer)
	}
}

// An answer that breaks off is not made a whole one.
func TestHTTPAnswerCutShort(t *testing.T) {
	for _, c := range []struct{ name, header, want string }{
		{"by length", "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}", "502"},
		{"in chunks", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n24\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\r\n", "502"},
		{"a stream", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n2b\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\r\n", "200"},
		{"an error page", "Content-Type: text/html\r\nContent-Length: 1000\r\n\r\nhalf", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				conn, _, _ := http.NewResponseController(w).Hijack()
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+c.header)
				conn.Close()
			})
			method, body := http.MethodPost, listTools
			if c.name == "an error page" {
				method, body = http.MethodGet, ""
			}
			r, err := http.NewRequestWithContext(t.Context(), method, f.url+"/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				if c.want != "" {
					t.Error(err)
				}
				return
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			switch {
			case c.want == "" && err == nil:
				t.Errorf("%s came whole", got)
			case c.want != "" && (fmt.Sprint(res.StatusCode) != c.want || err != nil || !strings.Contains(string(got), `"id":2,"error"`) || strings.Contains(string(got), "result")):
				t.Errorf("%d %s, %v", res.StatusCode, got, err)
			}
		})
	}
}

// A message is judged by whatever method it comes, as some servers take it.
func TestHTTPOtherMethods(t *testing.T) {
	var got *http.Request
	var body string
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	})
	for _, method := range []string{http.MethodPut, http.MethodPatch, "QUERY"} {
		f.do(t, method, "/mcp", accept("0", `{"a":"x"}`), headers{"Content-Type": "application/json"}).Body.Close()
		if got.Method != method || !strings.Contains(body, "a session that we do not know") {
			t.Errorf("an answer by %s arrived by %s as %s", method, got.Method, body)
		}
	}
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		f.do(t, http.MethodGet, "/mcp", accept("0", `{"a":"x"}`), headers{name: "POST"}).Body.Close()
		if got.Header.Get(name) != "" {
			t.Errorf("%s arrived", name)
		}
	}
}
