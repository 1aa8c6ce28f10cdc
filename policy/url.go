package policy

import (
	"strconv"
	"strings"
)

// MaxURL is the longest URL, in bytes, that is kept or fetched. A data: URI
// is not bound by it: the decoder has a limit of its own.
const MaxURL = 2048

// location is a URL taken apart: the grammar of splitURL is so narrow that
// every reader takes it apart in the same way.
type location struct {
	https bool
	host  string // lower case
	port  uint16 // the scheme's own if the URL names none
	tail  string // what follows the authority
	plain bool   // scheme and authority are written canonically
}

// splitURL reads an absolute http or https URL: the scheme in any case, two
// slashes, a host that checkHost takes, a canonical port or none, and then
// characters of RFC 3986 only, with whole percent escapes. Go's net/url and
// WHATWG's parser agree on each URL that it takes; all others are refused,
// never repaired. An @ before the first slash is refused even where both
// would read it as part of a query, since older readers do not.
func splitURL(raw string) (location, reason, bool) {
	fail := func(r reason) (location, reason, bool) { return location{}, r, false }
	if raw == "" {
		return fail(reasonEmpty)
	}
	if len(raw) > MaxURL {
		return fail(reasonTooLong)
	}
	n := schemeLen(raw)
	if n == 0 {
		if raw[0] <= ' ' {
			return fail(reasonCharacter)
		}
		return fail(reasonRelative)
	}
	loc := location{plain: true}
	switch scheme := raw[:n]; {
	case strings.EqualFold(scheme, "https"):
		loc.https = true
		loc.plain = scheme == "https"
	case strings.EqualFold(scheme, "http"):
		loc.plain = scheme == "http"
	case strings.EqualFold(scheme, "javascript"), strings.EqualFold(scheme, "vbscript"):
		return fail(reasonScript)
	default:
		return fail(reasonScheme)
	}
	rest, ok := strings.CutPrefix(raw[n+1:], "//")
	if !ok || rest != "" && (rest[0] == '/' || rest[0] == '\\') {
		return fail(reasonSlashes)
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	loc.tail = rest[end:]
	host, port, hasPort := strings.Cut(authority, ":")
	if strings.IndexByte(port, '@') >= 0 {
		return fail(reasonUserinfo)
	}
	loc.host = lowerHost(host)
	if r, ok := checkHost(loc.host); !ok {
		return fail(r)
	}
	own := ownPort(loc.https)
	loc.port = own
	if hasPort {
		if loc.port, ok = parsePort(port); !ok {
			return fail(reasonPort)
		}
	}
	loc.plain = loc.plain && len(loc.host) == len(host) && loc.host == host && (!hasPort || loc.port != own)
	if r, ok := checkTail(loc.tail); !ok {
		return fail(r)
	}
	return loc, 0, true
}

func ownPort(https bool) uint16 {
	if https {
		return 443
	}
	return 80
}

// schemeLen is the length of the scheme that raw begins with, 0 if it begins
// with none.
func schemeLen(raw string) int {
	for i := range len(raw) {
		c := raw[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case c == ':':
			return i
		default:
			return 0
		}
	}
	return 0
}

// tailBytes are the characters that path, query and fragment may hold: those
// of RFC 3986, and the brackets that queries often hold.
var tailBytes = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?#[]@!$&'()*+,;=%") {
		set[c] = true
	}
	return set
}()

func checkTail(tail string) (reason, bool) {
	slash := false
	for i := range len(tail) {
		switch c := tail[i]; {
		case c == '\\':
			return reasonBackslash, false
		case !tailBytes[c]:
			return reasonCharacter, false
		case c == '%' && !(i+2 < len(tail) && isHex(tail[i+1]) && isHex(tail[i+2])):
			return reasonEscape, false
		case c == '/':
			slash = true
		case c == '@' && !slash:
			return reasonUserinfo, false
		}
	}
	return 0, true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// canonical is the one spelling under which the URL is fetched and cached:
// scheme and host in lower case, the scheme's own port left out, a path, and
// no fragment. raw must be what loc was split from.
func (loc *location) canonical(raw string) string {
	tail, fragment, hasFragment := strings.Cut(loc.tail, "#")
	if loc.plain && strings.HasPrefix(tail, "/") {
		if hasFragment {
			return raw[:len(raw)-len(fragment)-1]
		}
		return raw
	}
	var b strings.Builder
	b.Grow(len(raw) + 1)
	if loc.https {
		b.WriteString("https://")
	} else {
		b.WriteString("http://")
	}
	b.WriteString(loc.host)
	if loc.port != ownPort(loc.https) {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(int(loc.port)))
	}
	if !strings.HasPrefix(tail, "/") {
		b.WriteByte('/')
	}
	b.WriteString(tail)
	return b.String()
}
