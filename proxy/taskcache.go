package proxy

import (
	"bytes"
	"sync"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// Bounds of a taskCache. Beyond either, the oldest questions go first; then a
// task's answer costs a tasks/get of our own.
const (
	maxTaskQuestions = 4096
	maxTaskBytes     = 16 << 20
)

// A taskCache keeps the questions of tasks (the tasks extension of 2026-07-28)
// by the task's id and the question's key, which by the specification is never
// used again. Tasks have no requestState that could carry them. It is shared by
// all sessions of a proxy, since a task's requests are stateless.
type taskCache struct {
	mu    sync.Mutex
	forms map[taskKey]*form
	order []taskKey
	bytes int
}

type taskKey struct{ task, key string }

func (k taskKey) size() int { return len(k.task) + len(k.key) }

func (c *taskCache) add(k taskKey, f *form) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forms == nil {
		c.forms = make(map[taskKey]*form)
	}
	if old := c.forms[k]; old != nil {
		c.bytes += f.size() - old.size()
		c.forms[k] = f
		return
	}
	c.forms[k] = f
	c.order = append(c.order, k)
	c.bytes += k.size() + f.size()
	for len(c.order) > maxTaskQuestions || c.bytes > maxTaskBytes && len(c.order) > 1 {
		c.bytes -= c.order[0].size() + c.forms[c.order[0]].size()
		delete(c.forms, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *taskCache) get(k taskKey) *form {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forms[k]
}

// taskOf is the id of the task whose questions a message carries: a tasks/get
// result, or a notifications/tasks.
func (m *message) taskOf() (string, bool) {
	in, asked := m.env.Params, ""
	switch {
	case m.env.Kind == rewrite.KindNotification:
	case m.call != nil && m.call.method == "tasks/get":
		in, asked = m.env.Result, m.call.target
	default:
		return "", false
	}
	// The server's own word counts, which may have read the request in another way.
	at, _ := rewrite.Lookup(m.raw, in, "taskId")
	if id, ok := rewrite.String(m.raw, at); ok {
		return id, true
	}
	return asked, asked != ""
}

// refitTask refits the questions of a task, and keeps them.
func (m *message) refitTask(task string, q rewrite.Questions) {
	for _, one := range q.List {
		f, known := m.ask(one)
		if m.out != nil {
			return
		}
		if known {
			m.session.proxy.tasks.add(taskKey{task, one.Key}, f)
		}
	}
}

// taskQuestion is the question that an answer in tasks/update belongs to. One
// that we don't know (another replica passed it on, or it is long ago) is asked
// of the server, if the answer has something to check. It is nil if there is
// no such question.
func (m *message) taskQuestion(task, key string, answer []byte) *form {
	k := taskKey{task, key}
	if f := m.session.proxy.tasks.get(k); f != nil {
		return f
	}
	if m.session.ask == nil || !accepts(answer, rewrite.Span{Start: 0, End: len(answer)}) {
		return nil
	}
	params := append([]byte(`{"taskId":`), rewrite.Quote(task)...)
	if meta, ok := rewrite.Lookup(m.raw, m.env.Params, "_meta"); ok {
		params = append(append(params, `,"_meta":`...), meta.Of(m.raw)...)
	}
	response, err := m.session.ask("tasks/get", append(params, '}'))
	if err != nil {
		m.decide(Decision{Path: "params.inputResponses." + key, Rule: "answer", Verdict: VerdictUnchecked, Reason: "tasks/get: " + err.Error()})
		return nil
	}
	m.learnTask(task, response)
	return m.session.proxy.tasks.get(k)
}

// learnTask keeps the questions in a tasks/get response that the client has
// not seen through us.
func (m *message) learnTask(task string, response []byte) {
	env, err := rewrite.Scan(response)
	if err != nil || env.Kind != rewrite.KindResult {
		return
	}
	for _, q := range rewrite.FindQuestions(response, env).List {
		f := &form{dialect: m.dialect(), rules: m.rules()}
		switch q.ModeOf(response) {
		case rewrite.ModeForm:
			f.schema = bytes.Clone(q.Schema.Of(response))
		case rewrite.ModeURL:
			f.url = true
		default:
			continue
		}
		m.session.proxy.tasks.add(taskKey{task, q.Key}, f)
	}
}
