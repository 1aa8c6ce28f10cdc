//go:build unix

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// soon is a wait of a child that a test wants to see run out.
const soon = 50 * time.Millisecond

func TestChildExitStatus(t *testing.T) {
	for _, tc := range []struct {
		script string
		want   ExitStatus
		text   string
	}{
		{"exit 0", ExitStatus{Code: 0}, "exited with code 0"},
		{"exit 3", ExitStatus{Code: 3}, "exited with code 3"},
		{"exit 255", ExitStatus{Code: 255}, "exited with code 255"},
		{"kill -KILL $$", ExitStatus{Code: 137, Signal: "SIGKILL"}, "was killed by signal 9 (SIGKILL)"},
		{"kill -TERM $$", ExitStatus{Code: 143, Signal: "SIGTERM"}, "was killed by signal 15 (SIGTERM)"},
	} {
		t.Run(tc.script, func(t *testing.T) {
			c := start(t, &Child{Command: []string{"sh", "-c", tc.script}})
			if out, err := io.ReadAll(c.Stdout()); err != nil || len(out) != 0 {
				t.Errorf("stdout: %q, %v", out, err)
			}
			if got := c.Wait(); got != tc.want || got.String() != tc.text {
				t.Errorf("got %+v, %v; want %+v, %s", got, got, tc.want, tc.text)
			}
			if got := c.Wait(); got != tc.want {
				t.Errorf("the second Wait: %+v", got)
			}
		})
	}
}

func TestChildStartErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		name string
		argv []string
		want string // behind `cannot start "NAME": `
		is   error
	}{
		{"not in PATH", []string{"no-such-server"}, "it is not in PATH: executable file not found in $PATH", exec.ErrNotFound},
		{"no such path", []string{dir + "/none"}, "no such file or directory", fs.ErrNotExist},
		{"a directory", []string{dir}, "it is a directory: permission denied", fs.ErrPermission},
		{"not executable", []string{write("plain", "#!/bin/sh\n", 0o600)}, "permission denied", fs.ErrPermission},
		{"no interpreter", []string{write("script", "#!/no/such/node\n", 0o700)},
			"the file is there, but the interpreter that its first line names is not: no such file or directory", fs.ErrNotExist},
		{"no program", []string{write("text", "hello\n", 0o700)}, "exec format error", syscall.ENOEXEC},
		{"two lines", []string{"two\nlines"}, "it is not in PATH: executable file not found in $PATH", exec.ErrNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Child{Command: tc.argv}
			err := c.Start(t.Context())
			want := "cannot start " + quoted(tc.argv[0]) + ": " + tc.want
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v does not wrap %v", err, tc.is)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("more than one line")
			}
		})
	}
	for _, argv := range [][]string{nil, {""}} {
		if err := (&Child{Command: argv}).Start(t.Context()); err == nil || err.Error() != "no command to start" {
			t.Errorf("Command %q: %v", argv, err)
		}
	}
	c := start(t, &Child{Command: []string{"true"}})
	if err := c.Start(t.Context()); err == nil || err.Error() != "the child has been started before" {
		t.Errorf("a second Start: %v", err)
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

func TestChildStreams(t *testing.T) {
	c := start(t, &Child{Command: []string{"sh", "-c", `echo "$GREETING"; cat`}, Env: []string{"GREETING=hello", "PATH=" + os.Getenv("PATH")}})
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // more than a pipe holds
	go func() {
		_, _ = c.Stdin().Write(sent)
		_ = c.Stdin().Close()
	}()
	got, err := io.ReadAll(c.Stdout())
	if err != nil || string(got) != "hello\n"+string(sent) {
		t.Errorf("%d bytes, %v; want a greeting and %d bytes", len(got), err, len(sent))
	}
	if status := c.Wait(); status.Code != 0 {
		t.Error(status)
	}
	if _, err := c.Stdin().Write(sent); err == nil {
		t.Error("a write after the end succeeded")
	}
}

func TestChildGetsBlockingPipes(t *testing.T) {
	c := start(t, &Child{Command: helper("stdio-flags")})
	if got, _ := io.ReadAll(c.Stdout()); string(got) != "true true\ntrue true\n" {
		t.Errorf("non-blocking, which programs in C don't expect: %q", got)
	}
}

func TestShutdown(t *testing.T) {
	long, none := time.Minute, -time.Second
	for _, tc := range []struct {
		name             string
		argv             []string // prints a line when it is ready
		grace, killAfter time.Duration
		want             ExitStatus
	}{
		{"at the end of stdin", []string{"sh", "-c", "echo; cat; exit 4"}, long, long, ExitStatus{Code: 4}},
		{"at SIGTERM", []string{"sh", "-c", "echo; exec sleep 1000"}, soon, long, ExitStatus{Code: 143, Signal: "SIGTERM"}},
		{"at SIGTERM without grace", []string{"sh", "-c", "echo; exec sleep 1000"}, none, long, ExitStatus{Code: 143, Signal: "SIGTERM"}},
		{"at SIGTERM with its own code", []string{"sh", "-c", `trap "exit 5" TERM; echo; while :; do sleep 0.01; done`}, soon, long, ExitStatus{Code: 5}},
		{"stopped", []string{"sh", "-c", "echo; kill -STOP $$; sleep 1000"}, soon, long, ExitStatus{Code: 143, Signal: "SIGTERM"}},
		{"at SIGKILL", helper("stubborn"), soon, soon, ExitStatus{Code: 137, Signal: "SIGKILL"}},
		{"at SIGKILL at once", helper("stubborn"), none, none, ExitStatus{Code: 137, Signal: "SIGKILL"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, &Child{Command: tc.argv, Grace: tc.grace, KillAfter: tc.killAfter})
			readLine(t, bufio.NewReader(c.Stdout()))
			if err := c.Shutdown(); err != nil {
				t.Error(err)
			}
			if got := c.Wait(); got != tc.want {
				t.Errorf("got %+v; want %+v", got, tc.want)
			}
		})
	}
}

func TestContextShutsDown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Child{Command: []string{"sleep", "1000"}, Grace: soon}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := c.Wait(); got.Signal != "SIGTERM" {
		t.Error(got)
	}
}

func TestShutdownEndsABlockedWrite(t *testing.T) {
	c := start(t, &Child{Command: []string{"sleep", "1000"}, Grace: soon})
	blocked := make(chan error)
	go func() {
		_, err := c.Stdin().Write(make([]byte, 1<<21))
		blocked <- err
	}()
	_ = c.Shutdown()
	if err := <-blocked; err == nil {
		t.Error("2 MiB were written to a process that doesn't read")
	}
}

func TestGroupEndsWithItsLeader(t *testing.T) {
	const long = time.Minute
	for _, tc := range []struct {
		name, script     string
		shutdown         bool
		grace, killAfter time.Duration
		want             int
	}{
		{"that exits", `sleep 1000 & echo $!; exit 7`, false, long, long, 7},
		{"that exits, ignoring SIGTERM", `trap "" TERM; sleep 1000 & echo $!; exit 7`, false, long, soon, 7},
		{"that crashes", `sleep 1000 & echo $!; kill -KILL $$`, false, long, long, 137},
		{"that is shut down", `sleep 1000 & echo $!; wait`, true, soon, long, 143},
		{"that is shut down, ignoring SIGTERM", `trap "" TERM; sleep 1000 & echo $!; wait; sleep 1000`, true, soon, soon, 137},
		{"that heeds the end of stdin", `sleep 1000 & echo $!; cat; exit 8`, true, long, long, 8},
		{"by way of another shell", `sh -c 'sleep 1000 & echo $!; wait' & wait`, true, soon, long, 143},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, &Child{
				Command: []string{"sh", "-c", tc.script}, Stderr: io.Discard,
				Grace: tc.grace, KillAfter: tc.killAfter,
			})
			out := bufio.NewReader(c.Stdout())
			grandchild := readPID(t, out)
			if tc.shutdown {
				if err := c.Shutdown(); err != nil {
					t.Error(err)
				}
			}
			// The grandchild holds stdout, which ends all the same.
			if rest, err := io.ReadAll(out); err != nil || len(rest) != 0 {
				t.Errorf("stdout: %q, %v", rest, err)
			}
			if got := c.Wait(); got.Code != tc.want {
				t.Errorf("%v; want code %d", got, tc.want)
			}
			if !gone(grandchild) {
				t.Error("the grandchild is still there")
			}
		})
	}
}

func TestStdoutEndsThoughHeldOutsideTheGroup(t *testing.T) {
	for _, tc := range []struct {
		name   string
		holder string // run outside the group
		late   bool   // nothing is read before the cut
		atMost int    // bytes
	}{
		{"by one who is silent", "exec sleep 1000", false, heldBytes + 10},
		{"by one who is silent, to a slow reader", "exec sleep 1000", true, heldBytes + 10},
		{"by one who writes for ever", "exec cat /dev/zero", true, maxQueued},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, &Child{Command: helper("hold", tc.holder), DrainDelay: soon, Stderr: io.Discard})
			if tc.late {
				c.Wait()
				raw, err := c.stdout.file.SyscallConn()
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "the read deadline has passed", func() bool {
					err := raw.Read(func(uintptr) bool { return true })
					return errors.Is(err, os.ErrDeadlineExceeded)
				})
			}
			got, err := io.ReadAll(c.Stdout())
			if err != nil || len(got) < heldBytes || len(got) > tc.atMost {
				t.Fatalf("%d bytes, %v; want %d to %d", len(got), err, heldBytes, tc.atMost)
			}
			readPID(t, bufio.NewReader(bytes.NewReader(got[heldBytes:])))
		})
	}
}

func TestCleanShutdownLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c := &Child{Command: []string{"sh", "-c", "echo; sleep 1000 & cat"}, Watchdog: helper("watchdog"), Stderr: new(bytes.Buffer)}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	readLine(t, bufio.NewReader(c.Stdout()))
	if err := c.Shutdown(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(c.Stdout()); err != nil || len(rest) != 0 {
		t.Errorf("stdout: %q, %v", rest, err)
	}
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a child of ours is left: %v", err)
	}
	if _, err := c.stdout.file.Stat(); err == nil {
		t.Error("the pipe of stdout is still open")
	}
	goleak.VerifyNone(t, before)
}

func TestWarnOfAWatchdogThatDoesNotStart(t *testing.T) {
	warned := make(chan error, 1)
	c := start(t, &Child{Command: []string{"cat"}, Watchdog: []string{"no-such-watchdog"}, Warn: func(err error) { warned <- err }})
	if err := <-warned; !errors.Is(err, exec.ErrNotFound) || !strings.HasPrefix(err.Error(), "no watchdog: ") {
		t.Error(err)
	}
	_ = c.Stdin().Close()
	if got := c.Wait(); got.Code != 0 {
		t.Errorf("the child %v", got)
	}
}

func TestRunWatchdog(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	group, err := startGroup(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := group.String()[len("process group "):]
	// In a process of its own, since it ignores signals from then on.
	run := func(in string) int {
		dog := exec.Command(os.Args[0], helper("watchdog")[1:]...)
		dog.Stdin = strings.NewReader(in)
		_ = dog.Run()
		return dog.ProcessState.ExitCode()
	}
	for _, line := range []string{"0", "1", "-1", "-" + id, "x", id + " " + id, strings.Repeat("9", 100)} {
		if got := run(line + "\n"); got != 2 {
			t.Errorf("the group %q: exit code %d; want 2", line, got)
		}
	}
	for what, in := range map[string]string{
		"that all is well": id + "\n\n", "that there is no child": "\n", "nothing": "", "half a number": id,
	} {
		if got := run(in); got != 0 || !group.alive() {
			t.Errorf("told %s: exit code %d, and the group is alive: %v", what, got, group.alive())
		}
	}
	if got := run(id + "\n"); got != 0 {
		t.Errorf("told the group alone: exit code %d", got)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("the group's leader: %v", err)
	}
}
