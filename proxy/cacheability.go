package proxy

import (
	"strconv"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// incompleteTTL is how long, in milliseconds, a client may keep a result that
// went out without icons which are still on their way.
const incompleteTTL = 1000

// cacheability puts right what a modern result says of how it may be cached
// (ttlMs and cacheScope of 2026-07-28). Where icons are inlined, which ones a
// page has depends on what had arrived when this client asked, so that no page
// of such a list may be shared between clients: all pages must agree.
func (m *message) cacheability() {
	if m.env.Kind != rewrite.KindResult || m.call == nil || m.call.revision < revisionModern || m.session.proxy.Icons == nil {
		return
	}
	if !listsIcons(m.call.method) || !m.incomplete && !m.policy.Icons.MayInline() {
		return
	}
	scope, has := rewrite.Get(m.raw, m.env.Result, "cacheScope")
	switch v, _ := rewrite.String(m.raw, scope.Value); {
	case !has:
		m.edits.Prepend(m.raw, m.env.Result, []byte(`"cacheScope":"private"`))
	case v != "private":
		m.edits.Replace(scope.Value, []byte(`"private"`))
	}
	if !m.incomplete {
		return
	}
	ttl, has := rewrite.Get(m.raw, m.env.Result, "ttlMs")
	if n, err := strconv.ParseFloat(string(ttl.Value.Of(m.raw)), 64); has && (err != nil || n > incompleteTTL) {
		m.edits.Replace(ttl.Value, []byte(strconv.Itoa(incompleteTTL)))
	}
}

// listsIcons reports whether the results of a method can be cached and have icons.
func listsIcons(method string) bool {
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover":
		return true
	}
	return false
}
