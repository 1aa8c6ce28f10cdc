package proxy

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// stderrChunk times stderrChunks is the most that is held of a child's
	// stderr for a slow reader, in bytes.
	stderrChunk  = 16 << 10
	stderrChunks = 64
	// stderrStall is how long a full buffer may stay full before the child's
	// output is dropped, once each time the reader stops.
	stderrStall = 500 * time.Millisecond
)

// directStderr returns the file that the child can have for its stderr. Not a
// pipe or a socket: whoever holds the other end may never read it, and then
// the child would block.
func directStderr(w io.Writer) (*os.File, bool) {
	if w == nil {
		w = os.Stderr
	}
	f, ok := w.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0
}

// stderrRelay carries a child's stderr to a writer that may block or fail.
// The child never waits for it longer than stderrStall.
type stderrRelay struct {
	from   *os.File
	chunks chan []byte
	done   chan struct{} // closed when all has been written
}

func relayStderr(from *os.File, to io.Writer) *stderrRelay {
	if to == nil {
		to = os.Stderr
	}
	r := &stderrRelay{from: from, chunks: make(chan []byte, stderrChunks), done: make(chan struct{})}
	go r.read()
	go r.write(to)
	return r
}

func (r *stderrRelay) read() {
	defer close(r.chunks)
	buf := make([]byte, stderrChunk)
	dropped := 0
	for {
		n, err := r.from.Read(buf)
		if n > 0 {
			dropped = r.pass(append([]byte(nil), buf[:n]...), dropped)
		}
		if err != nil {
			_ = r.from.Close()
			return
		}
	}
}

// pass hands chunk on, or drops it if nobody takes it in time. dropped counts
// the bytes that were dropped since the last that passed, and so does the
// result.
func (r *stderrRelay) pass(chunk []byte, dropped int) int {
	if dropped > 0 {
		notice := fmt.Appendf(nil, "\n[%d bytes of the server's log were dropped: stderr was not being read]\n", dropped)
		chunk = append(notice, chunk...)
		select {
		case r.chunks <- chunk:
			return 0
		default:
			return dropped + len(chunk) - len(notice)
		}
	}
	select {
	case r.chunks <- chunk:
		return 0
	default:
	}
	timer := time.NewTimer(stderrStall)
	defer timer.Stop()
	select {
	case r.chunks <- chunk:
		return 0
	case <-timer.C:
		return len(chunk)
	}
}

func (r *stderrRelay) write(to io.Writer) {
	defer close(r.done)
	var err error
	for chunk := range r.chunks {
		if err == nil { // a reader that is gone must not end the child
			_, err = to.Write(chunk)
		}
	}
}

// finish waits for the rest, no longer than the time d. A writer that is
// blocked for good is left alone. The relay may be nil.
func (r *stderrRelay) finish(d time.Duration) {
	if r == nil || waitFor(r.done, d) {
		return
	}
	_ = r.from.Close() // held open by a process outside the group
	waitFor(r.done, d)
}
