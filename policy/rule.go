package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// IconRule says what becomes of the icons on the hosts that it names.
type IconRule struct {
	// Host is a canonical host name ("cdn.example.com"), any subdomain of
	// one ("*.example.com", which is not the apex), or "self", the server's
	// own origin over HTTP. It means the scheme's own port unless it names
	// another ("localhost:8443").
	Host string `yaml:"host" doc:"A host name, *.example.com for any subdomain and not the apex, or self; port 443 unless it names one." type:"host"`

	// Action is what becomes of the icons there.
	Action Verdict `yaml:"action" values:"strip|inline|keep" doc:"What becomes of the icons there."`

	source Source
}

// hostPattern is a parsed IconRule.Host.
type hostPattern struct {
	host     string // of a wildcard: what follows "*."
	port     uint16 // 0: the scheme's own
	wildcard bool
	self     bool
}

// hostError is a host that a rule cannot name, with what was meant if that
// can be told.
type hostError struct {
	host, why, meant string
}

func (e *hostError) Error() string {
	if e.meant == "" {
		return fmt.Sprintf("%q is not a host that a rule can name: %s", e.host, e.why)
	}
	return fmt.Sprintf("%q is not a host that a rule can name: %s; write %q", e.host, e.why, e.meant)
}

// CheckHost says what is wrong with a host of a rule (IconRule.Host), and
// suggests the right spelling where there is one.
func CheckHost(host string) error {
	_, err := parsePattern(host)
	return err
}

func parsePattern(s string) (hostPattern, error) {
	p, why, meant := readPattern(s)
	if why == "" {
		return p, nil
	}
	if meant != "" {
		if _, why, _ := readPattern(meant); why != "" {
			meant = ""
		}
	}
	return hostPattern{}, &hostError{s, why, meant}
}

// readPattern returns why s is no pattern, "" if it is one, and what was
// perhaps meant.
func readPattern(s string) (p hostPattern, why, meant string) {
	switch {
	case s == "self":
		return hostPattern{self: true}, "", ""
	case s == "":
		return p, "it is empty", ""
	case s == "*":
		return p, "it would name every host; icons.default decides for the hosts that no rule names", ""
	case strings.EqualFold(s, "self"):
		return p, "names are written in lower case", "self"
	case strings.Contains(s, "://"):
		_, rest, _ := strings.Cut(s, "://")
		return p, "a rule names hosts, not URLs", lowerHost(beforePath(rest))
	case strings.ContainsAny(s, "/?#"):
		return p, "a rule names hosts, without a path", lowerHost(beforePath(s))
	case strings.Contains(s, "@"):
		return p, "a rule names hosts, without a user", beforePath(s)
	case isIP(s):
		return p, "it is an IP address, and hosts are named by name only", ""
	}
	host, port, hasPort := strings.Cut(s, ":")
	if hasPort {
		n, ok := parsePort(port)
		if !ok {
			return p, reasonPort.String(), host + ":" + strings.TrimLeft(port, "0+")
		}
		p.port = n
	}
	p.host, p.wildcard = strings.CutPrefix(host, "*.")
	why, meant = checkRuleHost(p.host, p.wildcard)
	if meant != "" && hasPort {
		meant += ":" + port
	}
	return p, why, meant
}

// checkRuleHost returns why a rule cannot name host, "" if it can, and what
// was perhaps meant. Of a wildcard, host is what follows "*.".
func checkRuleHost(host string, wildcard bool) (why, meant string) {
	prefix := ""
	if wildcard {
		prefix = "*."
	}
	switch {
	case host == "" && wildcard:
		return "no domain follows the *.", ""
	case strings.HasPrefix(host, "*") && !wildcard && strings.Trim(host, "*.") != "":
		return "* stands for whole labels", "*." + strings.TrimLeft(host, "*.")
	case strings.Contains(host, "*"):
		return "* stands only in front, as in *.example.com", ""
	case strings.HasPrefix(host, "."):
		return "a leading dot means different things to different programs", "*." + strings.TrimLeft(host, ".")
	case lowerHost(host) != host:
		return "names are written in lower case", prefix + lowerHost(host)
	case strings.HasSuffix(host, "."):
		return reasonHostDot.String(), prefix + strings.TrimRight(host, ".")
	}
	if r, ok := checkHost(host); !ok {
		if r == reasonHostUnicode {
			if ascii, err := idna.Lookup.ToASCII(host); err == nil {
				meant = prefix + ascii
			}
		}
		return r.String(), meant
	}
	if !wildcard {
		return "", ""
	}
	if privateSuffixes[host[strings.LastIndexByte(host, '.')+1:]] {
		return "private and reserved names are listed one by one", ""
	}
	if suffix, _ := publicsuffix.PublicSuffix(host); suffix == host {
		return fmt.Sprintf("anyone can have a name under the public suffix %q; name a domain below it", host), ""
	}
	return "", ""
}

// beforePath is what stands between user and path.
func beforePath(s string) string {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	return s[strings.LastIndexByte(s, '@')+1:]
}

// isIP recognises the spellings of addresses that people put into rules,
// with and without a port; checkHost refuses the rest.
func isIP(s string) bool {
	if _, err := netip.ParseAddrPort(s); err == nil {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return err == nil
}

// parsePort reads a port as it is written in its one canonical form.
func parsePort(s string) (uint16, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}
