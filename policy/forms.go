package policy

import (
	"fmt"
	"strings"
)

// Forms is the policy on what a server may ask the user for, compiled. It is
// immutable and safe for concurrent use.
type Forms struct {
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

// NewForms compiles the policy. It fails on a host that is not canonical.
func NewForms(c FormsConfig) (*Forms, error) {
	f := &Forms{punycode: c.URLPunycode}
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
