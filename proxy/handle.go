package proxy

import (
	"sync"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// handle decides what becomes of one message. It is the same for every
// transport: HTTP bodies, SSE events, stdio lines and, one by one, the elements
// of a batch. A message with nothing of ours in it goes on as the slice that
// came. An error is one of rewrite.Scan's: the text is no message, and what is
// done with it is the transport's affair.
func (s *session) handle(to Direction, raw []byte) (outcome, error) {
	env, err := rewrite.Scan(raw)
	if err != nil {
		return outcome{}, err
	}
	return s.handleScanned(to, raw, env)
}

// handleScanned is handle for a message that was scanned already.
func (s *session) handleScanned(to Direction, raw []byte, env rewrite.Envelope) (outcome, error) {
	p := s.proxy.policy()
	if env.Kind == rewrite.KindBatch {
		return s.batch(to, raw, p)
	}
	m := messages.Get().(*message)
	*m = message{session: s, to: to, raw: raw, env: env, policy: p, edits: m.edits}
	m.share = &m.alone
	out := m.handle()
	m.edits.Reset()
	*m = message{edits: m.edits} // keeps nothing alive
	messages.Put(m)
	return out, nil
}

// messages are those that are done with, for the next: most messages pass, and
// cost no memory. So nothing may keep one, or point into it, once it is handled.
var messages = sync.Pool{New: func() any { return new(message) }}

// handle handles a message that is no batch: track, find and decide, apply.
func (m *message) handle() outcome {
	m.track()
	if m.policy != nil && m.out == nil {
		for _, step := range steps[m.to] {
			if step(m); m.out != nil {
				break
			}
		}
	}
	return m.finish()
}

// steps are what is looked at in a message, in order. Each adds edits, or
// settles the outcome, which ends the message's way.
var steps = [2][]func(*message){
	ToServer: {
		(*message).envelope,
		(*message).plainElicitation,
		(*message).clientIcons,
		(*message).questionID,
		(*message).checkAnswer,
		(*message).checkInputResponses,
	},
	ToClient: {
		(*message).envelope,
		(*message).learnServer,
		(*message).refitForm,
		(*message).refitInputRequests,
		(*message).judgeURLError,
		(*message).subscribed,
		(*message).judgeIcons,
		(*message).cacheability,
	},
}

// finish applies the edits, unless a step has settled the outcome.
func (m *message) finish() outcome {
	var out outcome
	switch {
	case m.policy != nil && m.policy.Config.Observe && !m.enforced:
		out = outcome{forward: m.raw}
	case m.out != nil:
		out = *m.out
	default:
		out = outcome{forward: m.edits.Apply(m.raw)}
	}
	if out.forward == nil && m.own != nil { // it never got there
		m.session.mu.Lock()
		m.session.calls.remove(callKey{m.to, canonicalID(m.id())})
		m.session.mu.Unlock()
	}
	if out.forward != nil {
		out.after = m.after
	}
	if m.to == ToServer && m.call != nil {
		out.answered = []*call{m.call}
		if !m.session.settles {
			m.session.settle(out.answered)
		}
	}
	m.overWith(out)
	if h := m.session.proxy.OnMessage; h != nil {
		h(m.summary(out))
	}
	return out
}
