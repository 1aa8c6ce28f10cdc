package rewrite

import "errors"

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
	// to be removed before the message is passed on.
	Surplus []Span
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
	i := s.space(0)
	if i >= len(raw) {
		return Envelope{}, &SyntaxError{i, errSyntax}
	}
	var env Envelope
	var end int
	var err error
	switch raw[i] {
	case '{':
		end, err = s.object(i, &env)
	case '[':
		end, err = s.value(i, 0)
		env.Kind = KindBatch
	default:
		end, err = s.value(i, 0)
	}
	if err != nil {
		return Envelope{}, err
	}
	env.Seen = s.seen
	if i = s.space(end); i < len(raw) {
		return env, &TrailingError{i}
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
)

var memberNames = [memberCount]string{"jsonrpc", "id", "method", "params", "result", "error"}

// object checks the object at i and fills in its envelope.
func (s *scanner) object(i int, env *Envelope) (int, error) {
	var at [memberCount]struct{ member, value Span }
	b := s.b
	i = s.space(i + 1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		keyAt := i
		valueAt, err := s.key(i)
		if err != nil {
			return 0, err
		}
		end, err := s.value(valueAt, 1)
		if err != nil {
			return 0, err
		}
		member, value := Span{keyAt, end}, Span{valueAt, end}
		if m, exact := memberOf(b[keyAt:valueAt]); exact {
			if !at[m].member.Empty() {
				env.Surplus = append(env.Surplus, at[m].member)
			}
			at[m].member, at[m].value = member, value
		} else if m >= 0 {
			env.Surplus = append(env.Surplus, member)
		}
		i = s.space(end)
		if i >= len(b) {
			return 0, &SyntaxError{i, errSyntax}
		}
		if b[i] == '}' {
			break
		}
		if b[i] != ',' {
			return 0, &SyntaxError{i, errSyntax}
		}
		i = s.space(i + 1)
	}
	env.ID, env.Params = at[memberID].value, at[memberParams].value
	env.Result, env.Error = at[memberResult].value, at[memberError].value
	s.kind(at[memberVersion].value, at[memberMethod].value, env)
	return i + 1, nil
}

// memberOf says which member of the envelope a key (with all up to its value)
// names, -1 if none, and whether it is spelled as it should be.
func memberOf(text []byte) (m int, exact bool) {
	n := 1
	for n < len(text) && text[n] != '"' {
		if text[n] == '\\' {
			n++
		}
		n++
	}
	quoted := text[:n+1]
	for m, name := range memberNames {
		if string(quoted[1:n]) == name {
			return m, true
		}
	}
	if n > 2+6*len("jsonrpc") {
		return -1, false
	}
	key := decodeKey(quoted, true)
	for m, name := range memberNames {
		if Fold(key) == name {
			return m, key == name
		}
	}
	return -1, false
}

// kind decides which form the message has, by the members that it has.
func (s *scanner) kind(version, method Span, env *Envelope) {
	b := s.b
	if v, ok := String(b, version); !ok || v != "2.0" {
		return
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
		}
	}
	if !method.Empty() {
		m, ok := String(b, method)
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
