//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lightServer is an MCP server in a few lines of shell. It answers each call
// with its own process id.
const lightServer = `while read -r line; do
	id=${line#*'"id":'}; id=${id%%,*}
	case $line in
	*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"light","version":"1"}}}' ;;
	*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"pid":"'$$'"}}' ;;
	esac
done
`

// TestHundredSessions has a hundred clients at once, each with a child of its
// own: none is lost or mixed up with another, and afterwards all are gone,
// those that were given up by their clients and those that were not.
func TestHundredSessions(t *testing.T) {
	const sessions = 100
	refit, err := exec.LookPath("mcp-refit")
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "light.sh")
	if err := os.WriteFile(mark, []byte(lightServer), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noneLeft(t, mark) }) // after the proxy has ended
	url := "http://" + background(t, func(a string) []string {
		return []string{refit, "--log-level", "error", "--children", fmt.Sprint(sessions), "--listen", a, "--", "sh", mark}
	}) + "/mcp"

	do := func(method, session, body string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return nil, ""
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res, string(text)
	}
	var all, begun sync.WaitGroup
	begun.Add(sessions)
	pids := make([]string, sessions)
	for i := range sessions {
		all.Go(func() {
			res, text := do(http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			begun.Done()
			if res == nil || !strings.Contains(text, `"light"`) {
				t.Errorf("session %d: %s", i, text)
				return
			}
			begun.Wait() // all are there at once
			session := res.Header.Get("Mcp-Session-Id")
			for id := range 3 { // the same ids in all sessions
				_, text := do(http.MethodPost, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t"}}`, id))
				rest, ok := strings.CutPrefix(text, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"pid":"`, id))
				pid := strings.TrimSuffix(rest, `"}}`)
				if !ok || pids[i] != "" && pids[i] != pid {
					t.Errorf("session %d of process %s: %s", i, pids[i], text)
				}
				pids[i] = pid
			}
			if i%2 == 0 {
				return // until the proxy ends
			}
			if res, _ := do(http.MethodDelete, session, ""); res == nil || res.StatusCode != http.StatusNoContent {
				t.Errorf("session %d is not deleted: %v", i, res)
			}
		})
	}
	all.Wait()
	of := make(map[string]int)
	for i, pid := range pids {
		if other, twice := of[pid]; twice || pid == "" {
			t.Errorf("sessions %d and %d have process %s", other, i, pid)
		}
		of[pid] = i
	}
}
