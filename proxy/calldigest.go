package proxy

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// CallDigest says what a call is: SHA-256 of its method, what it is for (a
// tool's or prompt's name, a resource's URI) and its arguments as canonical
// JSON. The arguments are text that rewrite.Scan has accepted, which also bounds
// their depth; none and null are the same as {}.
//
// Canonical means: members in the order of their keys' bytes, of duplicates the
// last; no white space; strings decoded (so that escapes don't count, and a lone
// surrogate is U+FFFD); numbers by their exact decimal value (1.0, 1 and 10e-1
// are equal, and no digit is lost). It tells apart what RFC 8785 does, and
// besides the numbers that are equal only once cut to double precision.
func CallDigest(method, target string, arguments []byte) [32]byte {
	c := canonical{raw: bytes.Trim(arguments, " \t\r\n"), out: make([]byte, 0, 512)}
	if len(c.raw) == 0 || string(c.raw) == "null" {
		c.raw = []byte("{}")
	}
	c.text([]byte(method))
	c.text([]byte(target))
	c.value()
	return sha256.Sum256(c.out)
}

// foldSize is the length in bytes from which on the canonical text of a value
// is replaced by its own SHA-256. So no text is sorted or copied once for each
// level that it is nested in, and a long string isn't copied at all.
const foldSize = 1 << 10

// canonical writes the canonical text of a JSON value. No text is the
// beginning of another, so that a sequence of them can be read in one way.
type canonical struct {
	raw []byte
	at  int // where in raw
	out []byte
}

// next skips white space and returns the byte that follows, 0 at the end.
func (c *canonical) next() byte {
	for ; c.at < len(c.raw); c.at++ {
		switch b := c.raw[c.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// skip passes the byte b, should it come next.
func (c *canonical) skip(b byte) {
	if c.next() == b && c.at < len(c.raw) {
		c.at++
	}
}

func (c *canonical) value() {
	start := len(c.out)
	switch c.next() {
	case '{':
		c.object()
	case '[':
		c.array()
	case '"':
		c.text(c.string())
	default:
		c.scalar()
	}
	if len(c.out)-start > foldSize {
		sum := sha256.Sum256(c.out[start:])
		c.out = append(append(c.out[:start], '#'), sum[:]...)
	}
}

func (c *canonical) array() {
	start := len(c.out)
	c.out = append(c.out, '[')
	var long hash.Hash // of what was written, once that is longer than foldSize
	for c.skip('['); c.next() != ']' && c.at < len(c.raw); c.skip(',') {
		c.value()
		if len(c.out)-start > foldSize {
			if long == nil {
				long = sha256.New()
			}
			long.Write(c.out[start:])
			c.out = c.out[:start]
		}
	}
	c.skip(']')
	c.out = append(c.out, ']')
	if long != nil {
		long.Write(c.out[start:])
		c.out = long.Sum(append(c.out[:start], '#'))
	}
}

// object writes the members, and then writes them in order if they are not.
func (c *canonical) object() {
	type member struct {
		key        string
		start, end int // in out
	}
	c.out = append(c.out, '{')
	start := len(c.out)
	var members []member
	ordered := true
	for c.skip('{'); c.next() == '"'; c.skip(',') {
		m := member{key: string(c.string()), start: len(c.out)}
		c.skip(':')
		c.text([]byte(m.key))
		c.value()
		m.end = len(c.out)
		ordered = ordered && (len(members) == 0 || members[len(members)-1].key < m.key)
		members = append(members, m)
	}
	c.skip('}')
	if !ordered {
		slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
		sorted := make([]byte, 0, len(c.out)-start)
		for i, m := range members {
			if i+1 == len(members) || members[i+1].key != m.key {
				sorted = append(sorted, c.out[m.start:m.end]...)
			}
		}
		c.out = append(c.out[:start], sorted...)
	}
	c.out = append(c.out, '}')
}

// text writes a decoded string: its length, so that its end is known, and its
// bytes, or if it is long, what value would make of them.
func (c *canonical) text(b []byte) {
	start := len(c.out)
	c.out = append(strconv.AppendInt(append(c.out, '"'), int64(len(b)), 10), ':')
	if len(c.out)-start+len(b) <= foldSize {
		c.out = append(c.out, b...)
		return
	}
	h := sha256.New()
	h.Write(c.out[start:])
	h.Write(b)
	c.out = h.Sum(append(c.out[:start], '#'))
}

// string reads the string at c.at and decodes it.
func (c *canonical) string() []byte {
	start := c.at
	c.at++
	if n := bytes.IndexByte(c.raw[c.at:], '"'); n >= 0 && bytes.IndexByte(c.raw[c.at:c.at+n], '\\') < 0 {
		c.at += n + 1
		return c.raw[start+1 : c.at-1]
	}
	for c.at < len(c.raw) && c.raw[c.at] != '"' {
		if c.raw[c.at] == '\\' {
			c.at++
		}
		c.at++
	}
	c.at = min(c.at+1, len(c.raw))
	if c.at-start < len(`""`) {
		return nil // no JSON
	}
	s, _ := rewrite.String(c.raw, rewrite.Span{Start: start, End: c.at})
	return []byte(s)
}

// scalar reads what is no string: a number, true, false or null.
func (c *canonical) scalar() {
	start := c.at
	for c.at < len(c.raw) && !strings.ContainsRune(",]} \t\r\n", rune(c.raw[c.at])) {
		c.at++
	}
	token := c.raw[start:c.at]
	if len(token) == 0 && c.at < len(c.raw) {
		c.at++ // no JSON; go on all the same
	}
	if len(token) > 0 && (token[0] == '-' || token[0] >= '0' && token[0] <= '9') {
		c.out = append(appendCanonicalNumber(c.out, token), ',')
		return
	}
	c.out = append(append(c.out, token...), ',')
}

// appendCanonicalNumber writes a number as its significant digits and the
// power of ten that they are multiplied with.
func appendCanonicalNumber(b, text []byte) []byte {
	mantissa, exponent := text, int64(0)
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		n, err := strconv.ParseInt(string(text[i+1:]), 10, 64)
		if err != nil || n > 1<<40 || n < -1<<40 {
			return append(b, text...) // beyond every use; equal only to itself
		}
		mantissa, exponent = text[:i], n
	}
	negative := mantissa[0] == '-'
	whole, fraction, _ := bytes.Cut(bytes.TrimPrefix(mantissa, []byte("-")), []byte("."))
	exponent -= int64(len(fraction))
	digits := bytes.TrimLeft(slices.Concat(whole, fraction), "0")
	trimmed := bytes.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(trimmed))
	if len(trimmed) == 0 {
		return append(b, '0')
	}
	if negative {
		b = append(b, '-')
	}
	b = append(append(b, trimmed...), 'e')
	return strconv.AppendInt(b, exponent, 10)
}
