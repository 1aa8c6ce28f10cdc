package rewrite

import (
	"bytes"
	"errors"
)

// Kind says which of the JSON-RPC 2.0 forms a message has.
type Kind uint8

// The kinds of message. KindInvalid is JSON that is no message.
const (
	KindInvalid Kind = iota
	KindRequest
	KindNotification
	KindResult // a response with a result
	KindError  // a response with an error
	KindBatch  // an array, of revision 2025-03-26
)

// An Envelope is the outer shape of one message: where its parts stand in the
// bytes that it was read from.
type Envelope struct {
	Kind   Kind
	ID     Span   // a string or a number as it came; empty where there is none or null
	Method string // decoded; of requests and notifications
	Params Span
	Result Span
	Error  Span
	Seen   Keys // which of our keys stand somewhere in the message

	// Surplus lists members of the envelope that another reader may take for
	// the ones above: earlier duplicates, and names in another case. They are
	// to be removed before the message is passed on, or, if they are more than
	// [MaxSurplus], with the whole message.
	Surplus []Span
}

// MaxSurplus bounds how many surplus members are listed; one more says that
// there are more. Each costs us some 100 bytes, and as little as seven bytes of
// the message.
const MaxSurplus = 1024

// more adds one to the surplus members, within the bound.
func more(surplus []Span, at Span) []Span {
	if len(surplus) > MaxSurplus {
		return surplus
	}
	return append(surplus, at)
}

// ErrNotMessage says that a text is JSON but no JSON-RPC 2.0 message.
var ErrNotMessage = errors.New("JSON, but not a JSON-RPC 2.0 message")

// Scan reads a message's envelope and checks the whole text in the same pass:
// it must be one JSON value (RFC 8259), nested no deeper than [MaxDepth].
// Errors are a [*SyntaxError], a [*TrailingError] (then the envelope is that of
// the value before the rest), or [ErrNotMessage]. The elements of a batch are
// to be scanned each on its own.
func Scan(raw []byte) (Envelope, error) {
	s := scanner{b: raw}
	start := space(raw, 0)
	end := s.value(start)
	if end < 0 {
		return Envelope{}, s.fault(end)
	}
	env := s.envelope(raw[start])
	if rest := space(raw, end); rest < len(raw) {
		return env, &TrailingError{rest}
	}
	if env.Kind == KindInvalid {
		return env, ErrNotMessage
	}
	return env, nil
}

// The members of an envelope.
const (
	memberVersion = iota
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
	memberCount
	memberNone = -1 // another
)

var memberNames = [memberCount]string{"jsonrpc", "id", "method", "params", "result", "error"}

// member notes a member of the outermost object.
func (s *scanner) member(value Span) {
	at := Span{s.key.Start, value.End}
	m, exact := memberOf(s.key.Of(s.b))
	switch {
	case m == memberNone:
	case !exact:
		s.surplus = more(s.surplus, at)
	default:
		if earlier := s.top[m].at; !earlier.Empty() {
			s.surplus = more(s.surplus, earlier)
		}
		s.top[m].at, s.top[m].value = at, value
	}
}

// envelope is that of a text that was checked, which begins with the given byte.
func (s *scanner) envelope(first byte) Envelope {
	env := Envelope{
		ID: s.top[memberID].value, Params: s.top[memberParams].value,
		Result: s.top[memberResult].value, Error: s.top[memberError].value,
		Seen: s.seen, Surplus: s.surplus,
	}
	switch first {
	case '{':
		s.kind(&env)
	case '[':
		env.Kind = KindBatch
	}
	return env
}

// memberOf says which member of the envelope a key in its quotes names, and
// whether it is spelled as it should be.
func memberOf(quoted []byte) (m int, exact bool) {
	name := quoted[1 : len(quoted)-1]
	switch string(name) {
	case "jsonrpc":
		return memberVersion, true
	case "id":
		return memberID, true
	case "method":
		return memberMethod, true
	case "params":
		return memberParams, true
	case "result":
		return memberResult, true
	case "error":
		return memberError, true
	}
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(decodeKey(quoted, true))
	}
	for m, folded := range memberNames {
		if foldEqual(name, folded) {
			return m, string(name) == folded // its escapes are read by now
		}
	}
	return memberNone, false
}

// kind decides which form the message has, by the members that it has.
func (s *scanner) kind(env *Envelope) {
	b, version, method := s.b, s.top[memberVersion].value, s.top[memberMethod].value
	if string(version.Of(b)) != `"2.0"` {
		if v, ok := String(b, version); !ok || v != "2.0" {
			return
		}
	}
	null := func(at Span) bool { return !at.Empty() && b[at.Start] == 'n' }
	if null(env.ID) {
		env.ID = Span{}
	}
	if !env.ID.Empty() && b[env.ID.Start] != '"' && b[env.ID.Start] != '-' && (b[env.ID.Start] < '0' || b[env.ID.Start] > '9') {
		return
	}
	hasResult, hasError := !env.Result.Empty(), !env.Error.Empty()
	if hasResult && hasError { // some servers write both, one of them null
		switch {
		case null(env.Error):
			hasError, env.Error = false, Span{}
		case null(env.Result):
			hasResult, env.Result = false, Span{}
		case method.Empty(): // a failure, to every reader from now on, so that nobody waits
			hasResult, env.Result = false, Span{}
			env.Surplus = more(env.Surplus, s.top[memberResult].at)
		}
	}
	if !method.Empty() {
		m, ok := methodAt(b, method)
		if !ok || hasResult || hasError {
			return
		}
		env.Method, env.Kind = m, KindNotification
		if !env.ID.Empty() {
			env.Kind = KindRequest
		}
		return
	}
	switch {
	case hasResult == hasError:
	case hasError:
		env.Kind = KindError
	case !env.ID.Empty():
		env.Kind = KindResult
	}
}
