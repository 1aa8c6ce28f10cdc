//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A receiver is the OTLP receiver of OpenTelemetry's collector, as a process.
type receiver struct {
	cmd *exec.Cmd
	out *bufio.Scanner // an export a line
}

// startReceiver starts one, and points OTEL_EXPORTER_OTLP_ENDPOINT at it.
func startReceiver(t *testing.T) *receiver {
	t.Helper()
	program := filepath.Join("bin", "otlp-receiver")
	address := freeAddress(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(interop(t, program), program), address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens(t, address)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+address)
	return &receiver{cmd, bufio.NewScanner(out)}
}

// listens waits until somebody listens at an address.
func listens(t *testing.T, address string) {
	t.Helper()
	until(t, "somebody listens at "+address, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// end stops the receiver, and returns what it took: a span a line, with its
// service and the values of its attributes.
func (r *receiver) end(t *testing.T) []string {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var spans []string
	for r.out.Scan() {
		spans = append(spans, exported(t, r.out.Bytes())...)
	}
	if err := errors.Join(r.out.Err(), r.cmd.Wait()); err != nil {
		t.Errorf("the receiver: %v", err)
	}
	return spans
}

// exported is the spans of an export in OTLP/JSON, where ids are hexadecimal.
func exported(t *testing.T, line []byte) []string {
	t.Helper()
	type attributes []struct {
		Key   string
		Value struct{ StringValue string }
	}
	var export struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes attributes }
			ScopeSpans []struct {
				Spans []struct {
					Name, TraceID, ParentSpanID string
					Kind                        int
					Attributes                  attributes
				}
			}
		}
	}
	if err := json.Unmarshal(line, &export); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var spans []string
	for _, resource := range export.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.StringValue
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				var all []string
				for _, a := range s.Attributes {
					all = append(all, a.Key+"="+a.Value.StringValue)
				}
				slices.Sort(all)
				spans = append(spans, fmt.Sprintf("%s: %s, kind %d, %s<%s %v", service, s.Name, s.Kind, s.TraceID, s.ParentSpanID, all))
			}
		}
	}
	return spans
}

const (
	interopTraceID = "0af7651916cd43dd8448eb211c80319c"
	interopParent  = "00-" + interopTraceID + "-b7ad6b7169203331-01"
	// The kind is that of a server (2 in OTLP). The names are those of the MCP
	// semantic conventions, and mcp_refit.outcome is ours.
	interopSpan = "mcp-refit: tools/call t, kind 2, " + interopTraceID + "<b7ad6b7169203331 [gen_ai.operation.name=execute_tool" +
		" gen_ai.tool.name=t mcp.method.name=tools/call mcp_refit.outcome=answered network.transport="
)

// The collector's receiver takes the span of a call in front of a child, joined
// to the trace in _meta, and no process is left.
func TestTracesInterop(t *testing.T) {
	r := startReceiver(t)
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := start(t, "--log-level", "error", "--", "sh", "-c", `echo $$ >"$0"; exec echo-server`, pidFile)
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"traceparent":"`+interopParent+`"}}}`)
	if line, err := s.out.ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
		t.Fatalf("%v: %s", err, line)
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got, want := r.end(t), []string{interopSpan + "pipe]"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the server is left running: %v", err)
	}
}

// The same in front of a URL, where the trace is in the HTTP header.
func TestTracesHeaderInterop(t *testing.T) {
	r := startReceiver(t)
	back := httptest.NewServer(http.HandlerFunc(answer))
	defer back.Close()
	address := freeAddress(t)
	s := start(t, "--log-level", "error", "--listen", address, back.URL+"/mcp")
	listens(t, address)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Traceparent", interopParent)
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, status %d: %s", err, res.StatusCode, body)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got, want := r.end(t), []string{interopSpan + "tcp]"}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
