package policy

// checkBranches evaluates the keywords that apply schemas to the value itself.
func (c *checker) checkBranches(schema, v *value, at place) (f findings) {
	if all := schema.get("allOf"); all != nil {
		for _, branch := range all.items {
			f.add(c.check(branch, v, at))
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches := schema.get(keyword)
		switch {
		case branches == nil:
		case len(branches.items) == 0:
			f.add(c.skip(at, "its "+keyword+" is not a list of schemas"))
		default:
			f.add(c.checkChoice(schema, keyword, branches, v, at))
		}
	}
	if not := schema.get("not"); not != nil {
		switch g := c.try(not, v, at); {
		case g.unsure:
			f.unsure = true
		case g.valid():
			f.add(c.fail(at, "not", v, "is what the server rules out", nil))
		}
	}
	if condition := schema.get("if"); condition != nil {
		g := c.try(condition, v, at)
		f.unsure = f.unsure || g.unsure
		branch := schema.get("then")
		if !g.valid() {
			branch = schema.get("else")
		}
		if branch != nil && !(g.valid() && g.unsure) {
			f.add(c.check(branch, v, at))
		}
	}
	return f
}

// try evaluates a schema whose problems are not the answer's.
func (c *checker) try(schema, v *value, at place) findings {
	c.quiet++
	defer func() { c.quiet-- }()
	return c.check(schema, v, at)
}

// checkChoice evaluates anyOf, of which one branch has to fit, and oneOf, of
// which exactly one has to. Options that a server lists twice are one option.
func (c *checker) checkChoice(schema *value, keyword string, branches, v *value, at place) findings {
	fit, unsure := 0, 0
	var near *value // the only branch of the value's type
	several := false
	if !c.spend(len(branches.items) / 8) {
		return findings{unsure: true}
	}
	for _, branch := range branches.items {
		if constant := branch.get("const"); constant != nil && !equal(constant, v) {
			continue // an option that was not chosen
		}
		g := c.try(branch, v, at)
		switch {
		case g.valid() && g.unsure:
			unsure++
		case g.valid():
			fit++
		case !rightType(g, at):
		case near == nil:
			near = branch
		default:
			several = true
		}
	}
	switch {
	case fit > 1 && keyword == "oneOf" && !allConst(branches):
		return c.fail(at, keyword, v, "fits more than one of the forms that exclude each other", nil)
	case fit == 0 && unsure == 0:
		if near != nil && !several && c.quiet == 0 && !allConst(branches) {
			return c.check(near, v, at)
		}
		return c.fail(at, keyword, v, "is not an option", schema)
	}
	return findings{unsure: unsure > 0 && (fit == 0 || keyword == "oneOf")}
}

// rightType reports whether the value failed for something other than its type.
func rightType(g findings, at place) bool {
	for _, p := range g.problems {
		if p.Rule == "type" && p.Field == at.name() {
			return false
		}
	}
	return true
}

func (c *checker) checkArray(schema, v *value, at place) (f findings) {
	f.add(c.checkCount(schema, v, at, len(v.items), "minItems", "maxItems", "item"))
	if schema.get("uniqueItems").isTrue() {
		seen := make(map[string]bool, len(v.items))
		for _, item := range v.items {
			key := string(rune(item.kind)) + item.canon()
			if seen[key] {
				f.add(c.fail(at, "uniqueItems", item, "is there twice, the server asked for each at most once", nil))
				break
			}
			seen[key] = true
		}
	}
	rest := v.items
	if prefix := schema.get("prefixItems"); prefix != nil {
		for i, s := range prefix.items[:min(len(prefix.items), len(v.items))] {
			f.add(c.check(s, v.items[i], at))
		}
		rest = rest[min(len(prefix.items), len(rest)):]
	}
	if items := schema.get("items"); items != nil {
		for _, item := range rest {
			f.add(c.check(items, item, at))
		}
	}
	if contains := schema.get("contains"); contains != nil {
		f.add(c.checkContains(schema, contains, v, at))
	}
	return f
}

func (c *checker) checkContains(schema, contains, v *value, at place) findings {
	fit, unsure := 0, 0
	for _, item := range v.items {
		switch g := c.try(contains, item, at); {
		case g.valid() && g.unsure:
			unsure++
		case g.valid():
			fit++
		}
	}
	least, most := decimalOf(1), decimal{}
	if m := schema.get("minContains"); m != nil {
		if d, ok := parseDecimal(m.raw); ok && m.kind == kindNumber {
			least = d
		}
	}
	limit := schema.get("maxContains")
	limited := false
	if limit != nil && limit.kind == kindNumber {
		most, limited = parseDecimal(limit.raw)
	}
	switch {
	case decimalOf(fit+unsure).compare(least) < 0:
		return c.fail(at, "contains", v, "lacks an item that has to be there", contains)
	case limited && decimalOf(fit).compare(most) > 0:
		return c.fail(at, "maxContains", v, "has too many items of one kind", contains)
	}
	return findings{unsure: unsure > 0}
}

func (c *checker) checkObject(schema, v *value, at place) (f findings) {
	if required := schema.get("required"); required != nil {
		for _, name := range required.items {
			if name.kind == kindString && v.get(name.text) == nil {
				f.add(c.missing(schema, name.text, at))
			}
		}
	}
	properties, patterns := schema.get("properties"), schema.get("patternProperties")
	additional := schema.get("additionalProperties")
	for i, m := range v.members {
		if v.last(m.name) != i {
			continue
		}
		declared := properties.get(m.name)
		below := at.field(m.name, declared)
		if declared != nil {
			f.add(c.check(declared, m.value, below))
		}
		matched, unsure := c.checkPatterns(patterns, m, below, &f)
		switch {
		case declared != nil || matched || additional == nil:
		case unsure:
			f.unsure = true
		case additional.isFalse():
			f.add(c.fault(below, "additionalProperties", "the server did not ask for this field"))
		default:
			f.add(c.check(additional, m.value, below))
		}
	}
	if names := schema.get("propertyNames"); names != nil {
		for _, m := range v.members {
			name := &value{kind: kindString, raw: m.key, text: m.name}
			if g := c.try(names, name, at); !g.valid() {
				f.add(c.fault(at.field(m.name, nil), "propertyNames", "is not a name that the server allows"))
			} else {
				f.unsure = f.unsure || g.unsure
			}
		}
	}
	f.add(c.checkCount(schema, v, at, v.distinct(), "minProperties", "maxProperties", "field"))
	f.add(c.checkDependent(schema, v, at))
	return f
}

// distinct counts the names of an object.
func (v *value) distinct() int {
	n := 0
	for i, m := range v.members {
		if v.last(m.name) == i {
			n++
		}
	}
	return n
}

// field is the place of an object's member.
func (p place) field(name string, schema *value) place {
	below := place{path: p.path + "." + name, schema: schema, hidden: p.hidden || secretSchema(p.schema)}
	if p.path == "" && name != "" {
		below.path = name
	}
	return below
}

func (c *checker) missing(schema *value, name string, at place) findings {
	declared := schema.get("properties").get(name)
	what := "is missing, the server requires it"
	if wish := c.wants(declared, maxReferences); wish != "" && c.quiet == 0 {
		what = "is missing, the server asked for " + wish
	}
	return c.fault(at.field(name, declared), "required", what)
}

// checkPatterns applies the patternProperties that a member's name matches.
func (c *checker) checkPatterns(patterns *value, m member, at place, f *findings) (matched, unsure bool) {
	if patterns == nil {
		return false, false
	}
	for _, p := range patterns.members {
		key := &value{kind: kindString, text: p.name}
		compiled, err := c.pattern(key)
		if err != nil {
			f.add(c.skip(at, "pattern "+quote(p.name)+" "+err.Error()))
			unsure = true
			continue
		}
		if fits, ok := c.matches(compiled, m.name); ok && fits {
			matched = true
			f.add(c.check(p.value, m.value, at))
		}
	}
	return matched, unsure
}

// checkDependent evaluates what one field's presence asks of the object.
func (c *checker) checkDependent(schema, v *value, at place) (f findings) {
	if required := schema.get("dependentRequired"); required != nil {
		for _, m := range required.members {
			if v.get(m.name) == nil {
				continue
			}
			for _, name := range m.value.items {
				if name.kind == kindString && v.get(name.text) == nil {
					f.add(c.fault(at.field(name.text, nil), "dependentRequired",
						"is missing, the server requires it together with "+clip(m.name)))
				}
			}
		}
	}
	if schemas := schema.get("dependentSchemas"); schemas != nil {
		for _, m := range schemas.members {
			if v.get(m.name) != nil {
				f.add(c.check(m.value, v, at))
			}
		}
	}
	return f
}
