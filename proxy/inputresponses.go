package proxy

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// checkInputResponses checks the answers that a modern request brings back
// (2026-07-28), before the server sees any of them: it opens the state that we
// sealed with the questions, judges each answer against the server's own
// schema, and gives the server its own state back byte for byte.
func (m *message) checkInputResponses() {
	const ours = rewrite.KeyInputResponses | rewrite.KeyRequestState | rewrite.KeyOdd
	if m.env.Kind != rewrite.KindRequest && m.env.Kind != rewrite.KindNotification || m.env.Seen&ours == 0 {
		return
	}
	a := rewrite.FindAnswers(m.raw, m.env)
	if m.surplus(a.Surplus); len(a.List) > rewrite.MaxQuestions {
		m.tooMany("inputResponses", "answer", "more answers than are looked at")
	}
	if m.out != nil {
		return
	}
	if a.Responses.At.Empty() && a.State.At.Empty() {
		return
	}
	r := round{m: m, answers: a}
	if m.env.Kind == rewrite.KindNotification {
		r.unasked()
		return
	}
	if first := m.raw[a.Responses.Value.Start]; !a.Responses.At.Empty() && first != '{' && first != 'n' {
		if r.refuse("params.inputResponses", "answer", "not an object", "mcp-refit: inputResponses is not an object, so there are no answers in it"); m.out != nil {
			return
		}
	}
	if m.env.Method == "tasks/update" {
		r.task = m.own.target
	} else if !r.open() {
		return
	}
	for _, one := range a.List {
		if r.judge(one); m.out != nil {
			return
		}
	}
	r.conclude()
}

// A round is one set of answers on its way through the check.
type round struct {
	m       *message
	answers rewrite.Answers
	sealed  *State // nil: the request carries no state of ours
	task    string // the task's id, for tasks/update

	bad  []badAnswer
	good map[string][]byte // what may be kept if the rest has to be asked again
}

type badAnswer struct {
	at      rewrite.Member
	sealed  *SealedForm
	verdict verdict
}

// open opens the sealed state. It reports false if the request was refused.
func (r *round) open() bool {
	m := r.m
	token, ok := rewrite.String(m.raw, r.answers.State.Value)
	if !ok {
		return true
	}
	state, err := m.session.proxy.sealer(m.policy).Open(token, m.own.digest)
	switch {
	case errors.Is(err, ErrNotSealed):
		return true
	case err != nil:
		m.enforced = true // the state is ours, and the server can't read it
		m.decide(Decision{Path: "params.requestState", Rule: "state", Verdict: VerdictRefused, Reason: err.Error()})
		m.refuse(codeInvalidParams, "mcp-refit: requestState: "+err.Error()+"; call again without inputResponses and requestState")
		return false
	}
	r.sealed, m.enforced = &state, true
	if state.ServerState == nil {
		m.edits.Remove(r.answers.State.At)
	} else {
		m.edits.Replace(r.answers.State.Value, state.ServerState)
	}
	return true
}

// judge checks one answer, or refuses the whole request if it can't be checked.
func (r *round) judge(at rewrite.Member) {
	m, was := r.m, at.Value.Of(r.m.raw)
	path := "params.inputResponses." + at.Key
	if was[0] != '{' {
		r.refuse(path, "answer", "not an object", "mcp-refit: inputResponses: "+strconv.Quote(at.Key)+" is not an object, so it is no answer")
		return
	}
	f, sealed := r.form(at.Key, was)
	if f == nil {
		r.unsealed(at, path)
		return
	}
	v := m.judge(f, was)
	if len(v.Problems) > 0 && v.Outcome != policy.Pass && !m.policy.Config.Observe {
		r.bad = append(r.bad, badAnswer{at, sealed, v})
		return
	}
	m.report(path, v, was)
	v = m.observed(v, was)
	r.keep(at.Key, v.result)
	if !same(v.result, was) {
		m.edits.Replace(at.Value, v.result)
	}
}

// refuse refuses the request, unless the policy only observes.
func (r *round) refuse(path, rule, reason, text string) {
	r.m.decide(Decision{Path: path, Rule: rule, Verdict: VerdictRefused, Reason: reason})
	if !r.m.policy.Config.Observe {
		r.m.refuse(codeInvalidParams, text)
	}
}

// unasked drops a notification that carries an answer: no server asks by one,
// and one that takes it for a request would see an answer that nobody checked.
func (r *round) unasked() {
	m := r.m
	for _, one := range r.answers.List {
		if accepts(m.raw, one.Value) && m.policy.Config.Answers.UnsealedAccept != policy.AcceptPass {
			m.decide(Decision{Path: "params.inputResponses." + one.Key, Rule: "answer", Verdict: VerdictRefused, Reason: "an answer in a notification"})
			m.drop()
			return
		}
	}
}

// keep remembers an answer that need not be given again.
func (r *round) keep(key string, result []byte) {
	if r.good == nil {
		r.good = make(map[string][]byte)
	}
	r.good[key] = result
}

// form is what the answer to that key is checked against, nil if that is not known.
func (r *round) form(key string, answer []byte) (*form, *SealedForm) {
	if r.task != "" {
		return r.m.taskQuestion(r.task, key, answer), nil
	}
	if r.sealed == nil {
		return nil, nil
	}
	for i := range r.sealed.Forms {
		if s := &r.sealed.Forms[i]; s.Key == key {
			return s.form(r.sealed.Dialect), s
		}
	}
	return nil, nil
}

// form is the form that was sealed.
func (s *SealedForm) form(dialect uint8) *form {
	f := &form{url: s.URL, dialect: rewrite.Dialect(dialect), rules: rewrite.Rules(s.Rules), tries: s.Tries}
	if schema, ok := rewrite.Lookup(s.Request, rewrite.Span{Start: 0, End: len(s.Request)}, "params", "requestedSchema"); ok {
		f.schema = schema.Of(s.Request)
	}
	return f
}

// unsealed deals with the answer to something that is no question of ours: a
// sampling or roots result passes, and so does a decline; an accept with
// content has no schema that it could be checked against. Beside answers that
// have one it is left out, since the server asked for no such thing.
func (r *round) unsealed(at rewrite.Member, path string) {
	m := r.m
	if !accepts(m.raw, at.Value) {
		r.keep(at.Key, at.Value.Of(m.raw))
		return
	}
	if m.policy.Config.Answers.UnsealedAccept == policy.AcceptPass {
		m.decide(Decision{Path: path, Rule: "state", Verdict: VerdictPassed, Reason: "an answer without a state that we sealed"})
		r.keep(at.Key, at.Value.Of(m.raw))
		return
	}
	if r.sealed != nil {
		m.decide(Decision{Path: path, Rule: "state", Verdict: VerdictStripped, Reason: "an answer to a question that was not asked"})
		if !m.policy.Config.Observe {
			m.edits.Remove(at.At)
		}
		return
	}
	if r.task != "" {
		r.refuse(path, "answer", "an answer to no question of the task that we know", textTask)
		return
	}
	r.refuse(path, "state", "an answer without a state that we sealed", textNoState)
}

// conclude settles the request once all answers are judged. If one is bad,
// nothing of the request goes on, unless the policy puts cancel or decline in
// its place.
func (r *round) conclude() {
	m := r.m
	again := len(r.bad) > 0
	for _, b := range r.bad {
		again = again && b.verdict.Outcome == policy.Retry && b.sealed != nil && b.sealed.Tries < int(m.policy.Config.Answers.Retries)
	}
	var problems []policy.Problem
	for _, b := range r.bad {
		if b.verdict.Outcome == policy.Retry && !again {
			b.verdict.Outcome = policy.Refuse
		}
		m.report("params.inputResponses."+b.at.Key, b.verdict, b.at.Value.Of(m.raw))
		switch b.verdict.Outcome {
		case policy.Cancel, policy.Decline:
			m.edits.Replace(b.at.Value, []byte(`{"action":"`+b.verdict.Outcome.String()+`"}`))
		default:
			problems = append(problems, b.verdict.Problems...)
		}
	}
	switch {
	case again:
		r.askAgain()
	case len(problems) > 0:
		m.refuse(codeInvalidParams, policy.ProblemText(problems))
	default:
		r.addKept()
	}
}

// addKept puts in the good answers of earlier rounds.
func (r *round) addKept() {
	if r.sealed == nil || len(r.sealed.Answered) == 0 {
		return
	}
	var members [][]byte
	for _, key := range slices.Sorted(maps.Keys(r.sealed.Answered)) {
		if _, given := r.good[key]; !given {
			members = append(members, append(append(rewrite.Quote(key), ':'), r.sealed.Answered[key]...))
		}
	}
	if len(members) == 0 {
		return
	}
	joined := bytes.Join(members, []byte(","))
	if r.answers.Responses.At.Empty() {
		r.m.edits.Prepend(r.m.raw, r.m.env.Params, []byte(`"inputResponses":{`+string(joined)+`}`))
		return
	}
	r.m.edits.Prepend(r.m.raw, r.answers.Responses.Value, joined)
}

// askAgain answers the request with the failed questions once more, with the
// problems said in their messages. The good answers are kept in the new state,
// and so are all forms: a client may give an answer that is kept once more.
func (r *round) askAgain() {
	m := r.m
	next := State{Call: r.sealed.Call, Dialect: r.sealed.Dialect, ServerState: r.sealed.ServerState, Forms: r.sealed.Forms, Answered: r.good}
	for key, result := range r.sealed.Answered {
		if _, given := r.good[key]; !given {
			if next.Answered == nil {
				next.Answered = make(map[string][]byte)
			}
			next.Answered[key] = result
		}
	}
	var asked []string
	for _, b := range r.bad {
		b.sealed.Tries++
		asked = append(asked, string(rewrite.Quote(b.sealed.Key))+":"+string(b.sealed.ask(r.sealed.Dialect, b.verdict.Problems)))
	}
	token, err := m.session.proxy.sealer(m.policy).Seal(next)
	if err != nil {
		m.refuse(codeInternal, "mcp-refit: the state of this call could not be sealed: "+err.Error())
		return
	}
	m.out = &outcome{reply: resultMessage(m.id(), []byte(
		`{"resultType":"input_required","inputRequests":{`+strings.Join(asked, ",")+`},"requestState":`+string(rewrite.Quote(token))+`}`))}
}

// ask is the question as the client is asked once more.
func (s *SealedForm) ask(dialect uint8, problems []policy.Problem) []byte {
	at, ok := rewrite.Lookup(s.Request, rewrite.Span{Start: 0, End: len(s.Request)}, "params")
	if !ok {
		return s.Request
	}
	var e rewrite.Edits
	q := rewrite.QuestionAt(s.Request, at)
	if !q.Schema.Empty() {
		e.Replace(q.Schema, rewrite.RefitForm(q.Schema.Of(s.Request), rewrite.Dialect(dialect), rewrite.Rules(s.Rules)).Schema)
	}
	sayProblems(&e, s.Request, q, problems)
	return e.Apply(s.Request)
}
