package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A sharedChild serves the stateless requests of 2026-07-28, of all clients.
// Their ids, and the progress tokens and subscription ids that come of them,
// are kept apart by numbers of ours, which are put in and taken out by splicing;
// nothing else is touched.
type sharedChild struct {
	t     *ChildTransport
	peer  *childPeer
	tools toolHeaders

	mu    sync.Mutex
	calls map[int]*sharedCall // in flight, by our number
	last  int
	ended string // how the child ended; empty if it runs
}

// A sharedCall is a client's request in flight.
type sharedCall struct {
	id     []byte // the client's own
	token  []byte // the client's own progressToken; nil if it sent none
	method string
	logs   bool // it asked for log messages
	stream *eventStream
}

// Restarting a child that dies at its start is put off, by a time that doubles.
const (
	minRestart = 100 * time.Millisecond
	maxRestart = 10 * time.Second
)

// postShared answers a request of 2026-07-28.
func (t *ChildTransport) postShared(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	id := env.ID.Of(body)
	switch env.Kind {
	case rewrite.KindRequest, rewrite.KindNotification:
	case rewrite.KindBatch:
		return refuseHTTP(r, http.StatusBadRequest, nil, codeInvalidRequest, "mcp-refit: there are no batches in this revision")
	default:
		return refuseHTTP(r, http.StatusBadRequest, id, codeInvalidRequest, "mcp-refit: in this revision a client sends requests and notifications alone")
	}
	c, err := t.sharedChild()
	switch {
	case errors.Is(err, errChildrenFull):
		text := t.FullText
		if text == "" {
			text = DefaultFullText
		}
		return refuseHTTP(r, http.StatusServiceUnavailable, id, codeInternal, text)
	case err != nil:
		t.log().Error("the server could not be started", zap.Error(err))
		return refuseHTTP(r, http.StatusBadGateway, id, codeInternal, "mcp-refit: "+err.Error())
	}
	if why := c.mismatch(r.Header, body, env); why != "" {
		return refuseHTTP(r, http.StatusBadRequest, id, codeHeaderMismatch, "mcp-refit: "+why)
	}
	if env.Kind == rewrite.KindNotification {
		return c.notification(r, body, env)
	}
	if why := incomplete(body, env); why != "" {
		return refuseHTTP(r, http.StatusBadRequest, id, codeInvalidParams, "mcp-refit: "+why)
	}
	return c.call(r, body, env)
}

// sharedChild is the shared child, started if there is none.
func (t *ChildTransport) sharedChild() (*sharedChild, error) {
	t.starting.Lock()
	defer t.starting.Unlock()
	t.mu.Lock()
	c := t.shared
	t.mu.Unlock()
	if c != nil {
		return c, nil
	}
	if wait := time.Until(t.startAgain); wait > 0 {
		return nil, errors.New("the server ended right after it was started; it is started again in " + wait.Round(time.Millisecond).String())
	}
	peer, err := t.startPeer()
	if err != nil {
		return nil, err
	}
	c = &sharedChild{t: t, peer: peer, calls: make(map[int]*sharedCall)}
	t.mu.Lock()
	t.shared = c
	t.mu.Unlock()
	started := time.Now()
	go func() {
		peer.serve(c)
		t.putOff(time.Since(started))
	}()
	return c, nil
}

// putOff puts off the next start of a child that has lasted that long.
func (t *ChildTransport) putOff(lasted time.Duration) {
	t.starting.Lock()
	defer t.starting.Unlock()
	if lasted > maxRestart {
		t.delay = 0
		return
	}
	t.delay = min(max(2*t.delay, minRestart), maxRestart)
	t.startAgain = time.Now().Add(t.delay)
}

// notification gives the child a client's notification. A cancellation names an
// id that other clients use too; over HTTP a request is cancelled by closing
// its stream.
func (c *sharedChild) notification(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	if env.Method != "notifications/cancelled" {
		if err := c.peer.send(body); err != nil {
			return refuseHTTP(r, http.StatusBadGateway, nil, codeInternal, "mcp-refit: the server does not read its input any more")
		}
	}
	return respond(r, http.StatusAccepted, nil)
}

// call gives the child a client's request, and answers with what comes of it.
func (c *sharedChild) call(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	one := &sharedCall{id: bytes.Clone(env.ID.Of(body)), method: env.Method, stream: newEventStream("", 0)}
	one.stream.single = true
	var e rewrite.Edits
	meta, _ := rewrite.Lookup(body, env.Params, "_meta")
	_, one.logs = rewrite.Get(body, meta, "io.modelcontextprotocol/logLevel")
	c.mu.Lock()
	if c.ended != "" {
		c.mu.Unlock()
		return refuseHTTP(r, http.StatusBadGateway, one.id, codeInternal, "mcp-refit: the server "+c.ended)
	}
	c.last++
	number := c.last
	c.calls[number] = one
	c.mu.Unlock()
	ours := []byte(strconv.Itoa(number))
	e.Replace(env.ID, ours)
	if token, ok := rewrite.Get(body, meta, "progressToken"); ok {
		one.token = bytes.Clone(token.Value.Of(body))
		e.Replace(token.Value, ours)
	}
	if err := c.peer.send(e.Apply(body)); err != nil {
		c.take(number)
		return refuseHTTP(r, http.StatusBadGateway, one.id, codeInternal, "mcp-refit: the server does not read its input any more")
	}
	res := await(r.Context(), r, one.stream, func() { c.leave(number) })
	if only, ok := one.stream.only(); ok {
		res.StatusCode = statusOf(only)
	}
	return res
}

// take closes a call, nil if it was closed before.
func (c *sharedChild) take(number int) *sharedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.calls[number]
	delete(c.calls, number)
	return one
}

// leave cancels a call if its client is gone before it was answered.
func (c *sharedChild) leave(number int) {
	if one := c.take(number); one != nil {
		c.peer.post([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.Itoa(number) + `,"reason":"the client closed the stream"}}`))
	}
}

// deliver passes on a message of the child, with the client's own ids in it.
func (c *sharedChild) deliver(raw []byte, env rewrite.Envelope) {
	switch env.Kind {
	case rewrite.KindResult, rewrite.KindError:
		c.response(raw, env)
	case rewrite.KindNotification:
		c.notify(raw, env)
	case rewrite.KindRequest:
		// There is no client that a request could go to.
		c.peer.post(errorMessage(env.ID.Of(raw), codeMethodNotFound, "mcp-refit: in 2026-07-28 a server asks through inputRequests"))
	}
}

func (c *sharedChild) response(raw []byte, env rewrite.Envelope) {
	number, ok := numberOf(env.ID.Of(raw))
	one := c.take(number)
	if !ok || one == nil {
		return // it was cancelled
	}
	var e rewrite.Edits
	e.Replace(env.ID, one.id)
	if at, ok := rewrite.Lookup(raw, env.Result, "_meta", metaSubscriptionID); ok {
		e.Replace(at, one.id)
	}
	out := e.Apply(raw)
	if one.method == "tools/list" && env.Kind == rewrite.KindResult {
		c.tools.note(raw, env)
	}
	one.stream.push(out)
	one.stream.finish()
}

// numberOf is one of our numbers, as it comes back.
func numberOf(id []byte) (int, bool) {
	n, err := strconv.Atoi(canonicalID(id))
	return n, err == nil
}

// notify passes on a notification on the stream that it belongs to.
func (c *sharedChild) notify(raw []byte, env rewrite.Envelope) {
	meta, _ := rewrite.Lookup(raw, env.Params, "_meta", metaSubscriptionID)
	token, _ := rewrite.Lookup(raw, env.Params, "progressToken")
	cancelled, _ := rewrite.Lookup(raw, env.Params, "requestId")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range []rewrite.Span{meta, token, cancelled} {
		if at.Empty() {
			continue
		}
		number, ok := numberOf(at.Of(raw))
		one := c.calls[number]
		if !ok || one == nil {
			return
		}
		with := one.id
		if at == token {
			with = one.token
		}
		var e rewrite.Edits
		e.Replace(at, with)
		one.stream.push(e.Apply(raw))
		return
	}
	if one := c.only(env.Method); one != nil {
		one.stream.push(raw)
		return
	}
	c.t.log().Warn("a notification of the server names no request and could belong to several, so it was not passed on", zap.String("method", env.Method))
}

// only is the one call that a notification without a name can belong to, nil
// if there are several. The caller holds the lock.
func (c *sharedChild) only(method string) *sharedCall {
	var found *sharedCall
	for _, one := range c.calls {
		if one.method == "subscriptions/listen" || method == "notifications/message" && !one.logs {
			continue
		}
		if found != nil {
			return nil
		}
		found = one
	}
	return found
}

// lost answers for a message of the child that was too large.
func (c *sharedChild) lost(f *frame) {
	if number, ok := numberOf(f.skim.ID()); ok && f.skim.Kind() == rewrite.KindResult {
		if one := c.take(number); one != nil {
			one.stream.push(errorMessage(one.id, codeInvalidRequest, "mcp-refit: this message was not passed on: "+f.tooLarge))
			one.stream.finish()
		}
	}
}

// gone answers what is open when the child has ended. The next request starts
// another.
func (c *sharedChild) gone(how string) {
	c.t.mu.Lock()
	if c.t.shared == c {
		c.t.shared = nil
	}
	c.t.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = how
	for number, one := range c.calls {
		delete(c.calls, number)
		one.stream.push(errorMessage(one.id, codeInternal, "mcp-refit: the server "+how+" before it answered"))
		one.stream.finish()
	}
}

func (c *sharedChild) close() { _ = c.peer.child.Shutdown() }
