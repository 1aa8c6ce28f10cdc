package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// However the proxy ends, the worker that decoded its icons ends with it, seen
// in the process table.
func TestIconWorkerEndsWithProxy(t *testing.T) {
	for name, end := range map[string]func(*started){
		"its input ends": func(s *started) { s.in.Close() },
		"it is stopped":  func(s *started) { s.signal(syscall.SIGTERM) },
		"it is killed":   func(s *started) { s.signal(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			policy := filepath.Join(t.TempDir(), "policy.yaml")
			write(t, policy, "version: 1\nicons: {deadline: 30s}\n")
			s := start(t, "--config="+policy, "--log-level=error", "--", "drawing-server")
			if got := s.list(); !strings.Contains(got, "data:image/png;base64,") {
				t.Fatalf("no icon was decoded: %s", got)
			}
			workers := iconWorkers(t, s.cmd.Process.Pid)
			if len(workers) != 1 {
				t.Fatalf("the workers are %v", workers)
			}
			end(s)
			_ = s.cmd.Wait() // the code is the signal's or the child's
			deadline := time.Now().Add(scriptDeadline)
			for tick := time.NewTicker(5 * time.Millisecond); isIconWorker(workers[0]); <-tick.C {
				if time.Now().After(deadline) {
					t.Fatal("the worker is still there")
				}
			}
		})
	}
}

// A worker that hangs and is then killed, in the middle of an inline: the
// message goes out in time without the icon, and later ones have it again.
func TestIconWorkerKilled(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, "version: 1\nicons: {deadline: 100ms, worker: {timeout: 60s}}\n")
	s := start(t, "--config="+policy, "--log-level=error", "--", "drawing-server")
	inlined := func(id int) {
		t.Helper()
		until(t, "the icon is inlined", func() bool { return strings.Contains(s.ask(id), "data:image/png;base64,") })
	}
	inlined(1)
	workers := iconWorkers(t, s.cmd.Process.Pid)
	if len(workers) != 1 {
		t.Fatalf("the workers are %v", workers)
	}
	if err := syscall.Kill(workers[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if got := s.ask(2); got != `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"t"}]}}`+"\n" {
		t.Errorf("while the worker hangs: %s", got)
	}
	if got := s.ask(1); !strings.Contains(got, "data:image/png;base64,") {
		t.Errorf("an icon that is known, while the worker hangs: %s", got)
	}
	if err := syscall.Kill(workers[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	inlined(2)
	if after := iconWorkers(t, s.cmd.Process.Pid); len(after) != 1 || after[0] == workers[0] {
		t.Errorf("the workers are %v, one was %d", after, workers[0])
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// iconWorkers are the children of a process that decode icons.
func iconWorkers(t *testing.T, parent int) (pids []int) {
	t.Helper()
	tables, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		stat, err := os.ReadFile(table)
		if err != nil {
			continue // it has ended
		}
		// proc(5): the state and the parent stand behind the name in parentheses.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(table)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) && isIconWorker(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isIconWorker says whether a process decodes icons. One that has ended has no
// arguments, even where nobody has waited for it.
func isIconWorker(pid int) bool {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return bytes.HasSuffix(args, []byte("\x00"+argIconWorker+"\x00"))
}

// drawingServer is a server whose tool has one icon, at the URL that it is
// started with, or else as data that are others for each id.
func drawingServer() {
	var id int
	for {
		if _, err := fmt.Scanf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", &id); err != nil {
			return
		}
		drawing := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h%dv8H0z"/></svg>`, id)
		src := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(drawing))
		if len(os.Args) > 1 {
			src = os.Args[1]
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"t","icons":[{"src":"%s"}]}]}}`+"\n", id, src)
	}
}

func init() { programs["drawing-server"] = drawingServer }
