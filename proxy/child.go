package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Waits of a [Child] whose fields are zero.
const (
	// DefaultGrace is the time between the end of a child's stdin and SIGTERM.
	DefaultGrace = 2 * time.Second
	// DefaultKillAfter is the time between SIGTERM and SIGKILL.
	DefaultKillAfter = 2 * time.Second
	// DefaultDrainDelay is the time that is given to output which somebody
	// still holds open after the child and its group have ended.
	DefaultDrainDelay = 250 * time.Millisecond
)

// groupPoll is the time between two looks at a process group that is ending.
const groupPoll = 5 * time.Millisecond

// Child is an MCP server that runs as a child process with the wire on its
// stdin and stdout. Set the fields, then call [Child.Start] once.
//
// The child leads a process group of its own (on Windows: a job object), so
// that launchers such as npx, uvx and sh -c take what they launched with them:
// whenever the child has ended, for whatever reason, the rest of its group is
// ended too. A descendant that leaves the group (setsid) is its own master.
// A signal from the terminal does not reach the group; who receives it calls
// [Child.Shutdown].
type Child struct {
	// Command is the program and its arguments. A name without a slash is
	// looked up in PATH, on Windows with the extensions in PATHEXT (npx finds
	// npx.cmd). No shell is involved, except that a Windows batch file is run
	// by cmd.exe, for which the arguments are quoted.
	Command []string
	// Env is the child's environment; nil is ours.
	Env []string
	// Stderr gets what the child writes on its stderr; nil is our own stderr.
	// A file or terminal is handed to the child as it is. A pipe, a socket and
	// any other writer are fed from a buffer, and if they take nothing for
	// half a second while it is full, then the child's output is dropped until
	// they do, since a log that nobody reads must not stop the server.
	Stderr io.Writer

	// Grace is how long the child has to end by itself once its stdin is
	// closed, before SIGTERM. 0 is DefaultGrace; negative is no wait.
	Grace time.Duration
	// KillAfter is how long the process group has to end after SIGTERM,
	// before SIGKILL. 0 is DefaultKillAfter; negative is no wait.
	KillAfter time.Duration
	// DrainDelay is how long Stdout and Stderr stay open after the group has
	// ended, when a process outside the group holds their other end. What the
	// pipe holds by then is still delivered. 0 is DefaultDrainDelay; negative
	// is no wait.
	DrainDelay time.Duration

	// Watchdog is a command that ends in a call of [RunWatchdog]: usually our
	// own binary and a subcommand. It is started before the child, and ends the
	// child's group if we die without having done so (SIGKILL, a crash). Empty
	// is no watchdog.
	// Windows needs none: there the kernel ends the job.
	Watchdog []string
	// Warn is told of what weakens the guarantees above but does not stop the
	// child, such as a watchdog that does not start. It may be called from
	// another goroutine; nil ignores it.
	Warn func(error)

	stdin  *os.File
	stdout *stdoutPipe
	stderr *stderrRelay // nil where the child has the file itself

	stop     chan struct{} // closed when the child is to end
	stopOnce sync.Once
	done     chan struct{} // closed when everything has ended
	status   ExitStatus    // valid once done is closed
	err      error         // likewise: what could not be ended
}

// ExitStatus is how a child ended.
type ExitStatus struct {
	// Code is the child's exit code, or 128 plus the number of the signal
	// that ended it, as a shell would say.
	Code int
	// Signal is the name of that signal, such as SIGKILL; empty if none.
	Signal string
}

// String completes a sentence that begins with "the server".
func (s ExitStatus) String() string {
	if s.Signal != "" {
		return fmt.Sprintf("was killed by signal %d (%s)", s.Code-128, s.Signal)
	}
	return fmt.Sprintf("exited with code %d", s.Code)
}

// Start starts the child. When ctx ends, the child is shut down as by
// [Child.Shutdown]. An error is one line that names the command and says why
// it could not be started; it wraps fs.ErrNotExist, exec.ErrNotFound or
// fs.ErrPermission where that is why.
func (c *Child) Start(ctx context.Context) error {
	if c.done != nil {
		return errors.New("the child has been started before")
	}
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New("no command to start")
	}
	cmd, err := childCommand(c.Command)
	if err != nil {
		return startError(c.Command[0], cmd, err)
	}
	cmd.Env = c.Env

	var ours, theirs files
	defer theirs.close()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	stdinR, stdinW := pipe()
	theirs.add(stdinR)
	ours.add(stdinW)
	stdoutR, stdoutW := pipe()
	ours.add(stdoutR)
	theirs.add(stdoutW)
	var stderrR *os.File
	stderr, direct := directStderr(c.Stderr)
	if !direct {
		stderrR, stderr = pipe()
		ours.add(stderrR)
		theirs.add(stderr)
	}
	if err != nil {
		ours.close()
		return startError(c.Command[0], nil, err)
	}

	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdinR, stdoutW, stderr
	dog := c.startWatchdog()
	group, err := startGroup(cmd, c.warn)
	if err != nil {
		dog.release()
		ours.close()
		return startError(c.Command[0], cmd, err)
	}
	dog.watch(group)
	c.stdin, c.stdout = stdinW, &stdoutPipe{file: stdoutR}
	if !direct {
		c.stderr = relayStderr(stderrR, c.Stderr)
	}
	c.stop, c.done = make(chan struct{}), make(chan struct{})
	forget := context.AfterFunc(ctx, c.requestStop)
	go func() {
		defer forget()
		c.supervise(cmd, group, dog)
	}()
	return nil
}

// startWatchdog starts the watchdog, nil if there is to be none. That it does
// not start is a warning alone.
func (c *Child) startWatchdog() *watchdog {
	if len(c.Watchdog) == 0 {
		return nil
	}
	dog, err := startWatchdog(c.Watchdog)
	if err != nil {
		c.warn(fmt.Errorf("no watchdog: if this process is killed, the server may stay behind: %w", err))
	}
	return dog
}

// Stdin is the write end of the child's stdin. It may be closed more than
// once; closing it ends a Write that is blocked by a child which doesn't read.
func (c *Child) Stdin() io.WriteCloser { return c.stdin }

// Stdout is the read end of the child's stdout, for one reader at a time. It
// ends with io.EOF once the child's group has ended and all that was written
// has been read, whoever else still holds the other end. Read it to its end,
// then call [Child.Wait].
func (c *Child) Stdout() io.Reader { return c.stdout }

// Wait waits until the child and its process group have ended and says how
// the child did. It does not make them end: that is [Child.Shutdown].
// Stdout remains to be read. Any number of goroutines may wait.
func (c *Child) Wait() ExitStatus {
	<-c.done
	return c.status
}

// Shutdown ends the child: its stdin is closed; if it has not ended after
// Grace, its process group gets SIGTERM, and what is left of that after
// KillAfter gets SIGKILL. It returns when all have ended. It may be called at
// any time after Start, more than once and from any goroutine.
//
// The error is for what the system does not end even so: a process that is
// stuck in the kernel or belongs to another user is waited for no longer than
// KillAfter once more, a second at least.
func (c *Child) Shutdown() error {
	c.requestStop()
	<-c.done
	return c.err
}

func (c *Child) requestStop() { c.stopOnce.Do(func() { close(c.stop) }) }

// stopping reports whether the child is to end because we said so.
func (c *Child) stopping() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

func (c *Child) warn(err error) {
	if c.Warn != nil {
		c.Warn(err)
	}
}

// supervise sees the child from its start to the end of its last process.
func (c *Child) supervise(cmd *exec.Cmd, group *processGroup, dog *watchdog) {
	defer close(c.done)

	leader := make(chan struct{}) // closed when the child itself has ended
	var waitErr error
	go func() {
		defer close(leader)
		waitErr = cmd.Wait()
	}()
	select {
	case <-leader:
	case <-c.stop:
		_ = c.stdin.Close()
		waitFor(leader, orDefault(c.Grace, DefaultGrace))
	}
	killAfter := orDefault(c.KillAfter, DefaultKillAfter)
	c.err = group.end(killAfter)
	_ = c.stdin.Close()

	// Only a process that SIGKILL does not end is not waited for.
	if c.err == nil || waitFor(leader, 0) {
		<-leader
		c.status = exitStatus(cmd.ProcessState)
		if cmd.ProcessState == nil {
			c.err = errors.Join(c.err, waitErr)
		}
	} else {
		c.status = killedStatus
	}
	group.close()
	dog.release()
	drain := orDefault(c.DrainDelay, DefaultDrainDelay)
	c.stdout.cutAfter(drain)
	c.stderr.finish(drain)
}

// end ends every process of the group: asked to first, then made to.
func (g *processGroup) end(killAfter time.Duration) error {
	if !g.terminate() || g.goneWithin(killAfter, func() {}) {
		return nil
	}
	// Again at every look: a process may have been born meanwhile.
	if g.goneWithin(max(killAfter, time.Second), g.kill) {
		return nil
	}
	return fmt.Errorf("%v has not ended after SIGKILL", g)
}

// goneWithin does act and looks whether the group has ended, again and again
// for the time d and at least once.
func (g *processGroup) goneWithin(d time.Duration, act func()) bool {
	deadline := time.Now().Add(d)
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for {
		act()
		if !g.alive() {
			return true
		}
		if !time.Now().Before(deadline) {
			return false
		}
		<-tick.C
	}
}

// waitFor waits for c to be closed, no longer than d, and says if it is.
func waitFor(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// orDefault reads a wait field: 0 is def, negative is no wait.
func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

// startError is why name could not be started, in one line. cmd is what it
// was resolved to, or nil.
func startError(name string, cmd *exec.Cmd, err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("cannot start %q: it is not in PATH: %w", name, err)
	case errors.Is(err, exec.ErrDot):
		return fmt.Errorf("cannot start %q: PATH finds it only in the current directory; say so with a path: %w", name, err)
	}
	if cmd != nil {
		info, statErr := os.Stat(cmd.Path)
		switch {
		case statErr != nil:
		case info.IsDir():
			return fmt.Errorf("cannot start %q: it is a directory: %w", name, err)
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("cannot start %q: the file is there, but the interpreter that its first line names is not: %w", name, err)
		}
	}
	return fmt.Errorf("cannot start %q: %w", name, err)
}

// files are ends of pipes that are closed together.
type files []*os.File

func (f *files) add(file *os.File) { *f = append(*f, file) }

func (f *files) close() {
	for _, file := range *f {
		if file != nil {
			_ = file.Close()
		}
	}
}
