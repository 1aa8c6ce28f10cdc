package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Draining ends the streams that belong to no call, as if the server had, and
// lets calls go on.
func TestHTTPDrain(t *testing.T) {
	finish, left := make(chan struct{}), make(chan struct{}, 2)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		startEvents(w)
		if strings.Contains(string(b), "tools/call") {
			<-finish
			say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\n")
			return
		}
		say(w, ": hi\n\nid: half an event\n")
		<-r.Context().Done()
		left <- struct{}{}
	})
	const listen = `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	get := f.do(t, http.MethodGet, "/mcp", "", headers{"Accept": typeEvents})
	subscription := f.do(t, http.MethodPost, "/mcp", listen, nil)
	call := f.do(t, http.MethodPost, "/mcp", callTool, nil)
	for _, res := range []*http.Response{get, subscription} {
		events(res).next(t)
	}
	f.Drain()
	for range 2 {
		<-left
	}
	for _, res := range []*http.Response{get, subscription} {
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Errorf("a stream was broken, not ended: %v", err)
		}
	}
	if res := f.do(t, http.MethodGet, "/mcp", "", headers{"Accept": typeEvents}); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a new stream: %d", res.StatusCode)
	}
	if status, _ := f.post(t, listen, nil); status != http.StatusServiceUnavailable {
		t.Errorf("a new subscription: %d", status)
	}
	close(finish)
	if got := readAll(t, call); got != "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\n" {
		t.Errorf("the call under way got %s", got)
	}
	if n := len(f.sessions.standing); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// A request of our own carries what the client's did.
func TestHTTPAsk(t *testing.T) {
	for name, c := range map[string]struct {
		kind, answer string // ID stands for the request's id
		want         string // "": an error
	}{
		"JSON":           {"application/json", `{"jsonrpc":"2.0","id":ID,"result":{"status":"working"}}`, `{"status":"working"}`},
		"a stream":       {typeEvents, ": hi\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n", `{}`},
		"an error":       {"application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no"}}`, `no`},
		"another's":      {"application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		"no message":     {"text/html", `<p>`, ""},
		"an empty strea": {typeEvents, ": hi\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			var body string
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got, body = r, string(b)
				_, id, _ := strings.Cut(body, `"id":`)
				id, _, _ = strings.Cut(id, ",")
				w.Header().Set("Content-Type", c.kind)
				_, _ = io.WriteString(w, strings.ReplaceAll(c.answer, "ID", id))
			})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/mcp?x=y", nil)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{
				"Authorization": "Bearer t", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tasks/update", "Mcp-Name": "t1", "Mcp-Param-A": "1", "Content-Length": "7", "Connection": "close",
			} {
				r.Header.Set(name, value)
			}
			s := f.newSession()
			s.enter(r)
			response, err := s.ask("tasks/get", []byte(`{"taskId":"é"}`))
			if c.want == "" {
				if err == nil {
					t.Errorf("%s", response)
				}
			} else if err != nil || !strings.Contains(string(response), c.want) {
				t.Errorf("%s, %v", response, err)
			}
			if !strings.HasSuffix(body, `,"method":"tasks/get","params":{"taskId":"é"}}`) || got.RequestURI != "/mcp?x=y" {
				t.Errorf("the server was asked at %s: %s", got.RequestURI, body)
			}
			for name, value := range map[string]string{"Authorization": "Bearer t", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tasks/get", "Mcp-Name": "=?base64?w6k=?=", "Mcp-Param-A": "", "Content-Type": "application/json"} {
				if got.Header.Get(name) != value {
					t.Errorf("%s: %q, want %q", name, got.Header.Get(name), value)
				}
			}
			if r.Header.Get("Mcp-Method") != "tasks/update" {
				t.Error("the client's own header was changed")
			}
		})
	}
}
