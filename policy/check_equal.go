package policy

import (
	"slices"
	"strconv"
	"strings"
)

// canon returns a text that two values share if and only if JSON Schema calls
// them equal: numbers by value (1 and 1.0), objects whatever the order of their
// members.
func (v *value) canon() string {
	if v.canonical == "" {
		v.canonical = string(v.appendCanon(nil))
	}
	return v.canonical
}

func (v *value) appendCanon(b []byte) []byte {
	switch v.kind {
	case kindNumber:
		d, ok := parseDecimal(v.raw)
		if !ok {
			return append(b, v.raw...)
		}
		return append(b, d.String()...)
	case kindString:
		return strconv.AppendQuote(b, v.text)
	case kindArray:
		b = append(b, '[')
		for _, item := range v.items {
			b = append(item.appendCanon(b), ',')
		}
		return append(b, ']')
	case kindObject:
		var names []string
		for i, m := range v.members {
			if v.last(m.name) == i {
				names = append(names, m.name)
			}
		}
		slices.SortFunc(names, strings.Compare)
		b = append(b, '{')
		for _, name := range names {
			b = append(strconv.AppendQuote(b, name), ':')
			b = append(v.get(name).appendCanon(b), ',')
		}
		return append(b, '}')
	}
	return append(b, v.raw...)
}

// equal reports whether two values are equal in the sense of JSON Schema.
func equal(a, b *value) bool {
	if a.kind != b.kind {
		return false
	}
	if a.kind == kindString {
		return a.text == b.text
	}
	return a.canon() == b.canon()
}
