package rewrite

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// MaxIcons bounds how many icons, and objects that have any, are looked at in
// one message. A list of that many tools is nobody's; each costs us some 200
// bytes, and as little as three bytes of the message.
const MaxIcons = 1 << 17

// ErrTooManyIcons says that a message has more than [MaxIcons].
var ErrTooManyIcons = errors.New("more icons in one message than are looked at")

// An IconSet is what one carrier (a tool, a resource, an Implementation …) has
// of icons and website, and where.
type IconSet struct {
	Icons   []Icon
	Website Website

	in       *step // the carrier, or the list whose element it is
	index    int   // in that list; -1: it is no element
	from, to int   // where its icons stand in those of the message

	list  Span   // the member icons, empty if there is none that counts
	array bool   // its value is an array
	drop  []Span // members that go in any case: duplicates, other spellings, no arrays
}

// Path is where the carrier stands, such as result.tools[3].
func (s *IconSet) Path() string {
	if s.index < 0 {
		return s.in.text()
	}
	return s.in.element(s.index).text()
}

// An Icon is one entry of an icons array.
type Icon struct {
	Src      string // decoded; empty where Bad says why
	MimeType string // decoded; empty if there is none
	Bad      string // why the entry can't stay, whatever its URL; empty if it can

	at Span
}

// A Website is the websiteUrl of an Implementation.
type Website struct {
	URL string // decoded
	Bad string // why it can't stay, whatever its URL
	at  Span   // empty: there is none
}

// There reports whether there is a websiteUrl at all.
func (w Website) There() bool { return !w.at.Empty() }

// Icons finds the carriers in a message that have icons or a website. The
// error is nil or [ErrTooManyIcons].
func Icons(raw []byte, env Envelope, in Place) ([]IconSet, error) {
	return new(IconFinder).Icons(raw, env, in)
}

// An IconFinder finds icons again and again in the same memory. The zero value
// is ready for use, by one at a time.
type IconFinder struct{ carriers carriers }

// maxSetsKept and maxIconsKept bound the memory that an IconFinder keeps for
// the next message, to half a mebibyte.
const (
	maxSetsKept  = 2048
	maxIconsKept = 2048
)

// Icons is the function of that name. What it returns is good until Reset.
func (f *IconFinder) Icons(raw []byte, env Envelope, in Place) ([]IconSet, error) {
	c := &f.carriers
	*c = carriers{raw: raw, sets: c.sets[:0], icons: c.icons[:0], left: MaxIcons}
	c.find(env, in)
	if c.left < 0 {
		return nil, ErrTooManyIcons
	}
	for i := range c.sets {
		s := &c.sets[i]
		s.Icons = c.icons[s.from:s.to:s.to]
	}
	return c.sets, nil
}

// Reset lets go of the message.
func (f *IconFinder) Reset() {
	c := &f.carriers
	clear(c.sets)
	clear(c.icons)
	*c = carriers{sets: c.sets[:0], icons: c.icons[:0]}
	if cap(c.sets) > maxSetsKept || cap(c.icons) > maxIconsKept {
		*c = carriers{}
	}
}

func (c *carriers) begin(in *step, index int) IconSet { return IconSet{in: in, index: index} }

// add notes a carrier, if it has anything.
func (c *carriers) add(s IconSet) {
	if s.list.Empty() && len(s.drop) == 0 && !s.Website.There() {
		return
	}
	if c.left--; c.left >= 0 {
		c.sets = push(c.sets, s)
	}
}

// drop notes a member that goes in any case.
func (c *carriers) drop(s *IconSet, at Span) {
	if c.left--; c.left >= 0 {
		s.drop = append(s.drop, at)
	}
}

// member looks at one member of a carrier, and returns where its value ends; 0
// if it is none of ours.
func (c *carriers) member(s *IconSet, key Span, escaped bool, value int, implementation bool) int {
	quoted := key.Of(c.raw)
	switch {
	case keyFolds(quoted, escaped, "icons"):
		if !keyIs(quoted, escaped, "icons") {
			end := skip(c.raw, value)
			c.drop(s, Span{key.Start, end})
			return end
		}
		if !s.list.Empty() {
			c.drop(s, s.list)
		}
		return c.entries(s, key, value)
	case implementation && keyFolds(quoted, escaped, "websiteurl"):
		end := skip(c.raw, value)
		c.website(s, Member{decodeKey(quoted, escaped), Span{key.Start, end}, Span{value, end}})
		return end
	}
	return 0
}

// entries reads the value of a member icons.
func (c *carriers) entries(s *IconSet, key Span, value int) int {
	s.from = len(c.icons)
	end := c.array(value, func(at, _ int) int {
		one, end := c.icon(at)
		if c.left--; c.left >= 0 {
			c.icons = push(c.icons, one)
		}
		return end
	})
	s.to = len(c.icons)
	s.list = Span{key.Start, end}
	if s.array = c.raw[value] == '['; !s.array {
		c.drop(s, s.list)
	}
	return end
}

func (c *carriers) website(s *IconSet, m Member) {
	if m.Key != "websiteUrl" {
		c.drop(s, m.At)
		return
	}
	if s.Website.There() {
		c.drop(s, s.Website.at)
	}
	s.Website = Website{at: m.At}
	var ok bool
	if s.Website.URL, ok = String(c.raw, m.Value); !ok {
		s.Website.Bad = "websiteUrl is not a string"
	}
}

// The members of an icon that we read.
const (
	iconSrc = iota
	iconMIME
	iconSizes
	iconTheme
	iconMembers
)

var iconNames = [iconMembers]struct{ exact, folded string }{
	iconSrc: {"src", "src"}, iconMIME: {"mimeType", "mimetype"}, iconSizes: {"sizes", "sizes"}, iconTheme: {"theme", "theme"},
}

// An iconObject is where the members of an icon stand.
type iconObject [iconMembers]struct{ at, value Span }

// iconObject reads the icon that begins at i. bad says why it can't be read.
func (c *carriers) iconObject(i int) (o iconObject, bad string, end int) {
	if c.raw[i] != '{' {
		return o, "not an object", skip(c.raw, i)
	}
	end = c.object(i, func(key Span, escaped bool, v int) int {
		n, exact := iconMember(key.Of(c.raw), escaped)
		if n == iconMembers {
			return 0
		}
		end := skip(c.raw, v)
		if !exact || !o[n].at.Empty() {
			bad = iconNames[n].exact + " is written twice or in another case"
		}
		o[n].at, o[n].value = Span{key.Start, end}, Span{v, end}
		return end
	})
	return o, bad, end
}

// iconMember says which member of an icon a key in its quotes is, iconMembers
// if none, and whether it is written as it should be.
func iconMember(quoted []byte, escaped bool) (n int, exact bool) {
	switch string(quoted) { // as nearly all are written
	case `"src"`:
		return iconSrc, true
	case `"mimeType"`:
		return iconMIME, true
	case `"sizes"`:
		return iconSizes, true
	case `"theme"`:
		return iconTheme, true
	}
	for n := range iconNames {
		if keyFolds(quoted, escaped, iconNames[n].folded) {
			return n, keyIs(quoted, escaped, iconNames[n].exact)
		}
	}
	return iconMembers, false
}

func (c *carriers) icon(at int) (Icon, int) {
	o, bad, end := c.iconObject(at)
	ic := Icon{at: Span{at, end}, Bad: bad}
	switch {
	case bad != "":
	case o[iconSrc].at.Empty():
		ic.Bad = "no src"
	default:
		var ok bool
		if ic.Src, ok = String(c.raw, o[iconSrc].value); !ok {
			ic.Bad = "src is not a string"
		}
		ic.MimeType = mimeType(c.raw, o[iconMIME].value)
	}
	return ic, end
}

// mimeType decodes a MIME type. The usual ones take no memory.
func mimeType(raw []byte, at Span) string {
	switch string(at.Of(raw)) {
	case "":
		return ""
	case `"image/png"`:
		return "image/png"
	case `"image/svg+xml"`:
		return "image/svg+xml"
	}
	v, _ := String(raw, at)
	return v
}

// A Placement says what becomes of one icon. The zero value takes it out.
type Placement struct {
	Keep bool   // the URL stays as it came
	URI  string // or this data: URI, of MIME type image/png, takes its place

	Width, Height int // of the picture in URI, in pixels
}

func (p *Placement) stays() bool { return p.Keep || p.URI != "" }

// Edit adds to e what the placements (one an icon, in order) and the verdict
// on the website ask for, and reports whether that is anything. Members of
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
	switch {
	case !s.array || len(s.Icons) == 0:
	case !slices.ContainsFunc(place, func(p Placement) bool { return p.stays() }):
		e.Remove(s.list)
	default:
		s.editEach(raw, e, place)
	}
	return e.Len() > before
}

func (s *IconSet) editEach(raw []byte, e *Edits, place []Placement) {
	for i := 0; i < len(place); i++ {
		at := s.Icons[i].at
		if p := &place[i]; p.stays() {
			o, _, _ := (&carriers{raw: raw}).iconObject(at.Start)
			if p.Keep {
				o.keep(raw, e)
			} else {
				o.inline(raw, e, p, e.size.of(p))
			}
			continue
		}
		for i+1 < len(place) && !place[i+1].stays() {
			i++
		}
		e.Remove(Span{at.Start, s.Icons[i].at.End})
	}
}

// keep lets the icon's URL stay as it came.
func (o *iconObject) keep(raw []byte, e *Edits) {
	o.mendSizes(raw, e)
	o.mendTheme(raw, e)
	o.mendMimeType(raw, e)
}

func (o *iconObject) mendMimeType(raw []byte, e *Edits) {
	if m := o[iconMIME]; !m.at.Empty() && raw[m.value.Start] != '"' {
		e.Remove(m.at)
	}
}

const pngType = `"image/png"`

// A sizeText is the value of sizes for one size of picture. That is mostly the one before.
type sizeText struct {
	width, height int
	text          string
}

func (t *sizeText) of(p *Placement) string {
	if t.text == "" || t.width != p.Width || t.height != p.Height {
		*t = sizeText{p.Width, p.Height, `["` + strconv.Itoa(p.Width) + "x" + strconv.Itoa(p.Height) + `"]`}
	}
	return t.text
}

// inline puts the picture in the place of the URL, and says what it is.
func (o *iconObject) inline(raw []byte, e *Edits, p *Placement, size string) {
	src := o[iconSrc].value
	e.replaceText(Span{src.Start + 1, src.End - 1}, p.URI) // base64: nothing in it needs an escape
	o.set(raw, e, iconMIME, pngType)
	o.set(raw, e, iconSizes, size)
	o.mendTheme(raw, e)
}

// set gives a member that value, behind src if it is not there.
func (o *iconObject) set(raw []byte, e *Edits, member int, value string) {
	switch m := &o[member]; {
	case m.at.Empty():
		e.replaceText(Span{o[iconSrc].value.End, o[iconSrc].value.End}, `,"`+iconNames[member].exact+`":`+value)
	case string(m.value.Of(raw)) != value:
		e.replaceText(m.value, value)
	}
}

func (o *iconObject) mendTheme(raw []byte, e *Edits) {
	if m := o[iconTheme]; !m.at.Empty() {
		if v, _ := String(raw, m.value); v != "light" && v != "dark" {
			e.Remove(m.at)
		}
	}
}

func (o *iconObject) mendSizes(raw []byte, e *Edits) {
	m := o[iconSizes]
	if m.at.Empty() {
		return
	}
	if one, ok := String(raw, m.value); ok {
		if sizes := strings.FieldsFunc(one, func(r rune) bool { return r == ' ' || r == ',' }); len(sizes) > 0 {
			for i, s := range sizes {
				sizes[i] = quote(s)
			}
			e.Replace(m.value, []byte("["+strings.Join(sizes, ",")+"]"))
			return
		}
		e.Remove(m.at)
		return
	}
	if raw[m.value.Start] != '[' {
		e.Remove(m.at)
		return
	}
	for s := range Elements(raw, m.value) {
		if raw[s.Start] != '"' {
			e.Remove(m.at)
			return
		}
	}
}
