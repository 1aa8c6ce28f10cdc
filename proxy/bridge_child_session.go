package proxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
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
	refused  bool   // initialize was answered with an error
	ended    string // why there is no session any more; empty if there is one
}

// A childCall is a request of the client in flight.
type childCall struct {
	id         []byte
	token      string // canonical progressToken, empty if there is none
	initialize bool
	cancelled  bool // the client has cancelled it; the child may answer or not
	stream     *eventStream
	left       *int // how many calls of the same POST are in flight
}

// What a session keeps for a client that comes back.
const (
	maxRecentStreams = 64       // streams
	maxRecentBytes   = 16 << 20 // bytes, in streams that have ended
)

// open begins a session with the client's initialize. It ends again if that is
// refused, or if the client leaves before the answer.
func (t *ChildTransport) open(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	peer, err := t.startPeer(true)
	switch {
	case errors.Is(err, errChildrenFull):
		return t.full(r, env.ID.Of(body))
	case err != nil:
		t.log().Error("the server could not be started", zap.Error(err))
		return refuseHTTP(r, http.StatusBadGateway, env.ID.Of(body), codeInternal, "mcp-refit: "+err.Error())
	}
	s := &childSession{t: t, id: rand.Text(), peer: peer, calls: make(map[string]*childCall), streams: make(map[string]*eventStream)}
	s.standing = newEventStream("g", t.replay())
	s.streams["g"] = s.standing
	s.mu.Lock()
	if life := t.limits().Lifetime; life > 0 {
		s.life = time.AfterFunc(life, func() { s.close("the session has lasted as long as it may") })
	}
	s.mu.Unlock()
	t.mu.Lock()
	if t.sessions == nil {
		t.sessions = make(map[string]*childSession)
	}
	t.sessions[s.id] = s
	closed := t.closed
	t.mu.Unlock()
	go peer.serve(s)
	if closed { // after Close has looked
		s.close(errStopping.Error())
	}
	res := s.post(r, body, env)
	if r.Context().Err() != nil {
		s.close("the client left before the session began")
	}
	if s.stands() {
		res.Header.Set(headerSession, s.id)
	}
	return res
}

// stands reports whether there is a session that the client can go on with.
func (s *childSession) stands() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended == "" && !s.refused
}

// closeIdle ends a session in which nothing is under way.
func (s *childSession) closeIdle() {
	s.mu.Lock()
	idle := s.active == 0
	s.mu.Unlock()
	if idle {
		s.close("the session was idle for too long")
	}
}

// post gives the child a message.
func (s *childSession) post(r *http.Request, body []byte, env rewrite.Envelope) *http.Response {
	calls := requestsIn(body, env)
	stream, refused := s.expect(r, calls, env)
	if refused != nil {
		id := env.ID.Of(body)
		if env.Kind != rewrite.KindRequest {
			id = nil
		}
		return refuseHTTP(r, refused.status, id, codeInvalidRequest, refused.text)
	}
	err := s.peer.send(r.Context(), body)
	switch {
	case err == nil:
		s.cancelled(body, env)
	case r.Context().Err() != nil: // it may have got there or not
		s.forget(stream)
		s.leave(stream)
		return leftEarly(r)
	case stream == nil:
		s.leave(nil)
		return refuseHTTP(r, http.StatusBadGateway, nil, codeInternal, "mcp-refit: the server does not read its input any more")
	default:
		s.fail(stream, "the server does not read its input any more")
	}
	if stream == nil {
		s.leave(nil)
		return respond(r, http.StatusAccepted, nil)
	}
	res := await(r, stream, func() { s.leave(stream) })
	if res.ContentLength >= 0 { // it was answered without events, so nobody comes back for any
		s.mu.Lock()
		delete(s.streams, stream.id)
		s.mu.Unlock()
	}
	return res
}

// expect notes the requests in a body, and opens the stream that they are
// answered on, nil if there are none. Whoever is not refused has to leave.
func (s *childSession) expect(r *http.Request, calls []*childCall, env rewrite.Envelope) (*eventStream, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != "" {
		return nil, &refusal{http.StatusNotFound, textNoSession}
	}
	seen := make(map[string]bool, len(calls))
	for _, one := range calls {
		key := canonicalID(one.id)
		if s.calls[key] != nil || seen[key] {
			return nil, &refusal{http.StatusBadRequest, "mcp-refit: a request with the id " + string(one.id) + " is in flight already"}
		}
		seen[key] = true
	}
	s.enter()
	if len(calls) == 0 {
		return nil, nil
	}
	s.opened++
	stream := newEventStream("p"+strconv.Itoa(s.opened), s.t.replay())
	stream.single = env.Kind == rewrite.KindRequest
	stream.jsonOnly = acceptsNoEvents(r.Header)
	stream.prime = s.t.replay() > 0 && r.Header.Get(headerVersion) >= revisionTitled
	s.remember(stream)
	left := len(calls)
	for _, one := range calls {
		one.stream, one.left = stream, &left
		s.calls[canonicalID(one.id)] = one
		s.order = append(s.order, one)
	}
	return stream, nil
}

// requestsIn are the requests in a body.
func requestsIn(body []byte, env rewrite.Envelope) []*childCall {
	switch env.Kind {
	case rewrite.KindRequest:
		one := &childCall{id: bytes.Clone(env.ID.Of(body)), initialize: env.Method == "initialize"}
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

// remember keeps a stream for a client that comes back, and forgets the oldest
// of those that have ended. The caller holds the lock.
func (s *childSession) remember(stream *eventStream) {
	if s.t.replay() == 0 {
		return
	}
	s.recent = slices.DeleteFunc(s.recent, func(id string) bool { return s.streams[id] == nil })
	s.streams[stream.id] = stream
	s.recent = append(s.recent, stream.id)
	held := 0
	for i, id := range slices.Backward(s.recent) {
		bytes, ended := s.streams[id].held()
		if ended {
			held += bytes
		}
		if len(s.recent)-i > maxRecentStreams || ended && held > maxRecentBytes {
			delete(s.streams, id)
		}
	}
}

// forget takes out the calls on a stream that nobody waits for.
func (s *childSession) forget(stream *eventStream) {
	if stream == nil {
		return
	}
	stream.detach(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Clone(s.order) {
		if one.stream == stream {
			s.take(one.id)
		}
	}
	delete(s.streams, stream.id)
}

// cancelled notes that the client has cancelled a call. No answer has to come,
// and nothing else belongs to it any more.
func (s *childSession) cancelled(body []byte, env rewrite.Envelope) {
	if env.Kind == rewrite.KindBatch {
		for at := range rewrite.Elements(body, arrayAt(body)) {
			element := at.Of(body)
			if e, err := rewrite.Scan(element); err == nil && e.Kind == rewrite.KindNotification {
				s.cancelled(element, e)
			}
		}
		return
	}
	if env.Kind != rewrite.KindNotification || env.Method != "notifications/cancelled" {
		return
	}
	at, _ := rewrite.Lookup(body, env.Params, "requestId")
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.calls[canonicalID(at.Of(body))]; one != nil && !one.initialize {
		if one.cancelled = true; !one.stream.listens() {
			s.take(one.id)
		}
	}
}

// startIdle begins the time of silence after which end is called.
func startIdle(timer **time.Timer, after time.Duration, end func()) {
	if *timer != nil {
		(*timer).Stop()
	}
	if after > 0 {
		*timer = time.AfterFunc(after, end)
	}
}

// enter begins a request; leave ends it. The caller of enter holds the lock.
func (s *childSession) enter() {
	s.active++
	if s.idle != nil {
		s.idle.Stop()
	}
}

// leave ends a request that was answered on stream, or whose client has left.
// What it has cancelled is forgotten, and a session that had not begun ends.
func (s *childSession) leave(stream *eventStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Clone(s.order) {
		switch {
		case one.stream != stream:
		case one.initialize:
			go s.close("the client left before the session began")
		case one.cancelled:
			s.take(one.id)
		}
	}
	if s.active--; s.active == 0 && s.ended == "" {
		startIdle(&s.idle, s.t.limits().Idle, s.closeIdle)
	}
}

// get opens the standing stream, or one that the client was cut off from.
func (s *childSession) get(r *http.Request) *http.Response {
	if acceptsNoEvents(r.Header) {
		return respond(r, http.StatusNotAcceptable, nil)
	}
	s.mu.Lock()
	stream, from, alone := s.standing, fromUnread, true
	if last := r.Header.Get("Last-Event-Id"); last != "" {
		id, n, ok := parseEventID(last)
		if !ok || s.streams[id] == nil {
			s.mu.Unlock()
			return refuseHTTP(r, http.StatusBadRequest, nil, codeInvalidRequest, "mcp-refit: Last-Event-ID names no stream that is still here")
		}
		stream, from, alone = s.streams[id], n, false
	}
	if s.ended != "" {
		s.mu.Unlock()
		return respond(r, http.StatusNotFound, nil)
	}
	s.enter()
	s.mu.Unlock()
	body, err := stream.body(r.Context(), from, alone, func() { s.leave(stream) })
	switch {
	case errors.Is(err, errTaken):
		s.leave(nil)
		return refuseHTTP(r, http.StatusConflict, nil, codeInvalidRequest, "mcp-refit: the session has a GET stream already")
	case err != nil:
		s.leave(nil)
		return refuseHTTP(r, http.StatusBadRequest, nil, codeInvalidRequest, "mcp-refit: what came after Last-Event-ID is not kept any more")
	}
	return answerEvents(r, body)
}

// fail answers the calls on one stream, or all if it is nil.
func (s *childSession) fail(on *eventStream, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Clone(s.order) {
		if on == nil || one.stream == on {
			s.answer(errorMessage(one.id, codeInternal, "mcp-refit: "+why), rewrite.Envelope{Kind: rewrite.KindError}, one.id)
		}
	}
}

// gone ends the session when the child has ended.
func (s *childSession) gone(how string) { s.finish("the server " + how + " before it answered") }

// close ends the session and its child. Nothing that is open waits for that.
func (s *childSession) close(why string) {
	if s.finish("the session has ended before the answer: " + why) {
		s.t.log().Info("a session has ended", zap.String("why", why))
		go s.peer.child.Shutdown()
	}
}

// finish takes the session out of the table, answers what is open and ends all
// streams. It reports false if that was done before.
func (s *childSession) finish(why string) bool {
	s.t.mu.Lock()
	delete(s.t.sessions, s.id)
	s.t.mu.Unlock()
	s.mu.Lock()
	first := s.ended == ""
	if first {
		s.ended = why
	}
	for _, timer := range []*time.Timer{s.idle, s.life} {
		if timer != nil {
			timer.Stop()
		}
	}
	s.mu.Unlock()
	s.fail(nil, why)
	s.standing.finish()
	return first
}
