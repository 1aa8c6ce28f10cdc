package proxy

import (
	"strings"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// allowForm decides on a form that asks for a secret, which the specification
// forbids in form mode ("servers MUST NOT use form mode elicitation to request
// sensitive information"). It reports false if the question was declined.
func (m *message) allowForm(q rewrite.Question) bool {
	does := m.policy.Config.Forms.Secrets
	if does != policy.FormFlag && does != policy.FormDecline {
		return true
	}
	field := secretField(m.raw, q.Schema)
	if field == "" {
		return true
	}
	reason := "the form asks for a secret: " + field
	if does == policy.FormFlag {
		m.decide(Decision{Path: q.Path, Rule: "form", Verdict: VerdictPassed, Reason: reason})
		return true
	}
	m.declineQuestion(q, reason)
	return false
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

// secretWords are what the names and titles of fields for secrets hold, as
// whole words.
var secretWords = map[string]bool{
	"password": true, "passwd": true, "passphrase": true, "passcode": true, "pwd": true, "pin": true,
	"secret": true, "token": true, "apikey": true, "credential": true, "credentials": true,
	"cvv": true, "cvc": true, "ssn": true, "otp": true,
}

// secretField is the name of a field of the form that asks for a secret, by
// its format or its name; empty if none does.
func secretField(raw []byte, schema rewrite.Span) string {
	properties, _ := rewrite.Lookup(raw, schema, "properties")
	for p := range rewrite.Members(raw, properties) {
		if format, ok := rewrite.Lookup(raw, p.Value, "format"); ok {
			if f, _ := rewrite.String(raw, format); strings.EqualFold(f, "password") {
				return p.Key
			}
		}
		at, _ := rewrite.Lookup(raw, p.Value, "title")
		title, _ := rewrite.String(raw, at)
		if isSecret(p.Key) || isSecret(title) {
			return p.Key
		}
	}
	return ""
}

// isSecret reports whether a name such as apiKey, API_KEY or "Access token" is
// one for a secret.
func isSecret(name string) bool {
	words := words(name)
	for i, w := range words {
		if secretWords[w] {
			return true
		}
		if w == "key" && i > 0 {
			switch words[i-1] {
			case "api", "private", "secret", "access", "signing", "encryption":
				return true
			}
		}
	}
	return false
}

// words takes a name apart at capitals and at whatever is no letter or digit.
func words(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		upper := r >= 'A' && r <= 'Z'
		if upper && lower {
			b.WriteByte(' ')
		}
		lower = r >= 'a' && r <= 'z'
		if r >= 'a' && r <= 'z' || upper || r >= '0' && r <= '9' || r > 127 {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
	return strings.Fields(strings.ToLower(b.String()))
}
