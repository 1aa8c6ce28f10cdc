package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A served is a command that serves HTTP.
type served struct {
	address string
	warned  string // what it warned of before it served
	stop    func() // as SIGTERM does
	code    chan int
}

// serveCommand runs the command with --listen until the test ends.
func serveCommand(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	s := &served{stop: cancel, code: make(chan int, 1)}
	go func() {
		s.code <- run(ctx, args, stdio{strings.NewReader(""), io.Discard, w})
		w.Close()
	}()
	t.Cleanup(cancel)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var line struct{ Level, Msg, Address string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s", lines.Bytes())
		}
		if line.Msg == "serving" {
			s.address = line.Address
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return s
		}
		s.warned += line.Msg
	}
	t.Fatalf("it ended with %d", <-s.code)
	return nil
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func post(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	res, err := c.Post(url, "application/json", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"auth":"`+r.Header.Get("Authorization")+`","x":"`+r.Header.Get("X-Key")+`"}}`)
}

func TestServeHTTPHeaders(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(answer))
	defer back.Close()
	t.Setenv("MCP_REFIT_TEST_TOKEN", "secret")
	s := serveCommand(t, "--log-format", "json", "-H", "X-Key: a: b", "--token-env", "MCP_REFIT_TEST_TOKEN", "--listen", "127.0.0.1:0", back.URL+"/mcp")
	if _, body := post(t, http.DefaultClient, "http://"+s.address+"/mcp"); !strings.Contains(body, `{"auth":"Bearer secret","x":"a: b"}`) {
		t.Error(body)
	}
	if s.warned != "" {
		t.Errorf("warned: %s", s.warned)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.address+"/mcp", strings.NewReader(ping))
	req.Host = "evil.example"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a strange Host on loopback: %d", res.StatusCode)
	}
}

// A wider bind warns, and takes clients that come by a service's name.
func TestServeHTTPWide(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(answer))
	defer back.Close()
	s := serveCommand(t, "--log-format", "json", "--listen", ":0", back.URL+"/mcp")
	if !strings.Contains(s.warned, "--allow-host") {
		t.Errorf("warned: %q", s.warned)
	}
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+"/mcp", strings.NewReader(ping))
	req.Host = "mcp.namespace.svc:8080"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
}

func TestServeHTTPUnixSocket(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(answer))
	defer back.Close()
	dir, err := os.MkdirTemp("", "s") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "mcp.sock")
	for range 2 { // the second time, over what the first one left
		if l, err := net.Listen("unix", path); err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}
		s := serveCommand(t, "--log-format", "json", "--listen", "unix:"+path, back.URL+"/mcp")
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}
		if status, body := post(t, &http.Client{Transport: transport}, "http://any.name/mcp"); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
		transport.CloseIdleConnections()
		s.stop()
		if code := <-s.code; code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
}

func TestServeHTTPTLS(t *testing.T) {
	back := httptest.NewTLSServer(http.HandlerFunc(answer))
	defer back.Close()
	dir := t.TempDir()
	certificate := back.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, keyFile := write("cert.pem", "CERTIFICATE", certificate.Certificate[0]), write("key.pem", "PRIVATE KEY", key)
	tlsFlags := []string{"--log-format", "json", "--tls-cert", cert, "--tls-key", keyFile, "--listen", "127.0.0.1:0"}
	roots := x509.NewCertPool()
	roots.AddCert(back.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}

	s := serveCommand(t, append(tlsFlags, "--upstream-ca", cert, back.URL+"/mcp")...)
	res, err := client.Post("https://"+s.address+"/mcp", "application/json", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Errorf("%s over %s", res.Status, res.Proto)
	}
	untrusted := serveCommand(t, append(tlsFlags, back.URL+"/mcp")...)
	if status, body := post(t, client, "https://"+untrusted.address+"/mcp"); status != http.StatusBadGateway || !strings.Contains(body, "--upstream-ca") {
		t.Errorf("%d %s", status, body)
	}
}

// What is under way finishes, and then the command ends.
func TestServeHTTPDrain(t *testing.T) {
	var begun sync.WaitGroup
	begun.Add(2)
	finish := make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			begun.Done()
			<-r.Context().Done()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		begun.Done()
		<-finish
		answer(w, r)
	}))
	defer back.Close()
	s := serveCommand(t, "--log-format", "json", "--listen", "127.0.0.1:0", back.URL+"/mcp")
	get, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+"/mcp", nil)
	get.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	done := make(chan string, 1)
	go func() {
		_, body := post(t, http.DefaultClient, "http://"+s.address+"/mcp")
		done <- body
	}()
	begun.Wait()
	s.stop()
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream was broken: %v", err)
	}
	close(finish)
	if body := <-done; !strings.Contains(body, `"result"`) {
		t.Error(body)
	}
	if code := <-s.code; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestServeHTTPUsage(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.1:1/mcp"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--listen", "127.0.0.1:0", "-H", "no colon", url}, exitUsage, ""},
		{[]string{"--listen", "127.0.0.1:0", "-H", "Bad Name: x", url}, exitUsage, ""},
		{[]string{"--listen", "127.0.0.1:0", "--token-env", "MCP_REFIT_NOT_SET", url}, exitUsage, "MCP_REFIT_NOT_SET"},
		{[]string{"--listen", "127.0.0.1:0", "--upstream-ca", empty, url}, exitUsage, "empty.pem"},
		{[]string{"--listen", "127.0.0.1:0", "--tls-cert", empty, "--tls-key", empty, url}, exitUsage, "--tls-cert"},
		{[]string{"--listen", "127.0.0.1:0", "--tls-cert", empty, url}, exitUsage, "tls-key"},
		{[]string{"--listen", "256.0.0.1:0", url}, exitError, "--listen"},
		{[]string{"--listen", "unix:" + dir + "/no/such/dir/s", url}, exitError, "unix"},
	} {
		var b strings.Builder
		code := run(t.Context(), c.args, stdio{strings.NewReader(""), io.Discard, &b})
		if code != c.code || !strings.Contains(b.String(), c.want) {
			t.Errorf("%v: %d, %s", c.args, code, b.String())
		}
	}
}
