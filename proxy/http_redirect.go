package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// relocate maps a Location on the server's own origin to ours. It reports
// false if the client would leave us by it.
func (x *exchange) relocate(res *http.Response) bool {
	location, ok := res.Header["Location"]
	if !ok || len(location) == 0 {
		return true
	}
	mapped, ok := x.ours(location[0])
	if ok && len(location) == 1 {
		res.Header["Location"] = []string{mapped.String()}
		return true
	}
	return false
}

// ours maps a reference that the server gave to one that leads through us: a
// path and query, which is the same here as there. It reports false if it
// leads elsewhere.
func (x *exchange) ours(reference string) (*url.URL, bool) {
	// Browsers read a backslash as a slash, and skip tabs and line ends.
	if strings.ContainsAny(reference, "\\\t\r\n") {
		return nil, false
	}
	ref, err := url.Parse(strings.TrimSpace(reference))
	if err != nil {
		return nil, false
	}
	up, in := x.p.Upstream, x.r.URL
	base := &url.URL{Scheme: up.Scheme, Host: up.Host, Path: in.Path, RawPath: in.RawPath, RawQuery: in.RawQuery}
	to := base.ResolveReference(ref)
	if to.Opaque != "" || to.User != nil || !x.isUpstream(to) {
		return nil, false
	}
	to.Scheme, to.Host = "", ""
	if to.Path == "" {
		to.Path = "/"
	}
	return to, to.Path[0] == '/' && !strings.HasPrefix(to.EscapedPath(), "//")
}

// isPlainReference reports whether every reader takes a reference for a path
// and query on the origin that it came from.
func isPlainReference(reference string) bool {
	for _, c := range []byte(reference) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\\\"<>^`{|}'", c) >= 0 {
			return false
		}
	}
	u, err := url.Parse(reference)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && !strings.HasPrefix(reference, "//")
}

// isUpstream reports whether a URL is on the server's origin, or on ours as
// the server may know it (Host, X-Forwarded-Host).
func (x *exchange) isUpstream(u *url.URL) bool {
	up := x.p.Upstream
	if canonicalOrigin(originOf(u)) == canonicalOrigin(originOf(up)) {
		return true
	}
	return x.p.ClientHost && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, x.r.Host)
}
