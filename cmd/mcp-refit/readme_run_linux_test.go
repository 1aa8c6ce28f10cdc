package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-refit/mcp-refit/cmd/mcp-refit/internal/clientconfig"
	"github.com/mcp-refit/mcp-refit/policy"
)

// readmeCommands has, for each line of the README's sh blocks and each command
// in its text, the script that runs it, in which "run" stands for the line. An
// empty script is a line that another test runs. A line that is not here fails
// TestReadmeCommands, and so does a script that the README no longer has.
//
// The folder of a script has the README's policy as policy.yaml, a
// deployment.yaml, a file of Claude Desktop's, and an npx that runs echo-server.
var readmeCommands = map[string]string{
	"go run ./cmd/mcp-refit demo":                                      "run\nstdout 'the client got'\nstdout 'oneOf'\n! stderr .\n",
	"mcp-refit scan -- npx -y @modelcontextprotocol/server-everything": "run\nstdout '^echo 1, revision 2025-11-25$'\n",
	"mcp-refit wrap --dry-run claude-desktop":                          "run\nstdout '^\\+ .*mcp-refit'\ncmp $CLAUDE claude.json\n",
	"mcp-refit wrap claude-desktop": "run\nstdout '^  wrapped    mcpServers everything$'\ngrep '\"command\": \"/.*/mcp-refit\"' $CLAUDE\n" +
		"exec mcp-refit wrap\nstdout '^Claude Desktop \\(claude-desktop\\): '\n",
	"mcp-refit unwrap claude-desktop":              "exec mcp-refit wrap claude-desktop\n! cmp $CLAUDE claude.json\nrun\ncmp $CLAUDE claude.json\n",
	"mcp-refit manifest sidecar < deployment.yaml": "stdin deployment.yaml\nrun\nstdout 'restartPolicy: Always'\nstdout '^# Mine\\.$'\n",
	"mcp-refit --help":                             "run\nstdout '^ +--icons '\nstdout '^ +--max-message '\n",
	"mcp-refit policy check FILE":                  "run\nstdout '^policy\\.yaml: ok$'\n",
	"policy show --config FILE":                    "run\nstdout '^  default: strip  # policy\\.yaml:4:'\n",
	"policy explain --config FILE URL":             "run\nstdout 'keep'\nstdout 'policy\\.yaml:6'\n",
	"mcp-refit --listen :8080 --allow-host mcp.example.com http://127.0.0.1:3000/mcp": "", // TestReadmeListen
	"go test ./...": "", // this is it
	"go test ./cmd/mcp-refit -run '^TestLoad$' -load -v":             "", // TestReadmeNames
	"go install github.com/mcp-refit/mcp-refit/cmd/mcp-refit@latest": "", // TestReadmeNames
	"openssl rand -base64 32":                                        "", // the key files of the tests are made so
}

// exitCodes has a script for each sentence of the README on exit codes.
var exitCodes = map[string]string{
	"In front of a child, the child's own exit code; 128 plus the signal's number if a signal ended it.": `
exits 0 mcp-refit -- true
exits 3 mcp-refit -- sh -c 'exit 3'
exits 143 mcp-refit -- sh -c 'kill -TERM $$'
`,
	"2 for a wrong command line or policy, with one line that says what was meant.": `
exits 2 mcp-refit --icon strip -- true
cmp stderr flag
exits 2 mcp-refit --config bad.yaml -- true
cmp stderr file
-- bad.yaml --
version: 1
icns: {}
-- flag --
mcp-refit: unknown flag: --icon; did you mean "--icons"?
-- file --
mcp-refit: bad.yaml:2:1: icns: there is no such key; did you mean "icons"?
`,
	"1 for the rest.": `
exits 1 mcp-refit --listen 256.0.0.1:1 http://127.0.0.1:3000/mcp
exits 1 mcp-refit scan -- false
exits 1 mcp-refit wrap claude-desktop nosuchserver
`,
}

func readme(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// readmeBlocks are the README's blocks of a language.
func readmeBlocks(text, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// readmeLines are the commands of the README: the lines of its sh blocks, and
// what its text has in backquotes and begins with a program of these.
func readmeLines(text string) []string {
	var lines []string
	for _, block := range readmeBlocks(text, "sh") {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "#")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	text = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text, "")
	for _, m := range regexp.MustCompile("`((?:mcp-refit|go|openssl|policy) [^`]*)`").FindAllStringSubmatch(text, -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// Every command of the README does what the README says.
func TestReadmeCommands(t *testing.T) {
	text := readme(t)
	dir := t.TempDir()
	seen := map[string]bool{}
	for i, line := range readmeLines(text) {
		script, known := readmeCommands[line]
		if !known {
			t.Errorf("nothing here runs this line of the README: %s", line)
		}
		if script == "" || seen[line] {
			seen[line] = true
			continue
		}
		seen[line] = true
		command := strings.NewReplacer("go run ./cmd/mcp-refit", "mcp-refit", " < deployment.yaml", "", "FILE", "policy.yaml",
			"URL", "https://cdn.example.com/a.png").Replace(line)
		if strings.HasPrefix(command, "policy ") {
			command = "mcp-refit " + command
		}
		script = strings.Replace("\n"+script, "\nrun\n", "\nexec "+command+"\n", 1)
		write(t, filepath.Join(dir, fmt.Sprintf("%02d.txtar", i)), script)
	}
	for line := range readmeCommands {
		if !seen[line] {
			t.Errorf("the README no longer has this line: %s", line)
		}
	}
	readmeScripts(t, text, dir)
}

// readmeScripts runs the scripts of a folder.
func readmeScripts(t *testing.T, text, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Cmds:                map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": scriptExits},
		Setup: func(env *testscript.Env) error {
			claude := filepath.Join(env.WorkDir, "home/.config/Claude/claude_desktop_config.json")
			config := "{\n  // mine\n  \"mcpServers\": {\n    \"everything\": {\"command\": \"npx\", \"args\": [\"-y\", \"server\"]},\n  }\n}\n"
			files := map[string]string{
				claude: config, filepath.Join(env.WorkDir, "claude.json"): config,
				filepath.Join(env.WorkDir, "policy.yaml"):     readmeBlocks(text, "yaml")[0],
				filepath.Join(env.WorkDir, "deployment.yaml"): "# Mine.\n" + deploymentText + "---\n" + serviceText,
				filepath.Join(env.WorkDir, "bin/npx"):         "#!/bin/sh\n[ \"$1\" = -y ] && exec echo-server\n",
			}
			for path, content := range files {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
					return err
				}
			}
			env.Setenv("CLAUDE", claude)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("PATH", filepath.Join(env.WorkDir, "bin")+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
	})
}

// What the README says of exit codes, sentence by sentence.
func TestReadmeExitCodes(t *testing.T) {
	text := readme(t)
	_, section, _ := strings.Cut(text, "\n## Exit codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir := t.TempDir()
	rest := strings.TrimSpace(section)
	for sentence, script := range exitCodes {
		if !strings.Contains(rest, sentence) {
			t.Errorf("the README does not say: %s", sentence)
		}
		rest = strings.TrimSpace(strings.Replace(rest, sentence, "", 1))
		write(t, filepath.Join(dir, strings.Fields(sentence)[0]+".txtar"), script)
	}
	if rest != "" {
		t.Errorf("nothing here shows this sentence of the README: %s", rest)
	}
	readmeScripts(t, text, dir)
}

// The names in the commands that a test can't run are those that there are.
func TestReadmeNames(t *testing.T) {
	text := readme(t)
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if install := fmt.Sprintf("go install %s/cmd/mcp-refit@latest\n", module[1]); !strings.Contains(text, install) {
		t.Errorf("the README does not say %q", install)
	}
	if flag.Lookup("load") == nil {
		t.Error("there is no flag -load")
	}
	_ = TestLoad
}

// The Kubernetes line listens, passes what is for its host, and refuses others.
func TestReadmeListen(t *testing.T) {
	const line = "mcp-refit --listen :8080 --allow-host mcp.example.com http://127.0.0.1:3000/mcp"
	if !strings.Contains(readme(t), "\n"+line+"\n") {
		t.Fatalf("the README does not say %q", line)
	}
	const answer = `{"jsonrpc":"2.0","id":1,"result":{ }}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	args := strings.Fields(strings.NewReplacer("8080", port, "http://127.0.0.1:3000", server.URL).Replace(line))[1:]
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, stdio{nil, io.Discard, io.Discard}) }()
	defer func() {
		stop()
		<-ended
	}()
	until(t, "it listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	for host, want := range map[string]int{"mcp.example.com": http.StatusOK, "elsewhere.example.com": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == http.StatusOK && string(body) != answer {
			t.Errorf("%s: %d %s", host, resp.StatusCode, body)
		}
	}
}

// readmeClients are the sections of the README that have clients' files, and
// the clients that they are of.
var readmeClients = map[string][]string{
	"### Claude Desktop, Claude Code, Cursor\n": {"claude-desktop", "claude-code", "cursor"},
	"### VS Code\n": {"vscode"},
}

// A readmeServer is what a client's file of the README starts.
type readmeServer struct {
	name string
	args []string
}

// readmeServers are the servers in the README's client files, each of which
// its clients find, and is a command line of ours.
func readmeServers(t *testing.T) []readmeServer {
	t.Helper()
	text := readme(t)
	var all []readmeServer
	for heading, clients := range readmeClients {
		_, section, _ := strings.Cut(text, heading)
		section, _, _ = strings.Cut(section, "\n### ")
		for _, block := range readmeBlocks(section, "json") {
			var file map[string]map[string]struct {
				Command string
				Args    []string
			}
			if err := json.Unmarshal([]byte(block), &file); err != nil {
				t.Fatal(err)
			}
			for _, servers := range file {
				for name, server := range servers {
					if server.Command != "mcp-refit" {
						t.Errorf("%s is not ours: %s", name, server.Command)
					}
					for _, by := range clients {
						client, _ := clientconfig.ClientByName(by)
						files := client.Files(clientconfig.System{OS: "linux", Home: "/home", Dir: "/project", Getenv: func(string) string { return "" }})
						if len(files) == 0 {
							t.Errorf("%s has no files", by)
						}
						for _, f := range files {
							found, err := clientconfig.List([]byte(block), f.Format)
							if err != nil || len(found) != 1 || found[0].Server != name || found[0].State == clientconfig.Refused {
								t.Errorf("%s finds %v, %v in %s", by, found, err, block)
							}
						}
					}
					all = append(all, readmeServer{name, server.Args})
				}
			}
		}
	}
	if want := len(readmeBlocks(text, "json")); len(all) != want {
		t.Fatalf("%d servers in %d files", len(all), want)
	}
	return all
}

// The servers in the README's client files are found by their clients, and are
// command lines of ours.
func TestReadmeClients(t *testing.T) {
	for _, server := range readmeServers(t) {
		root := rootCommand(stdio{out: io.Discard, err: io.Discard})
		if err := root.ParseFlags(server.args); err != nil {
			t.Errorf("%s: %v", server.name, err)
		}
		if to, err := targetOf(root, root.Flags().Args()); err != nil || to == nil {
			t.Errorf("%s: the target: %v, %v", server.name, to, err)
		}
	}
}

// Those that start a server start the one that they name, and it lists its tools.
func TestReadmeClientsInterop(t *testing.T) {
	realNPX(t)
	started := 0
	for _, server := range readmeServers(t) {
		if !slices.Contains(server.args, "npx") {
			continue
		}
		started++
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n" +
			`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n")
		var out, log bytes.Buffer
		if code := run(t.Context(), server.args, stdio{in, &out, &log}); code != exitOK || !strings.Contains(out.String(), `"name":"echo"`) {
			t.Errorf("exit code %d: %s%s", code, &out, &log)
		}
	}
	if started == 0 {
		t.Error("no file starts a server")
	}
}

// realNPX puts an npx on the PATH that runs the packages that are installed.
func realNPX(t *testing.T) {
	t.Helper()
	node, dir := interopNode(t)
	bin := t.TempDir()
	npx := filepath.Join(bin, "npx")
	write(t, npx, fmt.Sprintf("#!/bin/sh\nexec %s %s/node_modules/\"$2\"/dist/index.js\n", node, dir))
	if err := os.Chmod(npx, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// The table of flags has the flags, the values and the defaults of the policy.
func TestReadmeFlags(t *testing.T) {
	fields := map[string]policy.Field{}
	for _, f := range policy.Flags() {
		fields[f.Flag] = f
	}
	_, table, _ := strings.Cut(readme(t), "| flag | meaning | default |\n")
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (.*) \| (.*) \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		if strings.HasPrefix(row[1], "---") || !strings.HasPrefix(row[1], "`--") {
			continue
		}
		rows++
		cell := strings.ReplaceAll(row[1], `\|`, "|")
		for _, m := range regexp.MustCompile("`--([a-z-]+)(?: ([a-z|-]+))?").FindAllStringSubmatch(cell, -1) {
			f, ok := fields[m[1]]
			if !ok {
				t.Errorf("--%s is not of the policy", m[1])
				continue
			}
			if m[2] != "" && m[2] != strings.Join(f.Values, "|") {
				t.Errorf("--%s takes %v, not %s", m[1], f.Values, m[2])
			}
			want := f.Default
			switch {
			case f.Bool && (want == "false" || want == ""):
				want = "off"
			case want == "" && f.Flag == "state-key-file":
				want = "random, per process"
			case want == "":
				want = "none"
			}
			if row[3] != want {
				t.Errorf("--%s: the default is %q, not %q", m[1], want, row[3])
			}
		}
	}
	if rows == 0 {
		t.Error("the README has no table of flags")
	}
}

// scan's line of the README, with the server that it names.
func TestReadmeScanInterop(t *testing.T) {
	realNPX(t)
	const line = "mcp-refit scan -- npx -y @modelcontextprotocol/server-everything\n"
	if !strings.Contains(readme(t), line) {
		t.Fatalf("the README does not say %q", line)
	}
	var out, log bytes.Buffer
	if code := run(t.Context(), strings.Fields(line)[1:], stdio{nil, &out, &log}); code != exitOK || !strings.Contains(out.String(), "everything") {
		t.Errorf("exit code %d: %s%s", code, &out, &log)
	}
}
