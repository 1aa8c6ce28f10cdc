package proxy

import (
	"bytes"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// batch handles a JSON-RPC batch (revision 2025-03-26): edits are made inside
// of the elements, whose order and count stay. A batch with an element that we
// have to answer or drop is refused whole: each request in it is answered with
// an error, and each response in it becomes an error for whoever waits for it.
// One with an element that is no message is no message itself, and nor is an
// empty one, which a client is told. One of more than maxBatch is refused whole
// before any of it is looked at.
func (s *session) batch(to Direction, raw []byte, p *policy.Policy) (outcome, error) {
	var elements []element
	share := new(iconShare)
	for at := range rewrite.Elements(raw, arrayAt(raw)) {
		text := at.Of(raw)
		env, err := rewrite.Scan(text)
		if err != nil || env.Kind == rewrite.KindBatch {
			return outcome{}, rewrite.ErrNotMessage
		}
		if len(elements) == maxBatch {
			return s.refuseLongBatch(to, raw, p)
		}
		elements = append(elements, element{at: at, message: &message{session: s, to: to, raw: text, env: env, policy: p, batch: true, share: share}})
	}
	if len(elements) == 0 {
		if to == ToServer {
			return outcome{reply: errorMessage(nil, codeInvalidRequest, textEmptyBatch)}, nil
		}
		return outcome{}, rewrite.ErrNotMessage
	}
	var edits rewrite.Edits
	var answered []*call
	var after []func()
	whole := true
	for i, e := range elements {
		out := e.handle()
		elements[i].reply = out.reply
		answered = append(answered, out.answered...)
		if out.after != nil {
			after = append(after, out.after)
		}
		switch {
		case out.forward == nil || out.reply != nil:
			whole = false
		case !same(out.forward, e.raw):
			edits.Replace(e.at, out.forward)
		}
	}
	if whole {
		return outcome{forward: edits.Apply(raw), answered: answered, after: func() {
			for _, f := range after {
				f()
			}
		}}, nil
	}
	refused := s.refuseBatch(to, elements)
	refused.answered = answered
	return refused, nil
}

// maxBatch bounds the messages of a batch. Each costs us half a kilobyte, and
// as little as 30 bytes of the batch.
const maxBatch = 1 << 14

// refuseLongBatch is refuseBatch for one of more than maxBatch messages.
func (s *session) refuseLongBatch(to Direction, raw []byte, p *policy.Policy) (outcome, error) {
	var forward, reply [][]byte
	var answered []*call
	for at := range rewrite.Elements(raw, arrayAt(raw)) {
		text := at.Of(raw)
		env, err := rewrite.Scan(text)
		if err != nil || env.Kind == rewrite.KindBatch {
			return outcome{}, rewrite.ErrNotMessage
		}
		switch m := (&message{session: s, to: to, raw: text, env: env, policy: p}); env.Kind {
		case rewrite.KindRequest:
			reply = append(reply, errorMessage(m.id(), codeInvalidRequest, textLongBatch))
		case rewrite.KindResult, rewrite.KindError:
			m.track() // nobody waits for it any longer
			if to == ToServer && m.call != nil {
				answered = append(answered, m.call)
			}
			forward = append(forward, errorMessage(m.id(), codeInvalidRequest, textLongBatch))
		}
	}
	if !s.settles {
		s.settle(answered)
	}
	return outcome{forward: joinBatch(forward), reply: joinBatch(reply), answered: answered}, nil
}

type element struct {
	at rewrite.Span
	*message
	reply []byte // what it is answered by us, nil if it may pass
}

func (s *session) refuseBatch(to Direction, elements []element) outcome {
	var forward, reply [][]byte
	for _, e := range elements {
		id := e.id()
		switch {
		case e.reply != nil:
			reply = append(reply, e.reply)
		case e.env.Kind == rewrite.KindRequest:
			s.mu.Lock()
			s.calls.remove(callKey{to, canonicalID(id)})
			s.mu.Unlock()
			reply = append(reply, errorMessage(id, codeInvalidRequest, textBatch))
		case e.env.Kind == rewrite.KindResult, e.env.Kind == rewrite.KindError:
			forward = append(forward, errorMessage(id, codeInvalidRequest, textBatch))
		}
	}
	return outcome{forward: joinBatch(forward), reply: joinBatch(reply)}
}

// joinBatch makes a batch, nil of nothing.
func joinBatch(messages [][]byte) []byte {
	if len(messages) == 0 {
		return nil
	}
	return append(append([]byte("["), bytes.Join(messages, []byte(","))...), ']')
}

// arrayAt is where the array of a scanned batch stands.
func arrayAt(raw []byte) rewrite.Span {
	return rewrite.Span{Start: bytes.IndexByte(raw, '['), End: len(raw)}
}

// same reports whether two slices are the same bytes in memory.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
