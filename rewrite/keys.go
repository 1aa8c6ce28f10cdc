package rewrite

import (
	"strings"
	"unicode/utf8"
)

// Keys is a set of the object keys that a message holds, at whatever depth,
// of those that can bring work for us. A message without any is passed on
// without a closer look.
type Keys uint16

// The keys that Scan notes. KeyOdd stands for a key written with an escape
// that may be any of the others, so it asks for a closer look too.
const (
	KeyIcons Keys = 1 << iota
	KeyWebsiteURL
	KeyInputRequests
	KeyInputResponses
	KeyRequestState
	KeyRequestedSchema
	KeyProtocolVersion // io.modelcontextprotocol/protocolVersion, in a modern request's _meta
	KeyOdd
)

// noted lists the keys of ours, folded, by the bit that stands for each.
var noted = [...]struct {
	bit    Keys
	folded string
}{
	{KeyIcons, "icons"},
	{KeyWebsiteURL, "websiteurl"},
	{KeyInputRequests, "inputrequests"},
	{KeyInputResponses, "inputresponses"},
	{KeyRequestState, "requeststate"},
	{KeyRequestedSchema, "requestedschema"},
	{KeyProtocolVersion, "io.modelcontextprotocol/protocolversion"},
}

// mayBeOurs marks the bytes that one of our keys may begin with, and leastOurs
// is how long such a key is at least, in bytes, by its second byte. So most keys
// need no closer look.
var (
	mayBeOurs = [256]bool{'i': true, 'I': true, 'r': true, 'R': true, 'w': true, 'W': true, '\\': true}
	leastOurs = func() (least [256]uint8) {
		for i := range least {
			least[i] = 255
		}
		for _, n := range noted {
			for _, second := range [...]byte{n.folded[1], n.folded[1] - 'a' + 'A'} {
				least[second] = min(least[second], uint8(len(n.folded)))
			}
		}
		least['\\'], least['u'] = 0, 0 // an escape
		return least
	}()
)

// keyOf says which of our keys the raw text of a key is, in any case.
func keyOf(raw []byte, escaped bool) Keys {
	if escaped {
		return KeyOdd
	}
	if len(raw) < len("icons") {
		return 0
	}
	second := raw[1] | 0x20
	for i := range noted {
		if n := noted[i].folded; n[1] == second && len(raw) >= len(n) && foldEqual(raw, n) {
			return noted[i].bit
		}
	}
	return 0
}

// Fold maps a key to the form in which encoding/json compares keys: without
// regard to case, U+017F (long s) as s and U+212A (Kelvin sign) as k. Peers
// that decode that way read "Icons" as "icons", so at the places that we judge
// two keys of the same fold are the same member written twice.
func Fold(key string) string {
	for i := 0; i < len(key); i++ {
		if c := key[i]; c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
			return strings.Map(foldRune, key)
		}
	}
	return key
}

func foldRune(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r == '\u017f':
		return 's'
	case r == '\u212a':
		return 'k'
	}
	return r
}

// foldEqual reports whether the raw text of a key folds to the given one.
func foldEqual(raw []byte, folded string) bool {
	i := 0
	for i < len(raw) && i < len(folded) && (raw[i] == folded[i] || raw[i] >= 'A' && raw[i] <= 'Z' && raw[i]|0x20 == folded[i]) {
		i++
	}
	for raw = raw[i:]; len(raw) > 0; {
		r, n := rune(raw[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(raw)
		}
		if i >= len(folded) || foldRune(r) != rune(folded[i]) {
			return false
		}
		raw, i = raw[n:], i+1
	}
	return i == len(folded)
}
