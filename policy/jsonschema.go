package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Schema is the JSON Schema (draft-07, which editors know best) of the policy
// file. It is a help in editing; what is valid is said by Parse.
func Schema() []byte {
	root := sectionSchema(reflect.TypeFor[Config](), "")
	properties := root["properties"].(object)
	properties["servers"].(object)["items"] = serverSchema(properties)
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "mcp-refit policy"
	root["required"] = []string{"version"}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("policy: the schema: %v", err)) // maps of strings always marshal
	}
	return append(b, '\n')
}

type object = map[string]any

func sectionSchema(t reflect.Type, prefix string) object {
	properties := object{}
	for i := range t.NumField() {
		if f, ok := newField(t.Field(i), prefix); ok {
			properties[f.Key()] = fieldSchema(&f, t.Field(i).Type)
		}
	}
	return object{"type": "object", "additionalProperties": false, "properties": properties}
}

func fieldSchema(f *Field, t reflect.Type) object {
	var s object
	switch {
	case f.section:
		s = sectionSchema(t, f.Path+".")
	case f.List:
		s = object{"type": "array", "items": entrySchema(f, t.Elem())}
	default:
		s = scalarSchema(f, t)
	}
	s["description"] = f.Doc
	return s
}

func entrySchema(f *Field, t reflect.Type) object {
	if t.Kind() != reflect.Struct {
		return scalarSchema(f, t)
	}
	s := sectionSchema(t, f.Path+"[].")
	if t == reflect.TypeFor[IconRule]() {
		s["required"] = []string{"host", "action"}
	}
	return s
}

// serverSchema is the schema of a server's section: its own keys, and those
// of the root.
func serverSchema(root object) object {
	s := sectionSchema(reflect.TypeFor[ServerSection](), "servers[].")
	properties := s["properties"].(object)
	for _, key := range slices.Sorted(maps.Keys(root)) {
		if key != "version" && key != "servers" {
			properties[key] = object{"$ref": "#/properties/" + key}
		}
	}
	s["anyOf"] = []object{{"required": []string{"name"}}, {"required": []string{"command"}}, {"required": []string{"url"}}}
	return s
}

// Patterns of the types that are written as text.
const (
	sizePattern     = `^(0|[1-9][0-9]*)(B|KiB|MiB|GiB)?$`
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
)

func scalarSchema(f *Field, t reflect.Type) object {
	s := object{}
	switch {
	case f.Values != nil:
		s["enum"] = f.Values
	case t.Kind() == reflect.Bool:
		s["type"] = "boolean"
	case t == reflect.TypeFor[Count]():
		s["type"] = "integer"
		number(s, "minimum", f.Min)
		number(s, "maximum", f.Max)
	case t == reflect.TypeFor[Size]():
		s["type"] = []string{"string", "integer"}
		s["pattern"] = sizePattern
	case t == reflect.TypeFor[Duration]():
		s["type"] = "string"
		s["pattern"] = durationPattern
	default:
		s["type"] = "string"
	}
	if f.Off {
		s = object{"anyOf": []object{s, {"const": off}}}
	}
	switch {
	case f.Default == "":
	case t.Kind() == reflect.Bool:
		s["default"] = f.Default == "true"
	case t == reflect.TypeFor[Count]():
		number(s, "default", f.Default)
	default:
		s["default"] = f.Default
	}
	return s
}

func number(s object, key, text string) {
	if text != "" {
		s[key] = json.Number(text)
	}
}
