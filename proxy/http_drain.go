package proxy

import (
	"context"
	"errors"
	"net/http"
)

// Drain ends the streams that belong to no call (those that a GET asked for,
// and subscriptions), and refuses new ones with 503. Calls under way go on. It
// is meant for [http.Server.RegisterOnShutdown].
func (p *Proxy) Drain() {
	for _, s := range p.sessions.drain() {
		s.finish()
	}
}

const textDraining = "mcp-refit: this proxy is being shut down; connect again"

var errDrained = errors.New("the proxy is being shut down")

// stand makes a request that opens a lasting stream one that can be ended from
// our side. It reports false if it was refused.
func (x *exchange) stand() bool {
	if x.p.sessions.isDraining() {
		x.w.Header().Set("Retry-After", "1")
		x.refuse(http.StatusServiceUnavailable, codeInternal, textDraining)
		return false
	}
	ctx, cancel := context.WithCancelCause(x.r.Context())
	x.r = x.r.WithContext(ctx)
	x.cancel = func() { cancel(errDrained) }
	return true
}

// isEnding reports whether we end the stream.
func (s *stream) isEnding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// finish ends the stream, to the client as if the server had.
func (s *stream) finish() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.cancel()
}

func (t *httpSessions) isDraining() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.draining
}

// stand notes a lasting stream. It reports false if there may be none any more.
func (t *httpSessions) stand(s *stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.draining {
		return false
	}
	if t.standing == nil {
		t.standing = make(map[*stream]struct{})
	}
	t.standing[s] = struct{}{}
	return true
}

func (t *httpSessions) unstand(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.standing, s)
}

// drain allows no more lasting streams, and returns those that there are.
func (t *httpSessions) drain() []*stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draining = true
	var all []*stream
	for s := range t.standing {
		all = append(all, s)
	}
	return all
}
