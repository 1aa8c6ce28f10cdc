package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// resourceMetadata is where a server says what its resource is (RFC 9728).
const resourceMetadata = "/.well-known/oauth-protected-resource"

// checkOAuth warns of a server whose OAuth metadata does not speak of the URL
// that the client uses: clients then refuse to log in, or send their token
// around us. All of it is passed on as it is.
func (x *exchange) checkOAuth(res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		for _, challenge := range res.Header["Www-Authenticate"] {
			if _, rest, ok := strings.Cut(challenge, "resource_metadata="); ok {
				rest, _, _ = strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
				x.warnOAuth(rest)
			}
		}
	case x.r.Method == http.MethodGet && strings.HasPrefix(x.r.URL.Path, resourceMetadata) && res.StatusCode == http.StatusOK && isJSON(res.Header):
		if len(res.Header["Content-Encoding"]) > 0 {
			return nil
		}
		body, _, err := x.answerBody(res)
		if err != nil {
			return x.unread(res, err)
		}
		x.setBody(res, body, false)
		if _, err := rewrite.Scan(body); errors.Is(err, rewrite.ErrNotMessage) { // but JSON
			if i := bytes.IndexByte(body, '{'); i >= 0 {
				at, _ := rewrite.Lookup(body, rewrite.Span{Start: i, End: len(body)}, "resource")
				resource, _ := rewrite.String(body, at)
				x.warnOAuth(resource)
			}
		}
	}
	return nil
}

// warnOAuth warns, once, if a URL is not on the host that the client uses.
func (x *exchange) warnOAuth(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || strings.EqualFold(u.Host, x.r.Host) {
		return
	}
	x.p.http().oauth.Do(func() {
		x.p.logger().Warn("the server's OAuth metadata names another host than the one that clients use here, so they will not log in through this proxy; set the server's own resource (or base) URL to the one that clients use, or try --host client",
			zap.String("server says", text), zap.String("clients use", x.r.Host))
	})
}
