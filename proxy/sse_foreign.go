package proxy

import "bytes"

// A foreignEnd cuts a line that is not data where a reader that is not a
// browser takes it to end, so that what stands behind is seen by nobody: to that
// reader it would be lines of their own, data among them that we have not
// judged. Python's str.splitlines is such a reader, by which httpx-sse before
// 0.4.3 parts a stream. In data such a character is text, and stays: there it
// stands in a JSON string, where no piece of the string is a message.
type foreignEnd struct {
	found bool
	tail  []byte // the beginning of a character that may be one
}

// foreignEnds are the characters at which str.splitlines ends a line, besides
// those of a browser.
var foreignEnds = []string{"\v", "\f", "\x1c", "\x1d", "\x1e", "\u0085", "\u2028", "\u2029"}

// before returns what of the next piece of the line stands in front of such a
// character.
func (f *foreignEnd) before(b []byte) []byte {
	if f.found {
		return nil
	}
	if len(f.tail) > 0 {
		b = append(f.tail, b...)
		f.tail = nil
	}
	for i, c := range b {
		if c != 0xe2 && c != 0xc2 && (c < '\v' || c > 0x1e) {
			continue // by far the most
		}
		for _, end := range foreignEnds {
			switch {
			case bytes.HasPrefix(b[i:], []byte(end)):
				f.found = true
				return b[:i]
			case len(b)-i < len(end) && isPrefix(b[i:], end):
				f.tail = bytes.Clone(b[i:])
				return b[:i]
			}
		}
	}
	return b
}

// rest returns what is left of the line at its end.
func (f *foreignEnd) rest() []byte {
	tail := f.tail
	f.tail = nil
	return tail
}
