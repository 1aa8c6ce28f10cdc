package proxy

import (
	"math"
	"strconv"
	"strings"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A callKey names a request in flight: the side that it was sent to, and its
// id. The ids of the two directions are separate spaces.
type callKey struct {
	to Direction
	id string // canonical, see canonicalID
}

// A call is a request in flight, in either direction.
type call struct {
	id     []byte // as it was written
	method string

	// Of a request to the server:
	target   string   // what it is for: a tool's or prompt's name, a resource's URI, a task's id
	digest   [32]byte // of what the call is, see CallDigest; set where canAsk
	canAsk   bool     // its result may carry inputRequests
	revision string   // declared in _meta; empty before 2026-07-28

	// Of a request of our own: who waits for the response. It has room for one.
	waiter chan<- []byte

	watched *Call // what is told of it once it is over; nil if nobody wants to know

	// Of a request to the client:
	form *form // of an elicitation: what the answer is checked against
}

// calls is the table of the requests in flight in one session, both ways. The
// owner's lock guards it.
type calls struct {
	open  map[callKey]*call
	forms int // how many of them have a form
}

// add remembers a request. One of the same id in the same direction takes the
// place of an older one: it is the same request again (a replayed stream), or
// the older one was given up.
func (c *calls) add(key callKey, one *call) {
	if c.open == nil {
		c.open = make(map[callKey]*call)
	}
	c.remove(key)
	c.open[key] = one
	if one.form != nil {
		c.forms++
	}
}

// remove forgets a request and returns it, nil if there is none.
func (c *calls) remove(key callKey) *call {
	one := c.open[key]
	if one == nil {
		return nil
	}
	delete(c.open, key)
	if one.form != nil {
		c.forms--
	}
	return one
}

// answered removes and returns the request that a response with this id
// answers. The JSON type of an id counts ("1" and 1 are two requests), but if
// there is no such request and a form waits, then one is taken that the peer
// might match all the same: the official TypeScript SDK reads the id of a
// response with Number().
func (c *calls) answered(key callKey) *call {
	if one := c.remove(key); one != nil || c.forms == 0 || key.to != ToClient {
		return one
	}
	loose, ok := looseID(key.id)
	if !ok {
		return nil
	}
	for other, one := range c.open {
		if one.form != nil && other.to == key.to {
			if l, ok := looseID(other.id); ok && l == loose {
				return c.remove(other)
			}
		}
	}
	return nil
}

// canonicalID returns a text that is equal for two ids exactly if they are the
// same JSON value: a string as it reads, a number by its value.
func canonicalID(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' {
		s, _ := rewrite.String(raw, rewrite.Span{Start: 0, End: len(raw)})
		return `"` + s
	}
	for _, c := range raw {
		if c == '.' || c == 'e' || c == 'E' || c == '-' {
			return canonicalNumber(string(raw))
		}
	}
	return string(raw)
}

func canonicalNumber(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return text
}

// looseID is the number that JavaScript's Number() makes of an id. It reports
// false if that is NaN.
func looseID(canonical string) (float64, bool) {
	text, quoted := strings.CutPrefix(canonical, `"`)
	if quoted {
		text = strings.TrimFunc(text, jsSpace)
		if text == "" {
			return 0, true
		}
		if len(text) > 2 && text[0] == '0' && strings.ContainsRune("xXoObB", rune(text[1])) {
			n, err := strconv.ParseUint(text, 0, 64)
			return float64(n), err == nil
		}
		if strings.ContainsAny(text, "_xXpPnN") { // Go's syntax, not JavaScript's
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

func jsSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', '\u00a0', '\u1680', '\u2028', '\u2029', '\u202f', '\u205f', '\u3000', '\ufeff':
		return true
	}
	return r >= '\u2000' && r <= '\u200a'
}
