package proxy

import (
	"bytes"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// refitInputRequests handles the questions that a modern result carries
// (2026-07-28, multi round-trip requests). Their schemas are refitted, and
// what the answers are to be checked against goes, sealed, into the
// requestState that the client hands back: nothing is kept here. A task's
// questions have no requestState, so those are kept, see taskCache.
func (m *message) refitInputRequests() {
	if m.env.Seen&(rewrite.KeyInputRequests|rewrite.KeyOdd) == 0 ||
		m.env.Kind != rewrite.KindResult && m.env.Kind != rewrite.KindNotification {
		return
	}
	q := rewrite.FindQuestions(m.raw, m.env)
	if m.surplus(q.Surplus); len(q.List) > rewrite.MaxQuestions {
		m.tooMany("inputRequests", "form", "more questions than are looked at")
	}
	if m.out != nil {
		return
	}
	if len(q.List) == 0 {
		return
	}
	if task, ok := m.taskOf(); ok {
		m.refitTask(task, q)
		return
	}
	if m.call == nil || !m.call.canAsk {
		m.decide(Decision{Path: "result.inputRequests", Rule: "form", Verdict: VerdictUnchecked, Reason: "not a result that may ask; an answer with content will be refused"})
		return
	}
	state := State{Call: m.call.digest, Dialect: uint8(m.dialect())}
	if !q.State.At.Empty() {
		state.ServerState = q.State.Value.Of(m.raw)
	}
	for _, one := range q.List {
		f, known := m.ask(one)
		if m.out != nil {
			return
		}
		if known {
			state.Forms = append(state.Forms, SealedForm{Key: one.Key, Request: q.Without(m.raw, one.Request), Rules: uint32(f.rules), URL: f.url})
		}
	}
	if len(state.Forms) > 0 && !m.policy.Config.Observe {
		m.seal(q, state)
	}
}

// ask brings one question into the form that the client shows, or refuses it.
// It reports false for a question whose answer there is no way to check.
func (m *message) ask(q rewrite.Question) (*form, bool) {
	switch q.ModeOf(m.raw) {
	case rewrite.ModeForm:
		if !m.allowForm(q) {
			return nil, false
		}
		return m.refit(q), true
	case rewrite.ModeURL:
		if !m.allowURL(q) {
			return nil, false
		}
		return &form{url: true}, true
	}
	if !q.Schema.Empty() { // whatever the mode is, it says what is asked for
		return &form{schema: bytes.Clone(q.Schema.Of(m.raw))}, true
	}
	m.decide(Decision{Path: q.Path + ".mode", Rule: "form", Verdict: VerdictUnchecked, Reason: "a mode that we do not know; an answer with content will be refused"})
	return nil, false
}

// seal puts the sealed state in the place of the server's own.
func (m *message) seal(q rewrite.Questions, state State) {
	token, err := m.session.proxy.sealer(m.policy).Seal(state)
	if err != nil {
		m.decide(Decision{Path: "result.requestState", Rule: "state", Verdict: VerdictRefused, Reason: err.Error()})
		m.replace(errorMessage(m.id(), codeInternal, "mcp-refit: the state of this call could not be sealed: "+err.Error()))
		return
	}
	quoted := rewrite.Quote(token)
	if q.State.At.Empty() {
		m.edits.Prepend(m.raw, q.In, append([]byte(`"requestState":`), quoted...))
		return
	}
	m.edits.Replace(q.State.Value, quoted)
}
