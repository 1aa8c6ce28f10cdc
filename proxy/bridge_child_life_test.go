//go:build unix

package proxy

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A life is a session in front of a child, at some step of it.
type life struct {
	bridge
	mark    string // in the command line of the child, and of no other process
	idle    atomic.Int64
	header  headers
	open    []<-chan string // each gets what a request was answered, once that is over
	abandon context.CancelFunc
	ctx     context.Context
}

// start sends a request whose answer may take long.
func (l *life) start(t *testing.T, method, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(l.ctx, method, l.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", bothTypes)
	for k, v := range l.header {
		r.Header.Set(k, v)
	}
	answered := make(chan string, 1)
	l.open = append(l.open, answered)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			b = append(b, err.Error()...)
		}
		answered <- string(b)
	}()
}

// only is the session that there is, nil if it has ended.
func (l *life) only() *childSession {
	l.children.mu.Lock()
	defer l.children.mu.Unlock()
	for _, s := range l.children.sessions {
		return s
	}
	return nil
}

// processes are those of the child, of which the table has the command lines.
func (l *life) processes(t *testing.T) (pids []int) {
	t.Helper()
	table, err := exec.Command("ps", "-A", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(pid); err == nil && strings.Contains(args, l.mark) {
			pids = append(pids, n)
		}
	}
	return pids
}

// signal sends a signal to the child.
func (l *life) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	for _, pid := range l.processes(t) {
		_ = syscall.Kill(pid, s) // it may be gone already
	}
}

// TestBridgeSessionKilled ends a session in each way at each step of its life:
// whoever waits has an answer, and nothing is left of it, no process either.
func TestBridgeSessionKilled(t *testing.T) {
	begun := func(t *testing.T, l *life) { l.header = l.session(t) }
	initialized := func(t *testing.T, l *life) {
		begun(t, l)
		if status, _ := l.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, l.header); status != http.StatusAccepted {
			t.Errorf("notification: %d", status)
		}
	}
	calling := func(tool string) func(*testing.T, *life) {
		return func(t *testing.T, l *life) {
			initialized(t, l)
			l.start(t, http.MethodPost, toolCall("1", tool))
			l.waitFor(1)
		}
	}
	steps := []struct {
		name  string
		mute  string // the method that the child does not answer
		reach func(t *testing.T, l *life)
		says  bool // its last request is to be answered with an error
	}{
		{"initialize is on its way", "initialize", func(t *testing.T, l *life) {
			l.start(t, http.MethodPost, initialize)
			l.waitFor(1)
		}, true},
		{"initialize was answered", "", begun, false},
		{"it was initialized", "", initialized, false},
		{"the GET stream is open", "", func(t *testing.T, l *life) {
			initialized(t, l)
			l.start(t, http.MethodGet, "")
			for s := l.only(); !s.standing.attached(); {
				runtime.Gosched()
			}
		}, false},
		{"a call is under way", "", calling("hang"), true},
		{"the child has asked", "", calling("ask"), true},
		{"the client was cut off from a call", "", func(t *testing.T, l *life) {
			calling("ask")(t, l)
			l.cut(t)
		}, false},
	}
	ways := map[string]func(t *testing.T, l *life){
		"by DELETE": func(t *testing.T, l *life) {
			if res := l.do(t, http.MethodDelete, "/mcp", "", l.header); res.StatusCode != http.StatusNoContent {
				t.Errorf("DELETE: %d", res.StatusCode)
			}
		},
		"by its lifetime": func(_ *testing.T, l *life) { l.only().close("the session has lasted as long as it may") },
		"by the client's silence": func(t *testing.T, l *life) {
			l.idle.Store(int64(time.Millisecond))
			l.abandon()
			if l.header != nil {
				l.post(t, `{"jsonrpc":"2.0","method":"notifications/x"}`, l.header) // the silence begins anew
			}
		},
		"by the proxy's end":      func(_ *testing.T, l *life) { l.children.Close() },
		"by SIGKILL to the child": func(t *testing.T, l *life) { l.signal(t, syscall.SIGKILL) },
		"by SIGTERM to the child": func(t *testing.T, l *life) { l.signal(t, syscall.SIGTERM) },
	}
	for _, step := range steps {
		for way, end := range ways {
			if step.mute == "initialize" && way == "by DELETE" {
				continue // the client knows no id yet
			}
			t.Run(step.name+", ended "+way, func(t *testing.T) {
				noLeak(t)
				l := newLife(t, step.mute)
				step.reach(t, l)
				if len(l.processes(t)) == 0 {
					t.Error("there is no child")
				}
				end(t, l)
				for i, answered := range l.open {
					got := <-answered
					if last := i == len(l.open)-1; last && step.says && way != "by the client's silence" && !strings.Contains(got, `"error"`) {
						t.Errorf("the request was answered %q", got)
					}
				}
				l.none(t)
				if s := l.only(); s != nil {
					t.Error("the session is still there")
				}
				if left := l.processes(t); len(left) != 0 {
					t.Errorf("processes %v are left", left)
				}
				if l.header != nil && way != "by the proxy's end" {
					if status, _ := l.post(t, toolCall("9", "echo"), l.header); status != http.StatusNotFound {
						t.Errorf("a call in the session that has ended: %d", status)
					}
				}
			})
		}
	}
}

func newLife(t *testing.T, mute string) *life {
	l := &life{mark: t.TempDir()}
	l.idle.Store(int64(time.Hour))
	command := []string{os.Args[0], scriptedArg, l.mark}
	if mute != "" {
		command = []string{os.Args[0], hostileArg, mute, "mute", l.mark}
	}
	l.bridge = startBridge(t, func(c *ChildTransport) {
		c.Limits = func() ChildLimits { return ChildLimits{Idle: time.Duration(l.idle.Load())} }
		c.Start = func() (*Child, error) {
			child := &Child{Command: command, Stderr: discard{}}
			return child, child.Start(context.Background())
		}
	})
	l.ctx, l.abandon = context.WithCancel(context.Background())
	t.Cleanup(l.abandon)
	return l
}

// cut breaks off what the client has open. It may come back.
func (l *life) cut(t *testing.T) {
	t.Helper()
	l.abandon()
	for _, answered := range l.open {
		<-answered
	}
	l.open = nil
	l.ctx, l.abandon = context.WithCancel(context.Background())
	t.Cleanup(l.abandon)
}
