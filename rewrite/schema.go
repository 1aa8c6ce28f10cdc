package rewrite

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Rules is a set of the rules that [RefitForm] may apply.
type Rules uint32

// The rules, a bit each. What each does, and for whom, stands at its function.
const (
	RuleEnumNames       Rules = 1 << iota // enum and enumNames: oneOf
	RuleItemEnumNames                     // the same in items: items.anyOf
	RuleMissingType                       // no type where there can be only one: added
	RuleAnyOf                             // anyOf of a single-select: oneOf
	RuleItemOneOf                         // items.oneOf: items.anyOf, no items.type beside it
	RuleNullable                          // null as an alternative: left out, and out of required
	RuleLocalRef                          // $ref within the schema: what it names, in its place
	RuleConst                             // const: an enum of one value
	RuleTypedEnums                        // an enum of numbers or booleans: of strings
	RuleFormats                           // a format outside the four of the protocol: left out
	RuleDefaults                          // a default that is not valid: coerced, or left out
	RuleEnumBesideOneOf                   // enum beside oneOf: oneOf alone
	RuleOptions                           // duplicate options once, a title for each, no title too many

	allRules = RuleOptions<<1 - 1
)

// DefaultRules are the rules that are on unless somebody says otherwise: all.
// RuleFormats and RuleDefaults concern clients that refuse a form for such a
// member; all official ones do, of both dialects.
const DefaultRules = allRules

// A Dialect is the form in which a client knows titled choices.
type Dialect uint8

const (
	// Titled is that of revisions 2025-11-25 and later: oneOf, items.anyOf.
	Titled Dialect = iota
	// Named is that of 2025-06-18: enum and enumNames, no choice of several,
	// defaults on booleans only.
	Named
)

// Bounds of a form. Beyond them it, or the property, passes unchanged with a
// warning.
const (
	// MaxFormBytes is how long a form's text may be. Shown in today's shape it
	// may grow to some 15 times that.
	MaxFormBytes = 4 << 20
	// MaxFormProperties is how many properties of a form are looked at.
	MaxFormProperties = 1 << 16
	// MaxFormOptions is how many options one choice may have.
	MaxFormOptions = 1 << 14
	// MaxFormHops is how many references and alternatives are followed for one
	// property, which is also what ends a cycle.
	MaxFormHops = 32
	// MaxFormInlined is how many bytes of definitions are put in the place of
	// references, in all of a form: a short reference may stand for a long one.
	MaxFormInlined = 1 << 20
)

// A Change is one thing that a rule did, or could not do, to one property.
type Change struct {
	Rule     string // its name, see [Rules.Names]; [Unsupported] where no rule is to blame
	Property string // decoded; empty for the form itself
	Reason   string // for people
}

// Unsupported is the Rule of a warning about a shape that no rule changes and
// that clients refuse.
const Unsupported = "unsupported"

// A Form is a requestedSchema refitted for one client, and the way back for
// its answer.
type Form struct {
	Schema   []byte   // the same slice if nothing changed
	Changes  []Change // by property in the order of the schema, then in the order of the rules
	Warnings []Change // what passes as it is though clients refuse it, and what the client does not get to see
	back     []wayBack
}

// RefitForm rewrites the requestedSchema of an elicitation so that clients of
// the dialect can show it. The text must have been checked by [Scan]. Members
// that no rule touches keep their bytes and their place, and a schema that
// needs no rule is returned as the same slice. The outcome depends on nothing
// but the arguments, so that the way back ([Form.Restore]) can be derived
// again from the server's own schema.
func RefitForm(schema []byte, d Dialect, on Rules) Form {
	form := Form{Schema: schema}
	if on&allRules == 0 {
		return form
	}
	if len(schema) > MaxFormBytes {
		form.Warnings = []Change{{Unsupported, "", fmt.Sprintf("a form of more than %d bytes; passed unchanged", MaxFormBytes)}}
		return form
	}
	r := refit{
		schema: schema, dialect: d, on: on, form: &form,
		properties: make([]property, 0, 32), // what a form of the usual size needs
		choices:    make([]choice, 0, 16),
		elements:   make([][]byte, 0, 32),
		text:       make(arena, 0, min(2*len(schema), 8<<10)),
	}
	if !r.read() {
		return form
	}
	for i := range r.properties {
		if p := &r.properties[i]; !p.shadowed {
			r.refitProperty(p)
		}
	}
	if r.inlined > MaxFormInlined {
		return Form{Schema: schema, Warnings: []Change{{RuleLocalRef.name(), "",
			tooMuchInlined + "; the form passed unchanged"}}}
	}
	r.root()
	form.Schema = r.edits.Apply(schema)
	return form
}

// A refit is the work on one form.
type refit struct {
	schema  []byte
	dialect Dialect
	on      Rules
	form    *Form
	edits   Edits

	object     Span // the schema
	typ        Span // the value of its member "type"
	required   Span // the value of "required"
	surplus    []Span
	properties []property

	optional map[string]bool // the nullable properties, to be taken out of required
	inlined  int             // bytes put in the place of references
	index    map[int]map[string]Span

	own, items, option node     // reused from property to property
	choices            []choice // of lastChoices, if areChoices
	lastChoices        []byte
	areChoices         bool
	elements           [][]byte
	text               arena
	field              field
	from               int // where the changes of the property in the work begin
}

// A property is one member of the schema's "properties".
type property struct {
	key      []byte // as it stands, in its quotes
	name     []byte // decoded
	at       Span
	value    Span
	shadowed bool // another of the same name follows, which wins
}

// read finds the parts of the schema. It reports whether there is a form to
// work on.
func (r *refit) read() bool {
	start := space(r.schema, 0)
	if start >= len(r.schema) || r.schema[start] != '{' {
		return false
	}
	r.object = Span{start, skip(r.schema, start)}
	var properties Span
	parts := [...]struct {
		name   string
		folded string
		value  *Span
		at     Span
	}{
		{name: "type", folded: "type", value: &r.typ},
		{name: "properties", folded: "properties", value: &properties},
		{name: "required", folded: "required", value: &r.required},
	}
	walkMembers(r.schema, r.object, func(key, value Span, escaped bool) bool {
		quoted := key.Of(r.schema)
		at := Span{key.Start, value.End}
		for i := range parts {
			p := &parts[i]
			if !escaped && string(quoted[1:len(quoted)-1]) == p.name || escaped && decodeKey(quoted, true) == p.name {
				if !p.at.Empty() {
					r.surplus = append(r.surplus, p.at)
				}
				p.at, *p.value = at, value
				return true
			}
		}
		if len(quoted) >= len(`"type"`) {
			folded := Fold(decodeKey(quoted, escaped))
			for i := range parts {
				if folded == parts[i].folded {
					r.surplus = append(r.surplus, at)
				}
			}
		}
		return true
	})
	walkMembers(r.schema, properties, func(key, value Span, escaped bool) bool {
		quoted := key.Of(r.schema)
		name := quoted[1 : len(quoted)-1]
		if escaped {
			name = []byte(nameOf(quoted))
		}
		r.properties = append(r.properties, property{key: quoted, name: name, at: Span{key.Start, value.End}, value: value})
		return len(r.properties) <= MaxFormProperties
	})
	if len(r.properties) > MaxFormProperties {
		r.form.Warnings = append(r.form.Warnings, Change{Unsupported, "",
			fmt.Sprintf("more than %d properties; the form passed unchanged", MaxFormProperties)})
		return false
	}
	r.shadow()
	return !properties.Empty() && r.schema[properties.Start] == '{'
}

// nameOf decodes the name of a property. One with an escape that stands for no
// character (a lone surrogate) is its own text, so that no two are the same
// name that are two to JavaScript.
func nameOf(quoted []byte) string {
	name := decodeKey(quoted, true)
	if strings.ContainsRune(name, utf8.RuneError) {
		return string(quoted[1 : len(quoted)-1])
	}
	return name
}

// shadow marks the properties that are written again further on.
func (r *refit) shadow() {
	order := make([]int32, len(r.properties))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return bytes.Compare(r.properties[a].name, r.properties[b].name)
	})
	for i := 1; i < len(order); i++ {
		if before := &r.properties[order[i-1]]; bytes.Equal(before.name, r.properties[order[i]].name) {
			before.shadowed = true
		}
	}
}

// refitProperty applies the rules to one property. One that turns out not to be
// expressible passes as it came, whatever was done to it before.
func (r *refit) refitProperty(p *property) {
	changes, warnings := len(r.form.Changes), len(r.form.Warnings)
	if r.schema[p.value.Start] != '{' {
		r.warn(Unsupported, string(p.name), "not an object, so there is nothing to show")
		return
	}
	r.own.parse(p.value.Of(r.schema))
	r.from = changes
	r.elements = r.elements[:0]
	r.field = field{refit: r, of: p, node: &r.own}
	f := &r.field
	rule, reason := f.apply()
	if reason != "" {
		r.form.Changes, r.form.Warnings = r.form.Changes[:changes], r.form.Warnings[:warnings]
		r.warn(rule, f.name(), reason+"; passed unchanged")
		return
	}
	if text, changed := f.node.render(&r.text); changed {
		r.edits.Replace(p.value, text)
	}
	required := false
	if f.nullable {
		required = r.requires(f.name())
	}
	if f.values != nil || required {
		r.form.back = append(r.form.back, wayBack{
			key: p.key, name: f.name(), values: f.values, list: f.list, null: required,
		})
	}
}

func (r *refit) warn(rule, property, reason string) {
	r.form.Warnings = append(r.form.Warnings, Change{rule, property, reason})
}

// requires reports whether the form requires a property that may be null, and
// if so notes that it is to be taken out of the list.
func (r *refit) requires(name string) bool {
	if r.optional == nil {
		r.optional = map[string]bool{}
		for s := range Elements(r.schema, r.required) {
			if r.schema[s.Start] == '"' {
				r.optional[nameOf(s.Of(r.schema))] = false
			}
		}
	}
	_, required := r.optional[name]
	if required {
		r.optional[name] = true
	}
	return required
}

// root makes the edits outside of the properties: the list of required ones,
// the missing type, and members that another reader may take for those that
// were judged.
func (r *refit) root() {
	for s := range Elements(r.schema, r.required) {
		if r.schema[s.Start] == '"' && r.optional[nameOf(s.Of(r.schema))] {
			r.edits.Remove(s)
		}
	}
	if r.typ.Empty() && r.on&RuleMissingType != 0 {
		r.edits.Prepend(r.schema, r.object, []byte(`"type":"object"`))
		r.form.Changes = append(r.form.Changes, Change{RuleMissingType.name(), "", "no type; a form is always an object"})
	}
	if r.edits.Len() == 0 {
		return
	}
	for _, s := range r.surplus {
		r.edits.Remove(s)
	}
	for _, p := range r.properties {
		if p.shadowed {
			r.edits.Remove(p.at)
		}
	}
}
