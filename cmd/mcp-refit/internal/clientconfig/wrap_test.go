package clientconfig

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
)

const self = "/opt/bin/mcp-refit"

var options = Options{Self: self, Flags: []string{"--icons=inline"}}

// A sample is one client's file, written after the client's documentation.
type sample struct {
	name, path, text, wrapped, results string
	format                             Format
}

func samples(t testing.TB) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	var out []sample
	for _, f := range files {
		a, err := txtar.ParseFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{name: strings.TrimSuffix(filepath.Base(f), ".txtar"), path: a.Files[0].Name, text: string(a.Files[0].Data)}
		s.wrapped, s.results = string(a.Files[1].Data), string(a.Files[2].Data)
		s.format = formatOf(t, s.name)
		out = append(out, s)
	}
	return out
}

// formatOf is the format of a sample's client, by its place on Linux.
func formatOf(t testing.TB, name string) Format {
	system := System{OS: "linux", Home: "/home/ada", Dir: "/src", Getenv: func(string) string { return "" }}
	if name == "claude-code-user" {
		return FileAt("/home/ada/.claude.json", system).Format
	}
	client, ok := ClientByName(strings.TrimSuffix(name, "-project"))
	if !ok {
		t.Fatalf("%s is no client's sample", name)
	}
	return client.Files(system)[0].Format
}

var entry = regexp.MustCompile(`--wrapped-entry=[A-Za-z0-9_-]+`)

// TestWrapSamples wraps each client's file, compares the outcome, and takes it
// back to the last byte.
func TestWrapSamples(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			wrapped := roundTrip(t, []byte(s.text), s.format)
			got := entry.ReplaceAllString(string(wrapped), "--wrapped-entry=…")
			if got != s.wrapped {
				t.Errorf("wrapped:\n%s", diff.Diff("want", []byte(s.wrapped), "got", []byte(got)))
			}
			_, results, err := Wrap([]byte(s.text), s.format, options)
			if err != nil {
				t.Fatal(err)
			}
			if got := resultText(results); got != s.results {
				t.Errorf("results:\n%s", diff.Diff("want", []byte(s.results), "got", []byte(got)))
			}
		})
	}
}

func resultText(results []Result) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%s %s %s", r.Table, r.Server, r.State)
		if r.Reason != "" {
			b.WriteString(": " + r.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// roundTrip wraps, wraps again (which changes nothing), and unwraps.
func roundTrip(t *testing.T, text []byte, f Format) []byte {
	t.Helper()
	before, err := List(text, f)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, _, err := Wrap(text, f, options)
	if err != nil {
		t.Fatal(err)
	}
	again, results, err := Wrap(wrapped, f, Options{Self: "/elsewhere/mcp-refit", Flags: []string{"--observe=true"}})
	if err != nil || string(again) != string(wrapped) {
		t.Errorf("wrapping twice changed it: %v\n%s", err, diff.Diff("once", wrapped, "twice", again))
	}
	for _, r := range results {
		if r.State == Wrapped {
			t.Errorf("%s was wrapped twice", r.Server)
		}
	}
	var mine []string
	for _, r := range before {
		if r.State == Unwrapped {
			mine = append(mine, r.Server)
		}
	}
	back, _, err := Unwrap(wrapped, f, Options{Servers: append(mine, "-")})
	if err != nil || string(back) != string(text) {
		t.Errorf("unwrap did not give back what was: %v\n%s", err, diff.Diff("was", text, "is", back))
	}
	return wrapped
}

// TestRoundTripVariants round-trips each sample as other editors would have
// written it.
func TestRoundTripVariants(t *testing.T) {
	variants := map[string]func(string) string{
		"CRLF":             func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"byte order mark":  func(s string) string { return "\ufeff" + s },
		"BOM and CRLF":     func(s string) string { return "\ufeff" + strings.ReplaceAll(s, "\n", "\r\n") },
		"tabs":             func(s string) string { return strings.ReplaceAll(s, "  ", "\t") },
		"no final newline": func(s string) string { return strings.TrimSuffix(s, "\n") },
		"blank lines":      func(s string) string { return "\n\n" + strings.ReplaceAll(s, "\n", "\n\n") },
		"spaces at ends":   func(s string) string { return strings.ReplaceAll(s, "\n", "  \n") },
	}
	for _, s := range samples(t) {
		for name, change := range variants {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				wrapped := roundTrip(t, []byte(change(s.text)), s.format)
				if !strings.Contains(string(wrapped), self) {
					t.Error("nothing was wrapped")
				}
				if name == "CRLF" && strings.Count(string(wrapped), "\n") != strings.Count(string(wrapped), "\r\n") {
					t.Error("a line ends without its CR")
				}
			})
		}
	}
}

func TestWrapSome(t *testing.T) {
	text := `{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}`
	got, results, err := Wrap([]byte(text), mcpServers, Options{Self: self, Servers: []string{"b"}})
	want := `{"mcpServers":{"a":{"command":"x"},"b":{"command":"/opt/bin/mcp-refit","args":["--","y"]}}}`
	if err != nil || string(got) != want || resultText(results) != "mcpServers b wrapped\n" {
		t.Errorf("%s\n%v\n%v", got, results, err)
	}
}

// TestUnwrapEdited unwraps entries that were changed since, by hand or by a formatter.
func TestUnwrapEdited(t *testing.T) {
	for _, test := range []struct {
		name, was      string
		change         [2]string
		want, refusing string
	}{
		{"an env added", `{"mcpServers":{"a":{"command":"x","args":["1"]}}}`,
			[2]string{`"1"]`, `"1"],"env":{}`}, `{"mcpServers":{"a":{"command":"x","args":["1"],"env":{}}}}`, ""},
		{"an argument added", `{"mcpServers":{"a":{"command":"x","args":["1"]}}}`,
			[2]string{`"1"]`, `"1","2"]`}, `{"mcpServers":{"a":{"command":"x","args":["1","2"]}}}`, ""},
		{"added args, formatted", `{"mcpServers":{"a":{"command":"x"}}}`,
			[2]string{`,"args":["--icons=inline","--","x"]`, ", \"args\": [\n \"--icons=inline\",\n \"--\",\n \"x\",\n]"}, "{\"mcpServers\":{\"a\":{\"command\":\"x\", \"args\": [\n \n]}}}", ""},
		{"a URL, formatted", `{"mcpServers":{"a":{"url":"https://a.example/"}}}`,
			[2]string{`"command": `, "// here\n\"command\" :"}, `{"mcpServers":{"a":{"url":"https://a.example/"}}}`, ""},
		{"a URL changed", `{"mcpServers":{"a":{"url":"https://a.example/"}}}`,
			[2]string{`"https://a.example/"]`, `"https://b.example/"]`}, "", "its URL or headers were changed since it was wrapped; change it back by hand"},
		{"a URL's entry with more in it", `{"mcpServers":{"a":{"url":"https://a.example/"}}}`,
			[2]string{`"args"`, `"env":{},"args"`}, "", "it was changed since it was wrapped; change it back by hand"},
		{"a URL's past cut", `{"mcpServers":{"a":{"url":"https://a.example/"}}}`,
			[2]string{"--wrapped-entry=", "--wrapped-entry=A"}, "", "the argument --wrapped-entry is damaged; restore the entry from the backup"},
		{"the dashes gone", `{"mcpServers":{"a":{"command":"x"}}}`,
			[2]string{`"--",`, ``}, "", "its command line is none that wrap writes; change it by hand"},
	} {
		t.Run(test.name, func(t *testing.T) {
			wrapped, _, err := Wrap([]byte(test.was), mcpServers, options)
			if err != nil || !strings.Contains(string(wrapped), test.change[0]) {
				t.Fatalf("%v: %s", err, wrapped)
			}
			edited := strings.Replace(string(wrapped), test.change[0], test.change[1], 1)
			got, results, err := Unwrap([]byte(edited), mcpServers, Options{})
			if err != nil || len(results) != 1 {
				t.Fatal(err, results)
			}
			if results[0].Reason != test.refusing {
				t.Errorf("refused: %q", results[0].Reason)
			}
			if test.refusing != "" {
				test.want = edited
			}
			if string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRefuseFile(t *testing.T) {
	for _, test := range []struct {
		name, text string
		format     Format
		want       string
	}{
		{"no JSON", `{"mcpServers":`, mcpServers, "it is not valid JSON, not even with comments: "},
		{"no object", `[]`, mcpServers, "it is no JSON object"},
		{"UTF-16", "\xff\xfe{\x00}\x00", mcpServers, "it is in UTF-16; save it as UTF-8"},
		{"no TOML", "a = ", codex, "it is not valid TOML: "},
		{"a key twice", "a = 1\na = 2", codex, "it is not valid TOML: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, _, err := Wrap([]byte(test.text), test.format, options); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	for _, empty := range []string{"", " \n", "{}", `{"mcpServers":[]}`} {
		if got, results, err := Wrap([]byte(empty), mcpServers, options); err != nil || string(got) != empty || results != nil {
			t.Errorf("%q: %q, %v, %v", empty, got, results, err)
		}
	}
}

func TestRefuseServer(t *testing.T) {
	for _, test := range []struct{ entry, want string }{
		{`{"command":"a","command":"b"}`, `"command" stands in it twice`},
		{`{"command":1}`, "its command is no string"},
		{`{"command":""}`, "its command is no string"},
		{`{"command":"a","args":[1]}`, "its args are no list of strings"},
		{`{"url":"https://a/","httpUrl":"https://a/"}`, `it has both "url" and "httpUrl"`},
		{`{"url":"https://${HOST}/"}`, "its url is no http or https URL"},
		{`{"url":"https://a/","type":"ws"}`, "its type is none of http, sse, streamable-http, streamableHttp, streamable_http"},
		{`{"url":"https://a/","headers":{"A":1}}`, `"headers" is no list of names and texts`},
		{`{"url":"https://a/","headers":{"A:B":"1"}}`, `"headers" has a header that can't be sent: "A:B"`},
		{`{"url":"https://a/","headers":{"A":"1\n2"}}`, `"headers" has a header that can't be sent: "A"`},
		{`{"url":"https://a/","headersHelper":"x"}`, `"headersHelper" has no counterpart in mcp-refit's command line`},
	} {
		text := `{"mcpServers":{"a":` + test.entry + `}}`
		got, results, err := Wrap([]byte(text), mcpServers, options)
		if err != nil || string(got) != text || len(results) != 1 || results[0].State != Refused || results[0].Reason != test.want {
			t.Errorf("%s: %v %v", test.entry, results, err)
		}
	}
}

// FuzzRoundTrip: whatever a file holds, wrapping twice is wrapping once, and
// unwrapping gives back the same bytes.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range samples(f) {
		f.Add([]byte(s.text), s.format.Syntax == TOML)
	}
	f.Fuzz(func(t *testing.T, text []byte, isTOML bool) {
		format := anyJSON
		if isTOML {
			format = codex
		}
		wrapped, results, err := Wrap(text, format, options)
		if err != nil {
			return // refused, and nothing is written
		}
		var names []string
		for _, r := range results {
			switch r.State {
			case Wrapped:
				names = append(names, r.Server)
			case Already:
				return // what others wrapped is unwrapped as well
			}
		}
		if len(names) == 0 {
			if string(wrapped) != string(text) {
				t.Fatalf("changed with no result: %q", wrapped)
			}
			return
		}
		again, _, err := Wrap(wrapped, format, options)
		if err != nil || string(again) != string(wrapped) {
			t.Fatalf("wrapped twice: %v\n%q\n%q", err, wrapped, again)
		}
		back, _, err := Unwrap(wrapped, format, Options{Servers: names})
		if err != nil || string(back) != string(text) {
			t.Fatalf("%v\n%q\n%q", err, text, back)
		}
	})
}
