package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// modify looks at the server's answer before its header is passed on.
func (x *exchange) modify(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		return &refusal{http.StatusBadGateway, "mcp-refit: the server wants to switch protocols, and what it said then could not be checked"}
	}
	// Either would lead the client around us.
	res.Header.Del("Alt-Svc")
	res.Header.Del("Refresh")
	if !x.relocate(res) && redirects(res.StatusCode) && x.isMCP() {
		return &refusal{http.StatusBadGateway, "mcp-refit: the server redirects to " + inQuotes(res.Header.Get("Location")) + ", where nothing would be checked; if that is right, use it as the URL"}
	}
	x.p.sessions.learn(x, res)
	if success(res.StatusCode) {
		x.session.settle(x.answered)
	}
	if err := x.checkOAuth(res); err != nil {
		return err
	}
	switch {
	case res.Body == http.NoBody && x.reply == nil, x.r.Method == http.MethodHead:
		return nil
	case mediaType(res.Header) == typeEvents, x.events && success(res.StatusCode):
		readAsUTF8(res.Header)
		return x.streamAnswer(res)
	case x.mcp:
		if isJSON(res.Header) {
			readAsUTF8(res.Header)
		}
		return x.answer(res)
	}
	return nil
}

func success(status int) bool { return status >= 200 && status <= 299 }

func redirects(status int) bool {
	return status >= 300 && status <= 399 && status != http.StatusNotModified
}

// isMCP reports whether the request is one of the protocol, and not one beside it.
func (x *exchange) isMCP() bool {
	return x.mcp || x.events || x.r.Method == http.MethodDelete || x.r.URL.Path == x.p.Upstream.Path
}

// answer handles the messages in an answer that is not a stream.
func (x *exchange) answer(res *http.Response) error {
	if x.reply != nil && success(res.StatusCode) { // of a batch, this part was not the server's to answer
		res.Body.Close()
		res.StatusCode = http.StatusOK
		x.setBody(res, x.reply, true)
		res.Header["Content-Type"] = jsonType
		return nil
	}
	body, decoded, err := x.answerBody(res)
	if err != nil {
		return x.unread(res, err)
	}
	now, why := x.judgeAnswer(res, body)
	if why != "" {
		x.refuseAnswer(res, why)
		return nil
	}
	if res.StatusCode != http.StatusAccepted { // then the answer comes on another stream
		x.forget()
	}
	if decoded {
		res.Header.Del("Content-Encoding")
	}
	x.setBody(res, now, decoded || !same(now, body))
	return nil
}

// answerBody reads the body of an answer whole, and says whether its encoding
// had to be undone.
func (x *exchange) answerBody(res *http.Response) (body []byte, decoded bool, err error) {
	r, length := io.Reader(res.Body), res.ContentLength
	if encodings := res.Header["Content-Encoding"]; len(encodings) > 0 {
		d, err := decode(r, encodings)
		if err != nil {
			return nil, false, err
		}
		defer d.Close()
		r, length, decoded = d, -1, true
	}
	body, err = x.read(r, length, &x.answerRoom)
	if err == nil {
		res.Body.Close()
	}
	return body, decoded, err
}

// unread deals with an answer of which the body could not be read.
func (x *exchange) unread(res *http.Response, err error) error {
	var encoding *encodingError
	switch {
	case errors.As(err, &encoding):
		x.refuseAnswer(res, encoding.Error())
	case errors.Is(err, errTooLarge):
		x.refuseAnswer(res, "it is larger than the largest message allowed, "+sizeText(x.p.maxMessage())+" (--max-message)")
	case errors.Is(err, errFull):
		x.refuseAnswer(res, "too many bytes are in flight in this proxy (limits.max-inflight); try again later")
	case x.r.Context().Err() != nil:
		return err
	default:
		return &refusal{http.StatusBadGateway, "mcp-refit: the server's answer broke off or is damaged, so it was not passed on"}
	}
	return nil
}

// Why an answer is refused.
const (
	whyNotJSON    = "it is neither JSON nor an event stream"
	whyBadJSON    = "it is not valid JSON"
	whyNotMessage = "it is not a JSON-RPC 2.0 message"
)

// judgeAnswer handles the messages in a body. It returns what the client gets,
// the same slice if that is what came, or why it gets nothing of it.
func (x *exchange) judgeAnswer(res *http.Response, body []byte) (now []byte, why string) {
	text := bytes.TrimPrefix(body, bom) // response.json() skips it, too
	waits := len(x.ids) > 0 && success(res.StatusCode) && res.StatusCode != http.StatusAccepted
	trimmed := bytes.TrimSpace(text)
	switch {
	case len(trimmed) == 0:
		return body, ""
	case waits && !isJSON(res.Header):
		return nil, whyNotJSON
	case string(trimmed) == "null":
		return body, ""
	}
	env, err := rewrite.Scan(text)
	if err == nil {
		var out outcome
		if out, err = x.session.handleScanned(ToClient, text, env); err == nil {
			return x.take(res, out, text, body)
		}
	}
	switch {
	case !success(res.StatusCode):
		return body, "" // an error page; readers of a message see none in it
	case errors.Is(err, rewrite.ErrNotMessage):
		if waits || likeMessage(text) {
			return nil, whyNotMessage
		}
	case waits || isJSON(res.Header) || bytes.IndexByte(text, '{') >= 0:
		return nil, whyBadJSON
	}
	return body, "" // an acknowledgement, such as the text "Accepted"
}

// take is what the client gets of a message that was handled.
func (x *exchange) take(res *http.Response, out outcome, text, body []byte) ([]byte, string) {
	if out.reply != nil {
		x.session.send(ToServer, out.reply)
	}
	if out.after != nil {
		out.after()
	}
	switch {
	case out.forward == nil && len(x.ids) > 0:
		return x.errorBody(codeInternal, "mcp-refit: the server's answer was not passed on: it asks for what is not allowed"), ""
	case out.forward == nil:
		res.StatusCode = http.StatusAccepted
		return nil, ""
	case same(out.forward, text):
		return body, ""
	}
	return out.forward, ""
}

// refuseAnswer puts an error in the place of the server's answer.
func (x *exchange) refuseAnswer(res *http.Response, why string) {
	x.p.logger().Warn("an answer of the server was not passed on", zap.String("why", why), zap.Int("status", res.StatusCode), zap.String("type", res.Header.Get("Content-Type")))
	res.Body.Close()
	x.forget()
	if success(res.StatusCode) {
		res.StatusCode = http.StatusOK
	}
	res.Header["Content-Type"] = jsonType
	res.Header.Del("Content-Encoding")
	x.setBody(res, x.errorBody(codeInternal, "mcp-refit: the server's answer was not passed on: "+why), true)
}

// setBody makes body the body of the answer.
func (x *exchange) setBody(res *http.Response, body []byte, changed bool) {
	res.Body = io.NopCloser(bytes.NewReader(body))
	res.TransferEncoding = nil
	if changed {
		dropDigests(res.Header)
		res.Trailer = nil
	}
	if len(res.Trailer) > 0 { // they need chunks
		res.ContentLength = -1
		res.Header.Del("Content-Length")
		return
	}
	res.ContentLength = int64(len(body))
	res.Header["Content-Length"] = []string{strconv.Itoa(len(body))}
}

// dropDigests removes what was said of the bytes of a body that is now another.
func dropDigests(h http.Header) {
	for _, name := range []string{"Etag", "Digest", "Content-Digest", "Repr-Digest", "Content-Md5", "Accept-Ranges"} {
		delete(h, name)
	}
}

// forget closes the calls of a request for which no answer will come any more.
func (x *exchange) forget() {
	if len(x.ids) == 0 {
		return
	}
	s := x.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range x.ids {
		s.calls.remove(callKey{ToServer, canonicalID(id)})
	}
}
