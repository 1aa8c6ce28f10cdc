package svg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const namespace = "http://www.w3.org/2000/svg"

// A Document is a rebuilt SVG.
type Document struct {
	root    *node
	viewBox [4]float64 // x, y, width, height
	ids     map[string]*node
}

// A node is one element of a rebuilt document.
type node struct {
	name     string
	attrs    map[string]value
	children []*node
}

// A value is an attribute's value: read, and as it is written anew.
type value struct {
	text    string
	numbers []float64 // a length, a list, a matrix's six, points
	path    path
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Parse reads src and builds of it what the allowlist knows.
func Parse(src []byte) (*Document, error) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 {
		return nil, refused("not UTF-8 text")
	}
	b := builder{doc: &Document{ids: make(map[string]*node)}, decoder: xml.NewDecoder(bytes.NewReader(src))}
	b.decoder.Strict = true
	b.decoder.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errors.New("not UTF-8") }
	if err := b.build(); err != nil {
		if !errors.Is(err, ErrRefused) {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return nil, err
	}
	b.doc.resolveGradients(b.elements)
	return b.doc, nil
}

// A builder builds a document from the tokens of another.
type builder struct {
	doc      *Document
	decoder  *xml.Decoder
	open     []*node
	tokens   int
	elements int
	segments int
}

// build reads up to the root's end. What follows it is never looked at.
func (b *builder) build() error {
	for {
		token, err := b.token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := b.start(t); err != nil {
				return err
			}
		case xml.EndElement:
			b.open = b.open[:len(b.open)-1]
			if len(b.open) == 0 {
				return nil
			}
		}
	}
}

// token returns the next token. A declaration of the version is the only
// instruction that may be there, and a DOCTYPE may not.
func (b *builder) token() (xml.Token, error) {
	if b.tokens++; b.tokens > maxTokens {
		return nil, refused("too many tokens")
	}
	token, err := b.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case xml.Directive:
		return nil, refused("a directive")
	case xml.ProcInst:
		if t.Target != "xml" || b.tokens != 1 {
			return nil, refused("a processing instruction")
		}
	}
	return token, nil
}

// start adds an element that is allowed where it stands, and skips all of any
// other.
func (b *builder) start(t xml.StartElement) error {
	if len(b.open) == 0 {
		if t.Name.Local != "svg" || t.Name.Space != namespace && t.Name.Space != "" {
			return refused("the root is not svg")
		}
	} else if !allowedChild(b.open[len(b.open)-1].name, t.Name) {
		return b.skip()
	}
	if len(b.open) >= maxDepth {
		return refused("nested too deep")
	}
	if b.elements++; b.elements > maxElements {
		return refused("too many elements")
	}
	n := &node{name: t.Name.Local, attrs: make(map[string]value)}
	if len(b.open) == 0 {
		b.doc.root = n
		if err := b.doc.readViewBox(t.Attr); err != nil {
			return err
		}
	}
	if err := b.attributes(n, t.Attr); err != nil {
		return err
	}
	if hidden := n.attrs["display"]; hidden.text == "none" {
		return b.skip()
	}
	if id, ok := n.attrs["id"]; ok {
		if _, taken := b.doc.ids[id.text]; taken {
			delete(n.attrs, "id") // the first one has it
		} else {
			b.doc.ids[id.text] = n
		}
	}
	if len(b.open) > 0 {
		parent := b.open[len(b.open)-1]
		parent.children = append(parent.children, n)
	}
	b.open = append(b.open, n)
	return nil
}

// skip reads to the end of an element that was started.
func (b *builder) skip() error {
	for depth := 1; depth > 0; {
		token, err := b.token()
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			if depth++; depth > 4*maxDepth {
				return refused("nested too deep")
			}
		case xml.EndElement:
			depth--
		}
	}
	return nil
}

// readViewBox reads the root's viewBox, or makes one of its width and height.
func (d *Document) readViewBox(attrs []xml.Attr) error {
	var width, height float64
	for _, a := range attrs {
		if a.Name.Space != "" {
			continue
		}
		var err error
		switch a.Name.Local {
		case "viewBox":
			v, ok, err := numbers(a.Value, 4)
			if err != nil {
				return err
			}
			if !ok || len(v) != 4 || v[2] <= 0 || v[3] <= 0 {
				return refused("viewBox %.40q", a.Value)
			}
			copy(d.viewBox[:], v)
		case "width":
			width, _, err = length(a.Value, 0)
		case "height":
			height, _, err = length(a.Value, 0)
		}
		if err != nil {
			return err
		}
	}
	if d.viewBox[2] > 0 {
		return nil
	}
	if width <= 0 || height <= 0 {
		return refused("no size")
	}
	d.viewBox = [4]float64{0, 0, width, height}
	return nil
}

// attributes reads an element's attributes, and the declarations in its style
// attribute, which override them (CSS Cascade).
func (b *builder) attributes(n *node, attrs []xml.Attr) error {
	var style string
	for _, a := range attrs {
		if a.Name.Space != "" {
			if a.Name.Local == "href" && isGradient(n.name) {
				b.template(n, a.Value)
			}
			continue
		}
		switch {
		case a.Name.Local == "style":
			style = a.Value
		case a.Name.Local == "href" && isGradient(n.name):
			b.template(n, a.Value)
		default:
			if err := b.attribute(n, a.Name.Local, a.Value); err != nil {
				return err
			}
		}
	}
	for declaration := range strings.SplitSeq(style, ";") {
		name, text, ok := strings.Cut(declaration, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || properties[name] == nil {
			continue
		}
		text, _, _ = strings.Cut(text, "!") // !important
		if err := b.attribute(n, name, strings.TrimSpace(text)); err != nil {
			return err
		}
	}
	return nil
}

// attribute adds one attribute if it is allowed and its value is one.
func (b *builder) attribute(n *node, name, text string) error {
	read := properties[name]
	if read == nil {
		read = geometry[n.name][name]
	}
	if read == nil {
		return nil
	}
	v, ok, err := read(b.doc, text)
	if err != nil {
		return err
	}
	if b.segments += len(v.path) + len(v.numbers); b.segments > maxSegments {
		return refused("too many path segments")
	}
	if ok {
		n.attrs[name] = v
	}
	return nil
}

// template notes which gradient n takes what it lacks from; resolveGradients
// does so and leaves no reference.
func (b *builder) template(n *node, href string) {
	if id, ok := strings.CutPrefix(strings.TrimSpace(href), "#"); ok && validID(id) {
		n.attrs[templateKey] = value{text: id}
	}
}

// templateKey is no attribute name, and never written.
const templateKey = "#template"

// resolveGradients copies into each gradient what it takes from another;
// elements is how many the document has so far.
func (d *Document) resolveGradients(elements int) {
	var all []*node
	var find func(*node)
	find = func(n *node) {
		if isGradient(n.name) {
			all = append(all, n)
		}
		for _, c := range n.children {
			find(c)
		}
	}
	find(d.root)
	for _, n := range all {
		from := d.ids[n.attrs[templateKey].text]
		for range 8 {
			if from == nil || !isGradient(from.name) || from == n {
				break
			}
			for name, v := range from.attrs {
				if _, has := n.attrs[name]; !has && name != "id" && geometry[n.name][name] != nil {
					n.attrs[name] = v
				}
			}
			if len(n.children) == 0 {
				if elements+len(from.children) <= maxElements {
					elements += len(from.children)
					n.children = from.children
				}
			}
			from = d.ids[from.attrs[templateKey].text]
		}
	}
	for _, n := range all {
		delete(n.attrs, templateKey)
	}
}

func isGradient(name string) bool { return name == "linearGradient" || name == "radialGradient" }
