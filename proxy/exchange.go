package proxy

import (
	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// Direction is the way that a message goes.
type Direction uint8

// The two directions.
const (
	ToServer Direction = iota // from the client to the server
	ToClient                  // from the server to the client
)

// String returns "to server" or "to client".
func (d Direction) String() string {
	if d == ToClient {
		return "to client"
	}
	return "to server"
}

func (d Direction) back() Direction { return d ^ 1 }

// A message is one JSON-RPC message on its way through handle.
type message struct {
	session *session
	to      Direction
	raw     []byte
	env     rewrite.Envelope
	policy  *policy.Policy
	batch   bool  // it is an element of a batch
	call    *call // what a response answers; nil if we don't know it, or for a request
	own     *call // what a request itself is

	edits      rewrite.Edits
	share      *iconShare // with the other messages of its batch, or alone
	alone      iconShare
	after      func()   // see outcome
	incomplete bool     // it goes out without icons that may come later
	enforced   bool     // its edits are made even where the policy only observes
	out        *outcome // set by a step that settles what becomes of the message
}

// An outcome is what becomes of a message.
type outcome struct {
	forward []byte // goes on, in the direction of the message; nil: nothing does
	reply   []byte // goes back to whoever sent the message; nil: nothing does

	// after, if not nil, is to be called once the message has gone on.
	after func()

	// answered are the server's requests that a message to it answers. Where
	// the session settles, they are still open.
	answered []*call
}

// method is the method of a request or notification, or of the request that a
// response answers; empty if that is not known.
func (m *message) method() string {
	if m.call != nil {
		return m.call.method
	}
	return m.env.Method
}

// id is the message's id as it was written, or for a response, as the request
// was that it answers.
func (m *message) id() []byte {
	if m.call != nil {
		return m.call.id
	}
	return m.env.ID.Of(m.raw)
}

// drop lets nothing of the message pass.
func (m *message) drop() { m.out = &outcome{} }

// refuse answers a request with an error, to whoever sent it, and lets nothing pass.
func (m *message) refuse(code int, text string) {
	m.out = &outcome{reply: errorMessage(m.id(), code, text)}
}

// replace lets another message of ours pass in the place of this one.
func (m *message) replace(raw []byte) { m.out = &outcome{forward: raw} }

// tooMany refuses a message that has more of something than can be looked at.
func (m *message) tooMany(path, rule, what string) {
	text := "mcp-refit: this message was not passed on: it has " + what
	m.decide(Decision{Path: path, Rule: rule, Verdict: VerdictRefused, Reason: what})
	switch m.env.Kind {
	case rewrite.KindRequest:
		m.refuse(codeInvalidRequest, text)
	case rewrite.KindResult, rewrite.KindError:
		m.replace(errorMessage(m.id(), codeInternal, text))
	default:
		m.drop()
	}
}

// envelope leaves one reading of what the message is.
func (m *message) envelope() { m.surplus(m.env.Surplus) }

// surplus takes out members that another reader could take for those that we
// judge, of which there may be a few.
func (m *message) surplus(spans []rewrite.Span) {
	if len(spans) > rewrite.MaxSurplus {
		m.tooMany("", "surplus", "more members that are written twice or in another case than are looked at")
		return
	}
	for _, s := range spans {
		m.edits.Remove(s)
	}
}
