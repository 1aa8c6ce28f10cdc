package policy

import (
	"fmt"
	"strings"
)

// Explain says for people what becomes of a URL as an icon and as a
// websiteUrl, and why: a few lines, each with its newline.
func (p *Policy) Explain(args IconArgs) string {
	var b strings.Builder
	line := func(as string, d IconDecision) {
		verdict := d.Verdict.String()
		if d.Data {
			verdict = "decode"
		}
		fmt.Fprintf(&b, "%-11s %s: %s\n", as, verdict, d.Reason)
		if d.Rule == "" {
			return
		}
		for i := range p.Config.Icons.Rules {
			if r := &p.Config.Icons.Rules[i]; r.Host == d.Rule {
				fmt.Fprintf(&b, "%-11s by the rule {host: %s, action: %v} (%v)\n", "", r.Host, r.Action, r.source)
				return
			}
		}
	}
	d := p.Icons.Decide(args)
	line("icon", d)
	if d.URL != "" {
		fmt.Fprintf(&b, "%-11s fetched as %s\n", "", d.URL)
	}
	line("websiteUrl", p.Icons.DecideWebsite(args))
	if d.Host != "" {
		fmt.Fprintf(&b, "%-11s %s\n", "host", d.Host)
	}
	return b.String()
}
