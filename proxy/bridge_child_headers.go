package proxy

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// mismatch says in what the headers of a modern request disagree with its body
// (2026-07-28, transports, -32020), empty if in nothing: a server behind stdio
// can't see them, so they are checked here.
func (c *sharedChild) mismatch(h http.Header, body []byte, env rewrite.Envelope) string {
	revision := declared(body, env)
	switch header := h.Get(headerVersion); {
	case header == "":
		return headerVersion + " is missing"
	case revision != "" && revision != header:
		return headerVersion + " is " + inQuotes(header) + ", the body declares " + inQuotes(revision)
	}
	if method := h.Get(headerMethod); method != env.Method {
		return headerMethod + " is " + inQuotes(method) + ", the body's method is " + inQuotes(env.Method)
	}
	member := nameOf(env.Method)
	if member == "" || env.Method == "tasks/result" || env.Method == "tasks/list" { // both are gone in this revision
		return ""
	}
	at, ok := rewrite.Lookup(body, env.Params, member)
	name, isText := rewrite.String(body, at)
	if !ok || !isText {
		return ""
	}
	header, valid := headerValue(h.Get(headerName))
	if !valid || header != name {
		return headerName + " is " + inQuotes(h.Get(headerName)) + ", the body's " + member + " is " + inQuotes(name)
	}
	if env.Method == "tools/call" {
		return c.tools.mismatch(h, body, env, name)
	}
	return ""
}

// incomplete says what the _meta of a modern request lacks (2026-07-28, basic,
// request metadata), empty if nothing.
func incomplete(body []byte, env rewrite.Envelope) string {
	for _, name := range []string{metaProtocolVersion, metaClientCapabilities} {
		at, ok := rewrite.Lookup(body, env.Params, "_meta", name)
		if !ok || body[at.Start] == 'n' {
			return "the request's _meta has no " + name
		}
	}
	return ""
}

const metaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"

// statusOf is the HTTP status of a modern response (2026-07-28, transports): a
// few errors have one of their own.
func statusOf(message []byte) int {
	env, err := rewrite.Scan(message)
	if err != nil || env.Kind != rewrite.KindError {
		return http.StatusOK
	}
	code, _ := rewrite.Lookup(message, env.Error, "code")
	switch string(code.Of(message)) {
	case "-32601": // no such method
		return http.StatusNotFound
	case "-32020", "-32021", "-32022": // header mismatch, missing capability, unsupported revision
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// mismatch says in what the Mcp-Param headers of a call disagree with its
// arguments, by what the tool's schema says. A tool that was not listed yet
// is not checked.
func (t *toolHeaders) mismatch(h http.Header, body []byte, env rewrite.Envelope, tool string) string {
	t.mu.Lock()
	headers := t.byTool[tool]
	t.mu.Unlock()
	for _, one := range headers {
		want := ""
		if at, ok := rewrite.Lookup(body, env.Params, append([]string{"arguments"}, one.path...)...); ok {
			want, _ = paramText(body, at)
		}
		got, valid := headerValue(h.Get(one.name))
		if !valid || got != want {
			return one.name + " is " + inQuotes(h.Get(one.name)) + ", the argument " + strings.Join(one.path, ".") + " is " + inQuotes(want)
		}
	}
	return ""
}

// note notes the annotations in a tools/list result. A tool whose annotations
// are not valid is not checked; clients leave it out.
func (t *toolHeaders) note(data []byte, env rewrite.Envelope) {
	tools, _ := rewrite.Lookup(data, env.Result, "tools")
	for at := range rewrite.Elements(data, tools) {
		text, _ := rewrite.Lookup(data, at, "name")
		name, ok := rewrite.String(data, text)
		if !ok {
			continue
		}
		headers, err := annotations(data, at)
		if err != nil {
			headers = nil
		}
		t.keep(name, headers)
	}
}

// headerValue is what a header says: as it is, or in base64 (SEP-2243).
func headerValue(text string) (string, bool) {
	encoded, ok := strings.CutPrefix(text, "=?base64?")
	if !ok {
		return text, true
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return text, true
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	return string(b), err == nil
}
