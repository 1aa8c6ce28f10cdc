package proxy

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// Values of headers that every POST has (MCP, transports, Streamable HTTP).
var (
	acceptBoth   = []string{"application/json, text/event-stream"}
	acceptEvents = []string{typeEvents}
)

const headerLastEvent = "Last-Event-Id"

// mirror notes what the headers of a modern message say of its body.
func (p *post) mirror(env rewrite.Envelope) {
	if env.Seen&(rewrite.KeyProtocolVersion|rewrite.KeyOdd) == 0 {
		return
	}
	at, _ := rewrite.Lookup(p.body, env.Params, "_meta", metaProtocolVersion)
	p.revision, _ = rewrite.String(p.body, at)
	member := nameOf(p.method)
	if member == "" {
		return
	}
	at, _ = rewrite.Lookup(p.body, env.Params, member)
	p.name, _ = rewrite.String(p.body, at)
}

// nameOf is the member of a method's params that Mcp-Name mirrors, empty if
// there is none.
func nameOf(method string) string {
	switch method {
	case "tools/call", "prompts/get":
		return "name"
	case "resources/read":
		return "uri"
	}
	if strings.HasPrefix(method, "tasks/") {
		return "taskId"
	}
	return ""
}

// address says where a post goes, and with which headers.
func (r *remote) address(p *post) (*url.URL, http.Header, error) {
	h := http.Header{"Content-Type": jsonType, "Accept": acceptBoth}
	r.mu.Lock()
	if len(p.answers) > 0 && p.generation != r.session.generation {
		r.mu.Unlock()
		return nil, nil, errAskedBefore
	}
	p.generation = r.session.generation
	to, session, revision := r.url, r.session.id, r.session.revision
	if r.old != nil {
		to = r.old.endpoint
	}
	r.mu.Unlock()
	if p.again {
		session = p.session
	}
	switch {
	case p.isModern():
		h.Set(headerVersion, p.revision)
		h.Set(headerMethod, headerText(p.method))
		if p.name != "" {
			h.Set(headerName, headerText(p.name))
		}
		if p.method == "tools/call" {
			r.tools.set(h, p)
		}
	case p.method != "initialize":
		setSession(h, session, revision)
	}
	return to, h, r.credentials(p.ctx, h)
}

// setSession sets what tells the server, before 2026-07-28, which session a
// request belongs to.
func setSession(h http.Header, session, revision string) {
	if session != "" {
		h.Set(headerSession, session)
	}
	if revision != "" {
		h.Set(headerVersion, revision)
	}
}

// errorCode is the code of a JSON-RPC error, 0 if text is none.
func errorCode(text []byte) int {
	env, err := rewrite.Scan(text)
	if err != nil || env.Kind != rewrite.KindError {
		return 0
	}
	at, _ := rewrite.Lookup(text, env.Error, "code")
	code := 0
	digits, negative := bytes.CutPrefix(at.Of(text), []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' || code > 1<<30 {
			return 0
		}
		code = code*10 + int(c-'0')
	}
	if negative {
		code = -code
	}
	return code
}
