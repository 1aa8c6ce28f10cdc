package proxy

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// CallDigest says what a call is: SHA-256 of its method, what it is for (a
// tool's or prompt's name, a resource's URI) and its arguments as canonical
// JSON. The arguments are text that rewrite.Scan has accepted, or empty, which
// is the same as {}.
//
// Canonical means: members in the order of their keys' bytes, of duplicates the
// last; no white space; strings decoded and quoted anew (so that escapes don't
// count, and a lone surrogate is U+FFFD); numbers by their exact decimal value
// (1.0, 1 and 10e-1 are equal, and no digit is lost). It is RFC 8785 save for
// the numbers, which that would cut to double precision, and the order, which
// it takes from UTF-16.
func CallDigest(method, target string, arguments []byte) [32]byte {
	b := make([]byte, 0, len(method)+len(target)+len(arguments)+32)
	b = strconv.AppendInt(b, int64(len(method)), 10)
	b = append(append(b, ' '), method...)
	b = strconv.AppendInt(b, int64(len(target)), 10)
	b = append(append(b, ' '), target...)
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = []byte("{}")
	}
	return sha256.Sum256(appendCanonical(b, arguments, rewrite.Span{Start: 0, End: len(arguments)}))
}

func appendCanonical(b, raw []byte, at rewrite.Span) []byte {
	switch raw[at.Start] {
	case '{':
		return appendCanonicalObject(b, raw, at)
	case '[':
		b = append(b, '[')
		for e := range rewrite.Elements(raw, at) {
			b = append(appendCanonical(b, raw, e), ',')
		}
		return append(b, ']')
	case '"':
		s, _ := rewrite.String(raw, at)
		return append(b, rewrite.Quote(s)...)
	case 't', 'f', 'n':
		return append(b, at.Of(raw)...)
	}
	return appendCanonicalNumber(b, at.Of(raw))
}

func appendCanonicalObject(b, raw []byte, at rewrite.Span) []byte {
	var members []rewrite.Member
	for m := range rewrite.Members(raw, at) {
		members = append(members, m)
	}
	slices.SortStableFunc(members, func(a, b rewrite.Member) int { return strings.Compare(a.Key, b.Key) })
	b = append(b, '{')
	for i, m := range members {
		if i+1 < len(members) && members[i+1].Key == m.Key {
			continue
		}
		b = append(append(b, rewrite.Quote(m.Key)...), ':')
		b = append(appendCanonical(b, raw, m.Value), ',')
	}
	return append(b, '}')
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
