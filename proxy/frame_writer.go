package proxy

import (
	"bytes"
	"io"
	"sync"
)

// A frameWriter writes messages to a stream, one a line. It is safe for
// concurrent use. What is written by write may wait in a buffer until flush.
type frameWriter struct {
	w    io.Writer
	lost func(lines []byte) // told of what write took and w did not; may be nil

	mu  sync.Mutex // held while w takes its time
	buf []byte
	err error

	// posts are messages of our own, see post.
	posts   chan []byte
	closing chan struct{} // closed by close: nothing may be posted any more
	done    chan struct{} // closed when the last post is written
	start   sync.Once     // of deliver
	stop    sync.Once     // of closing
}

// maxPosts is how many messages of our own may wait for a slow reader. Beyond
// it, whoever posts waits.
const maxPosts = 64

func newFrameWriter(w io.Writer) *frameWriter {
	return &frameWriter{w: w, posts: make(chan []byte, maxPosts), closing: make(chan struct{}), done: make(chan struct{})}
}

// oneLine makes a message fit for a line: a line end in JSON stands between
// tokens, where a space is as good. CR is one to many readers (Java's
// BufferedReader, .NET's StreamReader, Python's text files, so the SDKs), to
// which a value behind it would be a message of its own that nobody has judged.
func oneLine(message []byte) {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return
	}
	for i, c := range message {
		if c == '\n' || c == '\r' {
			message[i] = ' '
		}
	}
}

// write adds a message to the buffer, and passes on a full one. If the message
// still stands in front of its line end, wire is both. A line end inside of it
// is overwritten. An error means that this message did not get through.
func (f *frameWriter) write(message, wire []byte) error {
	oneLine(message)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if wire != nil && same(message, wire[:len(wire)-1]) {
		f.append(wire)
		return f.err
	}
	f.append(message)
	if f.err == nil {
		f.append([]byte{'\n'})
	}
	return f.err
}

// append adds bytes to the buffer or, if they are many, writes them through.
func (f *frameWriter) append(p []byte) {
	if len(f.buf)+len(p) > frameBuffer {
		f.out()
		if len(p) >= frameBuffer && f.err == nil {
			_, f.err = f.w.Write(p)
			return
		}
	}
	f.buf = append(f.buf, p...)
}

func (f *frameWriter) out() {
	if len(f.buf) > 0 && f.err == nil {
		var n int
		if n, f.err = f.w.Write(f.buf); f.err != nil && f.lost != nil {
			whole := bytes.LastIndexByte(f.buf[:n], '\n') + 1
			f.lost(f.buf[whole:])
		}
	}
	f.buf = f.buf[:0]
}

// flush passes on what waits in the buffer.
func (f *frameWriter) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out()
	return f.err
}

// post writes a message of our own, from the side: not in the way of whoever
// posts it, so that a slow reader on this stream does not hold up the other
// direction. It reports false once the writer is closed.
func (f *frameWriter) post(message []byte) bool {
	select {
	case <-f.closing:
		return false
	default:
	}
	f.start.Do(func() { go f.deliver() })
	select {
	case f.posts <- bytes.Clone(message):
		return true
	case <-f.closing:
		return false
	}
}

// deliver writes what is posted. An error is kept for those who write.
func (f *frameWriter) deliver() {
	defer close(f.done)
	for {
		select {
		case message := <-f.posts:
			_ = f.write(message, nil)
			if len(f.posts) == 0 {
				_ = f.flush()
			}
		case <-f.closing:
			for {
				select {
				case message := <-f.posts:
					_ = f.write(message, nil)
				default:
					return
				}
			}
		}
	}
}

// close delivers what was posted and flushes. It may be called more than once.
func (f *frameWriter) close() error {
	f.shut()
	f.start.Do(func() { close(f.done) })
	<-f.done
	return f.flush()
}

// shut refuses further posts, and waits for nothing.
func (f *frameWriter) shut() { f.stop.Do(func() { close(f.closing) }) }
