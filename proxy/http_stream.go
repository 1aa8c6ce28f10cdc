package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// streamAnswer handles the events of an answer that is an event stream, one by
// one, as they come.
func (x *exchange) streamAnswer(res *http.Response) error {
	b := &sseBody{x: x, body: res.Body, r: io.NopCloser(res.Body), taken: room{answers: true}}
	if encodings := res.Header["Content-Encoding"]; len(encodings) > 0 {
		d, err := decode(res.Body, encodings)
		if err != nil {
			x.refuseAnswer(res, err.Error())
			return nil
		}
		b.r = d
		res.Header.Del("Content-Encoding")
	}
	b.parse = sseParser{max: int(x.p.maxMessage()), event: b.event, piece: b.piece, tooLarge: b.tooLarge}
	x.stream = &stream{w: x.w, body: b, standing: x.events || x.listen, cancel: x.cancel}
	if x.stream.standing && !x.p.sessions.stand(x.stream) {
		return &refusal{http.StatusServiceUnavailable, textDraining}
	}
	res.Body = b
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	dropDigests(res.Header)
	x.session.attach(x.stream)
	x.room.give() // a stream may last long, and the request is with the server
	return nil
}

// A stream is an event stream on its way to a client. Events of our own can be
// written into it from the side, between those of the server.
type stream struct {
	body     *sseBody
	standing bool   // it answers a GET: it belongs to no call
	cancel   func() // ends the request to the server

	mu      sync.Mutex
	w       http.ResponseWriter
	started bool     // the header is out
	closed  bool     // the answer has ended
	ending  bool     // we end it
	between bool     // what was written ends where an event ends
	queue   [][]byte // events that wait for that
}

func (s *stream) start(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started, s.between = true, true
	s.w.WriteHeader(status)
	s.drain()
}

// write passes on what body has just returned.
func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.w.Write(b)
	s.between = s.body.between
	s.drain()
	return n, err
}

func (s *stream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return http.NewResponseController(s.w).Flush()
}

// drain writes the events that wait, where they can stand.
func (s *stream) drain() {
	if !s.started || !s.between || len(s.queue) == 0 {
		return
	}
	for _, event := range s.queue {
		_, _ = s.w.Write(event) // a client that is gone is noticed by the copy
	}
	s.queue = nil
	_ = http.NewResponseController(s.w).Flush()
}

// inject writes an event of our own. It reports false if the stream has ended.
func (s *stream) inject(message []byte) bool {
	var p sseParser
	p.emit(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.queue = append(s.queue, append(p.out, '\n'))
	s.drain()
	return true
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// sseBuffer is how much of a stream is read at a time, in bytes.
const sseBuffer = 8 << 10

var sseBufferPool = sync.Pool{New: func() any { return new([sseBuffer]byte) }}

// An sseBody is the body of an answer that is an event stream: the server's,
// with each event handled.
type sseBody struct {
	x     *exchange
	body  io.Closer     // the server's
	r     io.ReadCloser // the same, decoded
	parse sseParser
	taken room // by the event that is being read

	buf     *[sseBuffer]byte
	unread  []byte // of buf
	off     int    // of parse.out, what was handed out
	err     error
	between bool // what was handed out ends where an event ends
	lost    bool // an event was not passed on that may have been an answer
	skim    rewrite.Skim
}

// Read returns bytes up to the end of one event, so that each is flushed by
// itself and none waits for what the next one waits for.
func (b *sseBody) Read(p []byte) (int, error) {
	for {
		if b.off < len(b.parse.out) {
			n := copy(p, b.parse.out[b.off:])
			b.off += n
			if b.off == len(b.parse.out) {
				b.parse.out, b.off = b.parse.out[:0], 0
				if cap(b.parse.out) > keepBuffer {
					b.parse.out = nil
				}
			}
			b.between = b.off == 0 && b.parse.boundary()
			return n, nil
		}
		switch {
		case len(b.unread) > 0:
			b.unread = b.unread[b.parse.write(b.unread):]
			b.account()
		case b.err != nil:
			return 0, b.err
		default:
			b.fill()
		}
	}
}

func (b *sseBody) fill() {
	if b.buf == nil {
		b.buf = sseBufferPool.Get().(*[sseBuffer]byte)
	}
	n, err := b.r.Read(b.buf[:])
	b.unread = b.buf[:n]
	if err == nil {
		return
	}
	for len(b.unread) > 0 {
		b.unread = b.unread[b.parse.write(b.unread):]
	}
	ending := b.x.stream.isEnding()
	if b.err == nil {
		b.err = err
	}
	if ending {
		b.err = io.EOF
	}
	clean := errors.Is(b.err, io.EOF)
	b.parse.end(!clean || ending)
	switch {
	case ending:
	case !clean:
		b.brokeOff()
	default:
		b.answerLost()
	}
}

// brokeOff answers, where the server's stream broke off, the requests that it
// was to answer: a client that sees only its end may wait for ever. Where an
// event had an id the client may come back for the rest (2025-11-25,
// transports, resumability), and sees the stream as it is.
func (b *sseBody) brokeOff() {
	if b.x.r.Context().Err() != nil {
		return // the client is gone, and so it broke off
	}
	if !b.parse.resumes && b.answerOpen(textBrokeOff, false) {
		b.x.p.logger().Warn("the server's stream broke off before its answer", zap.Error(b.err))
		b.err = io.EOF
		return
	}
	_ = b.x.stream.flush() // so that the client has the status, at least
}

const textBrokeOff = "mcp-refit: the server's stream broke off before its answer; the request may have had its effect"

// account counts a large event that is being read to the bytes in flight.
func (b *sseBody) account() {
	const small = 64 << 10
	held := int64(len(b.parse.held))
	switch {
	case held < small:
		b.taken.give()
	case held > b.taken.size:
		if !b.x.p.inflight.take(b.x.r.Context(), &b.taken, held-b.taken.size) {
			b.parse.giveUp()
			b.taken.give()
		}
	}
}

// Close ends the request to the server.
func (b *sseBody) Close() error {
	b.taken.give()
	if b.buf != nil {
		sseBufferPool.Put(b.buf)
		b.buf, b.unread = nil, nil
	}
	b.r.Close()
	return b.body.Close()
}

// event handles the data of one event, and returns what the client gets.
func (b *sseBody) event(name string, data []byte) []byte {
	if len(data) == 0 {
		return data
	}
	s := b.x.session
	out, err := s.handle(ToClient, data)
	if err != nil {
		return b.notMessage(name, data, err)
	}
	if out.reply != nil {
		s.send(ToServer, out.reply)
	}
	if out.after != nil {
		out.after()
	}
	return out.forward
}

// notMessage is what the client gets of data that is no message.
func (b *sseBody) notMessage(name string, data []byte, err error) []byte {
	if name == "endpoint" {
		return b.endpoint(data)
	}
	like := bytes.IndexByte(data, '{') >= 0
	if errors.Is(err, rewrite.ErrNotMessage) {
		like = likeMessage(data)
	}
	if !like {
		return data
	}
	b.x.p.logger().Warn("an event of the server is no message and was not passed on", zap.Error(err), zap.String("event", name), zap.Int("bytes", len(data)))
	if f, message := unreadable(data, err); message {
		return b.answerSkipped(f.skim, f.tooLarge)
	}
	b.lost = true
	return nil
}

// piece is given a piece of an event that is too large.
func (b *sseBody) piece(p []byte) { _, _ = b.skim.Write(p) }

// tooLarge answers for an event that is too large.
func (b *sseBody) tooLarge() []byte {
	skim := b.skim
	b.skim = rewrite.Skim{}
	why := "it is larger than the largest message allowed, " + sizeText(b.x.p.maxMessage()) + " (--max-message), or too many bytes are in flight (limits.max-inflight)"
	b.x.p.logger().Warn("an event of the server was skipped", zap.String("why", why), zap.String("method", skim.Method()))
	return b.answerSkipped(skim, why)
}

// answerSkipped answers for a message that is not passed on: whoever waits for
// it, or sent it, gets an error.
func (b *sseBody) answerSkipped(skim rewrite.Skim, why string) []byte {
	s, text := b.x.session, "mcp-refit: this message was not passed on: "+why
	switch skim.Kind() {
	case rewrite.KindRequest:
		s.send(ToServer, errorMessage(skim.ID(), codeInvalidRequest, text))
	case rewrite.KindResult:
		s.mu.Lock()
		s.calls.remove(callKey{ToServer, canonicalID(skim.ID())})
		s.mu.Unlock()
		return errorMessage(skim.ID(), codeInvalidRequest, text)
	default:
		b.lost = true
	}
	return nil
}

// answerLost answers, at the end of a stream, the requests of which the answer
// may have been in an event that was not passed on, and those of the stateless
// revision, which has no other stream for it. One of the others may come on.
func (b *sseBody) answerLost() {
	if b.lost {
		b.answerOpen("mcp-refit: the server's answer was not passed on: "+whyBadJSON, false)
	}
	b.answerOpen(textNoAnswer, true)
}

const textNoAnswer = "mcp-refit: the server's stream ended without its answer; the request may have had its effect"

// answerOpen answers the requests of the exchange that were not, or those of
// the stateless revision alone, with an error. It reports whether there are any.
func (b *sseBody) answerOpen(text string, stateless bool) (any bool) {
	s := b.x.session
	for _, id := range b.x.ids {
		key := callKey{ToServer, canonicalID(id)}
		s.mu.Lock()
		open := s.calls.open[key]
		if stateless && open != nil && (open.revision == "" || open.method == "subscriptions/listen") { // which its stream's end ends
			open = nil
		}
		if open != nil {
			s.calls.remove(key)
		}
		s.mu.Unlock()
		if open != nil {
			any = true
			b.parse.add(errorMessage(id, codeInternal, text))
		}
	}
	return any
}

// endpoint maps the URL to which the client of HTTP+SSE (2024-11-05) is to
// send its messages to one that leads through us, and makes the session. A URL
// elsewhere ends the stream.
func (b *sseBody) endpoint(data []byte) []byte {
	mapped, ok := b.x.ours(string(data))
	if !ok {
		b.x.p.logger().Warn("the server announced an endpoint where nothing would be checked", zap.ByteString("endpoint", data))
		b.err = &refusal{http.StatusBadGateway, "mcp-refit: the endpoint is not on the server's origin"}
		return nil
	}
	b.x.p.sessions.announce(b.x, mapped)
	if isPlainReference(string(data)) {
		return data
	}
	return []byte(mapped.String())
}
