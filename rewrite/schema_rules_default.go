package rewrite

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// knownFormats are the formats of a string that the protocol has.
var knownFormats = map[string]bool{`"email"`: true, `"uri"`: true, `"date"`: true, `"date-time"`: true}

// dropFormat is rule formats: a format outside the four of the protocol (uuid,
// time, password …) is left out of what the client sees; the answer is still
// checked against it. The SDKs, that of the 2025-06-18 generation included,
// refuse the form. On numbers and choices they take any.
func dropFormat(f *field) outcome {
	n := f.node
	if !n.has(kwFormat) || !n.is(kwType, `"string"`) || n.has(kwEnum) || n.has(kwOneOf) || knownFormats[string(n.get(kwFormat))] {
		return outcome{}
	}
	n.drop(kwFormat)
	return outcome{did: "a format that clients refuse left out; the answer is still checked"}
}

// mendDefault is rule defaults: a default that is no valid answer is put into
// the right type where nothing is lost by it ("5" for an integer), and left
// out otherwise. The TypeScript SDK refuses the whole form for one of the wrong
// type, the Go SDK too; others would pre-fill what then fails the check. In
// 2025-06-18 defaults exist on booleans only, and elsewhere they pass.
func mendDefault(f *field) outcome {
	n := f.node
	value := n.get(kwDefault)
	if value == nil || f.dialect == Named && !n.is(kwType, `"boolean"`) {
		return outcome{}
	}
	if f.validDefault(value) {
		return outcome{}
	}
	if coerced := f.coerce(value, string(n.get(kwType))); coerced != nil && f.validDefault(coerced) {
		n.set(kwDefault, coerced)
		return outcome{did: "a default of another type put into the right one"}
	}
	n.drop(kwDefault)
	f.warn(RuleDefaults.name(), f.name(), didDefault)
	return outcome{did: didDefault}
}

const didDefault = "a default that is no valid answer left out"

// coerce writes a scalar as another type, if it is that of the same text.
func (f *field) coerce(value []byte, typ string) []byte {
	s, isString := String(value, Span{0, len(value)})
	switch k := kindOf(value); typ {
	case `"string"`:
		if k == kindNumber || k == kindBoolean {
			return f.asString(value)
		}
	case `"boolean"`:
		if s == "true" || s == "false" {
			return []byte(s)
		}
	case `"integer"`, `"number"`:
		if !isString || s == "" || strings.ContainsAny(s, "eE") || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
			return nil
		}
		if number([]byte(s), 0) == len(s) {
			return []byte(s)
		}
	}
	return nil
}

// validDefault reports whether a default is a valid answer, as far as the
// keywords of the protocol and the bounds of JSON Schema say so.
func (f *field) validDefault(value []byte) bool {
	n := f.node
	k := kindOf(value)
	switch string(n.get(kwType)) {
	case `"string"`:
		return k == kindString && f.isOption(n, kwOneOf, value) && f.fitsLength(value)
	case `"boolean"`:
		return k == kindBoolean && f.isOption(n, kwOneOf, value)
	case `"integer"`:
		return k == kindNumber && isInteger(value) && f.isOption(n, kwOneOf, value) && f.fitsRange(value)
	case `"number"`:
		return k == kindNumber && f.isOption(n, kwOneOf, value) && f.fitsRange(value)
	case `"array"`:
		return value[0] == '[' && f.fitsItems(f.listOf(value))
	}
	return true
}

// isOption reports whether a value is one of the choices that a schema offers,
// or it offers none.
func (f *field) isOption(n *node, titled keyword, value []byte) bool {
	for _, k := range [...]keyword{kwEnum, titled} {
		list := n.get(k)
		cs, ok := f.choicesOf(k, list)
		if !ok {
			continue
		}
		found := false
		for _, c := range cs {
			found = found || equal(c.value.Of(list), value)
		}
		if !found {
			return false
		}
	}
	return true
}

// bound reads a number that a keyword gives.
func (f *field) bound(k keyword) (float64, bool) {
	if !f.node.has(k) {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(f.node.get(k)), 64)
	return v, err == nil
}

func (f *field) fitsLength(value []byte) bool {
	s, _ := String(value, Span{0, len(value)})
	return f.within(kwMinLength, kwMaxLength, float64(utf8.RuneCountInString(s)))
}

// within reports whether v lies between what two keywords say. Reading both as
// float64 keeps their order, so a valid value is never found invalid.
func (f *field) within(lowest, highest keyword, v float64) bool {
	if low, ok := f.bound(lowest); ok && v < low {
		return false
	}
	high, ok := f.bound(highest)
	return !ok || v <= high
}

// fitsRange checks the bounds of a number, and that a client can hold it as a
// float64.
func (f *field) fitsRange(value []byte) bool {
	v, err := strconv.ParseFloat(string(value), 64)
	if err != nil || math.IsInf(v, 0) || !f.within(kwMinimum, kwMaximum, v) {
		return false
	}
	for _, k := range [...]keyword{kwExclusiveMinimum, kwExclusiveMaximum} {
		bound, ok := f.bound(k)
		if ok && (k == kwExclusiveMinimum && v < bound || k == kwExclusiveMaximum && v > bound || equal(value, f.node.get(k))) {
			return false
		}
	}
	return true
}

// fitsItems checks the default of a choice of several.
func (f *field) fitsItems(values [][]byte) bool {
	if !f.within(kwMinItems, kwMaxItems, float64(len(values))) {
		return false
	}
	seen := map[string]bool{}
	f.items.parse(f.node.get(kwItems))
	options := map[string]bool{}
	for _, k := range [...]keyword{kwEnum, kwAnyOf} {
		list := f.items.get(k)
		if cs, ok := f.choicesOf(k, list); ok {
			for _, c := range cs {
				options[canonical(c.value.Of(list))] = true
			}
		}
	}
	for _, v := range values {
		c := canonical(v)
		if kindOf(v) != kindString || !options[c] || seen[c] && f.node.is(kwUniqueItems, "true") {
			return false
		}
		seen[c] = true
	}
	return true
}

// isInteger reports whether a number has no fractional part, however it is
// written (JSON Schema: 1.0 is an integer).
func isInteger(value []byte) bool {
	c := canonicalNumber(value)
	e := strings.LastIndexByte(c, 'e')
	return e < 0 || c[e+1] != '-'
}
