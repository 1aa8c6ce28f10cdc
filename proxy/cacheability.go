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
	if m.env.Kind != rewrite.KindResult || m.call == nil || m.call.revision < revisionModern || m.session.proxy.fetcher(m.policy) == nil {
		return
	}
	lists := listsIcons(m.call.method)
	if !m.incomplete && !(lists && m.policy.Icons.MayInline()) {
		return
	}
	scope, ttl := m.cacheMembers()
	switch v, _ := rewrite.String(m.raw, scope.Value); {
	case scope.At.Empty() && lists:
		m.edits.Prepend(m.raw, m.env.Result, []byte(`"cacheScope":"private"`))
	case !scope.At.Empty() && v != "private":
		m.edits.Replace(scope.Value, []byte(`"private"`))
	}
	if !m.incomplete || ttl.At.Empty() {
		return
	}
	if n, err := strconv.ParseFloat(string(ttl.Value.Of(m.raw)), 64); err != nil || n > incompleteTTL {
		m.edits.Replace(ttl.Value, []byte(strconv.Itoa(incompleteTTL)))
	}
}

// cacheMembers are the result's cacheScope and ttlMs. What another reader could
// take for them is taken out.
func (m *message) cacheMembers() (scope, ttl rewrite.Member) {
	for one := range rewrite.Members(m.raw, m.env.Result) {
		for name, to := range map[string]*rewrite.Member{"cacheScope": &scope, "ttlMs": &ttl} {
			switch {
			case one.Key == name:
				if !to.At.Empty() {
					m.edits.Remove(to.At)
				}
				*to = one
			case rewrite.Fold(one.Key) == rewrite.Fold(name):
				m.edits.Remove(one.At)
			}
		}
	}
	return scope, ttl
}

// listsIcons reports whether the results of a method can be cached and have icons.
func listsIcons(method string) bool {
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover":
		return true
	}
	return false
}
