package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// frameBuffer is the size of a stream's read buffer in bytes. A line that fits
// is handled where it stands, without a copy.
const frameBuffer = 64 << 10

// keepBuffer is the largest buffer for long lines, in bytes, that is kept for
// the next one.
const keepBuffer = 1 << 20

// A frameReader cuts a stream into lines: one message each (MCP, transports,
// stdio). It takes LF and CRLF, skips a byte order mark at the start and blank
// lines anywhere, and counts a last line without an end.
type frameReader struct {
	r     io.Reader
	max   int64 // longest line in bytes; 0: no bound
	room  *inflight
	block func() // called before a read that may block

	buf        []byte // read, and not yet handed out from start on
	start, end int
	long       []byte // a line that did not fit into buf
	taken      room
	begun      bool
	err        error
}

// A frame is one line of a stream.
type frame struct {
	line []byte // without its end; valid until the next call
	wire []byte // the same with LF, where it stands like that in memory; else nil

	// tooLarge says that the line was skipped, and why; then skim tells what
	// it was.
	tooLarge string
	skim     rewrite.Skim
}

// next returns the next line that is not blank. Its error is that of the
// stream, io.EOF at its end.
func (f *frameReader) next(ctx context.Context) (frame, error) {
	f.taken.give()
	if cap(f.long) > keepBuffer {
		f.long = nil
	}
	f.long = f.long[:0]
	if f.buf == nil {
		f.buf = make([]byte, frameBuffer)
	}
	for {
		if i := bytes.IndexByte(f.buf[f.start:f.end], '\n'); i >= 0 {
			line := f.buf[f.start : f.start+i+1]
			f.start += i + 1
			fr := frame{}
			if len(f.long) > 0 {
				if fr.tooLarge = f.grow(ctx, line); fr.tooLarge != "" {
					fr.skim.Write(f.long)
					return fr, nil
				}
				line = f.long
			} else if !f.fits(int64(len(line)) - 1) {
				fr.tooLarge = f.limitText()
				fr.skim.Write(line)
				return fr, nil
			}
			if fr.set(f, line) {
				return fr, nil
			}
			f.long = f.long[:0]
			continue
		}
		if f.err != nil {
			return f.last(ctx)
		}
		if why := f.keep(ctx); why != "" {
			return f.skip(why)
		}
		f.fill()
	}
}

// set takes a line with its end as the frame's, and reports false if it is blank.
func (fr *frame) set(f *frameReader, line []byte) bool {
	text := bytes.TrimSuffix(line, []byte("\n"))
	fr.wire = line
	if len(text) == len(line) {
		fr.wire = nil
	}
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text, fr.wire = text[:n-1], nil
	}
	if !f.begun {
		f.begun = true
		if t, cut := bytes.CutPrefix(text, []byte("\ufeff")); cut {
			text, fr.wire = t, nil
		}
	}
	fr.line = text
	return len(bytes.TrimLeft(text, " \t\r")) > 0
}

// last returns what stands behind the last line end.
func (f *frameReader) last(ctx context.Context) (frame, error) {
	line := f.buf[f.start:f.end]
	f.start = f.end
	if len(line)+len(f.long) == 0 {
		return frame{}, f.err
	}
	// One byte is taken off for the line end that is not there.
	why := f.grow(ctx, append(line[:len(line):len(line)], '\n'))
	line, f.long = f.long[:len(f.long)-1], nil
	var fr frame
	if why != "" {
		fr.tooLarge = why
		fr.skim.Write(line)
		return fr, nil
	}
	if fr.set(f, line) {
		return fr, nil
	}
	return frame{}, f.err
}

// keep makes room in the buffer for more of the line that is being read. It
// returns why the line is too large, empty if it is not.
func (f *frameReader) keep(ctx context.Context) string {
	if f.start > 0 {
		copy(f.buf, f.buf[f.start:f.end])
		f.start, f.end = 0, f.end-f.start
	}
	if f.end < len(f.buf) {
		return ""
	}
	why := f.grow(ctx, f.buf)
	f.start, f.end = 0, 0
	return why
}

// grow adds a piece to the long line.
func (f *frameReader) grow(ctx context.Context, piece []byte) string {
	if !f.fits(int64(len(f.long) + len(piece) - 1)) {
		f.long = append(f.long, piece...)
		return f.limitText()
	}
	if f.room != nil && !f.room.take(ctx, &f.taken, int64(len(piece))) {
		f.long = append(f.long, piece...)
		return "too many bytes are in flight in this proxy (limits.max-inflight); try again later"
	}
	f.long = append(f.long, piece...)
	return ""
}

func (f *frameReader) fits(n int64) bool { return f.max <= 0 || n <= f.max }

func (f *frameReader) limitText() string {
	return "it is larger than the largest message allowed, " + sizeText(f.max) + " (--max-message)"
}

// skip reads to the end of a line that is too large, without keeping it.
func (f *frameReader) skip(why string) (frame, error) {
	fr := frame{tooLarge: why}
	fr.skim.Write(f.long)
	f.long = nil
	f.taken.give()
	for {
		piece := f.buf[f.start:f.end]
		if i := bytes.IndexByte(piece, '\n'); i >= 0 {
			fr.skim.Write(piece[:i])
			f.start += i + 1
			f.begun = true
			return fr, nil
		}
		fr.skim.Write(piece)
		f.start, f.end = 0, 0
		if f.err != nil {
			return fr, nil // the error comes with the next call
		}
		f.fill()
	}
}

// fill reads once. A reader that returns nothing a hundred times is broken.
func (f *frameReader) fill() {
	if f.block != nil {
		f.block()
	}
	for range 100 {
		n, err := f.r.Read(f.buf[f.end:])
		f.end += n
		f.err = err
		if n > 0 || err != nil {
			return
		}
	}
	f.err = io.ErrNoProgress
}

// A frameWriter writes messages to a stream, one a line. It is safe for
// concurrent use. What is written by write may wait in a buffer until flush.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error

	posts chan []byte // messages of our own, see post; made on first use
	done  chan struct{}
}

// maxPosts is how many messages of our own may wait for a slow reader. Beyond
// it, whoever posts waits.
const maxPosts = 64

var errClosed = errors.New("the stream is closed")

// write adds a message to the buffer, and passes on a full one.
func (f *frameWriter) write(message, wire []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if wire != nil && same(message, wire[:len(wire)-1]) {
		return f.append(wire)
	}
	if len(f.buf)+len(message)+1 > frameBuffer {
		if err := f.append(message); err != nil {
			return err
		}
		f.buf = append(f.buf, '\n')
		return f.err
	}
	f.buf = append(append(f.buf, message...), '\n')
	return nil
}

// append adds bytes to the buffer or, if they are many, writes them through.
func (f *frameWriter) append(p []byte) error {
	if len(f.buf)+len(p) <= frameBuffer {
		f.buf = append(f.buf, p...)
		return f.err
	}
	f.out()
	if len(p) >= frameBuffer && f.err == nil {
		_, f.err = f.w.Write(p)
		return f.err
	}
	f.buf = append(f.buf, p...)
	return f.err
}

func (f *frameWriter) out() {
	if len(f.buf) > 0 && f.err == nil {
		_, f.err = f.w.Write(f.buf)
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

// fail makes all further writes fail.
func (f *frameWriter) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

// post writes a message of our own, from the side: not in the way of whoever
// posts it, so that a slow reader on this stream does not hold up the other
// direction.
func (f *frameWriter) post(message []byte) bool {
	f.mu.Lock()
	if f.err != nil {
		f.mu.Unlock()
		return false
	}
	if f.posts == nil {
		f.posts, f.done = make(chan []byte, maxPosts), make(chan struct{})
		go f.deliver(f.posts, f.done)
	}
	posts := f.posts
	f.mu.Unlock()
	posts <- bytes.Clone(message)
	return true
}

func (f *frameWriter) deliver(posts <-chan []byte, done chan<- struct{}) {
	defer close(done)
	for message := range posts {
		_ = f.write(message, nil) // kept in err
		if len(posts) == 0 {
			_ = f.flush()
		}
	}
}

// close delivers what was posted and flushes. Nobody may post any more.
func (f *frameWriter) close() error {
	f.mu.Lock()
	posts, done := f.posts, f.done
	f.mu.Unlock()
	if posts != nil {
		close(posts)
		<-done
	}
	return f.flush()
}
