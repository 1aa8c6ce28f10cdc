package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Bounds on what is parsed for a check. They keep a hostile schema or answer
// from growing the proxy: a parsed value takes some hundred bytes.
const (
	maxDepth       = 128     // nesting of a schema or of an answer's content
	maxValues      = 100_000 // JSON values in a schema or in an answer's content
	maxSchemaBytes = 1 << 20 // bytes of a requestedSchema
	indexedFrom    = 16      // members from which an object gets an index
)

var (
	errNotJSON    = errors.New("is not valid JSON")
	errNotUTF8    = errors.New("is not valid UTF-8")
	errNotUnicode = errors.New("holds half of a surrogate pair, which is not Unicode text")
	errTooDeep    = errors.New("is nested too deeply to be checked")
	errTooMany    = errors.New("holds too many values to be checked")
)

type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is a parsed JSON value that still knows its own text, so that numbers
// keep their digits and edits can be spliced.
type value struct {
	kind    kind
	raw     []byte         // its text, a part of the document
	start   int            // offset of raw in the document
	text    string         // a string's decoded text
	items   []*value       // an array's items
	members []member       // an object's members in the order of the text
	index   map[string]int // a large object's names, each to its last member

	canonical string // see canon
}

type member struct {
	name  string // decoded
	key   []byte // the name's text, with its quotes
	start int    // offset of key in the document
	value *value
}

func (m member) end() int { return m.value.start + len(m.value.raw) }

// get returns the value of the last member of that exact name, which is the one
// that JavaScript, Python and Go read, or nil.
func (v *value) get(name string) *value {
	if v == nil || v.kind != kindObject {
		return nil
	}
	if i := v.last(name); i >= 0 {
		return v.members[i].value
	}
	return nil
}

func (v *value) last(name string) int {
	if v.index != nil {
		if i, ok := v.index[name]; ok {
			return i
		}
		return -1
	}
	for i := len(v.members) - 1; i >= 0; i-- {
		if v.members[i].name == name {
			return i
		}
	}
	return -1
}

// is reports whether v is the string s.
func (v *value) is(s string) bool { return v != nil && v.kind == kindString && v.text == s }

// names reports whether v is one of these strings.
func (v *value) names(names ...string) bool {
	return v != nil && v.kind == kindString && slices.Contains(names, v.text)
}

// isTrue reports whether v is the literal true.
func (v *value) isTrue() bool { return v != nil && v.kind == kindBoolean && v.raw[0] == 't' }

// isFalse reports whether v is the literal false.
func (v *value) isFalse() bool { return v != nil && v.kind == kindBoolean && v.raw[0] == 'f' }

// parseValue parses a whole JSON document within the bounds of this package.
func parseValue(doc []byte) (*value, error) {
	if !utf8.Valid(doc) {
		return nil, errNotUTF8
	}
	return parse(doc, maxDepth)
}

// parseTop parses the outermost object or array of doc and leaves what is
// inside its members as raw text.
func parseTop(doc []byte) (*value, error) { return parse(doc, 0) }

func parse(doc []byte, depth int) (*value, error) {
	if !json.Valid(doc) {
		return nil, errNotJSON
	}
	p := &parser{doc: doc, depth: depth, left: maxValues}
	p.space()
	return p.value(0)
}

// parser walks a document that is known to be valid JSON.
type parser struct {
	doc   []byte
	at    int
	depth int // 0: the outermost value's members are left unparsed
	left  int // values that may still be made
}

func (p *parser) space() {
	for p.at < len(p.doc) {
		switch p.doc[p.at] {
		case ' ', '\t', '\n', '\r', ',', ':':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (*value, error) {
	if p.left--; p.left < 0 {
		return nil, errTooMany
	}
	v := &value{start: p.at}
	var err error
	switch c := p.doc[p.at]; c {
	case '{', '[':
		v.kind = kindObject
		if c == '[' {
			v.kind = kindArray
		}
		switch {
		case depth > 0 && p.depth == 0:
			p.skip()
		case depth >= p.depth && p.depth > 0:
			return nil, errTooDeep
		case c == '{':
			err = p.object(v, depth)
		default:
			err = p.array(v, depth)
		}
	case '"':
		v.kind = kindString
		v.text, err = unquote(p.string())
	case 't', 'f', 'n':
		v.kind = kindBoolean
		if c == 'n' {
			v.kind = kindNull
		}
		p.at += len("true")
		if c == 'f' {
			p.at++
		}
	default:
		v.kind = kindNumber
		for p.at < len(p.doc) && numberByte(p.doc[p.at]) {
			p.at++
		}
	}
	v.raw = p.doc[v.start:p.at]
	return v, err
}

func numberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func (p *parser) object(v *value, depth int) error {
	p.at++
	for p.space(); p.doc[p.at] != '}'; p.space() {
		m := member{start: p.at}
		m.key = p.string()
		var err error
		if m.name, err = unquote(m.key); err != nil {
			return err
		}
		p.space()
		if m.value, err = p.value(depth + 1); err != nil {
			return err
		}
		v.members = append(v.members, m)
	}
	p.at++
	if len(v.members) >= indexedFrom {
		v.index = make(map[string]int, len(v.members))
		for i, m := range v.members {
			v.index[m.name] = i
		}
	}
	return nil
}

func (p *parser) array(v *value, depth int) error {
	p.at++
	for p.space(); p.doc[p.at] != ']'; p.space() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	p.at++
	return nil
}

// string steps over a string and returns its text with the quotes.
func (p *parser) string() []byte {
	start := p.at
	for p.at++; p.doc[p.at] != '"'; p.at++ {
		if p.doc[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	return p.doc[start:p.at]
}

// skip steps over an object or array without a look at what is in it.
func (p *parser) skip() {
	for nested := 0; ; {
		switch p.doc[p.at] {
		case '"':
			p.string()
			continue
		case '{', '[':
			nested++
		case '}', ']':
			nested--
		}
		if p.at++; nested == 0 {
			return
		}
	}
}

// unquote decodes a JSON string. Half a surrogate pair is an error: decoders
// replace it, keep it or fail, so two readers would see two texts.
func unquote(quoted []byte) (string, error) {
	inner := quoted[1 : len(quoted)-1]
	escaped := false
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			continue
		}
		escaped = true
		if i++; inner[i] != 'u' {
			continue
		}
		switch unit := hex4(inner[i+1:]); {
		case 0xD800 <= unit && unit < 0xDC00:
			i += len("uXXXX")
			if i+1 >= len(inner) || inner[i] != '\\' || inner[i+1] != 'u' {
				return "", errNotUnicode
			}
			if low := hex4(inner[i+2:]); low < 0xDC00 || low > 0xDFFF {
				return "", errNotUnicode
			}
			i++
		case 0xDC00 <= unit && unit <= 0xDFFF:
			return "", errNotUnicode
		}
	}
	if !escaped {
		return string(inner), nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", errNotJSON
	}
	return s, nil
}

// hex4 reads the four hexadecimal digits of a \u escape.
func hex4(b []byte) uint64 {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return n
}

// duplicate returns the name of a member that an object in v has twice.
func (v *value) duplicate() (name string, found bool) {
	for i, m := range v.members {
		if v.last(m.name) != i {
			return m.name, true
		}
		if name, found := m.value.duplicate(); found {
			return name, true
		}
	}
	for _, item := range v.items {
		if name, found := item.duplicate(); found {
			return name, true
		}
	}
	return "", false
}
