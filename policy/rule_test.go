package policy

import (
	"strings"
	"testing"
)

func TestCheckHost(t *testing.T) {
	for _, tt := range []struct{ host, why, meant string }{
		{"cdn.example.com", "", ""},
		{"*.example.com", "", ""},
		{"*.a.co.uk", "", ""},
		{"*.octocat.github.io", "", ""},
		{"self", "", ""},
		{"localhost", "", ""},
		{"localhost:8443", "", ""},
		{"metadata", "", ""},
		{"icons.corp.internal", "", ""},
		{"cdn.example.com:443", "", ""},
		{"*.example.com:8443", "", ""},
		{"xn--bcher-kva.de", "", ""},
		{"3com.com", "", ""},
		{"a--b.example.com", "", ""},

		{"", "it is empty", ""},
		{"*", "icons.default decides", ""},
		{"*.", "no domain follows", ""},
		{"*:443", "* stands only in front", ""},
		{"*.com", `public suffix "com"`, ""},
		{"*.co.uk", `public suffix "co.uk"`, ""},
		{"*.github.io", `public suffix "github.io"`, ""},
		{"*.foo.ck", `public suffix "foo.ck"`, ""},
		{"*.unheardof", `public suffix "unheardof"`, ""},
		{"*foo.com", "whole labels", "*.foo.com"},
		{"*-cdn.example.com", "whole labels", ""},
		{"a.*.com", "only in front", ""},
		{"a*.example.com", "only in front", ""},
		{"*.*.example.com", "only in front", ""},
		{"example.*", "only in front", ""},
		{".example.com", "leading dot", "*.example.com"},
		{"10.0.0.1", "IP address", ""},
		{"10.0.0.1:8443", "IP address", ""},
		{"*.0.0.1", "IP address", ""},
		{"[::1]", "IP address", ""},
		{"[::1]:8443", "IP address", ""},
		{"::1", "IP address", ""},
		{"2130706433", "IP address", ""},
		{"0x7f.1", "IP address", ""},
		{"example.com.", "ends in a dot", "example.com"},
		{"*.example.com.", "ends in a dot", "*.example.com"},
		{"Example.COM", "lower case", "example.com"},
		{"*.Example.com", "lower case", "*.example.com"},
		{"Self", "lower case", "self"},
		{"https://cdn.example.com/icons/", "not URLs", "cdn.example.com"},
		{"https://CDN.example.com", "not URLs", "cdn.example.com"},
		{"https://localhost:8443/", "not URLs", "localhost:8443"},
		{"cdn.example.com/icons", "without a path", "cdn.example.com"},
		{"me@cdn.example.com", "without a user", "cdn.example.com"},
		{"cdn.example.com:0443", "port", "cdn.example.com:443"},
		{"cdn.example.com:", "port", ""},
		{"cdn.example.com:https", "port", ""},
		{"cdn.example.com:70000", "port", ""},
		{"bücher.de", "not ASCII", "xn--bcher-kva.de"},
		{"*.bücher.de", "not ASCII", "*.xn--bcher-kva.de"},
		{"bücher.de:8443", "not ASCII", "xn--bcher-kva.de:8443"},
		{"xn--example-.org", "international name", ""},
		{"a_b.example.com", "letters, digits", ""},
		{"-a.example.com", "letters, digits", ""},
		{"a..example.com", "letters, digits", ""},
		{"a b.example.com", "percent-encoded", ""},
		{`a\b`, "backslash", ""},
		{strings.Repeat("a", 64) + ".com", "longer than", ""},
		{"*.internal", "one by one", ""},
		{"*.corp.internal", "one by one", ""},
		{"*.svc.cluster.local", "one by one", ""},
		{"*.localhost", "one by one", ""},
	} {
		t.Run(tt.host, func(t *testing.T) {
			err := CheckHost(tt.host)
			if tt.why == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Fatalf("got %v, want an error that says %q", err, tt.why)
			}
			_, meant, _ := strings.Cut(err.Error(), "; write ")
			if want := quoteYAML(tt.meant); tt.meant != "" && meant != want || tt.meant == "" && meant != "" {
				t.Errorf("suggests %s, want %s", meant, tt.meant)
			}
		})
	}
}

// What is suggested is itself taken.
func FuzzCheckHost(f *testing.F) {
	for _, s := range []string{"*.example.com", "https://a@B.example.com:0443/x", "bücher.de", "*", "self", "*a.b", "a:1:2", "[::1]:443"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		_, err := parsePattern(host)
		if err == nil {
			return
		}
		if meant := err.(*hostError).meant; meant != "" {
			if err := CheckHost(meant); err != nil {
				t.Errorf("for %q it suggests what it refuses: %v", host, err)
			}
		}
	})
}
