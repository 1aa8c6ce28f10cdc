package proxy

import (
	"strconv"
	"time"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A Call tells of one request, in either direction, when it is over: what was
// asked, for how long, and how it ended. A modern call that asks the client for
// input (2026-07-28) is several requests, one a round; all but the last end as
// CallAsked, so that those which don't are the logical operations.
type Call struct {
	Session  string // empty over stdio
	Server   string // as in Decision
	To       Direction
	Method   string
	Target   string // a tool's or prompt's name, a resource's URI, a task's id; empty for other methods
	Revision string // that the client offered or declared; empty if that is not known

	// TraceParent and TraceState are the W3C trace context that came with the
	// request: in its _meta (SEP-414), else in its HTTP header.
	TraceParent, TraceState string

	Start    time.Time
	Duration time.Duration
	Outcome  string // one of the Call constants
	Code     int    // of the JSON-RPC error, for CallFailed
}

// How a Call ended.
const (
	CallAnswered  = "answered"
	CallAsked     = "asked"      // the result asks the client for input; a new round follows
	CallToolError = "tool_error" // a tool's result says isError
	CallFailed    = "error"      // a JSON-RPC error
	CallRefused   = "refused"    // by us: the request, or what was to answer it
	CallCancelled = "cancelled"
	CallLost      = "lost" // the peer ended before it answered
)

// watch begins to tell of a request, if somebody wants to know.
func (m *message) watch(one *call) {
	if m.session.proxy.OnCall == nil {
		return
	}
	w := &Call{
		Session: m.session.id, To: m.to, Method: one.method, Target: one.target, Start: time.Now(),
		TraceParent: m.meta("traceparent"), TraceState: m.meta("tracestate"),
	}
	if h := m.session.requestHeader; w.TraceParent == "" && h != nil && m.to == ToServer {
		w.TraceParent, w.TraceState = h("Traceparent"), h("Tracestate")
	}
	if w.Revision = one.revision; w.Revision == "" {
		w.Revision = m.offeredRevision()
	}
	one.watched = w
}

// meta is a string of the params' _meta.
func (m *message) meta(name string) string {
	at, ok := rewrite.Lookup(m.raw, m.env.Params, "_meta", name)
	if !ok {
		return ""
	}
	v, _ := rewrite.String(m.raw, at)
	return v
}

// over tells that a request is over. It must be called without the session's lock.
func (s *session) over(one *call, outcome string, code int) {
	if one == nil || s.proxy.OnCall == nil {
		return
	}
	s.mu.Lock()
	watched, server := one.watched, s.server
	one.watched = nil
	s.mu.Unlock()
	if watched == nil {
		return
	}
	c := *watched
	c.Duration, c.Outcome, c.Code, c.Server = time.Since(c.Start), outcome, code, server
	s.proxy.OnCall(c)
}

// overWith tells of the request that this message ends, if it does.
func (m *message) overWith(out outcome) {
	if m.own != nil && out.forward == nil {
		m.session.over(m.own, CallRefused, 0)
		return
	}
	if m.call == nil || m.session.proxy.OnCall == nil {
		return
	}
	outcome, code := m.ending(out)
	m.session.over(m.call, outcome, code)
}

// ending is how a response ends its call.
func (m *message) ending(out outcome) (outcome string, code int) {
	switch {
	case m.out != nil && !same(out.forward, m.raw):
		return CallRefused, 0
	case m.env.Kind == rewrite.KindError:
		at, _ := rewrite.Lookup(m.raw, m.env.Error, "code")
		code, _ = strconv.Atoi(string(at.Of(m.raw)))
		return CallFailed, code
	}
	if m.call.canAsk && m.env.Seen&(rewrite.KeyInputRequests|rewrite.KeyOdd) != 0 {
		if _, ok := rewrite.Lookup(m.raw, m.env.Result, "inputRequests"); ok {
			return CallAsked, 0
		}
	}
	if m.call.method == "tools/call" {
		if at, _ := rewrite.Lookup(m.raw, m.env.Result, "isError"); string(at.Of(m.raw)) == "true" {
			return CallToolError, 0
		}
	}
	return CallAnswered, 0
}
