package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestHTTPRedirect(t *testing.T) {
	for _, c := range []struct {
		location string
		want     string // "": leads elsewhere
	}{
		{"${UP}/mcp/", "/mcp/"},
		{"${UP}/mcp/?a=b%20c&d", "/mcp/?a=b%20c&d"},
		{"/mcp/", "/mcp/"},
		{"other", "/other"},
		{"?x", "/mcp?x"},
		{"${UP}", "/"},
		{"${UP}/a#b", "/a#b"},
		{"${UP}/%2F%2e", "/%2F%2e"},
		{"https://evil.example/mcp", ""},
		{"http://evil.example:80/mcp", ""},
		{"//evil.example/mcp", ""},
		{`/\evil.example/mcp`, ""},
		{`\\evil.example/mcp`, ""},
		{"${UP}//evil.example", ""},
		{"ftp:/x", ""},
		{"http://u:p@${HOST}/mcp", ""},
		{"https://${HOST}/mcp", ""}, // another origin
		{"http://[", ""},
	} {
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			location := strings.ReplaceAll(strings.ReplaceAll(c.location, "${UP}", "http://"+r.Host), "${HOST}", r.Host)
			w.Header()["Location"] = []string{location}
			w.Header().Set("Alt-Svc", `h3="evil.example:443"`)
			w.Header().Set("Refresh", "0; url=https://evil.example/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		for _, r := range []struct {
			method, path, body string
			h                  headers
			mcp                bool
		}{
			{http.MethodPost, "/mcp", callTool, nil, true},
			{http.MethodGet, "/mcp", "", headers{"Accept": typeEvents}, true},
			{http.MethodGet, "/mcp", "", nil, true},
			{http.MethodDelete, "/mcp", "", in("s1"), true},
			{http.MethodGet, "/authorize", "", nil, false},
		} {
			res := f.do(t, r.method, r.path, r.body, r.h)
			body, got := readAll(t, res), res.Header.Get("Location")
			want := c.want
			if c.location == "?x" {
				want = r.path + "?x"
			}
			switch {
			case want != "" && (res.StatusCode != http.StatusTemporaryRedirect || got != want):
				t.Errorf("%s %s to %s: %d to %q, want %q", r.method, r.path, c.location, res.StatusCode, got, want)
			case want == "" && r.mcp && (res.StatusCode != http.StatusBadGateway || got != "" || !strings.Contains(body, `"error"`)):
				t.Errorf("%s %s to %s: %d to %q, %s", r.method, r.path, c.location, res.StatusCode, got, body)
			case want == "" && !r.mcp && res.StatusCode != http.StatusTemporaryRedirect:
				t.Errorf("%s %s to %s: %d", r.method, r.path, c.location, res.StatusCode)
			}
			if res.Header.Get("Alt-Svc") != "" || res.Header.Get("Refresh") != "" {
				t.Errorf("%s to %s: %v", r.method, c.location, res.Header)
			}
		}
	}
}
