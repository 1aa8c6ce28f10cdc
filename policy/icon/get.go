package icon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxURL bounds an icon's URL and each redirect's, in bytes.
const maxURL = 2048

// maxHeader bounds a response's header and all informational ones before it,
// in bytes.
const maxHeader = 16 << 10

// A fetched is what an icon's host answered, unjudged but for its declared type.
type fetched struct {
	body   []byte
	format format // as the host declared it; formatNone: not at all
	ttl    time.Duration
}

// parseURL reads an icon's URL: absolute, https (or http where that is
// allowed), with a host and without credentials.
func (f *Fetcher) parseURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, failf(ReasonURL, "longer than %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fail(ReasonURL, err)
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !f.AllowHTTP):
		return nil, failf(ReasonURL, "scheme %q", u.Scheme)
	case u.Opaque != "" || u.Hostname() == "":
		return nil, failf(ReasonURL, "no host")
	case u.User != nil:
		return nil, failf(ReasonURL, "credentials")
	case strings.HasSuffix(u.Host, ":") || strings.ContainsAny(u.Hostname(), "%\x00"):
		return nil, failf(ReasonURL, "host %q", u.Host)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// get fetches u, following redirects within its origin.
func (f *Fetcher) get(ctx context.Context, u *url.URL) (fetched, error) {
	ctx, cancel := withTimeout(ctx, f.TotalTimeout, defaultTotalTimeout)
	defer cancel()
	for range count(f.MaxRedirects, defaultMaxRedirects) + 1 {
		response, err := f.roundTrip(ctx, u)
		if err != nil {
			return fetched{}, err
		}
		if !redirects(response.StatusCode) {
			return f.read(ctx, cancel, response)
		}
		_ = response.Body.Close() // unread
		next, err := f.redirect(u, response.Header)
		if err != nil {
			return fetched{}, err
		}
		u = next
	}
	return fetched{}, failf(ReasonRedirect, "too many")
}

// roundTrip sends one request. Nothing in it tells who asks or what for.
func (f *Fetcher) roundTrip(ctx context.Context, u *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fail(ReasonURL, err)
	}
	request.Header.Set("User-Agent", "mcp-refit")
	request.Header.Set("Accept", "image/png,image/webp,image/jpeg,image/gif,image/svg+xml")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := f.transport().RoundTrip(request)
	if err != nil {
		return nil, httpError(err)
	}
	return response, nil
}

// httpError gives err a reason. The client's own text is left out: it quotes
// what came in place of a response, which may be an internal service's.
func httpError(err error) error {
	if ReasonOf(err) != "" {
		return err
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return failf(ReasonHTTP, "timed out")
	}
	return failf(ReasonHTTP, "no valid response")
}

// newTransport makes the transport: no proxy of the environment, which would
// hide the address from the dialer; one connection a request, so that each
// address is judged and none is kept past the policy that allowed it.
func (f *Fetcher) newTransport() *http.Transport {
	return &http.Transport{
		DialContext:            f.dial,
		DialTLSContext:         f.dialTLS,
		DisableKeepAlives:      true,
		ResponseHeaderTimeout:  duration(f.HeaderTimeout, defaultHeaderTimeout),
		MaxResponseHeaderBytes: maxHeader,
	}
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirect returns where header leads from u, if that is on u's origin.
func (f *Fetcher) redirect(u *url.URL, header http.Header) (*url.URL, error) {
	locations := header.Values("Location")
	if len(locations) != 1 || len(locations[0]) > maxURL {
		return nil, failf(ReasonRedirect, "%d locations", len(locations))
	}
	reference, err := url.Parse(locations[0])
	if err != nil {
		return nil, fail(ReasonRedirect, err)
	}
	next, err := f.parseURL(u.ResolveReference(reference).String())
	if err != nil {
		return nil, &Error{Reason: ReasonRedirect, Err: err}
	}
	if next.Scheme != u.Scheme || !strings.EqualFold(next.Hostname(), u.Hostname()) || portOf(next) != portOf(u) {
		return nil, failf(ReasonRedirect, "to another origin")
	}
	return next, nil
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

// read judges a response's head and reads its body. cancel ends the request
// when the body takes too long.
func (f *Fetcher) read(ctx context.Context, cancel context.CancelFunc, response *http.Response) (fetched, error) {
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fetched{}, failf(ReasonStatus, "%d", response.StatusCode)
	}
	for _, coding := range response.Header.Values("Content-Encoding") {
		if !strings.EqualFold(coding, "identity") {
			return fetched{}, fail(ReasonEncoding, nil)
		}
	}
	declared, ok := contentFormat(response.Header.Values("Content-Type"))
	if !ok {
		return fetched{}, fail(ReasonType, nil)
	}
	limit := f.maxBytes()
	if response.ContentLength > int64(limit) {
		return fetched{}, failf(ReasonTooLarge, "%d bytes", response.ContentLength)
	}
	if d := duration(f.BodyTimeout, defaultBodyTimeout); d > 0 {
		clock := time.AfterFunc(d, cancel)
		defer clock.Stop()
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	if err == nil {
		err = ctx.Err() // a host may end the body because it sees us leave
	}
	switch {
	case err != nil:
		return fetched{}, fail(ReasonBody, err)
	case len(body) > limit:
		return fetched{}, fail(ReasonTooLarge, fmt.Errorf("more than %d bytes", limit))
	}
	return fetched{body: body, format: declared, ttl: f.lifetime(response.Header)}, nil
}
