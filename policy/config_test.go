package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustParse(t testing.TB, file string) *Config {
	t.Helper()
	c, err := Parse("policy.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSetFlag(t testing.TB, c *Config, name, value string) {
	t.Helper()
	if err := c.SetFlag(name, value); err != nil {
		t.Fatal(err)
	}
}

// hosts is the icon rules in short.
func hosts(c *Config) string {
	var b []string
	for _, r := range c.Icons.Rules {
		b = append(b, r.Host+"="+r.Action.String())
	}
	return strings.Join(b, " ")
}

func TestDefaultIsValid(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for path, got := range map[string]any{
		"icons.default": c.Icons.Default, "icons.deadline": c.Icons.Deadline.Std(), "icons.budget.per-icon": c.Icons.Budget.PerIcon,
		"icons.budget.per-message": c.Icons.Budget.PerMessage, "limits.max-message": c.Limits.MaxMessage, "limits.max-inflight": c.Limits.MaxInflight,
		"answers.on-invalid": c.Answers.OnInvalid, "answers.retries": c.Answers.Retries, "answers.state-expiry": c.Answers.StateExpiry.Std(),
		"enums": c.Enums, "schemas.formats": c.Schemas.Formats, "schemas.enum-names": c.Schemas.EnumNames, "http.path": c.HTTP.Path, "icons.edge": c.Icons.Edge,
	} {
		want := map[string]any{
			"icons.default": Strip, "icons.deadline": 500 * time.Millisecond, "icons.budget.per-icon": 24 * KiB,
			"icons.budget.per-message": 256 * KiB, "limits.max-message": 64 * MiB, "limits.max-inflight": 512 * MiB,
			"answers.on-invalid": OnInvalidError, "answers.retries": Count(2), "answers.state-expiry": 24 * time.Hour,
			"enums": EnumsAuto, "schemas.formats": SwitchAuto, "schemas.enum-names": true, "http.path": "/mcp", "icons.edge": Count(64),
		}[path]
		if got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if c.Source("icons.default") != (Source{}) || c.Source("icons.default").String() != "default" {
		t.Errorf("a default comes from %v", c.Source("icons.default"))
	}
	p, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Icons.Decide(IconArgs{URL: "https://www.example.net/"}); d.Verdict != Strip {
		t.Errorf("the built-in policy: %+v", d)
	}
}

func TestParse(t *testing.T) {
	c := mustParse(t, "\ufeffversion: 1\r\nicons:\r\n  default: inline\r\n  rules:\r\n  - host: cdn.example.com\r\n    action: keep\r\n  - {host: '*.example.org', action: strip}\r\nschemas: {formats: off, const: false}\r\nlimits:\r\n  max-message: 1048576\r\n  max-inflight: off\r\n  session-idle: 90m\r\nhttp: {allow-host: [a, \"b\"], listen: ':8080'}\r\n")
	if c.Icons.Default != Inline || hosts(c) != "cdn.example.com=keep *.example.org=strip" {
		t.Errorf("icons: %+v", c.Icons)
	}
	if c.Schemas.Formats != SwitchOff || c.Schemas.Const || !c.Schemas.AnyOf {
		t.Errorf("schemas: %+v", c.Schemas)
	}
	if c.Limits.MaxMessage != MiB || c.Limits.MaxInflight >= 0 || c.Limits.SessionIdle.Std() != 90*time.Minute {
		t.Errorf("limits: %+v", c.Limits)
	}
	if !slices.Equal(c.HTTP.AllowHost, []string{"a", "b"}) || c.HTTP.Listen != ":8080" {
		t.Errorf("http: %+v", c.HTTP)
	}
	for path, want := range map[string]string{
		"icons.default":      "policy.yaml:3:12",
		"schemas.formats":    "policy.yaml:8:20",
		"http.allow-host[1]": "policy.yaml:13:24",
		"icons.edge":         "default",
	} {
		if got := c.Source(path).String(); got != want {
			t.Errorf("%s comes from %s, want %s", path, got, want)
		}
	}
	if got := c.Icons.Rules[1].Source().String(); got != "policy.yaml:7:5" {
		t.Errorf("the second rule comes from %s", got)
	}
}

func TestSetFlag(t *testing.T) {
	c := mustParse(t, "version: 1\nicons:\n  default: strip\n  rules: [{host: a.example.com, action: strip}]\nhttp: {allow-host: [one]}\n")
	for _, f := range [][2]string{
		{"icons", "inline"}, {"icon-trust", "*.example.com"}, {"icon-strip", "b.example.com"}, {"observe", "true"},
		{"allow-host", "two"}, {"allow-host", "three"}, {"max-message", "1MiB"}, {"header", "X-Key: a"},
	} {
		mustSetFlag(t, c, f[0], f[1])
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Icons.Default != Inline || !c.Observe || c.Limits.MaxMessage != MiB {
		t.Errorf("%+v", c)
	}
	if got, want := hosts(c), "*.example.com=keep b.example.com=strip a.example.com=strip"; got != want {
		t.Errorf("rules %s, want %s", got, want)
	}
	if !slices.Equal(c.HTTP.AllowHost, []string{"two", "three"}) {
		t.Errorf("allow-host %v: flags take the place of the file's list", c.HTTP.AllowHost)
	}
	if got := c.Source("icons.default").String(); got != "--icons" {
		t.Errorf("icons.default comes from %s", got)
	}
	if got := c.Icons.Rules[0].Source().String(); got != "--icon-trust" {
		t.Errorf("the first rule comes from %s", got)
	}
}

func TestSetFlagErrors(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"icons", "kep", `--icons: "kep" is none of strip, inline, keep; did you mean "keep"?`},
		{"icon-trust", "Example.com", `--icon-trust: "Example.com" is not a host that a rule can name: names are written in lower case; write "example.com"`},
		{"observe", "yes", `--observe: "yes" is neither true nor false`},
		{"max-message", "64MB", `--max-message: "64MB" is not a size; write a whole number of B, KiB, MiB or GiB, as in 64MiB`},
		{"max-message", "1B", `--max-message: 1B is less than 1KiB`},
		{"path", "mcp", `--path: "mcp" is not a path; write "/mcp"`},
		{"edge", "1", `--edge: there is no flag --edge`},
	} {
		c := Default()
		err := c.SetFlag(tt.name, tt.value)
		if err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
		if !reflect.DeepEqual(c, Default()) {
			t.Errorf("--%s %s is refused and yet changes the policy", tt.name, tt.value)
		}
	}
	c := Default()
	mustSetFlag(t, c, "tls-cert", "a.pem")
	if err := c.Validate(); err == nil || err.Error() != "--tls-cert: a certificate and its key are set together (see http.tls-key)" {
		t.Errorf("got %v", err)
	}
}

const withServers = `version: 1
enums: never
icons:
  rules: [{host: a.example.com, action: keep}]
http: {allow-host: [general]}
servers:
- name: github
  enums: always
  icons: {default: inline, rules: [{host: b.example.com, action: inline}]}
  http: {allow-host: []}
- command: npx -y @example/server*
  answers: {coerce: {strings: true}}
- url: https://mcp.example.com/*
  observe: true
- name: both
  command: node both.js
  observe: true
`

func TestFor(t *testing.T) {
	c := mustParse(t, withServers)
	for _, tt := range []struct {
		name, server string
		command      []string
		want         string // the section that is taken, by its place
	}{
		{"name", "github", []string{"github-server"}, "0"},
		{"name is exact", "github2", []string{"x"}, ""},
		{"command", "", []string{"npx", "-y", "@example/server@1.2.3", "--flag"}, "1"},
		{"command by its base name", "", []string{"/usr/bin/npx", "-y", "@example/server"}, "1"},
		{"command on Windows", "", []string{`C:\node\npx`, "-y", "@example/server"}, "1"},
		{"another command", "", []string{"npx", "@example/server"}, ""},
		{"url", "", []string{"https://mcp.example.com/mcp"}, "2"},
		{"another url", "", []string{"https://mcp.example.net/mcp"}, ""},
		{"a command that holds the url", "", []string{"curl", "https://mcp.example.com/mcp"}, ""},
		{"the first that matches", "github", []string{"https://mcp.example.com/mcp"}, "0"},
		{"both must match: only name", "both", []string{"node", "x.js"}, ""},
		{"both must match: only command", "x", []string{"node", "both.js"}, ""},
		{"both match", "both", []string{"node", "both.js"}, "3"},
		{"nothing known", "", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for i := range c.Servers {
				if c.Servers[i].matches(tt.server, tt.command) {
					got += string(rune('0' + i))
				}
			}
			if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("matches %q, want %q", got, tt.want)
			}
		})
	}

	mustSetFlag(t, c, "enums", "auto")
	mustSetFlag(t, c, "icon-strip", "c.example.com")
	s := c.For("github", nil)
	if s.Enums != EnumsAuto {
		t.Errorf("enums is %s: a flag stands over a server's section", s.Enums)
	}
	if s.Icons.Default != Inline || s.Source("icons.default").String() != "policy.yaml:9:20" {
		t.Errorf("icons.default is %v, from %v", s.Icons.Default, s.Source("icons.default"))
	}
	if got, want := hosts(s), "c.example.com=strip b.example.com=inline a.example.com=keep"; got != want {
		t.Errorf("rules %s, want %s", got, want)
	}
	if len(s.HTTP.AllowHost) != 0 || len(s.Servers) != 0 {
		t.Errorf("allow-host %v, servers %v", s.HTTP.AllowHost, s.Servers)
	}
	if got := c.For("", []string{"npx", "-y", "@example/server"}); !got.Answers.Coerce.Strings || got.Icons.Default != Strip {
		t.Errorf("%+v", got)
	}
	if got := c.For("other", nil); got.Enums != EnumsAuto || hosts(got) != "c.example.com=strip a.example.com=keep" || !slices.Equal(got.HTTP.AllowHost, []string{"general"}) {
		t.Errorf("for a server without a section: %+v", got)
	}
	if got := c.For("github", []string{"https://mcp.example.com/mcp"}); got.Observe || got.Icons.Default != Inline {
		t.Errorf("not the first section that matches, and it alone: %+v", got)
	}
	if got := c.Source("icons.default"); got != (Source{}) {
		t.Errorf("For changed where its receiver's values come from: %v", got)
	}
	if len(c.Servers) != 4 || c.Icons.Default != Strip || hosts(c) != "c.example.com=strip a.example.com=keep" {
		t.Errorf("For changed its receiver: %+v", c)
	}
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"a*", "a", true}, {"a*c", "abc", true}, {"a*c", "ac", true},
		{"a*c", "a", false}, {"aa*a", "aa", false}, {"*b*", "abc", true}, {"*a*b*", "ba", false}, {"a**b", "ab", true}, {"a?", "ab", false},
	} {
		if got := glob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("glob(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
}

func TestShowIsAPolicyFile(t *testing.T) {
	c := mustParse(t, withServers).For("github", nil)
	mustSetFlag(t, c, "icon-inline", "*.example.org")
	mustSetFlag(t, c, "header", "Authorization: Bearer hunter2")
	text := c.Show()
	if strings.Contains(text, "hunter2") {
		t.Errorf("a secret is shown:\n%s", text)
	}
	for _, line := range []string{
		"enums: always  # policy.yaml:8:10\n",
		"    - {host: \"*.example.org\", action: inline}  # --icon-inline\n",
		"    - {host: \"b.example.com\", action: inline}  # policy.yaml:9:36\n",
		"  default: inline  # policy.yaml:9:20\n",
		"    per-icon: 24KiB  # default\n",
		"    - \"Authorization: (hidden)\"  # --header\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("missing %q in\n%s", line, text)
		}
	}
	back := mustParse(t, text)
	if diff := back.Diff(c); diff != nil {
		t.Errorf("what is shown reads as another policy: %q", diff)
	}
}

func TestDiff(t *testing.T) {
	a := Default()
	b := mustParse(t, "version: 1\nicons:\n  default: keep\n  rules: [{host: a.example.com, action: keep}, {host: b.example.com, action: strip}]\n")
	want := []string{
		"icons.default: keep, was strip",
		`icons.rules: [{host: "a.example.com", action: keep}, {host: "b.example.com", action: strip}], was []`,
	}
	if got := b.Diff(a); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := b.Diff(b); got != nil {
		t.Errorf("differs from itself: %q", got)
	}
}

func TestValidateWhatGoSets(t *testing.T) {
	for _, tt := range []struct {
		set  func(*Config)
		want string
	}{
		{func(c *Config) { *c = Config{} }, "version: 0 is less than 1"},
		{func(c *Config) { c.Enums = "sometimes" }, `enums: "sometimes" is none of auto, always, never`},
		{func(c *Config) { c.Icons.Default = 3 }, `icons.default: "Verdict(3)" is none of strip, inline, keep`},
		{func(c *Config) { c.Icons.Deadline = 0 }, "icons.deadline: 0s is less than 1ms"},
		{func(c *Config) { c.Icons.Deadline = -1 }, "icons.deadline: this bound cannot be off"},
		{func(c *Config) { c.Icons.Rules = []IconRule{{Host: "*"}} }, `icons.rules[0]: "*" is not a host that a rule can name`},
		{func(c *Config) { c.Icons.Rules = []IconRule{{Host: "a.example.com", Action: 3}} }, "icons.rules[0]: Verdict(3) is none of"},
		{func(c *Config) { c.Forms.URLHosts = []string{"https://x.example.com"} }, `forms.url-hosts: "https://x.example.com" is not a host`},
		{func(c *Config) { c.HTTP.TLSKey = "k.pem" }, "http.tls-cert: a certificate and its key are set together"},
		{func(c *Config) { c.Icons.Budget.PerIcon = GiB }, "icons.budget.per-icon: one icon may take more than a whole message"},
		{func(c *Config) { c.Run.Pprof = true }, "run.pprof: pprof is served at the admin address"},
	} {
		c := Default()
		tt.set(c)
		_, err := c.Compile()
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestExplain(t *testing.T) {
	c := mustParse(t, "version: 1\nicons:\n  default: inline\n  rules:\n  - {host: cdn.example.com, action: keep}\n")
	p, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"https://CDN.example.com/a.png": `icon        keep: a rule trusts the host
            by the rule {host: cdn.example.com, action: keep} (policy.yaml:5:5)
websiteUrl  keep: a rule trusts the host
            by the rule {host: cdn.example.com, action: keep} (policy.yaml:5:5)
host        cdn.example.com
`,
		"https://www.example.net#a": `icon        inline: no rule names the host, and the default is inline
            fetched as https://www.example.net/
websiteUrl  keep: no rule names the host, and the default is inline
host        www.example.net
`,
		"data:image/png;base64,AAAA": `icon        decode: a data: URI has no host: its bytes are decoded, checked and encoded anew
websiteUrl  strip: the URL's scheme is not https
`,
	} {
		if got := p.Explain(IconArgs{URL: url}); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", url, got, want)
		}
	}
}
