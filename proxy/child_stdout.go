package proxy

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// maxQueued bounds what is read from a pipe after it was cut, in bytes: what
// a pipe can hold (64 KiB; 1 MiB where pages have 64 KiB). A process that
// writes on must not keep us reading.
const maxQueued = 1 << 20

// stdoutPipe reads a child's stdout to its end: the end of file or, where a
// process outside the child's group keeps the pipe open, the cut.
type stdoutPipe struct {
	file *os.File
	cut  atomic.Bool
	late int // bytes read since the cut
}

// cutAfter makes the pipe end after the time d, behind what it holds then.
func (s *stdoutPipe) cutAfter(d time.Duration) {
	s.cut.Store(true)
	if s.file.SetReadDeadline(time.Now().Add(d)) != nil {
		// Windows, where a pipe has no deadlines; and where the job has
		// ended, nobody is left who could hold it.
		time.AfterFunc(d, func() { _ = s.file.Close() })
	}
}

func (s *stdoutPipe) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrClosed):
		return n, io.EOF
	case !s.cut.Load() || !errors.Is(err, os.ErrDeadlineExceeded):
		_ = s.file.Close()
		return n, err
	}
	// A read that is past its deadline doesn't even try.
	_ = s.file.SetReadDeadline(time.Time{})
	n, err = readQueued(s.file, p[:min(len(p), maxQueued-s.late)])
	s.late += n
	if err != nil { // the pipe is empty, or what was read is enough
		_ = s.file.Close()
		return n, io.EOF
	}
	_ = s.file.SetReadDeadline(time.Unix(1, 0))
	return n, nil
}
