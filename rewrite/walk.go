package rewrite

import (
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// A Span is a half-open range of byte offsets in a message.
type Span struct{ Start, End int }

// Of returns the bytes of raw that the span covers.
func (s Span) Of(raw []byte) []byte { return raw[s.Start:s.End] }

// Empty reports whether the span covers nothing, which stands for "not there".
func (s Span) Empty() bool { return s.End <= s.Start }

// A Member is one member of an object in a message.
type Member struct {
	Key   string // decoded
	At    Span   // the whole member, from the key's opening quote to the value's end
	Value Span
}

// Members walks the members of the object that stands at s, in order,
// duplicates included. It yields nothing if there is no object at s. The text
// must have been checked by [Scan] (or be a part of one that was).
func Members(raw []byte, s Span) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		walkMembers(raw, s, func(key, value Span, escaped bool) bool {
			return yield(Member{decodeKey(key.Of(raw), escaped), Span{key.Start, value.End}, value})
		})
	}
}

// walkMembers is [Members] with the keys as they stand, in their quotes.
func walkMembers(raw []byte, s Span, yield func(key, value Span, escaped bool) bool) {
	if s.Empty() || raw[s.Start] != '{' {
		return
	}
	b := raw[:s.End]
	for i := space(b, s.Start+1); i < len(b) && b[i] == '"'; {
		keyEnd, escaped := str(b, i+1)
		if keyEnd < 0 {
			return
		}
		at := space(b, space(b, keyEnd)+1)
		if at >= len(b) {
			return
		}
		end := skip(b, at)
		if !yield(Span{i, keyEnd}, Span{at, end}, escaped) {
			return
		}
		if i = space(b, end); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
}

// Folded walks the values of the members of the object at s whose name is the
// given one or folds to it, which is to be written as [Fold] would write it.
// The text must have been checked, as for [Members].
func Folded(raw []byte, s Span, folded string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		walkMembers(raw, s, func(key, value Span, escaped bool) bool {
			return !keyFolds(key.Of(raw), escaped, folded) || yield(value)
		})
	}
}

// keyFolds reports whether a key in its quotes folds to the given name. It
// takes no memory but for keys with escapes.
func keyFolds(quoted []byte, escaped bool, folded string) bool {
	if escaped {
		return Fold(decodeKey(quoted, true)) == folded
	}
	if c := quoted[1]; c != folded[0] && c|0x20 != folded[0] && c < utf8.RuneSelf {
		return false // as most keys
	}
	return len(quoted)-2 >= len(folded) && foldEqual(quoted[1:len(quoted)-1], folded)
}

// keyIs reports whether a key in its quotes reads as name.
func keyIs(quoted []byte, escaped bool, name string) bool {
	if escaped {
		return decodeKey(quoted, true) == name
	}
	return string(quoted[1:len(quoted)-1]) == name
}

// Elements walks the elements of the array that stands at s, in order. It
// yields nothing if there is no array at s. The text must have been checked,
// as for [Members].
func Elements(raw []byte, s Span) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		if s.Empty() || raw[s.Start] != '[' {
			return
		}
		b := raw[:s.End]
		for i := space(b, s.Start+1); i < len(b) && b[i] != ']'; {
			end := skip(b, i)
			if end <= i || !yield(Span{i, end}) {
				return
			}
			if i = space(b, end); i < len(b) && b[i] == ',' {
				i = space(b, i+1)
			}
		}
	}
}

// Get returns the member of that exact name in the object at s. Of duplicates
// it is the last one, as JavaScript and encoding/json read them.
func Get(raw []byte, s Span, name string) (Member, bool) {
	var found Member
	ok := false
	walkMembers(raw, s, func(key, value Span, escaped bool) bool {
		if keyIs(key.Of(raw), escaped, name) {
			found, ok = Member{name, Span{key.Start, value.End}, value}, true
		}
		return true
	})
	return found, ok
}

// Lookup follows exact names from the object at s inwards.
func Lookup(raw []byte, s Span, names ...string) (Span, bool) {
	for _, n := range names {
		m, ok := Get(raw, s, n)
		if !ok {
			return Span{}, false
		}
		s = m.Value
	}
	return s, true
}

// String decodes the JSON string at s. Escapes that stand for no character
// (a lone surrogate) become U+FFFD, as in encoding/json.
func String(raw []byte, s Span) (string, bool) {
	if s.Empty() || raw[s.Start] != '"' {
		return "", false
	}
	text := s.Of(raw)
	for _, c := range text {
		if c == '\\' || c >= utf8.RuneSelf {
			var v string
			err := json.Unmarshal(text, &v)
			return v, err == nil
		}
	}
	return string(text[1 : len(text)-1]), true
}

func decodeKey(quoted []byte, escaped bool) string {
	if !escaped {
		return string(quoted[1 : len(quoted)-1])
	}
	k, _ := String(quoted, Span{0, len(quoted)})
	return k
}

// skip returns the end of the value at i in a text that was checked before.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch classes[b[i]] {
		case classQuote:
			if i = plain(b, i+1); i < len(b) && b[i] == '"' {
				i++
			} else if i, _ = str(b, i); i < 0 {
				return len(b)
			}
		case classOpen:
			depth++
			i++
		case classClose:
			depth--
			i++
		case classBetween:
			i++
			continue
		default: // a number or literal
			for i++; i < len(b) && classes[b[i]] == classPlain; i++ {
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return len(b)
}

// What a byte outside of strings is to skip.
const (
	classPlain = iota
	classBetween
	classQuote
	classOpen
	classClose
)

var classes = [256]uint8{
	' ': classBetween, '\t': classBetween, '\r': classBetween, '\n': classBetween, ',': classBetween, ':': classBetween,
	'"': classQuote, '{': classOpen, '[': classOpen, '}': classClose, ']': classClose,
}
