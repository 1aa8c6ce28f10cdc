package proxy

import (
	"bytes"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A session is what the proxy remembers of one client's talk with one server:
// over stdio the life of the two streams, over HTTP one Mcp-Session-Id (or the
// announced endpoint of HTTP+SSE), and where there is none a single POST with
// all that answers it.
type session struct {
	proxy *Proxy
	id    string // for logs and the audit; empty over stdio
	known bool   // it was made at an initialize that we saw (or is a stream pair)

	// origin is the server's own origin over HTTP, for the rule "self".
	origin string

	// send injects a message of our own. It reports false where there is no
	// stream to carry it.
	send func(to Direction, raw []byte) bool

	// ask sends a request of our own to the server, in the name of the client
	// whose request is being handled, and returns the server's response. It is
	// nil where the transport can't.
	ask func(method string, params []byte) ([]byte, error)

	// requestHeader is a header of the client's request that is being handled.
	// It is nil where there are no headers.
	requestHeader func(name string) string

	// settles says that the transport calls settle once an answer has arrived.
	settles bool

	// waiting is called before a message waits for icons, so that what was
	// handled before it is not held up in a buffer. It may be nil.
	waiting func(to Direction)

	mu       sync.Mutex
	split    bool   // over HTTP: its id was used under another path, too
	revision string // that the client offered in initialize, or that its requests declare
	server   string // the server's name, from its Implementation
	changed  listChanged

	news announcements

	calls calls
	tasks taskForms // of tasks whose answer comes by tasks/result
}

// listChanged says for which lists the server announced listChanged.
type listChanged struct{ tools, prompts, resources bool }

// Revisions of the protocol at which something changes for us. They compare as text.
const (
	revisionElicitation = "2025-06-18" // elicitation, with enumNames
	revisionTitled      = "2025-11-25" // titled enums (SEP-1330), icons (SEP-973)
	revisionModern      = "2026-07-28" // stateless, input requests in results
)

// metaProtocolVersion is where a modern request declares its revision.
const metaProtocolVersion = "io.modelcontextprotocol/protocolVersion"

// clientRevision is the revision that the client of this message knows: what
// the request at hand declares, else what it offered in initialize, whatever
// was negotiated then. Empty if neither is known.
func (m *message) clientRevision() string {
	if m.call != nil && m.call.revision != "" {
		return m.call.revision
	}
	return m.offeredRevision()
}

func (m *message) offeredRevision() string {
	m.session.mu.Lock()
	defer m.session.mu.Unlock()
	return m.session.revision
}

// dialect is the form in which this message's client shows enums.
func (m *message) dialect() rewrite.Dialect {
	if m.policy.Config.Enums == policy.EnumsAuto && m.oldClient() {
		return rewrite.Named
	}
	return rewrite.Titled
}

// oldClient reports whether the client is of a revision before titled enums and icons.
func (m *message) oldClient() bool {
	r := m.clientRevision()
	return r != "" && r < revisionTitled
}

// track keeps the table of calls: a request opens an entry, a response and a
// cancellation close it.
func (m *message) track() {
	s := m.session
	switch m.env.Kind {
	case rewrite.KindRequest:
		if m.to == ToClient && m.env.Method == "elicitation/create" {
			return // remembered with its form, once that is known
		}
		one := m.newCall()
		m.watch(one)
		m.own = one
		s.mu.Lock()
		defer s.mu.Unlock()
		if m.env.Method == "initialize" && m.to == ToServer {
			s.revision = m.offered()
		}
		switch {
		case !s.calls.full(m.policy, one):
			s.calls.add(callKey{m.to, canonicalID(one.id)}, one)
		case m.to == ToClient && one.method == "tasks/result": // may be answered with what has to be checked
			m.refuse(codeInvalidRequest, textCallsFull)
		}
	case rewrite.KindResult, rewrite.KindError:
		s.mu.Lock()
		defer s.mu.Unlock()
		if m.to == ToServer {
			m.call = s.calls.find(canonicalID(m.id()))
			return
		}
		m.call = s.calls.answered(ToServer, m.id())
		if m.call != nil && m.call.waiter != nil {
			m.call.waiter <- bytes.Clone(m.raw)
			m.drop()
		}
	case rewrite.KindNotification:
		if m.env.Method == "notifications/cancelled" {
			m.trackCancelled()
		}
	}
	if m.call != nil && m.call.method == "subscriptions/listen" {
		s.proxy.subs.unsubscribe(s, m.call.id)
	}
}

// trackCancelled forgets a request that its sender has given up.
func (m *message) trackCancelled() {
	id, ok := rewrite.Lookup(m.raw, m.env.Params, "requestId")
	if !ok {
		return
	}
	s := m.session
	s.mu.Lock()
	one := s.calls.remove(callKey{m.to, canonicalID(id.Of(m.raw))})
	s.mu.Unlock()
	s.over(one, CallCancelled, 0)
	if one != nil && one.method == "subscriptions/listen" {
		s.proxy.subs.unsubscribe(s, one.id)
	}
}

// settle forgets the server's requests whose answers have arrived there. Until
// then a second answer is checked like the first: over HTTP it may overtake it.
func (s *session) settle(answered []*call) {
	if len(answered) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range answered {
		if key := (callKey{ToClient, canonicalID(one.id)}); s.calls.open[key] == one {
			s.calls.remove(key)
		}
	}
}

// end forgets what the proxy keeps of a session elsewhere. The transport calls
// it when the session is over.
func (s *session) end() {
	s.news.end()
	s.proxy.subs.unsubscribe(s, nil)
}

// full reports whether one more request may not be remembered.
func (c *calls) full(p *policy.Policy, one *call) bool {
	if c.bytes+one.size() > maxCallBytes {
		return true
	}
	if p == nil {
		return false
	}
	limit := int(p.Config.Limits.Calls)
	return limit > 0 && len(c.open) >= limit
}

// offered is the revision that an initialize request offers.
func (m *message) offered() string {
	at, _ := rewrite.Lookup(m.raw, m.env.Params, "protocolVersion")
	v, _ := rewrite.String(m.raw, at)
	return v
}

// newCall says what has to be remembered of a request.
func (m *message) newCall() *call {
	one := &call{id: append([]byte(nil), m.id()...), method: m.env.Method}
	if m.to == ToClient {
		if one.method == "tasks/result" {
			one.form = m.taskForm()
		}
		return one
	}
	if m.env.Seen&(rewrite.KeyProtocolVersion|rewrite.KeyOdd) != 0 {
		at, _ := rewrite.Lookup(m.raw, m.env.Params, "_meta", metaProtocolVersion)
		one.revision, _ = rewrite.String(m.raw, at)
	}
	switch one.method {
	case "subscriptions/listen":
		one.asked = m.subscribes()
	case "tools/call", "prompts/get":
		one.target = m.param("name")
	case "resources/read":
		one.target = m.param("uri")
	default:
		if strings.HasPrefix(one.method, "tasks/") {
			one.target = m.param("taskId")
		}
		return one
	}
	// A client that has said initialize is of a revision whose results don't ask.
	if one.canAsk = one.revision != "" || mayAsk(m.offeredRevision()); one.canAsk {
		arguments, _ := rewrite.Lookup(m.raw, m.env.Params, "arguments")
		one.digest = CallDigest(one.method, one.target, arguments.Of(m.raw))
	}
	return one
}

// param is a string of the request's params.
func (m *message) param(name string) string {
	at, _ := rewrite.Lookup(m.raw, m.env.Params, name)
	v, _ := rewrite.String(m.raw, at)
	return v
}

// learnServer notes what an initialize result says of the server.
func (m *message) learnServer() {
	if m.env.Kind != rewrite.KindResult || m.method() != "initialize" {
		return
	}
	var changed listChanged
	for list, to := range map[string]*bool{"tools": &changed.tools, "prompts": &changed.prompts, "resources": &changed.resources} {
		at, _ := rewrite.Lookup(m.raw, m.env.Result, "capabilities", list, "listChanged")
		*to = string(at.Of(m.raw)) == "true"
	}
	at, _ := rewrite.Lookup(m.raw, m.env.Result, "serverInfo", "name")
	name, _ := rewrite.String(m.raw, at)
	s := m.session
	s.mu.Lock()
	s.server, s.changed = name, changed
	s.mu.Unlock()
	if h := s.proxy.OnServer; h != nil {
		h(name)
		m.policy = s.proxy.policy()
	}
}

// failCalls forgets all requests that wait for the given side, and tells each
// sender why there will be no answer.
func (s *session) failCalls(waitFor Direction, text string) [][]byte {
	s.mu.Lock()
	var lost []*call
	for key := range s.calls.open {
		if key.to == waitFor {
			lost = append(lost, s.calls.remove(key))
		}
	}
	s.mu.Unlock()
	out := make([][]byte, len(lost))
	for i, one := range lost {
		s.over(one, CallLost, 0)
		out[i] = errorMessage(one.id, codeInternal, text)
	}
	return out
}

func (s *session) log() *zap.Logger { return s.proxy.logger() }

// mayAsk reports whether results may ask the client for input, by the revision
// that is known of the session: none, or one that a header declares.
func mayAsk(revision string) bool { return revision == "" || revision >= revisionModern }
