package rewrite

import "strconv"

// A Place says what a message is to the one who finds things in it.
type Place struct {
	ToClient bool
	// Method is the method of a request or notification, or of the request
	// that a response answers. Empty means that it is not known; then every
	// carrier that a response can have is looked at.
	Method string
}

// A carrier is an object that may have icons.
type carrier struct {
	object         Span
	list           string // its path, or that of the list whose element it is
	index          int    // in that list; -1: it is no element
	implementation bool   // it may have a websiteUrl too
}

// path is made only for carriers that have something, of which there are few.
func (c *carrier) path() string { return elementPath(c.list, c.index) }

func elementPath(list string, index int) string {
	if index < 0 {
		return list
	}
	return list + "[" + strconv.Itoa(index) + "]"
}

// The names of the reverse-domain keys in _meta, revision 2026-07-28.
const (
	metaServerInfo = "io.modelcontextprotocol/serverInfo"
	metaClientInfo = "io.modelcontextprotocol/clientInfo"
)

// carriers finds the objects that may have icons (SEP-973): Implementation,
// Tool, Resource, ResourceTemplate, Prompt and ResourceLink, where the schema
// of some revision puts them, and nowhere else. Each member on the way is
// matched without regard to case and with all its duplicates, so that none of
// them is a way around the policy.
type carriers struct {
	raw   []byte
	found []carrier

	// outer are the members of the result or params, which is asked for one
	// name after the other and may hold a long list: it is walked once.
	outer   Span
	members []rawMember
}

type rawMember struct {
	key, value Span
	escaped    bool
}

func (c *carriers) find(env Envelope, in Place) []carrier {
	switch {
	case in.ToClient && env.Kind == KindResult:
		c.result(env.Result, in.Method)
	case in.ToClient && env.Kind == KindRequest && env.Method == "sampling/createMessage":
		c.sampling(env.Params, "params")
	case in.ToClient && env.Kind == KindNotification && env.Method == "notifications/tasks":
		c.each(env.Params, "params", "result", func(at Span, path string) { c.blocks(at, path, "content") })
		c.inputRequests(env.Params, "params")
	case !in.ToClient && env.Kind == KindRequest:
		if env.Method == "initialize" {
			c.each(env.Params, "params", "clientInfo", c.implementation)
		}
		c.each(env.Params, "params", "_meta", func(at Span, path string) {
			c.each(at, path, metaClientInfo, c.implementation)
		})
	}
	return c.found
}

// lists are the members of list results whose elements have icons, by method.
var lists = map[string]string{
	"tools/list":               "tools",
	"resources/list":           "resources",
	"resources/templates/list": "resourceTemplates",
	"prompts/list":             "prompts",
}

func (c *carriers) result(result Span, method string) {
	unknown := method == ""
	if unknown || method == "initialize" || method == "server/discover" {
		c.each(result, "result", "serverInfo", c.implementation)
	}
	c.each(result, "result", "_meta", func(at Span, path string) {
		c.each(at, path, metaServerInfo, c.implementation)
	})
	for m, name := range lists {
		if unknown || method == m {
			c.elements(result, "result", name)
		}
	}
	if unknown || method == "tools/call" || method == "tasks/result" {
		c.blocks(result, "result", "content")
	}
	if unknown || method == "prompts/get" {
		c.messages(result, "result")
	}
	if unknown || method == "tasks/get" {
		c.each(result, "result", "result", func(at Span, path string) { c.blocks(at, path, "content") })
	}
	c.inputRequests(result, "result")
}

// inputRequests looks at the sampling requests that a modern result carries.
func (c *carriers) inputRequests(in Span, path string) {
	c.each(in, path, "inputRequests", func(at Span, path string) {
		for m := range Members(c.raw, at) {
			path := path + "." + m.Key
			c.each(m.Value, path, "params", func(at Span, path string) { c.sampling(at, path) })
		}
	})
}

func (c *carriers) sampling(params Span, path string) {
	c.elements(params, path, "tools")
	c.messages(params, path)
}

// messages looks at the content of each message, an object or an array.
func (c *carriers) messages(in Span, path string) {
	c.each(in, path, "messages", func(at Span, path string) {
		i := 0
		for e := range Elements(c.raw, at) {
			c.blocks(e, elementPath(path, i), "content")
			i++
		}
	})
}

// blocks looks at the content blocks of a member: those of type resource_link
// are carriers, those of type tool_result have blocks of their own.
func (c *carriers) blocks(in Span, path, name string) {
	c.each(in, path, name, func(at Span, path string) {
		c.block(at, path, -1)
		i := 0
		for e := range Elements(c.raw, at) {
			c.block(e, path, i)
			i++
		}
	})
}

func (c *carriers) block(at Span, list string, index int) {
	var link, toolResult bool
	walkMembers(c.raw, at, func(key, value Span, escaped bool) bool {
		if keyFolds(key.Of(c.raw), escaped, "type") {
			v, _ := String(c.raw, value)
			link = link || v == "resource_link"
			toolResult = toolResult || v == "tool_result"
		}
		return true
	})
	if link {
		c.found = append(c.found, carrier{at, list, index, false})
	}
	if toolResult {
		c.blocks(at, elementPath(list, index), "content")
	}
}

// elements takes each element of a list as a carrier.
func (c *carriers) elements(in Span, path, name string) {
	c.each(in, path, name, func(at Span, path string) {
		i := 0
		for e := range Elements(c.raw, at) {
			c.found = append(c.found, carrier{e, path, i, false})
			i++
		}
	})
}

func (c *carriers) implementation(at Span, path string) {
	c.found = append(c.found, carrier{at, path, -1, true})
}

// each calls f for every member of the object at in whose key folds to that of name.
func (c *carriers) each(in Span, path, name string, f func(at Span, path string)) {
	if in.Empty() {
		return
	}
	if c.members == nil {
		c.outer = in
		walkMembers(c.raw, in, func(key, value Span, escaped bool) bool {
			c.members = append(c.members, rawMember{key, value, escaped})
			return true
		})
	}
	folded := Fold(name)
	match := func(key, value Span, escaped bool) bool {
		if keyFolds(key.Of(c.raw), escaped, folded) {
			f(value, path+"."+name)
		}
		return true
	}
	if in != c.outer {
		walkMembers(c.raw, in, match)
		return
	}
	for _, m := range c.members {
		match(m.key, m.value, m.escaped)
	}
}
