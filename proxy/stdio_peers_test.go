package proxy

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// A queue is a pipe that takes all that is written at once.
type queue struct {
	mu     sync.Mutex
	more   sync.Cond
	buf    []byte
	closed bool
}

func newQueue() *queue {
	q := new(queue)
	q.more.L = &q.mu
	return q
}

func (q *queue) Read(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.buf) == 0 {
		if q.closed {
			return 0, io.EOF
		}
		q.more.Wait()
	}
	n := copy(p, q.buf)
	q.buf = q.buf[n:]
	return n, nil
}

func (q *queue) add(text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buf = append(q.buf, text...)
	q.more.Broadcast()
}

func (q *queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}

// left is how many bytes nobody has read yet.
func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.buf)
}

// A peer is the far end of one side of a Run: what the test says and hears. It
// hears nothing unless it listens: a Write to it blocks until then.
type peer struct {
	say  *queue
	hear *io.PipeReader
	line *bufio.Reader
}

func newPeer() (*peer, Stream) {
	say := newQueue()
	hear, w := io.Pipe()
	return &peer{say, hear, bufio.NewReader(hear)}, Stream{R: say, W: w}
}

func (p *peer) send(lines ...string) { p.say.add(strings.Join(lines, "\n") + "\n") }

func (p *peer) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, want := range want {
		got, err := p.line.ReadString('\n')
		if err != nil || strings.TrimSuffix(got, "\n") != want {
			t.Fatalf("got %q, %v\nwant %q", got, err, want)
		}
	}
}

// expectHolding reads a line that has all the given parts.
func (p *peer) expectHolding(t *testing.T, parts ...string) {
	t.Helper()
	got, err := p.line.ReadString('\n')
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Fatalf("got %q, %v\nwant it to hold %q", got, err, part)
		}
	}
}

func (p *peer) expectEnd(t *testing.T) {
	t.Helper()
	if got, err := p.line.ReadString('\n'); err != io.EOF || got != "" {
		t.Fatalf("got %q, %v; want the end", got, err)
	}
}

// vanish closes both ends, as a process does that dies.
func (p *peer) vanish() {
	p.say.Close()
	p.hear.Close()
}

type running struct {
	client, server *peer
	cancel         context.CancelFunc
	done           chan error
}

func startRun(t *testing.T, p *Proxy, ended func() string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, done: make(chan error, 1)}
	var client, server Stream
	r.client, client = newPeer()
	r.server, server = newPeer()
	server.Ended = ended
	go func() { r.done <- p.Run(ctx, client, server) }()
	return r
}

// end lets all go, so that no goroutine is left.
func (r *running) end() {
	r.client.vanish()
	r.server.vanish()
	r.cancel()
	<-r.done
	synctest.Wait()
}

// bubble runs a test of a proxy in a synctest bubble, which fails if a
// goroutine is left behind.
func bubble(t *testing.T, p *Proxy, ended func() string, test func(t *testing.T, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := startRun(t, p, ended)
		defer r.end()
		test(t, r)
	})
}
