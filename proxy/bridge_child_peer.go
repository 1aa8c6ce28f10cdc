package proxy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A childPeer is a child and its two streams of lines.
type childPeer struct {
	t     *ChildTransport
	child *Child
	w     *frameWriter
}

var errChildrenFull = errors.New("too many children")

// An owner is told what comes from a child, by one goroutine.
type owner interface {
	// deliver is given each message, in order. It is valid during the call.
	deliver(raw []byte, env rewrite.Envelope)
	// lost is told of a message that was too large.
	lost(f *frame)
	// gone is told how the child ended, after everything else.
	gone(how string)
}

// startPeer starts a child. Nothing is read of it before serve.
func (t *ChildTransport) startPeer() (*childPeer, error) {
	t.mu.Lock()
	most := t.Children
	if most == 0 {
		most = DefaultChildren
	}
	switch {
	case t.closed:
		t.mu.Unlock()
		return nil, errors.New("the proxy is being stopped")
	case most > 0 && t.running >= most:
		t.mu.Unlock()
		return nil, errChildrenFull
	}
	t.running++
	t.children.Add(1)
	t.told()
	t.mu.Unlock()
	child, err := t.Start()
	if err != nil {
		t.ended()
		return nil, err
	}
	return &childPeer{t: t, child: child, w: newFrameWriter(child.Stdin())}, nil
}

// told tells the hook how many children run. The caller holds the lock.
func (t *ChildTransport) told() {
	if t.OnChildren != nil {
		t.OnChildren(t.running)
	}
}

func (t *ChildTransport) ended() {
	t.mu.Lock()
	t.running--
	t.told()
	t.mu.Unlock()
	t.children.Done()
}

// serve delivers what the child writes, until it ends.
func (p *childPeer) serve(to owner) {
	defer p.t.ended()
	r := &frameReader{r: p.child.Stdout(), max: p.t.MaxMessage}
	for {
		f, err := r.next(context.Background())
		if err != nil {
			break
		}
		if f.tooLarge != "" {
			to.lost(&f)
			continue
		}
		p.line(f.line, to.deliver)
	}
	how := p.how()
	_ = p.w.close()
	if err := p.child.Shutdown(); err != nil {
		p.t.log().Error("the server could not be ended", zap.Error(err))
	}
	to.gone(how)
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
const endedWait = 250 * time.Millisecond

func (p *childPeer) line(line []byte, deliver func([]byte, rewrite.Envelope)) {
	env, err := rewrite.Scan(line)
	var trailing *rewrite.TrailingError
	if errors.As(err, &trailing) {
		if _, err := rewrite.Scan(line[:trailing.Offset]); err == nil {
			p.line(line[:trailing.Offset], deliver)
			p.line(line[trailing.Offset:], deliver)
			return
		}
	}
	if err != nil {
		p.t.log().Warn("a line on the server's stdout is no JSON-RPC message and was not passed on; servers write logs to stderr", zap.Error(err), zap.Int("bytes", len(line)))
		if p.t.OnStray != nil {
			p.t.OnStray(line)
		}
		return
	}
	deliver(line, env)
}

// post writes a message of our own to the child, without waiting for it. A
// child that is gone needs none.
func (p *childPeer) post(message []byte) { p.w.post(message) }

// send writes a message to the child, in one line whatever it came in.
func (p *childPeer) send(message []byte) error {
	oneLine(message)
	if err := p.w.write(message, nil); err != nil {
		return err
	}
	return p.w.flush()
}
