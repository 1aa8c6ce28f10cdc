//go:build unix

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperArg makes the test binary one of the processes below instead.
const helperArg = "child-test-helper"

// heldBytes is how many bytes the helper "hold" writes, in one piece: a pipe
// takes less than its capacity of small ones.
const heldBytes = 40_000

func init() {
	if len(os.Args) > 2 && os.Args[1] == helperArg {
		os.Exit(helperMain(os.Args[2], os.Args[3:]))
	}
}

// helper is the command line of a helper process.
func helper(args ...string) []string {
	return append([]string{os.Args[0], helperArg}, args...)
}

func helperMain(kind string, args []string) int {
	switch kind {
	case "watchdog":
		return RunWatchdog(os.Stdin)
	case "stubborn": // heeds neither the end of its stdin nor SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		waitForKill()
	case "parent": // a proxy around args, until it is killed
		c := Child{Command: args, Watchdog: helper("watchdog")}
		if err := c.Start(context.Background()); err != nil {
			return 1
		}
		_, _ = io.Copy(os.Stdout, c.Stdout())
		waitForKill()
	case "hold": // leaves a process outside the group that holds stdout and stderr
		_, _ = os.Stdout.Write(bytes.Repeat([]byte{'y'}, heldBytes))
		cmd := exec.Command("sh", "-c", "read x; "+args[0])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		begin, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			return 1
		}
		fmt.Println(cmd.Process.Pid)
		_ = begin.Close()
		return 0
	case "stdio-flags": // the file status flags of stdin and stdout
		for fd := range 2 {
			flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
			fmt.Println(flags&syscall.O_NONBLOCK == 0, errno == 0)
		}
		return 0
	}
	return helperMainOS(kind, args)
}

func waitForKill() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	<-never
}

// start starts c and ends it with the test.
func start(t *testing.T, c *Child) *Child {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// readLine reads one line without its end.
func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// readPID reads a line that is a process's number, and ends that process with
// the test, should it still be there.
func readPID(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	pid, err := strconv.Atoi(readLine(t, r))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// eventually waits until what holds; the deadline is only for a failing test.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// gone reports whether process pid has ended; a zombie has.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " Z")
}
