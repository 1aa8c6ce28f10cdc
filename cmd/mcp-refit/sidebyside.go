package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A sideBySide prints two JSON values in two columns, and what differs in colour.
type sideBySide struct {
	out    io.Writer
	colour bool
}

func newSideBySide(out io.Writer) *sideBySide { return &sideBySide{out, isTerminal(out)} }

const (
	columnWidth = 56
	bold        = "1"
	red         = "31"
	green       = "32"
)

func (p *sideBySide) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *sideBySide) title(text string) { fmt.Fprintln(p.out, p.paint(bold, text)) }

// section prints what the server sent on the left and what the client got on the right.
func (p *sideBySide) section(title string, sent, got any) {
	p.title(title)
	left, right := lines(sent), lines(got)
	fmt.Fprintf(p.out, "   %-*s   %s\n", columnWidth, "the server sent", "the client got")
	for i := range max(len(left), len(right)) {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		cell := fmt.Sprintf("%-*s", columnWidth, l)
		if l != "" && !slices.Contains(right, l) {
			cell = p.paint(red, cell)
		}
		if r != "" && !slices.Contains(left, r) {
			r = p.paint(green, r)
		}
		fmt.Fprintln(p.out, strings.TrimRight("   "+cell+" | "+r, " "))
	}
	fmt.Fprintln(p.out)
}

// lines is a value as indented JSON, one option of a choice a line, and long
// texts cut.
func lines(v any) []string {
	if v == nil {
		return []string{"(nothing)"}
	}
	var b strings.Builder
	writeValue(&b, v, "")
	out := strings.Split(b.String(), "\n")
	for i, l := range out {
		if r := []rune(l); len(r) > columnWidth {
			out[i] = string(r[:columnWidth-1]) + "…"
		}
	}
	return out
}

func writeValue(b *strings.Builder, v any, indent string) {
	flat, _ := json.Marshal(v) // of a tree that was read from JSON
	text := string(flat)
	if len(indent)+len(text) <= columnWidth-12 {
		b.WriteString(text)
		return
	}
	inner := indent + "  "
	switch t := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteString("{")
		for i, k := range keys {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n" + inner + `"` + k + `": `)
			writeValue(b, t[k], inner)
		}
		b.WriteString("\n" + indent + "}")
	case []any:
		b.WriteString("[")
		for i, e := range t {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString("\n" + inner)
			writeValue(b, e, inner)
		}
		b.WriteString("\n" + indent + "]")
	default:
		b.WriteString(text)
	}
}
