package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

var update = flag.Bool("update", false, "write the golden files anew; read them before you commit them")

// scanOf is a scan of a server that runs in this process.
func scanOf(t *testing.T, server *mcp.Server, set ...string) (*scanJob, *bytes.Buffer) {
	t.Helper()
	config := policy.Default()
	for _, s := range append([]string{"observe=true"}, set...) {
		name, value, _ := strings.Cut(s, "=")
		if err := config.SetFlag(name, value); err != nil {
			t.Fatal(err)
		}
	}
	compiled, err := config.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	return &scanJob{
		std: stdio{nil, &out, io.Discard}, policy: compiled, target: "old-coffee", failOn: "none", timeout: time.Minute,
		serve: func(ctx context.Context, px *proxy.Proxy, std stdio) error {
			serverIn, toServer := io.Pipe()
			fromServer, serverOut := io.Pipe()
			go func() {
				_ = server.Run(ctx, &mcp.IOTransport{Reader: serverIn, Writer: serverOut})
				serverOut.Close()
			}()
			return px.Run(ctx, proxy.Stream{R: std.in, W: nopCloser{std.out}}, proxy.Stream{R: fromServer, W: toServer})
		},
	}, &out
}

// golden compares with a file in testdata/scan, pictures cut.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	got = regexp.MustCompile(`data:image/png;base64,[A-Za-z0-9+/=]+`).ReplaceAll(got, []byte("data:image/png;base64,…"))
	path := filepath.Join("testdata", "scan", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n%s", err, diff.Diff(path, want, "got", got))
	}
}

// TestScanOldServer scans the server that is built in, in each form of report.
func TestScanOldServer(t *testing.T) {
	was := version
	version = "v1.2.3"
	t.Cleanup(func() { version = was })
	for _, test := range []struct {
		golden string
		set    func(*scanJob)
	}{
		{"old.txt", func(*scanJob) {}},
		{"old.json", func(j *scanJob) { j.json = true }},
		{"old.sarif", func(j *scanJob) { j.sarif = true }},
		{"old.html", func(j *scanJob) { j.html = filepath.Join(t.TempDir(), "page.html") }},
	} {
		t.Run(test.golden, func(t *testing.T) {
			job, out := scanOf(t, oldServer())
			job.calls = []toolCall{{"order_coffee", json.RawMessage("{}")}}
			test.set(job)
			if err := job.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			text := out.Bytes()
			if job.html != "" {
				var err error
				if text, err = os.ReadFile(job.html); err != nil {
					t.Fatal(err)
				}
			}
			golden(t, test.golden, text)
		})
	}
}

// TestScanCallsNothing: without --call no tool is called, and no form is seen.
func TestScanCallsNothing(t *testing.T) {
	job, out := scanOf(t, oldServer())
	if err := job.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "Forms") {
		t.Error(out)
	}
}

// TestScanCallsUnknown: a tool that is not there is the caller's mistake, and
// the error says which there are.
func TestScanCallsUnknown(t *testing.T) {
	job, out := scanOf(t, oldServer())
	job.calls = []toolCall{{"order_cofee", json.RawMessage("{}")}}
	err := job.run(t.Context())
	if want := "--call order_cofee: the server has no such tool; it has order_coffee"; err == nil || err.Error() != want || !errors.As(err, new(usageError)) {
		t.Errorf("%v, want %s", err, want)
	}
	if out.Len() > 0 {
		t.Errorf("a report of a scan that was not done: %s", out)
	}
}

func TestScanFailOn(t *testing.T) {
	for _, test := range []struct {
		failOn, keep string
		want         error
	}{
		{"none", "strip", nil},
		{"faults", "strip", nil},
		{"changes", "strip", exitCode(exitError)},
	} {
		job, _ := scanOf(t, oldServer(), "icons="+test.keep)
		job.failOn = test.failOn
		if err := job.run(t.Context()); err != test.want {
			t.Errorf("--fail-on %s: %v, want %v", test.failOn, err, test.want)
		}
	}
}

// TestScanBounded: a server that never answers ends the scan with its time.
func TestScanBounded(t *testing.T) {
	job, _ := scanOf(t, nil)
	job.timeout = 100 * time.Millisecond
	job.serve = func(ctx context.Context, _ *proxy.Proxy, std stdio) error {
		_, err := io.Copy(io.Discard, std.in)
		<-ctx.Done()
		return err
	}
	if err := job.run(t.Context()); err == nil || !strings.Contains(err.Error(), "connect: ") {
		t.Error(err)
	}
}
