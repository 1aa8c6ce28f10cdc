package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// An answerError is why a request has no answer of the server's, as the
// JSON-RPC error that the client gets.
type answerError struct {
	message []byte // a whole response of which the id is to be put right
}

func (e *answerError) Error() string { return "the server answered with an error" }

// answerOf is the response that tells a request why it has none of the server's.
func answerOf(id []byte, why error) []byte {
	var answer *answerError
	if errors.As(why, &answer) {
		if m := withID(answer.message, id); m != nil {
			return m
		}
	}
	code := codeInternal
	var method *noMethodError
	if errors.As(why, &method) {
		code = codeMethodNotFound
	}
	return errorMessage(id, code, "mcp-refit: "+why.Error())
}

// withID puts the id of a request into an error response to it, nil if it is none.
func withID(message, id []byte) []byte {
	env, err := rewrite.Scan(message)
	if err != nil || env.Kind != rewrite.KindError {
		return nil
	}
	root := rewrite.Span{Start: 0, End: len(message)}
	var e rewrite.Edits
	if at, ok := rewrite.Get(message, root, "id"); ok {
		e.Replace(at.Value, id)
	} else {
		e.Prepend(message, root, append([]byte(`"id":`), id...))
	}
	return e.Apply(message)
}

// unreachable says why there is no answer at all, and what to check.
func (r *remote) unreachable(p *post, err error) error {
	err = withoutURL(err)
	server := "the server at " + originOf(r.proxy.Upstream)
	var auth *authError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case r.ctx.Err() != nil:
		return errors.New("this proxy was ended before the server answered")
	case errors.As(err, &auth), errors.Is(err, errAskedBefore):
		return err
	case errors.As(err, &dns):
		return fmt.Errorf("%s was not found (%s): check the host name in the URL", server, reason(err))
	case isTLSError(err):
		return fmt.Errorf("%s is not trusted (%s): check its certificate (--upstream-ca names the authority to trust)", server, reason(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not answer %s within %v: check that it is an MCP server and not overloaded", server, p.method, handshakeTimeout)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s can't be reached (%s): check that it can be reached from here", server, reason(err))
	}
	return fmt.Errorf("%s can't be reached, or broke off (%s): check that it is running and that the URL is right", server, reason(err))
}

// withoutURL takes the URL out of an error: what stands in its query may be secret.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// A noMethodError says that the server has nothing at the URL for a method.
type noMethodError struct{ text string }

func (e *noMethodError) Error() string { return e.text }

// refused says what an answer that is an HTTP error means: what the server
// itself says as JSON-RPC, else the status, with what to check.
func (r *remote) refused(p *post, res *http.Response, text []byte) error {
	if p.kind == rewrite.KindRequest && withID(text, []byte("0")) != nil {
		return &answerError{text}
	}
	said := ""
	if mediaType(res.Header) == "text/plain" {
		said = ", saying " + inQuotes(firstLine(text))
	}
	base := "the server answered " + res.Status + said
	switch status := res.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		err := errors.New(base + ": check that the URL is the one of the MCP endpoint")
		if p.method == "server/discover" { // a client may go on with initialize
			return &noMethodError{err.Error()}
		}
		return err
	case status == http.StatusBadRequest && p.method == "server/discover":
		return &noMethodError{base}
	case status == http.StatusTooManyRequests:
		return errors.New(base + ": wait before the next call")
	case status >= http.StatusInternalServerError:
		return errors.New(base + ": see its log")
	}
	return errors.New(base)
}

// firstLine is the beginning of a text, for a message to people.
func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	const most = 200 // bytes
	if len(line) > most {
		line = line[:most] + "…"
	}
	if !utf8.ValidString(line) {
		return strings.ToValidUTF8(line, "")
	}
	return line
}
