package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// modern makes a request of 2026-07-28 with these members of params.
func modern(id int, method, params string) string {
	if params != "" {
		params += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, method, params)
}

// TestRunURLModernHeaders: the headers mirror the body (2026-07-28, transports,
// request metadata; the encodings are the examples of the specification).
func TestRunURLModernHeaders(t *testing.T) {
	tools := `{"jsonrpc":"2.0","id":9,"result":{"tools":[` +
		`{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},` +
		`"b":{"type":"boolean","x-mcp-header":"B"},"deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deep-Er"}}},"other":{"type":"string"}}}}]}}`
	tests := []struct {
		request string
		want    map[string]string
	}{
		{modern(1, "server/discover", ""), map[string]string{"Mcp-Method": "server/discover", "Mcp-Name": ""}},
		{modern(1, "tools/call", `"name":"get_weather"`), map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "get_weather"}},
		{modern(1, "prompts/get", `"name":"p","uri":"no"`), map[string]string{"Mcp-Name": "p"}},
		{modern(1, "resources/read", `"uri":"file:///a b","name":"no"`), map[string]string{"Mcp-Name": "file:///a b"}},
		{modern(1, "tasks/get", `"taskId":"t-1"`), map[string]string{"Mcp-Method": "tasks/get", "Mcp-Name": "t-1"}},
		{modern(1, "tasks/cancel", `"taskId":"t-1"`), map[string]string{"Mcp-Name": "t-1"}},
		{modern(1, "tools/call", `"name":"é"`), map[string]string{"Mcp-Name": "=?base64?w6k=?="}},
		{modern(1, "tools/call", `"name":"\u00e9"`), map[string]string{"Mcp-Name": "=?base64?w6k=?="}},
		{modern(1, "tools/call", `"name":"=?base64?literal?="`), map[string]string{"Mcp-Name": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
		{modern(1, "tools/call", `"name":"t","arguments":{"region":"us-west1","n":42,"b":true,"deep":{"er":"x"},"other":"y"}`), map[string]string{
			"Mcp-Param-Region": "us-west1", "Mcp-Param-N": "42", "Mcp-Param-B": "true", "Mcp-Param-Deep-Er": "x", "Mcp-Param-Other": "",
		}},
		{modern(1, "tools/call", `"name":"t","arguments":{"region":" padded ","n":-7.0,"b":null}`), map[string]string{
			"Mcp-Param-Region": "=?base64?IHBhZGRlZCA=?=", "Mcp-Param-N": "-7", "Mcp-Param-B": "",
		}},
		{modern(1, "tools/call", `"name":"t","arguments":{"region":"line1\nline2","n":9007199254740993,"b":{}}`), map[string]string{
			"Mcp-Param-Region": "=?base64?bGluZTEKbGluZTI=?=", "Mcp-Param-N": "", "Mcp-Param-B": "",
		}},
		{modern(1, "tools/call", `"name":"t","arguments":{"region":"Hello, 世界"}`), map[string]string{"Mcp-Param-Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}},
	}
	for _, tt := range tests {
		t.Run(tt.request[33:], func(t *testing.T) {
			runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Mcp-Session-Id", "ignored")
				if strings.Contains(bodyOf(r), "tools/list") {
					writeJSON(w, tools)
					return
				}
				writeJSON(w, resultOne)
			}, func(t *testing.T, b *testBridge) {
				b.send(modern(9, "tools/list", ""))
				b.want(tools)
				b.send(tt.request)
				b.want(resultOne)
				last := b.requests("POST")[1]
				if last.body != tt.request {
					t.Errorf("the server got %s", last.body)
				}
				if v := last.header.Get("Mcp-Protocol-Version"); v != "2026-07-28" {
					t.Errorf("version %q", v)
				}
				if s := last.header.Get("Mcp-Session-Id"); s != "" {
					t.Errorf("session %q", s)
				}
				for name, value := range tt.want {
					if got := last.header.Get(name); got != value {
						t.Errorf("%s: %q, want %q", name, got, value)
					}
				}
				b.in.Close()
				<-b.ended
				if n := len(b.requests("GET")) + len(b.requests("DELETE")); n != 0 {
					t.Errorf("%d requests of the legacy era", n)
				}
			})
		})
	}
}

// TestRunURLInvalidAnnotations: a tool whose annotations are not valid is left
// out, as a client over HTTP must, and the others stay as they are.
func TestRunURLInvalidAnnotations(t *testing.T) {
	tests := []struct {
		schema string
		valid  bool
	}{
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, true},
		{`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, false},
		{`{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, false},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, false},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`, false},
		{`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, false},
		{`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, false},
		{`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, false},
		{`{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, false},
		{`{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, false},
		{`{"x-mcp-header":"A","type":"string"}`, false},
		{`{"properties":{"a":{"type":"string","\u0078-mcp-header":"A B"}}}`, false},
		{`{"properties":{"x-mcp-header":{"type":"number"}}}`, true},
		{`{"properties":{"a":{"type":"object","default":{"x-mcp-header":7}}}}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.schema, func(t *testing.T) {
			const first, last = `{"name":"first","inputSchema":{}}`, `{"name":"last","inputSchema":{}}`
			list := func(tools string) string { return `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tools + `]}}` }
			tool := `{"name":"t","inputSchema":` + tt.schema + `}`
			want := list(first + "," + tool + "," + last)
			if !tt.valid {
				want = list(first + "," + last)
			}
			runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
				writeJSON(w, list(first+","+tool+","+last))
			}, func(t *testing.T, b *testBridge) {
				b.send(modern(1, "tools/list", ""))
				b.want(want)
			})
		})
	}
}

// TestRunURLHeaderMismatch: a call whose headers the server does not take is
// sent once more with those that the tool's schema asks for now.
func TestRunURLHeaderMismatch(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"missing Mcp-Param-A"}}`
	for _, helps := range []bool{true, false} {
		runBridge(t, &Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			switch body := bodyOf(r); {
			case strings.Contains(body, "tools/list"):
				page := `"nextCursor":"2","tools":[]`
				if strings.Contains(body, `"cursor":"2"`) {
					page = `"tools":[{"name":"t","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]`
				}
				writeJSON(w, `{"jsonrpc":"2.0","id":`+idOf(body)+`,"result":{`+page+`}}`)
			case helps && r.Header.Get("Mcp-Param-A") == "x":
				writeJSON(w, resultOne)
			default:
				writeStatus(w, 400, "application/json", refusal)
			}
		}, func(t *testing.T, b *testBridge) {
			b.send(modern(1, "tools/call", `"name":"t","arguments":{"a":"x"}`))
			if helps {
				b.want(resultOne)
			} else {
				b.want(refusal)
			}
			b.silent()
			if n := len(b.requests("POST")); n != 4 {
				t.Errorf("%d posts, want the call, two pages, and the call", n)
			}
		})
	}
}

// TestRunURLProbe: a client that tries the modern era first can go on with
// initialize whatever an old server says.
func TestRunURLProbe(t *testing.T) {
	for _, tt := range []struct{ name, contentType, body, says string }{
		{"404 text", "text/plain", "nope", "404"},
		{"400 text", "text/plain", "Bad Request: Mcp-Session-Id header is required", "400"},
		{"405 nothing", "", "", "405"},
		{"400 error", "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`, "Server not initialized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var status int
			fmt.Sscan(tt.name, &status)
			runBridge(t, &Proxy{}, legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
				if !noStream(w, r) {
					writeStatus(w, status, tt.contentType, tt.body)
				}
			}), func(t *testing.T, b *testBridge) {
				b.send(modern(7, "server/discover", ""))
				if line := b.next(); !strings.Contains(line, `"id":7`) || !strings.Contains(line, `"error"`) || !strings.Contains(line, tt.says) {
					t.Errorf("the client got %s", line)
				}
				begin(b)
			})
		})
	}
}
