package policy

// objectEdit is a set of edits to an object's members. What it does not name
// keeps its bytes.
type objectEdit struct {
	drops    map[int]bool
	replaces map[int][]byte
	adds     [][2][]byte // key with its quotes, value
	applied  []Applied
}

func (e *objectEdit) note(field, rule string) {
	e.applied = append(e.applied, Applied{shorten(field), rule})
}

func (e *objectEdit) drop(i int) {
	if e.drops == nil {
		e.drops = map[int]bool{}
	}
	e.drops[i] = true
}

func (e *objectEdit) replace(i int, text []byte) {
	if e.replaces == nil {
		e.replaces = map[int][]byte{}
	}
	e.replaces[i] = text
}

func (e *objectEdit) add(key, text []byte) { e.adds = append(e.adds, [2][]byte{key, text}) }

// apply returns the object's text with the edits.
func (e *objectEdit) apply(object *value) []byte {
	base := object.start
	text := func(from, to int) []byte { return object.raw[from-base : to-base] }
	end := base + len(object.raw)
	out := []byte{'{'}
	after := base + 1 // what is not yet written begins here
	kept := false
	for i, m := range object.members {
		if e.drops[i] {
			// A member goes with the comma and the space before it; one before the
			// first that stays, with those behind it.
			if kept {
				after = m.end()
			}
			continue
		}
		if kept {
			out = append(out, text(after, m.start)...)
		} else {
			out = append(out, text(base+1, object.members[0].start)...)
		}
		kept = true
		out = append(out, text(m.start, m.value.start)...)
		if replacement, ok := e.replaces[i]; ok {
			out = append(out, replacement...)
		} else {
			out = append(out, m.value.raw...)
		}
		after = m.end()
	}
	for _, a := range e.adds {
		if kept {
			out = append(out, ',')
		}
		kept = true
		out = append(append(append(out, a[0]...), ':'), a[1]...)
	}
	last := base + 1
	if n := len(object.members); n > 0 {
		last = object.members[n-1].end()
	}
	return append(out, text(last, end)...)
}
