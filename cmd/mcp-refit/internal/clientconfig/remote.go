package clientconfig

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// EntryFlag is the flag in whose value a wrapped server at a URL keeps what it
// was. The command ignores it.
const EntryFlag = "wrapped-entry"

const entryPrefix = "--" + EntryFlag + "="

// addresses are the members that hold a server's URL, in some client.
var addresses = []string{"url", "serverUrl", "httpUrl"}

// The members that the bridge form can express, and those that are the
// client's own business and stay as they are.
var (
	expressed = map[Syntax][]string{JSON: {"type", "headers"}, TOML: {"http_headers", "bearer_token_env_var"}}
	untouched = []string{
		"disabled", "enabled", "description", "timeout", "trust", "autoApprove", "alwaysAllow", "alwaysLoad",
		"disabledTools", "includeTools", "excludeTools", "enabled_tools", "disabled_tools", "required",
		"startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "gallery", "version",
	}
	remoteTypes = []string{"http", "sse", "streamable-http", "streamableHttp", "streamable_http"}
)

// address is the member with the server's URL, nil if there is none.
func (s *server) address() (*member, string) {
	var at *member
	for _, key := range addresses {
		m := s.get(key)
		if m != nil && at != nil {
			return nil, fmt.Sprintf("it has both %q and %q", at.key, key)
		}
		if m != nil {
			at = m
		}
	}
	return at, ""
}

// wrapURL makes a server at a URL one that the client starts: the bridge.
func (s *server) wrapURL(text []byte, in Syntax, o Options) ([]edit, string) {
	at, _ := s.address()
	target, list, reason := s.bridge(at, in)
	if reason != "" {
		return nil, reason
	}
	entry := base64.RawURLEncoding.EncodeToString([]byte(s.at.of(text)))
	list = slices.Concat(o.Flags, list, []string{entryPrefix + entry, target})
	return s.toBridge(text, in, o.Self, list), ""
}

// bridge returns the URL, and the flags that say what the entry says besides.
func (s *server) bridge(at *member, in Syntax) (target string, flags []string, reason string) {
	u, err := url.Parse(at.text)
	if at.kind != stringValue || err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", nil, fmt.Sprintf("its %s is no http or https URL", at.key)
	}
	for i := range s.members {
		m := &s.members[i]
		switch {
		case m.at == span{}:
			return "", nil, fmt.Sprintf("%q is a table of its own, which is not edited for a server at a URL", m.key)
		case m == at || slices.Contains(untouched, m.key):
		case !slices.Contains(expressed[in], m.key):
			return "", nil, fmt.Sprintf("%q has no counterpart in mcp-refit's command line", m.key)
		case m.key == "type":
			if !slices.Contains(remoteTypes, m.text) {
				return "", nil, fmt.Sprintf("its type is none of %s", strings.Join(remoteTypes, ", "))
			}
		case m.key == "bearer_token_env_var":
			if m.kind != stringValue || m.text == "" {
				return "", nil, `"bearer_token_env_var" is no name`
			}
			flags = append(flags, "--token-env="+m.text)
		case m.kind != stringPairs:
			return "", nil, fmt.Sprintf("%q is no list of names and texts", m.key)
		default:
			for _, p := range m.pairs {
				if p.name == "" || strings.ContainsAny(p.name, ": \t\r\n") || strings.ContainsAny(p.value, "\r\n\x00") {
					return "", nil, fmt.Sprintf("%q has a header that can't be sent: %q", m.key, p.name)
				}
				flags = append(flags, "-H", p.name+": "+p.value)
			}
		}
	}
	return at.text, flags, ""
}

// toBridge writes command and args in the place of the URL, and takes out what
// went into args.
func (s *server) toBridge(text []byte, in Syntax, self string, list []string) []edit {
	var edits []edit
	at, _ := s.address()
	for i := range s.members {
		m := &s.members[i]
		switch {
		case m.at == at.at && in == JSON:
			edits = append(edits, edit{m.at, `"command": ` + quote(self) + `, "args": [` + strings.Join(quoteAll(list), ", ") + "]"})
		case m.at == at.at:
			edits = append(edits, edit{m.at, "command = " + quote(self) + lineBreak(text, m.at.start) + "args = [" + strings.Join(quoteAll(list), ", ") + "]"})
		case m.key == "type":
			edits = append(edits, edit{m.value, quote("stdio")})
		case m.key == "bearer_token_env_var":
			// Codex hands a server that it starts only the variables that are listed.
			edits = append(edits, edit{m.at, "env_vars = [" + quote(m.text) + "]"})
		case slices.Contains(expressed[in], m.key):
			edits = append(edits, edit{s.removal(m), ""})
		}
	}
	return edits
}

// removal is the span that takes a member out, with one of the separators
// around it.
func (s *server) removal(m *member) span {
	if next := s.next(m); next != nil {
		return span{m.at.start, next.at.start}
	}
	return span{s.previous(m).at.end, m.at.end}
}

// wrappedEntry is the place in args of what the entry was, or -1.
func (s *server) wrappedEntry() int {
	list := s.get("args").list
	if n := len(list) - 2; n >= 0 && strings.HasPrefix(list[n], entryPrefix) {
		return n
	}
	return -1
}

// unwrapURL puts back what the entry was, unless it was changed since.
func (s *server) unwrapURL(text []byte, in Syntax, entry int) ([]edit, string) {
	const damaged = "the argument --" + EntryFlag + " is damaged; restore the entry from the backup"
	args := s.get("args")
	was, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(args.list[entry], entryPrefix))
	if err != nil {
		return nil, damaged
	}
	original, ok := parseEntry(was, in)
	if !ok {
		return nil, damaged
	}
	at, reason := original.address()
	if at == nil || reason != "" {
		return nil, damaged
	}
	target, list, reason := original.bridge(at, in)
	if reason != "" {
		return nil, damaged
	}
	// What stands in front of the flags that come from the entry was given to
	// wrap, and is given again.
	mine := entry - len(list)
	if mine < 0 || !slices.Equal(args.list[mine:entry], list) || args.list[entry+1] != target {
		return nil, "its URL or headers were changed since it was wrapped; change it back by hand"
	}
	again := apply(was, original.toBridge(was, in, s.get("command").text, args.list))
	if now := s.at.of(text); now != string(again) && !sameValue([]byte(now), again, in) {
		return nil, "it was changed since it was wrapped; change it back by hand"
	}
	return []edit{{s.at, string(was)}}, ""
}

// parseEntry reads the text of one entry.
func parseEntry(text []byte, in Syntax) (*server, bool) {
	if in == JSON {
		v, err := hujson.Parse(text)
		if err != nil {
			return nil, false
		}
		s := jsonServer("", "", &v)
		return &s, s.odd == ""
	}
	const header = "[s.s]\n"
	servers, err := tomlServers(append([]byte(header), text...), [][]string{{"s"}})
	if err != nil || len(servers) != 1 {
		return nil, false
	}
	servers[0].move(-len(header))
	return &servers[0], servers[0].odd == ""
}

// sameValue reports whether two entries differ in formatting alone.
func sameValue(a, b []byte, in Syntax) bool {
	x, okX := valueOf(a, in)
	y, okY := valueOf(b, in)
	return okX && okY && reflect.DeepEqual(x, y)
}

func valueOf(text []byte, in Syntax) (map[string]any, bool) {
	var v map[string]any
	if in == TOML {
		err := toml.Unmarshal(text, &v)
		return v, err == nil
	}
	plain, err := hujson.Standardize(slices.Clone(text))
	if err == nil {
		err = json.Unmarshal(plain, &v)
	}
	return v, err == nil
}
