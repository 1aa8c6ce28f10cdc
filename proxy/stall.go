package proxy

import (
	"io"
	"sync"
	"time"
)

const (
	// stallWait is how long a write to the server may take before the client's
	// stream is read ahead; it may take twice as long.
	stallWait = time.Second
	// maxAhead bounds what is read ahead of a server that does not read, in
	// bytes. What a pipe or socket can hold is less, so that the end of a client
	// that has stopped writing is found.
	maxAhead = 1 << 20
)

// A stallWatch stands between a client and a server on streams. Who reads the
// one writes to the other, so while a server does not read, nobody would see
// that the client has ended, and the server would be kept for ever. It reads
// the client's stream ahead meanwhile; and once that has ended, no write takes
// longer than wait: then the server's stream is closed.
type stallWatch struct {
	client io.Reader
	server io.WriteCloser
	wait   time.Duration

	reading chan struct{} // holds a token while somebody reads the client's stream
	ahead   []byte        // what was read ahead; guarded by reading
	err     error         // what ended the client's stream; guarded by reading

	mu      sync.Mutex
	timer   *time.Timer // of the write under way, or of one before it
	armed   bool        // the timer runs
	writes  uint64      // writes begun
	timed   uint64      // the write that the timer was set for
	writing bool
	ended   bool // the client's stream
}

func newStallWatch(client io.Reader, server io.WriteCloser, wait time.Duration) *stallWatch {
	return &stallWatch{client: client, server: server, wait: wait, reading: make(chan struct{}, 1)}
}

// Read reads from the client.
func (s *stallWatch) Read(p []byte) (int, error) {
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	if len(s.ahead) > 0 {
		n := copy(p, s.ahead)
		if s.ahead = s.ahead[n:]; len(s.ahead) == 0 {
			s.ahead = nil
		}
		return n, nil
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.client.Read(p)
}

// Write writes to the server. Calls must not overlap.
func (s *stallWatch) Write(p []byte) (int, error) {
	s.begin()
	defer s.finish()
	return s.server.Write(p)
}

// Close ends what is said to the server.
func (s *stallWatch) Close() error { return s.server.Close() }

func (s *stallWatch) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = true
	s.writes++
	switch {
	case s.ended:
		s.set(s.wait)
	case !s.armed:
		s.set(stallWait)
	}
}

// set sets the timer, for the write under way. A timer that is set wakes a
// thread, so that one which runs is left alone: it finds out what it is for.
func (s *stallWatch) set(wait time.Duration) {
	s.armed, s.timed = true, s.writes
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.elapsed)
		return
	}
	s.timer.Reset(wait)
}

func (s *stallWatch) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
}

// elapsed is called when the timer has run out.
func (s *stallWatch) elapsed() {
	s.mu.Lock()
	s.armed = false
	late := s.writing && s.timed == s.writes
	if s.writing && !late { // for a write that is over
		s.set(stallWait)
	}
	s.mu.Unlock()
	if late {
		s.stalled()
	}
}

// stalled is called when a write takes its time.
func (s *stallWatch) stalled() {
	s.mu.Lock()
	late := s.writing && s.ended
	s.mu.Unlock()
	if late {
		_ = s.server.Close()
		return
	}
	select {
	case s.reading <- struct{}{}:
	default:
		return // whoever reads will see the end
	}
	defer func() { <-s.reading }()
	for s.stalls() && s.err == nil && len(s.ahead) < maxAhead {
		s.readAhead()
	}
}

func (s *stallWatch) stalls() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writing
}

// readAhead reads once, and notes the end of the client's stream.
func (s *stallWatch) readAhead() {
	piece := make([]byte, frameBuffer)
	n, err := s.client.Read(piece)
	s.ahead = append(s.ahead, piece[:n]...)
	if err == nil {
		return
	}
	s.err = err
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.writing {
		s.set(max(s.wait-stallWait, 0)) // it has had the other part
	}
}
