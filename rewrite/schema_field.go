package rewrite

import "slices"

// A field is one property in the work, or the items of one.
type field struct {
	*refit
	of    *property
	known string // see name
	node  *node
	outer *field // the property, where this is its items

	nullable bool     // null was an answer: instead, the field may be left out
	values   [][]byte // the server's own text of options that are shown as strings of it
	list     bool     // values are those of the items
}

// name is the property's name, made a string once it is needed.
func (f *field) name() string {
	if f.known == "" {
		f.known = string(f.of.name)
	}
	return f.known
}

// apply runs the rules over the property. If one of them finds that it cannot
// be expressed, that rule's name and the reason are returned.
func (f *field) apply() (rule, cannot string) {
	for hops := 0; ; hops++ {
		did, rule, cannot := f.run(unfolding)
		if cannot != "" {
			return rule, cannot
		}
		if !did {
			break
		}
		if hops == MaxFormHops {
			return RuleLocalRef.name(), "a reference that leads back to itself or too far"
		}
	}
	if cannot = f.unsupported(); cannot != "" {
		return Unsupported, cannot
	}
	if rule, cannot = f.applyToItems(); cannot != "" {
		return rule, cannot
	}
	if _, rule, cannot = f.run(reshaping); cannot != "" {
		return rule, cannot
	}
	if f.outer != nil {
		return "", ""
	}
	if _, rule, cannot = f.run(finishing); cannot == "" && !f.node.has(kwType) {
		f.warn(Unsupported, f.name(), "no type, and nothing that tells which")
	}
	return rule, cannot
}

// run applies a list of rules in order.
func (f *field) run(rules []rule) (did bool, name, cannot string) {
	here := inProperty
	if f.outer != nil {
		here = inItems
	}
	for i := range rules {
		r := &rules[i]
		if f.on&r.bit == 0 || r.where&here == 0 {
			continue
		}
		o := r.apply(f)
		if o.cannot != "" {
			return did, r.bit.name(), o.cannot
		}
		if o.did != "" {
			did = true
			f.changed(r.bit.name(), o.did)
		}
	}
	return did, "", ""
}

// changed notes what a rule did, once where it did it several times.
func (f *field) changed(rule, reason string) {
	c := Change{rule, f.name(), reason}
	if !slices.Contains(f.form.Changes[f.from:], c) {
		f.form.Changes = append(f.form.Changes, c)
	}
}

// unsupported says why no rule can make a field of this schema, if so. Nested
// objects, free lists and unknown types are refused by the official clients,
// and it is their own error that is to be seen.
func (f *field) unsupported() string {
	n := f.node
	if f.outer != nil {
		if !n.has(kwEnum) && !n.has(kwConst) && !f.isChoice(kwAnyOf) && !f.isChoice(kwOneOf) {
			return "a list of anything but options"
		}
		return ""
	}
	switch {
	case n.is(kwType, `"object"`), n.has(kwProperties):
		return "a nested object"
	case f.isList() && f.dialect == Named:
		return "a choice of several, which revision 2025-06-18 does not know"
	case f.isList() && (!n.has(kwItems) || n.get(kwItems)[0] != '{'):
		return "a list that does not say of what"
	case !n.has(kwType), f.isList():
		return ""
	}
	switch string(n.get(kwType)) {
	case `"string"`, `"number"`, `"integer"`, `"boolean"`:
		return ""
	}
	return "a type that no field of a form can have"
}

// isList reports whether the property is a list by its type, or without one
// by having items and nothing that says otherwise.
func (f *field) isList() bool {
	n := f.node
	if n.has(kwType) {
		return n.is(kwType, `"array"`)
	}
	return n.has(kwItems) && !n.has(kwEnum) && !n.has(kwConst) && !n.has(kwOneOf) && !n.has(kwAnyOf)
}

// applyToItems runs the rules over the schema of a list's items.
func (f *field) applyToItems() (rule, cannot string) {
	if f.outer != nil || !f.isList() {
		return "", ""
	}
	f.items.parse(f.node.get(kwItems))
	items := field{refit: f.refit, of: f.of, node: &f.items, outer: f}
	if rule, cannot = items.apply(); cannot != "" {
		return rule, cannot
	}
	if text, changed := f.items.render(&f.text); changed {
		f.node.set(kwItems, text)
	}
	f.values, f.list = items.values, true
	return "", ""
}
