package policy

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"empty", "", `p.yaml:1:1: the file is empty; it begins with "version: 1"`},
		{"only a comment", "# x\n", `p.yaml:1:1: the file is empty; it begins with "version: 1"`},
		{"no mapping", "- a\n", `p.yaml:1:1: the file is not a mapping of keys to values; it begins with "version: 1"`},
		{"no version", "observe: true\n", `p.yaml:1:1: the version is missing; the file begins with "version: 1"`},
		{"version 2", "version: 2\n", `p.yaml:1:10: version: 2 is more than 1`},
		{"version as text", "version: '1'\n", `p.yaml:1:10: version: "1" is text; write it without quotes`},
		{"version in hex", "version: 0x1\n", `p.yaml:1:10: version: "0x1" is not a whole number`},
		{"unknown key, near one", "version: 1\nicon:\n  default: keep\n", `p.yaml:2:1: icon: there is no such key; did you mean "icons"?`},
		{"unknown key, other convention", "version: 1\nanswers:\n  fillDefaults: true\n", `p.yaml:3:3: answers.fillDefaults: there is no such key; did you mean "fill-defaults"?`},
		{"unknown key, of another section", "version: 1\non-invalid: retry\n", `p.yaml:2:1: on-invalid: there is no such key; did you mean "answers.on-invalid"?`},
		{"a flag for a key", "version: 1\nicon-private: true\n", `p.yaml:2:1: icon-private: there is no such key; did you mean "icons.private"?`},
		{"a rule's flag for a key", "version: 1\nicon-trust: [a.example.com]\n", `p.yaml:2:1: icon-trust: there is no such key; did you mean "icons.rules"?`},
		{"unknown key, near none", "version: 1\nanswers:\n  coerce: {xyzzy: true}\n", `p.yaml:3:12: answers.coerce.xyzzy: there is no such key; there are strings, titles, drop-empty, drop-undeclared`},
		{"duplicate key", "version: 1\nenums: auto\nenums: never\n", `p.yaml:3:1: mapping key "enums" already defined at [2:1]`},
		{"duplicate key, quoted once", "version: 1\nenums: auto\n\"enums\": never\n", `p.yaml:3:1: mapping key "enums" already defined at [2:1]`},
		{"duplicate key in a section", "version: 1\nicons: {edge: 64, edge: 32}\n", `p.yaml:2:19: mapping key "edge" already defined at [2:9]`},
		{"duplicate key in a rule", "version: 1\nicons:\n  rules:\n  - {host: a.example.com, host: b.example.com, action: keep}\n", `p.yaml:4:27: mapping key "host" already defined at [4:6]`},
		{"section as a value", "version: 1\nicons: inline\n", `p.yaml:2:8: icons: this is a section of keys, not a value; did you mean "icons.default"?`},
		{"value as a section", "version: 1\nenums: {a: b}\n", `p.yaml:2:8: enums: this is a single value (auto|always|never), not a section of keys`},
		{"value as a list", "version: 1\nenums: [auto]\n", `p.yaml:2:8: enums: this is a single value (auto|always|never), not a list`},
		{"no value", "version: 1\nenums:\n", `p.yaml:2:1: enums: the value is missing`},
		{"null", "version: 1\nicons:\n  default: ~\n", `p.yaml:3:3: icons.default: the value is missing`},
		{"bad choice, near one", "version: 1\nicons:\n  default: kep\n", `p.yaml:3:12: icons.default: "kep" is none of strip, inline, keep; did you mean "keep"?`},
		{"bad choice, near none", "version: 1\nenums: 5\n", `p.yaml:2:8: enums: "5" is none of auto, always, never`},
		{"true for a switch of three", "version: 1\nschemas: {formats: true}\n", `p.yaml:2:20: schemas.formats: "true" is none of auto, on, off`},
		{"yes for true", "version: 1\nobserve: yes\n", `p.yaml:2:10: observe: "yes" is neither true nor false`},
		{"quoted true", "version: 1\nobserve: \"true\"\n", `p.yaml:2:10: observe: "true" is text; write it without quotes`},
		{"number for true", "version: 1\nobserve: 1\n", `p.yaml:2:10: observe: "1" is neither true nor false`},
		{"number for text", "version: 1\nhttp: {listen: 8080}\n", `p.yaml:2:16: http.listen: 8080 is not text; write it in quotes`},
		{"no unit", "version: 1\nicons: {deadline: 500}\n", `p.yaml:2:19: icons.deadline: "500" is not a duration; write a number with its unit, as in 500ms, 30s or 24h`},
		{"bad unit", "version: 1\nlimits: {max-message: 64MB}\n", `p.yaml:2:23: limits.max-message: "64MB" is not a size; write a whole number of B, KiB, MiB or GiB, as in 64MiB`},
		{"below the least", "version: 1\nlimits: {max-message: 1B}\n", `p.yaml:2:23: limits.max-message: 1B is less than 1KiB`},
		{"above the greatest", "version: 1\nicons: {edge: 4096}\n", `p.yaml:2:15: icons.edge: 4096 is more than 128`},
		{"negative", "version: 1\nanswers: {retries: -1}\n", `p.yaml:2:20: answers.retries: "-1" is not a whole number`},
		{"off where it cannot be", "version: 1\nicons: {deadline: off}\n", `p.yaml:2:19: icons.deadline: this bound cannot be off`},
		{"host *", "version: 1\nicons:\n  rules:\n  - host: '*'\n    action: keep\n", `p.yaml:4:11: icons.rules[0].host: "*" is not a host that a rule can name: it would name every host; icons.default decides for the hosts that no rule names`},
		{"host with a meant spelling", "version: 1\nicons:\n  rules:\n  - {host: https://cdn.example.com/, action: keep}\n", `p.yaml:4:12: icons.rules[0].host: "https://cdn.example.com/" is not a host that a rule can name: a rule names hosts, not URLs; write "cdn.example.com"`},
		{"second rule", "version: 1\nicons:\n  rules:\n  - {host: a.example.com, action: keep}\n  - {host: '*.com', action: keep}\n", `p.yaml:5:12: icons.rules[1].host: "*.com" is not a host that a rule can name: anyone can have a name under the public suffix "com"; name a domain below it`},
		{"rule without action", "version: 1\nicons:\n  rules:\n  - host: a.example.com\n", `p.yaml:4:9: icons.rules[0]: the rule has no action; it is written {host: cdn.example.com, action: keep}`},
		{"rule as text", "version: 1\nicons:\n  rules: [a.example.com]\n", `p.yaml:3:11: icons.rules[0]: a rule is written {host: cdn.example.com, action: keep}`},
		{"list as text", "version: 1\nhttp: {allow-host: a}\n", `p.yaml:2:20: http.allow-host: this is a list of texts; write it as [a, b], or one a line behind a dash`},
		{"number in a list", "version: 1\nhttp: {allow-host: [a, 1]}\n", `p.yaml:2:24: http.allow-host[1]: 1 is not text; write it in quotes`},
		{"null in a list", "version: 1\nhttp: {allow-host: [a, ~]}\n", `p.yaml:2:24: http.allow-host[1]: the value is missing`},
		{"bad host in a list", "version: 1\nforms: {url-hosts: [10.0.0.1]}\n", `p.yaml:2:21: forms.url-hosts[0]: "10.0.0.1" is not a host that a rule can name: it is an IP address, and hosts are named by name only`},
		{"header", "version: 1\nhttp: {headers: [X-Key]}\n", `p.yaml:2:18: http.headers[0]: "X-Key" is not a header; write it as 'Name: value'`},
		{"path", "version: 1\nhttp: {path: mcp}\n", `p.yaml:2:14: http.path: "mcp" is not a path; write "/mcp"`},
		{"anchor", "version: 1\nenums: &a auto\n", `p.yaml:2:8: enums: anchors, aliases and tags are not part of this format`},
		{"tag", "version: !!int 1\n", `p.yaml:1:10: version: anchors, aliases and tags are not part of this format`},
		{"merge key", "version: 1\n<<: {enums: auto}\n", `p.yaml:2:1: <<: this is not a plain key`},
		{"key that is a number", "version: 1\n2: x\n", `p.yaml:2:1: 2: this is not a plain key`},
		{"block text", "version: 1\nenums: |\n  auto\n", `p.yaml:2:8: enums: the value must stand on one line`},
		{"two documents", "version: 1\n---\nversion: 1\n", `p.yaml:3:8: the file holds more than one document`},
		{"no YAML", "version: 1\nicons: [a\n", `p.yaml:2:8: sequence end token ']' not found`},
		{"tab", "version: 1\nicons:\n\tdefault: keep\n", `p.yaml:3:1: found character '	' that cannot start any token`},
		{"control character", "version: 1\nenums: \"a\x01\"\n", `p.yaml:2:10: the file holds a control character`},
		{"not UTF-8", "version: 1\n# é\xff\n", `p.yaml:2:4: the file is not UTF-8`},
		{"column after a wide character", "version: 1\nhttp: {listen: \"é\", path: x}\n", `p.yaml:2:27: http.path: "x" is not a path; write "/x"`},
		{"nested", "version: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n", `p.yaml:1:1: the file is nested more than 32 deep`},
		{"two things", "version: 1\nenums: x\nobserve: y\n", `p.yaml:2:8: enums: "x" is none of auto, always, never (and 1 more)`},
		{"certificate alone", "version: 1\nhttp:\n  tls-cert: a.pem\n", `p.yaml:3:13: http.tls-cert: a certificate and its key are set together (see http.tls-key)`},
		{"times the wrong way round", "version: 1\nicons: {cache: {min-ttl: 48h}}\n", `p.yaml:2:26: icons.cache.min-ttl: the least time is longer than the longest (see icons.cache.max-ttl)`},
		{"message above all messages", "version: 1\nlimits: {max-message: off}\n", `p.yaml:2:23: limits.max-message: one message may be larger than all messages together (see limits.max-inflight)`},
		{"server without a match", "version: 1\nservers:\n- enums: never\n", `p.yaml:3:8: servers[0]: the section matches no server: it needs a name, a command or a url`},
		{"server as text", "version: 1\nservers: [x]\n", `p.yaml:2:11: servers[0]: a server's section is a mapping that begins with name, command or url`},
		{"bad value in a server's section", "version: 1\nservers:\n- name: a\n  icons: {default: kep}\n", `p.yaml:4:20: servers[0].icons.default: "kep" is none of strip, inline, keep; did you mean "keep"?`},
		{"unknown key in a server's section", "version: 1\nservers:\n- name: a\n  icns: {}\n", `p.yaml:4:3: servers[0].icns: there is no such key; did you mean "icons"?`},
		{"version in a server's section", "version: 1\nservers:\n- name: a\n  version: 1\n", `p.yaml:4:3: servers[0].version: this key does not belong in a server's section`},
		{"servers in a server's section", "version: 1\nservers:\n- name: a\n  servers: []\n", `p.yaml:4:3: servers[0].servers: this key does not belong in a server's section`},
		{"a section that does not fit the rest", "version: 1\nservers:\n- name: a\n  limits: {max-inflight: 1MiB}\n", `p.yaml:4:26: limits.max-message: one message may be larger than all messages together (see limits.max-inflight)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("p.yaml", []byte(tt.file))
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("got %v, want Errors", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}

// Whatever comes, Parse returns; what it takes compiles, and shows as a file
// that says the same.
func FuzzParse(f *testing.F) {
	sample, err := os.ReadFile("../deploy/policy.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	for _, s := range []string{
		"version: 1\n", "", "\ufeffversion: 1\r\n", withServers, "version: 1\nicons: {rules: [{host: \"*.example.com\", action: keep}]}\n",
		"version: 1\nlimits: {max-message: 0x10, grace: -1s}\n", "a: &b [*b]\n", "? a\n: b\n", "--- |\n x\n...\n", "version: 1 # \"\n", "[[[[{{{{", "- - - -",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("policy.yaml", data)
		if err != nil {
			var errs Errors
			if !errors.As(err, &errs) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("not one line of Errors: %v", err)
			}
			for _, e := range errs {
				if e.Source.Line < 1 || e.Source.Column < 1 || e.Msg == "" {
					t.Fatalf("without a place or a reason: %+v", e)
				}
			}
			return
		}
		if _, err := c.Compile(); err != nil {
			t.Fatalf("taken, but does not compile: %v", err)
		}
		c.For("github", []string{"npx", "x"})
		back, err := Parse("shown", []byte(c.Show()))
		if err != nil {
			t.Fatalf("what is shown is not taken: %v\n%s", err, c.Show())
		}
		if diff := back.Diff(c); len(diff) > 0 {
			t.Fatalf("what is shown reads as another policy: %q", diff)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	sample, err := os.ReadFile("../deploy/policy.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Parse("policy.yaml", sample); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefault(b *testing.B) {
	for b.Loop() {
		Default()
	}
}
