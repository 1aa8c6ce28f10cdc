package clientconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonServers finds the servers in JSON with comments and trailing commas.
func jsonServers(text []byte, tables [][]string) ([]server, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return nil, nil // some clients make an empty file
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("it is not valid JSON, not even with comments: %w", err)
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, errors.New("it is no JSON object")
	}
	var servers []server
	for _, path := range tables {
		servers = append(servers, jsonTable(&root, path, nil)...)
	}
	return servers, nil
}

// jsonTable finds the servers in the tables at a path.
func jsonTable(in *hujson.Value, path, at []string) []server {
	object, ok := in.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	var servers []server
	for i := range object.Members {
		name := object.Members[i].Name.Value.(hujson.Literal).String()
		value := &object.Members[i].Value
		switch {
		case len(path) == 0:
			servers = append(servers, jsonServer(strings.Join(at, "."), name, value))
		case path[0] == "*" || path[0] == name:
			servers = append(servers, jsonTable(value, path[1:], append(at[:len(at):len(at)], name))...)
		}
	}
	return servers
}

func jsonServer(table, name string, value *hujson.Value) server {
	s := server{table: table, name: name, at: span{value.StartOffset, value.EndOffset}}
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		s.odd = "it is no object"
		return s
	}
	for i := range object.Members {
		key, value := &object.Members[i].Name, &object.Members[i].Value
		m := member{
			key:   key.Value.(hujson.Literal).String(),
			at:    span{key.StartOffset, value.EndOffset},
			value: span{value.StartOffset, value.EndOffset},
		}
		switch v := value.Value.(type) {
		case hujson.Literal:
			if v.Kind() == '"' {
				m.kind, m.text = stringValue, v.String()
			}
		case *hujson.Array:
			m.kind = stringList
			for k := range v.Elements {
				e := &v.Elements[k]
				m.parts = append(m.parts, span{e.StartOffset, e.EndOffset})
				l, ok := e.Value.(hujson.Literal)
				if !ok || l.Kind() != '"' {
					m.kind = other
					continue
				}
				m.list = append(m.list, l.String())
			}
		case *hujson.Object:
			m.kind = stringPairs
			for k := range v.Members {
				l, ok := v.Members[k].Value.Value.(hujson.Literal)
				if !ok || l.Kind() != '"' {
					m.kind = other
					continue
				}
				m.pairs = append(m.pairs, pair{v.Members[k].Name.Value.(hujson.Literal).String(), l.String()})
			}
		}
		s.members = append(s.members, m)
	}
	return s
}
