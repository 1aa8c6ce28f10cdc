package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func helperMainOS(kind string, args []string) int {
	if kind != "reaper" {
		return 99
	}
	// Orphans become our children, as they do where we are process 1.
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return 98
	}
	c := Child{Command: args}
	if c.Start(context.Background()) != nil {
		return 97
	}
	_, _ = io.Copy(io.Discard, c.Stdout())
	c.Wait()
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		return 96
	}
	return 0
}

func TestOrphansAreReapedByProcessOne(t *testing.T) {
	c := start(t, &Child{Command: helper("reaper", "sh", "-c", "sleep 1000 & exit 0")})
	if got := c.Wait(); got.Code != 0 {
		t.Errorf("the proxy %v: an ended process of the group was left to it as a zombie", got)
	}
}

func TestZombiesDoNotCountAsMembers(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	group, err := startGroup(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !group.alive() {
		t.Error("a running process does not count")
	}
	group.kill()
	eventually(t, "the zombie, which nobody has waited for, is no member", func() bool { return !group.alive() })
	if err := syscall.Kill(-group.id, 0); err != nil {
		t.Errorf("there was no zombie to see: %v", err)
	}
	_ = cmd.Wait()
}

// watchdogOf finds the watchdog of a child: the one of the same parent.
func watchdogOf(t *testing.T, child int) int {
	t.Helper()
	var found int
	eventually(t, "a watchdog", func() bool {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			line, _ := os.ReadFile(file)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if strings.HasSuffix(string(line), "\x00watchdog\x00") && parentOf(pid) == parentOf(child) {
				found = pid
				return true
			}
		}
		return false
	})
	return found
}

// parentOf is the parent of a process, as /proc tells it.
func parentOf(pid int) string {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, parent, _ := strings.Cut(string(status), "PPid:\t")
	parent, _, _ = strings.Cut(parent, "\n")
	return parent
}

// ignoresSignal reports whether process pid has set sig to be ignored.
func ignoresSignal(pid int, sig syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, mask, _ := strings.Cut(string(status), "SigIgn:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	bits, _ := strconv.ParseUint(mask, 16, 64)
	return bits&(1<<(sig-1)) != 0
}

func TestWatchdogEndsTheGroupOfAKilledParent(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"that heeds SIGTERM", `sleep 1000 & echo $$; echo $!; wait`},
		{"that does not", `trap "" TERM; sleep 1000 & echo $$; echo $!; while :; do wait; sleep 1; done`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			// Not a Child: its own watchdog and group would do the work.
			parent := exec.Command(os.Args[0], helper("parent", "sh", "-c", tc.script)[1:]...)
			stdout, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			child, grandchild := readPID(t, out), readPID(t, out)
			dog := watchdogOf(t, child)
			eventually(t, "the watchdog ignores SIGTERM", func() bool { return ignoresSignal(dog, syscall.SIGTERM) })
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
				_ = syscall.Kill(dog, sig)
			}
			if gone(child) || gone(grandchild) || gone(dog) {
				t.Fatal("one of them ended before the parent was killed")
			}

			_ = parent.Process.Kill()
			_ = parent.Wait()
			eventually(t, "the child has ended", func() bool { return gone(child) })
			eventually(t, "the grandchild has ended", func() bool { return gone(grandchild) })
			eventually(t, "the watchdog has ended", func() bool { return gone(dog) })
		})
	}
}

func TestWatchdogIsOutOfReach(t *testing.T) {
	c := start(t, &Child{Command: []string{"sh", "-c", "echo $$; cat"}, Watchdog: helper("watchdog")})
	child := readPID(t, bufio.NewReader(c.Stdout()))
	dog := watchdogOf(t, child)
	if sid, err := unix.Getsid(dog); err != nil || sid != dog {
		t.Errorf("its session is %d, %v; want one of its own", sid, err)
	}
	// The watchdog's stdin is the pipe. That its other end is nowhere but
	// here is what makes the end of file mean that we are gone.
	pipe, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", dog))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{dog, child} {
		ends, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, end := range ends {
			if to, _ := os.Readlink(end); to == pipe && (pid == child || filepath.Base(end) != "0") {
				t.Errorf("%s has the watchdog's pipe", end)
			}
		}
	}
	if env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", dog)); strings.Contains(string(env), "PATH=") {
		t.Error("the watchdog has our environment")
	}
	if err := c.Shutdown(); err != nil {
		t.Error(err)
	}
	if !gone(dog) {
		t.Error("the watchdog is still there after a clean shutdown")
	}
}
