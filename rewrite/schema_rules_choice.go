package rewrite

import "slices"

// constToEnum is rule const: a single value becomes an enum of one. The
// TypeScript SDK strips const (then any text can be entered), and refuses the
// form if no type stands beside it, as the Go SDK does; pydantic writes it for
// a Literal of one.
func constToEnum(f *field) outcome {
	n := f.node
	value := n.get(kwConst)
	if value == nil {
		return outcome{}
	}
	switch kindOf(value) {
	case kindNull, kindOther:
		return outcome{cannot: "a constant that no option can stand for"}
	}
	if !n.has(kwEnum) {
		n.rename(kwConst, kwEnum, f.join(value))
		return outcome{did: "const to an enum of one"}
	}
	names := f.listOf(n.get(kwEnumNames))
	for i, v := range f.listOf(n.get(kwEnum)) {
		if !equal(v, value) {
			continue
		}
		n.drop(kwConst)
		n.set(kwEnum, f.join(v))
		if i < len(names) {
			n.set(kwEnumNames, f.join(names[i:i+1]...))
		}
		return outcome{did: "const and enum to an enum of one"}
	}
	return outcome{cannot: "a constant that is not in its enum"}
}

// anyOfToOneOf is rule any-of: titled choices of one under anyOf, as drafts of
// SEP-1330 had them, become oneOf. The TypeScript SDK (1.32) reduces anyOf to
// a plain text field.
func anyOfToOneOf(f *field) outcome {
	n := f.node
	if f.isList() || !f.isChoice(kwAnyOf) {
		return outcome{}
	}
	if n.has(kwOneOf) {
		return outcome{cannot: "choices in both anyOf and oneOf"}
	}
	n.rename(kwAnyOf, kwOneOf, n.get(kwAnyOf))
	return outcome{did: "anyOf of a single choice to oneOf"}
}

// itemOneOfToAnyOf is rule item-one-of: choices of several stand in
// items.anyOf, and without a type beside them (the schema of 2025-11-25; parts
// of SEP-1330's text say otherwise). Both SDKs refuse items.oneOf, and the Go
// SDK items.type beside items.anyOf.
func itemOneOfToAnyOf(f *field) outcome {
	n := f.node
	did := ""
	if !n.has(kwAnyOf) && f.isChoice(kwOneOf) {
		n.rename(kwOneOf, kwAnyOf, n.get(kwOneOf))
		did = "items.oneOf to items.anyOf"
	}
	if n.has(kwType) && f.isChoice(kwAnyOf) {
		n.drop(kwType)
		if did == "" {
			did = "items.type beside items.anyOf left out"
		}
	}
	return outcome{did: did}
}

// dropEnumBesideOneOf is rule enum-beside-one-of: where enum stands beside
// titled choices, those alone stay. The TypeScript SDK keeps enum and drops
// oneOf from 1.22 on, and the titles with it. Choices that the enum does not
// have go: they could be chosen, but never be an answer.
func dropEnumBesideOneOf(f *field) outcome {
	n, k := f.node, f.titledKey()
	if !n.has(kwEnum) && !n.has(kwEnumNames) {
		return outcome{}
	}
	list := n.get(k)
	cs, ok := f.choicesOf(k, list)
	if !ok {
		return outcome{}
	}
	if n.has(kwEnum) {
		known := map[string]bool{}
		for _, v := range f.listOf(n.get(kwEnum)) {
			known[canonical(v)] = true
		}
		var e Edits
		for _, c := range cs {
			if !known[canonical(c.value.Of(list))] {
				e.Remove(c.at)
			}
		}
		if e.Len() == len(cs) {
			return outcome{cannot: "an enum and titled choices that have no value in common"}
		}
		if e.Len() > 0 {
			n.set(k, e.Apply(list))
		}
	}
	n.drop(kwEnum)
	n.drop(kwEnumNames)
	return outcome{did: "enum beside titled choices left out"}
}

// typedToStrings is rule typed-enums: choices that are numbers or booleans are
// shown as strings of the same text, and the answer gets its type back in
// [Form.Restore]. In the protocol enums are of strings; the TypeScript SDK
// drops the enum of a number and asks for any, and both SDKs lose its titles.
func typedToStrings(f *field) outcome {
	k, list, cs := f.options()
	if len(cs) == 0 {
		return outcome{}
	}
	if len(cs) > MaxFormOptions {
		return outcome{cannot: tooMany}
	}
	of := commonKind(list, cs)
	n := f.node
	fits := !n.has(kwType)
	switch of {
	case kindString:
		fits = fits || n.is(kwType, `"string"`)
	case kindNumber:
		fits = fits || n.is(kwType, `"integer"`) || n.is(kwType, `"number"`)
	case kindBoolean:
		fits = fits || n.is(kwType, `"boolean"`)
	case kindMixed:
		for _, c := range cs {
			if kindOf(c.value.Of(list)) == kindNull {
				return outcome{cannot: "null among the values of an enum"}
			}
		}
		return outcome{cannot: "an enum of several types"}
	default:
		return outcome{cannot: "an enum of values that are no text, number or boolean"}
	}
	switch {
	case !fits:
		return outcome{cannot: "an enum of values that are not of its type"}
	case of == kindString:
		return outcome{}
	}
	f.values = make([][]byte, len(cs))
	out := make([][]byte, len(cs))
	for i, c := range cs {
		value := c.value.Of(list)
		text := f.asString(value)
		f.values[i] = value
		if out[i] = text; k != kwEnum {
			f.option.parse(c.at.Of(list))
			f.option.set(kwConst, text)
			if f.option.has(kwType) {
				f.option.set(kwType, []byte(`"string"`))
			}
			out[i], _ = f.option.render(&f.text)
		}
	}
	n.set(k, f.join(out...))
	if n.has(kwType) {
		n.set(kwType, []byte(`"string"`))
	}
	f.retypeDefault()
	return outcome{did: "an enum of numbers or booleans to strings, mapped back in the answer"}
}

// retypeDefault makes the default one of the options as they are shown now.
func (f *field) retypeDefault() {
	holder := f.node
	if f.outer != nil {
		holder = f.outer.node
	}
	value := holder.get(kwDefault)
	if value == nil {
		return
	}
	if f.outer == nil {
		if i := slices.IndexFunc(f.values, func(own []byte) bool { return equal(own, value) }); i >= 0 {
			holder.set(kwDefault, f.asString(f.values[i]))
		}
		return
	}
	shown := make(map[string][]byte, len(f.values))
	for _, own := range f.values {
		shown[canonical(own)] = own
	}
	all := f.listOf(value)
	for i, v := range all {
		if own, ok := shown[canonical(v)]; ok {
			all[i] = f.asString(own)
		}
	}
	if len(all) > 0 {
		holder.set(kwDefault, f.join(all...))
	}
}

// addType is rule missing-type: a type is added where the rest leaves room for
// one only. The TypeScript and Go SDKs refuse a property without (FastMCP left
// it out beside oneOf).
func addType(f *field) outcome {
	n := f.node
	if n.has(kwType) {
		return outcome{}
	}
	t := f.impliedType()
	if t == "" {
		return outcome{}
	}
	n.prepend(kwType, f.quoted(t))
	return outcome{did: "no type; it can only be " + t}
}

// impliedType is the type that the rest of a schema speaks of, if it is one.
func (f *field) impliedType() string {
	n := f.node
	if f.outer != nil {
		if list := n.get(kwEnum); list != nil && !n.has(kwAnyOf) {
			return typeOfKind(f, list, kwEnum)
		}
		return ""
	}
	if k, list, cs := f.options(); len(cs) > 0 {
		return typeOfKind(f, list, k)
	}
	if v := n.get(kwConst); v != nil {
		return typeOfKind(f, f.join(v), kwEnum)
	}
	list := f.isList()
	text := n.has(kwMinLength) || n.has(kwMaxLength) || n.has(kwPattern) || knownFormats[string(n.get(kwFormat))]
	number := n.has(kwMinimum) || n.has(kwMaximum) || n.has(kwExclusiveMinimum) || n.has(kwExclusiveMaximum) || n.has(kwMultipleOf)
	switch {
	case n.has(kwAnyOf) || n.has(kwOneOf) || n.has(kwAllOf) || n.has(kwRef):
		return ""
	case list && !text && !number:
		return "array"
	case text && !list && !number:
		return "string"
	case number && !list && !text:
		return "number"
	}
	return ""
}

// typeOfKind is the type of all choices of a list, empty if they have several.
func typeOfKind(f *field, list []byte, k keyword) string {
	cs, _ := f.choicesOf(k, list)
	switch commonKind(list, cs) {
	case kindString:
		return "string"
	case kindBoolean:
		return "boolean"
	case kindNumber:
		for _, c := range cs {
			if !isInteger(c.value.Of(list)) {
				return "number"
			}
		}
		return "integer"
	}
	return ""
}
