package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// entry is the entry of a mapping under that key, nil if there is none.
func entry(m *ast.MappingNode, key string) *ast.MappingValueNode {
	for _, e := range m.Values {
		if value(e.Key) == key {
			return e
		}
	}
	return nil
}

// child follows keys into a tree, nil where there is nothing.
func child(n ast.Node, keys ...string) ast.Node {
	for _, key := range keys {
		m, ok := n.(*ast.MappingNode)
		if !ok {
			return nil
		}
		e := entry(m, key)
		if e == nil {
			return nil
		}
		n = e.Value
	}
	return n
}

// items are those of a list, none for anything else.
func items(n ast.Node) []ast.Node {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	return list.Values
}

// text is a scalar in a tree as it reads, "" where there is none.
func text(n ast.Node, keys ...string) string {
	n = child(n, keys...)
	if n == nil {
		return ""
	}
	return value(n)
}

func value(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	if t := n.GetToken(); t != nil {
		return t.Value
	}
	return ""
}

// A splice collects changes to the lines of a YAML text.
type splice struct {
	lines   [][]byte // with their ends
	inserts []insertion
}

type insertion struct {
	after int // the line, from 1; 0 is before the first
	text  string
}

// insert puts lines after a line, indented by a number of columns.
func (p *splice) insert(after int, lines string, column int) {
	p.inserts = append(p.inserts, insertion{after, indentLines(lines, column)})
}

// replace writes a scalar anew that stands on one line.
func (p *splice) replace(n ast.Node, with string) {
	t := n.GetToken()
	line := p.lines[t.Position.Line-1]
	at := runeOffset(line, t.Position.Column-1)
	old := strings.TrimSpace(t.Origin)
	p.lines[t.Position.Line-1] = slices.Concat(line[:at], []byte(with), bytes.TrimPrefix(line[at:], []byte(old)))
}

// insertAt puts text behind the n-th character of a line.
func (p *splice) insertAt(line, n int, text string) {
	at := runeOffset(p.lines[line-1], n)
	p.lines[line-1] = slices.Insert(slices.Clone(p.lines[line-1]), at, []byte(text)...)
}

// runeOffset is the offset of the n-th character.
func runeOffset(line []byte, n int) int {
	at := 0
	for i := range string(line) {
		if n == 0 {
			at = i
			break
		}
		n--
	}
	return at
}

// apply is the text with its changes.
func (p *splice) apply() []byte {
	var b bytes.Buffer
	for i := range len(p.lines) + 1 {
		if i > 0 {
			b.Write(p.lines[i-1])
		}
		for _, in := range p.inserts {
			if in.after == i {
				if b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
					b.WriteByte('\n')
				}
				b.WriteString(in.text)
			}
		}
	}
	return b.Bytes()
}

// indentLines puts spaces in front of each line.
func indentLines(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", columns) + line)
	}
	return b.String()
}
