//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A started is the command as a process of its own.
type started struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bufio.Reader
	stdout io.Closer
}

func start(t *testing.T, args ...string) *started {
	t.Helper()
	return startProgram(t, "mcp-refit", args...)
}

func startProgram(t *testing.T, program string, args ...string) *started {
	t.Helper()
	s := &started{t: t, cmd: exec.CommandContext(t.Context(), program, args...)}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in, s.out, s.stdout, s.stderr = in, bufio.NewReader(out), out, bufio.NewReader(stderr)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// list asks for the tools, and returns the answer.
func (s *started) list() string {
	s.t.Helper()
	return s.ask(1)
}

// ask is list, with an id.
func (s *started) ask(id int) string {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", id); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return line
}

// logged waits for a line of the log that holds the text.
func (s *started) logged(text string) string {
	s.t.Helper()
	for {
		line, err := s.stderr.ReadString('\n')
		if err != nil {
			s.t.Fatalf("no line with %q: %v", text, err)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}

func (s *started) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// SIGHUP reloads the policy, and the session goes on.
func TestHangupReloads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, policyText("strip"))
	s := start(t, "--config", file, "--", "echo-server")
	if got := s.list(); strings.Contains(got, "icons") {
		t.Errorf("before: %s", got)
	}
	write(t, file, policyText("keep")+"http: {listen: \":8080\"}\n")
	s.signal(syscall.SIGHUP)
	if line := s.logged("the policy was reloaded"); !strings.Contains(line, "icons.default: keep, was strip") {
		t.Errorf("the log says %s", line)
	}
	if line := s.logged("next start only"); !strings.Contains(line, "http.listen") {
		t.Errorf("the log says %s", line)
	}
	if got := s.list(); !strings.Contains(got, "//a.example.com/") {
		t.Errorf("after: %s", got)
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// SIGHUP reloads the certificate, also without a policy file, and what is
// served goes on.
func TestHangupReloadsCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	renew := func(serial int64) {
		certText, keyText := certificatePair(t, serial)
		write(t, cert, certText)
		write(t, key, keyText)
	}
	renew(1)
	s := start(t, "--log-format", "json", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--", "echo-server")
	var serving struct{ Address string }
	if err := json.Unmarshal([]byte(s.logged(`"serving"`)), &serving); err != nil {
		t.Fatal(err)
	}
	shown := func() int64 {
		conn, err := tls.Dial("tcp", serving.Address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := shown(); got != 1 {
		t.Errorf("before: %d", got)
	}
	renew(2)
	s.signal(syscall.SIGHUP)
	s.logged("the TLS certificate was reloaded")
	if got := shown(); got != 2 {
		t.Errorf("after: %d", got)
	}
	s.signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Without a file there is nothing to reload, and SIGHUP ends the process.
func TestHangupEnds(t *testing.T) {
	s := start(t, "--", "echo-server")
	s.list()
	s.signal(syscall.SIGHUP)
	if _, err := s.out.ReadString('\n'); err != io.EOF {
		t.Errorf("the output goes on: %v", err)
	}
	_ = s.cmd.Wait() // the code is the child's
}

// SIGUSR1 is for the audit, and harmless where there is none.
func TestReopenWithoutAudit(t *testing.T) {
	s := start(t, "--", "echo-server")
	s.list()
	s.signal(syscall.SIGUSR1)
	s.list()
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A log that was moved away is written anew on SIGUSR1.
func TestAuditRotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	s := start(t, "--audit", file, "--", "echo-server")
	s.list()
	rename(t, file, file+".1")
	s.signal(syscall.SIGUSR1)
	s.logged("opened again")
	s.list()
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	// The lines before the signal are in either: they are written when there is time.
	before, err := os.ReadFile(file + ".1")
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(records(t, string(before)))+len(records(t, string(after))) != 4 || len(records(t, string(after))) < 2 {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// A pipe that nobody reads neither holds up messages nor the end.
func TestAuditBlockingPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "audit")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	s := start(t, "--audit", fifo, "--log-level", "error", "--", "echo-server")
	for range 400 { // 800 lines of 300 bytes; a pipe holds 64 KiB
		s.list()
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// SIGTERM ends a process that serves HTTP once the calls under way are
// answered: streams end as if the server had ended them, and nobody new is let in.
func TestTerminateDrains(t *testing.T) {
	finish, calls := make(chan struct{}), make(chan struct{})
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		calls <- struct{}{}
		<-finish
		answer(w, r)
	}))
	defer back.Close()
	s := start(t, "--log-format", "json", "--listen", "127.0.0.1:0", back.URL+"/mcp")
	var serving struct{ Address string }
	if err := json.Unmarshal([]byte(s.logged(`"serving"`)), &serving); err != nil {
		t.Fatal(err)
	}
	rest := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(s.stderr)
		rest <- string(b)
	}()
	url := "http://" + serving.Address + "/mcp"
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	done := make(chan string, 1)
	go func() {
		_, body := post(t, http.DefaultClient, url)
		done <- body
	}()
	<-calls
	s.signal(syscall.SIGTERM)
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream was broken: %v", err)
	}
	if conn, err := net.Dial("tcp", serving.Address); err == nil {
		conn.Close()
		t.Error("new connections are taken")
	}
	close(finish)
	if body := <-done; !strings.Contains(body, `"result"`) {
		t.Errorf("the call was answered with %s", body)
	}
	log := <-rest
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	if strings.Contains(log, `"level":"error"`) {
		t.Errorf("the log says %s", log)
	}
}
