package svg

import (
	"bytes"
	"maps"
	"slices"
)

// Markup writes the document as SVG: elements as they stand, attributes in the
// order of their names, values in one spelling. Parse makes the same document
// of it.
func (d *Document) Markup() []byte {
	var b bytes.Buffer
	b.WriteString(`<svg xmlns="` + namespace + `" viewBox="` + formatAll(d.viewBox[:]) + `"`)
	d.root.writeRest(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	b.WriteString("<" + n.name)
	n.writeRest(b)
}

// writeRest writes what follows an element's name. No value holds a character
// that would need escaping: each was written by this package.
func (n *node) writeRest(b *bytes.Buffer) {
	for _, name := range slices.Sorted(maps.Keys(n.attrs)) {
		b.WriteString(" " + name + `="` + n.attrs[name].text + `"`)
	}
	if len(n.children) == 0 {
		b.WriteString("/>")
		return
	}
	b.WriteString(">")
	for _, c := range n.children {
		c.write(b)
	}
	b.WriteString("</" + n.name + ">")
}
