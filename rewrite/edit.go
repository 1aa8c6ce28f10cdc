package rewrite

import (
	"cmp"
	"slices"
)

// Edits collects changes to one message, to be made in one copy. Offsets are
// always those of the message as it came, so edits may be added in any order;
// they must not overlap, save that what stands inside a removed or replaced
// span is lost with it. The zero value holds no edit.
type Edits struct {
	list []edit
	size sizeText
}

type edit struct {
	at   Span
	with []byte
	text string // what stands behind with; one of them is empty
	drop bool   // a member or element: its comma goes with it
}

// maxEditsKept bounds the memory, in edits of 64 bytes, that Reset keeps.
const maxEditsKept = 1 << 12

// Reset forgets all edits, and keeps their memory for the next.
func (e *Edits) Reset() {
	clear(e.list)
	if e.list = e.list[:0]; cap(e.list) > maxEditsKept {
		e.list = nil
	}
}

// push is append that doubles: append grows a long list by a quarter at a
// time, and so moves it three times as often.
func push[T any](list []T, one T) []T {
	if len(list) == cap(list) {
		list = slices.Grow(list, max(len(list), 4))
	}
	return append(list, one)
}

// Len is the number of edits.
func (e *Edits) Len() int { return len(e.list) }

// Replace puts other bytes in the place of a value.
func (e *Edits) Replace(at Span, with []byte) { e.list = push(e.list, edit{at: at, with: with}) }

// replaceText is Replace for a text.
func (e *Edits) replaceText(at Span, with string) {
	e.list = push(e.list, edit{at: at, text: with})
}

// Remove takes out a member of an object or an element of an array, with the
// comma that belongs to it.
func (e *Edits) Remove(at Span) { e.list = push(e.list, edit{at: at, drop: true}) }

// Insert adds bytes before the byte at that offset. Nothing is mended: whoever
// inserts a member brings its comma.
func (e *Edits) Insert(at int, with []byte) { e.Replace(Span{at, at}, with) }

// Prepend adds a member before the first one of the object at obj.
func (e *Edits) Prepend(raw []byte, obj Span, member []byte) {
	with := append([]byte(nil), member...)
	if raw[space(raw, obj.Start+1)] != '}' {
		with = append(with, ',')
	}
	e.Insert(obj.Start+1, with)
}

// Apply returns the message with all edits made, in one copy: what stands
// outside of them is the same bytes. Without edits it is the same slice.
func (e *Edits) Apply(raw []byte) []byte {
	if len(e.list) == 0 {
		return raw
	}
	size := len(raw)
	for i := range e.list {
		d := &e.list[i]
		size += len(d.with) + len(d.text)
	}
	return e.appendTo(make([]byte, 0, size), raw)
}

// appendTo adds the message with all edits made to what out holds.
func (e *Edits) appendTo(out, raw []byte) []byte {
	if !slices.IsSortedFunc(e.list, order) { // most are made from front to back
		slices.SortStableFunc(e.list, order)
	}
	from := 0
	for i := range e.list {
		d := &e.list[i]
		if d.at.Start < from {
			continue // inside of what an edit before it took
		}
		out = append(out, raw[from:d.at.Start]...)
		out = append(out, d.with...)
		out = append(out, d.text...)
		from = d.at.End
		if d.drop {
			out, from = mendComma(out, raw, from)
		}
	}
	return append(out, raw[from:]...)
}

func order(a, b edit) int {
	if a.at.Start != b.at.Start {
		return cmp.Compare(a.at.Start, b.at.Start)
	}
	if a.at.Empty() != b.at.Empty() { // what is inserted stands before what goes
		return cmp.Compare(a.at.End, b.at.End)
	}
	return cmp.Compare(b.at.End, a.at.End)
}

// mendComma takes out the comma of a removed member: the one behind it, or the
// one before it where it was the last.
func mendComma(out, raw []byte, from int) ([]byte, int) {
	i := space(raw, from)
	if i < len(raw) && raw[i] == ',' {
		return out, space(raw, i+1)
	}
	n := len(out)
	for n > 0 && (out[n-1] == ' ' || out[n-1] == '\n' || out[n-1] == '\t' || out[n-1] == '\r') {
		n--
	}
	if n > 0 && out[n-1] == ',' {
		return out[:n-1], from
	}
	return out, from
}
