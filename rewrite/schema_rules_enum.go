package rewrite

import (
	"bytes"
	"fmt"
	"strings"
)

// enumNamesToOneOf is rule enum-names. In the Titled dialect enum and
// enumNames (LegacyTitledEnumSchema of 2025-06-18) become oneOf of const and
// title (SEP-1330): form builders that know only oneOf show the raw values, and
// strict JSON Schema compilers refuse the keyword. In the Named dialect it is
// the other way round, since the select would turn into free text there.
func enumNamesToOneOf(f *field) outcome {
	if f.dialect == Titled {
		return titleEnum(f, kwOneOf)
	}
	if !f.namesNothing() {
		return oneOfToEnumNames(f)
	}
	left := f.dropNames()
	if now := oneOfToEnumNames(f); now.did != "" {
		return now
	}
	return left
}

// enumNamesToAnyOf is rule item-enum-names: enum and enumNames in the items of
// a list become items.anyOf, which is where titles of a choice of several
// stand. The TypeScript SDK (1.32) strips items.enumNames.
func enumNamesToAnyOf(f *field) outcome { return titleEnum(f, kwAnyOf) }

// titleEnum puts titled choices in the place of enum and enumNames.
func titleEnum(f *field, to keyword) outcome {
	n := f.node
	if !n.has(kwEnumNames) || n.has(to) {
		return outcome{}
	}
	if f.namesNothing() {
		return f.dropNames()
	}
	list, names := n.get(kwEnum), f.listOf(n.get(kwEnumNames))
	cs, _ := f.choicesOf(kwEnum, list)
	if commonKind(list, cs) != kindString {
		return outcome{cannot: "titles for values that are no strings"}
	}
	if len(names) != len(cs) {
		return outcome{cannot: fmt.Sprintf("%d titles for %d values", len(names), len(cs))}
	}
	from := len(f.text)
	f.text = append(f.text, '[')
	for i, c := range cs {
		if kindOf(names[i]) != kindString {
			return outcome{cannot: "a title that is no string"}
		}
		value := c.value.Of(list)
		if len(value) == len(`""`) {
			// The Go SDK's client refuses the whole form for an empty const.
			f.warn(f.namesRule(), f.name(), "an empty value, which cannot be titled; enum and enumNames kept")
			return outcome{}
		}
		if i > 0 {
			f.text = append(f.text, ',')
		}
		f.text = append(append(f.text, `{"const":`...), value...)
		f.text = append(append(append(f.text, `,"title":`...), names[i]...), '}')
	}
	f.text = append(f.text, ']')
	n.rename(kwEnum, to, f.text.since(from))
	n.drop(kwEnumNames)
	if to == kwAnyOf {
		n.drop(kwType)
		return outcome{did: "items.enum and enumNames to titled items.anyOf"}
	}
	return outcome{did: "enum and enumNames to titled oneOf"}
}

// namesNothing reports whether there is an enumNames without a title or
// without a value.
func (f *field) namesNothing() bool {
	names := f.node.get(kwEnumNames)
	return names != nil && (len(f.listOf(names)) == 0 || len(f.listOf(f.node.get(kwEnum))) == 0)
}

// dropNames leaves out enumNames that name nothing.
func (f *field) dropNames() outcome {
	if names := f.node.get(kwEnumNames); kindOf(names) != kindNull && string(names) != "[]" {
		f.warn(f.namesRule(), f.name(), didNoNames)
	}
	f.node.drop(kwEnumNames)
	return outcome{did: didNoNames}
}

const didNoNames = "enumNames that name no value left out"

// namesRule is the rule that titles the choices here.
func (f *field) namesRule() string {
	if f.outer != nil {
		return RuleItemEnumNames.name()
	}
	return RuleEnumNames.name()
}

// oneOfToEnumNames puts enum and enumNames in the place of titled choices.
func oneOfToEnumNames(f *field) outcome {
	n := f.node
	list := n.get(kwOneOf)
	cs, ok := f.choicesOf(kwOneOf, list)
	if !ok || n.has(kwEnum) {
		return outcome{}
	}
	if commonKind(list, cs) != kindString {
		return outcome{cannot: "titles for values that are no strings"}
	}
	values, names, titled := make([][]byte, len(cs)), make([][]byte, len(cs)), false
	for i, c := range cs {
		values[i], names[i] = c.value.Of(list), c.value.Of(list)
		if title := c.title.Of(list); !blank(title) {
			names[i], titled = title, true
		}
	}
	n.rename(kwOneOf, kwEnum, f.join(values...))
	if titled {
		n.after(kwEnum, kwEnumNames, f.join(names...))
	}
	return outcome{did: "titled oneOf to enum and enumNames"}
}

// tidyOptions is rule options: a value that stands twice is offered once (two
// equal branches of oneOf make every answer invalid, and JSON Schema drafts up
// to 7 refuse such an enum), a title that is blank, missing or no string is
// the value (the Go SDK refuses the form without, the TypeScript SDK drops the
// whole choice), and a title without a value goes (the Go SDK refuses lists of
// two lengths).
func tidyOptions(f *field) outcome {
	k, list, cs := f.options()
	switch {
	case k == kwOther:
		return outcome{}
	case len(cs) > MaxFormOptions:
		return outcome{cannot: tooMany}
	case k != kwEnum:
		return f.tidyTitled(k, list, cs)
	}
	switch commonKind(list, cs) {
	case kindString, kindNumber, kindBoolean:
		return f.tidyEnum(list, cs)
	}
	return outcome{}
}

const (
	didRepeated = "a repeated value offered once"
	didTitles   = "the value in the place of a title that said nothing"
	didSurplus  = "titles without a value left out"
)

// tidyEnum mends an enum and the enumNames beside it.
func (f *field) tidyEnum(list []byte, cs []choice) outcome {
	n := f.node
	names := f.listOf(n.get(kwEnumNames))
	twice := repeated(list, cs)
	var did []string
	if twice != nil {
		did = append(did, didRepeated)
	}
	surplus := 0
	if len(names) > len(cs) {
		surplus = len(names) - len(cs)
	}
	said := true
	for i := range cs {
		said = said && (i < len(names) && !blank(names[i]) || i < len(names) && equal(names[i], f.asString(cs[i].value.Of(list))))
	}
	titled := len(names) > 0 && len(cs) > 0
	if titled && !said {
		did = append(did, didTitles)
	}
	if titled && surplus > 0 {
		did = append(did, didSurplus)
		f.warn(RuleOptions.name(), f.name(), fmt.Sprintf("%s: %d", didSurplus, surplus))
	}
	if did == nil {
		return outcome{}
	}
	values, titles := make([][]byte, 0, len(cs)), make([][]byte, 0, len(cs))
	for i, c := range cs {
		if twice != nil && twice[i] {
			continue
		}
		value := c.value.Of(list)
		values = append(values, value)
		if i < len(names) && !blank(names[i]) {
			titles = append(titles, names[i])
		} else {
			titles = append(titles, f.asString(value))
		}
	}
	n.set(kwEnum, f.join(values...))
	if titled {
		n.set(kwEnumNames, f.join(titles...))
	}
	return outcome{did: strings.Join(did, "; ")}
}

// tidyTitled mends a oneOf or anyOf of choices, in place.
func (f *field) tidyTitled(k keyword, list []byte, cs []choice) outcome {
	var e Edits
	var did []string
	twice := repeated(list, cs)
	if twice != nil {
		did = append(did, didRepeated)
	}
	mended := false
	for i, c := range cs {
		value, title := c.value.Of(list), c.title.Of(list)
		switch kindOf(value) {
		case kindString, kindNumber, kindBoolean:
		default:
			continue
		}
		if twice != nil && twice[i] {
			e.Remove(c.at)
		} else if blank(title) && !bytes.Equal(title, f.asString(value)) {
			f.option.parse(c.at.Of(list))
			f.option.drop(kwTitle)
			f.option.after(kwConst, kwTitle, f.asString(value))
			text, _ := f.option.render(&f.text)
			e.Replace(c.at, text)
			mended = true
		}
	}
	if mended {
		did = append(did, didTitles)
	}
	if did == nil {
		return outcome{}
	}
	f.node.set(k, e.Apply(list))
	return outcome{did: strings.Join(did, "; ")}
}
