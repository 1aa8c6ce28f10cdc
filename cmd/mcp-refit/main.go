// Command mcp-refit is a proxy between an MCP client and an MCP server: it
// makes old servers look current and untrusted ones safe, and lets everything
// else through byte for byte.
package main

import (
	"context"
	"io"
	"os"

	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// The helper processes that this binary is, too. They are looked for before
// anything else, so that they start fast and stay small.
const (
	argWatchdog   = "watchdog"
	argIconWorker = "icon-worker"
)

// stdio is what a process is born with.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case argWatchdog:
			os.Exit(proxy.RunWatchdog(os.Stdin))
		case argIconWorker:
			os.Exit(icon.RunWorker(os.Stdin, os.Stdout))
		}
	}
	os.Exit(run(context.Background(), os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}

// self is the command that runs this binary again, as one of its helpers.
// Where the system can't say where it is, there are no helpers.
func self(arg string) []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, arg}
}
