package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"

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
	max   int64        // longest line in bytes; 0: no bound
	limit func() int64 // what max is from the next line on; nil: what it is
	room  *inflight
	block func() error // called before a read that may block; its error ends the stream; may be nil

	buf        []byte // read, and not yet handed out from start on
	start, end int
	looked     int    // from start on, how far there is no line end
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

// unreadable is the frame of a line that Scan refuses but that is a message all
// the same, from its beginning to its end: one with a NaN in it, as Python
// writes it, or nested too deep. Somebody waits for it, or for the answer to
// it. It reports false for a log line, or a message that was cut.
func unreadable(line []byte, why error) (frame, bool) {
	f := frame{tooLarge: why.Error()}
	if _, ok := errors.AsType[*rewrite.SyntaxError](why); !ok {
		return f, false
	}
	_, _ = f.skim.Write(line)
	return f, f.skim.Whole() && (f.skim.Kind() == rewrite.KindRequest || f.skim.Kind() == rewrite.KindResult)
}

// next returns the next line that is not blank. Its error is that of the
// stream, io.EOF at its end.
func (f *frameReader) next(ctx context.Context) (frame, error) {
	f.taken.give()
	if f.limit != nil {
		f.max = f.limit()
	}
	if cap(f.long) > keepBuffer {
		f.long = nil
	}
	f.long = f.long[:0]
	if f.buf == nil {
		f.buf = make([]byte, frameBuffer)
	}
	for {
		if i := bytes.IndexByte(f.buf[f.start+f.looked:f.end], '\n'); i >= 0 {
			line := f.buf[f.start : f.start+f.looked+i+1]
			f.start += len(line)
			f.looked = 0
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
			f.taken.give()
			continue
		}
		f.looked = f.end - f.start
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
	f.start, f.looked = f.end, 0
	if len(line)+len(f.long) == 0 {
		return frame{}, f.err
	}
	var fr frame
	switch {
	case len(f.long) > 0:
		// With a line end that is not there, as grow expects one.
		fr.tooLarge = f.grow(ctx, append(line[:len(line):len(line)], '\n'))
		line, f.long = f.long[:len(f.long)-1], nil
	case !f.fits(int64(len(line))):
		fr.tooLarge = f.limitText()
	}
	if fr.tooLarge != "" {
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
	f.start, f.end, f.looked = 0, 0, 0
	return why
}

// grow adds a piece to the long line.
func (f *frameReader) grow(ctx context.Context, piece []byte) string {
	switch need := len(f.long) + len(piece); {
	case f.long == nil:
		f.long = make([]byte, 0, keepBuffer) // once, and not in steps
	case need > cap(f.long):
		f.long = append(bodyBuffer(max(2*cap(f.long), need)), f.long...)
	}
	if !f.fits(int64(len(f.long) + len(piece) - 1)) {
		f.long = append(f.long, piece...)
		return f.limitText()
	}
	if f.room != nil && !f.room.take(ctx, &f.taken, int64(len(piece))) {
		f.long = append(f.long, piece...)
		return "too many bytes are in flight in this proxy (--max-inflight); try again later"
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
			f.looked = 0
			f.begun = true
			return fr, nil
		}
		fr.skim.Write(piece)
		f.start, f.end, f.looked = 0, 0, 0
		if f.err != nil {
			return fr, nil // the error comes with the next call
		}
		f.fill()
	}
}

// fill reads once. A reader that returns nothing a hundred times is broken.
func (f *frameReader) fill() {
	if f.block != nil {
		if f.err = f.block(); f.err != nil {
			return
		}
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
