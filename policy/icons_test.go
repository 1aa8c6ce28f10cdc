package policy

import (
	"strings"
	"testing"
)

func mustIcons(t testing.TB, c IconsConfig) *Icons {
	t.Helper()
	i, err := NewIcons(c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// attackRules are the rules that the rows of TestDecide speak of.
var attackRules = []IconRule{
	{Host: "cdn.example.com", Action: Keep},
	{Host: "*.example.org", Action: Keep},
	{Host: "localhost:8443", Action: Inline},
	{Host: "metadata", Action: Inline},
	{Host: "icons.corp.internal", Action: Keep},
	{Host: "inline.example.com", Action: Inline},
	{Host: "bad.example.org", Action: Strip}, // after the wildcard: never reached
	{Host: "xn--bcher-kva.de", Action: Keep},
	{Host: "odd.example.com:444", Action: Keep},
}

func TestDecide(t *testing.T) {
	icons := mustIcons(t, IconsConfig{Rules: attackRules})
	long := strings.Repeat("a", 64)
	host254 := strings.Repeat(strings.Repeat("a", 49)+".", 5) + "info"
	for _, tt := range []struct {
		name, url string
		want      Verdict
		reason    reason
	}{
		{"trusted", "https://cdn.example.com/a.png", Keep, reasonRuleKeep},
		{"U01 http", "http://cdn.example.com/a.png", Strip, reasonHTTP},
		{"U05 blob", "blob:https://cdn.example.com/a.png", Strip, reasonScheme},
		{"U05 vscode", "vscode://cdn.example.com/", Strip, reasonScheme},
		{"U05 mcp", "mcp://cdn.example.com/", Strip, reasonScheme},
		{"U05 about", "about:blank", Strip, reasonScheme},
		{"U05 view-source", "view-source:https://cdn.example.com/", Strip, reasonScheme},
		{"file", "file:///etc/passwd", Strip, reasonScheme},
		{"ftp", "ftp://cdn.example.com/a.png", Strip, reasonScheme},
		{"wss", "wss://cdn.example.com/a.png", Strip, reasonScheme},
		{"javascript", "javascript:alert(1)", Strip, reasonScript},
		{"javascript, other case", "JavaScript://cdn.example.com/%0aalert(1)", Strip, reasonScript},
		{"javascript after a space", " javascript:alert(1)", Strip, reasonCharacter},
		{"javascript cut by a tab", "java\tscript:alert(1)", Strip, reasonRelative},
		{"vbscript", "vbscript:x", Strip, reasonScript},
		{"U06 scheme-relative", "//cdn.example.com/x", Strip, reasonRelative},
		{"U06 path", "/x", Strip, reasonRelative},
		{"U06 relative", "x.png", Strip, reasonRelative},
		{"U06 empty", "", Strip, reasonEmpty},
		{"no scheme", "cdn.example.com/x", Strip, reasonRelative},
		{"host and port read as a scheme", "cdn.example.com:443/x", Strip, reasonScheme},
		{"U07 none", "https:cdn.example.com", Strip, reasonSlashes},
		{"U07 one", "https:/cdn.example.com", Strip, reasonSlashes},
		{"U07 three", "https:///cdn.example.com", Strip, reasonSlashes},
		{"backslashes for slashes", `https:\\cdn.example.com/`, Strip, reasonSlashes},
		{"mixed slashes", `https:/\cdn.example.com/`, Strip, reasonSlashes},
		{"third a backslash", `https://\cdn.example.com/`, Strip, reasonSlashes},
		{"U09 userinfo", "https://u:p@cdn.example.com/", Strip, reasonUserinfo},
		{"user", "https://u@cdn.example.com/", Strip, reasonUserinfo},
		{"empty user", "https://@cdn.example.com/", Strip, reasonUserinfo},
		{"trusted name as user", "https://cdn.example.com@evil.com/", Strip, reasonUserinfo},
		{"trusted name as user, with a port", "https://cdn.example.com:443@evil.com/", Strip, reasonUserinfo},
		{"@ in the fragment before a slash", "https://cdn.example.com#@evil.com/", Strip, reasonUserinfo},
		{"@ in the query before a slash", "https://cdn.example.com?@evil.com/", Strip, reasonUserinfo},
		{"@ in the path", "https://cdn.example.com/@scope/a.png", Keep, reasonRuleKeep},
		{"backslash before @", `https://cdn.example.com\@evil.com/`, Strip, reasonBackslash},
		{"backslash in the path", `https://cdn.example.com/\evil.com`, Strip, reasonBackslash},
		{"U12", "https://1.1.1.1 &@2.2.2.2# @3.3.3.3/", Strip, reasonCharacter},
		{"U15", "https://x[::1]/", Strip, reasonHostIP},
		{"IPv6", "https://[::1]/", Strip, reasonHostIP},
		{"IPv6 zone", "https://[fe80::1%25lo]/", Strip, reasonHostIP},
		{"IPv4-mapped", "https://[::ffff:10.0.0.1]/", Strip, reasonHostIP},
		{"IPv4", "https://93.184.216.34/a.png", Strip, reasonHostIP},
		{"decimal", "https://2130706433/", Strip, reasonHostIP},
		{"octal", "https://0177.0.0.1/", Strip, reasonHostIP},
		{"hex", "https://0x7f.1/", Strip, reasonHostIP},
		{"hex last label", "https://cdn.example.0x7f/", Strip, reasonHostIP},
		{"number last label", "https://cdn.example.com.1/", Strip, reasonHostIP},
		{"full-width digits", "https://１２７.0.0.1/", Strip, reasonHostUnicode},
		{"U16 80", "https://cdn.example.com:80/", Strip, reasonPortUnlisted},
		{"U16 22", "https://cdn.example.com:22/", Strip, reasonPortUnlisted},
		{"U16 0443", "https://cdn.example.com:0443/", Strip, reasonPort},
		{"U16 empty", "https://cdn.example.com:/", Strip, reasonPort},
		{"U16 sign", "https://cdn.example.com:+443/", Strip, reasonPort},
		{"U16 name", "https://cdn.example.com:https/", Strip, reasonPort},
		{"port too great", "https://cdn.example.com:65979/", Strip, reasonPort},
		{"port twice", "https://cdn.example.com:443:443/", Strip, reasonPort},
		{"port 0", "https://cdn.example.com:0/", Strip, reasonPort},
		{"its own port", "https://cdn.example.com:443/", Keep, reasonRuleKeep},
		{"a listed port", "https://odd.example.com:444/", Keep, reasonRuleKeep},
		{"listed with a port, asked without", "https://odd.example.com/", Strip, reasonDefaultStrip},
		{"U18 apex", "https://example.org/", Strip, reasonDefaultStrip},
		{"a longer name with the same end", "https://evilexample.org/", Strip, reasonDefaultStrip},
		{"trusted name in front", "https://cdn.example.com.evil.com/", Strip, reasonDefaultStrip},
		{"U19", "https://a.b.example.org/", Keep, reasonRuleKeep},
		{"first match wins", "https://bad.example.org/", Keep, reasonRuleKeep},
		{"U21", "https://.example.org/", Strip, reasonHostName},
		{"two dots", "https://a..example.org/", Strip, reasonHostName},
		{"only a dot", "https://./", Strip, reasonHostName},
		{"trailing dot", "https://cdn.example.com./", Strip, reasonHostDot},
		{"U23", "https://ⓔⓧⓐⓜⓟⓛⓔ.org/", Strip, reasonHostUnicode},
		{"sharp s", "https://faß.example.org/", Strip, reasonHostUnicode},
		{"Kelvin sign", "https://cdn.example.org\u212a/", Strip, reasonHostUnicode},
		{"U25", "https://xn--example-.org/", Strip, reasonHostPunycode},
		{"U25 under the wildcard", "https://xn--example-.example.org/", Strip, reasonHostPunycode},
		{"punycode of ASCII", "https://xn--abc-.example.org/", Strip, reasonHostPunycode},
		{"punycode of nothing", "https://xn--.example.org/", Strip, reasonHostPunycode},
		{"punycode of a control", "https://xn--a.example.org/", Strip, reasonHostPunycode},
		{"an international name, listed", "https://xn--bcher-kva.de/", Keep, reasonRuleKeep},
		{"the same in capitals", "https://XN--BCHER-KVA.de/", Keep, reasonRuleKeep},
		{"U26 soft hyphen", "https://cdn.exam\u00adple.com/", Strip, reasonHostUnicode},
		{"U26 zero-width space", "https://cdn.exam\u200bple.com/", Strip, reasonHostUnicode},
		{"U26 ideographic full stop", "https://cdn\u3002example.com/", Strip, reasonHostUnicode},
		{"percent-encoded host", "https://cdn%2eexample.com/", Strip, reasonHostEscape},
		{"NUL", "https://cdn.example.com\x00.evil.com/", Strip, reasonCharacter},
		{"newline", "https://cdn.example.com/\n", Strip, reasonCharacter},
		{"tab in the host", "https://cdn.exa\tmple.com/", Strip, reasonCharacter},
		{"space in the path", "https://cdn.example.com/a b.png", Strip, reasonCharacter},
		{"leading space", " https://cdn.example.com/", Strip, reasonCharacter},
		{"not ASCII in the path", "https://cdn.example.com/é.png", Strip, reasonCharacter},
		{"quote", `https://cdn.example.com/"onerror=`, Strip, reasonCharacter},
		{"half an escape", "https://cdn.example.com/%2", Strip, reasonEscape},
		{"no escape", "https://cdn.example.com/%zz", Strip, reasonEscape},
		{"U29", "https://CDN.EXAMPLE.COM/A.png", Keep, reasonRuleKeep},
		{"scheme in capitals", "HTTPS://cdn.example.com/A.png", Keep, reasonRuleKeep},
		{"U30 underscore", "https://a_b.example.org/", Strip, reasonHostName},
		{"U30 label", "https://" + long + ".example.org/", Strip, reasonHostLong},
		{"U30 host", "https://" + host254 + "/", Strip, reasonHostLong},
		{"U30 URL", "https://cdn.example.com/" + strings.Repeat("a", 2025), Strip, reasonTooLong},
		{"the longest URL", "https://cdn.example.com/" + strings.Repeat("a", 2024), Keep, reasonRuleKeep},
		{"leading hyphen", "https://-a.example.org/", Strip, reasonHostName},
		{"trailing hyphen", "https://a-.example.org/", Strip, reasonHostName},
		{"other punctuation", "https://a!b.example.org/", Strip, reasonHostName},
		{"no host", "https://", Strip, reasonHostEmpty},
		{"only a port", "https://:443/", Strip, reasonHostEmpty},
		{"only a query", "https://?x", Strip, reasonHostEmpty},
		{"U31 listed", "https://metadata/", Inline, reasonRuleInline},
		{"U31 kubernetes", "https://kubernetes/", Strip, reasonPrivate},
		{"U31 instance-data", "https://instance-data/latest/", Strip, reasonPrivate},
		{"U31 rancher-metadata", "https://rancher-metadata/", Strip, reasonPrivate},
		{"U32 localhost with the listed port", "https://localhost:8443/a.png", Inline, reasonRuleInline},
		{"U32 localhost", "https://localhost/", Strip, reasonPrivate},
		{"U32 localhost, another port", "https://localhost:8444/", Strip, reasonPrivate},
		{"U32 x.localhost", "https://x.localhost/", Strip, reasonPrivate},
		{"U32 local", "https://printer.local/", Strip, reasonPrivate},
		{"U32 internal", "https://metadata.google.internal/", Strip, reasonPrivate},
		{"U32 internal, listed", "https://icons.corp.internal/", Keep, reasonRuleKeep},
		{"U32 svc", "https://api.default.svc/", Strip, reasonPrivate},
		{"U32 cluster.local", "https://api.default.svc.cluster.local/", Strip, reasonPrivate},
		{"U32 home.arpa", "https://nas.home.arpa/", Strip, reasonPrivate},
		{"U32 onion", "https://abc.onion/", Strip, reasonPrivate},
		{"U32 test", "https://a.test/", Strip, reasonPrivate},
		{"U34 stdio", "https://www.example.net/a.png", Strip, reasonDefaultStrip},
		{"data", "data:image/png;base64,AAAA", Inline, reasonData},
		{"D09 data in capitals", "DATA:IMAGE/PNG;BASE64,AAAA", Inline, reasonData},
		{"data after a space", " data:image/png;base64,AAAA", Strip, reasonCharacter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := icons.Decide(IconArgs{URL: tt.url})
			if d.Verdict != tt.want || d.Reason != tt.reason.String() {
				t.Errorf("Decide(%q) = %v, %q; want %v, %q", tt.url, d.Verdict, d.Reason, tt.want, tt.reason)
			}
		})
	}
}
