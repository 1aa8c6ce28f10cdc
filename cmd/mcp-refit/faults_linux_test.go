package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A disk that is full: messages go on, it is said once, and each line that is
// lost is counted.
func TestFaultsOfTheAuditsDisk(t *testing.T) {
	s := start(t, "--audit=/dev/full", "--admin=127.0.0.1:0", "--log-format=json", "--", "echo-server")
	admin := s.address("admin")
	const calls = 50 // each of them is two decisions
	for range calls {
		if got := s.list(); got != `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t"}]}}`+"\n" {
			t.Fatalf("got %s", got)
		}
	}
	if line := s.logged("the audit can't be written, its lines are dropped"); !strings.Contains(line, "no space left on device") {
		t.Errorf("the log says %s", line)
	}
	until(t, "all lines are counted", func() bool {
		metrics := page(t, admin, "/metrics", http.StatusOK)
		return strings.Contains(metrics, fmt.Sprintf("\nmcp_refit_audit_dropped_lines_total %d\n", 2*calls)) &&
			strings.Contains(metrics, "\nmcp_refit_audit_lines_total 0\n")
	})
	s.in.Close()
	if rest, err := io.ReadAll(s.stderr); err != nil || strings.Contains(string(rest), "can't be written") {
		t.Errorf("it is said again: %s, %v", rest, err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A policy file that breaks while it is in force: the one before it goes on,
// the log and /readyz say why, and it is in force once it is mended.
func TestFaultsOfThePolicyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, policyText("keep"))
	s := start(t, "--config="+file, "--admin=127.0.0.1:0", "--log-format=json", "--", "echo-server")
	admin := s.address("admin")
	for _, step := range []struct{ name, text, logged, ready string }{
		{"broken", "version: 1\nicons: {default: strip", "the policy was not reloaded; the one before it goes on", "policy.yaml:2"},
		{"an unknown key", policyText("strip") + "icon: {}\n", "the policy was not reloaded; the one before it goes on", `did you mean \"icons\"?`},
		{"mended", policyText("strip"), "the policy was reloaded", `"policy":"ok"`},
	} {
		before := s.list()
		write(t, file+".new", step.text)
		rename(t, file+".new", file)
		s.logged(step.logged)
		if got := page(t, admin, "/readyz", http.StatusOK); !strings.Contains(got, step.ready) || !strings.Contains(got, `"ready":true`) {
			t.Errorf("%s: /readyz says %s", step.name, got)
		}
		got := s.list()
		if kept := strings.Contains(got, "//a.example.com/"); kept != (step.name != "mended") || kept && got != before {
			t.Errorf("%s: got %s, before %s", step.name, got, before)
		}
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Clients that come and say nothing use up what few file descriptors there are:
// another session goes on, new clients wait, and are served once there is room.
func TestFaultsOfDescriptorsForClients(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(answer))
	defer back.Close()
	s := startWith(t, 100, "--listen", "127.0.0.1:0", back.URL+"/mcp")
	address := s.address("serving")
	url := "http://" + address + "/mcp"
	end := meanwhile(t, func(c *http.Client, _ int) error { return answers(c, url, "", ping, `"id":1,"result"`) })
	silent := make([]net.Conn, 200)
	for i := range silent {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent[i] = c
	}
	until(t, "the clients are there", func() bool { return s.descriptors() > 30 })
	late := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		late <- answers(client, url, "", ping, `"id":1,"result"`)
	}()
	for _, c := range silent {
		c.Close()
	}
	if err := <-late; err != nil {
		t.Errorf("a new client: %v", err)
	}
	end()
	until(t, "the descriptors are freed", func() bool { return s.descriptors() < 20 })
	s.ends(t, "too many open files")
}

// Children that use up the file descriptors: who comes when there are none
// left is told so, the sessions that there are go on, and once one has ended
// there is room for another.
func TestFaultsOfDescriptorsForChildren(t *testing.T) {
	s := startWith(t, 100, "--listen", "127.0.0.1:0", "--", "echo-server")
	url := "http://" + s.address("serving") + "/mcp"
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	begin := func() (session, text string) {
		res, text := ask(t, client, http.MethodPost, url, "", loadInit)
		return res.Header.Get("Mcp-Session-Id"), text
	}
	first, text := begin()
	if first == "" {
		t.Fatal(text)
	}
	end := meanwhile(t, func(c *http.Client, id int) error {
		return answers(c, url, first, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id), fmt.Sprintf(`"id":%d,"result"`, id))
	})
	var sessions []string
	for range 64 { // more than a hundred descriptors are enough for
		session, text := begin()
		if session == "" {
			if !strings.Contains(text, `"id":0,"error"`) || !strings.Contains(text, "too many open files") {
				t.Errorf("one too many is told %s", text)
			}
			break
		}
		sessions = append(sessions, session)
	}
	t.Logf("%d sessions", len(sessions)+1)
	if len(sessions) == 0 || len(sessions) == 64 {
		t.Fatalf("%d sessions could begin", len(sessions))
	}
	for _, session := range sessions {
		if err := answers(client, url, session, ping, `"id":1,"result"`); err != nil {
			t.Errorf("a session that there was: %v", err)
		}
		if res, text := ask(t, client, http.MethodDelete, url, session, ""); res.StatusCode != http.StatusNoContent {
			t.Errorf("DELETE: %s %s", res.Status, text)
		}
	}
	until(t, "there is room again", func() bool {
		session, _ := begin()
		return session != ""
	})
	end()
	s.ends(t, "")
}

func TestConnectionsOf(t *testing.T) {
	for descriptors, want := range map[int]int{1: 1, 100: 33, 3 * maxConnections: maxConnections, math.MaxInt: maxConnections} {
		if got := connectionsOf(descriptors); got != want {
			t.Errorf("of %d: %d, want %d", descriptors, got, want)
		}
	}
}

// startWith starts the command with so many file descriptors at most.
func startWith(t *testing.T, descriptors int, args ...string) *started {
	t.Helper()
	return startProgram(t, "sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec mcp-refit "$@"`, descriptors), "sh", "--log-format=json"}, args...)...)
}

// descriptors is how many file descriptors the command has open.
func (s *started) descriptors() int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		s.t.Error(err)
	}
	return len(open)
}

// ends ends the command, which must not have logged what is given.
func (s *started) ends(t *testing.T, never string) {
	t.Helper()
	s.signal(syscall.SIGTERM)
	rest, err := io.ReadAll(s.stderr)
	if err != nil || never != "" && strings.Contains(string(rest), never) {
		t.Errorf("the log says %s, %v", rest, err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, rest)
	}
}

// address waits for the line of the log that names an address.
func (s *started) address(what string) string {
	s.t.Helper()
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(s.logged(`"msg":"`+what+`"`)), &line); err != nil {
		s.t.Fatal(err)
	}
	return line.Address
}

// page is what the admin address answers.
func page(t *testing.T, admin, path string, status int) string {
	t.Helper()
	res, text := ask(t, http.DefaultClient, http.MethodGet, "http://"+admin+path, "", "")
	if res.StatusCode != status {
		t.Errorf("%s: %s", path, res.Status)
	}
	return text
}

// meanwhile has another client call on and on, once its first call has been
// answered. The function that it returns ends that, and sees that each call was answered. How long they took is
// logged, and never judged: that is the machine's.
func meanwhile(t *testing.T, call func(c *http.Client, id int) error) (end func()) {
	stop, done := make(chan struct{}), make(chan []time.Duration, 1)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		var took []time.Duration
		client := &http.Client{Transport: &http.Transport{}}
		pace := time.NewTicker(time.Millisecond) // the machine is for the others, too
		defer func() {
			pace.Stop()
			client.CloseIdleConnections()
			done <- took
		}()
		for id := 0; ; id++ {
			since := time.Now()
			if err := call(client, id); err != nil {
				begin()
				t.Errorf("another client, after %d answers: %v", len(took), err)
				return
			}
			took = append(took, time.Since(since))
			begin()
			select {
			case <-stop:
				return
			case <-pace.C:
			}
		}
	}()
	<-begun
	return func() {
		t.Helper()
		close(stop)
		took := <-done
		if len(took) == 0 {
			return // the error is told
		}
		slices.Sort(took)
		t.Logf("another client's %d calls were answered, in %v at the median and %v at most", len(took), took[len(took)/2], took[len(took)-1])
	}
}
