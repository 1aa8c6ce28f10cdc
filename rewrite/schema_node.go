package rewrite

import "unicode/utf8"

// A keyword is one of the JSON Schema keywords that the rules read.
type keyword uint8

const (
	kwOther keyword = iota
	kwRef
	kwAllOf
	kwAnyOf
	kwOneOf
	kwEnum
	kwEnumNames
	kwConst
	kwType
	kwTitle
	kwDefault
	kwFormat
	kwPattern
	kwMinLength
	kwMaxLength
	kwMinimum
	kwMaximum
	kwExclusiveMinimum
	kwExclusiveMaximum
	kwMultipleOf
	kwProperties
	kwItems
	kwMinItems
	kwMaxItems
	kwUniqueItems
	keywordCount
)

var keywordNames = [keywordCount]string{
	kwRef: "$ref", kwAllOf: "allOf", kwAnyOf: "anyOf", kwOneOf: "oneOf",
	kwEnum: "enum", kwEnumNames: "enumNames", kwConst: "const",
	kwType: "type", kwTitle: "title", kwDefault: "default", kwFormat: "format", kwPattern: "pattern",
	kwMinLength: "minLength", kwMaxLength: "maxLength",
	kwMinimum: "minimum", kwMaximum: "maximum",
	kwExclusiveMinimum: "exclusiveMinimum", kwExclusiveMaximum: "exclusiveMaximum", kwMultipleOf: "multipleOf",
	kwProperties: "properties",
	kwItems:      "items", kwMinItems: "minItems", kwMaxItems: "maxItems", kwUniqueItems: "uniqueItems",
}

// keywordOf says which keyword a key in its quotes is.
func keywordOf(quoted []byte, escaped bool) keyword {
	name := quoted[1 : len(quoted)-1]
	if escaped {
		name = []byte(decodeKey(quoted, true))
	}
	if len(name) < len(keywordsByLength) {
		for _, k := range keywordsByLength[len(name)] {
			if string(name) == keywordNames[k] {
				return k
			}
		}
	}
	return kwOther
}

// keywordsByLength lists the keywords whose names have that many bytes.
var keywordsByLength = func() (by [len("exclusiveMinimum") + 1][]keyword) {
	for k := kwOther + 1; k < keywordCount; k++ {
		n := len(keywordNames[k])
		by[n] = append(by[n], k)
	}
	return by
}()

// keywordKeys are the keywords as keys, in their quotes.
var keywordKeys = func() (keys [keywordCount][]byte) {
	for k := range keys {
		keys[k] = []byte(`"` + keywordNames[k] + `"`)
	}
	return keys
}()

// foldedKeywords finds the keyword that a key is in another case.
var foldedKeywords = func() map[string]keyword {
	m := map[string]keyword{}
	for k := kwOther + 1; k < keywordCount; k++ {
		m[Fold(keywordNames[k])] = k
	}
	return m
}()

// A node is one schema object in the work: its members in order, of which
// each stands in the slot of a member of the text that it was parsed from.
// Rendered, slots that were not touched keep their bytes.
type node struct {
	src     []byte
	slots   []Span // the members of src
	members []member
	last    [keywordCount]int // where in members the one that counts stands, plus one
	ever    [keywordCount]bool
	changed bool
	edits   Edits // reused
}

// An arena holds the texts that a refit makes, so that each need not be an
// allocation. What was taken from it stays as it is when it grows.
type arena []byte

// since takes the text that was added after the arena had that length.
func (a arena) since(n int) []byte { return a[n:len(a):len(a)] }

type member struct {
	kw    keyword
	key   []byte // in its quotes
	value []byte
	slot  int  // prepended: -1
	own   bool // as it stands in src
}

// parse reads the object that src is.
func (n *node) parse(src []byte) {
	*n = node{src: src, slots: n.slots[:0], members: n.members[:0], edits: n.edits}
	n.edits.Reset()
	walkMembers(src, Span{0, len(src)}, func(key, value Span, escaped bool) bool {
		k := keywordOf(key.Of(src), escaped)
		n.members = append(n.members, member{k, key.Of(src), value.Of(src), len(n.slots), true})
		n.slots = append(n.slots, Span{key.Start, value.End})
		n.last[k], n.ever[k] = len(n.members), true
		return true
	})
}

// get returns the value of a keyword, nil if there is none. Of duplicates it
// is the last.
func (n *node) get(k keyword) []byte {
	if i := n.last[k]; i > 0 {
		return n.members[i-1].value
	}
	return nil
}

func (n *node) has(k keyword) bool { return n.last[k] > 0 }

// is reports whether the keyword has exactly that value.
func (n *node) is(k keyword, text string) bool {
	i := n.last[k]
	return i > 0 && string(n.members[i-1].value) == text
}

// set changes the value of a keyword that is there.
func (n *node) set(k keyword, value []byte) { n.rename(k, k, value) }

// rename puts another keyword and value in the place of one that is there.
func (n *node) rename(from, to keyword, value []byte) {
	m := &n.members[n.last[from]-1]
	if from != to {
		n.drop(to)
		m = &n.members[n.last[from]-1]
		*m = member{kw: to, key: keywordKeys[to], slot: m.slot}
	}
	m.value, m.own = value, false
	n.reindex()
	if from != to {
		n.drop(from) // its duplicates
	}
}

// after adds a keyword behind one that is there.
func (n *node) after(k, add keyword, value []byte) {
	n.drop(add)
	at := n.last[k]
	n.members = append(n.members, member{})
	copy(n.members[at+1:], n.members[at:])
	n.members[at] = member{kw: add, key: keywordKeys[add], value: value, slot: n.members[at-1].slot}
	n.members[at-1].own = false
	n.reindex()
}

// prepend adds a keyword before all others.
func (n *node) prepend(k keyword, value []byte) {
	n.members = append(n.members, member{})
	copy(n.members[1:], n.members)
	n.members[0] = member{kw: k, key: keywordKeys[k], value: value, slot: -1}
	n.reindex()
}

// drop takes a keyword out, with its duplicates.
func (n *node) drop(k keyword) {
	if !n.has(k) {
		return
	}
	kept := n.members[:0]
	for _, m := range n.members {
		if m.kw != k {
			kept = append(kept, m)
		}
	}
	n.members = kept
	n.reindex()
}

// splice puts the members of another object in the place of a keyword. Those
// that stand beside the keyword win.
func (n *node) splice(k keyword, with []byte) {
	var others map[string]bool // the names beside it that are no keywords
	for _, m := range n.members {
		if m.kw == kwOther {
			if others == nil {
				others = map[string]bool{}
			}
			others[keyText(m.key)] = true
		}
	}
	beside := func(kw keyword, quoted []byte) bool {
		if kw == kwOther {
			return others != nil && others[keyText(quoted)]
		}
		return kw != k && n.has(kw)
	}
	at := n.last[k] - 1
	slot := n.members[at].slot
	out := make([]member, 0, len(n.members))
	for i, m := range n.members {
		if m.kw != k {
			out = append(out, m)
		}
		if i != at {
			continue
		}
		walkMembers(with, Span{0, len(with)}, func(key, value Span, escaped bool) bool {
			quoted := key.Of(with)
			if kw := keywordOf(quoted, escaped); !beside(kw, quoted) {
				out = append(out, member{kw, quoted, value.Of(with), slot, false})
			}
			return true
		})
	}
	n.members = out
	n.reindex()
}

func (n *node) reindex() {
	n.changed = true
	n.last = [keywordCount]int{}
	for i, m := range n.members {
		n.last[m.kw], n.ever[m.kw] = i+1, true
	}
}

// render returns the object's text, and whether it is another than src. Once
// it is, exactly one member is left of each keyword: the one that counts.
func (n *node) render(a *arena) ([]byte, bool) {
	if !n.changed {
		return n.src, false
	}
	e := &n.edits
	i := 0
	group := func(slot int) []member {
		from := i
		for i < len(n.members) && n.members[i].slot == slot {
			i++
		}
		return n.members[from:i]
	}
	text := func(first, count int) []byte {
		from := len(*a)
		for k := range count {
			n.appendMember(a, from, first+k)
		}
		return a.since(from)
	}
	if added := text(0, len(group(-1))); len(added) > 0 {
		e.Prepend(n.src, Span{0, len(n.src)}, added)
	}
	for slot, at := range n.slots {
		first := i
		g := group(slot)
		if len(g) == 1 && g[0].own && n.counts(first) {
			continue
		}
		if with := text(first, len(g)); len(with) > 0 {
			e.Replace(at, with)
		} else {
			e.Remove(at)
		}
	}
	from := len(*a)
	*a = e.appendTo(*a, n.src)
	return a.since(from), true
}

// appendMember adds the text of one member, if it is to stay, to those that
// were added since the arena had the length from.
func (n *node) appendMember(a *arena, from, i int) {
	if !n.counts(i) {
		return
	}
	if len(*a) > from {
		*a = append(*a, ',')
	}
	m := n.members[i]
	*a = append(append(append(*a, m.key...), ':'), m.value...)
}

// counts reports whether a member is to be left in a changed object: it is
// none of ours, or the last of its keyword, and no variant of one.
func (n *node) counts(i int) bool {
	m := n.members[i]
	if m.kw != kwOther {
		return n.last[m.kw] == i+1
	}
	k := variantOf(m.key)
	return k == kwOther || !n.ever[k]
}

// variantOf says which keyword a key that is none of them is in another case.
func variantOf(quoted []byte) keyword {
	name := quoted[1 : len(quoted)-1]
	for _, c := range name {
		if c == '\\' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
			return foldedKeywords[Fold(keyText(quoted))]
		}
	}
	return foldedKeywords[string(name)]
}

// keyText decodes a key in its quotes.
func keyText(quoted []byte) string { return decodeKey(quoted, true) }
