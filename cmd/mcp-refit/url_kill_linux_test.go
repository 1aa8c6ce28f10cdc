package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// A liveServer keeps count of a session of 2025-11-25.
type liveServer struct {
	open    atomic.Int32 // requests
	streams atomic.Int32 // of those, the ones that are a stream
	deleted atomic.Int32
	release chan struct{} // closed when a call may be answered
}

func (l *liveServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.open.Add(1)
	defer l.open.Add(-1)
	body, _ := io.ReadAll(r.Body)
	reply := func(id, result string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{%s}}`, id, result)
	}
	switch text := string(body); {
	case r.Method == http.MethodDelete:
		l.deleted.Add(1)
	case strings.Contains(text, `"initialize"`):
		w.Header().Set("Mcp-Session-Id", "s1")
		reply("0", `"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}`)
	case strings.Contains(text, `"tools/list"`):
		reply("1", `"tools":[{"name":"t","icons":[{"src":"data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA4IDgiPjxwYXRoIGQ9Ik0wIDBoOHY4SDB6Ii8+PC9zdmc+"}]}]`)
	case r.Method == http.MethodGet, strings.Contains(text, `"tools/call"`):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": open\n\n")
		w.(http.Flusher).Flush()
		l.streams.Add(1)
		select {
		case <-r.Context().Done():
		case <-l.release:
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":2,"result":{}}`+"\n\n")
		}
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// However a process in front of a server at a URL ends, no process and no stream
// is left of it. What its client waits for is answered, and its session deleted,
// but where it is killed.
func TestURLProcessKilled(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`
	const answered = `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"mcp-refit: this proxy was ended before the server answered"}}` + "\n"
	for _, way := range []struct {
		name    string
		end     func(*started, *liveServer)
		reads   bool // the client gets what is told at the end
		deletes int32
	}{
		{"by SIGTERM", func(s *started, _ *liveServer) { s.signal(syscall.SIGTERM) }, true, 1},
		{"by SIGKILL", func(s *started, _ *liveServer) { s.signal(syscall.SIGKILL) }, false, 0},
		{"by the end of its stdin", func(s *started, _ *liveServer) { s.in.Close() }, true, 1},
		{"by the end of its stdout", func(s *started, l *liveServer) {
			s.stdout.Close()
			close(l.release)
			s.in.Close()
		}, false, 1},
	} {
		for name, say := range map[string]string{"idle": "", "a call is under way": call} {
			t.Run(name+", "+way.name, func(t *testing.T) {
				l := &liveServer{release: make(chan struct{})}
				server := httptest.NewServer(l)
				defer server.Close()
				policy := filepath.Join(t.TempDir(), "policy.yaml")
				write(t, policy, "version: 1\nicons: {deadline: 30s}\nlimits: {grace: 100ms}\n")
				s := start(t, "--config="+policy, "--log-level=error", "--no-login", server.URL+"/mcp")
				reachStep(t, s, l, say)
				workers := iconWorkers(t, s.cmd.Process.Pid)
				if len(workers) != 1 {
					t.Fatalf("the workers are %v", workers)
				}
				way.end(s, l)
				if way.name != "by the end of its stdout" {
					want := ""
					if way.reads && say != "" {
						want = answered
					}
					if got, _ := io.ReadAll(s.out); string(got) != want {
						t.Errorf("the client got %q, want %q", got, want)
					}
				}
				_ = s.cmd.Wait() // the code is the signal's
				until(t, "its worker has ended", func() bool { return !isIconWorker(workers[0]) })
				until(t, "no request is left", func() bool { return l.open.Load() == 0 })
				if n := l.deleted.Load(); n != way.deletes {
					t.Errorf("%d DELETEs, want %d", n, way.deletes)
				}
			})
		}
	}
}

// reachStep takes a session to where its GET stream is open, an icon has been
// decoded, and what is given has been said.
func reachStep(t *testing.T, s *started, l *liveServer, say string) {
	t.Helper()
	send := func(line string) {
		t.Helper()
		if _, err := io.WriteString(s.in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if line, err := s.out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":0,"result"`) {
		t.Fatalf("initialize was answered %q, %v", line, err)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := s.list(); !strings.Contains(got, "data:image/png;base64,") {
		t.Fatalf("no icon was decoded: %s", got)
	}
	streams := int32(1)
	if say != "" {
		send(say)
		streams++
	}
	until(t, "the streams are open", func() bool { return l.streams.Load() == streams })
}
