package policy

import (
	"fmt"
	"strings"
)

// Forms is the policy on what a server may ask the user for, compiled. It is
// immutable and safe for concurrent use.
type Forms struct {
	secrets  string
	punycode string
	hosts    *Icons // the hosts that may be opened; nil for any
}

// URLDecision is what becomes of a URL-mode request. Its zero value refuses.
type URLDecision struct {
	Allow  bool
	Flag   bool   // allowed, and to be told in logs and audit
	Reason string // for people; of a closed set
	Host   string // lower case; "" if the URL has none that all readers agree on
}

// FormDecision is what becomes of a form-mode request. Its zero value
// refuses: the server is answered with a decline.
type FormDecision struct {
	Allow  bool
	Flag   bool     // allowed, and to be told in logs and audit
	Reason string   // for people; of a closed set
	Fields []string // that ask for a secret; one in an object is named "object.field"
}

// NewForms compiles the policy. It fails on a host that is not canonical.
func NewForms(c FormsConfig) (*Forms, error) {
	f := &Forms{secrets: c.Secrets, punycode: c.URLPunycode}
	if len(c.URLHosts) == 0 {
		return f, nil
	}
	rules := make([]IconRule, len(c.URLHosts))
	for i, host := range c.URLHosts {
		rules[i] = IconRule{Host: host, Action: Keep}
	}
	var err error
	if f.hosts, err = NewIcons(IconsConfig{Rules: rules}); err != nil {
		return nil, fmt.Errorf("forms.url-hosts: %w", err)
	}
	return f, nil
}

// DecideURL judges the url of a URL-mode request. With forms.url-hosts, only
// https URLs on these hosts are allowed. With forms.url-punycode, one on an
// international name is flagged or refused; so is one whose host readers may
// disagree on. With neither, all are allowed.
func (f *Forms) DecideURL(args IconArgs) URLDecision {
	watched := f.punycode == FormFlag || f.punycode == FormDecline
	if f.hosts == nil && !watched {
		return URLDecision{Allow: true, Reason: reasonFormAllowed.String()}
	}
	loc, r, ok := splitURL(args.URL)
	d := URLDecision{Host: loc.host}
	switch {
	case !ok:
	case !loc.https:
		r = reasonScheme
	case f.hosts != nil && f.hosts.match(&loc, onOrigin(&loc, args.Origin)) == len(f.hosts.rules):
		d.Reason = reasonFormHost.String()
		return d
	case watched && hasPunycode(loc.host):
		d.Allow = f.punycode == FormFlag
		d.Flag = d.Allow
		d.Reason = reasonFormPunycode.String()
		return d
	default:
		d.Allow, d.Reason = true, reasonFormAllowed.String()
		return d
	}
	d.Allow = f.hosts == nil && f.punycode == FormFlag
	d.Flag = d.Allow
	d.Reason = r.String()
	return d
}

func hasPunycode(host string) bool {
	return strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--")
}

// DecideForm judges the requestedSchema of a form-mode request by
// forms.secrets: whether it has a field for a password, a token, a key or the
// like, going by name, title, format and writeOnly. Choices and switches are
// never secrets. Where forms.secrets is pass, nothing is read.
func (f *Forms) DecideForm(schema []byte) FormDecision {
	if f.secrets != FormFlag && f.secrets != FormDecline {
		return FormDecision{Allow: true, Reason: reasonFormPlain.String()}
	}
	form := newForm(schema)
	var d FormDecision
	switch {
	case form.note != "":
		d.Reason = reasonFormUnread.String()
	default:
		if d.Fields = secretFields(form.fields, "", nil); len(d.Fields) == 0 {
			return FormDecision{Allow: true, Reason: reasonFormPlain.String()}
		}
		d.Reason = reasonFormSecret.String()
	}
	d.Allow = f.secrets == FormFlag
	d.Flag = d.Allow
	return d
}

// secretNumber matches the names of the secrets that are numbers. Others are
// amounts: max_tokens is none.
var secretNumber = lazyRegexp(`(?i)passcode|\botp\b|\bpin\b|pin.?code|cvv|cvc|ssn|card.?number`)

func secretFields(fields []member, prefix string, found []string) []string {
	for _, m := range fields {
		schema := m.value
		if schema.kind != kindObject {
			continue
		}
		if properties := schema.get("properties"); properties != nil {
			found = secretFields(properties.members, prefix+m.name+".", found)
			continue
		}
		if asksForSecret(m.name, schema) {
			found = append(found, prefix+m.name)
		}
	}
	return found
}

func asksForSecret(name string, schema *value) bool {
	for _, keyword := range []string{"enum", "oneOf", "const"} {
		if schema.get(keyword) != nil {
			return false
		}
	}
	kind := schema.get("type")
	switch {
	case kind.is("boolean"), kind.is("array"):
		return false
	case kind.is("integer"), kind.is("number"):
		title := schema.get("title")
		return secretNumber().MatchString(name) || title != nil && secretNumber().MatchString(title.text)
	}
	return secretName().MatchString(name) || secretSchema(schema)
}
