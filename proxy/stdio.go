package proxy

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A Stream is one peer of Run: what it says, and what it is told, a message a
// line.
type Stream struct {
	R io.Reader
	W io.WriteCloser

	// Ended says how the peer ended, to complete a sentence that begins with
	// "the server". It is called once R has ended, and may wait. nil: "closed
	// its output".
	Ended func() string
}

// Run carries messages between a client and a server until one of them ends.
// When the client's stream ends, the server's W is closed, and Run goes on
// until the server's stream ends too. When the server's stream ends, or ctx
// does, requests that the client waits for are answered with an error, both
// Ws are closed, and Run returns. It does not wait for a Read that is under way
// on the client's stream.
//
// The error is nil if a stream ended with io.EOF.
func (p *Proxy) Run(ctx context.Context, client, server Stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := p.link(client, server)
	stop := context.AfterFunc(ctx, func() { server.W.Close() })
	defer stop()

	fromClient, fromServer := make(chan error, 1), make(chan error, 1)
	go func() {
		fromClient <- l.pump(ctx, ToServer)
		server.W.Close()
	}()
	go func() { fromServer <- l.pump(ctx, ToClient) }()

	var err error
	select {
	case err = <-fromServer:
	case err = <-fromClient:
		if e := <-fromServer; err == nil {
			err = e
		}
	}
	l.finish(server)
	l.end()
	return err
}

// A link is a session over two streams.
type link struct {
	*session
	read  [2]*frameReader // by the direction of what is read
	write [2]*frameWriter // by the direction of what is written

	asked int // how many requests of our own were sent

	mu     sync.Mutex
	closed bool // nothing may be posted any more
}

func (p *Proxy) link(client, server Stream) *link {
	l := &link{session: &session{proxy: p, known: true}}
	maxMessage := int64(0)
	if pol := p.policy(); pol != nil {
		maxMessage = int64(pol.Config.Limits.MaxMessage)
		p.inflight.limit(int64(pol.Config.Limits.MaxInflight))
	}
	l.write = [2]*frameWriter{ToServer: {w: server.W}, ToClient: {w: client.W}}
	for to, r := range map[Direction]io.Reader{ToServer: client.R, ToClient: server.R} {
		w := l.write[to]
		l.read[to] = &frameReader{r: r, max: maxMessage, room: &p.inflight, block: func() { _ = w.flush() }}
	}
	l.send = l.post
	l.ask = l.request
	l.waiting = func(to Direction) { _ = l.write[to].flush() }
	return l
}

// post sends a message of our own, unless the link is being closed.
func (l *link) post(to Direction, raw []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.write[to].post(raw)
}

// finish answers what is still open, once the server has ended.
func (l *link) finish(server Stream) {
	how := "closed its output"
	if server.Ended != nil {
		how = server.Ended()
	}
	for _, answer := range l.failCalls(ToServer, "mcp-refit: the server "+how+" before it answered") {
		l.post(ToClient, answer)
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	_ = l.write[ToClient].close()
	server.W.Close()
	_ = l.write[ToServer].close()
}

// pump carries the messages of one direction until its stream ends.
func (l *link) pump(ctx context.Context, to Direction) error {
	defer l.write[to].flush()
	for {
		f, err := l.read[to].next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case f.tooLarge != "":
			l.tooLarge(to, &f)
		default:
			if err := l.carry(to, f.line, f.wire); err != nil && to == ToClient {
				return err // the client is gone; a server that is gone ends its own stream
			}
		}
	}
}

// carry handles one line and passes on what comes of it.
func (l *link) carry(to Direction, line, wire []byte) error {
	out, err := l.handle(to, line)
	if err != nil {
		return l.stray(to, line, err)
	}
	if out.reply != nil {
		l.post(to.back(), out.reply)
	}
	if out.forward == nil {
		return nil
	}
	err = l.write[to].write(out.forward, wire)
	if err != nil && to == ToServer {
		l.unreachable(out.forward)
	}
	return err
}

// unreachable answers a request that the server can't be given any more.
func (l *link) unreachable(raw []byte) {
	env, err := rewrite.Scan(raw)
	if err != nil || env.Kind != rewrite.KindRequest {
		return
	}
	id := env.ID.Of(raw)
	l.session.mu.Lock()
	open := l.calls.remove(callKey{ToServer, canonicalID(id)})
	l.session.mu.Unlock()
	if open != nil {
		l.post(ToClient, errorMessage(id, codeInternal, "mcp-refit: the server does not read its input any more"))
	}
}

// stray deals with a line that is no message. Two messages on one line are
// taken apart. From the client it is answered; from the server it is most
// likely a banner or a log line, and goes to whoever wants those.
func (l *link) stray(to Direction, line []byte, why error) error {
	var trailing *rewrite.TrailingError
	if errors.As(why, &trailing) {
		if _, err := rewrite.Scan(line[:trailing.Offset]); err == nil {
			if err := l.carry(to, line[:trailing.Offset], nil); err != nil {
				return err
			}
			return l.carry(to, line[trailing.Offset:], nil)
		}
	}
	if to == ToServer {
		code, text := codeParse, textParse
		if errors.Is(why, rewrite.ErrNotMessage) {
			code, text = codeInvalidRequest, textNotMessage
		}
		l.log().Warn("a line from the client is no message and was not passed on", zap.Error(why), zap.Int("bytes", len(line)))
		l.post(ToClient, errorMessage(nil, code, text))
		return nil
	}
	l.log().Warn("a line on the server's stdout is no JSON-RPC message and was not passed on; servers write logs to stderr", zap.Error(why), zap.Int("bytes", len(line)))
	if h := l.proxy.OnStray; h != nil {
		h(line)
	}
	return nil
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
		l.calls.answered(callKey{to.back(), canonicalID(id)})
		l.session.mu.Unlock()
		l.post(to, errorMessage(id, codeInvalidRequest, text))
	}
}

// askTimeout is how long a request of our own waits for its response.
const askTimeout = 10 * time.Second

// request sends a request of our own to the server and waits for the response.
func (l *link) request(method string, params []byte) ([]byte, error) {
	response := make(chan []byte, 1)
	l.session.mu.Lock()
	l.asked++
	id := []byte(`"mcp-refit-` + strconv.Itoa(l.asked) + `"`)
	l.calls.add(callKey{ToServer, canonicalID(id)}, &call{id: id, method: method, waiter: response})
	l.session.mu.Unlock()
	raw := `{"jsonrpc":"2.0","id":` + string(id) + `,"method":"` + method + `","params":` + string(params) + `}`
	if !l.post(ToServer, []byte(raw)) {
		return nil, errClosed
	}
	select {
	case r := <-response:
		return r, nil
	case <-time.After(askTimeout):
		l.session.mu.Lock()
		l.calls.remove(callKey{ToServer, canonicalID(id)})
		l.session.mu.Unlock()
		return nil, errors.New("the server did not answer in " + askTimeout.String())
	}
}
