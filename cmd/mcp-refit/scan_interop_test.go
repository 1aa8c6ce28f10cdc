package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/scan"
)

// TestScanInterop scans public servers from npm. None of them is told to reach
// the network.
func TestScanInterop(t *testing.T) {
	modules, err := filepath.Abs(filepath.Join("..", "..", "testdata", "interop", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	node, err := exec.LookPath("node")
	for _, test := range []struct {
		module, call string
		arguments    []string
		tools        int // at least
		rule         string
	}{
		{module: "@modelcontextprotocol/server-everything", call: "trigger-elicitation-request", tools: 10, rule: "enum-names"},
		{module: "@modelcontextprotocol/server-filesystem", arguments: []string{t.TempDir()}, tools: 10},
		{module: "@modelcontextprotocol/server-memory", tools: 5},
		{module: "@upstash/context7-mcp", tools: 2, rule: "icon"},
	} {
		t.Run(filepath.Base(test.module), func(t *testing.T) {
			script := filepath.Join(modules, test.module, "dist", "index.js")
			if _, missing := os.Stat(script); missing != nil || err != nil {
				if os.Getenv("MCP_REFIT_INTEROP") != "" {
					t.Fatal("not installed:", missing, err)
				}
				t.Skip("the servers are not installed: run testdata/interop/install")
			}
			args := []string{"scan", "--json"}
			if test.call != "" {
				args = append(args, "--call", test.call)
			}
			args = append(append(args, "--", node, script), test.arguments...)
			var out, log bytes.Buffer
			if code := run(t.Context(), args, stdio{nil, &out, &log}); code != exitOK {
				t.Fatalf("exit code %d: %s", code, &log)
			}
			var r scan.Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Counts.Tools < test.tools || r.Has(scan.Fault) {
				t.Errorf("%d tools; %+v", r.Counts.Tools, r.Findings)
			}
			found := test.rule == ""
			for _, f := range r.Findings {
				found = found || f.Rule == test.rule
			}
			if !found {
				t.Errorf("no finding %s: %+v", test.rule, r.Findings)
			}
		})
	}
}
