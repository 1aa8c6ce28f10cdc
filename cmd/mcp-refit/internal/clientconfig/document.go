package clientconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A span is a part of the text, in bytes.
type span struct{ start, end int }

func (s span) of(text []byte) string { return string(text[s.start:s.end]) }

// A server is one entry of a table of servers.
type server struct {
	table   string // where it stands, such as mcpServers
	name    string
	at      span // of all its members; in JSON with the braces
	members []member
	odd     string // why we do not touch it; empty if we may
}

// A member is one key and value of a server.
type member struct {
	key   string
	at    span // from the key to the end of the value
	value span
	kind  kind
	text  string   // of a string
	list  []string // of an array of strings
	parts []span   // of its elements
	pairs []pair   // of an object of strings, in order
}

type pair struct{ name, value string }

// A kind is what a value is, as far as we care.
type kind uint8

const (
	other kind = iota
	stringValue
	stringList
	stringPairs
)

// get returns the member of that key, nil if there is none.
func (s *server) get(key string) *member {
	for i := range s.members {
		if s.members[i].key == key {
			return &s.members[i]
		}
	}
	return nil
}

// next returns the member that follows m, nil if it is the last.
func (s *server) next(m *member) *member {
	i := slices.IndexFunc(s.members, func(o member) bool { return o.at == m.at })
	if i+1 < len(s.members) {
		return &s.members[i+1]
	}
	return nil
}

func (s *server) previous(m *member) *member {
	i := slices.IndexFunc(s.members, func(o member) bool { return o.at == m.at })
	if i > 0 {
		return &s.members[i-1]
	}
	return nil
}

// checkMembers refuses an entry in which a key stands twice.
func (s *server) checkMembers() {
	seen := map[string]bool{}
	for _, m := range s.members {
		if seen[m.key] && s.odd == "" {
			s.odd = fmt.Sprintf("%q stands in it twice", m.key)
		}
		seen[m.key] = true
	}
}

// MaxSize is the largest file that is edited, in bytes.
const MaxSize = 64 << 20

var bom = []byte("\ufeff")

// parse finds the servers in a file.
func parse(text []byte, f Format) ([]server, error) {
	if len(text) > MaxSize {
		return nil, errors.New("it is larger than 64 MiB")
	}
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, errors.New("it is in UTF-16; save it as UTF-8")
	}
	// What follows a byte order mark is read as if it were not there, and the
	// places are moved.
	skip := 0
	if bytes.HasPrefix(text, bom) {
		skip = len(bom)
	}
	find := jsonServers
	if f.Syntax == TOML {
		find = tomlServers
	}
	servers, err := find(text[skip:], f.Tables)
	if err != nil {
		return nil, err
	}
	for i := range servers {
		servers[i].move(skip)
		servers[i].checkMembers()
	}
	return servers, nil
}

func (s *server) move(by int) {
	move := func(p *span) { p.start += by; p.end += by }
	move(&s.at)
	for i := range s.members {
		m := &s.members[i]
		move(&m.at)
		move(&m.value)
		for k := range m.parts {
			move(&m.parts[k])
		}
	}
}

// An edit puts text in the place of a span.
type edit struct {
	at   span
	with string
}

// apply makes the edits, which do not overlap.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at.start - b.at.start })
	var out []byte
	end := 0
	for _, e := range edits {
		out = append(out, text[end:e.at.start]...)
		out = append(out, e.with...)
		end = e.at.end
	}
	return append(out, text[end:]...)
}

// quote writes a string so that JSON and TOML both read it.
func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // of a string into memory
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

func quoteAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return out
}
