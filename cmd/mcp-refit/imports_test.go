package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Imports go one way: cmd → proxy → {rewrite, policy, policy/icon}, and
// policy/icon → policy. rewrite imports nothing of ours. The SDK of the
// protocol re-marshals, so it stays off the data path.
func TestImports(t *testing.T) {
	const module = "github.com/mcp-refit/mcp-refit/"
	allowed := map[string][]string{
		"rewrite":                  nil,
		"policy":                   nil,
		"policy/icon":              {"policy", "policy/icon/internal/svg"},
		"policy/icon/internal/svg": nil,
		"proxy":                    {"rewrite", "policy", "policy/icon"},
	}
	for dir, may := range allowed {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				path, _ := strconv.Unquote(i.Path.Value)
				ours, isOurs := strings.CutPrefix(path, module)
				if isOurs && !slices.Contains(may, ours) {
					t.Errorf("%s imports %s", name, ours)
				}
				if strings.HasPrefix(path, "github.com/modelcontextprotocol/") {
					t.Errorf("%s imports the SDK", name)
				}
			}
		}
	}
}

// The top level holds what it should, and nothing else.
func TestTopLevel(t *testing.T) {
	want := map[string]bool{
		"go.mod": true, "go.sum": true, "cmd": true, "proxy": true, "rewrite": true, "policy": true, "testdata": true,
		"deploy": true, "README.md": true, "LICENSE": true, ".ci": true, ".gitignore": true, "staticcheck.conf": true,
		".git": true, "dist": true,
	}
	entries, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !want[e.Name()] {
			t.Errorf("%s stands at the top level", e.Name())
		}
	}
}
