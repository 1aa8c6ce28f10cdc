//go:build unix

package proxy

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// watchdogGone is how long a watchdog may take to go once it is told to.
const watchdogGone = time.Second

// watchdog is the parent's side: the process and the pipe that it waits on.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startWatchdog starts a watchdog, which waits to be told what to watch. It is
// started before the child, so that there is no time in which we could be
// killed and leave the child behind. The pipe's write end is
// close-on-exec, so that no other process has it. The watchdog is in a session
// of its own, out of reach of the terminal, and has nothing of ours: neither
// stdout and stderr, whose readers would wait for it, nor the environment.
func startWatchdog(argv []string) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = r
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, startError(argv[0], cmd, err)
	}
	return &watchdog{cmd: cmd, pipe: w}, nil
}

// watch tells the watchdog the group. It may be nil.
func (w *watchdog) watch(group *processGroup) {
	if w != nil {
		_, _ = w.pipe.WriteString(strconv.Itoa(group.id) + "\n") // one that is gone watches nothing
	}
}

// release tells the watchdog that all has ended, and waits until it has gone
// too. The watchdog may be nil.
func (w *watchdog) release() {
	if w == nil {
		return
	}
	_, _ = w.pipe.Write([]byte{'\n'})
	_ = w.pipe.Close()
	timer := time.AfterFunc(watchdogGone, func() { _ = w.cmd.Process.Kill() })
	defer timer.Stop()
	_ = w.cmd.Wait()
}

// ignoreSignals keeps the watchdog alive while the rest is being ended.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
}

func ownGroup(id int) bool { return id == syscall.Getpgrp() }
