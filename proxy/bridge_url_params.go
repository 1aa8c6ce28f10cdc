package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// toolHeaders are the parameters of tools that are mirrored in headers
// (x-mcp-header of 2026-07-28, SEP-2243), as learnt from tools/list.
type toolHeaders struct {
	mu     sync.Mutex
	byTool map[string][]paramHeader
	order  []string
}

// maxHeaderTools is how many tools with such parameters are remembered; the
// oldest goes first. A call of one that is forgotten has the list asked for
// once more.
const maxHeaderTools = 4096

// A paramHeader is one parameter and its header.
type paramHeader struct {
	path []string // from the arguments inwards
	name string   // Mcp-Param-…
}

const annotation = "x-mcp-header"

// learn notes the annotations in a tools/list result, and takes out the tools
// whose annotations are not valid, as a client over HTTP must. left is told of
// each.
func (t *toolHeaders) learn(data []byte, env rewrite.Envelope, left func(tool, why string)) []byte {
	tools, ok := rewrite.Get(data, env.Result, "tools")
	if !ok {
		return data
	}
	var e rewrite.Edits
	for at := range rewrite.Elements(data, tools.Value) {
		text, _ := rewrite.Get(data, at, "name")
		name, ok := rewrite.String(data, text.Value)
		if !ok {
			continue
		}
		headers, err := annotations(data, at)
		if err != nil {
			left(name, err.Error())
			e.Remove(at)
			continue
		}
		t.keep(name, headers)
	}
	return e.Apply(data)
}

func (t *toolHeaders) keep(tool string, headers []paramHeader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.byTool[tool]
	switch {
	case len(headers) == 0 && !known:
		return
	case len(headers) == 0:
		t.byTool[tool] = nil
		return
	case t.byTool == nil:
		t.byTool = make(map[string][]paramHeader)
	}
	if !known {
		t.order = append(t.order, tool)
	}
	t.byTool[tool] = headers
	if len(t.order) > maxHeaderTools {
		delete(t.byTool, t.order[0])
		t.order = t.order[1:]
	}
}

// annotations are those of one tool.
func annotations(data []byte, tool rewrite.Span) ([]paramHeader, error) {
	schema, ok := rewrite.Get(data, tool, "inputSchema")
	if !ok || !mayAnnotate(schema.Value.Of(data)) {
		return nil, nil
	}
	a := annotationWalk{data: data, seen: make(map[string]bool)}
	if err := a.schema(schema.Value, nil, true); err != nil {
		return nil, err
	}
	return a.found, nil
}

// mayAnnotate reports whether a closer look is needed.
func mayAnnotate(schema []byte) bool {
	return bytes.Contains(schema, []byte(annotation)) || bytes.Contains(schema, []byte(`\u`))
}

type annotationWalk struct {
	data  []byte
	found []paramHeader
	seen  map[string]bool // names, in lower case
}

// schema walks a schema. Only a chain of properties leads to a parameter; an
// annotation anywhere else makes the tool invalid.
func (a *annotationWalk) schema(at rewrite.Span, path []string, reachable bool) error {
	for m := range rewrite.Members(a.data, at) {
		switch {
		case m.Key == annotation:
			if err := a.annotation(at, m.Value, path, reachable); err != nil {
				return err
			}
		case m.Key == "properties":
			for property := range rewrite.Members(a.data, m.Value) {
				if err := a.schema(property.Value, append(path[:len(path):len(path)], property.Key), reachable); err != nil {
					return err
				}
			}
		case isData(m.Key):
		default:
			if err := a.elsewhere(m.Value, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// elsewhere walks what no parameter is reached by.
func (a *annotationWalk) elsewhere(at rewrite.Span, path []string) error {
	switch a.data[at.Start] {
	case '{':
		return a.schema(at, path, false)
	case '[':
		for one := range rewrite.Elements(a.data, at) {
			if err := a.elsewhere(one, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// isData reports whether a keyword's value is data and no schema.
func isData(keyword string) bool {
	switch keyword {
	case "default", "const", "enum", "examples":
		return true
	}
	return false
}

func (a *annotationWalk) annotation(schema, value rewrite.Span, path []string, reachable bool) error {
	name, ok := rewrite.String(a.data, value)
	switch {
	case !ok || name == "":
		return fmt.Errorf("%s of %s is no text", annotation, inQuotes(strings.Join(path, ".")))
	case !isToken(name):
		return fmt.Errorf("%s %s is no header name", annotation, inQuotes(name))
	case !reachable || len(path) == 0:
		return fmt.Errorf("%s %s stands where it names no parameter", annotation, inQuotes(name))
	case a.seen[strings.ToLower(name)]:
		return fmt.Errorf("%s %s stands twice", annotation, inQuotes(name))
	}
	of, _ := rewrite.Get(a.data, schema, "type")
	switch t, _ := rewrite.String(a.data, of.Value); t {
	case "string", "integer", "boolean":
	default:
		return fmt.Errorf("%s %s is on a parameter that is no string, integer or boolean", annotation, inQuotes(name))
	}
	a.seen[strings.ToLower(name)] = true
	a.found = append(a.found, paramHeader{path: path, name: headerParam + name})
	return nil
}

// isToken reports whether a text is a token (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// set adds the headers of a tools/call.
func (t *toolHeaders) set(h http.Header, p *post) {
	t.mu.Lock()
	headers := t.byTool[p.name]
	t.mu.Unlock()
	if len(headers) == 0 {
		return
	}
	env, err := rewrite.Scan(p.body)
	if err != nil {
		return
	}
	for _, one := range headers {
		at, ok := rewrite.Lookup(p.body, env.Params, append([]string{"arguments"}, one.path...)...)
		if !ok {
			continue
		}
		if text, err := paramText(p.body, at); err == nil {
			h.Set(one.name, headerText(text))
		}
	}
}

var errNoParam = errors.New("no value that a header can mirror")

// paramText is the text of a parameter's value.
func paramText(raw []byte, at rewrite.Span) (string, error) {
	text := string(at.Of(raw))
	switch text[0] {
	case '"':
		v, _ := rewrite.String(raw, at)
		return v, nil
	case 't', 'f':
		return text, nil
	case 'n', '{', '[':
		return "", errNoParam
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return "", errNoParam
	}
	return strconv.FormatInt(int64(f), 10), nil
}

// relist asks for the list of tools once more, after the server has said that
// the headers of a call do not mirror its body: the tool may have changed. It
// reports whether the list could be had.
func (r *remote) relist(p *post) bool {
	env, err := rewrite.Scan(p.body)
	if err != nil {
		return false
	}
	meta, _ := rewrite.Lookup(p.body, env.Params, "_meta")
	cursor := []byte(nil)
	for range maxToolPages {
		params := append([]byte(`{"_meta":`), meta.Of(p.body)...)
		if cursor != nil {
			params = append(append(params, `,"cursor":`...), cursor...)
		}
		response, err := r.link.request("tools/list", append(params, '}'))
		if err != nil {
			return false
		}
		env, err := rewrite.Scan(response)
		if err != nil || env.Kind != rewrite.KindResult {
			return false
		}
		next, ok := rewrite.Get(response, env.Result, "nextCursor")
		if !ok || response[next.Value.Start] != '"' {
			return true
		}
		cursor = next.Value.Of(response)
	}
	return true
}

// maxToolPages is how many pages of a list are asked for in a row.
const maxToolPages = 100
