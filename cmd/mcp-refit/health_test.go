package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// healthOf is that of a server that starts by the given command.
func healthOf(t *testing.T, sessions bool, command ...string) *health {
	t.Helper()
	h := newHealth(t.Context(), &target{command: command}, sessions, func() (*proxy.Child, error) {
		child := &proxy.Child{Command: command, Stderr: io.Discard, Grace: 10 * time.Second}
		return child, child.Start(context.Background())
	})
	t.Cleanup(h.close)
	return h
}

// What is said of children that are started for sessions: nothing good before
// one has answered, and nothing good again after one has failed.
func TestHealthOfChildren(t *testing.T) {
	for _, c := range []struct {
		name    string
		command []string
		want    string // "" if it is in health
	}{
		{"it answers", []string{"echo-server"}, ""},
		{"no such program", []string{"no-such-program"}, "no-such-program"},
		{"it ends at once", []string{"mcp-refit", "--no-such-flag"}, "the server exited with code 2 before it said anything"},
		{"it says something else", []string{"mcp-refit", "version"}, "the server exited with code 0 before it said anything"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := healthOf(t, true, c.command...)
			if err := h.reachable(t.Context()); err == nil || c.want != "no-such-program" && !errors.Is(err, errNotTried) {
				t.Errorf("before a try: %v", err)
			}
			h.tries.Wait()
			switch err := h.reachable(t.Context()); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A failure is told, and tried again after a while: not at every probe, and
// with success once the server is well.
func TestHealthRecovers(t *testing.T) {
	h := healthOf(t, true, "echo-server")
	_ = h.reachable(t.Context())
	h.tries.Wait()
	h.set(errors.New("a child has failed"))
	if err := h.reachable(t.Context()); err == nil || err.Error() != "a child has failed" {
		t.Errorf("after a failure: %v", err)
	}
	h.tries.Wait()
	if err := h.reachable(t.Context()); err == nil {
		t.Error("it was tried again at once")
	}
	h.mu.Lock()
	h.again = time.Time{}
	h.mu.Unlock()
	_ = h.reachable(t.Context())
	h.tries.Wait()
	if err := h.reachable(t.Context()); err != nil {
		t.Errorf("after a while: %v", err)
	}
}

// A child that the process wraps is in health while it runs, and is never
// started by a probe.
func TestHealthOfOneChild(t *testing.T) {
	h := healthOf(t, false, "echo-server")
	if err := h.reachable(t.Context()); !errors.Is(err, errNotRunning) {
		t.Errorf("before: %v", err)
	}
	h.set(nil)
	if err := h.reachable(t.Context()); err != nil {
		t.Error(err)
	}
	h.set(errors.New("the server exited with code 1"))
	if err := h.reachable(t.Context()); err == nil || h.trying {
		t.Errorf("after: %v", err)
	}
}

// A try that hangs ends with the process.
func TestHealthClosed(t *testing.T) {
	h := healthOf(t, true, "silent-server")
	_ = h.reachable(t.Context())
	h.close()
	if err := h.reachable(t.Context()); err == nil {
		t.Error("a server that says nothing is in health")
	}
}
