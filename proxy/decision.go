package proxy

import (
	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A Decision is one thing that the proxy changed or refused in a message, or
// would have.
type Decision struct {
	Session  string // empty over stdio
	Server   string // the name that the server gave itself, empty before that
	To       Direction
	Method   string // of the message, or of the request that it answers
	Path     string // where in the message, such as result.tools[3].icons[0]
	Rule     string // what decided: a schema rule's name, icon, website, answer, state, form, capability
	Verdict  string // what became of it: one of the Verdict constants
	Reason   string // for people
	Observed bool   // nothing was done, since the policy only observes

	// Before and After are the bytes in question, where there are any. They
	// may hold user content, and are only valid during the call.
	Before, After []byte

	// Message is all of the message, as it came. It is only valid during the call.
	Message []byte
}

// The verdicts of a Decision.
const (
	VerdictRewritten = "rewritten"
	VerdictStripped  = "stripped"
	VerdictInlined   = "inlined"
	VerdictKept      = "kept"
	VerdictRefused   = "refused"
	VerdictAsked     = "asked again"
	VerdictPassed    = "passed"
	VerdictUnchecked = "unchecked"
)

// Message tells of one message that was handled.
type Message struct {
	Session string
	To      Direction
	Kind    rewrite.Kind
	Method  string // as in Decision
	Size    int    // bytes, as it came
	Edited  bool
	Refused bool
	Raw     []byte // as it came; only valid during the call
}

func (m *message) summary(out outcome) Message {
	return Message{
		Session: m.session.id, To: m.to, Kind: m.env.Kind, Method: m.method(), Size: len(m.raw),
		Edited: out.forward != nil && !same(out.forward, m.raw), Refused: out.forward == nil,
		Raw: m.raw,
	}
}

// decide tells of a decision: the log, and the hook. What is only unchecked or
// refused is a warning.
func (m *message) decide(d Decision) {
	log := m.session.log().Info
	switch d.Verdict {
	case VerdictRefused, VerdictUnchecked, VerdictPassed, VerdictAsked:
		log = m.session.log().Warn
	}
	log(m.verb(d.Verdict), zap.String("rule", d.Rule), zap.String("path", d.Path), zap.String("why", d.Reason),
		zap.String("method", m.method()), zap.Stringer("direction", m.to))
	m.audit(d)
}

// verb is a verdict as the log says it.
func (m *message) verb(verdict string) string {
	if m.policy.Config.Observe {
		return "would be " + verdict
	}
	return verdict
}

// audited reports whether somebody is told of each decision.
func (m *message) audited() bool { return m.session.proxy.OnDecision != nil }

// audit tells the hook of a decision.
func (m *message) audit(d Decision) {
	if !m.audited() {
		return
	}
	s := m.session
	d.Session, d.To, d.Method, d.Observed, d.Message = s.id, m.to, m.method(), m.policy.Config.Observe, m.raw
	s.mu.Lock()
	d.Server = s.server
	s.mu.Unlock()
	s.proxy.OnDecision(d)
}
