package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A sharedChild serves the stateless requests of 2026-07-28, of all clients.
// Their ids, and the progress tokens and subscription ids that come of them,
// are kept apart by numbers of ours, which are put in and taken out by splicing;
// nothing else is touched. The numbers are random, so that no client can name
// another one's.
type sharedChild struct {
	t       *ChildTransport
	peer    *childPeer
	tools   toolHeaders
	started time.Time

	mu        sync.Mutex
	calls     map[int64]*sharedCall // in flight, by our number
	idle      *time.Timer
	abandoned time.Time // when a call was last cancelled
	retired   bool      // it takes no more calls, since we end it
	ended     string    // how the child ended; empty if it runs
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
	for {
		c, err := t.sharedChild()
		if err != nil {
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
		if res := c.call(r, body, env); res != nil {
			return res
		}
	}
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
	peer, err := t.startPeer(false)
	if err != nil {
		return nil, err
	}
	c = &sharedChild{t: t, peer: peer, started: time.Now(), calls: make(map[int64]*sharedCall)}
	c.mu.Lock()
	startIdle(&c.idle, t.limits().Idle, c.retire)
	c.mu.Unlock()
	t.mu.Lock()
	t.shared = c
	t.mu.Unlock()
	go peer.serve(c)
	return c, nil
}

// retire ends the child if it has nothing to do. The next request starts
// another one.
func (c *sharedChild) retire() {
	c.mu.Lock()
	idle := len(c.calls) == 0 && !c.retired
	c.retired = c.retired || idle
	c.mu.Unlock()
	if !idle {
		return
	}
	c.forgotten()
	c.t.log().Info("the shared server is ended, since it has nothing to do")
	go c.peer.child.Shutdown()
}

// forgotten makes room for another child.
func (c *sharedChild) forgotten() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	if c.t.shared == c {
		c.t.shared = nil
	}
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
		if err := c.peer.send(r.Context(), body); err != nil {
			return refuseHTTP(r, http.StatusBadGateway, nil, codeInternal, "mcp-refit: the server does not read its input any more")
		}
	}
	return respond(r, http.StatusAccepted, nil)
}

// call gives the child a client's request, and answers with what comes of it.
// The answer is nil if another child has to be asked.
func (c *sharedChild) call(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	one := &sharedCall{id: bytes.Clone(env.ID.Of(body)), method: env.Method, stream: newEventStream("", 0)}
	one.stream.single = true
	one.stream.jsonOnly = acceptsNoEvents(r.Header)
	meta, _ := rewrite.Lookup(body, env.Params, "_meta")
	_, one.logs = rewrite.Get(body, meta, "io.modelcontextprotocol/logLevel")
	token, hasToken := rewrite.Get(body, meta, "progressToken")
	if hasToken {
		one.token = bytes.Clone(token.Value.Of(body))
	}
	number, ok := c.add(one)
	if !ok {
		c.forgotten()
		return nil
	}
	ours := strconv.AppendInt(nil, number, 10)
	var e rewrite.Edits
	e.Replace(env.ID, ours)
	if hasToken {
		e.Replace(token.Value, ours)
	}
	if err := c.peer.send(r.Context(), e.Apply(body)); err != nil {
		c.leave(number)
		return refuseHTTP(r, http.StatusBadGateway, one.id, codeInternal, "mcp-refit: the server does not read its input any more")
	}
	res := await(r, one.stream, func() { c.leave(number) })
	if only, ok := one.stream.only(); ok && res.ContentLength >= 0 {
		res.StatusCode = statusOf(only)
	}
	return res
}

// add opens a call, under a number of ours. It reports false if the child takes
// no more.
func (c *sharedChild) add(one *sharedCall) (number int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != "" || c.retired {
		return 0, false
	}
	for number == 0 || c.calls[number] != nil {
		var b [8]byte
		_, _ = rand.Read(b[:])                                        // it never fails
		number = int64(binary.LittleEndian.Uint64(b[:]) >> (64 - 53)) // exact in a double, as in JavaScript
	}
	c.calls[number] = one
	if c.idle != nil {
		c.idle.Stop()
	}
	return number, true
}

// take closes a call, nil if it was closed before.
func (c *sharedChild) take(number int64) *sharedCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.calls[number]
	delete(c.calls, number)
	if len(c.calls) == 0 && c.ended == "" && !c.retired {
		startIdle(&c.idle, c.t.limits().Idle, c.retire)
	}
	return one
}

// leave cancels a call if its client is gone before it was answered.
func (c *sharedChild) leave(number int64) {
	if one := c.take(number); one != nil {
		c.mu.Lock()
		c.abandoned = time.Now()
		c.mu.Unlock()
		c.peer.post([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strconv.FormatInt(number, 10) + `,"reason":"the client closed the stream"}}`))
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
	one.stream.pushLast(out)
	if one.method == "server/discover" && env.Kind == rewrite.KindError && statusOf(raw) != http.StatusBadRequest {
		c.retire() // it does not know this revision, and the client goes on with a session
	}
}

// numberOf is one of our numbers, as it comes back.
func numberOf(id []byte) (int64, bool) {
	n, err := strconv.ParseInt(canonicalID(id), 10, 64)
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

// afterCancel is how long a child may still tell of a call that was cancelled,
// without naming it.
const afterCancel = 5 * time.Second

// only is the one call that a notification without a name can belong to, nil
// if there are several, or was one just now: what is meant for one client must
// not reach another. The caller holds the lock.
func (c *sharedChild) only(method string) *sharedCall {
	if strings.HasSuffix(method, "/list_changed") || method == "notifications/resources/updated" || time.Since(c.abandoned) < afterCancel {
		return nil
	}
	var found *sharedCall
	for _, one := range c.calls {
		if one.method == "subscriptions/listen" {
			continue
		}
		if found != nil {
			return nil
		}
		found = one
	}
	if found != nil && method == "notifications/message" && !found.logs {
		return nil
	}
	return found
}

// lost answers for a message of the child that is not passed on.
func (c *sharedChild) lost(f *frame) {
	text := "mcp-refit: this message was not passed on: " + f.tooLarge
	id := f.skim.ID()
	switch f.skim.Kind() {
	case rewrite.KindResult:
		number, _ := numberOf(id)
		if one := c.take(number); one != nil {
			one.stream.pushLast(errorMessage(one.id, codeInvalidRequest, text))
		}
	case rewrite.KindRequest:
		c.peer.post(errorMessage(id, codeInvalidRequest, text))
	}
}

// gone answers what is open when the child has ended. The next request starts
// another.
func (c *sharedChild) gone(how string) {
	c.mu.Lock()
	retired := c.retired
	c.mu.Unlock()
	if !retired {
		c.t.putOff(time.Since(c.started))
	}
	c.forgotten()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = how
	if c.idle != nil {
		c.idle.Stop()
	}
	for number, one := range c.calls {
		delete(c.calls, number)
		one.stream.pushLast(errorMessage(one.id, codeInternal, "mcp-refit: the server "+how+" before it answered"))
	}
}
