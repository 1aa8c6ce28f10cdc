package proxy

import (
	"net/http"
	"strings"
	"testing"
)

func TestHTTPGuard(t *testing.T) {
	reached := 0
	server := func(w http.ResponseWriter, r *http.Request) {
		reached++
		w.WriteHeader(http.StatusNoContent)
	}
	open := serve(t, server)
	loopback := serve(t, server, func(p *Proxy) { p.CheckHost = true })
	named := serve(t, server, func(p *Proxy) {
		p.AllowHosts = []string{"mcp.example.com", "other.example.com:8443", "[2001:db8::1]"}
		p.AllowOrigins = []string{"https://app.example.com", "https://ports.example.com:8443", "vscode-file://vscode-app"}
	})
	anyone := serve(t, server, func(p *Proxy) { p.AllowOrigins = []string{"*"} })
	for _, c := range []struct {
		front        front
		host, origin string
		refused      string // what is refused: Host or Origin
	}{
		{open, "", "", ""},
		{open, "service.namespace.svc:8080", "", ""},
		{open, "evil.example", "http://localhost:6274", ""},
		{open, "", "http://localhost:6274", ""},
		{open, "", "http://LOCALHOST:6274", ""},
		{open, "", "https://127.0.0.1", ""},
		{open, "", "http://127.1.2.3:1", ""},
		{open, "", "http://[::1]:80", ""},
		{open, "", "http://evil.example", "Origin"},
		{open, "", "http://localhost.evil.example", "Origin"},
		{open, "", "http://localhost@evil.example", "Origin"},
		{open, "", "http://localhost:80/", "Origin"},
		{open, "", "null", "Origin"},
		{open, "", "file://", "Origin"},
		{open, "", "http://10.0.0.1", "Origin"},
		{open, "", "http://0.0.0.0", "Origin"},
		{open, "evil.example", "http://evil.example", "Origin"}, // rebinding
		{loopback, "", "", ""},
		{loopback, "localhost", "", ""},
		{loopback, "LocalHost:1", "", ""},
		{loopback, "127.0.0.1:9000", "", ""},
		{loopback, "[::1]:9000", "", ""},
		{loopback, "[::1]", "", ""},
		{loopback, "[::ffff:127.0.0.1]:9000", "", ""},
		{loopback, "evil.example", "", "Host"},
		{loopback, "evil.example:8080", "http://localhost", "Host"},
		{loopback, "localhost.evil.example", "", "Host"},
		{loopback, "127.0.0.1.evil.example", "", "Host"},
		{named, "mcp.example.com", "", ""},
		{named, "MCP.example.com:8080", "", ""},
		{named, "other.example.com:8443", "", ""},
		{named, "other.example.com", "", "Host"},
		{named, "[2001:db8::1]:80", "", ""},
		{named, "localhost", "", ""},
		{named, "sub.mcp.example.com", "", "Host"},
		{named, "mcp.example.com", "https://app.example.com", ""},
		{named, "mcp.example.com", "https://app.example.com:443", ""},
		{named, "mcp.example.com", "http://app.example.com", "Origin"},
		{named, "mcp.example.com", "https://app.example.com:444", "Origin"},
		{named, "mcp.example.com", "https://ports.example.com:8443", ""},
		{named, "mcp.example.com", "https://ports.example.com", "Origin"},
		{named, "mcp.example.com", "vscode-file://vscode-app", ""},
		{anyone, "", "http://evil.example", ""},
	} {
		h := headers{}
		if c.host != "" {
			h["Host"] = c.host
		}
		if c.origin != "" {
			h["Origin"] = c.origin
		}
		before := reached
		res := c.front.do(t, http.MethodGet, "/", "", h)
		body := readAll(t, res)
		if c.refused == "" && (res.StatusCode != http.StatusNoContent || reached != before+1) {
			t.Errorf("Host %q, Origin %q: %d %s", c.host, c.origin, res.StatusCode, body)
		}
		if c.refused != "" && (res.StatusCode != http.StatusForbidden || reached != before || !strings.Contains(body, "mcp-refit: the "+c.refused+" ")) {
			t.Errorf("Host %q, Origin %q: %d %s", c.host, c.origin, res.StatusCode, body)
		}
	}
}
