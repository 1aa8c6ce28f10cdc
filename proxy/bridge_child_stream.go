package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
)

// An eventStream is one event stream to a client: what answers a POST, or the
// standing one that a GET opens. It keeps its latest events, so that a client
// that was away can have them again (MCP, transports, resumability).
type eventStream struct {
	id     string // in event ids; empty: its events have none
	keep   int    // how many events are kept once they were handed out
	single bool   // it answers one request, so its last event is the answer
	prime  bool   // it begins with an event that has an id and no data (2025-11-25)

	mu     sync.Mutex
	events [][]byte      // the latest messages
	first  int           // the number of events[0], from 0
	given  int           // how many were handed out to a reader
	done   bool          // there will be no more
	wake   chan struct{} // closed and replaced when anything changes
	reader int           // of several readers, the latest; those before it end
}

// maxWaiting is how many events may wait for a reader that is slow, or that
// has not come back, before the oldest are lost.
const maxWaiting = 4096

var (
	errBehind     = errors.New("the client did not read fast enough, and events were lost")
	errSuperseded = errors.New("another request reads this stream now")
)

func newEventStream(id string, keep int) *eventStream {
	return &eventStream{id: id, keep: keep, wake: make(chan struct{})}
}

// push adds a message, of which the bytes are copied.
func (s *eventStream) push(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.events = append(s.events, bytes.Clone(message))
	s.trim()
	s.changed()
}

// trim forgets what was handed out and need not be kept, and what waits for
// too long.
func (s *eventStream) trim() {
	drop := max(min(len(s.events)-s.keep, s.given-s.first), len(s.events)-max(maxWaiting, s.keep))
	if drop > 0 {
		clear(s.events[:drop])
		s.events = s.events[drop:]
		s.first += drop
	}
}

// finish says that there will be no more.
func (s *eventStream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.changed()
}

func (s *eventStream) changed() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// wait waits until there is an event of that number, or will be none.
func (s *eventStream) wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		ready, wake := s.done || s.first+len(s.events) > n, s.wake
		s.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// only returns the one message that the stream consists of, if it does.
func (s *eventStream) only() ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done && s.single && s.first == 0 && len(s.events) == 1 {
		s.given = 1
		return s.events[0], true
	}
	return nil, false
}

// all waits for the stream's end and returns its last message, or all of them
// as a batch where it answers several requests.
func (s *eventStream) all(ctx context.Context) ([]byte, error) {
	for n := 0; ; n++ {
		if err := s.wait(ctx, n); err != nil {
			return nil, err
		}
		s.mu.Lock()
		done, events := s.done, s.events
		s.mu.Unlock()
		switch {
		case !done:
		case len(events) == 0:
			return nil, io.ErrUnexpectedEOF
		case s.single:
			return events[len(events)-1], nil
		default:
			return joinBatch(events), nil
		}
	}
}

// attach makes the caller the stream's reader from event n on. It reports
// false if those events are gone.
func (s *eventStream) attach(n int) (reader int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < s.first || n > s.first+len(s.events) {
		return 0, false
	}
	s.reader++
	s.changed()
	return s.reader, true
}

// attached reports whether anybody reads.
func (s *eventStream) attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader > 0
}

// detach says that the reader is gone.
func (s *eventStream) detach(reader int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == reader {
		s.reader = 0
	}
}

// fromStart reads a stream from its very beginning, see body.
const fromStart = -1

// body reads the stream as text/event-stream, from event n on. left is called
// once, when the reader is done with it.
func (s *eventStream) body(ctx context.Context, n int, left func()) io.ReadCloser {
	prime := s.prime && n == fromStart
	n = max(n, 0)
	reader, ok := s.attach(n)
	b := &eventBody{s: s, n: n, left: left, reader: reader}
	b.ctx, b.cancel = context.WithCancel(ctx)
	if !ok {
		b.err = errBehind
	}
	if prime {
		b.out = append(b.out, "id: "+s.eventID(-1)+"\ndata:\n\n"...)
	}
	return b
}

// eventID names event n; the event before the first one is the priming one.
func (s *eventStream) eventID(n int) string { return s.id + "-" + strconv.Itoa(n+1) }

// parseEventID takes an event id apart: the stream, and the event that comes next.
func parseEventID(id string) (stream string, next int, ok bool) {
	stream, number, ok := strings.Cut(id, "-")
	next, err := strconv.Atoi(number)
	return stream, next, ok && err == nil && next >= 0
}

// An eventBody is an eventStream as the body of a response.
type eventBody struct {
	s      *eventStream
	ctx    context.Context
	cancel func()
	reader int
	n      int // the next event
	out    []byte
	err    error

	once sync.Once
	left func()
}

// Read returns whole events as they come.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err == nil {
			b.err = b.more()
		}
		if b.err != nil && len(b.out) == 0 {
			return 0, b.err
		}
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// more waits for events and writes those that are there.
func (b *eventBody) more() error {
	if err := b.s.waitAs(b.ctx, b.n, b.reader); err != nil {
		return err
	}
	b.out = b.out[:0]
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.n < s.first {
		return errBehind
	}
	for ; b.n < s.first+len(s.events) && len(b.out) < copyBuffer; b.n++ {
		b.event(s.events[b.n-s.first])
	}
	s.given = max(s.given, b.n)
	s.trim()
	if s.done && b.n == s.first+len(s.events) {
		return io.EOF
	}
	return nil
}

func (b *eventBody) event(message []byte) {
	b.out = append(b.out, "event: message\n"...)
	if b.s.id != "" {
		b.out = append(b.out, "id: "+b.s.eventID(b.n)+"\n"...)
	}
	b.out = append(append(append(b.out, "data: "...), message...), "\n\n"...)
}

// waitAs is wait for a reader, which ends when another one takes its place.
func (s *eventStream) waitAs(ctx context.Context, n, reader int) error {
	for {
		s.mu.Lock()
		ready, current, wake := s.done || s.first+len(s.events) > n, s.reader, s.wake
		s.mu.Unlock()
		switch {
		case current != reader:
			return errSuperseded
		case ready:
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the reading, not the stream.
func (b *eventBody) Close() error {
	b.once.Do(func() {
		b.cancel()
		b.s.detach(b.reader)
		b.left()
	})
	return nil
}
