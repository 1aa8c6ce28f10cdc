package proxy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A childPeer is a child and its two streams of lines. One goroutine reads, one
// writes, and neither waits for a client.
type childPeer struct {
	t     *ChildTransport
	child *Child
	w     *frameWriter
	own   bool // it belongs to one session
	heard bool // it has sent a message; of serve alone

	sends chan childSend // messages whose sender waits until they are written
	posts chan []byte    // messages of our own
	ended chan struct{}  // closed when the child has ended
}

// A childSend is a message on its way to a child.
type childSend struct {
	message []byte
	written chan error
}

// maxChildPosts is how many messages of our own may wait for a child that does
// not read. Those beyond it are lost: the child's reader must not wait for them.
const maxChildPosts = 1024

var errChildrenFull = errors.New("too many children")

// An owner is told what comes from a child, by one goroutine.
type owner interface {
	// deliver is given each message, in order. It is valid during the call.
	deliver(raw []byte, env rewrite.Envelope)
	// lost is told of a message that was too large, or that could not be read.
	lost(f *frame)
	// gone is told how the child ended, after everything else.
	gone(how string)
}

// startPeer starts a child, for one session or for all. Nothing is read of it
// before serve.
func (t *ChildTransport) startPeer(own bool) (*childPeer, error) {
	if err := t.reserve(own); err != nil {
		return nil, err
	}
	p := &childPeer{t: t, own: own, sends: make(chan childSend), posts: make(chan []byte, maxChildPosts), ended: make(chan struct{})}
	child, err := t.Start()
	if err != nil {
		t.release(p)
		return nil, err
	}
	p.child, p.w = child, newFrameWriter(child.Stdin())
	t.mu.Lock()
	closed := t.closed
	t.peers[p] = struct{}{}
	t.mu.Unlock()
	if closed { // while it was started
		_ = child.Shutdown()
		t.release(p)
		return nil, errStopping
	}
	go p.write()
	return p, nil
}

var errStopping = errors.New("the proxy is being stopped")

// reserve counts a child that is to be started, if there may be one more.
func (t *ChildTransport) reserve(own bool) error {
	most := t.limits().Children
	t.mu.Lock()
	defer t.mu.Unlock()
	if most == 0 {
		most = DefaultChildren
	}
	switch {
	case t.closed:
		return errStopping
	case own && most > 0 && t.own >= most:
		return errChildrenFull
	}
	if t.peers == nil {
		t.peers = make(map[*childPeer]struct{})
	}
	t.count(own, 1)
	t.children.Add(1)
	return nil
}

// release counts a child out.
func (t *ChildTransport) release(p *childPeer) {
	t.mu.Lock()
	delete(t.peers, p)
	t.count(p.own, -1)
	t.mu.Unlock()
	t.children.Done()
}

// count counts children, and tells the hook. The caller holds the lock.
func (t *ChildTransport) count(own bool, n int) {
	t.running += n
	if own {
		t.own += n
	}
	if t.OnChildren != nil {
		t.OnChildren(t.running)
	}
}

// serve delivers what the child writes, until it ends.
func (p *childPeer) serve(to owner) {
	defer p.t.release(p)
	r := p.t.reader(p.child)
	for {
		f, err := r.next(context.Background())
		if err != nil {
			break
		}
		if f.tooLarge != "" {
			p.t.log().Warn("a message of the server was skipped", zap.String("why", f.tooLarge), zap.String("method", f.skim.Method()))
			to.lost(&f)
			continue
		}
		p.line(f.line, to)
	}
	r.taken.give()
	how, asked := p.how(), p.child.stopping()
	if err := p.child.Shutdown(); err != nil {
		p.t.log().Error("the server could not be ended", zap.Error(err))
	}
	close(p.ended)
	if !p.heard && !asked && p.t.OnSilentEnd != nil {
		p.t.OnSilentEnd(how)
	}
	to.gone(how)
}

// write writes to the child what is sent and posted, until it ends. A child
// that does not read holds up this goroutine alone.
func (p *childPeer) write() {
	line := func(message []byte) error {
		if err := p.w.write(message, nil); err != nil {
			return err
		}
		return p.w.flush()
	}
	for {
		select {
		case s := <-p.sends:
			s.written <- line(s.message)
		case message := <-p.posts:
			_ = line(message) // a child that is gone needs none
		case <-p.ended:
			return
		}
	}
}

// how says how the child ended, or that it closed its output and goes on.
func (p *childPeer) how() string {
	ended := make(chan ExitStatus, 1)
	go func() { ended <- p.child.Wait() }()
	select {
	case status := <-ended:
		return status.String()
	case <-time.After(endedWait):
		return "closed its output"
	}
}

// endedWait is how long a child has to say how it ended, once its output has.
const endedWait = 2 * time.Second

func (p *childPeer) line(line []byte, to owner) {
	env, err := rewrite.Scan(line)
	var trailing *rewrite.TrailingError
	if errors.As(err, &trailing) {
		if _, err := rewrite.Scan(line[:trailing.Offset]); err == nil {
			p.line(line[:trailing.Offset], to)
			p.line(line[trailing.Offset:], to)
			return
		}
	}
	if err != nil {
		p.t.log().Warn("a line on the server's stdout is no JSON-RPC message and was not passed on; servers write logs to stderr", zap.Error(err), zap.Int("bytes", len(line)))
		if p.t.OnStray != nil {
			p.t.OnStray(line)
		}
		if f, message := unreadable(line, err); message {
			to.lost(&f)
		}
		return
	}
	p.heard = true
	to.deliver(line, env)
}

// post gives the child a message of our own, without waiting for it.
func (p *childPeer) post(message []byte) {
	select {
	case p.posts <- message:
	default:
		p.t.log().Warn("the server does not read its input, and a message to it was lost")
	}
}

// send gives the child a message, in one line whatever it came in, and waits
// until it is written or ctx ends. If ctx ends first, the message may get there
// all the same. There is no error if the child ends meanwhile: whoever owns it
// is told that.
func (p *childPeer) send(ctx context.Context, message []byte) error {
	oneLine(message)
	s := childSend{message, make(chan error, 1)}
	select {
	case p.sends <- s:
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-s.written:
		return err
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
