//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// interopProgram is a program of another project that a test needs: without it
// the test is skipped, and where all of them are to be there it fails.
func interopProgram(t *testing.T, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("MCP_REFIT_INTEROP") != "" {
		t.Fatalf("%s is not here: %s", name, from)
	}
	t.Skipf("%s is not here: %s", name, from)
	return ""
}

// freeAddress is an address on loopback that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// until calls a function until it says that it is done.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		if done() {
			return
		}
	}
	t.Fatalf("it never came to be that %s", what)
}

// A real Prometheus scrapes the command, and has its counts.
func TestPrometheusInterop(t *testing.T) {
	prometheus := interopProgram(t, "prometheus", "apt-get install prometheus")
	admin, web, dir := freeAddress(t), freeAddress(t), t.TempDir()
	s := start(t, "--admin", admin, "--", "echo-server")
	s.list()
	s.list()
	config := filepath.Join(dir, "prometheus.yml")
	write(t, config, "global: {scrape_interval: 1s}\nscrape_configs: [{job_name: mcp-refit, static_configs: [{targets: ['"+admin+"']}]}]\n")
	cmd := exec.CommandContext(t.Context(), prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+web, "--log.level=error")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
	}()
	for query, want := range map[string]string{
		`up{job="mcp-refit"}`: "1",
		`mcp_refit_messages_total{direction="to_server",kind="request",method="tools/list",result="passed"}`: "2",
		`mcp_refit_icons_total{verdict="stripped"}`:                                                          "4",
		`mcp_refit_children`: "1",
		`histogram_quantile(1, mcp_refit_operation_duration_seconds_bucket{method="tools/list"}) > bool 0`: "1",
	} {
		got := ""
		until(t, fmt.Sprintf("%s is %s, not %s", query, want, got), func() bool {
			got = prometheusValue(t, web, query)
			return got == want
		})
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// prometheusValue is the value of the one series of a query, "" if there is none.
func prometheusValue(t *testing.T, address, query string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "" // it is not up yet
	}
	defer res.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}

// The names, units and help texts are those that Prometheus's own tool asks for.
func TestMetricsInterop(t *testing.T) {
	promtool := interopProgram(t, "promtool", "apt-get install prometheus")
	_, text := get(t, used().handler(), "/metrics")
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
