package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// RunURL carries messages between a client on a stream and the server at
// Upstream, until the client's stream ends, ctx does, or the client reads no
// more. It speaks Streamable HTTP of every revision, and HTTP+SSE (2024-11-05)
// where the server knows nothing else.
//
// When the client's stream ends, calls under way have the policy's
// limits.grace to be answered. Then, or when ctx ends, the requests that the
// client still waits for are answered with an error, and the session is
// deleted.
//
// # Order
//
// Each message is a POST of its own. Calls run at once, and nothing is said of
// their order among each other, as with any client over HTTP. A notification
// or a response is sent once every call before it has left, and what comes
// after it is sent once the server has acknowledged it, or after a second.
// Nothing is sent between initialize and its answer, nor between
// notifications/initialized and its acknowledgement.
//
// # Lost sessions
//
// A session that the server does not know any more (404, or the 400 that the
// examples of the official SDKs answer with) is made anew, with the client's
// own initialize and notifications/initialized, and the message that was turned
// away is sent once more: the server has not looked at it. Calls that were
// under way may have had an effect, so they are answered with an error and not
// repeated. Nor is what the client had set in the session: resources/subscribe
// and logging/setLevel. The client is told by notifications/cancelled that what
// the server had asked it in the lost session is not waited for any more.
//
// # What has no answer
//
// A notification that the server has not seen, since no connection was made or
// it answered 429 or 503, is sent again, three times at most. So is a client's
// answer to the server, after any failure: a second one does no harm. An answer
// that the server refuses all the same is followed by a JSON-RPC error in its
// place, and if that does not get there either, the call in which the server
// asked is answered with an error and cancelled. All this is true of a batch
// (2025-03-26) of notifications and answers too. One with a call in it is not
// sent again.
//
// # Headers of parameters
//
// Mcp-Param headers (2026-07-28, SEP-2243) are set by the client's own
// tools/list. A call of a tool that was not listed yet goes out without them; if
// the server refuses it for that (-32020), the list is asked for and the call is
// sent once more.
func (p *Proxy) RunURL(ctx context.Context, client Stream) error {
	l := p.newLink()
	l.origin = originOf(p.Upstream)
	l.settles = true
	r := newRemote(l)
	l.write = [2]messageWriter{ToServer: r, ToClient: newFrameWriter(client.W)}
	l.readClient(client.R)
	fromClient := make(chan error, 1)
	go func() { fromClient <- l.pump(r.ctx, ToServer) }()
	var err error
	select {
	case <-ctx.Done():
	case <-r.ctx.Done():
		err = context.Cause(r.ctx)
	case err = <-fromClient:
		r.drain(ctx)
	}
	wait := orDefault(p.EndWait, DefaultEndWait)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.stop()
	}()
	var late <-chan time.Time
	if !within(ctx, stopped, wait) {
		late = closedTime // the client does not read
	}
	l.finish("was left", ctx.Done(), late, wait)
	_ = client.W.Close()
	l.end()
	return err
}

// within waits until done is closed, but once ctx has ended no longer than
// wait. It reports false if that was too long.
func within(ctx context.Context, done <-chan struct{}, wait time.Duration) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// Times of the URL bridge.
const (
	// handshakeTimeout is how long a server may take to answer initialize and
	// server/discover, and to acknowledge a notification. Other calls have no
	// deadline: they may wait for a human.
	handshakeTimeout = time.Minute

	// ackWait is how long the messages behind a notification or a response
	// wait for its acknowledgement.
	ackWait = time.Second

	// afterAnswer is how long the stream of a call that is over, because it was
	// answered or cancelled, is still read.
	afterAnswer = 2 * time.Second

	// lostGrace is how long the calls of a lost session to which no answer has
	// begun may still be answered.
	lostGrace = 5 * time.Second

	// deleteTimeout is how long the DELETE at the end may take.
	deleteTimeout = 2 * time.Second
)

// errClientGone says that the client does not read what it is sent.
var errClientGone = errors.New("the client does not read any more")

// A remote is the server at a URL: what the client says is posted to it, and
// what it answers goes through the link to the client.
type remote struct {
	link   *link
	proxy  *Proxy
	ctx    context.Context // ends when all is to stop
	cancel context.CancelCauseFunc
	http   http.Client

	writing sync.WaitGroup // calls that have not left yet; of the dispatcher alone
	loops   sync.WaitGroup // all goroutines
	runners chan *post     // to one of the goroutines that wait for a message
	idlers  atomic.Int32   // how many there are of those
	tools   toolHeaders

	renewing sync.Mutex // held while a lost session is made anew

	mu        sync.Mutex
	changed   *sync.Cond // of queue and closed
	queue     []*post
	closed    bool                    // nothing more is sent
	open      map[string]*post        // who waits for a response, by its id
	questions map[string]openQuestion // of the server, by their ids
	dropped   map[string]openQuestion // those of sessions that are lost
	pending   int                     // messages that keep the end from coming
	idle      chan struct{}           // closed when there are none any more; nil: nobody waits for that
	url       *url.URL                // of the MCP endpoint
	session   remoteSession
	old       *oldServer // it speaks HTTP+SSE
}

func newRemote(l *link) *remote {
	r := &remote{link: l, proxy: l.proxy, open: make(map[string]*post), url: l.proxy.Upstream, runners: make(chan *post)}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.changed = sync.NewCond(&r.mu)
	// A redirect is looked at before it is followed.
	r.http = http.Client{
		Transport:     l.proxy.transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r.loops.Go(r.dispatch)
	return r
}

// write takes a message of the client.
func (r *remote) write(message, _ []byte) error { return r.writeAnswer(message, nil) }

// writeAnswer is write for a message that answers requests of the server.
func (r *remote) writeAnswer(message []byte, answered []*call) error {
	p := r.newPost(message)
	p.answered = answered
	if r.isDropped(p) {
		r.refuse(p, errAskedBefore)
		return nil
	}
	if !r.proxy.inflight.take(r.ctx, &p.room, int64(len(message))) {
		r.refuse(p, errNoRoom)
		return nil
	}
	if !r.enqueue(p) {
		p.room.give()
		p.cancel()
		return errClosed
	}
	return nil
}

// post takes a message of our own.
func (r *remote) post(message []byte) bool { return r.enqueue(r.newPost(message)) }

// flush does nothing: what was written is on its way.
func (r *remote) flush() error { return nil }

// close does nothing: stop has ended it all.
func (r *remote) close() error { return nil }

// shut does nothing, for the same reason.
func (r *remote) shut() {}

func (r *remote) enqueue(p *post) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for key := range p.waits {
		r.open[key] = p
	}
	p.generation = r.session.generation
	if p.counts {
		r.pending++
		p.counted = true
	}
	r.queue = append(r.queue, p)
	r.changed.Signal()
	return true
}

// next is the next message to be sent, nil at the end.
func (r *remote) next() *post {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) == 0 && !r.closed {
		r.changed.Wait()
	}
	if r.closed {
		return nil
	}
	p := r.queue[0]
	r.queue = r.queue[1:]
	return p
}

// dispatch sends the messages, in the order that RunURL promises.
func (r *remote) dispatch() {
	for p := r.next(); p != nil; p = r.next() {
		if r.givesUp(p) {
			p.finish()
			continue
		}
		if !p.call || len(p.answers) > 0 {
			r.writing.Wait()
		}
		r.writing.Add(1)
		p.sent = sync.OnceFunc(r.writing.Done)
		r.start(p)
		switch {
		case p.method == "initialize", p.method == "notifications/initialized":
			<-p.done
		case !p.call:
			select {
			case <-p.done:
			case <-time.After(ackWait):
			}
		}
	}
}

// maxIdlers is how many goroutines that have run a message wait for the next:
// as many as clients have calls under way at most times. Their stacks have
// grown to what an exchange takes, which costs a new one as much as a tenth of
// the exchange.
const maxIdlers = 16

// start runs p in a goroutine that waits, or else in a new one.
func (r *remote) start(p *post) {
	select {
	case r.runners <- p:
		return
	default:
	}
	r.loops.Go(func() {
		for {
			r.run(p)
			p = nil // nothing holds its memory
			if r.idlers.Add(1) > maxIdlers {
				r.idlers.Add(-1)
				return
			}
			select {
			case p = <-r.runners:
				r.idlers.Add(-1)
			case <-r.ctx.Done():
				return
			}
		}
	})
}

// drain waits until the calls under way have been answered.
func (r *remote) drain(ctx context.Context) {
	r.mu.Lock()
	idle := make(chan struct{})
	if r.idle = idle; r.pending == 0 {
		close(idle)
		r.idle = nil
	}
	r.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	case <-r.ctx.Done():
	case <-time.After(r.proxy.limits().Grace.Std()):
	}
}

// stop ends all that is under way, and the session.
func (r *remote) stop() {
	r.mu.Lock()
	r.closed = true
	r.changed.Broadcast()
	queue, open := r.queue, r.open
	r.queue, r.open = nil, map[string]*post{}
	r.mu.Unlock()
	for _, p := range queue {
		p.finish()
	}
	for _, p := range open {
		p.finish()
	}
	r.cancel(nil)
	r.delete()
	r.loops.Wait()
	r.http.CloseIdleConnections()
}

// deliver handles a message of the server, which came on the stream of a call,
// or for nil on the server's own. An error says that it is none.
func (r *remote) deliver(data []byte, on *post) error {
	oneLine(data)
	env, err := rewrite.Scan(data)
	if err != nil {
		return err
	}
	now, over, kept := r.settle(data, env)
	defer func() {
		for _, p := range over {
			p.finish()
		}
	}()
	if kept {
		return nil
	}
	r.asked(data, env, on)
	if !same(now, data) {
		if env, err = rewrite.Scan(now); err != nil {
			return err
		}
	}
	out, err := r.link.handleScanned(ToClient, now, env)
	if err != nil {
		return err
	}
	err = r.link.pass(ToClient, out, nil)
	if err == nil {
		err = r.link.write[ToClient].flush()
	}
	if err != nil {
		r.cancel(errClientGone)
	}
	return nil
}

func (r *remote) log() *zap.Logger { return r.proxy.logger() }
