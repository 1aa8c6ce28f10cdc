package rewrite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A chaos writes schemas of random keywords with random values, most of which
// make no sense together.
type chaos struct{ *rand.Rand }

func (c chaos) pick(of ...string) string { return of[c.IntN(len(of))] }

func (c chaos) scalar() string {
	return c.pick(`"a"`, `"b"`, `"\u0061"`, `""`, `" "`, `1`, `1.0`, `-0`, `10e-1`, `2`, `true`, `false`, `null`, `"1"`, `"true"`, `"null"`, `{}`, `[]`, `"\ud800"`, `5.5`)
}

func (c chaos) list(of func() string) string {
	var all []string
	for range c.IntN(4) {
		all = append(all, of())
	}
	return "[" + strings.Join(all, c.pick(",", " , ")) + "]"
}

func (c chaos) object(depth int, members ...func(int) string) string {
	var all []string
	for range c.IntN(6) {
		all = append(all, members[c.IntN(len(members))](depth))
	}
	return "{" + c.pick("", " ") + strings.Join(all, c.pick(",", " , ")) + "}"
}

func (c chaos) schema(depth int) string {
	if depth <= 0 {
		return c.pick(`{}`, `true`, `{"type":"null"}`, `{"type":"string"}`, `{"const":"a"}`, `{"const":1,"title":"One"}`, `{"$ref":"#/$defs/d"}`)
	}
	return c.object(depth,
		func(int) string {
			return `"type":` + c.pick(`"string"`, `"integer"`, `"number"`, `"boolean"`, `"array"`, `"object"`, `"null"`, `["string","null"]`, `["integer"]`, `[]`, `null`)
		},
		func(int) string { return `"type":` + c.pick(`"string"`, `"array"`) },
		func(int) string { return c.pick(`"enum"`, `"e\u006eum"`, `"Enum"`) + `:` + c.list(c.scalar) },
		func(int) string { return `"enumNames":` + c.list(c.scalar) },
		func(int) string { return `"const":` + c.scalar() },
		func(int) string { return `"default":` + c.pick(c.scalar(), c.list(c.scalar)) },
		func(int) string { return `"title":` + c.pick(`"T"`, `null`) },
		func(int) string { return `"format":` + c.pick(`"email"`, `"uuid"`, `null`) },
		func(int) string {
			return c.pick(`"minLength":1`, `"minimum":1`, `"maxItems":1`, `"uniqueItems":true`, `"x-y":[{}]`, `"minLength":null`)
		},
		func(d int) string { return `"items":` + c.schema(d-1) },
		func(d int) string {
			return c.pick(`"anyOf":`, `"oneOf":`, `"allOf":`) + c.list(func() string { return c.schema(d - 1) })
		},
		func(int) string {
			return c.pick(`"anyOf":`, `"oneOf":`) + c.list(func() string { return fmt.Sprintf(`{"const":%s,"title":%s}`, c.scalar(), c.scalar()) })
		},
		func(int) string {
			return `"$ref":` + c.pick(`"#/$defs/d"`, `"#/$defs/e"`, `"#/$defs/f"`, `"#"`, `"x"`, `1`)
		},
	)
}

func (c chaos) form() string {
	name := func() string { return c.pick(`"p"`, `"q"`, `"\u0070"`, `""`, `":0"`) }
	props := c.object(3, func(d int) string { return name() + `:` + c.schema(d) })
	return c.object(3,
		func(int) string { return `"properties":` + props },
		func(int) string { return `"properties":` + props },
		func(int) string { return `"required":` + c.list(name) },
		func(int) string { return c.pick(`"type":"object"`, `"Type":1`, `"$schema":"x"`) },
		func(d int) string {
			return fmt.Sprintf(`"$defs":{"d":%s,"e":%s,"f":{"$ref":"#/$defs/d"}}`, c.schema(d), c.schema(d))
		},
	)
}

// Schemas of random keywords keep what FuzzRefitForm demands.
func TestRefitChaos(t *testing.T) {
	seed := rand.Uint64()
	c := chaos{rand.New(rand.NewPCG(seed, 1))}
	for i := range 2_000 {
		schema := c.form()
		on := DefaultRules
		if i%4 == 0 {
			on = Rules(c.Uint32())
		}
		refitInvariants(t, []byte(schema), Dialect(i%2), on)
		if t.Failed() {
			t.Fatalf("seed %d, form %d: %s", seed, i, schema)
		}
	}
}
