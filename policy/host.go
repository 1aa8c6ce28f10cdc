package policy

import (
	"strings"

	"golang.org/x/net/idna"
)

// Bounds of a host name, in bytes (RFC 1035, section 2.3.4).
const (
	maxHostLen  = 253
	maxLabelLen = 63
)

// checkHost says whether host, lower case, is a name that every reader takes
// for the same name: ASCII labels of letters, digits and inner hyphens, the
// last of which begins with a letter, since WHATWG's URL parser reads any
// host whose last label is a number as an IPv4 address. Labels that begin
// with xn-- must be what their Unicode form encodes to (UTS 46), or readers
// that convert and readers that do not would part. It returns the reason
// against the name, and true if there is none.
func checkHost(host string) (reason, bool) {
	if host == "" {
		return reasonHostEmpty, false
	}
	if len(host) > maxHostLen {
		return reasonHostLong, false
	}
	punycode := false
	start := 0 // of the label under way
	for i := 0; i <= len(host); i++ {
		if i < len(host) && host[i] != '.' {
			if r, ok := checkHostByte(host[i]); !ok {
				return r, false
			}
			continue
		}
		label := host[start:i]
		switch {
		case label == "" && i == len(host) && start > 1:
			return reasonHostDot, false
		case strings.HasPrefix(label, "xn--"):
			punycode = true // which sees to hyphens itself
		case label == "" || label[0] == '-' || label[len(label)-1] == '-':
			return reasonHostName, false
		}
		if len(label) > maxLabelLen {
			return reasonHostLong, false
		}
		if i < len(host) {
			start = i + 1
		}
	}
	if c := host[start]; c < 'a' || c > 'z' {
		return reasonHostIP, false
	}
	if punycode && !validPunycode(host) {
		return reasonHostPunycode, false
	}
	return 0, true
}

func checkHostByte(c byte) (reason, bool) {
	switch {
	case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-':
		return 0, true
	case c >= 0x80:
		return reasonHostUnicode, false
	case c == '%':
		return reasonHostEscape, false
	case c == '[' || c == ']':
		return reasonHostIP, false
	case c == '@':
		return reasonUserinfo, false
	case c == '\\':
		return reasonBackslash, false
	case c <= ' ' || c == 0x7f:
		return reasonCharacter, false
	}
	return reasonHostName, false
}

// validPunycode demands that the name survives the way to Unicode and back:
// Go, WHATWG and a resolver then mean the same name by it.
func validPunycode(host string) bool {
	unicode, err := idna.Lookup.ToUnicode(host)
	if err != nil {
		return false
	}
	ascii, err := idna.Lookup.ToASCII(unicode)
	return err == nil && ascii == host
}

// lowerHost is host with A to Z in lower case; nothing else is repaired.
func lowerHost(host string) string {
	for i := range len(host) {
		if c := host[i]; 'A' <= c && c <= 'Z' {
			return strings.Map(func(r rune) rune {
				if 'A' <= r && r <= 'Z' {
					return r + 'a' - 'A'
				}
				return r
			}, host)
		}
	}
	return host
}

// privateSuffixes are the names that mean something else on each network, or
// nothing: RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476, ICANN's
// .internal, the suffixes that RFC 6762 appendix G warns of, and those of
// Kubernetes' cluster DNS.
var privateSuffixes = map[string]bool{
	"alt": true, "arpa": true, "corp": true, "example": true, "home": true,
	"internal": true, "intranet": true, "invalid": true, "lan": true,
	"local": true, "localdomain": true, "localhost": true, "onion": true,
	"private": true, "svc": true, "test": true,
}

// isPrivateName says whether host, lower case, is a single label or ends in
// a suffix that is not part of the public DNS.
func isPrivateName(host string) bool {
	dot := strings.LastIndexByte(host, '.')
	return dot < 0 || privateSuffixes[host[dot+1:]]
}
