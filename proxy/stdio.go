package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A Stream is one peer of Run: what it says, and what it is told, a message a
// line.
type Stream struct {
	R io.Reader
	// W is closed when no more is to be said, more than once and from several
	// goroutines. Close should end a Write that is under way.
	W io.WriteCloser

	// Ended says how the peer ended, to complete a sentence that begins with
	// "the server". It is called once R has ended, and may wait. nil: "closed
	// its output".
	Ended func() string
}

// Run carries messages between a client and a server until one of them ends.
//
// When the client's stream ends, or ctx does, the server's W is closed, and
// Run goes on until the server's stream ends too; once ctx has ended, for
// EndWait at most. Then the requests that the client still waits for are
// answered with an error, both Ws are closed, and Run returns. It does not wait
// for a Read that is under way on the client's stream, nor, after EndWait, for
// a Write.
//
// A peer that does not read holds up what is on its way to it, and nothing
// else. If the client has ended, a server that takes nothing for EndWait is not
// waited for: its W is closed, and what is left for it is lost. The error is nil
// if the streams ended with io.EOF.
func (p *Proxy) Run(ctx context.Context, client, server Stream) error {
	wait := orDefault(p.EndWait, DefaultEndWait)
	watch := newStallWatch(client.R, server.W, wait)
	l := p.link(Stream{R: watch, W: client.W}, Stream{R: server.R, W: watch})

	fromClient, fromServer := make(chan error, 1), make(chan error, 1)
	go func() {
		err := l.pump(ctx, ToServer)
		// A server that does not read must not keep us from ending it.
		late := time.AfterFunc(wait, func() { _ = server.W.Close() })
		_ = l.write[ToServer].close()
		late.Stop()
		_ = server.W.Close()
		fromClient <- err
	}()
	go func() {
		err := l.pump(ctx, ToClient)
		_ = l.write[ToClient].flush()
		fromServer <- err
	}()

	var clientErr, serverErr error
	var late <-chan time.Time
	end := ctx.Done()
	for serverEnded := false; !serverEnded; {
		select {
		case serverErr = <-fromServer:
			serverEnded = true
		case clientErr = <-fromClient:
			fromClient = nil
		case <-end:
			end, late = nil, time.After(wait)
			_ = server.W.Close()
		case <-late:
			late = closedTime
			serverEnded = true
		}
	}
	how := "closed its output"
	if server.Ended != nil {
		how = server.Ended()
	}
	l.finish(how, end, late, wait)
	_ = client.W.Close()
	_ = server.W.Close()
	l.end()
	if clientErr != nil {
		return clientErr
	}
	return serverErr
}

// closedTime is a timer that has run out.
var closedTime = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// A messageWriter is the way to a peer. It is safe for concurrent use.
type messageWriter interface {
	// write passes on a message. If the message still stands in front of its
	// line end, wire is both. They are valid during the call alone, and what is
	// written may wait in a buffer until flush.
	write(message, wire []byte) error
	flush() error
	// post passes on a message of our own, without waiting for a slow peer. It
	// reports false where there is no way any more.
	post(message []byte) bool
	// close delivers what was posted; shut refuses what is still to come.
	close() error
	shut()
}

// newLink makes a link without its two sides.
func (p *Proxy) newLink() *link {
	l := &link{session: &session{proxy: p, known: true}}
	l.send = l.post
	l.ask = l.request
	l.waiting = func(to Direction) { _ = l.write[to].flush() }
	p.session("", true)
	return l
}

// end forgets the session.
func (l *link) end() {
	l.session.end()
	l.proxy.session("", false)
}

// readClient makes r the stream that the client is read from.
func (l *link) readClient(r io.Reader) {
	l.read[ToServer] = &frameReader{r: r, limit: l.proxy.lineLimit, room: &l.proxy.inflight, block: func() error {
		_ = l.write[ToServer].flush() // a server that is gone ends its own stream
		return nil
	}}
}

func (p *Proxy) link(client, server Stream) *link {
	l := p.newLink()
	toServer := newFrameWriter(server.W)
	toServer.lost = func(lines []byte) {
		for line := range bytes.Lines(lines) {
			l.unreachable(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	l.write = [2]messageWriter{ToServer: toServer, ToClient: newFrameWriter(client.W)}
	l.readClient(client.R)
	l.read[ToClient] = &frameReader{r: server.R, limit: p.lineLimit, room: &p.inflight, taken: room{answers: true}, block: l.write[ToClient].flush}
	return l
}

var errClosed = errors.New("the stream is closed")

// A link is a session whose client is on a stream. Its server is on another
// one, or at a URL.
type link struct {
	*session
	read  [2]*frameReader  // by the direction of what is read; nil where that is no stream
	write [2]messageWriter // by the direction of what is written
}

// post sends a message of our own, unless the link is being closed.
func (l *link) post(to Direction, raw []byte) bool { return l.write[to].post(raw) }

// finish answers what is still open, once the server has ended, how to be read
// after "the server". A client that does not read is waited for, but once ctx
// has ended (end) no longer than the given time, of which late is what is left.
func (l *link) finish(how string, end <-chan struct{}, late <-chan time.Time, wait time.Duration) {
	answers := l.failCalls(ToServer, "mcp-refit: the server "+how+" before it answered")
	told := make(chan struct{})
	go func() {
		defer close(told)
		for _, answer := range answers {
			_ = l.write[ToClient].write(answer, nil)
		}
		_ = l.write[ToClient].close()
	}()
	for {
		select {
		case <-told:
		case <-end:
			end, late = nil, time.After(wait)
			continue
		case <-late:
		}
		break
	}
	l.write[ToServer].shut()
	l.write[ToClient].shut()
}

// pump carries the messages of one direction until its stream ends.
func (l *link) pump(ctx context.Context, to Direction) error {
	for {
		f, err := l.read[to].next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case f.tooLarge != "":
			l.tooLarge(to, &f)
		default:
			if err := l.carry(to, f.line, f.wire); err != nil && to == ToClient {
				return err // the client is gone
			}
		}
	}
}

// carry handles one line and passes on what comes of it. Two messages on one
// line are taken apart.
func (l *link) carry(to Direction, line, wire []byte) error {
	for {
		rest, err := l.carryFirst(to, line, wire)
		if err != nil || rest == nil {
			return err
		}
		line, wire = rest, nil
	}
}

// carryFirst handles the first message of a line, and returns what stands
// behind it, nil if that is nothing.
func (l *link) carryFirst(to Direction, line, wire []byte) (rest []byte, err error) {
	out, err := l.handle(to, line)
	if trailing, ok := errors.AsType[*rewrite.TrailingError](err); ok {
		var first outcome
		if first, err = l.handle(to, line[:trailing.Offset]); err == nil {
			out, rest, wire = first, line[trailing.Offset:], nil
		}
	}
	if err != nil {
		l.stray(to, line, err)
		return nil, nil
	}
	return rest, l.pass(to, out, wire)
}

// pass passes on what has come of a message.
func (l *link) pass(to Direction, out outcome, wire []byte) error {
	if out.reply != nil {
		l.post(to.back(), out.reply)
	}
	if out.forward == nil {
		if l.settles {
			l.settle(out.answered)
		}
		return nil
	}
	err := l.writeTo(to, out, wire)
	if err != nil && to == ToServer {
		l.unreachable(out.forward)
	}
	if out.after != nil {
		out.after()
	}
	return err
}

// An answerWriter is a way to a server on which an answer may not arrive.
type answerWriter interface {
	// writeAnswer is write for a message that answers these requests of the
	// server. They stay open until it has arrived.
	writeAnswer(message []byte, answered []*call) error
}

func (l *link) writeTo(to Direction, out outcome, wire []byte) error {
	if w, ok := l.write[to].(answerWriter); ok && out.answered != nil {
		return w.writeAnswer(out.forward, out.answered)
	}
	return l.write[to].write(out.forward, wire)
}

// unreachable answers the requests in a message that the server can't be given
// any more.
func (l *link) unreachable(raw []byte) {
	env, err := rewrite.Scan(raw)
	switch {
	case err != nil:
	case env.Kind == rewrite.KindBatch:
		for at := range rewrite.Elements(raw, arrayAt(raw)) {
			l.unreachable(at.Of(raw))
		}
	case env.Kind == rewrite.KindRequest:
		id := env.ID.Of(raw)
		l.session.mu.Lock()
		open := l.calls.remove(callKey{ToServer, canonicalID(id)})
		l.session.mu.Unlock()
		if open != nil {
			l.post(ToClient, errorMessage(id, codeInternal, "mcp-refit: the server does not read its input any more"))
		}
	}
}

// stray deals with a line that is no message. From the client it is answered;
// from the server it is most likely a banner or a log line, and goes to whoever
// wants those. What was meant as a message is answered for like one that is too
// large; but a client that is told of a syntax error can say it again.
func (l *link) stray(to Direction, line []byte, why error) {
	f, message := unreadable(line, why)
	if to == ToServer {
		if message && errors.Is(why, rewrite.ErrDepth) {
			l.tooLarge(to, &f)
			return
		}
		code, text := codeParse, textParse
		if errors.Is(why, rewrite.ErrNotMessage) {
			code, text = codeInvalidRequest, textNotMessage
		}
		l.log().Warn("a line from the client is no message and was not passed on", zap.Error(why), zap.Int("bytes", len(line)))
		l.post(ToClient, errorMessage(nil, code, text))
		return
	}
	l.log().Warn("a line on the server's stdout is no JSON-RPC message and was not passed on; servers write logs to stderr", zap.Error(why), zap.Int("bytes", len(line)))
	if h := l.proxy.OnStray; h != nil {
		h(line)
	}
	if message && (f.skim.Kind() == rewrite.KindRequest || l.waitsFor(f.skim.ID())) {
		l.tooLarge(to, &f)
	}
}

// waitsFor reports whether the client waits for a response of that id.
func (l *link) waitsFor(id []byte) bool {
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	return l.calls.open[callKey{ToServer, canonicalID(id)}] != nil
}

// tooLarge answers for a message that was skipped: whoever waits for it, or
// sent it, gets an error.
func (l *link) tooLarge(to Direction, f *frame) {
	text := "mcp-refit: this message was not passed on: " + f.tooLarge
	id := f.skim.ID()
	l.log().Warn("a message was skipped", zap.String("why", f.tooLarge), zap.Stringer("direction", to), zap.String("method", f.skim.Method()))
	switch f.skim.Kind() {
	case rewrite.KindRequest:
		l.post(to.back(), errorMessage(id, codeInvalidRequest, text))
	case rewrite.KindResult:
		l.session.mu.Lock()
		answered := l.calls.find(canonicalID(id))
		if to == ToClient {
			answered = l.calls.open[callKey{ToServer, canonicalID(id)}]
		}
		if answered != nil {
			id = answered.id
			l.calls.remove(callKey{to.back(), canonicalID(id)})
		}
		l.session.mu.Unlock()
		l.post(to, errorMessage(id, codeInvalidRequest, text))
	case rewrite.KindInvalid:
		if to == ToServer { // a batch, most likely
			l.post(ToClient, errorMessage(nil, codeInvalidRequest, text))
		}
	}
}

// askTimeout is how long a request of our own waits for its response.
const askTimeout = 10 * time.Second

// request sends a request of our own to the server and waits for the response.
func (l *link) request(method string, params []byte) ([]byte, error) {
	response := make(chan []byte, 1)
	id := ownID()
	key := callKey{ToServer, canonicalID(id)}
	l.session.mu.Lock()
	l.calls.add(key, &call{id: id, method: method, waiter: response})
	l.session.mu.Unlock()
	defer func() {
		l.session.mu.Lock()
		defer l.session.mu.Unlock()
		l.calls.remove(key)
	}()
	raw := `{"jsonrpc":"2.0","id":` + string(id) + `,"method":"` + method + `","params":` + string(params) + `}`
	if !l.post(ToServer, []byte(raw)) {
		return nil, errClosed
	}
	select {
	case r := <-response:
		return r, nil
	case <-time.After(askTimeout):
		return nil, errors.New("the server did not answer in " + askTimeout.String())
	}
}
