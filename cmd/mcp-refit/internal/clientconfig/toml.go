package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A tomlReader finds the servers in TOML: the tables [mcp_servers.NAME].
type tomlReader struct {
	text    []byte
	table   string
	servers []*server
	at      *server // whose members come next, if any
	below   []string
}

// tomlServers finds the servers. The tables are at paths of one key.
func tomlServers(text []byte, tables [][]string) ([]server, error) {
	var whole map[string]any
	if err := toml.Unmarshal(text, &whole); err != nil {
		var where *toml.DecodeError
		if errors.As(err, &where) {
			line, column := where.Position()
			return nil, fmt.Errorf("it is not valid TOML: line %d, column %d: %w", line, column, err)
		}
		return nil, fmt.Errorf("it is not valid TOML: %w", err)
	}
	r := tomlReader{text: text, table: tables[0][0]}
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		r.expression(p.Expression())
	}
	if err := p.Error(); err != nil {
		return nil, fmt.Errorf("it is not valid TOML: %w", err)
	}
	servers := make([]server, len(r.servers))
	for i, s := range r.servers {
		if n := s.placed(); n > 0 {
			s.at = span{s.members[0].at.start, s.members[n-1].at.end}
		}
		servers[i] = *s
	}
	return servers, nil
}

func (r *tomlReader) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table, unstable.ArrayTable:
		key := keys(n)
		r.at, r.below = nil, key
		if len(key) < 2 || key[0] != r.table {
			return
		}
		s := r.server(key[1])
		switch {
		case n.Kind == unstable.ArrayTable:
			s.odd = "it is an array of tables"
		case len(key) == 2:
			r.at = s
		case len(key) == 3:
			// A table of its own, such as [mcp_servers.NAME.env], has no place
			// that could be edited as a member, and needs none.
			s.members = append(s.members, member{key: key[2], kind: other})
		}
	case unstable.KeyValue:
		key := keys(n)
		if r.at != nil {
			r.at.members = slices.Insert(r.at.members, r.at.placed(), r.member(n, key))
			return
		}
		if full := append(r.below[:len(r.below):len(r.below)], key...); full[0] == r.table {
			r.inline(full, n)
		}
	}
}

// placed is how many members of a server have a place: they stand in front of
// those that are tables of their own.
func (s *server) placed() int {
	n := slices.IndexFunc(s.members, func(m member) bool { return m.at == span{} })
	if n < 0 {
		return len(s.members)
	}
	return n
}

// inline notes the servers that are written in a way that we do not edit.
func (r *tomlReader) inline(key []string, n *unstable.Node) {
	const odd = "it is written as an inline table or with dotted keys; only a table [mcp_servers.NAME] of its own is edited"
	if len(r.below) >= 2 {
		return // in a table below a server's own, such as its env
	}
	if len(key) > 1 {
		r.server(key[1]).odd = odd
		return
	}
	if n.Value().Kind == unstable.InlineTable {
		for it := n.Value().Children(); it.Next(); {
			r.server(keys(it.Node())[0]).odd = odd
		}
	}
}

// server returns the server of that name, a new one if need be.
func (r *tomlReader) server(name string) *server {
	for _, s := range r.servers {
		if s.name == name {
			return s
		}
	}
	s := &server{table: r.table, name: name}
	r.servers = append(r.servers, s)
	return s
}

func keys(n *unstable.Node) []string {
	var out []string
	for it := n.Key(); it.Next(); {
		out = append(out, string(it.Node().Data))
	}
	return out
}

func (r *tomlReader) member(n *unstable.Node, key []string) member {
	at := rangeOf(n)
	var last *unstable.Node
	for it := n.Key(); it.Next(); {
		last = it.Node()
	}
	start := rangeOf(last).end
	start += bytes.IndexByte(r.text[start:], '=') + 1
	for r.text[start] == ' ' || r.text[start] == '\t' {
		start++
	}
	m := member{key: strings.Join(key, "."), at: at, value: span{start, at.end}}
	value := n.Value()
	switch value.Kind {
	case unstable.String:
		m.kind, m.text = stringValue, string(value.Data)
	case unstable.Array:
		m.kind = stringList
		for it := value.Children(); it.Next(); {
			e := it.Node()
			if e.Kind != unstable.String {
				m.kind = other
				continue
			}
			m.list, m.parts = append(m.list, string(e.Data)), append(m.parts, rangeOf(e))
		}
	case unstable.InlineTable:
		m.kind = stringPairs
		for it := value.Children(); it.Next(); {
			e := it.Node()
			k := keys(e)
			if len(k) != 1 || e.Value().Kind != unstable.String {
				m.kind = other
				continue
			}
			m.pairs = append(m.pairs, pair{k[0], string(e.Value().Data)})
		}
	}
	return m
}

func rangeOf(n *unstable.Node) span {
	return span{int(n.Raw.Offset), int(n.Raw.Offset) + int(n.Raw.Length)}
}
