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
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// helperArg makes the test binary one of the processes below instead.
const helperArg = "child-test-helper"

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
	case "args": // one argument a line
		for _, arg := range args {
			fmt.Printf("%q\n", arg)
		}
		return 7
	case "wait": // for ever
		time.Sleep(time.Hour)
	case "launch": // starts "wait", says its pid, and waits with it
		argv := helper("wait")
		cmd := exec.Command(argv[0], argv[1:]...)
		if cmd.Start() != nil {
			return 1
		}
		fmt.Println(cmd.Process.Pid)
		time.Sleep(time.Hour)
	case "parent": // a proxy around "launch", until it is killed
		c := Child{Command: helper("launch")}
		if c.Start(context.Background()) != nil {
			return 1
		}
		_, _ = io.Copy(os.Stdout, c.Stdout())
	}
	return 0
}

// ended waits until process pid has ended.
func ended(t *testing.T, pid int) bool {
	t.Helper()
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return true
	}
	defer func() { _ = windows.CloseHandle(h) }()
	event, _ := windows.WaitForSingleObject(h, 10_000)
	return event == windows.WAIT_OBJECT_0
}

func readPID(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	pid, err2 := strconv.Atoi(strings.TrimSpace(line))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestBatchFileFoundByPATHEXT(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf("@\"%s\" %s args %%*\r\n", os.Args[0], helperArg)
	if err := os.WriteFile(filepath.Join(dir, "my server.cmd"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+";"+os.Getenv("PATH"))
	args := []string{"-y", "", "a b", "x&echo y", `dir\`, "!x!"}
	c := Child{Command: append([]string{"my server"}, args...)}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c.Stdout())
	if err != nil {
		t.Error(err)
	}
	var want strings.Builder
	for _, arg := range args {
		fmt.Fprintf(&want, "%q\n", arg)
	}
	if string(got) != want.String() {
		t.Errorf("got\n%swant\n%s", got, &want)
	}
	if status := c.Wait(); status.Code != 7 {
		t.Error(status)
	}
}

func TestChildStartErrors(t *testing.T) {
	err := (&Child{Command: []string{"no-such-server"}}).Start(t.Context())
	if !errors.Is(err, exec.ErrNotFound) || !strings.HasPrefix(err.Error(), `cannot start "no-such-server": `) {
		t.Error(err)
	}
}

func TestShutdownEndsTheJob(t *testing.T) {
	c := Child{Command: helper("launch"), Grace: -1, KillAfter: -1}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	grandchild := readPID(t, bufio.NewReader(c.Stdout()))
	if err := c.Shutdown(); err != nil {
		t.Error(err)
	}
	if c.Wait().Code == 0 || !ended(t, grandchild) {
		t.Errorf("the child %v; the grandchild has ended: %v", c.Wait(), ended(t, grandchild))
	}
}

func TestJobEndsWithAKilledParent(t *testing.T) {
	argv := helper("parent")
	parent := exec.Command(argv[0], argv[1:]...)
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	grandchild := readPID(t, bufio.NewReader(stdout))
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if !ended(t, grandchild) {
		t.Error("the grandchild is still there")
	}
}
