package rewrite

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A choice is one of the values that an enum, oneOf or anyOf offers, by its
// place in the text of that list.
type choice struct {
	at    Span // the element
	value Span // it, or its const
	title Span // its title; empty if it has none
	typ   Span // its type, where it says one of its own
}

// choicesOf reads a list of choices: the elements of an enum, or objects that
// each have a const. It reports whether the list is one. The result is good
// until another list is read; the rules mostly ask for the same one.
func (r *refit) choicesOf(k keyword, list []byte) ([]choice, bool) {
	if len(list) == 0 || list[0] != '[' {
		return nil, false
	}
	if last := r.lastChoices; len(last) == len(list) && &last[0] == &list[0] {
		return r.choices, r.areChoices
	}
	r.lastChoices, r.areChoices = list, r.readChoices(k, list)
	if !r.areChoices {
		r.choices = r.choices[:0]
	}
	return r.choices, r.areChoices
}

func (r *refit) readChoices(k keyword, list []byte) bool {
	r.choices = r.choices[:0]
	for s := range Elements(list, Span{0, len(list)}) {
		c := choice{at: s, value: s}
		if k != kwEnum {
			c.value = Span{}
			walkMembers(list, s, func(key, value Span, escaped bool) bool {
				switch keywordOf(key.Of(list), escaped) {
				case kwConst:
					c.value = value
				case kwTitle:
					c.title = value
				case kwType:
					c.typ = value
				}
				return true
			})
			if c.value.Empty() {
				return false
			}
		}
		r.choices = append(r.choices, c)
	}
	return len(r.choices) > 0 || k == kwEnum
}

// isChoice reports whether a oneOf or anyOf is a list of choices.
func (f *field) isChoice(k keyword) bool {
	_, ok := f.choicesOf(k, f.node.get(k))
	return ok
}

// titledKey is the keyword that holds titled choices here: oneOf of a
// property, anyOf of items.
func (f *field) titledKey() keyword {
	if f.outer != nil {
		return kwAnyOf
	}
	return kwOneOf
}

// options finds the choices of a field: under which keyword, and what they are.
func (f *field) options() (keyword, []byte, []choice) {
	for _, k := range [...]keyword{f.titledKey(), kwEnum} {
		list := f.node.get(k)
		if cs, ok := f.choicesOf(k, list); ok {
			return k, list, cs
		}
	}
	return kwOther, nil, nil
}

// tooMany is the reason why a choice of so many options passes unchanged.
var tooMany = fmt.Sprintf("more than %d options", MaxFormOptions)

// A kind is the type of a JSON value, as far as choices tell it apart.
type kind uint8

const (
	kindNone kind = iota
	kindString
	kindNumber
	kindBoolean
	kindNull
	kindOther // objects and lists
	kindMixed
)

func kindOf(value []byte) kind {
	switch value[0] {
	case '"':
		return kindString
	case 't', 'f':
		return kindBoolean
	case 'n':
		return kindNull
	case '{', '[':
		return kindOther
	}
	return kindNumber
}

// commonKind is the kind that all choices have.
func commonKind(list []byte, cs []choice) kind {
	all := kindNone
	for _, c := range cs {
		switch k := kindOf(c.value.Of(list)); {
		case all == kindNone:
			all = k
		case all != k:
			return kindMixed
		}
	}
	return all
}

// canonical returns a text that two JSON scalars share if and only if they are
// equal: 1 and 1.0, "a" and "\u0061". Strings with an escape that stands for
// no character (a lone surrogate) are equal only if spelled the same way.
func canonical(value []byte) string {
	switch kindOf(value) {
	case kindString:
		if bytes.IndexByte(value, '\\') < 0 {
			return string(value)
		}
		s, _ := String(value, Span{0, len(value)})
		if strings.ContainsRune(s, utf8.RuneError) {
			return string(value)
		}
		return `"` + s + `"`
	case kindNumber:
		return canonicalNumber(value)
	}
	return string(value)
}

// canonicalNumber writes a number as its digits without zeros at either end,
// and a power of ten.
func canonicalNumber(value []byte) string {
	text, sign := string(value), ""
	if text[0] == '-' {
		text, sign = text[1:], "-"
	}
	digits, exponent := text, 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[e+1:]); err != nil || exponent > 1<<30 || exponent < -1<<30 {
			return string(value) // an exponent beyond all sense is equal to itself only
		}
		digits = text[:e]
	}
	if dot := strings.IndexByte(digits, '.'); dot >= 0 {
		exponent -= len(digits) - dot - 1
		digits = digits[:dot] + digits[dot+1:]
	}
	digits = strings.TrimLeft(digits, "0")
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	return fmt.Sprintf("%s%se%d", sign, trimmed, exponent)
}

// repeated marks the choices whose value stands in the list before them. It is
// nil if there are none.
func repeated(list []byte, cs []choice) []bool {
	var marks []bool
	mark := func(i int) {
		if marks == nil {
			marks = make([]bool, len(cs))
		}
		marks[i] = true
	}
	if len(cs) <= 16 { // most are, and then comparing all costs less than a map
		for i := range cs {
			for j := range i {
				if equal(cs[i].value.Of(list), cs[j].value.Of(list)) {
					mark(i)
					break
				}
			}
		}
		return marks
	}
	seen := make(map[string]bool, len(cs))
	for i := range cs {
		key := canonical(cs[i].value.Of(list))
		if seen[key] {
			mark(i)
		}
		seen[key] = true
	}
	return marks
}

// equal reports whether two JSON scalars are equal.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	k := kindOf(a)
	if k != kindOf(b) || k == kindString && bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return false
	}
	return canonical(a) == canonical(b)
}

// blank reports whether a title says nothing: none, no string, or white space.
func blank(title []byte) bool {
	if len(title) == 0 || title[0] != '"' {
		return true
	}
	for _, c := range title[1 : len(title)-1] {
		if c == '\\' || c >= utf8.RuneSelf {
			break
		}
		if c > ' ' {
			return false
		}
	}
	s, ok := String(title, Span{0, len(title)})
	return !ok || strings.TrimSpace(s) == ""
}

// asString returns a scalar as a JSON string with the same text.
func (r *refit) asString(value []byte) []byte {
	if value[0] == '"' {
		return value
	}
	return r.quoted(string(value))
}

// quoted makes a JSON string of a text that needs no escapes.
func (r *refit) quoted(s string) []byte {
	from := len(r.text)
	r.text = append(append(append(r.text, '"'), s...), '"')
	return r.text.since(from)
}

// join makes a JSON list of values.
func (r *refit) join(values ...[]byte) []byte {
	from := len(r.text)
	r.text = append(r.text, '[')
	for i, v := range values {
		if i > 0 {
			r.text = append(r.text, ',')
		}
		r.text = append(r.text, v...)
	}
	r.text = append(r.text, ']')
	return r.text.since(from)
}

// listOf returns the elements of a list. The result is good until the next
// property.
func (r *refit) listOf(list []byte) [][]byte {
	from := len(r.elements)
	for s := range Elements(list, Span{0, len(list)}) {
		r.elements = append(r.elements, s.Of(list))
	}
	return r.elements[from:len(r.elements):len(r.elements)]
}
