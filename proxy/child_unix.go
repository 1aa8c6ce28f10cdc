//go:build unix

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// killedStatus is told of a child that SIGKILL has not ended yet.
var killedStatus = ExitStatus{Code: 128 + int(syscall.SIGKILL), Signal: "SIGKILL"}

func childCommand(argv []string) (*exec.Cmd, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	return cmd, cmd.Err
}

func exitStatus(state *os.ProcessState) ExitStatus {
	if state == nil {
		return ExitStatus{Code: 1}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		sig := ws.Signal()
		name := unix.SignalName(sig)
		if name == "" { // a real-time signal
			name = "SIG" + strconv.Itoa(int(sig))
		}
		return ExitStatus{Code: 128 + int(sig), Signal: name}
	}
	return ExitStatus{Code: state.ExitCode()}
}

// processGroup is the child's process group, named by its leader's pid.
//
// A signal to it can't hit a stranger while it has members: POSIX (Base
// Definitions, "Process ID Reuse") keeps a pid from being reused as long as a
// group has it for its number. An empty group is never signalled later than
// groupPoll after it was last seen.
type processGroup struct {
	id int
}

func startGroup(cmd *exec.Cmd, _ func(error)) (*processGroup, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &processGroup{id: cmd.Process.Pid}, nil
}

func (g *processGroup) String() string { return fmt.Sprintf("process group %d", g.id) }

// terminate asks the group to end. It is false if there is no group left.
func (g *processGroup) terminate() bool {
	err := syscall.Kill(-g.id, syscall.SIGTERM)
	// One that is stopped gets no signal but this and SIGKILL.
	_ = syscall.Kill(-g.id, syscall.SIGCONT)
	return !errors.Is(err, syscall.ESRCH)
}

func (g *processGroup) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

func (g *processGroup) alive() bool {
	if errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) {
		return false
	}
	// Linux counts zombies as members, and where process 1 reaps no orphans,
	// as in many a container, they stay for ever.
	return runtime.GOOS != "linux" || procGroupAlive(g.id)
}

// close reaps those members that became our children when their parents
// ended, as they do if we are process 1. No other child of ours is in the group.
func (g *processGroup) close() {
	for {
		pid, err := syscall.Wait4(-g.id, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// procGroupAlive reports whether /proc has a process of group id that is not
// a zombie. It is true if /proc doesn't tell.
func procGroupAlive(id int) bool {
	dir, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return true
	}
	told := false
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		// proc_pid_stat(5): pid (comm) state ppid pgrp …, and comm may hold
		// anything, parentheses and spaces too.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 {
			continue
		}
		told = true
		if state := fields[0][0]; state != 'Z' && state != 'X' && string(fields[2]) == strconv.Itoa(id) {
			return true
		}
	}
	return !told
}

// readQueued reads what the pipe holds now and waits for no more.
func readQueued(f *os.File, p []byte) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		n, readErr = syscall.Read(int(fd), p)
		return true // never wait
	})
	if err == nil {
		err = readErr
	}
	if n > 0 && err == nil {
		return n, nil
	}
	return 0, io.EOF
}
