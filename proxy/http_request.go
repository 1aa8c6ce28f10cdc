package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// bodyStall is how long a client may take to send the next piece of a body, or
// to read the next one of a large answer that is not a stream.
const bodyStall = 30 * time.Second

// bodyLinger is how long the rest of the body of a request that was refused is
// read for, so that its client comes to read why.
const bodyLinger = 5 * time.Second

// linger bounds the wait for a body that was not read: net/http reads what is
// left of it once the request has been answered, and does so without a deadline.
func (x *exchange) linger() {
	if x.r.ContentLength != 0 && !x.whole {
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(bodyLinger)) // without one, the writer is not net/http's
	}
}

// post reads the body of a POST and handles the messages in it. It reports
// false if the request has been answered.
func (x *exchange) post() bool {
	body, err := x.requestBody()
	if err != nil {
		x.refuseBody(err)
		return false
	}
	x.whole = len(x.r.Header["Content-Encoding"]) == 0 // else what stands behind may still come
	env, err := rewrite.Scan(body)
	if errors.Is(err, rewrite.ErrDepth) {
		if body = x.tooDeep(body, err); body == nil {
			return false
		}
		env, err = rewrite.Scan(body)
	}
	x.body = body
	if err != nil && !x.passes(body, err) {
		return false
	}
	x.enter(x.p.sessions.of(x.r))
	if err != nil {
		return true
	}
	x.mcp = true
	x.note(body, env)
	if x.listen && !x.stand() {
		x.end()
		return false
	}
	if x.initialize {
		if x.reserved = x.p.sessions.reserve(x.p.limits()); !x.reserved {
			x.end()
			x.refuse(http.StatusOK, codeInternal, textSessionsFull)
			return false
		}
	}
	out, err := x.session.handleScanned(ToServer, body, env)
	if err != nil {
		x.end()
		x.refuse(http.StatusBadRequest, codeInvalidRequest, textNotMessage)
		return false
	}
	x.answered = out.answered
	if out.forward == nil {
		x.session.settle(x.answered)
		x.answerSelf(out.reply)
		x.end()
		return false
	}
	x.body, x.reply = out.forward, out.reply
	return true
}

// tooDeep answers a request that is nested too deep, and then returns nil. In
// the place of a response it returns an error, for the server that waits for it.
func (x *exchange) tooDeep(body []byte, why error) []byte {
	f, message := unreadable(body, why)
	if !message {
		return body
	}
	text := "mcp-refit: this message was not passed on: " + f.tooLarge
	if f.skim.Kind() == rewrite.KindResult {
		return errorMessage(f.skim.ID(), codeInvalidRequest, text)
	}
	x.ids = [][]byte{f.skim.ID()}
	x.refuse(http.StatusOK, codeInvalidRequest, text)
	return nil
}

// passes says whether a body that is no message goes on all the same: it is
// not taken for one by a reader that is less strict. If not, it is refused.
func (x *exchange) passes(body []byte, err error) bool {
	code, text := codeParse, textParse
	if errors.Is(err, rewrite.ErrNotMessage) {
		if !likeMessage(body) {
			return true // a client that registers with an OAuth server, for example
		}
		code, text = codeInvalidRequest, textNotMessage
	} else if len(body) == 0 || !isJSON(x.r.Header) && bytes.IndexByte(body, '{') < 0 {
		return true // a form
	}
	x.p.logger().Warn("the body of a POST is no message and was not passed on", zap.Error(err), zap.Int("bytes", len(body)), zap.String("path", x.r.URL.Path))
	x.refuse(http.StatusBadRequest, code, text)
	return false
}

// likeMessage reports whether JSON that is no JSON-RPC 2.0 message might be
// taken for one.
func likeMessage(raw []byte) bool {
	i := bytes.IndexAny(raw, "{[")
	if i < 0 {
		return false
	}
	at := rewrite.Span{Start: i, End: len(raw)}
	if raw[i] == '[' {
		return true // an array in which an element is none
	}
	for member := range rewrite.Members(raw, at) {
		switch rewrite.Fold(member.Key) {
		case "method", "result", "error", "jsonrpc":
			return true
		}
	}
	return false
}

// note remembers what the body asks for.
func (x *exchange) note(body []byte, env rewrite.Envelope) {
	switch env.Kind {
	case rewrite.KindRequest:
		x.ids = append(x.ids, bytes.Clone(env.ID.Of(body)))
		x.initialize = x.initialize || env.Method == "initialize"
		x.listen = x.listen || env.Method == "subscriptions/listen"
	case rewrite.KindBatch:
		for at := range rewrite.Elements(body, arrayAt(body)) {
			element := at.Of(body)
			if e, err := rewrite.Scan(element); err == nil && e.Kind == rewrite.KindRequest {
				x.note(element, e)
			}
		}
	}
}

// answerSelf answers a request of which nothing is passed on.
func (x *exchange) answerSelf(reply []byte) {
	if reply == nil { // an answer that is asked for once more
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	x.writeJSON(refusalStatus(reply), reply)
}

// refusalStatus is the HTTP status of an error of ours: clients take a bare
// 4xx for a server of an older revision, and a 5xx for one that is gone, so it
// is 200, except where the specification has another.
func refusalStatus(reply []byte) int {
	env, err := rewrite.Scan(reply)
	if err == nil && env.Kind == rewrite.KindError {
		code, _ := rewrite.Lookup(reply, env.Error, "code")
		if string(code.Of(reply)) == strconv.Itoa(codeHeaderMismatch) {
			return http.StatusBadRequest
		}
	}
	return http.StatusOK
}

// Errors of reading a body.
var (
	errTooLarge = errors.New("the body is larger than the largest message allowed")
	errFull     = errors.New("too many bytes are in flight")
)

// requestBody reads the client's body whole and undoes its encoding.
func (x *exchange) requestBody() ([]byte, error) {
	x.p.limitInflight()
	body := io.Reader(x.r.Body)
	if x.r.ContentLength == 0 {
		return []byte{}, nil
	}
	stall := http.NewResponseController(x.w)
	if stall.SetReadDeadline(time.Now().Add(bodyStall)) == nil {
		defer stall.SetReadDeadline(time.Time{})
		body = &steadyReader{r: body, controller: stall, due: steadyPiece}
	}
	length := x.r.ContentLength
	if encodings := x.r.Header["Content-Encoding"]; len(encodings) > 0 {
		decoded, err := decode(body, encodings)
		if err != nil {
			return nil, err
		}
		defer decoded.Close()
		body, length = decoded, -1
	}
	return x.read(body, length, &x.room)
}

// A steadyReader gives a body that keeps coming more time.
type steadyReader struct {
	r          io.Reader
	controller *http.ResponseController
	due        int // bytes until the deadline is moved
}

// steadyPiece is how many bytes have to come in bodyStall.
const steadyPiece = 64 << 10

func (s *steadyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.due -= n; s.due <= 0 && err == nil {
		s.due = steadyPiece
		_ = s.controller.SetReadDeadline(time.Now().Add(bodyStall)) // it could be set before
	}
	return n, err
}

// read reads a body whole, within the bounds on a message and on all of them.
// length is what the peer says that it is, -1 if it says nothing.
func (x *exchange) read(r io.Reader, length int64, taken *room) ([]byte, error) {
	return x.p.readBody(x.r.Context(), r, length, taken)
}

func (p *Proxy) readBody(ctx context.Context, r io.Reader, length int64, taken *room) ([]byte, error) {
	limit := p.maxMessage()
	if limit > 0 && length > limit {
		return nil, errTooLarge
	}
	size := int64(bytes.MinRead)
	if length >= 0 {
		size = min(length+1, frameBuffer)
	}
	if !p.inflight.take(ctx, taken, size) {
		return nil, errFull
	}
	buf := make([]byte, 0, size)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case limit > 0 && int64(len(buf)) > limit:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) < cap(buf):
			continue
		}
		grow := int64(cap(buf))
		if length >= 0 {
			grow = min(grow, max(length+1-int64(cap(buf)), 1))
		}
		if !p.inflight.take(ctx, taken, grow) {
			return nil, errFull
		}
		buf = append(bodyBuffer(cap(buf)+int(grow)), buf...)
	}
}

// refuseBody answers a request of which the body could not be read.
func (x *exchange) refuseBody(err error) {
	x.room.give()
	var encoding *encodingError
	status, text := http.StatusBadRequest, "mcp-refit: the body of the request could not be read"
	switch {
	case errors.As(err, &encoding):
		status, text = http.StatusUnsupportedMediaType, "mcp-refit: "+encoding.Error()
	case errors.Is(err, errTooLarge):
		status, text = http.StatusRequestEntityTooLarge, "mcp-refit: the request is larger than the largest message allowed, "+sizeText(x.p.maxMessage())+" (--max-message)"
	case errors.Is(err, errFull):
		status, text = http.StatusServiceUnavailable, "mcp-refit: too many bytes are in flight in this proxy (limits.max-inflight); try again later"
	case isTimeout(err):
		status, text = http.StatusRequestTimeout, "mcp-refit: the body of the request did not arrive in time"
	}
	x.p.logger().Warn("a request was refused", zap.Int("status", status), zap.Error(err))
	x.w.Header().Set("Connection", "close") // the rest of the body is not read
	x.refuse(status, codeInvalidRequest, text)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// setRequestBody makes the body that was read the body of the request to the
// server. A reader in memory lets the transport send it with the header in one
// write, and again where a connection turns out to be dead.
func (x *exchange) setRequestBody(out *http.Request) {
	out.ContentLength = int64(len(x.body))
	out.TransferEncoding, out.Trailer = nil, nil
	out.Header.Del("Content-Encoding")
	dropDigests(out.Header)
	if x.mcp || isJSON(out.Header) {
		readAsUTF8(out.Header)
	}
	if out.ContentLength == 0 {
		out.Body, out.GetBody = http.NoBody, nil
		return
	}
	body := x.body
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
}

// refuse answers the request with a JSON-RPC error.
func (x *exchange) refuse(status, code int, text string) {
	x.writeJSON(status, x.errorBody(code, text))
}

// errorBody is an error for each request of the exchange.
func (x *exchange) errorBody(code int, text string) []byte {
	if len(x.ids) == 0 {
		return errorMessage(nil, code, text)
	}
	if len(x.ids) == 1 {
		return errorMessage(x.ids[0], code, text)
	}
	var all [][]byte
	for _, id := range x.ids {
		all = append(all, errorMessage(id, code, text))
	}
	return joinBatch(all)
}

func (x *exchange) writeJSON(status int, body []byte) {
	h := x.w.Header()
	h["Content-Type"] = jsonType
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body) // a client that is gone needs no answer
	}
}

var jsonType = []string{"application/json"}

// mediaType is what stands before the first semicolon of a Content-Type.
func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

func isJSON(h http.Header) bool {
	t := mediaType(h)
	return t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json")
}

const typeEvents = "text/event-stream"

// acceptsEvents reports whether a request asks for an event stream by name.
func acceptsEvents(h http.Header) bool {
	for _, line := range h["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			t, _, err := mime.ParseMediaType(part)
			if err != nil {
				t, _, _ = strings.Cut(part, ";")
				t = strings.ToLower(strings.TrimSpace(t))
			}
			if t == typeEvents || t == "text/*" {
				return true
			}
		}
	}
	return false
}
