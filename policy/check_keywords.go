package policy

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// typeIs reports whether v is of a JSON Schema type, and whether there is such a
// type. 1.0 is an integer.
func typeIs(v *value, name string) (is, known bool) {
	switch name {
	case "null":
		return v.kind == kindNull, true
	case "boolean":
		return v.kind == kindBoolean, true
	case "string":
		return v.kind == kindString, true
	case "array":
		return v.kind == kindArray, true
	case "object":
		return v.kind == kindObject, true
	case "number":
		return v.kind == kindNumber, true
	case "integer":
		d, ok := parseDecimal(v.raw)
		return v.kind == kindNumber && ok && d.integer(), true
	}
	return false, false
}

func (c *checker) checkType(schema, v *value, at place) findings {
	t := schema.get("type")
	if t == nil {
		return findings{}
	}
	names := t.items
	if t.kind == kindString {
		names = []*value{t}
	}
	if len(names) == 0 {
		return c.skip(at, "its type is neither a name nor a list of names")
	}
	for _, name := range names {
		is, known := typeIs(v, name.text)
		if !known {
			return c.skip(at, "its type "+quoteValue(name)+" is not a type of JSON Schema")
		}
		if is {
			if _, ok := parseDecimal(v.raw); v.kind == kindNumber && !ok {
				return c.fail(at, "type", v, "is a number that no reader keeps exactly", schema)
			}
			return findings{}
		}
	}
	if v.kind == kindNull && schema.get("nullable").isTrue() {
		return findings{}
	}
	return c.wrongType(schema, v, at)
}

func (c *checker) wrongType(schema, v *value, at place) findings {
	if c.quiet > 0 {
		return c.fail(at, "type", v, "", nil)
	}
	switch v.kind {
	case kindBoolean, kindString:
		return c.fail(at, "type", v, "is "+nouns[v.kind], schema)
	case kindNumber:
		if schema.get("type").is("integer") {
			return c.fail(at, "type", v, "is not a whole number", schema)
		}
		return c.fail(at, "type", v, "is a number", schema)
	}
	what := nouns[v.kind] + " was sent"
	if wish := c.wants(schema, maxReferences); wish != "" {
		what += ", the server asked for " + wish
	}
	return c.fault(at, "type", what)
}

func (c *checker) checkEnum(schema, v *value, at place) (f findings) {
	if constant := schema.get("const"); constant != nil && !equal(constant, v) {
		f.add(c.fail(at, "const", v, "is another value", schema))
	}
	enum := schema.get("enum")
	if enum == nil {
		return f
	}
	if enum.kind != kindArray {
		f.add(c.skip(at, "its enum is not a list"))
		return f
	}
	if !c.spend(len(enum.items) / 8) {
		f.unsure = true
		return f
	}
	for _, allowed := range enum.items {
		if equal(allowed, v) {
			return f
		}
	}
	f.add(c.fail(at, "enum", v, "is not an option", schema))
	return f
}

// numberKeywords are the keywords that compare a number, each with the faults of
// a value that stands to the limit as said.
var numberKeywords = []struct {
	name  string
	holds func(d, limit decimal) bool
	fault string
}{
	{"minimum", func(d, limit decimal) bool { return d.compare(limit) >= 0 }, "is too small"},
	{"maximum", func(d, limit decimal) bool { return d.compare(limit) <= 0 }, "is too large"},
	{"exclusiveMinimum", func(d, limit decimal) bool { return d.compare(limit) > 0 }, "is too small"},
	{"exclusiveMaximum", func(d, limit decimal) bool { return d.compare(limit) < 0 }, "is too large"},
	{"multipleOf", decimal.multipleOf, "is not such a multiple"},
}

func (c *checker) checkNumber(schema, v *value, at place) (f findings) {
	var d decimal
	var parsed, ok bool
	for _, k := range numberKeywords {
		keyword := schema.get(k.name)
		if keyword == nil {
			continue
		}
		if !parsed {
			d, ok = parseDecimal(v.raw)
			parsed = true
		}
		limit, readable := parseDecimal(keyword.raw)
		switch {
		case keyword.kind != kindNumber || !readable || k.name == "multipleOf" && limit.sign() <= 0:
			f.add(c.skip(at, k.name+" "+quoteValue(keyword)+" is no limit"))
		case !ok:
			f.add(c.fail(at, k.name, v, "is a number that no reader keeps exactly", schema))
		case !k.holds(d, limit):
			f.add(c.fail(at, k.name, v, k.fault, schema))
		}
	}
	return f
}

// checkCount checks a length or a number of things against two keywords.
func (c *checker) checkCount(schema, v *value, at place, n int, least, most, unit string) (f findings) {
	for _, keyword := range []string{least, most} {
		limit := schema.get(keyword)
		if limit == nil {
			continue
		}
		d, ok := parseDecimal(limit.raw)
		if limit.kind != kindNumber || !ok || !d.integer() || d.sign() < 0 {
			f.add(c.skip(at, keyword+" "+quoteValue(limit)+" is no count"))
			continue
		}
		order := decimalOf(n).compare(d)
		if keyword == least && order < 0 || keyword == most && order > 0 {
			units := unit
			if n != 1 {
				units += "s"
			}
			f.add(c.fail(at, keyword, v, fmt.Sprintf("has %d %s", n, units), schema))
		}
	}
	return f
}

func (c *checker) checkString(schema, v *value, at place) (f findings) {
	if schema.get("minLength") != nil || schema.get("maxLength") != nil {
		f.add(c.checkCount(schema, v, at, utf8.RuneCountInString(v.text), "minLength", "maxLength", "character"))
	}
	if p := schema.get("pattern"); p != nil {
		f.add(c.checkPattern(schema, p, v, at))
	}
	if name := schema.get("format"); name != nil {
		if known, ok := formats[name.text]; ok && !known.valid(v.text) {
			f.add(c.fail(at, "format", v, "is something else", schema))
		}
	}
	return f
}

func (c *checker) checkPattern(schema, keyword, v *value, at place) findings {
	if keyword.kind != kindString {
		return c.skip(at, "its pattern is not a string")
	}
	p, err := c.pattern(keyword)
	if err != nil {
		return c.skip(at, "pattern "+quote(keyword.text)+" "+err.Error())
	}
	matched, ok := c.matches(p, v.text)
	if !ok {
		return findings{unsure: true}
	}
	if !matched {
		return c.fail(at, "pattern", v, "is something else", schema)
	}
	return findings{}
}

// pattern compiles the pattern in keyword once.
func (c *checker) pattern(keyword *value) (expression, error) {
	if done, ok := c.patterns[keyword]; ok {
		return done.expression, done.err
	}
	if c.patterns == nil {
		c.patterns = map[*value]compiledPattern{}
	}
	if c.steps < 0 {
		return expression{}, errors.New("is one too many")
	}
	p, err := compilePattern(keyword.text)
	c.spend(p.instructions + len(keyword.text)/8)
	c.patterns[keyword] = compiledPattern{p, err}
	return p, err
}

// matches matches text; ok is false if there are not enough steps left for it.
func (c *checker) matches(p expression, text string) (matched, ok bool) {
	if !c.spend(p.work(text)) {
		return false, false
	}
	return p.re.MatchString(text), true
}
