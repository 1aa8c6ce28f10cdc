package policy

import (
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	tests := map[string]struct{ good, bad []string }{
		"email": {
			[]string{"a@b.example", "jörg@exämple.test", "a+tag@b.co", "o'hara@x.example", `"a b"@x.example`, "a@localhost",
				"a@[192.0.2.1]", "a@[IPv6:2001:db8::1]", "用户@例子.广告", "a_b-c@x-y.example"},
			[]string{"", "a", "@b.example", "a@", "a b@c.example", "a@b c", "a@b@c", ".a@b.example", "a.@b.example", "a..b@c.example",
				"a@.example", "a@b..example", "a@-b.example", "a@[192.0.2]", "a\n@b.example", "a,b@c.example", "Ann <a@b.example>"},
		},
		"uri": {
			[]string{"https://example.com/", "http://x", "mailto:a@b.example", "urn:isbn:0451450523", "tel:+1-201-555-0123", "ftp://h/p;type=a",
				"file:///etc/hosts", "https://[2001:db8::7]:8080/a?b#c", "https://exämple.test/ü", "data:,x", "a+b-c.1:x", "https://u:p@h/%20"},
			[]string{"", "site.example", "www.site.example/x", "/path", "//host/x", "https://", "https:site.example", "https:/site.example",
				"1a:x", ":x", "https://a b/", "https://h/%zz", "https://h/%2", "https://[::1/", "https://h/<x>", "h ttp://x", "mailto:", "https://h:port/", "a_b://x"},
		},
		"date": {
			[]string{"2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31"},
			[]string{"2026-02-30", "2025-02-29", "2026-13-01", "2026-00-10", "2026-1-2", "31.01.2026", "2026/01/31", "20260131", "2026-01-31T00:00:00Z", " 2026-01-31", "٢٠٢٦-٠١-٠١", ""},
		},
		"date-time": {
			[]string{"2026-01-31T12:00:00Z", "2026-01-31t12:00:00z", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00.123456789+05:30", "1998-12-31T23:59:60Z", "1998-12-31T15:59:60-08:00"},
			[]string{"2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00Z", "2026-01-31T24:00:00Z", "2026-02-30T12:00:00Z", "2026-01-31T12:60:00Z",
				"2026-01-31T12:00:61Z", "1998-12-31T22:59:60Z", "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+0100", "2026-01-31T12:00:00.Z", "tomorrow", ""},
		},
		"time":         {[]string{"12:00:00Z", "12:00:00.5-01:00"}, []string{"12:00:00", "12:00Z", "25:00:00Z", "noon"}},
		"duration":     {[]string{"P1D", "PT1H30M", "P1Y2M3DT4H5M6S", "P2W", "PT0.5S"}, []string{"", "P", "PT", "1D", "P1H", "P1DT", "P1S", "P1W2D"}},
		"uuid":         {[]string{"2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380", "urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380"}, []string{"", "7", "2eb8aa08aa9811eab4aa73b441d16380", "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g"}},
		"ipv4":         {[]string{"192.0.2.1", "0.0.0.0"}, []string{"192.0.2", "192.0.2.256", "192.0.02.1", "::1", "192.0.2.1/24"}},
		"ipv6":         {[]string{"2001:db8::1", "::", "::ffff:192.0.2.1"}, []string{"192.0.2.1", "2001:db8", "fe80::1%eth0", "[::1]"}},
		"hostname":     {[]string{"example.com", "a", "xn--exmple-cua.test", "1.example", "example.com."}, []string{"", "-a.example", "a-.example", "a..b", "a_b.example", "exämple.test", "a b"}},
		"idn-hostname": {[]string{"exämple.test", "例子.广告"}, []string{"", "a b", "-ä.test"}},
	}
	for name, tt := range tests {
		for _, s := range tt.good {
			if !formats[name].valid(s) {
				t.Errorf("%q is refused as %s", s, name)
			}
		}
		for _, s := range tt.bad {
			if formats[name].valid(s) {
				t.Errorf("%q is taken for %s", s, name)
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	tests := []struct{ pattern, good, bad string }{
		{`^[A-Z]+$`, "AB", "Ab"},
		{`b`, "abc", "ac"},
		{`^\d{3}-\d{4}$`, "555-1234", "555-12345"},
		{`^\d$`, "1", "١"},
		{`^\w+$`, "a_1", "ä"},
		{`^.$`, "ä", "\u2028"},
		{`^.$`, "😀", "\r"},
		{`^a$`, "a", "a\n"},
		{`^\s$`, "\u00a0", "x"},
		{`^\S$`, "x", "\ufeff"},
		{`^[\s,]+$`, " ,\u3000", "x"},
		{`^\u00e4\u{1F600}$`, "ä😀", "ä"},
		{`^\ud83d\ude00$`, "😀", "x"},
		{`^[\u4e00-\u9fff]+$`, "漢字", "abc"},
		{`^\x41\cJ\0$`, "A\n\x00", "A"},
		{`^\/\.\-\$$`, "/.-$", "/x-$"},
		{`^[[]$`, "[", "]"},
		{`^[[:alpha:]]$`, "a]", "b"},
		{`^[a^]$`, "^", "b"},
		{`^[\b]$`, "\b", "b"},
		{`^\p{Lu}\p{Script=Greek}$`, "Aα", "aα"},
		{`^\p{L}+$`, "Łódź", "a1"},
		{`^(?<year>\d{4})$`, "2026", "x"},
		{`^(?:a|b)$`, "a", "c"},
		{`^(?i:ab)c$`, "ABc", "ABC"},
		{`^[^]$`, "\n", ""},
		{`^(a+)+$`, "aaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
	}
	for _, tt := range tests {
		p, err := compilePattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if !p.re.MatchString(tt.good) {
			t.Errorf("%s does not match %q", tt.pattern, tt.good)
		}
		if p.re.MatchString(tt.bad) {
			t.Errorf("%s matches %q", tt.pattern, tt.bad)
		}
	}
	if p, err := compilePattern(`a[]`); err != nil || p.re.MatchString("a") || p.re.MatchString("a]") {
		t.Errorf("a[]: %v, or it matches", err)
	}
}

// What Go has no linear-time match for, or what means something to Go alone, is said.
func TestPatternsUnchecked(t *testing.T) {
	tests := map[string]string{
		`([`: "does not compile", `[`: "does not compile", `(`: "does not compile", `a**`: "does not compile", `\`: "does not compile",
		`[z-a]`: "does not compile", `\p{Nope}`: "does not compile", `\uZZZZ`: "does not compile", `[\`: "does not compile",
		`^(?=.*\d).+$`: "a group", `(?!a)b`: "a group", `(?<=a)b`: "a group", `(?i)a`: "a group", `(?P<n>a)`: "a group",
		`(a)\1`: `\1`, `\Aa\z`: `\A`, `\Qa\E`: `\Q`, `\k<n>`: `\k`, `[\S]`: `\S`,
		`\ud83d`: "surrogate", `\ud83dx`: "surrogate",
		`(a{500}){500}`: "does not compile", `a{1000}b{1000}c{1000}d{1000}e{1000}f{1000}g{1000}h{1000}i{1000}j{1000}`: "too large",
	}
	for source, reason := range tests {
		_, err := compilePattern(source)
		if err == nil {
			t.Errorf("%s compiles", source)
		} else if got := err.Error(); !strings.Contains(got, reason) {
			t.Errorf("%s: %s, want %s", source, got, reason)
		}
	}
}
