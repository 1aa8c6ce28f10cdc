package policy

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// format is a format of JSON Schema (Validation, section 7.3) that is asserted.
type format struct {
	wants string // completes "the server asked for …"
	valid func(string) bool
}

// formats are the formats that are checked; any other is an annotation and is
// ignored. The checks refuse what is clearly wrong and no more: a proxy must not
// be stricter than the server behind it.
var formats = map[string]format{
	"email":        {"an email address", validEmail},
	"idn-email":    {"an email address", validEmail},
	"uri":          {"a URI with its scheme, such as https://example.com/", validURI},
	"iri":          {"a URI with its scheme, such as https://example.com/", validURI},
	"url":          {"a URL with its scheme, such as https://example.com/", validURI},
	"date":         {"a date such as 2026-01-31", validDate},
	"date-time":    {"a date and time with its offset, such as 2026-01-31T12:00:00Z", validDateTime},
	"time":         {"a time with its offset, such as 12:00:00Z", validTime},
	"duration":     {"a duration such as P1DT2H", validDuration},
	"uuid":         {"a UUID", validUUID},
	"ipv4":         {"an IPv4 address", validIPv4},
	"ipv6":         {"an IPv6 address", validIPv6},
	"hostname":     {"a host name", validHostname},
	"idn-hostname": {"a host name", validIDNHostname},
}

// validEmail accepts what RFC 5322 and RFC 6531 could mean by an address:
// something before the last @, host names or an address literal behind it.
func validEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if len(local) > 1 && local[0] == '"' && local[len(local)-1] == '"' {
		local = "quoted"
	}
	for _, atom := range strings.Split(local, ".") {
		if atom == "" || strings.ContainsFunc(atom, notInAtom) {
			return false
		}
	}
	if literal, ok := strings.CutPrefix(domain, "["); ok {
		literal, ok = strings.CutSuffix(literal, "]")
		_, err := netip.ParseAddr(strings.TrimPrefix(literal, "IPv6:"))
		return ok && err == nil
	}
	return validIDNHostname(domain)
}

func notInAtom(r rune) bool {
	return strings.ContainsRune(`()<>[]:;@\,"`, r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

var escapedByte = lazyRegexp(`%(?:[0-9A-Fa-f]{2})?`)

// validURI accepts an absolute URI (RFC 3986, section 3) or IRI.
func validURI(s string) bool {
	scheme, rest, found := strings.Cut(s, ":")
	if !found || scheme == "" || !isLetter(scheme[0]) {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte("+-.", c) < 0 {
			return false
		}
	}
	if strings.ContainsFunc(rest, notInURI) {
		return false
	}
	for _, escape := range escapedByte().FindAllString(rest, -1) {
		if escape == "%" {
			return false
		}
	}
	if !strings.HasPrefix(rest, "//") {
		// A web address without its slashes is a slip, not an opaque URI.
		return rest != "" && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
	}
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	return u.Host != "" || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

func notInURI(r rune) bool {
	return strings.ContainsRune("<>\"{}|\\^`", r) || unicode.IsSpace(r) || unicode.IsControl(r)
}

// validDate accepts a full-date of RFC 3339 that is in the calendar.
func validDate(s string) bool {
	_, err := time.Parse("2006-01-02", s)
	return err == nil && len(s) == len("2006-01-02")
}

// validDateTime accepts a date-time of RFC 3339, section 5.6. The offset is part
// of it; a space may stand for the T.
func validDateTime(s string) bool {
	const date = len("2006-01-02")
	if len(s) <= date || strings.IndexByte("Tt ", s[date]) < 0 {
		return false
	}
	return validDate(s[:date]) && validTime(s[date+1:])
}

var fullTime = lazyRegexp(`^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$`)

// validTime accepts a full-time of RFC 3339. A leap second is one in UTC.
func validTime(s string) bool {
	m := fullTime().FindStringSubmatch(s)
	if m == nil {
		return false
	}
	hour, minute, second := atoi(m[1]), atoi(m[2]), atoi(m[3])
	offsetHour, offsetMinute := atoi(m[5]), atoi(m[6])
	if hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59 {
		return false
	}
	if second < 60 {
		return true
	}
	offset := offsetHour*60 + offsetMinute
	if m[4] == "-" {
		offset = -offset
	}
	const day = 24 * 60
	return (hour*60+minute-offset+2*day)%day == day-1
}

// atoi reads two digits; nothing is 0.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

var duration = lazyRegexp(`^P(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?)$`)

// validDuration accepts a duration of RFC 3339, appendix A.
func validDuration(s string) bool {
	return duration().MatchString(s) && s != "P" && !strings.HasSuffix(s, "T")
}

var uuid = lazyRegexp(`^(?i:(?:urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// validUUID accepts a UUID of RFC 9562, also as a URN.
func validUUID(s string) bool { return uuid().MatchString(s) }

func validIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func validIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

// validHostname accepts a host name of RFC 1123, section 2.1.
func validHostname(s string) bool {
	return isASCII(s) && validIDNHostname(s)
}

// validIDNHostname accepts a host name whose labels may be of any script. It
// does not look a label up in the tables of IDNA.
func validIDNHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	for _, label := range strings.Split(s, ".") {
		if label == "" || len(label) > 63 && isASCII(label) || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, notInLabel) {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

func notInLabel(r rune) bool {
	return r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) &&
		r != '\u200c' && r != '\u200d' && r != '\u00b7' && r != '\u30fb'
}
