package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// oddAnswers are what a server says that does what clients stumble over. It
// knows nothing of server/discover, and says a word of its own on stdout.
var oddAnswers = map[string]string{
	`"server/discover"`: `"error":{"code":-32601,"message":"no"}`,
	`"initialize"`: `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},` +
		`"serverInfo":{"name":"odd<script>","version":"1"}}`,
	`"tools/list"`: `"result":{"tools":[` +
		`{"name":"a","inputSchema":{"type":"object"},"icons":[{"src":"https://cdn.test.com/a.png","sizes":"48x48","theme":"blue"}]},` +
		`{"name":"a","inputSchema":{"type":"object"}},{"inputSchema":{"type":"object"}}],"nextCursor":"2"}`,
	`"cursor":"2"`:   `"result":{"tools":[],"nextCursor":"2"}`,
	`"prompts/list"`: `"error":{"code":-32603,"message":"broken"}`,
}

// serveOdd answers each request with the last of oddAnswers that it matches.
func serveOdd(in io.Reader, out io.WriteCloser) {
	defer out.Close()
	fmt.Fprintln(out, "listening…")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		_, rest, ok := strings.Cut(lines.Text(), `"id":`)
		if !ok {
			continue
		}
		id := rest[:strings.IndexAny(rest, ",}")]
		for _, what := range []string{`"cursor":"2"`, `"tools/list"`, `"prompts/list"`, `"initialize"`, `"server/discover"`} {
			if strings.Contains(lines.Text(), what) {
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, oddAnswers[what])
				break
			}
		}
	}
}

// TestScanOddities scans a server that is wrong in every way that is looked for.
func TestScanOddities(t *testing.T) {
	job, out := scanOf(t, nil, "icon-trust=cdn.test.com")
	job.serve = func(ctx context.Context, px *proxy.Proxy, std stdio) error {
		serverIn, toServer := io.Pipe()
		fromServer, serverOut := io.Pipe()
		go serveOdd(serverIn, serverOut)
		return px.Run(ctx, proxy.Stream{R: std.in, W: nopCloser{std.out}}, proxy.Stream{R: fromServer, W: toServer})
	}
	job.html, job.failOn = filepath.Join(t.TempDir(), "page.html"), "faults"
	if err := job.run(t.Context()); err != exitCode(exitError) {
		t.Errorf("--fail-on faults: %v", err)
	}
	golden(t, "odd.txt", out.Bytes())
	page, err := os.ReadFile(job.html)
	if err != nil || strings.Contains(string(page), "<script") || strings.Contains(string(page), `src="https:`) {
		t.Errorf("the page holds what a server wrote: %v", err)
	}
}
