package policy

import "strings"

// checkUndeclared checks the fields that the form says nothing about: they may
// be there, but not under a declared field's name in another case, which Go's
// encoding/json would read as that field, and only with values of the kinds that
// ElicitResult allows (string, number, boolean, list of strings).
func (c *checker) checkUndeclared(content *value) (f findings) {
	names := make(map[string]string, len(c.fields))
	for _, m := range c.fields {
		names[m.name] = m.name
		names[fold(m.name)] = m.name
	}
	for _, m := range content.members {
		if names[m.name] == m.name {
			continue
		}
		at := place{}.field(m.name, nil)
		if declared, ok := names[fold(m.name)]; ok {
			f.add(c.fault(at, "case", "differs from "+clip(declared)+" in case alone"))
			continue
		}
		if !formValue(m.value) {
			f.add(c.fault(at, "type", nouns[m.value.kind]+" was sent, an answer holds strings, numbers, booleans and lists of strings"))
		}
	}
	return f
}

// fold maps names that differ in case alone to one text.
func fold(name string) string {
	return strings.ToLower(strings.ToUpper(name))
}

// formValue reports whether ElicitResult allows the value.
func formValue(v *value) bool {
	for _, item := range v.items {
		if item.kind != kindString {
			return false
		}
	}
	return v.kind != kindNull && v.kind != kindObject
}
