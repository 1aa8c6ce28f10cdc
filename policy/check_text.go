package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on what a sentence quotes.
const (
	maxQuoted      = 100  // bytes of the answer or the schema, after quoting
	maxName        = 256  // bytes of Problem.Field and Applied.Field
	maxOptions     = 8    // options that a sentence lists
	maxProblemText = 4096 // bytes of ProblemText
)

// nouns name the kinds of JSON values for people.
var nouns = [...]string{
	kindNull: "null", kindBoolean: "a boolean", kindNumber: "a number",
	kindString: "a string", kindArray: "a list", kindObject: "an object",
}

// ProblemText says all problems in one line of at most 4 KiB. It names every
// failing field and rule; where the sentences do not fit, by name alone.
func ProblemText(problems []Problem) string {
	short := make([]string, len(problems))
	left := maxProblemText - len("; and 00000 more")
	for i, p := range problems {
		short[i] = clip(p.Field) + " (" + p.Rule + ")"
		left -= len(short[i]) + len("; ")
	}
	var b strings.Builder
	for i, p := range problems {
		long := p.Message + " (" + p.Rule + ")"
		text := short[i]
		if more := len(long) - len(text); more <= left {
			text = long
			left -= more
		}
		if b.Len()+len(text) > maxProblemText-len("; and 00000 more") {
			fmt.Fprintf(&b, "; and %d more", len(problems)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(text)
	}
	return b.String()
}

// quote quotes text so that it cannot be taken for ours or hide anything, in at
// most maxQuoted bytes.
func quote(text string) string {
	for limit := maxQuoted - len(`""…`); ; limit /= 2 {
		cut := text
		if len(text) > limit {
			cut = text[:limit]
			for !utf8.ValidString(cut) && len(cut) > limit-utf8.UTFMax && cut != "" {
				cut = cut[:len(cut)-1]
			}
		}
		quoted := strconv.Quote(cut)
		if len(cut) < len(text) {
			quoted += "…"
		}
		if len(quoted) <= maxQuoted || limit == 0 {
			return quoted
		}
	}
}

// clip returns a name as it is where it is short and plain, else quoted.
func clip(name string) string {
	if quoted := quote(name); len(quoted) != len(name)+2 {
		return quoted
	}
	if name == "" {
		return `""`
	}
	return name
}

// label names a place.
func (p place) label() string {
	if p.path == "" {
		return "content"
	}
	return clip(p.path)
}

// quoteValue shows a value of the answer.
func quoteValue(v *value) string {
	switch v.kind {
	case kindString:
		return quote(v.text)
	case kindArray, kindObject:
		return nouns[v.kind]
	}
	if len(v.raw) > maxQuoted/2 {
		return string(v.raw[:maxQuoted/2]) + "…"
	}
	return string(v.raw)
}

// fault is a problem that needs no value and no wish of the server's.
func (c *checker) fault(at place, rule, what string) findings {
	return findings{problems: []Problem{{at.name(), rule, at.label() + ": " + what}}}
}

// name is the field that a problem is reported for.
func (p place) name() string {
	if p.path == "" {
		return "content"
	}
	return shorten(p.path)
}

// shorten cuts a name that a peer made up to what a record can hold.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}

// fail is a problem with a value: what is wrong with it, and what schema wants.
func (c *checker) fail(at place, rule string, v *value, fault string, schema *value) findings {
	if c.quiet > 0 {
		return findings{problems: []Problem{{Field: at.name(), Rule: rule}}}
	}
	shown := quoteValue(v)
	switch {
	case at.secret():
		shown = "the value"
	case v.kind == kindArray:
		shown = "the list"
	case v.kind == kindObject:
		shown = "the object"
	}
	message := shown + " " + fault
	if wish := c.wants(schema, maxReferences); wish != "" {
		message += ", the server asked for " + wish
	}
	return c.fault(at, rule, message)
}

// wants describes what schema asks for: "an integer between 1 and 100".
func (c *checker) wants(schema *value, hops int) string {
	if schema == nil || schema.kind != kindObject || hops == 0 {
		return ""
	}
	if options := optionsOf(schema, maxOptions+1); options != nil {
		return listOptions(options)
	}
	var wishes []string
	switch t := schema.get("type"); {
	case t == nil:
	case t.kind == kindString:
		wishes = append(wishes, c.wantsType(schema, t.text, hops))
	case t.kind == kindArray:
		for _, name := range t.items[:min(len(t.items), maxOptions)] {
			wishes = append(wishes, c.wantsType(schema, name.text, hops))
		}
	}
	if len(wishes) > 0 {
		return strings.Join(wishes, " or ")
	}
	if target, _ := c.resolve(schema.get("$ref")); target != nil {
		return c.wants(target, hops-1)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		branches := schema.get(keyword)
		if branches == nil {
			continue
		}
		for _, branch := range branches.items[:min(len(branches.items), maxOptions)] {
			if wish := c.wants(branch, hops/2); wish != "" {
				wishes = append(wishes, wish)
			}
		}
		if keyword == "allOf" {
			return strings.Join(wishes, " and ")
		}
		return strings.Join(wishes, " or ")
	}
	return c.wantsKeywords(schema)
}

// wantsKeywords describes a schema that names no type.
func (c *checker) wantsKeywords(schema *value) string {
	if amount := rangeOf(schema); amount != "" {
		return "a number" + amount
	}
	for _, keyword := range []string{"minLength", "maxLength", "pattern", "format"} {
		if schema.get(keyword) != nil {
			return c.wantsType(schema, "string", 1)
		}
	}
	return ""
}

func (c *checker) wantsType(schema *value, name string, hops int) string {
	switch name {
	case "integer":
		return "an integer" + rangeOf(schema)
	case "number":
		return "a number" + rangeOf(schema)
	case "boolean":
		return "true or false"
	case "null":
		return "null"
	case "object":
		return "an object"
	case "array":
		if items := c.wants(schema.get("items"), hops-1); items != "" {
			return "a list" + countOf(schema, "minItems", "maxItems", "item") + ", each " + items
		}
		return "a list" + countOf(schema, "minItems", "maxItems", "item")
	case "string":
		wish := "a string"
		if f := schema.get("format"); f != nil {
			if known, ok := formats[f.text]; ok {
				wish = known.wants
			}
		}
		wish += countOf(schema, "minLength", "maxLength", "character")
		if p := schema.get("pattern"); p != nil && p.kind == kindString {
			wish += " that matches " + quote(p.text)
		}
		return wish
	}
	return ""
}

// rangeOf describes the bounds on a number.
func rangeOf(schema *value) string {
	bound := func(keyword string) string {
		if v := schema.get(keyword); v != nil && v.kind == kindNumber {
			return quoteValue(v)
		}
		return ""
	}
	var parts []string
	least, most := bound("minimum"), bound("maximum")
	switch {
	case least != "" && most != "":
		parts = append(parts, "between "+least+" and "+most)
	case least != "":
		parts = append(parts, "of at least "+least)
	case most != "":
		parts = append(parts, "of at most "+most)
	}
	for _, b := range [][2]string{{"exclusiveMinimum", "greater than "}, {"exclusiveMaximum", "less than "}, {"multipleOf", "that is a multiple of "}} {
		if limit := bound(b[0]); limit != "" {
			parts = append(parts, b[1]+limit)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, " and ")
}

// countOf describes the bounds on a length.
func countOf(schema *value, least, most, unit string) string {
	low, high := schema.get(least), schema.get(most)
	var text, last string
	switch {
	case low != nil && low.kind == kindNumber && high != nil && high.kind == kindNumber:
		last = quoteValue(high)
		text = " of " + quoteValue(low) + " to " + last + " " + unit
		if equal(low, high) {
			text = " of " + last + " " + unit
		}
	case low != nil && low.kind == kindNumber:
		last = quoteValue(low)
		text = " of at least " + last + " " + unit
	case high != nil && high.kind == kindNumber:
		last = quoteValue(high)
		text = " of at most " + last + " " + unit
	}
	if text != "" && last != "1" {
		text += "s"
	}
	return text
}

// option is a value that a field can have, and its title.
type option struct {
	value *value
	title string
}

// optionsOf returns the first options of an enumeration of any shape, or nil:
// enum with enumNames, const, or oneOf and anyOf in which all have a const.
func optionsOf(schema *value, limit int) []option {
	var options []option
	if constant := schema.get("const"); constant != nil {
		return []option{{constant, ""}}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if branches := schema.get(keyword); branches != nil && allConst(branches) {
			for _, b := range branches.items[:min(len(branches.items), limit)] {
				o := option{value: b.get("const")}
				if title := b.get("title"); title != nil {
					o.title = title.text
				}
				options = append(options, o)
			}
			return options
		}
	}
	enum := schema.get("enum")
	if enum == nil || enum.kind != kindArray {
		return nil
	}
	names := schema.get("enumNames")
	for i, v := range enum.items[:min(len(enum.items), limit)] {
		o := option{value: v}
		if names != nil && i < len(names.items) {
			o.title = names.items[i].text
		}
		options = append(options, o)
	}
	return options
}

// allConst reports whether the branches of a oneOf or anyOf are options.
func allConst(branches *value) bool {
	for _, b := range branches.items {
		if b.get("const") == nil {
			return false
		}
	}
	return len(branches.items) > 0
}

func listOptions(options []option) string {
	var b strings.Builder
	if len(options) > 1 {
		b.WriteString("one of ")
	}
	for i, o := range options {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == maxOptions {
			b.WriteString("…")
			break
		}
		b.WriteString(quoteValue(o.value))
		if o.title != "" && !o.value.is(o.title) {
			b.WriteString(" (" + clip(o.title) + ")")
		}
	}
	return b.String()
}

// secretName matches the names, and the titles, of fields whose values are never
// quoted. It rather takes a harmless name for a secret than the other way round.
var secretName = lazyRegexp(`(?i)passw|passphrase|passcode|pwd|secret|token|credential|api.?key|private.?key|access.?key|\botp\b|\bpin\b|pin.?code|cvv|cvc|ssn|card.?number`)

// secret reports whether a value is never to be quoted.
func (p place) secret() bool {
	return p.hidden || secretName().MatchString(p.path) || secretSchema(p.schema)
}

// secretSchema reports whether a field's schema asks for a secret.
func secretSchema(schema *value) bool {
	if schema == nil {
		return false
	}
	title := schema.get("title")
	return schema.get("format").is("password") || schema.get("writeOnly").isTrue() ||
		title != nil && secretName().MatchString(title.text)
}
