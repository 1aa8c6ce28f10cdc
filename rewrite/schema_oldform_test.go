package rewrite_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// An oldField is a property in one of the shapes that servers write, with
// answers that it allows and answers that it does not.
type oldField struct {
	schema  string
	allowed []string
	refused []string
	several bool // a choice of several
	closed  bool // null is refused, whether there is a type or not
}

// An oldForm is a form of old shapes, and an answer to it as the server would
// have it.
type oldForm struct {
	schema  string
	names   []string
	fields  []oldField
	require []bool
}

// A writer writes old forms.
type writer struct{ *rand.Rand }

func (w writer) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w writer) maybe(s string) string { return w.pick("", s) }

// options writes the values of an enum and their names, well and badly.
func (w writer) options(values ...string) (list, names string) {
	if w.IntN(4) == 0 {
		values = append(values, values[0])
	}
	var titles []string
	for range w.IntN(len(values) + 2) {
		titles = append(titles, w.pick(`"Title"`, `"Tïtle <&> \u00e9"`, `""`, `"  "`, `null`, `7`, `{"a":1}`))
	}
	return "[" + strings.Join(values, ",") + "]", w.pick("null", "[]", "["+strings.Join(titles, ",")+"]", "["+strings.Join(titles, " , ")+"]")
}

// titled writes the same values as a list of const and title.
func (w writer) titled(values ...string) string {
	var all []string
	for _, v := range values {
		all = append(all, w.pick(`{"const":`+v+`,"title":"T"}`, `{"title":"T","const":`+v+`}`, `{"const":`+v+`}`, `{"const":`+v+`,"title":" ","x":[]}`))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// choice writes one choice of a type, and the answers to it.
func (w writer) choice() oldField {
	typ, values, refused := "string", []string{`"a"`, `"b c"`, `"\u00e9"`}, []string{`"Title"`, `"x"`, `1`}
	switch w.IntN(4) {
	case 0:
		typ, values, refused = "integer", []string{`1`, `20`, `-3`}, []string{`"Title"`, `4`, `1.5`}
	case 1:
		typ, values, refused = "number", []string{`1.50`, `2e3`, `-0.25`}, []string{`"x"`, `4`}
	case 2:
		typ, values, refused = "boolean", []string{`true`, `false`}, []string{`"x"`, `"True"`}
		if w.IntN(2) == 0 {
			values, refused = values[:1], append(refused, `false`)
		}
	}
	list, names := w.options(values...)
	typed := w.pick(`"type":"`+typ+`",`, ``)
	defaults := w.pick(``, `,"default":`+values[0], `,"default":"Title"`, `,"default":null`)
	f := oldField{allowed: values, refused: refused, closed: true}
	switch w.IntN(5) {
	case 0:
		f.schema = `{` + typed + `"enum":` + list + defaults + `}`
	case 1:
		f.schema = `{"enumNames":` + names + `,` + typed + `"title":"T","enum":` + list + defaults + `}`
	case 2:
		f.schema = `{` + typed + w.pick(`"oneOf":`, `"anyOf":`) + w.titled(values...) + defaults + `}`
	case 3:
		f.schema = `{` + typed + `"oneOf":` + w.titled(values...) + `,"enum":` + list + `,"enumNames":` + names + `}`
	default:
		f.schema = `{` + typed + `"const":` + values[0] + defaults + `}`
		f.refused = append(f.refused, values[1:]...)
		f.allowed = values[:1]
	}
	return f
}

// several writes a choice of several.
func (w writer) several() oldField {
	one := w.choice()
	for strings.Contains(one.schema, `"anyOf"`) && strings.Contains(one.schema, `"enum"`) {
		one = w.choice()
	}
	items := strings.NewReplacer(`,"default":null`, ``, `,"default":"Title"`, ``, `,"default":`+one.allowed[0], ``).Replace(one.schema)
	f := oldField{several: true, allowed: []string{`[]`, `[` + one.allowed[0] + `]`}, refused: []string{one.allowed[0], `["x"]`, `null`}}
	if len(one.allowed) > 1 {
		f.allowed = append(f.allowed, `[`+one.allowed[1]+`,`+one.allowed[0]+`]`)
	}
	typed := w.maybe(`"type":"array",`)
	if typed == "" {
		f.refused = []string{`["x"]`} // anything that is no list is allowed
	}
	f.schema = `{` + typed + `"items":` + items + w.maybe(`,"uniqueItems":true`) + w.pick(``, `,"default":[`+one.allowed[0]+`]`, `,"default":`+one.allowed[0]) + `}`
	return f
}

// plain writes a field without options.
func (w writer) plain() oldField {
	return []oldField{
		{schema: `{"type":"string","format":"uuid","default":5}`, allowed: []string{`"123e4567-e89b-12d3-a456-426614174000"`}, refused: []string{`1`, `[]`}},
		{schema: `{"type":"string","minLength":2,"default":"` + w.pick("x", "xy") + `"}`, allowed: []string{`"xy"`}, refused: []string{`"x"`, `12`}},
		{schema: `{"maxLength":2}`, allowed: []string{`"xy"`}, refused: []string{`"xyz"`}},
		{schema: `{"type":"integer","format":"int32","minimum":1,"default":` + w.pick(`"5"`, `5`, `5.0`, `0`, `"five"`, `null`) + `}`, allowed: []string{`7`}, refused: []string{`0`, `"7"`, `1.5`}},
		{schema: `{"minimum":1.5}`, allowed: []string{`2`, `1.75`}, refused: []string{`1`}},
		{schema: `{"type":["boolean"],"default":` + w.pick(`"true"`, `false`, `1`) + `}`, allowed: []string{`true`, `false`}, refused: []string{`"true"`, `0`}},
	}[w.IntN(6)]
}

func (w writer) form() oldForm {
	var form oldForm
	names := []string{`:0`, `a.b`, `#.!true`, `@this`, `*`, ` `, `enum`, `required`, `f`}
	w.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var props, defs, required []string
	for i := range 1 + w.IntN(4) {
		f := []func() oldField{w.choice, w.choice, w.several, w.plain}[w.IntN(4)]()
		if w.IntN(3) == 0 {
			defs = append(defs, fmt.Sprintf(`"D%d":%s`, i, f.schema))
			f.schema = fmt.Sprintf(w.pick(`{"$ref":"#/$defs/D%d","title":"T"}`, `{"allOf":[{"$ref":"#/$defs/D%d"}]}`), i)
		}
		if w.IntN(3) == 0 && !f.several {
			how := `{"anyOf":[%s,{"type":"null"}],"default":null}`
			if f.closed && w.IntN(2) == 0 {
				how = `{"title":"N","oneOf":[{"type":"null"},%s]}`
			}
			f.schema = fmt.Sprintf(how, f.schema)
			f.allowed = append(f.allowed[:len(f.allowed):len(f.allowed)], `null`)
		}
		if need := w.IntN(2) == 0; need {
			required = append(required, fmt.Sprintf("%q", names[i]))
			form.require = append(form.require, true)
		} else {
			form.require = append(form.require, false)
		}
		props = append(props, fmt.Sprintf(`%q:%s`, names[i], f.schema))
		form.names, form.fields = append(form.names, names[i]), append(form.fields, f)
	}
	form.schema = `{` + w.maybe(`"type":"object",`) + `"properties":{` + strings.Join(props, w.pick(",", " , ")) + `},"required":[` + strings.Join(required, ",") + `],"$defs":{` + strings.Join(defs, ",") + `}}`
	return form
}

// answer writes an answer as the server would have it, and the same as a
// client of the refitted form would give it. With wrong, one field is not allowed.
func (w writer) answer(form oldForm, refitted []byte, wrong int) (server, client string) {
	var a, b []string
	for i, f := range form.fields {
		values := f.allowed
		if i == wrong {
			values = f.refused
		} else if !form.require[i] && w.IntN(3) == 0 {
			continue
		}
		v := values[w.IntN(len(values))]
		shown, _ := rewrite.Lookup(refitted, rewrite.Span{Start: 0, End: len(refitted)}, "properties", form.names[i])
		a = append(a, fmt.Sprintf("%q:%s", form.names[i], v))
		if v != "null" || i == wrong {
			b = append(b, fmt.Sprintf("%q:%s", form.names[i], asShown(v, shown.Of(refitted))))
		} else if !form.require[i] {
			a = a[:len(a)-1]
		}
	}
	return `{` + strings.Join(a, ",") + `}`, `{` + strings.Join(b, ",") + `}`
}

// asShown writes a value as a form of strings offers it.
func asShown(value string, property []byte) string {
	var p struct {
		Enum, OneOf []any
		Items       struct {
			Type  string
			AnyOf []struct{ Const any }
		}
	}
	if json.Unmarshal(property, &p) != nil || value[0] == '"' || value == "null" {
		return value
	}
	if value[0] != '[' {
		if p.Enum == nil && p.OneOf == nil {
			return value
		}
		return `"` + value + `"`
	}
	if p.Items.Type != "string" {
		if len(p.Items.AnyOf) == 0 {
			return value // passed unchanged
		}
		if _, ok := p.Items.AnyOf[0].Const.(string); !ok {
			return value
		}
	}
	var all []json.RawMessage
	if json.Unmarshal([]byte(value), &all) != nil {
		return value
	}
	for i, v := range all {
		all[i] = json.RawMessage(asShown(string(v), []byte(`{"enum":[]}`)))
	}
	out, _ := json.Marshal(all)
	return string(out)
}

func randomForms(t *testing.T, n int) (writer, []oldForm) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := writer{rand.New(rand.NewPCG(seed, 2))}
	forms := make([]oldForm, n)
	for i := range forms {
		forms[i] = w.form()
	}
	return w, forms
}
