//go:build unix

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// Each way in which a server on stdio fails in the middle of a call: what its
// client is told, and how the client's end frees what is left. Over HTTP the
// same children are in TestBridgeChildFails and faults_bridge_test.go.
var childFaults = []struct {
	how   string   // see hostileServer
	tells []string // lines to the client, each holding this
	ends  bool     // the session, by itself
	last  string   // what the client is told when it has ended its stream
}{
	{"exit", []string{unanswered + "exited with code 3 before it answered"}, true, ""},
	{"kill", []string{unanswered + "was killed by signal 9 (SIGKILL) before it answered"}, true, ""},
	{"half", []string{unanswered + "exited with code 0 before it answered"}, true, ""},
	{"close", []string{unanswered + "closed its output before it answered"}, true, ""},
	{"flood", []string{`"id":3,"result":{}`}, false, ""},
	{"twice", []string{`"id":3,"result":{}`, `"id":3,"result":{}`}, false, ""},
	{"error", []string{`"id":3,"error":{"code":-32602,"message":"no"}`}, false, ""},
	{"other id", []string{`"id":99,"result":{}`}, false, unanswered + "exited with code 0 before it answered"},
	{"trickle", []string{`"id":3,"result":{}`}, false, ""},
	{"bad json", []string{`"id":3,"error":{"code":-32600,"message":"mcp-refit: this message was not passed on: not valid JSON`}, false, ""},
	{"no json", nil, false, unanswered + "exited with code 0 before it answered"},
	{"mute", nil, false, unanswered + "exited with code 0 before it answered"},
	{"stop", nil, false, unanswered}, // by SIGTERM or, once awake, by the end of its input
	{"deaf", nil, false, unanswered + "was killed by signal 15 (SIGTERM) before it answered"},
}

const unanswered = `"id":3,"error":{"code":-32603,"message":"mcp-refit: the server `

func TestFaultsOfAChild(t *testing.T) {
	noLeak(t)
	p := &Proxy{Policy: testPolicy(t), EndWait: 100 * time.Millisecond}
	well := startFaulty(t, p, "none")
	for _, tt := range childFaults {
		t.Run(tt.how, func(t *testing.T) {
			end := meanwhile(t, func(int) error { // another session feels nothing
				if _, err := io.WriteString(well.in, callTool+"\n"); err != nil {
					return err
				}
				if got, err := well.out.ReadString('\n'); !strings.Contains(got, `"id":3,"result":{}`) {
					return fmt.Errorf("got %q, %w", got, err)
				}
				return nil
			})
			f := startFaulty(t, p, tt.how)
			f.say(t, callTool)
			for _, want := range tt.tells {
				f.expect(t, want)
			}
			if tt.how == "deaf" {
				go func() { // more than all buffers hold: its end is behind what nobody takes
					_, _ = io.WriteString(f.in, strings.Repeat(note(1000)+"\n", 600))
					_ = f.in.Close()
				}()
			} else if !tt.ends {
				_ = f.in.Close()
			}
			if last := f.freed(t); !strings.Contains(last, tt.last) || tt.last == "" && last != "" {
				t.Errorf("at its end the client got %q, want %q", last, tt.last)
			}
			end()
		})
	}
	_ = well.in.Close()
	if last := well.freed(t); last != "" {
		t.Errorf("the other session's client got %q", last)
	}
}

// A faulty is a session with a child that fails at tools/call.
type faulty struct {
	child *Child
	in    *os.File
	out   *bufio.Reader
	done  chan error
}

func startFaulty(t *testing.T, p *Proxy, how string) *faulty {
	t.Helper()
	c := &Child{Command: []string{os.Args[0], hostileArg, "tools/call", how}, Grace: time.Minute, KillAfter: time.Minute, Stderr: discard{}}
	if how == "stop" || how == "deaf" { // the others end by themselves
		c.Grace = 10 * time.Millisecond
	}
	start(t, c)
	ours, in := filePipe(t)
	out, theirs := filePipe(t)
	f := &faulty{c, in, bufio.NewReader(out), make(chan error, 1)}
	server := Stream{R: c.Stdout(), W: childEnd{c}, Ended: func() string {
		if how == "close" { // it goes on
			return "closed its output"
		}
		return c.Wait().String()
	}}
	go func() { f.done <- p.Run(context.Background(), Stream{R: ours, W: theirs}, server) }()
	return f
}

// childEnd is a child's stdin, with whose end the child's begins.
type childEnd struct{ c *Child }

func (e childEnd) Write(p []byte) (int, error) { return e.c.Stdin().Write(p) }

func (e childEnd) Close() error {
	e.c.requestStop()
	return nil
}

func filePipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

func (f *faulty) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(f.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (f *faulty) expect(t *testing.T, holds string) {
	t.Helper()
	if got, err := f.out.ReadString('\n'); !strings.Contains(got, holds) {
		t.Fatalf("got %q, %v; want %s", got, err, holds)
	}
}

// freed waits for the end of the session and of its child, and returns what the
// client was told last.
func (f *faulty) freed(t *testing.T) string {
	t.Helper()
	if err := <-f.done; err != nil {
		t.Errorf("Run: %v", err)
	}
	rest, err := io.ReadAll(f.out)
	if err != nil {
		t.Error(err)
	}
	if err := f.child.Shutdown(); err != nil {
		t.Errorf("the child is left behind: %v", err)
	}
	_ = f.in.Close() // ends the read that may be under way on the client's stream
	return string(rest)
}
