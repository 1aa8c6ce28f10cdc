//go:build linux

package icon

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// inNamespace is set in the environment of the test's second process, which
// is in a network namespace of its own.
const inNamespace = "MCP_REFIT_ICON_NAMESPACE"

// ownNamespace reports whether the test is in the namespace. Where it is not,
// it runs the test there: a process of its own, for a namespace is a thread's
// and goroutines are not bound to one.
func ownNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		if os.Getenv("MCP_REFIT_INTEROP") != "" {
			t.Fatal("ip is not here: apt-get install iproute2")
		}
		t.Skip("ip is not here: apt-get install iproute2")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skip("no network namespace can be made here: ", err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("in the namespace: %v\n%s", err, out.String())
	}
	return false
}

// own gives the namespace's loopback an address.
func own(t *testing.T, address string) {
	t.Helper()
	args := []string{"addr", "add", address + "/32", "dev", "lo"}
	if strings.Contains(address, ":") {
		args = []string{"addr", "add", address + "/128", "dev", "lo", "nodad"}
	}
	if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %s", strings.Join(args, " "), out)
	}
}

// fence is where a connection is made to know that all before it are counted.
const fence = "127.0.0.2"

// A ledger listens on every address and counts the connections to each.
type ledger struct {
	net.Listener
	mu     sync.Mutex
	counts map[string]int // by address, IPv4 ones unwrapped and without a zone
	fenced chan struct{}
}

func (l *ledger) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	to := netip.MustParseAddrPort(c.LocalAddr().String()).Addr().Unmap().WithZone("").String()
	if to == fence {
		l.fenced <- struct{}{}
		return c, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[to]++
	return c, nil
}

// take returns the counts since it was last asked. Connections are accepted in
// the order in which they were made.
func (l *ledger) take(t *testing.T) map[string]int {
	t.Helper()
	connect(t, fence)
	<-l.fenced
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.counts
	l.counts = make(map[string]int)
	return counts
}

// connect makes a connection as any program would.
func connect(t *testing.T, address string) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(context.WithoutCancel(t.Context()), "tcp", net.JoinHostPort(address, "443"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// TestNoConnectionInterop has a host that owns addresses of every kind, and
// sees from its side which of them an icon's name brings a connection to. That
// each can be reached is seen first.
func TestNoConnectionInterop(t *testing.T) {
	if !ownNamespace(t) {
		return
	}
	if out, err := exec.CommandContext(t.Context(), "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	public := []string{"93.184.216.34", "2606:2800:220:1::1"}
	private := []struct {
		address string // as the name server says it
		owned   string // as the host owns it, if that differs
	}{
		{address: "10.0.0.1"},
		{address: "172.16.0.1"},
		{address: "192.168.1.1"},
		{address: "169.254.169.254"},
		{address: "100.64.0.1"},
		{address: "198.18.0.1"},
		{address: "192.0.2.1"},
		{address: "fd00::1"},
		{address: "fe80::1", owned: "fe80::1%lo"},
		{address: "fec0::1"},
		{address: "2001:db8::1"},
		{address: "::ffff:10.0.0.1", owned: "10.0.0.1"},
		{address: "64:ff9b::a00:1"},
		{address: "2002:a00:1::1"},
		{address: "224.0.0.1", owned: "-"}, // no host can own it for TCP
	}
	for _, address := range public {
		own(t, address)
	}
	for _, p := range private {
		if p.owned == "" || p.address == "fe80::1" {
			own(t, p.address)
		}
	}
	all, err := net.Listen("tcp", "[::]:443")
	if err != nil {
		t.Fatal(err)
	}
	site := &site{authority: newAuthority(t), names: newNameServer(t)}
	seen := &ledger{Listener: all, counts: make(map[string]int), fenced: make(chan struct{}, 1)}
	server := httptest.NewUnstartedServer(serveBytes("image/png", testPNG(t, 8, 8)))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	_ = server.Listener.Close()
	server.Listener = seen
	server.TLS = &tls.Config{Certificates: []tls.Certificate{site.authority.issue(t, nil, "cdn.example.com")}}
	server.StartTLS()
	t.Cleanup(server.Close)

	// fetch asks for the icon of a name that has the addresses, and returns
	// which of them saw a connection.
	fetch := func(t *testing.T, want Reason, addresses ...string) map[string]int {
		t.Helper()
		site.names.set("cdn.example.com", addresses...)
		f := site.fetcher(t, func(f *Fetcher) { f.AllowPrivate = false })
		_, err := f.Fetch(t.Context(), "https://cdn.example.com/a.png", "")
		if ReasonOf(err) != want || want == "" && err != nil {
			t.Errorf("error %v, want reason %q", err, want)
		}
		return seen.take(t)
	}
	for _, address := range public {
		t.Run(address, func(t *testing.T) {
			if got := fetch(t, "", address); len(got) != 1 || got[address] != 1 {
				t.Errorf("connections %v, want one", got)
			}
		})
	}
	for _, p := range private {
		t.Run(p.address, func(t *testing.T) {
			if p.owned == "" {
				p.owned = p.address
			}
			if p.owned != "-" {
				connect(t, p.owned)
				if got := seen.take(t); len(got) != 1 {
					t.Fatalf("connections %v, want the one made here", got)
				}
			}
			if got := fetch(t, ReasonAddress, p.address); len(got) != 0 {
				t.Errorf("connections %v, want none", got)
			}
			for _, beside := range public {
				if got := fetch(t, "", p.address, beside); len(got) != 1 || got[beside] != 1 {
					t.Errorf("beside %s: connections %v, want one to that", beside, got)
				}
			}
		})
	}
}
