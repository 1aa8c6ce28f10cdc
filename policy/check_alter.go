package policy

import "slices"

// alter applies what the policy allows to content: undeclared fields out,
// defaults in, then coercions. It returns nil where nothing was altered.
func (a *Answers) alter(f *form, content *value) ([]byte, []Applied) {
	if f.root == nil {
		return nil, nil
	}
	var e objectEdit
	for i, m := range content.members {
		schema := f.byName[m.name]
		switch {
		case schema == nil && f.closed && a.Coerce.DropUndeclared && len(f.fields) > 0:
			e.drop(i)
			e.note(m.name, "undeclared")
		case schema != nil && content.last(m.name) == i:
			a.coerceField(f, schema, i, m, &e)
		}
	}
	if a.FillDefaults {
		for _, m := range f.fields {
			if content.get(m.name) != nil {
				continue
			}
			if d := f.defaultOf(m.value, maxReferences); d != nil && d.kind != kindNull && f.fits(m.value, d) {
				e.add(m.key, d.raw)
				e.note(m.name, "default")
			}
		}
	}
	if len(e.applied) == 0 {
		return nil, nil
	}
	return e.apply(content), e.applied
}

// defaultOf finds a field's default, also behind its $ref or allOf.
func (f *form) defaultOf(schema *value, hops int) *value {
	if schema == nil || hops == 0 {
		return nil
	}
	if d := schema.get("default"); d != nil {
		return d
	}
	if target, _ := f.resolve(schema.get("$ref")); target != nil {
		return f.defaultOf(target, hops-1)
	}
	if all := schema.get("allOf"); all != nil && len(all.items) == 1 {
		return f.defaultOf(all.items[0], hops-1)
	}
	return nil
}

// fits reports whether the schema of a field finds no problem with v.
func (f *form) fits(schema, v *value) bool {
	c := &checker{form: f, quiet: 1}
	return c.check(schema, v, place{}).valid() && f.steps >= 0
}

// coerceField alters the value of one declared field, if it does not fit and
// what the policy allows makes it fit.
func (a *Answers) coerceField(f *form, schema *value, i int, m member, e *objectEdit) {
	if a.Coerce == (Coerce{}) || f.fits(schema, m.value) {
		return
	}
	empty := m.value.kind == kindNull || m.value.is("")
	if a.Coerce.DropEmpty && empty && !slices.Contains(f.required, m.name) {
		e.drop(i)
		e.note(m.name, "empty")
		return
	}
	if m.value.kind == kindArray {
		a.coerceItems(f, schema, i, m, e)
		return
	}
	if text, rule := a.coerced(f, schema, m.value); text != nil {
		e.replace(i, text)
		e.note(m.name, rule)
	}
}

// coerceItems alters the items of a list, if all of it then fits.
func (a *Answers) coerceItems(f *form, schema *value, i int, m member, e *objectEdit) {
	items := f.follow(schema, "items")
	if items == nil {
		return
	}
	var out []byte
	var rules []string
	done := m.value.start
	doc := m.value
	for _, item := range m.value.items {
		if f.fits(items, item) {
			continue
		}
		text, rule := a.coerced(f, items, item)
		if text == nil {
			return
		}
		out = append(out, doc.raw[done-doc.start:item.start-doc.start]...)
		out = append(out, text...)
		done = item.start + len(item.raw)
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	out = append(out, doc.raw[done-doc.start:]...)
	list, err := parseValue(out)
	if err != nil || !f.fits(schema, list) {
		return
	}
	e.replace(i, out)
	for _, rule := range rules {
		e.note(m.name, rule)
	}
}

// follow finds a keyword of schema, also behind its $ref or allOf.
func (f *form) follow(schema *value, keyword string) *value {
	for range maxReferences {
		if schema == nil {
			return nil
		}
		if v := schema.get(keyword); v != nil {
			return v
		}
		if target, _ := f.resolve(schema.get("$ref")); target != nil {
			schema = target
		} else if all := schema.get("allOf"); all != nil && len(all.items) == 1 {
			schema = all.items[0]
		} else {
			return nil
		}
	}
	return nil
}

// coerced returns the text of the value that v stands for in schema, or nil.
func (a *Answers) coerced(f *form, schema, v *value) (text []byte, rule string) {
	if v.kind != kindString {
		return nil, ""
	}
	if a.Coerce.Titles {
		if o := titled(f.choices(schema), v.text); o != nil && f.fits(schema, o) {
			return o.raw, "title"
		}
	}
	if !a.Coerce.Strings {
		return nil, ""
	}
	literal, err := parseValue([]byte(v.text))
	if err != nil || len(literal.raw) != len(v.text) || !f.fits(schema, literal) {
		return nil, ""
	}
	if literal.kind != kindNumber && literal.kind != kindBoolean {
		return nil, ""
	}
	return literal.raw, "string"
}

// choices returns the options of a field, also behind its $ref or allOf and in
// the branch beside null.
func (f *form) choices(schema *value) []option {
	for _, keyword := range []string{"enum", "oneOf", "anyOf"} {
		found := f.follow(schema, keyword)
		if found == nil {
			continue
		}
		owner := &value{kind: kindObject, members: []member{{name: keyword, value: found}}}
		if names := f.follow(schema, "enumNames"); names != nil {
			owner.members = append(owner.members, member{name: "enumNames", value: names})
		}
		if options := optionsOf(owner, maxValues); options != nil {
			return options
		}
		for _, branch := range found.items {
			if options := optionsOf(branch, maxValues); options != nil {
				return options
			}
		}
	}
	return nil
}

// titled returns the value of the only option with that title.
func titled(options []option, title string) *value {
	var found *value
	for _, o := range options {
		if o.title != title || title == "" {
			continue
		}
		if found != nil && !equal(found, o.value) {
			return nil
		}
		found = o.value
	}
	return found
}
