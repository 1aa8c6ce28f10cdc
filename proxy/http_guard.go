package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// guard protects the server from pages in a browser on this machine or in this
// network: its own check sees our Host and is blind (DNS rebinding; MCP
// 2025-11-25, transports, security warning). It returns why a request is
// refused, empty if it is not.
func (p *Proxy) guard(r *http.Request) string {
	for _, origin := range r.Header["Origin"] {
		if !p.originAllowed(origin) {
			return "the Origin " + inQuotes(origin) + " is not allowed here (--allow-origin)"
		}
	}
	if (p.CheckHost || len(p.AllowHosts) > 0) && !p.hostAllowed(r.Host) {
		return "the Host " + inQuotes(r.Host) + " is not allowed here (--allow-host)"
	}
	return ""
}

// inQuotes is a header's value for people, short enough to be said.
func inQuotes(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return `"` + strings.ToValidUTF8(s, "?") + `"`
}

// originAllowed reports whether a page of that origin may talk to us.
func (p *Proxy) originAllowed(origin string) bool {
	u, err := url.Parse(origin)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && isLoopback(u.Hostname()) && origin == u.Scheme+"://"+u.Host {
		return true
	}
	for _, allowed := range p.AllowOrigins {
		if allowed == "*" || canonicalOrigin(allowed) == canonicalOrigin(origin) {
			return true
		}
	}
	return false
}

// canonicalOrigin is an origin in lower case and without a default port.
func canonicalOrigin(origin string) string {
	o := strings.ToLower(strings.TrimSpace(origin))
	if rest, ok := strings.CutPrefix(o, "https://"); ok {
		return "https://" + strings.TrimSuffix(rest, ":443")
	}
	if rest, ok := strings.CutPrefix(o, "http://"); ok {
		return "http://" + strings.TrimSuffix(rest, ":80")
	}
	return o
}

// hostAllowed reports whether a Host is one of ours: loopback, or allowed, by
// its name alone or with its port.
func (p *Proxy) hostAllowed(host string) bool {
	name, _ := splitHost(host)
	if isLoopback(name) {
		return true
	}
	for _, allowed := range p.AllowHosts {
		wanted, port := splitHost(allowed)
		if port != "" && strings.EqualFold(allowed, host) || port == "" && strings.EqualFold(wanted, name) {
			return true
		}
	}
	return false
}

// splitHost splits a Host into its name, without brackets, and its port.
func splitHost(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ""
}

func isLoopback(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
