package proxy

import (
	"strconv"
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// allowForm decides on a form that asks for a secret, which the specification
// forbids in form mode (2025-11-25, elicitation, security considerations). It
// reports false if the question was declined.
func (m *message) allowForm(q rewrite.Question) bool {
	d := m.policy.Forms.DecideForm(q.Schema.Of(m.raw))
	reason := d.Reason
	if len(d.Fields) > 0 {
		reason += ": " + strings.Join(d.Fields, ", ")
	}
	if d.Flag {
		m.decide(Decision{Path: q.Path, Rule: "form", Verdict: VerdictPassed, Reason: reason})
	}
	if !d.Allow {
		m.declineQuestion(q, reason)
	}
	return d.Allow
}

// allowURL decides on a question of mode url. It reports false if it was declined.
func (m *message) allowURL(q rewrite.Question) bool {
	url, _ := rewrite.String(m.raw, q.URL)
	d := m.policy.Forms.DecideURL(policy.IconArgs{URL: url, Origin: m.session.origin})
	if d.Flag {
		m.decide(Decision{Path: q.Path + ".url", Rule: "form", Verdict: VerdictPassed, Reason: d.Reason})
	}
	if !d.Allow {
		m.declineQuestion(q, d.Reason)
	}
	return d.Allow
}

// declineQuestion keeps a question from the client: the server is told that
// the user declined, or, where the question is part of a result, the client
// that the call came to nothing.
func (m *message) declineQuestion(q rewrite.Question, reason string) {
	m.decide(Decision{Path: q.Path, Rule: "form", Verdict: VerdictRefused, Reason: reason})
	if m.env.Kind == rewrite.KindRequest {
		m.out = &outcome{reply: resultMessage(m.id(), []byte(`{"action":"decline"}`))}
		return
	}
	text := "mcp-refit: the server asked for what the policy does not allow: " + reason
	if m.env.Kind == rewrite.KindNotification {
		m.drop()
		return
	}
	m.replace(errorMessage(m.id(), codeInvalidRequest, text))
}

// codeURLRequired is the code of an error that asks for URLs to be opened
// before the call is made again (URLElicitationRequiredError of 2025-11-25).
const codeURLRequired = -32042

// judgeURLError decides on the URLs that such an error asks to open. All
// members that a reader could take for them are looked at.
func (m *message) judgeURLError() {
	if m.env.Kind != rewrite.KindError {
		return
	}
	asks := false
	for code := range rewrite.Folded(m.raw, m.env.Error, "code") {
		asks = asks || isNumber(code.Of(m.raw), codeURLRequired)
	}
	if !asks {
		return
	}
	for data := range rewrite.Folded(m.raw, m.env.Error, "data") {
		for list := range rewrite.Folded(m.raw, data, "elicitations") {
			for one := range rewrite.Elements(m.raw, list) {
				for url := range rewrite.Folded(m.raw, one, "url") {
					if !m.allowURL(rewrite.Question{Path: "error.data.elicitations", URL: url}) {
						return
					}
				}
			}
		}
	}
}

// isNumber reports whether a JSON value is the number n, however it is written.
func isNumber(raw []byte, n float64) bool {
	f, err := strconv.ParseFloat(string(raw), 64)
	return err == nil && f == n
}
