//go:build unix

package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDirectStderr(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, tc := range []struct {
		name string
		w    io.Writer
		want bool
	}{
		{"a file", file, true},
		{"a device", null, true},
		{"a pipe", w, false},
		{"a buffer", new(bytes.Buffer), false},
	} {
		if f, got := directStderr(tc.w); got != tc.want || got && f != tc.w {
			t.Errorf("%s: %v, %v", tc.name, f, got)
		}
	}

	c := start(t, &Child{Command: []string{"sh", "-c", "echo to the log >&2"}, Stderr: file})
	c.Wait()
	if got, _ := os.ReadFile(file.Name()); string(got) != "to the log\n" {
		t.Errorf("the file has %q", got)
	}
}

const fiveMegabytes = 5_000_000

func TestStderrArrivesWhole(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, &Child{Command: []string{"sh", "-c", fmt.Sprintf("yes | head -c %d >&2", fiveMegabytes)}, Stderr: w})
	go func() {
		c.Wait()
		_ = w.Close()
	}()
	got, err := io.ReadAll(r)
	if err != nil || len(got) != fiveMegabytes || strings.Trim(string(got), "y\n") != "" {
		t.Errorf("%d bytes, %v; want %d", len(got), err, fiveMegabytes)
	}
}

func TestStderrThatNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("yes | head -c %d >&2; echo answer; read x; echo more >&2; echo; cat", fiveMegabytes)
	c := start(t, &Child{Command: []string{"sh", "-c", script}, Stderr: w})
	out := bufio.NewReader(c.Stdout())
	if got := readLine(t, out); got != "answer" {
		t.Errorf("stdout: %q", got)
	}

	// A reader that comes back gets what was kept, and is told of the rest. What
	// was still in the pipe when it came may follow.
	log := bufio.NewReader(r)
	kept, dropped, notices := 0, 0, 0
	count := func(line string) {
		if !strings.HasPrefix(line, "[") {
			kept += len(line) + 1
			return
		}
		n, want := 0, "bytes of the server's log were dropped: stderr was not being read]"
		if _, err := fmt.Sscanf(line, "[%d ", &n); err != nil || !strings.HasSuffix(line, want) {
			t.Fatalf("%q, %v", line, err)
		}
		dropped += n
		notices++
		kept-- // the line feed in front of the notice is its own
	}
	for line, _ := log.Peek(1); len(c.stderr.chunks) > 0 && len(line) > 0; line, _ = log.Peek(1) {
		count(readLine(t, log))
	}
	_, _ = c.Stdin().Write([]byte("\n"))
	readLine(t, out)
	for line := readLine(t, log); line != "more"; line = readLine(t, log) {
		count(line)
	}
	if notices == 0 || kept+dropped != fiveMegabytes {
		t.Errorf("%d bytes arrived, %d notices tell of %d that were dropped; want %d together", kept, notices, dropped, fiveMegabytes)
	}
}

// broken is a writer whose reader has left.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStderrWhoseReaderIsGone(t *testing.T) {
	c := start(t, &Child{Command: []string{"sh", "-c", fmt.Sprintf("yes | head -c %d >&2 && exit 6", fiveMegabytes)}, Stderr: broken{}})
	if got := c.Wait(); got.Code != 6 {
		t.Errorf("the child %v", got)
	}
}
