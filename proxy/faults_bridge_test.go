//go:build unix

package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Servers that answer wrongly, behind the bridge from HTTP to children. Where
// nothing came that answers the call, the client waits until the child is ended.
var bridgeFaults = []struct {
	how    string // see hostileServer
	status int
	gets   string
	waits  bool // the call, until the session ends
}{
	{"twice", 200, `{"jsonrpc":"2.0","id":1,"result":{}}`, false},
	{"other id", 200, `"id":1,"error":{"code":-32603,"message":"mcp-refit: the session has ended before the answer: the client has ended the session`, true},
	{"no json", 200, `"id":1,"error":{"code":-32603,"message":"mcp-refit: the session has ended before the answer: the client has ended the session`, true},
	{"bad json", 200, `"id":1,"error":{"code":-32600,"message":"mcp-refit: this message was not passed on: not valid JSON`, false},
	{"trickle", 200, `{"jsonrpc":"2.0","id":1,"result":{}}`, false},
}

func TestFaultsOverTheBridgeToChildren(t *testing.T) {
	noLeak(t)
	for _, tt := range bridgeFaults {
		t.Run(tt.how, func(t *testing.T) {
			strays := make(chan string, 4)
			b := hostile(t, "tools/call", tt.how)
			b.children.OnStray = func(line []byte) { strays <- string(line) }
			h := b.session(t)
			end := b.meanwhile(t, b.session(t)) // a child of its own, which fails at no ping
			got := make(chan string, 1)
			go func() {
				status, body := b.ask(t, http.MethodPost, toolCall("1", "x"), h)
				got <- fmt.Sprint(status, " ", body)
			}()
			if tt.waits {
				b.waitFor(1)
				if tt.how == "no json" {
					if line := <-strays; line != "listening on port 1" {
						t.Errorf("told of %q", line)
					}
				}
				if status, body := b.ask(t, http.MethodDelete, "", h); status != http.StatusNoContent {
					t.Errorf("DELETE: %d %s", status, body)
				}
			}
			if got, want := <-got, fmt.Sprint(tt.status, " ", tt.gets); !strings.HasPrefix(got, fmt.Sprint(tt.status)) || !strings.Contains(got, tt.gets) {
				t.Errorf("the client gets %s, want %s", got, want)
			}
			if !tt.waits { // and the session goes on
				if status, body := b.ask(t, http.MethodPost, ping("2"), h); status != 200 || body != `{"jsonrpc":"2.0","id":2,"result":{}}` {
					t.Errorf("after that: %d %s", status, body)
				}
			}
			end()
		})
	}
}

func ping(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

// ask is do, from any goroutine.
func (b bridge) ask(t *testing.T, method, body string, h headers) (status int, got string) {
	r, err := http.NewRequestWithContext(context.Background(), method, b.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", bothTypes)
	for name, value := range h {
		r.Header.Set(name, value)
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, string(all)
}

// meanwhile has another session's client ping its child.
func (b bridge) meanwhile(t *testing.T, h headers) (end func()) {
	return meanwhile(t, func(id int) error {
		status, got := b.ask(t, http.MethodPost, ping(fmt.Sprint(id)), h)
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id); status != http.StatusOK || got != want {
			return fmt.Errorf("%d %s", status, got)
		}
		return nil
	})
}
