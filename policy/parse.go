package policy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxFile is the largest policy file, in bytes.
const MaxFile = 256 << 10

// maxFileDepth bounds the depth of a policy file, well above what the format
// needs: the parser's time grows with its square.
const maxFileDepth = 32

// Parse reads a policy file strictly: a key that is not known or stands
// twice, a value of the wrong type or out of bounds, a host that is not
// canonical, and every feature of YAML that the format has no use for
// (anchors, tags, merge keys, several documents) are errors, of type Errors,
// which name file, line and column. name is only used to say where.
func Parse(name string, data []byte) (*Config, error) {
	c := Default()
	c.file = name
	d := &decoder{file: name}
	root, err := d.parse(data)
	if err != nil {
		return nil, Errors{err}
	}
	d.whole(root, c)
	if len(d.errs) == 0 {
		d.errs = c.validate()
	}
	for i := range c.Servers {
		if len(d.errs) > 0 {
			break
		}
		merged := c.clone()
		if d.errs = merged.override(&c.Servers[i], i); len(d.errs) == 0 {
			d.errs = merged.validate()
		}
	}
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	return c, nil
}

// parse returns the one mapping that the file holds.
func (d *decoder) parse(data []byte) (*ast.MappingNode, *Error) {
	whole := func(line, column int, format string, args ...any) *Error {
		return &Error{Source: Source{File: d.file, Line: line, Column: column}, Msg: fmt.Sprintf(format, args...)}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > MaxFile {
		return nil, whole(1, 1, "the file is larger than %d bytes", MaxFile)
	}
	line, column := 1, 1
	for rest := data; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			return nil, whole(line, column, "the file is not UTF-8")
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return nil, whole(line, column, "the file holds a control character")
		case r == '\n':
			line, column = line+1, 0
		}
		column++
		rest = rest[n:]
	}
	if line, ok := nestedTooDeep(data); ok {
		return nil, whole(line, 1, "the file is nested more than %d deep", maxFileDepth)
	}
	file, err := yamlparser.ParseBytes(data, 0)
	if err != nil {
		return nil, d.syntaxError(err)
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			p := doc.Body.GetToken().Position
			return nil, whole(p.Line, p.Column, "the file holds more than one document")
		}
		root = doc.Body
	}
	if root == nil {
		return nil, whole(1, 1, "the file is empty; it begins with \"version: 1\"")
	}
	mapping, ok := root.(*ast.MappingNode)
	if !ok {
		p := root.GetToken().Position
		return nil, whole(p.Line, p.Column, "the file is not a mapping of keys to values; it begins with \"version: 1\"")
	}
	return mapping, nil
}

// syntaxError takes line and column out of the parser's error, and leaves out
// the lines of source that it quotes.
func (d *decoder) syntaxError(err error) *Error {
	e := &Error{Source: Source{File: d.file, Line: 1, Column: 1}, Msg: err.Error()}
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &at) {
		e.Msg = at.GetMessage()
		if t := at.GetToken(); t != nil && t.Position != nil {
			e.Source.Line, e.Source.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}

// nestedTooDeep counts open brackets, and the dashes and question marks that
// begin a line, without regard to quotes and comments: a policy file has no
// use for as many of them there either.
func nestedTooDeep(data []byte) (line int, deep bool) {
	open := 0
	for text := range bytes.Lines(data) {
		line++
		lead := strings.TrimLeft(string(text), "-? \t")
		open = max(0, open)
		marks := bytes.Count(text[:len(text)-len(lead)], []byte("- ")) + bytes.Count(text[:len(text)-len(lead)], []byte("? "))
		if marks > maxFileDepth {
			return line, true
		}
		for i := range len(lead) {
			switch lead[i] {
			case '[', '{':
				open++
			case ']', '}':
				open--
			}
			if open > maxFileDepth {
				return line, true
			}
		}
	}
	return 0, false
}
