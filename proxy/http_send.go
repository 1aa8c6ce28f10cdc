package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// ownRequestWait is how long a message of our own to the server may take.
const ownRequestWait = 30 * time.Second

// sendTo injects a message of our own: to the client on a live stream of the
// session, to the server in a POST like the client's last one, which is not
// waited for.
func (s *httpSession) sendTo(to Direction, raw []byte) bool {
	if to == ToClient {
		s.http.Lock()
		streams := slices.Clone(s.streams)
		s.http.Unlock()
		return slices.ContainsFunc(streams, func(t *stream) bool { return t.inject(raw) })
	}
	req, cancel, err := s.request(bytes.Clone(raw), "")
	if err != nil {
		return false
	}
	go func() {
		defer cancel()
		res, err := s.proxy.transport().RoundTrip(req)
		if err != nil {
			s.log().Warn("a message of ours did not reach the server", zap.Error(err))
			return
		}
		res.Body.Close()
		if !success(res.StatusCode) {
			s.log().Warn("the server did not take a message of ours", zap.Int("status", res.StatusCode))
		}
	}()
	return true
}

// request makes a POST of our own to the server, with the headers of the
// client's last request.
func (s *httpSession) request(body []byte, method string) (*http.Request, context.CancelFunc, error) {
	s.http.Lock()
	header, to := s.header.Clone(), s.postTo
	s.http.Unlock()
	if to == nil {
		return nil, nil, errors.New("no request of the client has come yet")
	}
	up := s.proxy.Upstream
	url := &url.URL{Scheme: up.Scheme, Host: up.Host, Path: to.Path, RawPath: to.RawPath, RawQuery: upstreamQuery(up, to)}
	ctx, cancel := context.WithTimeout(context.Background(), ownRequestWait)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url.String(), bytes.NewReader(body))
	if err != nil {
		cancel()
		return nil, nil, err
	}
	for _, name := range notOurs {
		header.Del(name)
	}
	for name := range header {
		if method != "" && len(name) > len(headerParam) && name[:len(headerParam)] == headerParam {
			delete(header, name)
		}
	}
	s.proxy.upstreamHeader(header)
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	req.Header = header
	return req, cancel, nil
}

// notOurs are headers that speak of one request or its connection alone.
var notOurs = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
	"Content-Length", "Content-Encoding", "Last-Event-Id", "If-None-Match", "If-Modified-Since", "Range",
	"Digest", "Content-Digest", "Content-Md5", headerMethod, headerName,
}

// Headers that mirror the body (2026-07-28).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	headerParam  = "Mcp-Param-"
)

// askServer sends a request of our own to the server and returns its response.
func (s *httpSession) askServer(method string, params []byte) ([]byte, error) {
	id := ownID()
	body := requestMessage(id, method, params)
	req, cancel, err := s.request(body, method)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if req.Header.Get(headerVersion) >= revisionModern {
		req.Header.Set(headerMethod, method)
		at, _ := rewrite.Lookup(params, rewrite.Span{Start: 0, End: len(params)}, "taskId")
		if name, ok := rewrite.String(params, at); ok {
			req.Header.Set(headerName, headerText(name))
		}
	}
	res, err := s.proxy.transport().RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return s.responseTo(id, res)
}

// ownID is the id of a request of our own. It can't be guessed, so no peer can
// have another's answer taken for the one to ours.
func ownID() []byte { return []byte(`"mcp-refit-` + rand.Text() + `"`) }

// requestMessage makes a JSON-RPC request.
func requestMessage(id []byte, method string, params []byte) []byte {
	b := make([]byte, 0, len(id)+len(method)+len(params)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"method":`...)
	b = append(b, rewrite.Quote(method)...)
	if len(params) > 0 {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// responseTo finds the response with that id in an answer of the server.
func (s *httpSession) responseTo(id []byte, res *http.Response) ([]byte, error) {
	body, err := decode(res.Body, res.Header["Content-Encoding"])
	if err != nil {
		return nil, err
	}
	defer body.Close()
	limit := s.proxy.maxMessage()
	if limit <= 0 {
		limit = 64 << 20
	}
	if mediaType(res.Header) != typeEvents {
		raw, err := io.ReadAll(io.LimitReader(body, limit+1))
		switch {
		case err != nil:
			return nil, err
		case int64(len(raw)) > limit:
			return nil, errTooLarge
		case !answers(raw, id):
			return nil, fmt.Errorf("the server answered with status %d and no response", res.StatusCode)
		}
		return raw, nil
	}
	var found []byte
	p := sseParser{max: int(limit), piece: func([]byte) {}, tooLarge: func() []byte { return nil }}
	p.event = func(_ string, data []byte) []byte {
		if answers(data, id) {
			found = bytes.Clone(data)
		}
		return nil
	}
	buf := make([]byte, sseBuffer)
	for {
		n, err := body.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			rest = rest[p.write(rest):]
			if found != nil {
				return found, nil
			}
			p.out = p.out[:0]
		}
		if err != nil {
			return nil, fmt.Errorf("the stream ended without a response: %w", err)
		}
	}
}

// answers reports whether raw is a response with that id.
func answers(raw, id []byte) bool {
	env, err := rewrite.Scan(raw)
	return err == nil && (env.Kind == rewrite.KindResult || env.Kind == rewrite.KindError) && bytes.Equal(env.ID.Of(raw), id)
}

// headerText writes text as the value of a header that mirrors the body: as it
// is if it is plain ASCII, else in base64 (2026-07-28, transports).
func headerText(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, "=?base64?")
	for _, c := range []byte(text) {
		plain = plain && c >= ' ' && c < 0x7f
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}
