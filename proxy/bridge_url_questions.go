package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// An openQuestion is a request of the server whose answer has not arrived there.
type openQuestion struct {
	id []byte // as it was written
	on *post  // the call on whose stream it came; nil: it came on the server's own
}

// A givenAnswer is an answer of the client's on its way to the server.
type givenAnswer struct {
	id   []byte // of the server's request, as the client wrote it
	kind rewrite.Kind
}

func idsOf(answers []givenAnswer) [][]byte {
	ids := make([][]byte, len(answers))
	for i, a := range answers {
		ids[i] = a.id
	}
	return ids
}

// maxQuestions is how many of them are remembered. Of what becomes of one
// beyond it, the log alone is told.
const maxQuestions = 1024

// asked notes the server's requests in a message, and those that it gives up.
func (r *remote) asked(data []byte, env rewrite.Envelope, on *post) {
	switch env.Kind {
	case rewrite.KindRequest:
		id := env.ID.Of(data)
		key := canonicalID(id)
		r.mu.Lock()
		defer r.mu.Unlock()
		if on != nil && on.generation != r.session.generation {
			r.dropQuestion(key, openQuestion{bytes.Clone(id), on})
			return
		}
		if r.questions == nil {
			r.questions = make(map[string]openQuestion)
		}
		if _, again := r.questions[key]; again || len(r.questions) < maxQuestions {
			r.questions[key] = openQuestion{bytes.Clone(id), on}
		}
	case rewrite.KindNotification:
		if env.Method == "notifications/cancelled" {
			at, _ := rewrite.Lookup(data, env.Params, "requestId")
			r.closeQuestion(at.Of(data))
		}
	case rewrite.KindBatch:
		for element, e := range messagesIn(data) {
			r.asked(element, e, on)
		}
	}
}

// closeQuestion forgets a question.
func (r *remote) closeQuestion(id []byte) (openQuestion, bool) {
	key := canonicalID(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	q, ok := r.questions[key]
	delete(r.questions, key)
	return q, ok
}

// delivered notes that the server has what a message answers.
func (r *remote) delivered(p *post) {
	for _, a := range r.settleAnswers(p) {
		r.closeQuestion(a.id)
	}
}

// settleAnswers returns a post's answers once, to whoever learns first whether
// they have arrived.
func (r *remote) settleAnswers(p *post) []givenAnswer {
	r.link.settle(p.answered)
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.over {
		return nil
	}
	p.over = true
	return p.answers
}

// Repeating what has no answer that could say that it failed: a notification,
// where the server has not seen it; an answer in any case, since a server that
// has it already ignores another one.
const maxRepeats = 3

// isPassing reports whether a message that had this error, or this status, may
// succeed if it is sent once more.
func (p *post) isPassing(status int, err error) bool {
	var auth *authError
	var op *net.OpError
	switch {
	case p.call, err == nil, errors.As(err, &auth), errors.Is(err, errAskedBefore):
		return false
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return true
	case status == 0 && errors.As(err, &op) && op.Op == "dial":
		return true
	}
	return len(p.answers) > 0 && (status == 0 || status >= http.StatusInternalServerError)
}

// errNoRoom is why a message was not carried.
var errNoRoom = errors.New(textFull)

// errAskedBefore is why an answer is not sent in another session than the one
// in which the question was asked: there it would answer another question.
var errAskedBefore = errors.New("the session in which the server asked is lost")

// undelivered deals with the answers of a post that did not reach the server.
func (r *remote) undelivered(p *post, why error) {
	answers := r.settleAnswers(p)
	r.mu.Lock()
	status, lost := p.status, p.generation != r.session.generation
	r.mu.Unlock()
	if lost { // an id may be that of another question in the new session
		return
	}
	refused := status >= http.StatusBadRequest && status != http.StatusUnauthorized && status != http.StatusForbidden
	refused = refused || status == 0 && errors.Is(why, errNoRoom)
	for _, a := range answers {
		r.answerLost(a, refused, why)
	}
}

// answerLost deals with an answer that did not reach the server. A server that
// has refused it is told so in the answer's place: what it refuses may be what
// the answer holds, its size for one. If that does not help either, the server
// waits for ever, so the call in which it asked is over.
func (r *remote) answerLost(a givenAnswer, refused bool, why error) {
	if refused && a.kind == rewrite.KindResult {
		if r.post(errorMessage(a.id, codeInternal, "mcp-refit: the client's answer did not reach the server: "+why.Error())) {
			return
		}
	}
	q, ok := r.closeQuestion(a.id)
	if !ok || r.ctx.Err() != nil {
		return
	}
	call, ids := r.askedBy(q)
	if call == nil {
		return
	}
	r.refuse(call, fmt.Errorf("the client's answer to what the server asked on the way did not get there, so this call can't go on; it may have had its effect (%w)", why))
	for _, id := range ids {
		r.post(cancelledMessage(id, "the answer to a request of the server was lost"))
	}
}

// askedBy is the call that a question belongs to, nil if none or nobody knows:
// the one on whose stream it came, else the only one under way. ids are those
// of its requests.
func (r *remote) askedBy(q openQuestion) (call *post, ids [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call = q.on
	if call == nil {
		for _, p := range r.open {
			if p.isModern() || p.sink != nil || p == call {
				continue
			}
			if call != nil {
				return nil, nil
			}
			call = p
		}
	}
	if call == nil {
		return nil, nil
	}
	for _, id := range call.waits {
		ids = append(ids, id)
	}
	return call, ids
}

// dropQuestions tells the client that nobody waits any more for what the server
// had asked in a session that is lost.
func (r *remote) dropQuestions() {
	r.mu.Lock()
	lost := r.questions
	r.questions = nil
	for key, q := range lost {
		r.dropQuestion(key, q)
	}
	r.mu.Unlock()
	for _, q := range lost {
		if err := r.deliver(cancelledMessage(q.id, "the server has lost the session"), nil); err != nil {
			r.log().Error("a cancellation is no message", zap.Error(err))
		}
	}
}

// dropQuestion notes a question of a session that is lost, so that its answer
// reaches no other. The caller holds the lock.
func (r *remote) dropQuestion(key string, q openQuestion) {
	if r.dropped == nil || len(r.dropped) >= maxQuestions {
		r.dropped = make(map[string]openQuestion)
	}
	r.dropped[key] = q
}

// isDropped reports, once, whether a message answers what the server had asked
// in a session that is lost. A batch that does so in part is not taken apart.
func (r *remote) isDropped(p *post) bool {
	if len(p.answers) == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := false
	for _, a := range p.answers {
		key := canonicalID(a.id)
		_, dropped := r.dropped[key]
		delete(r.dropped, key)
		_, open := r.questions[key]
		lost = lost || dropped && !open
	}
	return lost
}

// cancelledMessage tells the receiver of a request that its answer is not
// waited for any more.
func cancelledMessage(id []byte, reason string) []byte {
	return []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(id) + `,"reason":"mcp-refit: ` + reason + `"}}`)
}
