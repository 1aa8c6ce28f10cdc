package rewrite

import (
	"strconv"
	"strings"
)

// An IconSet is what one carrier (a tool, a resource, an Implementation …) has
// of icons and website, and where.
type IconSet struct {
	Path    string // of the carrier, such as result.tools[3]
	Icons   []Icon
	Website Website

	object Span
	list   Span   // the member icons, empty if there is none that counts
	array  bool   // its value is an array
	drop   []Span // members that go in any case: duplicates, other spellings, no arrays
}

// An Icon is one entry of an icons array.
type Icon struct {
	Src      string // decoded; empty where Bad says why
	MimeType string // decoded; empty if there is none
	Bad      string // why the entry can't stay, whatever its URL; empty if it can

	at     Span
	object struct{ src, mime, sizes, theme Member }
}

// A Website is the websiteUrl of an Implementation.
type Website struct {
	URL string // decoded
	Bad string // why it can't stay, whatever its URL
	at  Span   // empty: there is none
}

// There reports whether there is a websiteUrl at all.
func (w Website) There() bool { return !w.at.Empty() }

// Icons finds the carriers in a message that have icons or a website.
func Icons(raw []byte, env Envelope, in Place) []IconSet {
	c := carriers{raw: raw}
	var sets []IconSet
	for _, carrier := range c.find(env, in) {
		if s := iconSet(raw, carrier); s.list.End > 0 || len(s.drop) > 0 || s.Website.There() {
			s.Path = carrier.path()
			sets = append(sets, s)
		}
	}
	return sets
}

func iconSet(raw []byte, c carrier) IconSet {
	s := IconSet{object: c.object}
	var value Span
	walkMembers(raw, c.object, func(key, v Span, escaped bool) bool {
		at := Span{key.Start, v.End}
		switch quoted := key.Of(raw); {
		case keyFolds(quoted, escaped, "icons"):
			if decodeKey(quoted, escaped) != "icons" {
				s.drop = append(s.drop, at)
				break
			}
			if !s.list.Empty() {
				s.drop = append(s.drop, s.list)
			}
			s.list, value = at, v
		case c.implementation && keyFolds(quoted, escaped, "websiteurl"):
			s.Website.add(raw, Member{decodeKey(quoted, escaped), at, v}, &s.drop)
		}
		return true
	})
	if s.list.Empty() {
		return s
	}
	if s.array = raw[value.Start] == '['; !s.array {
		s.drop = append(s.drop, s.list)
		return s
	}
	for e := range Elements(raw, value) {
		s.Icons = append(s.Icons, icon(raw, e))
	}
	return s
}

func (w *Website) add(raw []byte, m Member, drop *[]Span) {
	if m.Key != "websiteUrl" {
		*drop = append(*drop, m.At)
		return
	}
	if w.There() {
		*drop = append(*drop, w.at)
	}
	*w = Website{at: m.At}
	var ok bool
	if w.URL, ok = String(raw, m.Value); !ok {
		w.Bad = "websiteUrl is not a string"
	}
}

// iconMembers are the members of an icon that we read, in the order of [Icon.members].
var iconMembers = [...]struct{ exact, folded string }{
	{"src", "src"}, {"mimeType", "mimetype"}, {"sizes", "sizes"}, {"theme", "theme"},
}

func (ic *Icon) members() [len(iconMembers)]*Member {
	return [...]*Member{&ic.object.src, &ic.object.mime, &ic.object.sizes, &ic.object.theme}
}

func icon(raw []byte, at Span) Icon {
	ic := Icon{at: at}
	if raw[at.Start] != '{' {
		ic.Bad = "not an object"
		return ic
	}
	walkMembers(raw, at, func(key, value Span, escaped bool) bool {
		quoted := key.Of(raw)
		for i, to := range ic.members() {
			name := iconMembers[i]
			if !keyFolds(quoted, escaped, name.folded) {
				continue
			}
			if !to.At.Empty() || decodeKey(quoted, escaped) != name.exact {
				ic.Bad = name.exact + " is written twice or in another case"
				return false
			}
			*to = Member{name.exact, Span{key.Start, value.End}, value}
			break
		}
		return true
	})
	if ic.Bad != "" {
		return ic
	}
	if ic.object.src.At.Empty() {
		ic.Bad = "no src"
		return ic
	}
	var ok bool
	if ic.Src, ok = String(raw, ic.object.src.Value); !ok {
		ic.Bad = "src is not a string"
	}
	ic.MimeType, _ = String(raw, ic.object.mime.Value)
	return ic
}

// A Placement says what becomes of one icon. The zero value takes it out.
type Placement struct {
	Keep bool   // the URL stays as it came
	URI  string // or this data: URI, of MIME type image/png, takes its place
	Size string // of the picture in URI, such as 64x64
}

// Edit adds to e what the placements (one an icon, in order) and the verdict
// on the website ask for, and reports whether that is anything. With all set,
// the icons go as a whole, for a client of a revision that has none. Members of
// kept icons that clients fail on are put right: sizes as one string (the form
// of SEP-973's first draft), a theme other than light and dark, nulls.
func (s *IconSet) Edit(raw []byte, e *Edits, place []Placement, keepWebsite bool) bool {
	before := e.Len()
	for _, d := range s.drop {
		e.Remove(d)
	}
	if s.Website.There() && !keepWebsite {
		e.Remove(s.Website.at)
	}
	if !s.array {
		return e.Len() > before
	}
	left := 0
	for _, p := range place {
		if p.Keep || p.URI != "" {
			left++
		}
	}
	if left == 0 && len(s.Icons) > 0 {
		e.Remove(s.list)
		return true
	}
	for i, p := range place {
		ic := &s.Icons[i]
		switch {
		case p.URI != "":
			ic.inline(e, p)
			ic.mendTheme(raw, e)
		case p.Keep:
			ic.mendSizes(raw, e)
			ic.mendTheme(raw, e)
			if at := ic.object.mime; !at.At.Empty() && raw[at.Value.Start] != '"' {
				e.Remove(at.At)
			}
		default:
			e.Remove(ic.at)
		}
	}
	return e.Len() > before
}

// inline puts the picture in the place of the URL, and says what it is.
func (ic *Icon) inline(e *Edits, p Placement) {
	with := strconv.AppendQuote(make([]byte, 0, len(p.URI)+64), p.URI)
	set := func(m Member, name, value string) {
		if m.At.Empty() {
			with = append(with, `,"`+name+`":`+value...)
			return
		}
		e.Replace(m.Value, []byte(value))
	}
	set(ic.object.mime, "mimeType", `"image/png"`)
	set(ic.object.sizes, "sizes", `["`+p.Size+`"]`)
	e.Replace(ic.object.src.Value, with)
}

func (ic *Icon) mendTheme(raw []byte, e *Edits) {
	if m := ic.object.theme; !m.At.Empty() {
		if v, _ := String(raw, m.Value); v != "light" && v != "dark" {
			e.Remove(m.At)
		}
	}
}

func (ic *Icon) mendSizes(raw []byte, e *Edits) {
	m := ic.object.sizes
	if m.At.Empty() {
		return
	}
	if one, ok := String(raw, m.Value); ok {
		if sizes := strings.FieldsFunc(one, func(r rune) bool { return r == ' ' || r == ',' }); len(sizes) > 0 {
			quoted := make([]string, len(sizes))
			for i, s := range sizes {
				quoted[i] = quote(s)
			}
			e.Replace(m.Value, []byte("["+strings.Join(quoted, ",")+"]"))
			return
		}
		e.Remove(m.At)
		return
	}
	if raw[m.Value.Start] != '[' {
		e.Remove(m.At)
		return
	}
	for s := range Elements(raw, m.Value) {
		if raw[s.Start] != '"' {
			e.Remove(m.At)
			return
		}
	}
}
