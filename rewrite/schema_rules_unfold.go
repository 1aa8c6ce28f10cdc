package rewrite

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// inlineRef is rule local-ref: a $ref within the schema, or an allOf of one
// (pydantic writes both for an Enum), gives way to the members of what it
// names. The TypeScript and Go SDKs refuse either, having no type. What stands
// beside the reference wins, as title and default do in pydantic's reading.
// Nothing is ever fetched: a reference to another document stays.
func inlineRef(f *field) outcome {
	n := f.node
	if n.has(kwRef) {
		return f.inlineNamed()
	}
	if !n.has(kwAllOf) {
		return outcome{}
	}
	all := f.listOf(n.get(kwAllOf))
	if len(all) != 1 || all[0][0] != '{' {
		return outcome{}
	}
	n.splice(kwAllOf, all[0])
	return outcome{did: "an allOf of one put in its place"}
}

func (f *field) inlineNamed() outcome {
	value := f.node.get(kwRef)
	pointer, ok := String(value, Span{0, len(value)})
	if !ok || !strings.HasPrefix(pointer, "#") {
		return outcome{cannot: "a reference to another document, which is never fetched"}
	}
	at, ok := f.resolve(pointer[1:])
	if !ok {
		return outcome{cannot: "a reference to nothing in the schema"}
	}
	target := at.Of(f.schema)
	if target[0] != '{' {
		return outcome{cannot: "a reference to what is no schema of a field"}
	}
	if f.inlined += len(target); f.inlined > MaxFormInlined {
		return outcome{cannot: tooMuchInlined}
	}
	f.node.splice(kwRef, target)
	return outcome{did: "a reference within the schema put in its place"}
}

var tooMuchInlined = fmt.Sprintf("references that stand for more than %d bytes", MaxFormInlined)

// resolve follows a JSON Pointer (RFC 6901, as a URI fragment) from the schema
// inwards, through objects only.
func (r *refit) resolve(pointer string) (Span, bool) {
	at := r.object
	if pointer == "" {
		return at, true
	}
	if decoded, err := url.PathUnescape(pointer); err == nil {
		pointer = decoded
	}
	tokens := strings.SplitN(pointer, "/", MaxFormHops+2)
	if tokens[0] != "" || len(tokens) > MaxFormHops+1 {
		return Span{}, false
	}
	for _, t := range tokens[1:] {
		t = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
		var ok bool
		if at, ok = r.child(at, t); !ok {
			return Span{}, false
		}
	}
	return at, true
}

// child returns the member of an object. An object is walked once, however
// many references lead through it.
func (r *refit) child(object Span, name string) (Span, bool) {
	members, known := r.index[object.Start]
	if !known {
		members = map[string]Span{}
		for m := range Members(r.schema, object) {
			members[m.Key] = m.Value
		}
		if r.index == nil {
			r.index = map[int]map[string]Span{}
		}
		r.index[object.Start] = members
	}
	at, ok := members[name]
	return at, ok
}

// dropNull is rule nullable: null as one of several alternatives (anyOf or
// oneOf with null, a list of types) is taken out, and the field out of
// required; then the client may leave it out, and the server gets null where
// it requires the field. pydantic's Optional and zod's nullable write it; the
// TypeScript and Go SDKs refuse the form.
func dropNull(f *field) outcome {
	n := f.node
	here, allowed := f.takesNull()
	if !here {
		return outcome{}
	}
	types := n.get(kwType)
	if o := f.singleType(); o.cannot != "" {
		return o
	}
	for _, k := range [...]keyword{kwAnyOf, kwOneOf} {
		if o := f.dropNullBranch(k); o.cannot != "" {
			return o
		}
	}
	if allowed {
		f.dropNullOption()
	}
	if n.is(kwDefault, "null") {
		n.drop(kwDefault)
	}
	switch {
	case allowed:
		f.nullable = true
		return outcome{did: "null as an alternative left out; the field may be omitted instead"}
	case len(types) > 0 && types[0] == '[' && !bytes.Contains(types, []byte("null")):
		return outcome{did: "a list of one type to that type"}
	}
	return outcome{did: "null that could not be an answer left out"}
}

// takesNull reports whether the schema has alternatives of the kind that this
// rule is for, and whether all that it says lets null be an answer.
func (f *field) takesNull() (here, allowed bool) {
	n := f.node
	allowed = true
	if t := n.get(kwType); t != nil {
		here, allowed = t[0] == '[', false
		for s := range Elements(t, Span{0, len(t)}) {
			allowed = allowed || string(s.Of(t)) == `"null"`
		}
	}
	for _, k := range [...]keyword{kwAnyOf, kwOneOf} {
		list := n.get(k)
		if list == nil {
			continue
		}
		lets := false
		if cs, ok := f.choicesOf(k, list); ok {
			for _, c := range cs {
				lets = lets || kindOf(c.value.Of(list)) == kindNull
			}
		} else {
			for s := range Elements(list, Span{0, len(list)}) {
				lets = lets || f.isNullBranch(s.Of(list))
			}
		}
		here, allowed = here || lets, allowed && lets
	}
	if here && n.has(kwEnum) {
		lets := false
		for _, v := range f.listOf(n.get(kwEnum)) {
			lets = lets || kindOf(v) == kindNull
		}
		allowed = allowed && lets
	}
	return here, allowed && (!n.has(kwConst) || n.is(kwConst, "null"))
}

// isNullBranch reports whether an alternative is null and nothing else.
func (f *field) isNullBranch(branch []byte) bool {
	f.option.parse(branch)
	return f.option.is(kwType, `"null"`) || f.option.is(kwConst, "null")
}

// singleType puts the one type in the place of a list of types.
func (f *field) singleType() outcome {
	t := f.node.get(kwType)
	if len(t) == 0 || t[0] != '[' {
		return outcome{}
	}
	var only []byte
	for _, one := range f.listOf(t) {
		if string(one) == `"null"` {
			continue
		}
		if only != nil && string(only) != string(one) {
			return outcome{cannot: "several types"}
		}
		only = one
	}
	if only == nil || only[0] != '"' {
		return outcome{cannot: "null and no other type"}
	}
	f.node.set(kwType, only)
	return outcome{}
}

// dropNullBranch takes null out of anyOf or oneOf. If one other schema is
// left, its members take the place of the list.
func (f *field) dropNullBranch(k keyword) outcome {
	if !f.node.has(k) {
		return outcome{}
	}
	all := f.listOf(f.node.get(k))
	var rest [][]byte
	choices := true
	for _, branch := range all {
		if f.isNullBranch(branch) {
			continue
		}
		rest = append(rest, branch)
		choices = choices && f.option.has(kwConst)
	}
	switch {
	case len(rest) == len(all):
	case len(rest) == 0:
		return outcome{cannot: "null and no other type"}
	case choices:
		f.node.set(k, f.join(rest...))
	case len(rest) > 1:
		return outcome{cannot: "several types"}
	case rest[0][0] != '{':
		return outcome{cannot: "anything or null"}
	default:
		f.node.splice(k, rest[0])
	}
	return outcome{}
}

// dropNullOption takes null out of an enum, with its name.
func (f *field) dropNullOption() {
	n := f.node
	if !n.has(kwEnum) {
		return
	}
	var values, names [][]byte
	given := f.listOf(n.get(kwEnumNames))
	for i, v := range f.listOf(n.get(kwEnum)) {
		if kindOf(v) == kindNull {
			continue
		}
		values = append(values, v)
		if i < len(given) {
			names = append(names, given[i])
		}
	}
	n.set(kwEnum, f.join(values...))
	if len(given) > 0 {
		n.set(kwEnumNames, f.join(names...))
	}
}
