package policy

// reason is why an icon, a website or a URL was kept, inlined or stripped.
// The set is closed, so that a Reason can label a metric.
type reason uint8

const (
	reasonNoPolicy reason = iota
	reasonRuleKeep
	reasonRuleInline
	reasonRuleStrip
	reasonSelf
	reasonDefaultKeep
	reasonDefaultInline
	reasonDefaultStrip
	reasonData
	reasonEmpty
	reasonTooLong
	reasonRelative
	reasonScript
	reasonScheme
	reasonHTTP
	reasonSlashes
	reasonUserinfo
	reasonBackslash
	reasonCharacter
	reasonEscape
	reasonHostEmpty
	reasonHostEscape
	reasonHostUnicode
	reasonHostPunycode
	reasonHostIP
	reasonHostDot
	reasonHostLong
	reasonHostName
	reasonPort
	reasonPortUnlisted
	reasonPrivate
	reasonFormHost
	reasonFormPunycode
	reasonFormAllowed
	reasonFormSecret
	reasonFormPlain
	reasonFormUnread
)

// reasons is the one table of what people are told.
var reasons = [...]string{
	reasonNoPolicy:      "no icon policy is in force",
	reasonRuleKeep:      "a rule trusts the host",
	reasonRuleInline:    "a rule inlines the host's icons",
	reasonRuleStrip:     "a rule strips the host's icons",
	reasonSelf:          "the URL is on the server's own origin",
	reasonDefaultKeep:   "no rule names the host, and the default is keep",
	reasonDefaultInline: "no rule names the host, and the default is inline",
	reasonDefaultStrip:  "no rule names the host, and the default is strip",
	reasonData:          "a data: URI has no host: its bytes are decoded, checked and encoded anew",
	reasonEmpty:         "the URL is empty",
	reasonTooLong:       "the URL is longer than 2048 bytes",
	reasonRelative:      "the URL is not absolute",
	reasonScript:        "the URL's scheme runs code",
	reasonScheme:        "the URL's scheme is not https",
	reasonHTTP:          "the URL's scheme is http, which the policy does not allow",
	reasonSlashes:       "the scheme is not followed by exactly two slashes",
	reasonUserinfo:      "the URL holds a user name, or an @ that can be taken for one",
	reasonBackslash:     "the URL holds a backslash, which some readers take for a slash",
	reasonCharacter:     "the URL holds a character that must be percent-encoded",
	reasonEscape:        "a percent sign in the URL is not followed by two hexadecimal digits",
	reasonHostEmpty:     "the URL has no host",
	reasonHostEscape:    "the host is percent-encoded",
	reasonHostUnicode:   "the host is not ASCII: international names count only in their xn-- form",
	reasonHostPunycode:  "a label of the host begins with xn-- and is not a valid international name",
	reasonHostIP:        "the host is an IP address, or can be taken for one",
	reasonHostDot:       "the host ends in a dot",
	reasonHostLong:      "the host is longer than 253 bytes, or a label of it longer than 63",
	reasonHostName:      "the host is not a name made of letters, digits and inner hyphens",
	reasonPort:          "the port is not a plain number from 1 to 65535",
	reasonPortUnlisted:  "the port is not the scheme's own, and no rule names the host with this port",
	reasonPrivate:       "the host is a private or reserved name, which counts only where a rule lists it exactly",
	reasonFormHost:      "no entry of forms.url-hosts names the host",
	reasonFormPunycode:  "the host is an international name, which can look like another",
	reasonFormAllowed:   "the URL may be opened",
	reasonFormSecret:    "the form asks for a secret, which the specification forbids",
	reasonFormPlain:     "the form asks for no secret",
	reasonFormUnread:    "the form's schema cannot be read, so whether it asks for a secret is not known",
}

func (r reason) String() string { return reasons[r] }
