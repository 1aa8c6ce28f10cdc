package rewrite

import "slices"

// A wayBack is how the answer to one property becomes the server's own.
type wayBack struct {
	key    []byte   // the property's name as the schema wrote it, in its quotes
	name   string   // the same, decoded
	values [][]byte // the server's own text of options that the client saw as strings of it
	list   bool     // the answer is a list of options
	null   bool     // null if the client left the field out
}

// Restore maps the content of a client's answer, a JSON object, to the types
// that the server asked for: options shown as strings become numbers and
// booleans again, with the digits that the server wrote, and a field that the
// server requires and that may be null gets null if it was left out. What does
// not match an option stays as it is. All else keeps its bytes; with nothing
// to do it is the same slice.
func (f Form) Restore(content []byte) []byte {
	if len(f.back) == 0 {
		return content
	}
	start := space(content, 0)
	if start >= len(content) || content[start] != '{' {
		return content
	}
	object := Span{start, skip(content, start)}
	at := make(map[string]int, len(f.back))
	for i := range f.back {
		at[f.back[i].name] = i
	}
	var e Edits
	type answer struct{ at, value Span }
	answers := make([]answer, len(f.back))
	var earlier []Span
	empty := true
	walkMembers(content, object, func(key, value Span, _ bool) bool {
		empty = false
		if i, ok := at[nameOf(key.Of(content))]; ok {
			if !answers[i].at.Empty() {
				earlier = append(earlier, answers[i].at)
			}
			answers[i] = answer{Span{key.Start, value.End}, value}
		}
		return true
	})
	var nulls []byte
	for i := range f.back {
		b := &f.back[i]
		switch {
		case !answers[i].at.Empty():
			b.restore(content, answers[i].value, &e)
		case b.null:
			if !empty || nulls != nil {
				nulls = append(nulls, ',')
			}
			nulls = append(append(nulls, b.key...), `:null`...)
		}
	}
	if nulls != nil {
		e.Insert(object.End-1, nulls)
	}
	if e.Len() > 0 {
		for _, at := range earlier { // a reader that takes the first must not see another answer
			e.Remove(at)
		}
	}
	return e.Apply(content)
}

// restore makes the edits to one answer.
func (b *wayBack) restore(content []byte, at Span, e *Edits) {
	if !b.list {
		option, ok := String(content, at)
		i := slices.IndexFunc(b.values, func(own []byte) bool { return string(own) == option })
		if ok && i >= 0 {
			e.Replace(at, b.values[i])
		}
		return
	}
	if len(b.values) == 0 {
		return
	}
	values := make(map[string][]byte, len(b.values))
	for _, own := range b.values {
		values[string(own)] = own
	}
	for s := range Elements(content, at) {
		if option, ok := String(content, s); ok && values[option] != nil {
			e.Replace(s, values[option])
		}
	}
}
