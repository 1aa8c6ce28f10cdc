package policy

import (
	"net/url"
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

// attackRules are the rules that the rows of TestIcons speak of.
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
	{Host: "cdn.example.com", Action: Strip}, // the second of its name: never reached
}

func TestIcons(t *testing.T) {
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

func TestIconsZeroStrips(t *testing.T) {
	var none *Icons
	for name, icons := range map[string]*Icons{"nil": none, "zero": {}} {
		for _, url := range []string{"https://cdn.example.com/a.png", "data:image/png;base64,AAAA", ""} {
			for _, d := range []IconDecision{icons.Decide(IconArgs{URL: url}), icons.DecideWebsite(IconArgs{URL: url})} {
				if d.Verdict != Strip || d.Data || d.Reason != reasonNoPolicy.String() {
					t.Errorf("%s: %q: %+v", name, url, d)
				}
			}
		}
	}
	var zero IconDecision
	if zero.Verdict != Strip {
		t.Errorf("the zero decision is %v", zero.Verdict)
	}
}

func TestIconsDefault(t *testing.T) {
	for _, tt := range []struct {
		def    Verdict
		url    string
		want   Verdict
		reason reason
	}{
		{Strip, "https://www.example.net/a.png", Strip, reasonDefaultStrip},
		{Inline, "https://www.example.net/a.png", Inline, reasonDefaultInline},
		{Keep, "https://www.example.net/a.png", Keep, reasonDefaultKeep},
		{Keep, "https://tracker.example.net/a.png", Strip, reasonRuleStrip},
		{Keep, "https://tracker.example.net:8443/a.png", Strip, reasonPortUnlisted},
		{Keep, "https://www.example.net:8443/a.png", Strip, reasonPortUnlisted},
		{Keep, "https://metadata/", Strip, reasonPrivate},
		{Inline, "https://metadata.google.internal/", Strip, reasonPrivate},
		{Keep, "https://10.0.0.1/", Strip, reasonHostIP},
		{Keep, "http://www.example.net/a.png", Strip, reasonHTTP},
		{Keep, "data:image/png;base64,AAAA", Inline, reasonData},
		{Strip, "data:image/png;base64,AAAA", Inline, reasonData},
	} {
		icons := mustIcons(t, IconsConfig{Default: tt.def, Rules: []IconRule{{Host: "tracker.example.net"}}})
		d := icons.Decide(IconArgs{URL: tt.url})
		if d.Verdict != tt.want || d.Reason != tt.reason.String() {
			t.Errorf("default %v: Decide(%q) = %v, %q; want %v, %q", tt.def, tt.url, d.Verdict, d.Reason, tt.want, tt.reason)
		}
	}
}

func TestIconsOrigin(t *testing.T) {
	inline := []IconRule{{Host: "self", Action: Inline}}
	strip := []IconRule{{Host: "self", Action: Strip}}
	exact := []IconRule{{Host: "mcp.example.com", Action: Strip}}
	named := []IconRule{{Host: "*.example.com", Action: Strip}, {Host: "self", Action: Keep}}
	for _, tt := range []struct {
		name        string
		rules       []IconRule
		allowHTTP   bool
		origin, url string
		want        Verdict
		reason      reason
	}{
		{"own origin", nil, false, "https://mcp.example.com", "https://mcp.example.com/a.png", Keep, reasonSelf},
		{"own origin, port written", nil, false, "https://mcp.example.com:443", "https://mcp.example.com/a.png", Keep, reasonSelf},
		{"own origin in capitals", nil, false, "https://MCP.example.com", "https://mcp.example.com/a.png", Keep, reasonSelf},
		{"own origin with a port", nil, false, "https://mcp.example.com:8443", "https://mcp.example.com:8443/a.png", Keep, reasonSelf},
		{"own private origin", nil, false, "https://mcp.internal:8443", "https://mcp.internal:8443/a.png", Keep, reasonSelf},
		{"U33 other port", nil, false, "https://mcp.example.com:8443", "https://mcp.example.com/a.png", Strip, reasonDefaultStrip},
		{"U33 other scheme", nil, true, "https://mcp.example.com", "http://mcp.example.com/a.png", Strip, reasonDefaultStrip},
		{"U33 other scheme, same port", nil, true, "http://mcp.example.com:443", "https://mcp.example.com/a.png", Strip, reasonDefaultStrip},
		{"own origin over http", nil, false, "http://localhost:3000", "http://localhost:3000/a.png", Strip, reasonHTTP},
		{"own origin over http, allowed", nil, true, "http://localhost:3000", "http://localhost:3000/a.png", Keep, reasonSelf},
		{"own origin by address", nil, false, "https://10.0.0.5:8443", "https://10.0.0.5:8443/a.png", Strip, reasonHostIP},
		{"subdomain of the origin", nil, false, "https://example.net", "https://a.example.net/a.png", Strip, reasonDefaultStrip},
		{"self inlined", inline, false, "https://mcp.example.com", "https://mcp.example.com/a.png", Inline, reasonRuleInline},
		{"self stripped", strip, false, "https://mcp.example.com", "https://mcp.example.com/a.png", Strip, reasonRuleStrip},
		{"a rule before self", named, false, "https://mcp.example.com", "https://mcp.example.com/a.png", Strip, reasonRuleStrip},
		{"a rule that names it", exact, false, "https://mcp.example.com", "https://mcp.example.com/a.png", Strip, reasonRuleStrip},
		{"U34 stdio has no origin", inline, false, "", "https://mcp.example.com/a.png", Strip, reasonDefaultStrip},
	} {
		t.Run(tt.name, func(t *testing.T) {
			icons := mustIcons(t, IconsConfig{Rules: tt.rules, AllowHTTP: tt.allowHTTP})
			d := icons.Decide(IconArgs{URL: tt.url, Origin: tt.origin})
			if d.Verdict != tt.want || d.Reason != tt.reason.String() {
				t.Errorf("got %v, %q; want %v, %q", d.Verdict, d.Reason, tt.want, tt.reason)
			}
		})
	}
}

func TestIconsHTTPAllowed(t *testing.T) {
	icons := mustIcons(t, IconsConfig{AllowHTTP: true, Rules: []IconRule{
		{Host: "cdn.example.com", Action: Keep}, {Host: "odd.example.com:8080", Action: Keep},
	}})
	for _, tt := range []struct {
		url    string
		want   Verdict
		reason reason
	}{
		{"http://cdn.example.com/a.png", Keep, reasonRuleKeep},
		{"http://cdn.example.com:80/a.png", Keep, reasonRuleKeep},
		{"http://cdn.example.com:443/a.png", Strip, reasonPortUnlisted},
		{"https://cdn.example.com:80/a.png", Strip, reasonPortUnlisted},
		{"http://odd.example.com:8080/a.png", Keep, reasonRuleKeep},
		{"https://cdn.example.com/a.png", Keep, reasonRuleKeep},
		{"ftp://cdn.example.com/a.png", Strip, reasonScheme},
	} {
		d := icons.Decide(IconArgs{URL: tt.url})
		if d.Verdict != tt.want || d.Reason != tt.reason.String() {
			t.Errorf("Decide(%q) = %v, %q; want %v, %q", tt.url, d.Verdict, d.Reason, tt.want, tt.reason)
		}
	}
}

func TestIconsWebsite(t *testing.T) {
	rules := []IconRule{
		{Host: "trusted.example.com", Action: Keep},
		{Host: "inlined.example.com", Action: Inline},
		{Host: "stripped.example.com", Action: Strip},
	}
	for _, tt := range []struct {
		name        string
		def         Verdict
		origin, url string
		want        Verdict
		reason      reason
	}{
		{"trusted", Strip, "", "https://trusted.example.com/", Keep, reasonRuleKeep},
		{"inlined", Strip, "", "https://inlined.example.com/", Keep, reasonRuleInline},
		{"stripped", Keep, "", "https://stripped.example.com/", Strip, reasonRuleStrip},
		{"self", Strip, "https://mcp.example.com", "https://mcp.example.com/", Keep, reasonSelf},
		{"default strip", Strip, "", "https://www.example.net/", Strip, reasonDefaultStrip},
		{"default inline", Inline, "", "https://www.example.net/", Keep, reasonDefaultInline},
		{"default keep", Keep, "", "https://www.example.net?ref=mcp", Keep, reasonDefaultKeep},
		{"data", Keep, "", "data:text/html,x", Strip, reasonScheme},
		{"http, though icons may use it", Keep, "", "http://trusted.example.com/", Strip, reasonScheme},
		{"javascript", Keep, "", "javascript:alert(1)", Strip, reasonScript},
		{"relative", Keep, "", "/docs", Strip, reasonRelative},
		{"private", Keep, "", "https://wiki/", Strip, reasonPrivate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			icons := mustIcons(t, IconsConfig{Default: tt.def, Rules: rules, AllowHTTP: true})
			d := icons.DecideWebsite(IconArgs{URL: tt.url, Origin: tt.origin})
			if d.Verdict != tt.want || d.Reason != tt.reason.String() {
				t.Errorf("got %v, %q; want %v, %q", d.Verdict, d.Reason, tt.want, tt.reason)
			}
			if d.URL != "" {
				t.Errorf("a website is never fetched, and %q is given for it", d.URL)
			}
		})
	}
}

// What is fetched has one spelling for each resource; what is kept has none
// but its own.
func TestIconsCanonicalURL(t *testing.T) {
	icons := mustIcons(t, IconsConfig{Default: Inline, AllowHTTP: true, Rules: []IconRule{
		{Host: "cdn.example.com", Action: Keep}, {Host: "www.example.net:8443", Action: Inline},
	}})
	for _, tt := range []struct{ url, want, host string }{
		{"https://www.example.net/a.png", "https://www.example.net/a.png", "www.example.net"},
		{"HTTPS://WWW.Example.NET/A.png", "https://www.example.net/A.png", "www.example.net"},
		{"https://www.example.net:443/a.png", "https://www.example.net/a.png", "www.example.net"},
		{"https://www.example.net:8443/a.png", "https://www.example.net:8443/a.png", "www.example.net"},
		{"https://www.example.net", "https://www.example.net/", "www.example.net"},
		{"https://www.example.net?x", "https://www.example.net/?x", "www.example.net"},
		{"https://www.example.net#x", "https://www.example.net/", "www.example.net"},
		{"https://www.example.net/a?b=c#d#e", "https://www.example.net/a?b=c", "www.example.net"},
		{"https://www.example.net/a#", "https://www.example.net/a", "www.example.net"},
		{"HTTP://www.example.net:80/%41?#", "http://www.example.net/%41?", "www.example.net"},
		{"https://cdn.example.com/a.png", "", "cdn.example.com"},
		{"data:image/png;base64,AAAA", "", ""},
	} {
		if d := icons.Decide(IconArgs{URL: tt.url}); d.URL != tt.want || d.Host != tt.host {
			t.Errorf("Decide(%q) fetches %q from %q, want %q from %q", tt.url, d.URL, d.Host, tt.want, tt.host)
		}
	}
}

func TestIconsNamesTheRule(t *testing.T) {
	icons := mustIcons(t, IconsConfig{Rules: attackRules})
	for url, want := range map[string]string{
		"https://a.example.org/":   "*.example.org",
		"https://localhost:8443/":  "localhost:8443",
		"https://www.example.net/": "",
		"https://kubernetes/":      "",
	} {
		if d := icons.Decide(IconArgs{URL: url}); d.Rule != want {
			t.Errorf("%s: by the rule %q, want %q", url, d.Rule, want)
		}
	}
}

func TestNewIconsRefuses(t *testing.T) {
	for _, tt := range []struct {
		config IconsConfig
		want   string
	}{
		{IconsConfig{Rules: []IconRule{{Host: "a.example.com"}, {Host: "*"}}}, `icons.rules[1]: "*" is not a host`},
		{IconsConfig{Rules: []IconRule{{Host: "a.example.com", Action: 3}}}, "icons.rules[0]: Verdict(3) is none of"},
		{IconsConfig{Default: 3}, "icons.default: Verdict(3) is none of"},
	} {
		icons, err := NewIcons(tt.config)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want an error that says %q", err, tt.want)
		}
		if d := icons.Decide(IconArgs{URL: "https://a.example.com/"}); d.Verdict != Strip {
			t.Errorf("what could not be compiled does not strip: %+v", d)
		}
	}
}

func TestEveryReasonHasItsText(t *testing.T) {
	seen := make(map[string]bool)
	for r, text := range reasons {
		if text == "" || seen[text] {
			t.Errorf("reason %d: %q is empty or not its own", r, text)
		}
		seen[text] = true
	}
}

// Whatever comes, a URL that is kept or fetched has the host that net/url
// reads in it.
func FuzzIcons(f *testing.F) {
	for _, s := range []string{
		"https://cdn.example.com/a.png", "HTTPS://A.Example.ORG:443?x#y", "https://localhost:8443/%41", "https://xn--bcher-kva.de/",
		"https://u@cdn.example.com/", `https://cdn.example.com\@x/`, "https://1.1.1.1 &@2.2.2.2# @3.3.3.3/", "https://[::1]/", "https:///x",
		"data:image/png;base64,AAAA", "https://a.0x1/", "https://xn--example-.org/", "https://cdn.example.com:0443/", "http://cdn.example.com/",
	} {
		f.Add(s, "https://mcp.example.com")
	}
	icons := mustIcons(f, IconsConfig{Default: Inline, Rules: attackRules})
	keep := mustIcons(f, IconsConfig{Default: Keep, AllowHTTP: true})
	f.Fuzz(func(t *testing.T, raw, origin string) {
		for _, i := range []*Icons{icons, keep} {
			args := IconArgs{URL: raw, Origin: origin}
			d, site := i.Decide(args), i.DecideWebsite(args)
			if d.Reason == "" || site.Reason == "" {
				t.Fatalf("no reason: %+v, %+v", d, site)
			}
			if site.Verdict == Inline || site.URL != "" || site.Data {
				t.Fatalf("a website is to be fetched: %+v", site)
			}
			if d.Verdict == Strip || d.Data {
				continue
			}
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatalf("%q has the verdict %v, and net/url refuses it: %v", raw, d.Verdict, err)
			}
			if strings.ToLower(u.Hostname()) != d.Host || u.User != nil || u.Opaque != "" {
				t.Fatalf("%q: we read the host %q, net/url %+v", raw, d.Host, u)
			}
			if u.Scheme != "https" && !(i == keep && u.Scheme == "http") {
				t.Fatalf("%q has the verdict %v", raw, d.Verdict)
			}
			if d.Verdict == Keep {
				continue
			}
			again := i.Decide(IconArgs{URL: d.URL, Origin: origin})
			if again != d {
				t.Fatalf("%q is fetched as %q, which is judged otherwise: %+v, %+v", raw, d.URL, d, again)
			}
		}
	})
}

func BenchmarkIcons(b *testing.B) {
	icons := mustIcons(b, IconsConfig{Rules: attackRules})
	for _, bb := range []struct{ name, url, origin string }{
		{"exact", "https://cdn.example.com/icons/a.png", ""},
		{"wildcard", "https://a.b.example.org/icons/a.png", ""},
		{"default", "https://www.example.net/icons/a.png", ""},
		{"inline", "https://inline.example.com/icons/a.png?v=2", ""},
		{"self", "https://mcp.example.com/icons/a.png", "https://mcp.example.com"},
		{"data", "data:image/png;base64,AAAA", ""},
		{"capitals", "https://CDN.EXAMPLE.COM/icons/a.png", ""},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				icons.Decide(IconArgs{URL: bb.url, Origin: bb.origin})
			}
		})
	}
}

func TestIconsAllocatesNothing(t *testing.T) {
	icons := mustIcons(t, IconsConfig{Rules: attackRules})
	for _, args := range []IconArgs{
		{URL: "https://cdn.example.com/icons/a.png"},
		{URL: "https://a.b.example.org/icons/a.png"},
		{URL: "https://www.example.net/icons/a.png", Origin: "https://mcp.example.com"},
		{URL: "https://inline.example.com/icons/a.png"},
		{URL: "data:image/png;base64,AAAA"},
		{URL: "https://u:p@cdn.example.com/"},
	} {
		if n := testing.AllocsPerRun(100, func() { icons.Decide(args) }); n != 0 {
			t.Errorf("Decide(%q) allocates %v times", args.URL, n)
		}
	}
}
