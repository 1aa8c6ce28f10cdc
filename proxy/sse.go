package proxy

import (
	"bytes"
)

// An sseParser reads a text/event-stream in pieces of any size (WHATWG HTML,
// section 9.2) and writes it again. Whatever stands in front of an event's
// first data line passes at once, as the bytes that came; from there on the
// event is held until its end, when its data can be judged. An event that is
// not changed leaves as the same bytes; of one that is changed, only the data
// lines are others.
//
// A line ends with LF, CRLF or CR, as in every browser.
type sseParser struct {
	// max is the largest data of an event in bytes; 0: no bound.
	max int

	// event judges the data of one event. The slice is valid during the call
	// alone. It returns what the client gets as data: the same slice to keep
	// the event's bytes, nil for no data at all.
	event func(name string, data []byte) []byte

	// piece is given the data of an event that is larger than max, as it
	// comes, and tooLarge is asked, at its end, for what stands in its place.
	piece    func(p []byte)
	tooLarge func() []byte

	out []byte // read, judged, and not yet taken

	line    []byte // the beginning of a line of which the kind is not known yet
	passing bool   // the rest of the line passes as it comes
	foreign foreignEnd
	dropped bool   // the rest of the line belongs to an event that is too large
	inData  bool   // the rest of the line is data, and stands in held
	begun   bool   // the first line has begun: a byte order mark may stand in front of it alone
	cr      bool   // the last byte was CR, so an LF belongs to it
	held    []byte // the event from its first data line on
	lines   []dataLine
	large   bool // the event is too large: nothing more of it is held
	inEvent bool // lines of an event that has not ended are out
	hasID   bool // the event has an id, as far as it was read
	resumes bool // an event that has ended had one: a client may ask for what follows it
	name    string
	scratch []byte
}

// A dataLine is where a data line stands in held, in bytes.
type dataLine struct {
	start, value, eol, end int
}

// boundary reports whether what is out ends where an event ends, so that
// another one may follow.
func (p *sseParser) boundary() bool { return !p.inEvent }

// write reads b up to the end of the first event that has data, and returns
// how much of b that is. What is there for the client is appended to out.
func (p *sseParser) write(b []byte) int {
	for n := 0; n < len(b); {
		if p.cr {
			p.cr = false
			if b[n] == '\n' {
				p.lineFeed()
				n++
				continue
			}
		}
		rest := b[n:]
		i := lineEnd(rest)
		if i < 0 {
			p.partial(rest)
			return len(b)
		}
		p.partial(rest[:i])
		p.cr = rest[i] == '\r'
		n += i + 1
		if p.endLine(rest[i]) {
			return n
		}
	}
	return len(b)
}

// lineEnd is the offset of the first CR or LF, -1 if there is none.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if r := bytes.IndexByte(b, '\r'); r >= 0 {
		return r
	}
	return n
}

// lineFeed reads the LF of a CRLF, of which the CR has ended the line.
func (p *sseParser) lineFeed() {
	switch {
	case p.large:
	case len(p.lines) > 0:
		p.held = append(p.held, '\n')
		if last := &p.lines[len(p.lines)-1]; last.end == len(p.held)-1 {
			last.end++
		}
	default:
		p.out = append(p.out, '\n')
	}
}

const (
	fieldData  = "data"
	fieldEvent = "event"
	fieldID    = "id"

	// maxEventName is the longest event name that is looked at, in bytes.
	maxEventName = 64
)

var bom = []byte("\ufeff")

// partial reads a piece of a line that has no line end in it.
func (p *sseParser) partial(b []byte) {
	switch {
	case len(b) == 0:
	case p.dropped:
		p.piece(b)
	case p.inData:
		p.data(b)
	case p.passing:
		p.pass(p.foreign.before(b))
	default:
		p.line = append(p.line, b...)
		p.classify()
	}
}

// classify finds out, from its beginning, what becomes of a line.
func (p *sseParser) classify() {
	text := p.line
	if !p.begun {
		if len(text) < len(bom) && bytes.HasPrefix(bom, text) {
			return
		}
		text = bytes.TrimPrefix(text, bom)
	}
	switch {
	case isPrefix(text, fieldData+":"), isPrefix(text, fieldEvent+":"), isPrefix(text, fieldID+":"):
	case bytes.HasPrefix(text, []byte(fieldData+":")):
		p.begun = true
		p.beginData(len(p.line) - len(text))
	case bytes.HasPrefix(text, []byte(fieldEvent+":")) && len(text) <= len(fieldEvent)+2+maxEventName:
	default:
		p.begun, p.passing = true, true
		p.hasID = p.hasID || bytes.HasPrefix(text, []byte(fieldID+":"))
		p.pass(p.foreign.before(p.line))
		p.line = p.line[:0]
	}
}

// isPrefix reports whether field may still become of text.
func isPrefix(text []byte, field string) bool {
	return len(text) < len(field) && string(text) == field[:len(text)]
}

// pass takes bytes that are not data: at once in front of the first data line,
// with the event behind it.
func (p *sseParser) pass(b []byte) {
	switch {
	case p.large:
	case len(p.lines) > 0:
		if p.fits(len(b)) {
			p.held = append(p.held, b...)
		}
	default:
		p.out = append(p.out, b...)
		p.inEvent = true
	}
}

// beginData takes the line as a data line, of which the first skip bytes are
// in front of the field's name.
func (p *sseParser) beginData(skip int) {
	line := p.line
	p.line = p.line[:0]
	if p.large {
		p.dropped = true
		p.piece(line[skip+len(fieldData)+1:])
		return
	}
	start := len(p.held) + skip
	at := dataLine{start: start, value: start + len(fieldData) + 1}
	p.lines = append(p.lines, at)
	p.inData = true
	p.data(line)
}

// data adds a piece of a data line to what is held.
func (p *sseParser) data(b []byte) {
	if p.fits(len(b)) {
		p.held = append(p.held, b...)
	} else {
		p.piece(b)
	}
}

// fits reports whether n more bytes may be held. Once they may not, what is
// held is given to piece, and the event to be.
func (p *sseParser) fits(n int) bool {
	if p.max <= 0 || len(p.held)+n <= p.max+sseSlack {
		return true
	}
	p.giveUp()
	return false
}

// giveUp takes the event as too large.
func (p *sseParser) giveUp() {
	p.large = true
	p.piece(p.joined(len(p.held)))
	p.held, p.lines = nil, p.lines[:0]
	if p.inData {
		p.inData, p.dropped = false, true
	}
}

// sseSlack is how much an event may be larger than its data, in bytes: for
// field names, line ends and other fields.
const sseSlack = 1 << 10

// endLine reads a line end, and reports whether an event with data ended.
func (p *sseParser) endLine(c byte) bool {
	blank := len(p.line) == 0 && !p.passing && !p.dropped && !p.inData
	switch {
	case blank:
		return p.endEvent(c)
	case p.dropped:
		p.piece([]byte("\n"))
	case p.inData:
		p.endData(c)
	case p.passing:
		p.pass(append(p.foreign.rest(), c))
	default:
		p.wholeLine(c)
	}
	p.passing, p.dropped, p.inData = false, false, false
	p.foreign = foreignEnd{}
	return false
}

// endData ends a data line.
func (p *sseParser) endData(c byte) {
	last := &p.lines[len(p.lines)-1]
	last.eol = len(p.held)
	p.held = append(p.held, c)
	last.end = len(p.held)
	if last.value < last.eol && p.held[last.value] == ' ' {
		last.value++
	}
}

// wholeLine takes a line that is whole and that was too short or too
// interesting to be classified before.
func (p *sseParser) wholeLine(c byte) {
	text := p.line
	if !p.begun {
		text = bytes.TrimPrefix(text, bom)
		p.begun = true
	}
	skip := len(p.line) - len(text)
	if string(text) == fieldData { // without a colon: an empty value
		if !p.large && p.fits(len(p.line)+1) {
			start := len(p.held) + skip
			p.held = append(append(p.held, p.line...), c)
			p.lines = append(p.lines, dataLine{start: start, value: len(p.held) - 1, eol: len(p.held) - 1, end: len(p.held)})
		}
		p.line = p.line[:0]
		return
	}
	text = append(p.foreign.before(text), p.foreign.rest()...)
	if name, ok := bytes.CutPrefix(text, []byte(fieldEvent+":")); ok {
		p.name = eventName(bytes.TrimPrefix(name, []byte(" ")))
	} else if string(text) == fieldEvent {
		p.name = ""
	}
	p.pass(append(append(p.line[:skip], text...), c))
	p.line = p.line[:0]
}

// eventName is the name as a string, which takes no memory for the usual one.
func eventName(name []byte) string {
	if string(name) == "message" {
		return "message"
	}
	return string(name)
}

// endEvent reads the blank line that ends an event.
func (p *sseParser) endEvent(c byte) bool {
	p.begun = true
	data := len(p.lines) > 0 || p.large
	if p.max > 0 && p.size() > p.max {
		p.giveUp()
	}
	switch {
	case p.large:
		p.emit(p.tooLarge())
	case data:
		p.judge()
	}
	p.out = append(p.out, c)
	p.resumes = p.resumes || p.hasID
	p.name, p.large, p.inEvent, p.hasID = "", false, false, false
	p.held, p.lines = p.held[:0], p.lines[:0]
	return data
}

// judge has the data of the event judged, and appends to out what comes of it.
func (p *sseParser) judge() {
	data := p.joined(len(p.held))
	now := p.event(p.name, data)
	if now != nil && same(now, data) {
		if len(p.out) == 0 {
			p.out, p.held = p.held, p.out
			return
		}
		p.out = append(p.out, p.held...)
		return
	}
	from := 0
	for i, l := range p.lines {
		p.out = append(p.out, p.held[from:l.start]...)
		if i == 0 && now != nil {
			p.emit(now)
		}
		from = l.end
	}
	p.out = append(p.out, p.held[from:]...)
}

// emit appends data lines. A line end in data, which JSON has between tokens
// alone, is one between two lines.
func (p *sseParser) emit(data []byte) {
	if data == nil {
		return
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		p.out = append(append(append(p.out, "data: "...), line...), '\n')
	}
}

// add appends an event of ours, behind what has come of one that was not ended.
func (p *sseParser) add(data []byte) {
	if p.inEvent {
		p.out = append(p.out, "\n\n"...) // a reader drops an event without data
		p.inEvent = false
	}
	p.emit(data)
	p.out = append(p.out, '\n')
}

// size is how many bytes of data are held, line ends not counted.
func (p *sseParser) size() int {
	n := 0
	for _, l := range p.lines {
		n += l.eol - l.value
	}
	return n
}

// joined is the data of the event: its data lines' values, LF between them.
func (p *sseParser) joined(end int) []byte {
	if len(p.lines) == 0 {
		return nil
	}
	value := func(l dataLine) []byte {
		if l.eol == 0 { // still being read
			l.eol = end
		}
		v := p.held[min(l.value, l.eol):l.eol]
		if l.eol == end && l.end == 0 {
			v = bytes.TrimPrefix(v, []byte(" "))
		}
		return v
	}
	if len(p.lines) == 1 {
		return value(p.lines[0])
	}
	p.scratch = p.scratch[:0]
	for i, l := range p.lines {
		if i > 0 {
			p.scratch = append(p.scratch, '\n')
		}
		p.scratch = append(p.scratch, value(l)...)
	}
	if cap(p.scratch) > keepBuffer {
		defer func() { p.scratch = nil }()
	}
	return p.scratch
}

// end ends the stream. An event without an end is none to a browser, but
// other readers take it, so it is judged like the others. cut says that the
// stream broke off: then what is held of an event is not passed.
func (p *sseParser) end(cut bool) {
	if cut || p.large {
		if !cut {
			p.emit(p.tooLarge())
			p.out = append(p.out, '\n')
		}
		return
	}
	if p.inData {
		p.endData('\n')
		p.held = p.held[:len(p.held)-1]
		p.lines[len(p.lines)-1].end--
	}
	if len(p.lines) > 0 {
		p.judge()
	}
	p.out = append(p.out, p.foreign.before(p.line)...)
	p.out = append(p.out, p.foreign.rest()...)
	p.line = nil
}
