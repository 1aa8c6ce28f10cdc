package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// children serves over HTTP a server that speaks stdio, and returns its URL.
// When the test ends, none of its processes may be left.
func children(t *testing.T, command ...string) string {
	t.Helper()
	c := policy.Default()
	c.Enums = policy.EnumsNever // the suite asks for the legacy shape by its name
	c.Answers.UnsealedAccept = policy.AcceptPass
	compiled, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	running := 0
	transport := &proxy.ChildTransport{
		ChildLimits: proxy.ChildLimits{Children: -1},
		Start: func() (*proxy.Child, error) {
			child := &proxy.Child{Command: command, Stderr: new(bytes.Buffer)}
			return child, child.Start(context.Background())
		},
		OnChildren: func(n int) { running = n },
	}
	front := httptest.NewServer(&proxy.Proxy{
		Upstream: &url.URL{Scheme: "stdio", Host: "child", Path: "/mcp"}, Transport: transport,
		CheckHost: true, Policy: func() *policy.Policy { return compiled },
	})
	t.Cleanup(func() {
		front.CloseClientConnections()
		transport.Close()
		front.Close()
		if running != 0 {
			t.Errorf("%d children are left", running)
		}
	})
	return front.URL + "/mcp"
}

// refit builds the command.
func refit(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "mcp-refit")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/mcp-refit").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// unsealed is a policy file like that of children: the suite answers questions
// that were never asked, too.
func unsealed(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nenums: never\nanswers: {unsealed-accept: pass}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Through a child's stdio, the suite finds what it finds at the server itself,
// but for what is listed here.
func TestConformanceBridge(t *testing.T) {
	dir := interop(t, "node_modules/@modelcontextprotocol/conformance", "bin/everything-server")
	everything := filepath.Join(dir, "bin", "everything-server")
	differ := map[string]string{
		// The suite only takes note that several answers come as JSON and not
		// as streams; a server may choose, and one JSON answer is what a call
		// without anything else in it gets here.
		"server-sse-multiple-streams": "JSON where the server streams",
	}
	for _, c := range []struct {
		name, stateless string
		flags           []string
		scenarios       int // that there are at least
	}{
		{"legacy", "false", nil, 31},
		{"modern", "true", []string{"--requirements", "2026-07-28"}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := startPeer(t, dir, func(address string) []string {
				return []string{everything, "-http", address, "-stateless=" + c.stateless}
			}) + "/mcp"
			run := func(url string, more ...string) counts {
				return conformance(t, dir, append([]string{"server", "--url", url}, more...)...)
			}
			direct := run(server, c.flags...)
			for name, command := range map[string][]string{
				"one bridge":  {everything},
				"two bridges": {refit(t), "--config", unsealed(t), server},
			} {
				t.Run(name, func(t *testing.T) {
					front := children(t, command...)
					bridged := run(front, c.flags...)
					if len(direct) < c.scenarios || len(bridged) != len(direct) {
						t.Errorf("%d scenarios directly, %d through the bridge", len(direct), len(bridged))
					}
					for _, name := range slices.Sorted(maps.Keys(direct)) {
						a, b := direct[name], bridged[name]
						for range 2 { // some depend on the clock
							if a != b {
								a, b = run(server, "--scenario", name)[name], run(front, "--scenario", name)[name]
							}
						}
						if why := differ[name]; a != b && why == "" {
							t.Errorf("%s: %s directly, %s through the bridge", name, a, b)
						}
					}
				})
			}
		})
	}
}

// The everything server, with all that a call can have on its way, for the
// clients of the TypeScript SDK.
func TestConformanceBridgeClients(t *testing.T) {
	dir := interop(t, "node_modules/@modelcontextprotocol/server-everything", "client-v1.mjs")
	server := filepath.Join(dir, "node_modules", ".bin", "mcp-server-everything")
	plan := `{"ops":[
		{"method":"tools/list"},
		{"method":"logging/setLevel","params":{"level":"debug"}},
		{"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}},
		{"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":1,"steps":4}}},
		{"method":"tools/call","params":{"name":"trigger-sampling-request","arguments":{"prompt":"p","maxTokens":5}}},
		{"method":"tools/call","params":{"name":"trigger-elicitation-request","arguments":{}}}
	],"mode":"legacy"}`
	for _, client := range []string{"client-v1.mjs", "client-v2.mjs"} {
		t.Run(client, func(t *testing.T) {
			type record struct {
				Requests []struct{ Method string }
				Results  []struct {
					Method   string
					Result   json.RawMessage
					Error    json.RawMessage
					Progress []json.RawMessage
				}
				Errors []string
			}
			drive := func(target ...string) record {
				cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, client)}, target...)...)
				cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(plan), os.Environ()
				out, err := cmd.Output()
				var r record
				if err != nil || json.Unmarshal(out, &r) != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return r
			}
			direct, bridged := drive(server, "stdio"), drive(children(t, server, "stdio"))
			if len(bridged.Requests) < 2 || len(bridged.Requests) != len(direct.Requests) {
				t.Errorf("asked %v directly, %v through the bridge", direct.Requests, bridged.Requests)
			}
			for _, e := range bridged.Errors {
				if !strings.HasPrefix(e, "AbortError") { // it closes its own stream
					t.Error(e)
				}
			}
			if len(bridged.Results) != 6 || len(direct.Results) != 6 {
				t.Fatalf("%d results, directly %d", len(bridged.Results), len(direct.Results))
			}
			for i, r := range bridged.Results {
				// Of the four times, the SDK loses the last where the answer comes
				// in the same chunk, directly and through us.
				if r.Error != nil || i == 3 && len(r.Progress) < 3 {
					t.Errorf("%s %d: %s, %d times progress", r.Method, i, r.Error, len(r.Progress))
				}
				if i == 2 && !bytes.Equal(r.Result, direct.Results[i].Result) {
					t.Errorf("echo: %s, directly %s", r.Result, direct.Results[i].Result)
				}
			}
		})
	}
}
