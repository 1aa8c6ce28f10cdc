package proxy

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"time"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A position is where a reader of event streams stands: what it needs to go on
// after a break (WHATWG HTML, section 9.2; MCP 2025-11-25, SEP-1699).
type position struct {
	id    string        // of the last event that was whole; empty if none had one
	retry time.Duration // what the server asks to wait before coming back; 0: nothing
}

// maxEventID is the longest event id that is kept, in bytes. A longer one would
// not fit into a header.
const maxEventID = 4 << 10

// An remoteEvents reads an event stream, event by event. The parser keeps the
// data apart; what it passes are the other fields.
type remoteEvents struct {
	at   *position
	each func(name string, data []byte) // of each event that has data
	skim func(rewrite.Skim)             // of an event that is too large; what it was

	parse   sseParser
	line    []byte // an unfinished line that the parser passed
	cr      bool   // the last byte passed was CR
	begun   bool   // a line was read: a byte order mark may stand in front of the first alone
	id      string // of the event that is being read
	hasID   bool
	tooBig  rewrite.Skim
	current room
}

// read reads a stream to its end. The error is nil if it ended with io.EOF.
func (e *remoteEvents) read(ctx context.Context, r io.Reader, p *Proxy) error {
	e.current.answers = true
	e.parse = sseParser{
		max: int(p.maxMessage()),
		event: func(name string, data []byte) []byte {
			if len(data) > 0 {
				e.each(name, data)
			}
			return nil
		},
		piece: func(b []byte) { _, _ = e.tooBig.Write(b) },
		tooLarge: func() []byte {
			e.skim(e.tooBig)
			e.tooBig = rewrite.Skim{}
			return nil
		},
	}
	defer e.current.give()
	buf := sseBufferPool.Get().(*[sseBuffer]byte)
	defer sseBufferPool.Put(buf)
	for {
		n, err := r.Read(buf[:])
		for rest := buf[:n]; len(rest) > 0; {
			rest = rest[e.parse.write(rest):]
			e.fields()
			e.account(ctx, p)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// account counts a large event that is being read to the bytes in flight.
func (e *remoteEvents) account(ctx context.Context, p *Proxy) {
	switch held := int64(len(e.parse.held)); {
	case held < frameBuffer:
		e.current.give()
	case held > e.current.size:
		if !p.inflight.take(ctx, &e.current, held-e.current.size) {
			e.parse.giveUp()
			e.current.give()
		}
	}
}

// fields reads the lines that the parser has passed.
func (e *remoteEvents) fields() {
	for _, c := range e.parse.out {
		switch {
		case c == '\n' && e.cr:
		case c == '\n' || c == '\r':
			e.field()
			e.line = e.line[:0]
		case len(e.line) < maxEventID+len("retry: "): // the rest of a longer one says nothing to us
			e.line = append(e.line, c)
		}
		e.cr = c == '\r'
	}
	e.parse.out = e.parse.out[:0]
}

// field takes one line. The id of an event counts once the event is whole, or
// one that broke off would not be sent again.
func (e *remoteEvents) field() {
	if len(e.line) == 0 {
		e.begun = true
		if e.hasID {
			e.at.id, e.hasID = e.id, false
		}
		return
	}
	line := e.line
	if !e.begun {
		line = bytes.TrimPrefix(line, bom)
	}
	e.begun = true
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if len(value) <= maxEventID && bytes.IndexByte(value, 0) < 0 {
			e.id, e.hasID = string(value), true
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.at.retry = time.Duration(ms) * time.Millisecond
		}
	}
}
