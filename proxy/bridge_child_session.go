package proxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A childSession is a session before 2026-07-28: a child of its own, and the
// streams to its client.
type childSession struct {
	t    *ChildTransport
	id   string
	peer *childPeer

	mu       sync.Mutex
	calls    map[string]*childCall   // in flight, by canonical id
	order    []*childCall            // the same, oldest first
	streams  map[string]*eventStream // that a client may come back to, by id
	recent   []string                // their ids, oldest first
	standing *eventStream            // what belongs to no call
	opened   int                     // how many streams were opened
	active   int                     // requests under way
	idle     *time.Timer
	life     *time.Timer
	ended    string // why there is no session any more; empty if there is one
}

// A childCall is a request of the client in flight.
type childCall struct {
	id     []byte
	token  string // canonical progressToken, empty if there is none
	stream *eventStream
	left   *int // how many calls of the same POST are in flight
}

// maxRecentStreams is how many streams a session remembers for a client that
// comes back.
const maxRecentStreams = 64

// open begins a session with the client's initialize.
func (t *ChildTransport) open(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	s := &childSession{t: t, id: rand.Text(), calls: make(map[string]*childCall), streams: make(map[string]*eventStream)}
	s.standing = newEventStream("g", t.replay())
	s.streams["g"] = s.standing
	peer, err := t.startPeer()
	switch {
	case errors.Is(err, errChildrenFull):
		text := t.FullText
		if text == "" {
			text = DefaultFullText
		}
		return refuseHTTP(r, http.StatusServiceUnavailable, env.ID.Of(body), codeInternal, text)
	case err != nil:
		t.log().Error("the server could not be started", zap.Error(err))
		return refuseHTTP(r, http.StatusBadGateway, env.ID.Of(body), codeInternal, "mcp-refit: "+err.Error())
	}
	s.mu.Lock()
	s.peer = peer
	if t.Idle > 0 {
		s.idle = time.AfterFunc(t.Idle, func() { s.close("the session was idle for too long") })
	}
	if t.Lifetime > 0 {
		s.life = time.AfterFunc(t.Lifetime, func() { s.close("the session has lasted as long as it may") })
	}
	s.mu.Unlock()
	t.mu.Lock()
	if t.sessions == nil {
		t.sessions = make(map[string]*childSession)
	}
	t.sessions[s.id] = s
	t.mu.Unlock()
	go peer.serve(s)
	res := s.post(r, body, env)
	res.Header.Set(headerSession, s.id)
	return res
}

// post gives the child a message.
func (s *childSession) post(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	stream, requests := s.expect(r, body, env)
	if stream == nil && requests > 0 {
		return refuseHTTP(r, http.StatusNotFound, env.ID.Of(body), codeInvalidRequest, textNoSession)
	}
	if err := s.peer.send(body); err != nil {
		if stream == nil {
			return refuseHTTP(r, http.StatusBadGateway, nil, codeInternal, "mcp-refit: the server does not read its input any more")
		}
		s.fail(stream, "does not read its input any more")
	}
	if stream == nil {
		s.leave()
		return respond(r, http.StatusAccepted, nil)
	}
	return await(r.Context(), r, stream, s.leave)
}

// expect notes the requests in a body, and opens the stream that they are
// answered on. There is none if there are no requests, or no session any more.
func (s *childSession) expect(r *http.Request, body []byte, env rewrite.Envelope) (*eventStream, int) {
	requests := requestsIn(body, env)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != "" {
		return nil, max(1, len(requests))
	}
	s.enter()
	if len(requests) == 0 {
		return nil, 0
	}
	s.opened++
	stream := newEventStream("p"+strconv.Itoa(s.opened), s.t.replay())
	stream.single = env.Kind == rewrite.KindRequest
	stream.prime = s.t.replay() > 0 && r.Header.Get(headerVersion) >= revisionTitled
	s.remember(stream)
	left := len(requests)
	for _, one := range requests {
		one.stream, one.left = stream, &left
		s.calls[canonicalID(one.id)] = one
		s.order = append(s.order, one)
	}
	return stream, len(requests)
}

// requestsIn are the requests in a body.
func requestsIn(body []byte, env rewrite.Envelope) []*childCall {
	switch env.Kind {
	case rewrite.KindRequest:
		one := &childCall{id: bytes.Clone(env.ID.Of(body))}
		if at, ok := rewrite.Lookup(body, env.Params, "_meta", "progressToken"); ok {
			one.token = canonicalID(at.Of(body))
		}
		return []*childCall{one}
	case rewrite.KindBatch:
		var all []*childCall
		for at := range rewrite.Elements(body, arrayAt(body)) {
			element := at.Of(body)
			if e, err := rewrite.Scan(element); err == nil {
				all = append(all, requestsIn(element, e)...)
			}
		}
		return all
	}
	return nil
}

// remember keeps a stream for a client that comes back. The caller holds the lock.
func (s *childSession) remember(stream *eventStream) {
	if s.t.replay() == 0 {
		return
	}
	s.streams[stream.id] = stream
	s.recent = append(s.recent, stream.id)
	if len(s.recent) > maxRecentStreams {
		delete(s.streams, s.recent[0])
		s.recent = s.recent[1:]
	}
}

// enter begins a request; leave ends it. The caller of enter holds the lock.
func (s *childSession) enter() {
	s.active++
	if s.idle != nil {
		s.idle.Stop()
	}
}

func (s *childSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.idle != nil && s.ended == "" {
		s.idle.Reset(s.t.Idle)
	}
}

// get opens the standing stream, or one that the client was cut off from.
func (s *childSession) get(r *http.Request) *http.Response {
	if !acceptsEvents(r.Header) && !acceptsAnything(r.Header) {
		return respond(r, http.StatusNotAcceptable, nil)
	}
	stream, next := s.standing, -1
	if last := r.Header.Get("Last-Event-Id"); last != "" {
		id, n, ok := parseEventID(last)
		s.mu.Lock()
		found := s.streams[id]
		s.mu.Unlock()
		if !ok || found == nil {
			return refuseHTTP(r, http.StatusBadRequest, nil, codeInvalidRequest, "mcp-refit: Last-Event-ID names no stream that is still here")
		}
		stream, next = found, n
	} else if stream.attached() {
		return refuseHTTP(r, http.StatusConflict, nil, codeInvalidRequest, "mcp-refit: the session has a GET stream already")
	}
	if next < 0 {
		next = stream.unread()
	}
	s.mu.Lock()
	if s.ended != "" {
		s.mu.Unlock()
		return respond(r, http.StatusNotFound, nil)
	}
	s.enter()
	s.mu.Unlock()
	return answerEvents(r, stream.body(r.Context(), next, s.leave))
}

// unread is the number of the first event that nobody was given.
func (s *eventStream) unread() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.given, s.first)
}

// deliver passes on a message of the child.
func (s *childSession) deliver(raw []byte, env rewrite.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch env.Kind {
	case rewrite.KindResult, rewrite.KindError:
		s.answer(raw, env.ID.Of(raw))
	case rewrite.KindBatch:
		s.deliverBatch(raw)
	default:
		s.streamFor(raw, env).push(raw)
	}
}

// answer passes on a response. The caller holds the lock.
func (s *childSession) answer(raw, id []byte) {
	one := s.take(id)
	if one == nil {
		s.t.log().Warn("a response of the server answers no request that is open", zap.ByteString("id", id))
		return
	}
	one.stream.push(raw)
	if *one.left == 0 {
		one.stream.finish()
	}
}

// take closes a call.
func (s *childSession) take(id []byte) *childCall {
	key := canonicalID(id)
	one := s.calls[key]
	if one == nil {
		return nil
	}
	delete(s.calls, key)
	for i, o := range s.order {
		if o == one {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	*one.left--
	return one
}

// deliverBatch passes on a batch whole, on the stream of the first request
// that it answers. The caller holds the lock.
func (s *childSession) deliverBatch(raw []byte) {
	var stream *eventStream
	var finished []*eventStream
	for at := range rewrite.Elements(raw, arrayAt(raw)) {
		element := at.Of(raw)
		env, err := rewrite.Scan(element)
		if err != nil || env.Kind != rewrite.KindResult && env.Kind != rewrite.KindError {
			continue
		}
		if one := s.take(env.ID.Of(element)); one != nil {
			if stream == nil {
				stream = one.stream
			}
			if *one.left == 0 {
				finished = append(finished, one.stream)
			}
		}
	}
	if stream == nil {
		stream = s.standing
	}
	stream.push(raw)
	for _, f := range finished {
		f.finish()
	}
}

// streamFor is the stream that a request or notification of the child belongs
// on: that of the call that it names or, if one call alone is in flight, of
// that; else the standing stream, or, as long as nobody listens there, that of
// the latest call, so that a question always reaches the client. The caller
// holds the lock.
func (s *childSession) streamFor(raw []byte, env rewrite.Envelope) *eventStream {
	if env.Method == "notifications/progress" {
		if at, ok := rewrite.Lookup(raw, env.Params, "progressToken"); ok {
			token := canonicalID(at.Of(raw))
			for _, one := range s.order {
				if one.token == token {
					return one.stream
				}
			}
		}
	}
	switch {
	case len(s.order) == 1:
		return s.order[0].stream
	case len(s.order) > 1 && !s.standing.attached():
		return s.order[len(s.order)-1].stream
	}
	return s.standing
}

// lost answers for a message of the child that was too large.
func (s *childSession) lost(f *frame) {
	text := "mcp-refit: this message was not passed on: " + f.tooLarge
	id := f.skim.ID()
	switch f.skim.Kind() {
	case rewrite.KindResult:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer(errorMessage(id, codeInvalidRequest, text), id)
	case rewrite.KindRequest:
		s.peer.post(errorMessage(id, codeInvalidRequest, text))
	}
}

// fail answers the calls on one stream, or all if it is nil.
func (s *childSession) fail(on *eventStream, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*childCall
	for _, one := range s.order {
		if on == nil || one.stream == on {
			open = append(open, one)
		}
	}
	for _, one := range open {
		s.answer(errorMessage(one.id, codeInternal, "mcp-refit: the server "+how+" before it answered"), one.id)
	}
}

// gone ends the session when the child has ended.
func (s *childSession) gone(how string) {
	s.end(how)
	s.fail(nil, how)
	s.standing.finish()
}

// end takes the session out of the table. It reports false if it was out before.
func (s *childSession) end(why string) bool {
	s.t.mu.Lock()
	delete(s.t.sessions, s.id)
	s.t.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != "" {
		return false
	}
	s.ended = why
	for _, timer := range []*time.Timer{s.idle, s.life} {
		if timer != nil {
			timer.Stop()
		}
	}
	return true
}

// close ends the session and its child.
func (s *childSession) close(why string) {
	if s.end(why) {
		s.t.log().Info("a session has ended", zap.String("why", why))
		go s.peer.child.Shutdown()
	}
}
