//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the proxy may have in memory, in MB, as the system counts it.
const (
	barAtRest   = 20
	barSessions = 250 // loadSessions idle sessions
	barInFlight = 25  // and three times the largest message, under load

	loadSessions = 5000
	loadMessage  = 50 // MB
)

// loadMemory prints a table of what the proxy has in memory.
func loadMemory(t *testing.T, program string) {
	fmt.Print("\n| memory | resident | bar |\n| --- | --- | --- |\n")
	for _, m := range []struct {
		name    string
		bar     float64
		measure func(t *testing.T, program string) float64
	}{
		{"stdio, at rest", barAtRest, restStdio},
		{"HTTP, at rest", barAtRest, restHTTP},
		{fmt.Sprintf("stdio, %d MB in a message", loadMessage), barInFlight + 3*loadMessage, largeStdio},
		{fmt.Sprintf("HTTP, %d MB in a message", loadMessage), barInFlight + 3*loadMessage, largeHTTP},
		{fmt.Sprintf("HTTP, %d idle sessions, each with its stream", loadSessions), barSessions, idleSessions},
	} {
		t.Run(m.name, func(t *testing.T) {
			got := m.measure(t, program)
			fmt.Printf("| %s | %.0f MB | %.0f MB |\n", m.name, got, m.bar)
			if got > m.bar {
				t.Errorf("%.0f MB are over the bar of %.0f MB", got, m.bar)
			}
		})
	}
}

func restStdio(t *testing.T, program string) float64 {
	return loadWay{name: "at rest", command: []string{program, "--", "load-server"}}.stdio(t, 100, 1).resident
}

// loadFront starts a server and the proxy in front of it.
func loadFront(t *testing.T, program string) (w loadWay, pid int) {
	server, address := freeAddress(t), freeAddress(t)
	to := "http://" + server + "/mcp"
	loadWay{command: []string{"load-server", server}, url: to}.serve(t)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, policy, fmt.Sprintf("version: 1\nlimits: {sessions: %d}\n", 2*loadSessions))
	w = loadWay{name: "mcp-refit", command: []string{program, "--config", policy, "--log-level", "error", "--listen", address, to}, url: "http://" + address + "/mcp"}
	pid, _ = w.serve(t)
	return w, pid
}

func restHTTP(t *testing.T, program string) float64 {
	w, pid := loadFront(t, program)
	return w.http(t, pid, 100, 1).resident
}

// largeStdio is the most that the proxy has had in memory when large answers
// have passed, one after the other.
func largeStdio(t *testing.T, program string) float64 {
	cmd := exec.CommandContext(t.Context(), program, "--", "load-server")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReaderSize(stdout, 64<<10)
	for id := range 5 {
		if _, err := in.Write(append(loadLarge(id, loadMessage<<20), '\n')); err != nil {
			t.Fatal(err)
		}
		begin, size := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result"`, id), 0
		for more := true; more; {
			piece, err := out.ReadSlice('\n')
			if more = err == bufio.ErrBufferFull; err != nil && !more {
				t.Fatal(err)
			}
			if size == 0 && !strings.HasPrefix(string(piece), begin) {
				t.Fatalf("got %.200s", piece)
			}
			size += len(piece)
		}
		if size < loadMessage<<20 {
			t.Fatalf("an answer of %d bytes", size)
		}
	}
	most := memoryOf(cmd.Process.Pid, "VmHWM:")
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	return most
}

// largeHTTP is the same over HTTP.
func largeHTTP(t *testing.T, program string) float64 {
	w, pid := loadFront(t, program)
	for id := range 5 {
		answer, err := loadPost(t.Context(), http.DefaultClient, w.url, loadLarge(id, loadMessage<<20))
		if err != nil || len(answer) < loadMessage<<20 || !bytes.HasPrefix(answer, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"result"`, id)) {
			t.Fatalf("%d bytes, %.200s, %v", len(answer), answer, err)
		}
	}
	return memoryOf(pid, "VmHWM:")
}

// idleSessions is what the proxy has in memory when so many clients have begun
// a session, and have its stream open.
func idleSessions(t *testing.T, program string) float64 {
	w, pid := loadFront(t, program)
	address := strings.TrimSuffix(strings.TrimPrefix(w.url, "http://"), "/mcp")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range loadSessions {
		res, text := ask(t, client, http.MethodPost, w.url, "", loadInit)
		session := res.Header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatal(text)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\n\r\n", session)
		stream, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", stream, err)
		}
	}
	return resident(pid)
}
