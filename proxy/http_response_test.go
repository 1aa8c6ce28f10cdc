package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

const iconList = `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"icons":[{"src":"https://evil.example/i.png"}]}]}}`

func TestHTTPAnswers(t *testing.T) {
	stripped := `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`
	plain := `{"jsonrpc":"2.0","id":2,"result":{"n": 1.0,  "x":"<&>"}}`
	for name, c := range map[string]struct {
		post   string
		status int
		header headers
		body   string

		wantStatus int    // 0: as it came
		want       string // "": as it came
		holds      string // what an error of ours says
	}{
		"untouched":                           {post: listTools, status: 200, header: headers{"Content-Type": "application/json"}, body: plain},
		"edited":                              {post: listTools, status: 200, header: headers{"Content-Type": "application/json", "Etag": `"1"`}, body: iconList, want: stripped},
		"parameters of the type":              {post: listTools, status: 200, header: headers{"Content-Type": "application/json; charset=utf-8"}, body: iconList, want: stripped},
		"a batch":                             {post: "[" + listTools + "]", status: 200, header: headers{"Content-Type": "application/json"}, body: "[" + iconList + "]", want: "[" + stripped + "]"},
		"an error with a message in its body": {post: listTools, status: 400, header: headers{"Content-Type": "application/json"}, body: iconList, want: stripped},
		"no session":                          {post: listTools, status: 400, header: headers{"Content-Type": "application/json"}, body: `{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"},"id":null}`},
		"an error page":                       {post: listTools, status: 503, header: headers{"Content-Type": "text/html"}, body: "<h1>{down}</h1>"},
		"an OAuth error":                      {post: listTools, status: 401, header: headers{"Content-Type": "application/json", "WWW-Authenticate": `Bearer resource_metadata="https://s.example/.well-known/oauth-protected-resource"`}, body: `{"error":"invalid_token"}`},
		"null":                                {post: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 200, header: headers{"Content-Type": "application/json"}, body: "null"},
		"null to a request":                   {post: listTools, status: 200, header: headers{"Content-Type": "application/json"}, body: "null"},
		"an acknowledgement":                  {post: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 202, header: headers{"Content-Type": "text/plain; charset=utf-8"}, body: "Accepted"},
		"an acknowledgement of a request":     {post: listTools, status: 202, header: headers{"Content-Type": "text/plain"}, body: "Accepted"},
		"no content":                          {post: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 204, header: headers{}},
		"not allowed":                         {post: listTools, status: 405, header: headers{"Allow": "GET", "Content-Type": "text/plain"}, body: "no"},
		"neither JSON nor a stream":           {post: listTools, status: 200, header: headers{"Content-Type": "text/html"}, body: "<p>hi</p>", holds: "neither JSON nor an event stream"},
		"a message under another type":        {post: listTools, status: 200, header: headers{"Content-Type": "application/octet-stream"}, body: iconList, holds: "neither JSON nor an event stream"},
		"bad JSON":                            {post: listTools, status: 200, header: headers{"Content-Type": "application/json"}, body: `{"jsonrpc":"2.0","id":2,"result":{`, holds: "not valid JSON"},
		"NaN":                                 {post: listTools, status: 200, header: headers{"Content-Type": "application/json"}, body: `{"jsonrpc":"2.0","id":2,"result":{"x":NaN}}`, holds: "not valid JSON"},
		"no message":                          {post: listTools, status: 200, header: headers{"Content-Type": "application/json"}, body: `{"id":2,"result":{"tools":[]}}`, holds: "not a JSON-RPC 2.0 message"},
		"a question in an acknowledgement":    {post: `{"jsonrpc":"2.0","method":"n"}`, status: 200, header: headers{"Content-Type": "text/plain"}, body: question("1", "a"), want: asked("1", "a")},
		"nearly one":                          {post: `{"jsonrpc":"2.0","method":"n"}`, status: 200, header: headers{"Content-Type": "application/json"}, body: `{"id":1,"method":"elicitation/create","params":{}}`, holds: "not a JSON-RPC 2.0 message"},
		"a byte order mark":                   {post: listTools, status: 200, header: headers{"Content-Type": "application/json"}, body: "\ufeff" + plain},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for name, value := range c.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			res := f.do(t, http.MethodPost, "/mcp", c.post, nil)
			got := readAll(t, res)
			if c.holds != "" {
				if res.StatusCode != 200 || !strings.Contains(got, c.holds) || !strings.Contains(got, `"error":{"code":-32603`) || strings.Contains(c.post, `"id":2`) != strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,`) {
					t.Fatalf("status %d, body %s", res.StatusCode, got)
				}
				return
			}
			if c.wantStatus == 0 {
				c.wantStatus = c.status
			}
			edited := c.want != ""
			if !edited {
				c.want = c.body
			}
			if res.StatusCode != c.wantStatus || got != c.want {
				t.Fatalf("status %d, body %s; want %d, %s", res.StatusCode, got, c.wantStatus, c.want)
			}
			if res.ContentLength != int64(len(got)) {
				t.Errorf("Content-Length %d, and %d bytes came", res.ContentLength, len(got))
			}
			for name, value := range c.header {
				if name == "Etag" && edited {
					value = ""
				}
				if now := res.Header.Get(name); now != value {
					t.Errorf("%s: %q, want %q", name, now, value)
				}
			}
		})
	}
}
