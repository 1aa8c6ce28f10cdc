package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// drawingBack answers tools/list with a tool whose icon is another one for each
// id, and all else with nothing.
func drawingBack(w http.ResponseWriter, r *http.Request) {
	var call struct {
		ID     int
		Method string
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	result := "{}"
	if call.Method == "tools/list" {
		drawing := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h%dv8H0z"/></svg>`, call.ID)
		result = `{"tools":[{"name":"t","icons":[{"src":"data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString([]byte(drawing)) + `"}]}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, call.ID, result)
}

// What befalls the audit, the policy file or the worker of icons while one
// session needs it, another one does not feel.
func TestFaultsFeltByNoOther(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(drawingBack))
	defer back.Close()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	const inlined = "data:image/png;base64,"
	list := func(t *testing.T, url string, id int) string {
		_, text := ask(t, http.DefaultClient, http.MethodPost, url, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id))
		return text
	}
	for _, test := range []struct {
		name, flag string
		fault      func(t *testing.T, s *started, url string)
	}{
		{"the audit's disk is full", "--audit=/dev/full", func(t *testing.T, s *started, url string) {
			for id := range 50 {
				if got := list(t, url, id+1); !strings.Contains(got, `"tools":[{"name":"t"`) {
					t.Fatalf("got %s", got)
				}
			}
			s.logged("the audit can't be written, its lines are dropped")
		}},
		{"the policy file is broken", "--config=" + file, func(t *testing.T, s *started, _ string) {
			for range 5 {
				write(t, file+".new", "version: 1\nicons: {default: strip")
				rename(t, file+".new", file)
				s.logged("the policy was not reloaded; the one before it goes on")
			}
		}},
		{"the icon worker hangs and is killed", "--config=" + file, func(t *testing.T, s *started, url string) {
			until(t, "an icon is inlined", func() bool { return strings.Contains(list(t, url, 1), inlined) })
			workers := iconWorkers(t, s.cmd.Process.Pid)
			if len(workers) != 1 {
				t.Fatalf("the workers are %v", workers)
			}
			for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
				if err := syscall.Kill(workers[0], signal); err != nil {
					t.Fatal(err)
				}
				if got := list(t, url, 2); !strings.Contains(got, `"name":"t"`) || signal == syscall.SIGSTOP && strings.Contains(got, "icons") {
					t.Errorf("after signal %v: %s", signal, got)
				}
			}
			until(t, "icons are inlined again", func() bool { return strings.Contains(list(t, url, 2), inlined) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, file, "version: 1\nicons: {deadline: 100ms, worker: {timeout: 60s}}\n")
			s := start(t, "--log-format=json", test.flag, "--listen", "127.0.0.1:0", back.URL+"/mcp")
			url := "http://" + s.address("serving") + "/mcp"
			end := meanwhile(t, func(c *http.Client, id int) error {
				return answers(c, url, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id), fmt.Sprintf(`"id":%d,"result"`, id))
			})
			test.fault(t, s, url)
			end()
			s.ends(t, "panic")
		})
	}
}
