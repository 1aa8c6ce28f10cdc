package proxy

import (
	"bytes"
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A verdict is what the check of one ElicitResult found.
type verdict struct {
	policy.AnswerDecision
	given  []byte // the ElicitResult as the client gave it, in the server's own types
	result []byte // the one that may go to the server
}

// judge checks one ElicitResult that answers a form: what the client sent is
// turned back to the server's own types, and that is checked.
func (m *message) judge(f *form, result []byte) verdict {
	if f.url {
		v := verdict{AnswerDecision: m.policy.Answers.DecideURL(result), given: result}
		v.result = v.Apply(result)
		return v
	}
	at := rewrite.Span{Start: 0, End: len(result)}
	content, ok := rewrite.Get(result, at, "content")
	if ok {
		was := content.Value.Of(result)
		if back := f.restore(was); !same(back, was) {
			var e rewrite.Edits
			e.Replace(content.Value, back)
			result = e.Apply(result)
		}
	}
	v := verdict{AnswerDecision: m.policy.Answers.Decide(f.schema, result), given: result}
	v.result = v.Apply(result)
	return v
}

// observed is a verdict where the policy only observes: the answer goes on as
// it was given. What was refitted before that is turned back all the same.
func (m *message) observed(v verdict, was []byte) verdict {
	if m.policy.Config.Observe {
		v.Outcome, v.result = policy.Pass, v.given
		m.enforced = m.enforced || !same(v.given, was)
	}
	return v
}

// questionID gives an answer the id under which the question was asked, where
// it is written in another way: or a server that reads ids more strictly than
// we do would still wait, for an answer that we don't expect any more.
func (m *message) questionID() {
	if m.call == nil {
		return
	}
	id := m.env.ID.Of(m.raw)
	if bytes.Equal(id, m.call.id) {
		return
	}
	m.edits.Replace(m.env.ID, m.call.id)
	m.decide(Decision{Path: "id", Rule: "answer", Verdict: VerdictRewritten, Reason: "the question's id is written in another way", Before: id, After: m.call.id})
}

// report tells what the check of the answer at path found.
func (m *message) report(path string, v verdict, before []byte) {
	for _, a := range v.Applied {
		m.decide(Decision{Path: path + ".content." + a.Field, Rule: a.Rule, Verdict: VerdictRewritten, Reason: "the policy asks for it", Before: before, After: v.result})
	}
	for _, u := range v.Unchecked {
		m.decide(Decision{Path: path + ".content", Rule: "answer", Verdict: VerdictUnchecked, Reason: u})
	}
	if len(v.Problems) == 0 {
		m.answered(VerdictKept)
		return
	}
	verdict := VerdictRefused
	switch v.Outcome {
	case policy.Pass:
		verdict = VerdictPassed
	case policy.Retry:
		verdict = VerdictAsked
	}
	m.answered(verdict)
	// The sentences quote the answer, so the audit gets the fields and rules alone.
	m.decide(Decision{Path: path, Rule: "answer", Verdict: verdict, Reason: failing(v.Problems), Before: before})
}

func (m *message) answered(verdict string) {
	if h := m.session.proxy.OnAnswer; h != nil {
		h(verdict)
	}
}

// failing names the failing fields and rules, without what the user wrote.
func failing(problems []policy.Problem) string {
	var b strings.Builder
	for i, p := range problems {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Field + ": " + p.Rule)
	}
	return b.String()
}

// checkAnswer checks the client's response to elicitation/create (or, for one
// that is a task, to tasks/result) before the server sees it.
func (m *message) checkAnswer() {
	if m.env.Kind != rewrite.KindResult {
		return
	}
	if m.call == nil {
		m.unknownAnswer()
		return
	}
	f := m.call.form
	if f == nil {
		if m.call.method == "tasks/result" || m.call.method == "elicitation/create" {
			m.unknownAnswer()
		}
		return
	}
	if m.becameTask(f) {
		return
	}
	was := m.env.Result.Of(m.raw)
	v := m.judge(f, was)
	if v.Outcome == policy.Retry && !m.askAgain(v.Problems) {
		v.Outcome = policy.Refuse
	}
	m.report("result", v, was)
	switch v = m.observed(v, was); v.Outcome {
	case policy.Pass:
		if !same(v.result, was) {
			m.edits.Replace(m.env.Result, v.result)
		}
	case policy.Cancel, policy.Decline:
		m.replace(resultMessage(m.id(), []byte(`{"action":"`+v.Outcome.String()+`"}`)))
	case policy.Retry:
		m.drop()
	default:
		m.replace(errorMessage(m.id(), codeInvalidParams, policy.ProblemText(v.Problems)))
	}
}

// unknownAnswer refuses an accepted answer to a question that we don't know,
// because the session or the task is not one that we saw begin. In a session
// that we do know, a response to no request at all is one that the server
// ignores.
func (m *message) unknownAnswer() {
	if m.session.known && m.call == nil && !m.session.isSplit() || m.policy.Config.Answers.UnknownSession == policy.AcceptPass || !accepts(m.raw, m.env.Result) {
		return
	}
	reason, text := "an answer in a session that we do not know", textUnknown
	if m.call != nil {
		reason, text = "an answer to no form that we know", textNoForm
	}
	m.decide(Decision{Path: "result", Rule: "answer", Verdict: VerdictRefused, Reason: reason})
	m.replace(errorMessage(m.id(), codeInvalidParams, text))
}

func (s *session) isSplit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.split
}

// accepts reports whether any reader could take an object for an ElicitResult
// that accepts with content.
func accepts(raw []byte, at rewrite.Span) bool {
	var accept, content bool
	for member := range rewrite.Members(raw, at) {
		switch rewrite.Fold(member.Key) {
		case "action":
			v, _ := rewrite.String(raw, member.Value)
			accept = accept || strings.EqualFold(strings.TrimSpace(v), "accept")
		case "content":
			content = true
		}
	}
	return accept && content
}

// askAgain sends the question once more, with the problems said in its
// message. It reports false if it can't or may not any more.
func (m *message) askAgain(problems []policy.Problem) bool {
	f := m.call.form
	if m.batch || f.request == nil || f.tries >= int(m.policy.Config.Answers.Retries) || m.policy.Config.Observe || m.session.send == nil {
		return false
	}
	again := withProblems(f.request, problems)
	next := *f
	next.tries++
	one := call{id: m.call.id, method: m.call.method, form: &next}
	s, key := m.session, callKey{ToClient, canonicalID(m.call.id)}
	swap := func(was, now *call) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.calls.open[key] != was {
			return false // cancelled, or answered otherwise
		}
		now.watched, was.watched = was.watched, nil
		s.calls.add(key, now)
		return true
	}
	if !swap(m.call, &one) {
		return false
	}
	if s.send(ToClient, again) {
		return true
	}
	swap(&one, m.call)
	return false
}

// withProblems says in a question's message what was wrong with the answer.
func withProblems(request []byte, problems []policy.Problem) []byte {
	env, err := rewrite.Scan(request)
	if err != nil {
		return request
	}
	var e rewrite.Edits
	sayProblems(&e, request, rewrite.FindQuestions(request, env).List[0], problems)
	return e.Apply(request)
}

// sayProblems adds an edit that says, in the question's message, what was
// wrong with the answer to it.
func sayProblems(e *rewrite.Edits, raw []byte, q rewrite.Question, problems []policy.Problem) {
	if q.Params.Empty() || raw[q.Params.Start] != '{' {
		return // there is no place to say it
	}
	text, _ := rewrite.String(raw, q.Message)
	if text != "" {
		text += "\n\n"
	}
	message := rewrite.Quote(text + policy.ProblemText(problems))
	if q.Message.Empty() {
		e.Prepend(raw, q.Params, append([]byte(`"message":`), message...))
		return
	}
	e.Replace(q.Message, message)
}

// becameTask reports whether the client answered a task-augmented question
// (2025-11-25) with a task: then the answer comes later, by tasks/result.
func (m *message) becameTask(f *form) bool {
	if !f.task {
		return false
	}
	for member := range rewrite.Members(m.raw, m.env.Result) {
		if rewrite.Fold(member.Key) == "action" {
			return false
		}
	}
	at, _ := rewrite.Lookup(m.raw, m.env.Result, "task", "taskId")
	id, ok := rewrite.String(m.raw, at)
	if !ok {
		return false
	}
	m.session.mu.Lock()
	added := m.session.tasks.add(id, f)
	m.session.mu.Unlock()
	if !added {
		m.decide(Decision{Path: "result.task", Rule: "answer", Verdict: VerdictRefused, Reason: "a task's id that is another question's"})
		m.replace(errorMessage(m.id(), codeInvalidParams, textTaskID))
	}
	return true
}

// taskForms are the forms of a session's questions that the client answered
// with a task, by the task's id. The session's lock guards it.
type taskForms struct {
	byID  map[string]*form
	order []string
	bytes int
}

// Bounds on what a session keeps of them. The oldest goes first, and then its
// answer is one to a question that we don't know.
const (
	maxTaskForms     = 256
	maxTaskFormBytes = 8 << 20
)

// add keeps a form. It reports false if the id is that of another one.
func (t *taskForms) add(id string, f *form) bool {
	if old := t.byID[id]; old != nil {
		return old.url == f.url && old.dialect == f.dialect && old.rules == f.rules && bytes.Equal(old.schema, f.schema)
	}
	if t.byID == nil {
		t.byID = make(map[string]*form)
	}
	t.byID[id] = f
	t.order = append(t.order, id)
	t.bytes += len(id) + f.size()
	for len(t.order) > maxTaskForms || t.bytes > maxTaskFormBytes && len(t.order) > 1 {
		oldest := t.order[0]
		t.bytes -= len(oldest) + t.byID[oldest].size()
		delete(t.byID, oldest)
		t.order = t.order[1:]
	}
	return true
}

// taskForm is the form that the response to a tasks/result request will
// answer, nil if the task is none of a form's.
func (m *message) taskForm() *form {
	at, _ := rewrite.Lookup(m.raw, m.env.Params, "taskId")
	id, _ := rewrite.String(m.raw, at)
	m.session.mu.Lock()
	defer m.session.mu.Unlock()
	f := m.session.tasks.byID[id]
	if f == nil {
		return nil
	}
	again := *f
	again.request, again.task = nil, false
	return &again
}
