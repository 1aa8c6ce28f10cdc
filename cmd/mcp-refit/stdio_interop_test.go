//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	everything = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	filesystem = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
	memory     = "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
)

// wrapped is the command that has us between its client and the server.
func wrapped(command []string) []string { return append([]string{"mcp-refit", "--"}, command...) }

// noneLeft looks into the process table until no process has the mark, which
// is unique to one test, in its command line.
func noneLeft(t *testing.T, mark string) {
	t.Helper()
	deadline := time.Now().Add(scriptDeadline)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		table, err := exec.Command("ps", "-A", "-o", "pid=,stat=,args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for line := range strings.Lines(string(table)) {
			if strings.Contains(line, mark) {
				left = append(left, line)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes are left:\n%s", strings.Join(left, ""))
		}
	}
}

// The reference server still asks with enum and enumNames. Through the wrapper
// that is a titled oneOf, and all else is as without it.
func TestInteropEverythingTypeScript(t *testing.T) {
	dir := interop(t, everything, "client-v1.mjs")
	type record struct {
		Server       map[string]any
		Requests     []map[string]any
		Results      []map[string]any
		ConnectError string
	}
	run := func(command []string) record {
		cmd := exec.Command("node", append([]string{"client-v1.mjs"}, command...)...)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(`{"capabilities":{"elicitation":{"form":{}}},"ops":[
			{"method":"tools/list"},
			{"method":"tools/call","params":{"name":"trigger-elicitation-request"}},
			{"method":"tools/call","params":{"name":"echo","arguments":{"message":"<— 日本 🙂>"}}}]}`)
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, log.Bytes())
		}
		var r record
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return r
	}
	mark := t.TempDir()
	command := []string{"node", everything, "stdio", mark}
	direct, through := run(command), run(wrapped(command))
	noneLeft(t, mark)

	if len(direct.Requests) != 1 || len(through.Requests) != 1 {
		t.Fatalf("%d elicitations without us, %d through us; want one", len(direct.Requests), len(through.Requests))
	}
	legacyBecomesTitled(t, direct.Requests[0]["params"], through.Requests[0]["params"])
	if !reflect.DeepEqual(direct, through) {
		t.Errorf("all else is to be the same\nwithout us: %v\nthrough us: %v", direct, through)
	}
}

// legacyBecomesTitled checks how the server's legacyTitledEnum arrives on the
// two ways, and takes it out of both.
func legacyBecomesTitled(t *testing.T, direct, through any) {
	t.Helper()
	const name = "legacyTitledEnum"
	legacy := func(params any) (properties map[string]any, legacy map[string]any) {
		schema, _ := params.(map[string]any)["requestedSchema"].(map[string]any)
		properties, _ = schema["properties"].(map[string]any)
		legacy, _ = properties[name].(map[string]any)
		return properties, legacy
	}
	fromDirect, was := legacy(direct)
	fromThrough, is := legacy(through)
	values, _ := was["enum"].([]any)
	titles, _ := was["enumNames"].([]any)
	if len(values) == 0 || len(values) != len(titles) {
		t.Fatalf("the server asks with %v", was)
	}
	var options []any
	for i := range values {
		options = append(options, map[string]any{"const": values[i], "title": titles[i]})
	}
	want := map[string]any{"oneOf": options}
	for key, value := range was {
		if key != "enum" && key != "enumNames" {
			want[key] = value
		}
	}
	if !reflect.DeepEqual(is, want) {
		t.Errorf("%s arrives as %v, want %v", name, is, want)
	}
	delete(fromDirect, name)
	delete(fromThrough, name)
}

func TestInteropEverythingGo(t *testing.T) {
	dir := interop(t, everything)
	type record struct {
		asked  any // the params of the elicitation
		result string
		tools  string
	}
	run := func(command []string) record {
		var r record
		client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				text, err := json.Marshal(request.Params)
				if err == nil {
					err = json.Unmarshal(text, &r.asked)
				}
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "x", "legacyTitledEnum": "pet-2"}}, err
			},
		})
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "trigger-elicitation-request"})
		if err != nil {
			t.Fatal(err)
		}
		r.tools, r.result = jsonText(t, tools), jsonText(t, result)
		return r
	}
	mark := t.TempDir()
	command := []string{"node", everything, "stdio", mark}
	direct, through := run(command), run(wrapped(command))
	noneLeft(t, mark)

	if direct.asked == nil || through.asked == nil || !strings.Contains(through.result, "pet-2") {
		t.Fatalf("the call did not complete: %+v", through)
	}
	legacyBecomesTitled(t, direct.asked, through.asked)
	if !reflect.DeepEqual(direct, through) {
		t.Errorf("all else is to be the same\nwithout us: %+v\nthrough us: %+v", direct, through)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// transcript talks to a server line by line, waiting for the answer to each
// request, and returns all that the server said.
func transcript(t *testing.T, dir string, env, command []string, requests []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var said strings.Builder
	say := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"interop","version":"1"}}}`)
	for i := range len(requests) + 1 {
		line, err := lines.ReadString('\n')
		if said.WriteString(line); err != nil {
			t.Fatalf("%v after\n%s", err, said.String())
		}
		if i == 0 {
			say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		if i < len(requests) {
			say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i+1, requests[i]))
		}
	}
	in.Close()
	_ = cmd.Process.Signal(os.Interrupt) // the server by itself does not go when its stdin ends
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	said.Write(rest)
	_ = cmd.Wait() // it was interrupted
	return said.String()
}

func call(tool, arguments string) string {
	return `"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}`
}

func TestInteropFilesystem(t *testing.T) {
	dir := interop(t, filesystem)
	files := t.TempDir()
	requests := []string{
		`"method":"tools/list"`,
		call("list_allowed_directories", `{}`),
		call("write_file", `{"path":"`+files+`/a.txt","content":"one\n<two> — 日本 🙂\r\n"}`),
		call("read_text_file", `{"path":"`+files+`/a.txt"}`),
		call("edit_file", `{"path":"`+files+`/a.txt","edits":[{"oldText":"one","newText":"three"}]}`),
		call("create_directory", `{"path":"`+files+`/b"}`),
		call("directory_tree", `{"path":"`+files+`"}`),
		call("read_media_file", `{"path":"`+files+`/a.txt"}`),
		call("read_text_file", `{"path":"/etc/passwd"}`),
		call("no_such_tool", `{}`),
		`"method":"x-grease/ask","params":{"x-grease":[]}`,
	}
	sameTranscripts(t, dir, files, func() { clearDir(t, files) }, []string{"node", filesystem, files}, nil, requests)
}

func TestInteropMemory(t *testing.T) {
	dir := interop(t, memory)
	files := t.TempDir()
	requests := []string{
		`"method":"tools/list"`,
		call("create_entities", `{"entities":[{"name":"Ünï","entityType":"t","observations":["<1>","2"]},{"name":"b","entityType":"t","observations":[]}]}`),
		call("create_relations", `{"relations":[{"from":"Ünï","to":"b","relationType":"knows"}]}`),
		call("read_graph", `{}`),
		call("search_nodes", `{"query":"ünï"}`),
		call("open_nodes", `{"names":["b"]}`),
		call("create_entities", `{"entities":7}`),
		`"method":"x-grease/ask"`,
	}
	env := []string{"MEMORY_FILE_PATH=" + filepath.Join(files, "memory.jsonl")}
	sameTranscripts(t, dir, files, func() { clearDir(t, files) }, []string{"node", memory, files}, env, requests)
}

// sameTranscripts compares what a server says with and without us, byte for byte.
func sameTranscripts(t *testing.T, dir, mark string, reset func(), command, env, requests []string) {
	t.Helper()
	direct := transcript(t, dir, env, command, requests)
	reset()
	through := transcript(t, dir, env, wrapped(command), requests)
	noneLeft(t, mark)
	if direct != through {
		t.Errorf("without us:\n%s\nthrough us:\n%s", direct, through)
	}
}

func clearDir(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// A public server's own icon, at a URL that nothing here reaches: gone by
// default and where it can't be fetched, there where its host is trusted.
func TestInteropContext7(t *testing.T) {
	dir := interop(t, "node_modules/@upstash/context7-mcp/dist/index.js")
	for _, test := range []struct {
		name  string
		flags []string
		icons string
	}{
		{"by default", nil, ""},
		{"trusted", []string{"--icon-trust", "context7.com"}, `[{"src":"https://context7.com/context7-icon-green.png","mimeType":"image/png"}]`},
		{"another host trusted", []string{"--icon-trust", "*.context7.com"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, append(test.flags, "--", "node", filepath.Join(dir, "node_modules/@upstash/context7-mcp/dist/index.js"))...)
			if _, err := io.WriteString(s.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n"); err != nil {
				t.Fatal(err)
			}
			line, err := s.out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				Result struct {
					ServerInfo struct {
						Name  string
						Icons json.RawMessage
					}
				}
			}
			if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Result.ServerInfo.Name != "Context7" || string(answer.Result.ServerInfo.Icons) != test.icons {
				t.Errorf("%s%v", line, err)
			}
			s.in.Close()
			_ = s.cmd.Wait() // its exit code is its own
		})
	}
}
