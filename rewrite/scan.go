package rewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth is how many arrays and objects may stand inside each other in a
// message. A deeper one is refused: gjson and many peers recurse, and
// encoding/json itself stops at 10,000.
const MaxDepth = 1000

// Errors of Scan. ErrTrailing carries the offset at which the first value
// ended, see [TrailingError].
var (
	errSyntax = errors.New("not valid JSON")
	errDepth  = fmt.Errorf("nested deeper than %d", MaxDepth)
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
type scanner struct {
	b    []byte
	seen Keys
}

// space returns the offset of the first byte at or after i that is no white space.
func (s *scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\n' || s.b[i] == '\t' || s.b[i] == '\r') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str checks the rest of a string, i being just behind its opening quote, and
// returns the offset just behind the closing one. Eight bytes are looked at in
// one step, since most bytes of most messages stand in strings.
func (s *scanner) str(i int) (end int, escaped bool, err error) {
	b := s.b
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			q, e := w^(ones*'"'), w^(ones*'\\')
			// The lowest bit set marks the first quote, backslash or control character.
			m := ((q-ones)&^q | (e-ones)&^e | (w-ones*0x20)&^w) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				goto special
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20 {
			i++
		}
		if i >= len(b) {
			return 0, false, &SyntaxError{i, errSyntax}
		}
	special:
		switch b[i] {
		case '"':
			return i + 1, escaped, nil
		case '\\':
			escaped = true
			n := escapeLen(b[i:])
			if n == 0 {
				return 0, false, &SyntaxError{i, errSyntax}
			}
			i += n
		default:
			return 0, false, &SyntaxError{i, errSyntax}
		}
	}
}

// escapeLen is the length of the escape sequence that b begins with, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number checks a number that begins at i and returns its end.
func (s *scanner) number(i int) (int, error) {
	b := s.b
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return 0, &SyntaxError{i, errSyntax}
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return 0, &SyntaxError{i, errSyntax}
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return 0, &SyntaxError{i, errSyntax}
		}
	}
	return i, nil
}

// literal checks one of true, false and null.
func (s *scanner) literal(i int) (int, error) {
	for _, l := range [...]string{"true", "false", "null"} {
		if len(s.b)-i >= len(l) && string(s.b[i:i+len(l)]) == l {
			return i + len(l), nil
		}
	}
	return 0, &SyntaxError{i, errSyntax}
}

// key checks a member's key and its colon, i being at the opening quote, and
// returns the offset of the member's value.
func (s *scanner) key(i int) (int, error) {
	if i >= len(s.b) || s.b[i] != '"' {
		return 0, &SyntaxError{i, errSyntax}
	}
	end, escaped, err := s.str(i + 1)
	if err != nil {
		return 0, err
	}
	s.seen |= keyOf(s.b[i+1:end-1], escaped)
	i = s.space(end)
	if i >= len(s.b) || s.b[i] != ':' {
		return 0, &SyntaxError{i, errSyntax}
	}
	return s.space(i + 1), nil
}

// value checks the JSON value that begins at i, at the given depth, and
// returns its end. It does not recurse: which brackets are open is a bit each.
func (s *scanner) value(i, depth int) (end int, err error) {
	var inObject [(MaxDepth + 63) / 64]uint64
	b, base := s.b, depth
value:
	if i >= len(b) {
		return 0, &SyntaxError{i, errSyntax}
	}
	switch c := b[i]; {
	case c == '"':
		i, _, err = s.str(i + 1)
	case c == '{' || c == '[':
		if depth >= MaxDepth {
			return 0, &SyntaxError{i, errDepth}
		}
		word, bit := depth>>6, uint64(1)<<(depth&63)
		depth++
		i = s.space(i + 1)
		if c == '[' {
			inObject[word] &^= bit
			if i < len(b) && b[i] == ']' {
				goto closed
			}
			goto value
		}
		inObject[word] |= bit
		if i < len(b) && b[i] == '}' {
			goto closed
		}
		goto member
	case c == '-' || c >= '0' && c <= '9':
		i, err = s.number(i)
	default:
		i, err = s.literal(i)
	}
	if err != nil {
		return 0, err
	}
next:
	if depth == base {
		return i, nil
	}
	i = s.space(i)
	if i >= len(b) {
		return 0, &SyntaxError{i, errSyntax}
	}
	if open := depth - 1; inObject[open>>6]>>(open&63)&1 == 1 {
		switch b[i] {
		case ',':
			i = s.space(i + 1)
			goto member
		case '}':
			goto closed
		}
	} else {
		switch b[i] {
		case ',':
			i = s.space(i + 1)
			goto value
		case ']':
			goto closed
		}
	}
	return 0, &SyntaxError{i, errSyntax}
closed:
	i++
	depth--
	goto next
member:
	if i, err = s.key(i); err != nil {
		return 0, err
	}
	goto value
}
