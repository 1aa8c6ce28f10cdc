package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A stream that breaks off before its answer ends with an error for the request
// that waits, unless the client can come back for what is missing.
func TestHTTPStreamBreaksOff(t *testing.T) {
	const (
		broke    = `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"` + textBrokeOff + `"}}`
		progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"
		answer   = "data: " + callResult + "\n\n"
	)
	modern, modernHeader := modernCall("3", "tools/call", `"name":"t",`)
	for _, tt := range []struct {
		name, says string
		gets       string // the whole body
		cut        bool   // the client sees it break off, too
	}{
		{"at once", "", "data: " + broke + "\n\n", false},
		{"behind a comment", ": hello\n\n", ": hello\n\ndata: " + broke + "\n\n", false},
		{"in a comment", ": hel", ": hel\n\ndata: " + broke + "\n\n", false},
		{"in a name", "event: elicit", "data: " + broke + "\n\n", false},
		{"behind a name", "event: message\n", "event: message\n\n\ndata: " + broke + "\n\n", false},
		{"behind a CR", ": hello\r", ": hello\r\n\ndata: " + broke + "\n\n", false},
		{"in the answer", answer[:20], "data: " + broke + "\n\n", false},
		{"behind all of it but the end", "data: " + callResult + "\n", "data: " + broke + "\n\n", false},
		{"behind progress", progress, progress + "data: " + broke + "\n\n", false},
		{"in an event with an id", "id: 1\n" + answer[:20], "id: 1\n\n\ndata: " + broke + "\n\n", false},
		{"behind an event with an id", "id: 1\ndata:\n\n", "id: 1\ndata:\n\n", true},
		{"behind an id after data", "data:\nid:1\n\n" + progress, "data:\nid:1\n\n" + progress, true},
		{"behind the answer", answer, answer, true},
	} {
		for era, call := range map[string]struct {
			body string
			h    headers
		}{"legacy": {callTool, nil}, "modern": {modern, modernHeader}} {
			t.Run(era+" "+tt.name, func(t *testing.T) {
				f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					startEvents(w)
					say(w, tt.says)
					panic(http.ErrAbortHandler)
				})
				res := f.do(t, http.MethodPost, "/mcp", call.body, call.h)
				got, err := io.ReadAll(res.Body)
				if res.StatusCode != http.StatusOK || string(got) != tt.gets || (err != nil) != tt.cut {
					t.Errorf("the client gets %d, %v,\n%s\nwant\n%s", res.StatusCode, err, got, tt.gets)
				}
			})
		}
	}
}

// A stream that ends without its answer leaves nobody waiting who can't get it
// elsewhere, which is every client of the stateless revision.
func TestHTTPStreamEndsWithoutAnswer(t *testing.T) {
	const (
		none     = `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"` + textNoAnswer + `"}}`
		progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n"
	)
	modern, modernHeader := modernCall("3", "tools/call", `"name":"t",`)
	listen, listenHeader := modernCall("3", "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	for _, tt := range []struct {
		name, body string
		h          headers
		says, gets string
	}{
		{"modern, nothing", modern, modernHeader, "", "data: " + none + "\n\n"},
		{"modern, progress alone", modern, modernHeader, progress, progress + "data: " + none + "\n\n"},
		{"modern, answered", modern, modernHeader, "data: " + callResult + "\n\n", "data: " + callResult + "\n\n"},
		{"modern, a subscription", listen, listenHeader, ": hi\n\n", ": hi\n\n"},
		{"legacy, whose answer may come by another stream", callTool, nil, progress, progress},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				startEvents(w)
				say(w, tt.says)
			})
			if status, got := f.post(t, tt.body, tt.h); status != http.StatusOK || got != tt.gets {
				t.Errorf("the client gets %d\n%s\nwant\n%s", status, got, tt.gets)
			}
		})
	}
}

// A stream that answers no request breaks off as it does without us, with its status.
func TestHTTPStandingStreamBreaksOff(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		startEvents(w)
		panic(http.ErrAbortHandler)
	})
	res := f.do(t, http.MethodGet, "/mcp", "", headers{"Accept": typeEvents})
	if got, err := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || err == nil || len(got) > 0 {
		t.Errorf("the client gets %d, %v, %s", res.StatusCode, err, got)
	}
}

// Of a batch, what was not answered is.
func TestHTTPStreamOfABatchBreaksOff(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		startEvents(w)
		say(w, "data: "+callResult+"\n\n")
		panic(http.ErrAbortHandler)
	})
	status, got := f.post(t, "["+callTool+","+listTools+"]", nil)
	if events := strings.Split(strings.TrimSpace(got), "\n\n"); status != http.StatusOK || len(events) != 2 || events[0] != "data: "+callResult || !strings.HasPrefix(events[1], `data: {"jsonrpc":"2.0","id":2,"error"`) {
		t.Errorf("the client gets %d %s", status, got)
	}
}
