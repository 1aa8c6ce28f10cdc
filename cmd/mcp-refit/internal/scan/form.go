package scan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A field is one property of a form as a client of 2025-11-25 shows it.
type field struct {
	Name, Title, Description string
	Required                 bool
	Kind                     string // text, number, checkbox, choice, choices; empty: the client can't show it
	Options                  []option
	Default                  string
	Hint                     string // the bounds
}

type option struct {
	Text   string
	Chosen bool
}

// A property is what such a client reads of a property's schema.
type property struct {
	Type        any
	Title       string
	Description string
	Enum        []any
	OneOf       []titled
	Items       *struct {
		Enum  []any
		AnyOf []titled
	}
	Default                  any
	Format                   string
	Minimum, Maximum         *float64
	MinLength, MaxLength     *int
	MinItems, MaxItems       *int
	Pattern                  string
	AnyOf, AllOf, Not, Const any
	Ref                      string `json:"$ref"`
}

type titled struct {
	Const any
	Title string
}

// fields reads a form, its properties in the order in which they are written.
func fields(schema []byte) []field {
	var root struct{ Required []string }
	_ = json.Unmarshal(schema, &root) // what can't be read is not required
	var out []field
	for m := range rewrite.Members(schema, rewrite.Span{End: len(schema)}) {
		if m.Key != "properties" || schema[m.Value.Start] != '{' {
			continue
		}
		for p := range rewrite.Members(schema, m.Value) {
			f := fieldOf(p.Key, p.Value.Of(schema))
			f.Required = slices.Contains(root.Required, p.Key)
			out = append(out, f)
		}
	}
	return out
}

func fieldOf(name string, schema []byte) field {
	f := field{Name: name, Title: name}
	var p property
	if json.Unmarshal(schema, &p) != nil {
		return f
	}
	if p.Title != "" {
		f.Title = p.Title
	}
	f.Description = p.Description
	if p.Ref != "" || p.AnyOf != nil || p.AllOf != nil || p.Not != nil {
		return f
	}
	switch p.Type {
	case "boolean":
		f.Kind = "checkbox"
		f.Options = []option{{Text: f.Title, Chosen: p.Default == true}}
	case "integer", "number":
		if p.Enum == nil {
			f.Kind, f.Default = "number", text(p.Default)
		}
		f.Hint = bounds(p.Type.(string), p.Minimum, p.Maximum)
	case "string":
		f.stringField(&p)
	case "array":
		if p.Items == nil || p.Items.Enum == nil && p.Items.AnyOf == nil {
			return f
		}
		f.Kind, f.Hint = "choices", bounds("", p.MinItems, p.MaxItems)
		f.Options = options(p.Items.Enum, p.Items.AnyOf, p.Default)
	}
	return f
}

func (f *field) stringField(p *property) {
	switch {
	// A client that reads enum does not look at what stands beside it.
	case p.Enum != nil:
		f.Kind, f.Options = "choice", options(p.Enum, nil, p.Default)
	case p.OneOf != nil:
		f.Kind, f.Options = "choice", options(nil, p.OneOf, p.Default)
	default:
		f.Kind, f.Default = "text", text(p.Default)
		f.Hint = bounds(p.Format, p.MinLength, p.MaxLength)
	}
}

func options(plain []any, with []titled, chosen any) []option {
	is := func(v any) bool {
		if list, ok := chosen.([]any); ok {
			return slices.ContainsFunc(list, func(c any) bool { return text(c) == text(v) })
		}
		return chosen != nil && text(chosen) == text(v)
	}
	var out []option
	for _, v := range plain {
		out = append(out, option{text(v), is(v)})
	}
	for _, o := range with {
		title := o.Title
		if title == "" {
			title = text(o.Const)
		}
		out = append(out, option{title, is(o.Const)})
	}
	return out
}

// text is a value as a client shows it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, _ := json.Marshal(v) // of a value that was read from JSON
	return string(b)
}

func bounds[T int | float64](what string, least, most *T) string {
	switch {
	case least != nil && most != nil:
		what += fmt.Sprintf(" %v to %v", *least, *most)
	case least != nil:
		what += fmt.Sprintf(" at least %v", *least)
	case most != nil:
		what += fmt.Sprintf(" at most %v", *most)
	}
	return what
}
