package policy

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxSteps bounds one decision's work: a step is a schema met by a value, or as
// much as that in comparing and matching. All of them take some 0.2 s; a form of
// 20 fields takes about 50.
const maxSteps = 200_000

// maxNesting bounds how many schemas can be under evaluation within each other.
const maxNesting = 2 * maxDepth

// form is the form that the server asked for.
type form struct {
	root     *value // its requestedSchema; nil if there is nothing to check against
	note     string // why there is nothing to check against
	fields   []member
	byName   map[string]*value // the fields' schemas
	required []string
	closed   bool // undeclared fields are refused or not spoken of
	steps    int  // left; negative: there were too few
}

// newForm parses a requestedSchema. It always succeeds: what cannot be read is
// noted, and is not checked.
func newForm(schema []byte) *form {
	f := &form{steps: maxSteps, closed: true, byName: map[string]*value{}}
	if len(bytes.TrimSpace(schema)) == 0 {
		return f
	}
	if len(schema) > maxSchemaBytes {
		f.note = fmt.Sprintf("requestedSchema: is larger than %d bytes", maxSchemaBytes)
		return f
	}
	root, err := parseValue(schema)
	switch {
	case err != nil:
		f.note = "requestedSchema: " + err.Error()
	case root.kind != kindObject:
		f.note = "requestedSchema: is not an object"
	case root.get("type").names("string", "number", "integer", "boolean", "array", "null"):
		f.note = "requestedSchema: its type is not object"
	default:
		f.root = root
		f.declare(root, maxReferences)
	}
	return f
}

// maxReferences bounds the chain of $ref and allOf in which fields are declared.
const maxReferences = 16

// declare collects the fields of schema, also through $ref and allOf.
func (f *form) declare(schema *value, hops int) {
	if hops == 0 || schema == nil || schema.kind != kindObject {
		return
	}
	if properties := schema.get("properties"); properties != nil {
		for i, m := range properties.members {
			if properties.last(m.name) == i && f.byName[m.name] == nil {
				f.fields = append(f.fields, m)
				f.byName[m.name] = m.value
			}
		}
	}
	if additional := schema.get("additionalProperties"); additional != nil && !additional.isFalse() {
		f.closed = false
	}
	if schema.get("patternProperties") != nil {
		f.closed = false
	}
	if required := schema.get("required"); required != nil {
		for _, name := range required.items {
			f.required = append(f.required, name.text)
		}
	}
	if target, _ := f.resolve(schema.get("$ref")); target != nil {
		f.declare(target, hops-1)
	}
	if all := schema.get("allOf"); all != nil {
		for _, branch := range all.items[:min(len(all.items), maxReferences)] {
			f.declare(branch, hops/2)
		}
	}
}

// resolve follows a $ref into the form itself. A reference to anywhere else is
// never fetched.
func (f *form) resolve(ref *value) (target *value, fault string) {
	switch {
	case ref == nil:
		return nil, ""
	case ref.kind != kindString:
		return nil, "$ref is not a string"
	case !strings.HasPrefix(ref.text, "#"):
		return nil, "$ref " + quote(ref.text) + " is not fetched"
	}
	pointer, err := url.PathUnescape(ref.text[1:])
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil, "$ref " + quote(ref.text) + " is not a JSON pointer"
	}
	target = f.root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		i, err := strconv.Atoi(token)
		switch {
		case target.kind == kindArray && err == nil && 0 <= i && i < len(target.items):
			target = target.items[i]
		default:
			target = target.get(token)
		}
		if target == nil {
			return nil, "$ref " + quote(ref.text) + " leads nowhere"
		}
	}
	return target, ""
}

// findings are what came of one schema and one value.
type findings struct {
	problems []Problem
	unsure   bool // something could not be decided
}

func (f *findings) add(g findings) {
	f.unsure = f.unsure || g.unsure
	f.problems = append(f.problems, g.problems[:min(len(g.problems), maxProblems-len(f.problems))]...)
}

func (f findings) valid() bool { return len(f.problems) == 0 }

// place is where in the answer a value stands, for people.
type place struct {
	path   string // "" is the content itself
	schema *value // of the field, if the form declares it
	hidden bool   // inside a field that looks like a secret
}

// visit is a schema and the value that it is being applied to.
type visit struct{ schema, value *value }

// checker evaluates a form's schemas.
type checker struct {
	*form
	active    []visit
	quiet     int // > 0: the sentences of problems are not needed
	unchecked []string
	patterns  map[*value]compiledPattern
}

type compiledPattern struct {
	expression
	err error
}

// spend takes steps and reports whether there were that many left.
func (c *checker) spend(steps int) bool {
	if c.steps < steps {
		c.steps = -1
		return false
	}
	c.steps -= steps
	return true
}

// skip notes that something about a field could not be checked.
func (c *checker) skip(at place, fault string) findings {
	note := at.label() + ": " + fault
	if len(c.unchecked) < maxUnchecked && !slices.Contains(c.unchecked, note) {
		c.unchecked = append(c.unchecked, note)
	}
	return findings{unsure: true}
}

// check evaluates one schema against one value.
func (c *checker) check(schema, v *value, at place) (f findings) {
	here := visit{schema, v}
	switch {
	case !c.spend(1 + len(v.text)/64):
		return findings{unsure: true}
	case schema.isTrue():
		return f
	case schema.isFalse():
		return c.fail(at, "false", v, "is not wanted", nil)
	case schema.kind != kindObject:
		return c.skip(at, "its schema is neither an object nor a boolean")
	case len(c.active) >= maxNesting || slices.Contains(c.active, here):
		return c.skip(at, "its schema refers to itself")
	}
	c.active = append(c.active, here)
	defer func() { c.active = c.active[:len(c.active)-1] }()

	if ref := schema.get("$ref"); ref != nil {
		target, fault := c.resolve(ref)
		if target == nil {
			f.add(c.skip(at, fault))
		} else {
			f.add(c.check(target, v, at))
		}
	}
	typed := c.checkType(schema, v, at)
	f.add(typed)
	if !typed.valid() {
		return f // what else is wrong with a value of the wrong type helps nobody
	}
	f.add(c.checkEnum(schema, v, at))
	switch v.kind {
	case kindNumber:
		f.add(c.checkNumber(schema, v, at))
	case kindString:
		f.add(c.checkString(schema, v, at))
	case kindArray:
		f.add(c.checkArray(schema, v, at))
	case kindObject:
		f.add(c.checkObject(schema, v, at))
	}
	f.add(c.checkBranches(schema, v, at))
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"} {
		if schema.get(keyword) != nil {
			f.add(c.skip(at, keyword+" is not evaluated"))
		}
	}
	return f
}

// check checks an answer's whole content.
func (f *form) check(content *value) ([]Problem, []string) {
	c := &checker{form: f}
	var found findings
	reported := map[string]bool{}
	for i, m := range content.members {
		at := place{}.field(m.name, nil)
		if content.last(m.name) != i && !reported[m.name] {
			reported[m.name] = true
			found.add(c.fault(at, "duplicate", "is there more than once"))
		}
		if name, twice := m.value.duplicate(); twice {
			found.add(c.fault(at, "duplicate", "has "+quote(name)+" more than once"))
		}
	}
	if f.root == nil {
		if f.note != "" {
			c.unchecked = append(c.unchecked, f.note)
		}
		return found.problems, c.unchecked
	}
	found.add(c.check(f.root, content, place{}))
	if f.closed && len(f.fields) > 0 {
		found.add(c.checkUndeclared(content))
	}
	if f.steps < 0 {
		found.problems = found.problems[:min(len(found.problems), maxProblems-1)]
		found.add(c.fault(place{}, "size", "this answer takes too long to check against its form"))
	}
	return found.problems, c.unchecked
}
