package rewrite

import (
	"encoding/binary"
	"math/bits"
)

// The same byte in all eight places of a word.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// ends marks, by its lowest set bit, the first of the eight bytes of w that
// ends a run of plain text in a string: a quote, a backslash or a control
// character. (In the bytes behind that one it may be wrong.)
//
// With bit 1 turned over, a quote (0x22) is 0x20 and the control characters
// stay among themselves, so that one comparison, less than 0x21, finds both.
func ends(w uint64) uint64 {
	quote, backslash := w^ones*0x02, w^ones*'\\'
	return ((quote - ones*0x21) | (backslash - ones)) &^ w & highs
}

// plain returns the offset at or after i at which a run of plain text in a
// string may end. It looks at eight bytes in one step, since most bytes of most
// messages stand in strings, and is small enough to be inlined, since most
// strings end within two steps. Of the last bytes of b it says nothing: what
// it returns is a quote, or else work for [str].
func plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := ends(binary.LittleEndian.Uint64(b[i : i+8 : i+8])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	return i
}

// str checks the rest of a string, i being somewhere in it (but not inside of
// an escape), and returns the offset just behind its closing quote and whether
// there is an escape on the way.
func str(b []byte, i int) (end int, escaped bool) {
	for i = plain(b, i); i < len(b); {
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			n := escapeLen(b[i:])
			if n == 0 {
				return ^i, false
			}
			i = plain(b, i+n)
		case c < 0x20:
			return ^i, false
		default:
			i++ // one of the last eight bytes
		}
	}
	return ^i, false
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
