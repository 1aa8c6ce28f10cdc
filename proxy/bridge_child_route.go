package proxy

import (
	"iter"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// deliver passes on a message of the child.
func (s *childSession) deliver(raw []byte, env rewrite.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliverOne(raw, env)
}

// deliverOne is deliver. The caller holds the lock.
func (s *childSession) deliverOne(raw []byte, env rewrite.Envelope) {
	switch env.Kind {
	case rewrite.KindResult, rewrite.KindError:
		s.answer(raw, env, env.ID.Of(raw))
	case rewrite.KindBatch:
		s.deliverBatch(raw)
	default:
		s.streamFor(raw, env).push(raw)
	}
}

// answer passes on a response. The caller holds the lock.
func (s *childSession) answer(raw []byte, env rewrite.Envelope, id []byte) {
	one := s.take(id)
	if one == nil {
		s.t.log().Warn("a response of the server answers no request that is open", zap.ByteString("id", id))
		return
	}
	if one.initialize && env.Kind == rewrite.KindError {
		s.refused = true
		go s.close("the server refused initialize")
	}
	one.stream.add(raw, *one.left == 0)
}

// take closes a call.
func (s *childSession) take(id []byte) *childCall {
	key := canonicalID(id)
	one := s.calls[key]
	if one == nil {
		return nil
	}
	delete(s.calls, key)
	for i, o := range s.order {
		if o == one {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	*one.left--
	return one
}

// deliverBatch passes on a batch: whole if all that it answers came in one
// POST, and taken apart otherwise. The caller holds the lock.
func (s *childSession) deliverBatch(raw []byte) {
	var stream *eventStream
	one := true
	for element, env := range messagesIn(raw) {
		if env.Kind != rewrite.KindResult && env.Kind != rewrite.KindError {
			continue
		}
		if call := s.calls[canonicalID(env.ID.Of(element))]; call != nil {
			one = one && (stream == nil || stream == call.stream)
			stream = call.stream
		}
	}
	if !one {
		for element, env := range messagesIn(raw) {
			s.deliverOne(element, env)
		}
		return
	}
	if stream == nil {
		stream = s.standing
	}
	stream.push(raw)
	for element, env := range messagesIn(raw) {
		if env.Kind != rewrite.KindResult && env.Kind != rewrite.KindError {
			continue
		}
		if call := s.take(env.ID.Of(element)); call != nil && *call.left == 0 {
			stream.finish()
		}
	}
}

// messagesIn are the messages in a batch.
func messagesIn(raw []byte) iter.Seq2[[]byte, rewrite.Envelope] {
	return func(yield func([]byte, rewrite.Envelope) bool) {
		for at := range rewrite.Elements(raw, arrayAt(raw)) {
			element := at.Of(raw)
			if env, err := rewrite.Scan(element); err == nil && !yield(element, env) {
				return
			}
		}
	}
}

// streamFor is the stream that a request or notification of the child belongs
// on, and it is one alone: that of the call whose progress it tells; that of
// the only call in flight; the standing one; and, as long as nobody listens
// there, that of the latest call, so that a question reaches the client
// whatever it does. The caller holds the lock.
func (s *childSession) streamFor(raw []byte, env rewrite.Envelope) *eventStream {
	if env.Method == "notifications/progress" {
		if at, ok := rewrite.Lookup(raw, env.Params, "progressToken"); ok {
			token := canonicalID(at.Of(raw))
			for _, one := range s.order {
				if one.token == token {
					return one.stream
				}
			}
		}
	}
	open := 0
	var latest, listens *childCall
	for _, one := range s.order {
		if one.cancelled {
			continue
		}
		open, latest = open+1, one
		if one.stream.listens() {
			listens = one
		}
	}
	switch {
	case open == 1 && listens != nil:
		return listens.stream
	case s.standing.attached():
		return s.standing
	case listens != nil:
		return listens.stream
	case latest != nil && latest.stream.prime: // its client can come back for it
		return latest.stream
	}
	return s.standing
}

// lost answers for a message of the child that is not passed on.
func (s *childSession) lost(f *frame) {
	text := "mcp-refit: this message was not passed on: " + f.tooLarge
	id := f.skim.ID()
	switch f.skim.Kind() {
	case rewrite.KindResult:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer(errorMessage(id, codeInvalidRequest, text), rewrite.Envelope{Kind: rewrite.KindError}, id)
	case rewrite.KindRequest:
		s.peer.post(errorMessage(id, codeInvalidRequest, text))
	}
}
