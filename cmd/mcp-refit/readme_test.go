package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// What the README shows is what there is: its policy parses, its JSON is JSON,
// and its flags and subcommands exist.
func TestReadme(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	blocks := regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(text, -1)
	for _, b := range blocks {
		switch b[1] {
		case "yaml":
			c, err := policy.Parse("README.md", []byte(b[2]))
			if err == nil {
				_, err = c.Compile()
			}
			if err != nil {
				t.Errorf("policy: %v", err)
			}
		case "json":
			if !json.Valid([]byte(b[2])) {
				t.Errorf("no JSON: %s", b[2])
			}
		}
	}
	root := rootCommand(stdio{})
	for _, m := range regexp.MustCompile("--([a-z][a-z-]+)").FindAllStringSubmatch(text, -1) {
		known := m[1] == "help" || root.Flags().Lookup(m[1]) != nil
		for _, c := range root.Commands() {
			known = known || c.Flags().Lookup(m[1]) != nil
		}
		if !known {
			t.Errorf("there is no flag --%s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)(?:^|`)mcp-refit ([a-z]+)( [a-z]+)?").FindAllStringSubmatch(text, -1) {
		c, _, err := root.Find(strings.Fields(m[1] + m[2]))
		if named := err == nil && c != root; !named && m[1] != "is" {
			t.Errorf("there is no subcommand %q", m[0])
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([a-zA-Z/.]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join("..", "..", m[1])); err != nil {
			t.Error(err)
		}
	}
}
