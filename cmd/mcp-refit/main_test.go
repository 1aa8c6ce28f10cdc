package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// programs are what the test binary is by other names.
var programs = map[string]func(){
	"mcp-refit": main, "echo-server": echoServer, "silent-server": silentServer, "suite-client": suiteClient, "xdg-open": fakeBrowser,
}

// The test binary is the command, its helper processes and a server to wrap,
// too, so what is tested is main itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == argWatchdog || os.Args[1] == argIconWorker) {
		main()
	}
	testscript.Main(m, programs)
}

// silentServer answers nothing.
func silentServer() { _, _ = io.Copy(io.Discard, os.Stdin) }

// echoServer is an MCP server of one line a request: its one tool has two icons,
// and every other result is empty.
func echoServer() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		id, ok := strings.CutPrefix(in.Text(), `{"jsonrpc":"2.0","id":`)
		if !ok {
			continue
		}
		id, rest, _ := strings.Cut(id, ",")
		switch {
		case strings.Contains(rest, `"initialize"`):
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"echo","version":"1"}}}`+"\n", id)
		case strings.Contains(rest, `"tools/list"`):
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","icons":[{"src":"https://a.example.com/SECRETPATH.png?token=SECRETTOKEN"},{"src":"https://b.example.com/i.png"}]}]}}`+"\n", id)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
		}
	}
}
