package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An eventStream is one event stream to a client: what answers a POST, or the
// standing one that a GET opens. It keeps its latest events, so that a client
// that was away can have them again (MCP, transports, resumability). Whoever
// pushes never waits for the reader.
type eventStream struct {
	id       string // in event ids; empty: its events have none
	keep     int    // how many events are kept once they were handed out
	single   bool   // it answers one request, so its last event is the answer
	prime    bool   // it begins with an event that has an id and no data (2025-11-25)
	jsonOnly bool   // its client takes the answer alone, and no events

	mu      sync.Mutex
	events  [][]byte      // the latest messages
	size    int           // bytes in them
	first   int           // the number of events[0], from 0
	given   int           // how many were handed out to a reader
	done    bool          // there will be no more
	wake    chan struct{} // closed and replaced when anything changes
	readers int           // how many there were
	reader  int           // the latest of them, 0 if it is gone; those before it end
	away    bool          // the client was there, and has left
}

// Bounds of an eventStream.
const (
	// maxWaiting and maxWaitingBytes are how much may wait for a reader that is
	// slow, or that has not come back, before the oldest events are lost. One
	// event is kept however large it is.
	maxWaiting      = 4096
	maxWaitingBytes = 64 << 20
	// maxReplayBytes is how many bytes are kept once they were handed out, the
	// latest event aside.
	maxReplayBytes = 1 << 20
)

// keepAlive is how long a stream is silent before a comment is sent, which
// finds a client that is gone and keeps awake what stands between.
const keepAlive = 25 * time.Second

var (
	errBehind     = errors.New("the client did not read fast enough, and events were lost")
	errSuperseded = errors.New("another request reads this stream now")
	errTaken      = errors.New("another request reads this stream already")
	errQuiet      = errors.New("nothing has happened for a while")
)

func newEventStream(id string, keep int) *eventStream {
	return &eventStream{id: id, keep: keep, wake: make(chan struct{})}
}

// push adds a message, of which the bytes are copied.
func (s *eventStream) push(message []byte) { s.add(message, false) }

// pushLast adds a message after which there will be no more. It is one step,
// so that whoever waits can tell an answer that stands alone.
func (s *eventStream) pushLast(message []byte) { s.add(message, true) }

func (s *eventStream) add(message []byte, last bool) {
	message = bytes.Clone(message)
	oneLine(message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.done = last
	s.events = append(s.events, message)
	s.size += len(message)
	s.trim()
	s.changed()
}

// trim forgets what was handed out and need not be kept, and what waits for
// too long.
func (s *eventStream) trim() {
	drop := 0
	for ; drop < len(s.events); drop++ {
		left, first := len(s.events)-drop, s.first+drop
		handed := first < s.given && (left > s.keep || first < s.given-1 && s.size > maxReplayBytes)
		waiting := left > max(maxWaiting, s.keep) || left > 1 && s.size > maxWaitingBytes
		if !handed && !waiting {
			break
		}
		s.size -= len(s.events[drop])
		s.events[drop] = nil
	}
	s.events = s.events[drop:]
	s.first += drop
}

// held is how many bytes a stream keeps that has ended; ok is false if it goes on.
func (s *eventStream) held() (bytes int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.done
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

// attach makes the caller the stream's reader from event n on, or from the
// first that nobody was given if n is fromUnread. Alone means that there must
// be no other reader; without it, another one ends.
func (s *eventStream) attach(n int, alone bool) (reader, from int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if alone && s.reader > 0 {
		return 0, 0, errTaken
	}
	if n == fromUnread {
		n = max(s.given, s.first)
	}
	n = max(n, 0)
	if n < s.first || n > s.first+len(s.events) {
		return 0, 0, errBehind
	}
	s.readers++
	s.reader, s.away = s.readers, false
	s.changed()
	return s.reader, n, nil
}

// attached reports whether anybody reads.
func (s *eventStream) attached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader > 0
}

// listens reports whether the client that the stream answers is there, as far
// as is known, and takes more than the answer.
func (s *eventStream) listens() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.away && !s.jsonOnly
}

// detach says that the reader is gone; 0 is a client that left before it was one.
func (s *eventStream) detach(reader int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == reader {
		s.reader, s.away = 0, true
	}
}

// Where a stream can be read from, besides the number of an event.
const (
	fromStart  = -1 // its very beginning
	fromUnread = -2
)

// body reads the stream as text/event-stream, see attach. left is called once,
// when the reader is done with it, unless there is an error.
func (s *eventStream) body(ctx context.Context, n int, alone bool, left func()) (io.ReadCloser, error) {
	reader, from, err := s.attach(n, alone)
	if err != nil {
		return nil, err
	}
	b := &eventBody{s: s, n: from, left: left, reader: reader}
	b.ctx, b.cancel = context.WithCancel(ctx)
	if s.prime && n == fromStart {
		b.out = append(b.out, "id: "+s.eventID(-1)+"\ndata:\n\n"...)
	}
	return b, nil
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
	b.out = b.out[:0]
	switch err := b.s.waitAs(b.ctx, b.n, b.reader); {
	case errors.Is(err, errQuiet):
		b.out = append(b.out, ":\n\n"...)
		return nil
	case err != nil:
		return err
	}
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

// waitAs is wait for a reader, which ends when another one takes its place, and
// after keepAlive with errQuiet.
func (s *eventStream) waitAs(ctx context.Context, n, reader int) error {
	quiet := time.NewTimer(keepAlive)
	defer quiet.Stop()
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
		case <-quiet.C:
			return errQuiet
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
