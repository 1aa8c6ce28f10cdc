//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The sidecar's topology, as processes in network namespaces of this test's
// own: the pod has the server on its loopback and the proxy in front, one link
// to the client, and no way out. The addresses are of RFC 2544, for tests.
const (
	clientAddress = "198.18.7.1"
	podAddress    = "198.18.7.2"
)

// namespaces makes the two and their link, and returns their names.
func namespaces(t *testing.T) (client, pod string) {
	t.Helper()
	ip := interopProgram(t, "ip", "apt-get install iproute2")
	do := func(ctx context.Context, args ...string) error {
		if out, err := exec.CommandContext(ctx, ip, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %s", strings.Join(args, " "), out)
		}
		return nil
	}
	client, pod = fmt.Sprintf("mcp-refit-client-%d", os.Getpid()), fmt.Sprintf("mcp-refit-pod-%d", os.Getpid())
	if err := do(t.Context(), "netns", "add", client); err != nil {
		t.Skip("no network namespaces can be made here: ", err)
	}
	t.Cleanup(func() {
		_ = do(context.Background(), "netns", "del", client)
		_ = do(context.Background(), "netns", "del", pod)
	})
	for _, args := range []string{
		"netns add " + pod,
		"-n " + client + " link add to-pod type veth peer name eth0 netns " + pod,
		"-n " + client + " addr add " + clientAddress + "/30 dev to-pod", "-n " + client + " link set to-pod up", "-n " + client + " link set lo up",
		"-n " + pod + " addr add " + podAddress + "/30 dev eth0", "-n " + pod + " link set eth0 up", "-n " + pod + " link set lo up",
		// What lies behind the client, which the pod has no route to.
		"-n " + client + " addr add 198.19.7.1/32 dev lo",
	} {
		if err := do(t.Context(), strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	return client, pod
}

// in is a command in a namespace, which ends with the test.
func in(t *testing.T, namespace string, command ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", namespace}, command...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	return cmd
}

// probe says what comes of a connection from a namespace to an address.
func probe(t *testing.T, namespace, address string) string {
	t.Helper()
	out, err := in(t, namespace, "dial", address).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// dialer is the program for that: it takes a connection for made once both
// sides know of it, and waits no longer than a second.
func dialer() {
	conn, err := net.DialTimeout("tcp", os.Args[1], time.Second)
	switch op, _ := errors.AsType[*net.OpError](err); {
	case err == nil:
		conn.Close()
		fmt.Print("connected")
	case op != nil && op.Timeout():
		fmt.Print("timeout")
	default:
		fmt.Print(op.Err)
	}
}

// httpServer serves the demo's old server over HTTP at an address.
func httpServer() {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return oldServer() }, nil)
	server := &http.Server{Addr: os.Args[1], Handler: handler, ReadHeaderTimeout: headerTimeout}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
}

// A seen is what a client saw of a server.
type seen struct {
	Icons     []string // hosts, or data:
	Form      string   // what the size is asked by
	Bad, Good string   // what the tool says of a bad answer and of a good one
}

// lookingClient connects to a URL, looks at all that the old server has, and
// prints it as JSON.
func lookingClient() {
	var s seen
	content := map[string]any{"size": "Large", "cups": 2.5}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.ErrUnsupported
		},
	})
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "elicitation/create" {
				return next(ctx, method, req)
			}
			raw, _ := json.Marshal(req.GetParams())
			for _, key := range []string{"enumNames", "oneOf"} {
				if strings.Contains(string(raw), `"`+key+`":`) {
					s.Form += key
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: os.Args[1]}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, i := range tools.Tools[0].Icons {
		s.Icons = append(s.Icons, strings.SplitN(i.Source, "/", 2)[0])
	}
	for _, said := range []*string{&s.Bad, &s.Good} {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "order_coffee"})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		*said = result.Content[0].(*mcp.TextContent).Text
		content = map[string]any{"size": "l", "cups": 2}
	}
	_ = json.NewEncoder(os.Stdout).Encode(s)
}

// The sidecar for real: what passes and what does not is seen from the ends.
func TestSidecarInterop(t *testing.T) {
	client, pod := namespaces(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "version: 1\nicons: {deadline: 30s, rules: [{host: tracker.example, action: inline}]}\n")
	for _, command := range [][]string{
		{"http-server", "127.0.0.1:3000"},
		{"mcp-refit", "--listen=:8080", "--admin=:9090", "--allow-host=" + podAddress, "--config=" + policy, "--log-level=error", "http://127.0.0.1:3000/"},
	} {
		cmd := in(t, pod, command...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Cancel()
			_ = cmd.Wait()
		})
	}
	until(t, "the proxy is ready, seen by the kubelet", func() bool {
		out, err := in(t, client, "get", "http://"+podAddress+":9090/readyz").Output()
		return err == nil && strings.Contains(string(out), `"ready":true`)
	})

	for _, c := range []struct{ from, address, want string }{
		{client, podAddress + ":8080", "connected"},                   // the proxy
		{client, podAddress + ":3000", "connect: connection refused"}, // the server is on its own loopback
		{pod, "127.0.0.1:3000", "connected"},                          // which the proxy reaches
		{pod, "198.19.7.1:443", "connect: network is unreachable"},    // no way out
		{pod, clientAddress + ":443", "connect: connection refused"},  // but back to the client, where nobody listens
		{client, "198.19.7.1:443", "connect: connection refused"},     // which can see it
	} {
		if got := probe(t, c.from, c.address); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.from, c.address, got, c.want)
		}
	}

	var direct, through seen
	for s, one := range map[*seen]struct{ from, url string }{
		&direct:  {pod, "http://127.0.0.1:3000/"},
		&through: {client, "http://" + podAddress + ":8080/"},
	} {
		out, err := in(t, one.from, "looking-client", one.url).Output()
		if err == nil {
			err = json.Unmarshal(out, s)
		}
		if err != nil {
			t.Fatalf("%s: %v", one.url, err)
		}
	}
	if strings.Join(direct.Icons, " ") != "https: data:image" || direct.Form != "enumNamesenumNames" {
		t.Errorf("the server itself shows %+v", direct)
	}
	if strings.Join(through.Icons, " ") != "data:image" {
		t.Errorf("the client sees the icons %v", through.Icons)
	}
	if through.Form != "oneOfoneOf" {
		t.Errorf("the client is asked by %s", through.Form)
	}
	if !strings.Contains(through.Bad, "size") || !strings.Contains(through.Bad, "cups") || through.Good != "2 cups of size l" {
		t.Errorf("the server says %q and %q", through.Bad, through.Good)
	}
	if got := metricOf(t, client, "http://"+podAddress+":9090/metrics", `mcp_refit_icon_fetch_duration_seconds_count`); !strings.Contains(got, `result="`) || strings.Contains(got, `result="ok"`) {
		t.Errorf("an icon was fetched: %s", got)
	}
}

// metricOf are the lines of a metric, as a namespace sees it.
func metricOf(t *testing.T, namespace, url, name string) string {
	t.Helper()
	out, err := in(t, namespace, "get", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// getter prints what is at a URL.
func getter() {
	client := http.Client{Timeout: 5 * time.Second}
	res, err := client.Get(os.Args[1])
	if err != nil {
		os.Exit(1)
	}
	defer res.Body.Close()
	_, _ = io.Copy(os.Stdout, res.Body)
}

func init() {
	for name, program := range map[string]func(){"dial": dialer, "http-server": httpServer, "looking-client": lookingClient, "get": getter} {
		programs[name] = program
	}
}
