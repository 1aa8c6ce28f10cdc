package policy

import (
	"fmt"
	"strings"
)

// Verdict is what becomes of an icon. The zero value strips.
type Verdict uint8

const (
	Strip  Verdict = iota // the icon is removed
	Inline                // fetched or decoded, and put in the message as a data: URI
	Keep                  // the URL stays as it came
)

var verdictNames = [...]string{Strip: "strip", Inline: "inline", Keep: "keep"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// MarshalText writes the verdict as the policy file spells it.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads strip, inline or keep.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdictNames {
		if string(text) == name {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("%q is none of strip, inline, keep", text)
}

// IconArgs is one URL to judge.
type IconArgs struct {
	// URL is the icon's src or the websiteUrl, unescaped from JSON and
	// otherwise as received.
	URL string

	// Origin is the server's own origin over HTTP ("https://mcp.example.com"
	// or "http://localhost:3000"); "" over stdio, where it has none.
	Origin string
}

// IconDecision is the verdict on one URL and why. Its zero value strips.
type IconDecision struct {
	Verdict Verdict
	Data    bool   // a data: URI: no host, to be decoded and encoded anew or dropped
	Reason  string // for people; of a closed set
	Rule    string // the host of the rule that decided; "" if none did
	Host    string // lower case; "" if the URL has none that all readers agree on
	URL     string // of an Inline that is no Data: the canonical URL to fetch
}

// Icons is the icon policy, compiled. It is immutable and safe for concurrent
// use. The zero value, like a nil pointer, strips everything.
type Icons struct {
	inForce   bool
	def       Verdict
	allowHTTP bool
	rules     []IconRule
	exact     map[endpoint]int // first rule that names the endpoint
	wildcard  map[endpoint]int // the same for "*."+host
	self      int              // first rule for self; len(rules) if none
}

// endpoint is a host and port under a scheme.
type endpoint struct {
	host  string
	port  uint16
	https bool
}

// NewIcons compiles the icon rules. It fails on a rule whose host is not
// canonical, and says what was meant.
func NewIcons(c IconsConfig) (*Icons, error) {
	if c.Default > Keep {
		return nil, fmt.Errorf("icons.default: %v is none of strip, inline, keep", c.Default)
	}
	i := &Icons{
		inForce:   true,
		def:       c.Default,
		allowHTTP: c.AllowHTTP,
		rules:     append([]IconRule(nil), c.Rules...),
		exact:     make(map[endpoint]int),
		wildcard:  make(map[endpoint]int),
		self:      len(c.Rules),
	}
	for n, rule := range i.rules {
		p, err := parsePattern(rule.Host)
		if err != nil {
			return nil, fmt.Errorf("icons.rules[%d]: %w", n, err)
		}
		if rule.Action > Keep {
			return nil, fmt.Errorf("icons.rules[%d]: %v is none of strip, inline, keep", n, rule.Action)
		}
		if p.self {
			i.self = min(i.self, n)
			continue
		}
		i.add(p, true, n)
		if i.allowHTTP {
			i.add(p, false, n)
		}
	}
	return i, nil
}

func (i *Icons) add(p hostPattern, https bool, n int) {
	e := endpoint{p.host, p.port, https}
	if e.port == 0 {
		e.port = ownPort(https)
	}
	m := i.exact
	if p.wildcard {
		m = i.wildcard
	}
	if _, ok := m[e]; !ok {
		m[e] = n
	}
}

// Decide judges the src of an icon: the rules in order, the first that names
// the host decides; then the server's own origin is kept; then the default
// decides, for public hosts at the scheme's own port. What two readers could
// read in two ways is stripped before any rule is asked. Pure, and safe for
// concurrent use.
func (i *Icons) Decide(args IconArgs) IconDecision {
	if i == nil || !i.inForce {
		return IconDecision{Reason: reasonNoPolicy.String()}
	}
	if isData(args.URL) {
		return IconDecision{Verdict: Inline, Data: true, Reason: reasonData.String()}
	}
	loc, r, ok := splitURL(args.URL)
	if !ok {
		return IconDecision{Reason: r.String()}
	}
	if !loc.https && !i.allowHTTP {
		return IconDecision{Reason: reasonHTTP.String(), Host: loc.host}
	}
	d := i.decideHost(&loc, args.Origin)
	if d.Verdict == Inline {
		d.URL = loc.canonical(args.URL)
	}
	return d
}

// DecideWebsite judges a websiteUrl, which is never fetched: an https URL is
// kept where an icon there would be kept or inlined, and anything else is
// stripped.
func (i *Icons) DecideWebsite(args IconArgs) IconDecision {
	if i == nil || !i.inForce {
		return IconDecision{Reason: reasonNoPolicy.String()}
	}
	loc, r, ok := splitURL(args.URL)
	if !ok {
		return IconDecision{Reason: r.String()}
	}
	if !loc.https {
		return IconDecision{Reason: reasonScheme.String(), Host: loc.host}
	}
	d := i.decideHost(&loc, args.Origin)
	if d.Verdict == Inline {
		d.Verdict = Keep
	}
	return d
}

// decideHost judges a URL that all readers read alike.
func (i *Icons) decideHost(loc *location, origin string) IconDecision {
	self := onOrigin(loc, origin)
	d := IconDecision{Host: loc.host}
	switch n := i.match(loc, self); {
	case n < len(i.rules):
		d.Verdict, d.Rule = i.rules[n].Action, i.rules[n].Host
		d.Reason = ruleReason(d.Verdict).String()
	case self:
		d.Verdict, d.Rule, d.Reason = Keep, "self", reasonSelf.String()
	case isPrivateName(loc.host):
		d.Reason = reasonPrivate.String()
	case loc.port != ownPort(loc.https):
		d.Reason = reasonPortUnlisted.String()
	default:
		d.Verdict = i.def
		d.Reason = defaultReason(i.def).String()
	}
	return d
}

// match returns the first rule that names the location, len(i.rules) if none
// does. No wildcard names a private host: parsePattern refuses those.
func (i *Icons) match(loc *location, self bool) int {
	n := len(i.rules)
	if n == 0 {
		return n
	}
	e := endpoint{loc.host, loc.port, loc.https}
	if k, ok := i.exact[e]; ok {
		n = k
	}
	if self {
		n = min(n, i.self)
	}
	if len(i.wildcard) == 0 {
		return n
	}
	for {
		_, parent, ok := strings.Cut(e.host, ".")
		if !ok {
			return n
		}
		e.host = parent
		if k, ok := i.wildcard[e]; ok {
			n = min(n, k)
		}
	}
}

func onOrigin(loc *location, origin string) bool {
	if origin == "" {
		return false
	}
	own, _, ok := splitURL(origin)
	return ok && own.https == loc.https && own.host == loc.host && own.port == loc.port
}

func ruleReason(v Verdict) reason {
	switch v {
	case Keep:
		return reasonRuleKeep
	case Inline:
		return reasonRuleInline
	}
	return reasonRuleStrip
}

func defaultReason(v Verdict) reason {
	switch v {
	case Keep:
		return reasonDefaultKeep
	case Inline:
		return reasonDefaultInline
	}
	return reasonDefaultStrip
}

func isData(raw string) bool {
	const scheme = "data:"
	return len(raw) >= len(scheme) && strings.EqualFold(raw[:len(scheme)], scheme)
}

// MayInline reports whether any URL could be judged Inline, so that what a
// message holds depends on what was fetched by then.
func (i *Icons) MayInline() bool {
	if i == nil || !i.inForce {
		return false
	}
	if i.def == Inline {
		return true
	}
	for _, r := range i.rules {
		if r.Action == Inline {
			return true
		}
	}
	return false
}
