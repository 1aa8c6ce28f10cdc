package rewrite

import (
	"errors"
	"fmt"
)

// MaxDepth is how many arrays and objects may stand inside each other in a
// message. A deeper one is refused: gjson and many peers recurse, and
// encoding/json itself stops at 10,000.
const MaxDepth = 1000

// What a [SyntaxError] wraps.
var (
	errSyntax = errors.New("not valid JSON")
	// ErrDepth says that a text may well be JSON, but is nested too deep.
	ErrDepth = fmt.Errorf("nested deeper than %d", MaxDepth)
)

// A SyntaxError says that a message is not JSON (RFC 8259), and from where on.
type SyntaxError struct {
	Offset int   // in bytes, of the first byte that does not fit
	Err    error // why
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%v at byte %d", e.Err, e.Offset) }
func (e *SyntaxError) Unwrap() error { return e.Err }

// A TrailingError says that a whole JSON value is followed by more text, such
// as a second message on the same line.
type TrailingError struct {
	Offset int // in bytes, of the first byte after the value
}

func (e *TrailingError) Error() string {
	return fmt.Sprintf("more text after the JSON value at byte %d", e.Offset)
}

// A scanner checks one JSON text and notes which keys of ours it holds.
//
// Every message passes through it, so its steps are functions from an offset
// to the offset behind what was read, and what does not fit is reported as the
// complement of its offset: a negative number, which costs a caller one
// comparison where an error would cost two words at every step.
type scanner struct {
	b    []byte
	seen Keys
	deep bool // the text ends at MaxDepth, and not at a byte that does not fit

	// At depth 1, the member whose value is being read.
	key     Span
	valueAt int

	// top is where the members of the envelope stand, and surplus is what else
	// could be taken for them.
	top     [memberCount]struct{ at, value Span }
	surplus []Span

	// objects has a bit for each open array or object, from the outermost on:
	// 1 is an object. It is what a recursive reader has its stack for.
	objects [MaxDepth/64 + 1]uint64
}

// fault is the error that the offset of a step stands for.
func (s *scanner) fault(end int) error {
	if s.deep {
		return &SyntaxError{^end, ErrDepth}
	}
	return &SyntaxError{^end, errSyntax}
}

// space returns the offset of the first byte at or after i that is no white space.
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// value checks the JSON value that begins at i and returns its end. If it is
// an object, its members are noted in the envelope. It does not recurse.
func (s *scanner) value(i int) int {
	b := s.b
	depth, object := 0, false // what is open: how much, and whether the innermost is an object
value:
	if i >= len(b) {
		return ^i
	}
	if b[i] == '"' { // by far the most
		if i = plain(b, i+1); i < len(b) && b[i] == '"' {
			i++
			goto ended
		}
		if i, _ = str(b, i); i < 0 {
			return i
		}
		goto ended
	}
	switch b[i] {
	case '{', '[':
		if depth >= MaxDepth {
			s.deep = true
			return ^i
		}
		object = b[i] == '{'
		s.open(depth, object)
		depth++
		if i = space(b, i+1); i >= len(b) {
			return ^i
		}
		if object && b[i] != '}' {
			goto member
		}
		if !object && b[i] != ']' {
			goto value
		}
		goto closed
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		for i++; i < len(b) && b[i]-'0' <= 9; i++ {
		}
		if i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
			i = fraction(b, i)
		}
	case '-', '0':
		i = number(b, i)
	case ' ', '\n', '\t', '\r':
		i = space(b, i+1)
		goto value
	default:
		i = literal(b, i)
	}
	if i < 0 {
		return i
	}
ended:
	if depth <= 1 {
		if depth == 0 {
			return i
		}
		if object {
			s.member(Span{s.valueAt, i})
		}
	}
next:
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case ',':
		i++
		if object {
			goto member
		}
		goto value
	case '}':
		if object {
			goto closed
		}
	case ']':
		if !object {
			goto closed
		}
	case ' ', '\n', '\t', '\r':
		i = space(b, i+1)
		goto next
	}
	return ^i
closed:
	i++
	depth--
	object = depth > 0 && s.isObject(depth-1)
	goto ended
member:
	if i >= len(b) || b[i] != '"' {
		if i = space(b, i); i >= len(b) || b[i] != '"' {
			return ^i
		}
	}
	keyAt := i
	escaped := false
	if i = plain(b, i+1); i < len(b) && b[i] == '"' {
		i++
	} else if i, escaped = str(b, i); i < 0 {
		return i
	}
	keyEnd := i
	if mayBeOurs[b[keyAt+1]] && keyEnd-keyAt-2 >= int(leastOurs[b[keyAt+2]]) {
		s.seen |= keyOf(b[keyAt+1:keyEnd-1], escaped)
	}
	if i >= len(b) || b[i] != ':' {
		if i = space(b, i); i >= len(b) || b[i] != ':' {
			return ^i
		}
	}
	i++
	if depth == 1 {
		i = space(b, i)
		s.key, s.valueAt = Span{keyAt, keyEnd}, i
	}
	goto value
}

func (s *scanner) open(depth int, object bool) {
	word, bit := depth>>6, uint64(1)<<(depth&63)
	if object {
		s.objects[word] |= bit
	} else {
		s.objects[word] &^= bit
	}
}

func (s *scanner) isObject(depth int) bool { return s.objects[depth>>6]>>(depth&63)&1 == 1 }

// number checks the number that begins at i and returns its end.
func number(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return ^i
	case b[i] == '0':
		i++
	default:
		if i = digits(b, i); i < 0 {
			return i
		}
	}
	return fraction(b, i)
}

// fraction checks what may follow the digits of a whole number: a fraction and
// an exponent. It returns the number's end.
func fraction(b []byte, i int) int {
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return i
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digits(b, i)
	}
	return i
}

// digits returns the end of the digits that begin at i, of which there must be one.
func digits(b []byte, i int) int {
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return ^i
	}
	return i
}

// literal checks that one of true, false and null stands at i and returns its end.
func literal(b []byte, i int) int {
	rest := b[i:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "true", len(rest) >= 4 && string(rest[:4]) == "null":
		return i + 4
	case len(rest) >= 5 && string(rest[:5]) == "false":
		return i + 5
	}
	return ^i
}
