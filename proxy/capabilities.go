package proxy

import (
	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// plainElicitation sends an old server a plain elicitation capability: Java
// servers of the 2025-06-18 generation fail on the sub-capabilities form and
// url that later clients announce in initialize.
func (m *message) plainElicitation() {
	if m.policy.Config.Compat != policy.CompatPlainElicitation || m.env.Kind != rewrite.KindRequest || m.env.Method != "initialize" {
		return
	}
	at, ok := rewrite.Lookup(m.raw, m.env.Params, "capabilities", "elicitation")
	if !ok || m.raw[at.Start] != '{' {
		return
	}
	for range rewrite.Members(m.raw, at) {
		m.edits.Replace(at, []byte("{}"))
		m.decide(Decision{
			Path: "params.capabilities.elicitation", Rule: "capability", Verdict: VerdictRewritten,
			Reason: "compat: plain-elicitation", Before: at.Of(m.raw), After: []byte("{}"),
		})
		return
	}
}
