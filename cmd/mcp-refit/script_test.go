//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   scriptExits,
			"signal":  scriptSignal,
			"appears": scriptAppears,
			"gone":    scriptGone,
		},
	})
}

// scriptDeadline is how long a script waits for what must come.
const scriptDeadline = 20 * time.Second

// poll waits until there is what is looked for.
func poll(ts *testscript.TestScript, what string, found func() bool) {
	deadline := time.Now().Add(scriptDeadline)
	for tick := time.NewTicker(5 * time.Millisecond); !found(); <-tick.C {
		if time.Now().After(deadline) {
			ts.Fatalf("no sign of it in %v: %s", scriptDeadline, what)
		}
	}
}

// exits CODE COMMAND [ARG…] runs a command, which is to exit with the code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [arg...]")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// signal NAME FILE sends a signal to the process whose number is in the file.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal name file")
	}
	signals := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}

// appears FILE waits for a file that is not empty.
func scriptAppears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears file")
	}
	poll(ts, args[0], func() bool {
		info, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil && info.Size() > 0
	})
}

// gone FILE… waits until none of the processes whose numbers are in the files
// is left in the process table.
func scriptGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: gone file...")
	}
	for _, file := range args {
		pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(file)))
		ts.Check(err)
		poll(ts, "the end of process "+file, func() bool { return !running(pid) })
	}
}

// running reports whether a process is there and no zombie that waits for a
// parent in whose place nobody is.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(stat)), "Z")
}
