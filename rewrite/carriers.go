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

// A step is one member or element on the way to a carrier. Its text is made only where
// somebody asks for it.
type step struct {
	up    *step
	name  string // of the member
	index int    // in a list; -1: it is a member
}

func (n *step) member(name string) *step { return &step{n, name, -1} }
func (n *step) element(index int) *step  { return &step{n, "", index} }
func (n *step) text() string             { return string(n.append(nil)) }
func (n *step) append(text []byte) []byte {
	if n.up != nil {
		text = n.up.append(text)
	}
	if n.index >= 0 {
		text = append(text, '[')
		return append(strconv.AppendInt(text, int64(n.index), 10), ']')
	}
	if len(text) > 0 {
		text = append(text, '.')
	}
	return append(text, n.name...)
}

// The names of the reverse-domain keys in _meta, revision 2026-07-28, and what
// they fold to.
const (
	metaServerInfo       = "io.modelcontextprotocol/serverInfo"
	metaServerInfoFolded = "io.modelcontextprotocol/serverinfo"
	metaClientInfo       = "io.modelcontextprotocol/clientInfo"
	metaClientInfoFolded = "io.modelcontextprotocol/clientinfo"
)

// carriers finds the objects that may have icons (SEP-973): Implementation,
// Tool, Resource, ResourceTemplate, Prompt and ResourceLink, where the schema
// of some revision puts them, and nowhere else. Each member on the way is
// matched without regard to case and with all its duplicates, so that none of
// them is a way around the policy.
//
// A message is walked once, however deep its carriers are: whoever looks into a
// value returns where it ended. What stands before the member that makes an
// object a carrier is read on suspicion, and forgotten if it was none.
type carriers struct {
	raw   []byte
	sets  []IconSet
	icons []Icon // of all sets
	left  int    // how many more may be noted; below 0 there were too many
}

// A visit looks at the value that begins at an offset, of the member with that
// key (in its quotes), and returns where it ends; 0 if it does not look at it.
type visit func(key Span, escaped bool, value int) (end int)

// object walks the members of the object that begins at i, and returns where
// it ends. Any other value is skipped.
func (c *carriers) object(i int, look visit) int {
	b := c.raw
	if b[i] != '{' {
		return skip(b, i)
	}
	for i = space(b, i+1); i < len(b) && b[i] == '"'; {
		key := Span{i, 0}
		escaped := false
		if i = plain(b, i+1); i < len(b) && b[i] == '"' {
			i++
		} else if i, escaped = str(b, i); i < 0 {
			return len(b)
		}
		key.End = i
		if i = space(b, space(b, i)+1); i >= len(b) {
			return len(b)
		}
		end := look(key, escaped, i)
		if end == 0 {
			end = skip(b, i)
		}
		if i = space(b, end); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return i + 1
}

// array does the same for the elements of an array.
func (c *carriers) array(i int, look func(at, index int) (end int)) int {
	b := c.raw
	if b[i] != '[' {
		return skip(b, i)
	}
	i = space(b, i+1)
	for n := 0; i < len(b) && b[i] != ']'; n++ {
		if i = space(b, look(i, n)); i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return i + 1
}

func (c *carriers) is(key Span, escaped bool, folded string) bool {
	return keyFolds(key.Of(c.raw), escaped, folded)
}

func (c *carriers) find(env Envelope, in Place) {
	result, params := &step{name: "result", index: -1}, &step{name: "params", index: -1}
	switch {
	case in.ToClient && env.Kind == KindResult:
		c.result(env.Result.Start, result, in.Method)
	case env.Params.Empty():
	case in.ToClient && env.Kind == KindRequest && env.Method == "sampling/createMessage":
		c.sampling(env.Params.Start, params)
	case in.ToClient && env.Kind == KindNotification && env.Method == "notifications/tasks":
		c.task(env.Params.Start, params)
	case !in.ToClient && env.Kind == KindRequest:
		c.object(env.Params.Start, func(key Span, escaped bool, v int) int {
			switch {
			case env.Method == "initialize" && c.is(key, escaped, "clientinfo"):
				return c.implementation(v, params.member("clientInfo"))
			case c.is(key, escaped, "_meta"):
				return c.meta(v, params.member("_meta"), metaClientInfo, metaClientInfoFolded)
			}
			return 0
		})
	}
}

// lists are the members of list results whose elements have icons, by method.
var lists = [...]struct{ method, name, folded string }{
	{"tools/list", "tools", "tools"},
	{"resources/list", "resources", "resources"},
	{"resources/templates/list", "resourceTemplates", "resourcetemplates"},
	{"prompts/list", "prompts", "prompts"},
}

func (c *carriers) result(at int, path *step, method string) int {
	of := func(methods ...string) bool {
		for _, m := range methods {
			if method == m {
				return true
			}
		}
		return method == ""
	}
	return c.object(at, func(key Span, escaped bool, v int) int {
		switch {
		case c.is(key, escaped, "_meta"):
			return c.meta(v, path.member("_meta"), metaServerInfo, metaServerInfoFolded)
		case c.is(key, escaped, "inputrequests"):
			return c.inputRequests(v, path.member("inputRequests"))
		case of("initialize", "server/discover") && c.is(key, escaped, "serverinfo"):
			return c.implementation(v, path.member("serverInfo"))
		case of("tools/call", "tasks/result") && c.is(key, escaped, "content"):
			return c.blocks(v, path.member("content"))
		case of("prompts/get") && c.is(key, escaped, "messages"):
			return c.messages(v, path.member("messages"))
		case of("tasks/get") && c.is(key, escaped, "result"):
			return c.taskResult(v, path.member("result"))
		}
		for _, l := range lists {
			if of(l.method) && c.is(key, escaped, l.folded) {
				return c.list(v, path.member(l.name))
			}
		}
		return 0
	})
}

// task looks at a task (the tasks extension): its questions, and the result
// of the call that it stands for.
func (c *carriers) task(at int, path *step) int {
	return c.object(at, func(key Span, escaped bool, v int) int {
		switch {
		case c.is(key, escaped, "result"):
			return c.taskResult(v, path.member("result"))
		case c.is(key, escaped, "inputrequests"):
			return c.inputRequests(v, path.member("inputRequests"))
		}
		return 0
	})
}

func (c *carriers) taskResult(at int, path *step) int {
	return c.object(at, func(key Span, escaped bool, v int) int {
		switch {
		case c.is(key, escaped, "content"):
			return c.blocks(v, path.member("content"))
		case c.is(key, escaped, "_meta"):
			return c.meta(v, path.member("_meta"), metaServerInfo, metaServerInfoFolded)
		}
		return 0
	})
}

func (c *carriers) meta(at int, path *step, name, folded string) int {
	return c.object(at, func(key Span, escaped bool, v int) int {
		if c.is(key, escaped, folded) {
			return c.implementation(v, path.member(name))
		}
		return 0
	})
}

// inputRequests looks at the sampling requests that a modern result carries.
func (c *carriers) inputRequests(at int, path *step) int {
	return c.object(at, func(key Span, escaped bool, v int) int {
		one := path.member(decodeKey(key.Of(c.raw), escaped))
		return c.object(v, func(key Span, escaped bool, v int) int {
			if c.is(key, escaped, "params") {
				return c.sampling(v, one.member("params"))
			}
			return 0
		})
	})
}

func (c *carriers) sampling(at int, path *step) int {
	return c.object(at, func(key Span, escaped bool, v int) int {
		switch {
		case c.is(key, escaped, "tools"):
			return c.list(v, path.member("tools"))
		case c.is(key, escaped, "messages"):
			return c.messages(v, path.member("messages"))
		}
		return 0
	})
}

// messages looks at the content of each message, an object or an array.
func (c *carriers) messages(at int, path *step) int {
	return c.array(at, func(at, i int) int {
		return c.object(at, func(key Span, escaped bool, v int) int {
			if c.is(key, escaped, "content") {
				return c.blocks(v, path.element(i).member("content"))
			}
			return 0
		})
	})
}

// blocks looks at content blocks: those of type resource_link are carriers,
// those of type tool_result have blocks of their own.
func (c *carriers) blocks(at int, path *step) int {
	if c.raw[at] == '{' {
		return c.block(at, path, -1)
	}
	return c.array(at, func(at, i int) int { return c.block(at, path, i) })
}

func (c *carriers) block(at int, in *step, index int) int {
	var link, toolResult bool
	s := c.begin(in, index)
	sets, icons, left := len(c.sets), len(c.icons), c.left
	end := c.object(at, func(key Span, escaped bool, v int) int {
		switch {
		case c.is(key, escaped, "type"):
			end := skip(c.raw, v)
			switch t, _ := String(c.raw, Span{v, end}); t {
			case "resource_link":
				link = true
			case "tool_result":
				toolResult = true
			}
			return end
		case c.is(key, escaped, "content"):
			of := in
			if index >= 0 {
				of = in.element(index)
			}
			return c.blocks(v, of.member("content"))
		}
		return c.member(&s, key, escaped, v, false)
	})
	switch {
	case !toolResult && !link:
		c.sets, c.icons, c.left = c.sets[:sets], c.icons[:icons], left
		return end
	case !toolResult:
		c.sets = c.sets[:sets]
	}
	if link {
		c.add(s)
	}
	return end
}

// list takes each element of a list as a carrier.
func (c *carriers) list(at int, path *step) int {
	return c.array(at, func(at, i int) int { return c.carrier(at, path, i, false) })
}

func (c *carriers) implementation(at int, path *step) int {
	return c.carrier(at, path, -1, true)
}

// carrier notes what an object has of icons and, if it is an Implementation,
// website.
func (c *carriers) carrier(at int, in *step, index int, implementation bool) int {
	s := c.begin(in, index)
	end := c.object(at, func(key Span, escaped bool, v int) int {
		return c.member(&s, key, escaped, v, implementation)
	})
	c.add(s)
	return end
}
