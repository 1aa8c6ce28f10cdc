package scan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// A kind of thing that servers list.
type listKind struct {
	method, member string
	one            string // what one of them is called
	id             string // the member by which clients tell them apart
	count          func(*Counts) *int
}

var listKinds = []listKind{
	{"tools/list", "tools", "tool", "name", func(c *Counts) *int { return &c.Tools }},
	{"resources/list", "resources", "resource", "uri", func(c *Counts) *int { return &c.Resources }},
	{"resources/templates/list", "resourceTemplates", "resource template", "uriTemplate", func(c *Counts) *int { return &c.ResourceTemplates }},
	{"prompts/list", "prompts", "prompt", "name", func(c *Counts) *int { return &c.Prompts }},
}

// A listing is the names in a list result of one message.
type listing struct {
	of    *byte // the message
	kind  listKind
	ids   []string
	next  string
	valid bool
}

// listingOf reads a list result, whatever else is wrong with it.
func listingOf(raw []byte, method string) listing {
	l := listing{of: &raw[0]}
	for _, l.kind = range listKinds {
		if l.kind.method == method {
			break
		}
	}
	if l.kind.method != method {
		return l
	}
	var message struct{ Result map[string]json.RawMessage }
	if json.Unmarshal(raw, &message) != nil {
		return l
	}
	_ = json.Unmarshal(message.Result["nextCursor"], &l.next) // none, or none that can be used
	var elements []map[string]json.RawMessage
	l.valid = json.Unmarshal(message.Result[l.kind.member], &elements) == nil
	for _, e := range elements {
		var id string
		_ = json.Unmarshal(e[l.kind.id], &id)
		l.ids = append(l.ids, id)
	}
	return l
}

// theServer is the subject of what is said of the server itself.
const theServer = "the server"

// subject names what a path in a message leads to. It is called with c.mu held.
func (c *Collector) subject(raw []byte, method, path string) string {
	if strings.Contains(path, "serverInfo") {
		return theServer
	}
	if member, rest, ok := strings.Cut(strings.TrimPrefix(path, "result."), "["); ok && strings.HasPrefix(path, "result.") {
		if c.last.of != &raw[0] {
			c.last = listingOf(raw, method)
		}
		number, _, _ := strings.Cut(rest, "]")
		i, err := strconv.Atoi(number)
		if c.last.kind.member == member && err == nil && i < len(c.last.ids) {
			return named(c.last.kind.one, c.last.ids[i])
		}
	}
	if c.calling != "" {
		return named("tool", c.calling)
	}
	return theServer
}

func named(what, name string) string { return what + " " + strconv.Quote(cut(name)) }

// list counts what a result lists, and looks for what clients stumble over.
func (c *Collector) list(m proxy.Message) {
	l := c.last
	if l.of != &m.Raw[0] {
		l = listingOf(m.Raw, m.Method)
	}
	c.last = listing{} // the message's bytes are used for others after this
	if l.kind.method != m.Method {
		return
	}
	if c.pages == nil {
		c.pages, c.names = map[string]page{}, map[string]bool{}
	}
	c.pages[m.Method] = page{number: c.pages[m.Method].number + 1, next: l.next}
	if !l.valid {
		c.add(Finding{Level: Fault, Rule: "list", Subject: l.kind.member, Method: m.Method, Path: "result." + l.kind.member,
			Reason: "the result has no array " + l.kind.member})
	}
	*l.kind.count(&c.counts) += len(l.ids)
	for _, id := range l.ids {
		key := l.kind.one + "\x00" + id
		switch {
		case id == "":
			c.add(Finding{Level: Fault, Rule: "list", Subject: l.kind.member, Method: m.Method,
				Reason: fmt.Sprintf("a %s has no %s", l.kind.one, l.kind.id)})
		case c.names[key]:
			c.add(Finding{Level: Fault, Rule: "list", Subject: named(l.kind.one, id), Method: m.Method,
				Reason: fmt.Sprintf("two %ss have the same %s, and clients know but one of them", l.kind.one, l.kind.id)})
		case len(c.names) < maxFindings:
			c.names[key] = true
		}
	}
}

// A page is the last page of a list that came.
type page struct {
	number int
	next   string // the cursor of the next
}

// Page returns how many pages of a list have come, and the cursor of the next:
// also where the client itself could not read them.
func (c *Collector) Page(method string) (number int, next string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages[method].number, c.pages[method].next
}

// A refit is what becomes of a schema.
type refit struct {
	after []byte
	rules []string
}

// Report returns what was found so far.
func (c *Collector) Report() *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Report{Version: 1, Counts: c.counts, Findings: []Finding{}, Forms: []Form{}}
	r.Findings = append(r.Findings, c.findings...)
	r.Forms = append(r.Forms, c.forms...)
	if c.strays > maxStrays {
		r.Findings = append(r.Findings, Finding{Level: Fault, Rule: "stray-line", Subject: "stdout",
			Reason: fmt.Sprintf("%d more such lines", c.strays-maxStrays)})
	}
	return r
}
