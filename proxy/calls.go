package proxy

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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
	target   string      // what it is for: a tool's or prompt's name, a resource's URI, a task's id
	digest   [32]byte    // of what the call is, see CallDigest; set where canAsk
	canAsk   bool        // its result may carry inputRequests
	revision string      // declared in _meta; empty before 2026-07-28
	asked    listChanged // of subscriptions/listen: what it subscribes to

	// Of a request of our own: who waits for the response. It has room for one.
	waiter chan<- []byte

	watched *Call // what is told of it once it is over; nil if nobody wants to know

	// Of a request to the client:
	form *form // of an elicitation: what the answer is checked against
}

// size is about how many bytes a call keeps.
func (c *call) size() int {
	n := len(c.id) + len(c.method) + len(c.target) + len(c.revision)
	if c.form != nil {
		n += c.form.size()
	}
	return n
}

// maxCallBytes bounds what the requests in flight in one session take, with
// their forms, in bytes. Beyond it no more are remembered.
const maxCallBytes = 16 << 20

// calls is the table of the requests in flight in one session, both ways. The
// owner's lock guards it.
type calls struct {
	open  map[callKey]*call
	forms int // how many of them have a form
	bytes int // the sum of their sizes
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
	c.bytes += one.size()
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
	c.bytes -= one.size()
	if one.form != nil {
		c.forms--
	}
	return one
}

// answered is remove by an id as it was written. It takes no memory for most.
func (c *calls) answered(to Direction, id []byte) *call {
	if plain := plainID(id); plain != nil {
		return c.remove(callKey{to, string(plain)})
	}
	return c.remove(callKey{to, canonicalID(id)})
}

// find returns the request to the client that a response answers, nil if there
// is none. The JSON type of an id counts ("1" and 1 are two requests), but if
// no request has that very id, then one is taken that the server might match
// all the same, see looseID.
func (c *calls) find(id string) *call {
	if one := c.open[callKey{ToClient, id}]; one != nil {
		return one
	}
	loose, ok := looseID(id)
	if !ok {
		return nil
	}
	var found *call
	for key, one := range c.open {
		if key.to != ToClient {
			continue
		}
		if l, ok := looseID(key.id); !ok || l != loose {
			continue
		}
		if found == nil || one.form != nil && found.form == nil {
			found = one
		}
	}
	return found
}

// canonicalID returns a text that is equal for two ids exactly if they are the
// same JSON value: a string as it reads, a number by its value.
func canonicalID(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	if plain := plainID(raw); plain != nil {
		return string(plain)
	}
	if raw[0] == '"' {
		s, _ := rewrite.String(raw, rewrite.Span{Start: 0, End: len(raw)})
		return `"` + s
	}
	return canonicalNumber(string(raw))
}

// plainID returns the part of an id that is its canonical text, nil if that
// reads otherwise than it was written: all but the closing quote of a string
// of ASCII without escapes, and all of a number of digits alone.
func plainID(raw []byte) []byte {
	if n := len(raw) - 1; n > 0 && raw[0] == '"' {
		for _, c := range raw[1:n] {
			if c == '\\' || c >= utf8.RuneSelf {
				return nil
			}
		}
		return raw[:n]
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return nil
		}
	}
	return raw
}

func canonicalNumber(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return text
}

// looseID is the number that a server might read in the id of a response. It
// reports false if none would. The official TypeScript SDK takes Number() of
// it, the Python SDK int() of a string, which knows underscores and the digits
// of all scripts, and the Go SDK cuts off a fraction.
func looseID(canonical string) (float64, bool) {
	text, quoted := strings.CutPrefix(canonical, `"`)
	if quoted {
		text = strings.Map(plainDigit, strings.TrimFunc(text, idSpace))
		if text == "" {
			return 0, true
		}
		if len(text) > 2 && text[0] == '0' && strings.ContainsRune("xXoObB", rune(text[1])) {
			n, err := strconv.ParseUint(text, 0, 64)
			return float64(n), err == nil
		}
		if strings.ContainsAny(text, "xXpPnN") { // Go's syntax alone
			return 0, false
		}
		text = strings.ReplaceAll(text, "_", "")
	}
	f, err := strconv.ParseFloat(text, 64)
	return math.Trunc(f), err == nil
}

// plainDigit maps the decimal digits of all scripts to those of ASCII.
func plainDigit(r rune) rune {
	if r < utf8.RuneSelf || !unicode.IsDigit(r) {
		return r
	}
	for _, in := range unicode.Nd.R16 { // tens, one after the other
		if lo, hi := rune(in.Lo), rune(in.Hi); r >= lo && r <= hi {
			return '0' + (r-lo)%10
		}
	}
	for _, in := range unicode.Nd.R32 {
		if lo, hi := rune(in.Lo), rune(in.Hi); r >= lo && r <= hi {
			return '0' + (r-lo)%10
		}
	}
	return r
}

// idSpace reports whether JavaScript or Python takes r for white space.
func idSpace(r rune) bool { return r == '\ufeff' || r >= 0x1c && r <= 0x1f || unicode.IsSpace(r) }
