package rewrite

// A Skim reads a message that is too large to be kept, or that [Scan] refuses,
// in pieces of any size, and remembers what is needed to answer for it: the id
// and the method at its top level, wherever they stand (TypeScript servers write
// the id last). It needs no memory but a few bytes. What is not JSON is not
// noticed here; it just has no id.
type Skim struct {
	state   skimState
	depth   int
	key     skimText // the member's key, or its value if that is id or method
	id      skimText
	method  skimText
	name    string // of the member whose value is being read: id, method or another
	result  bool   // it has a result or an error: a response
	escaped bool
}

// maxSkimText bounds the id and the method of a message that is too large, in
// bytes; one that is longer is taken as missing.
const maxSkimText = 1024

type skimText struct {
	text []byte
	over bool
}

func (t *skimText) add(c byte) {
	if len(t.text) == maxSkimText {
		t.over = true
		return
	}
	t.text = append(t.text, c)
}

type skimState uint8

const (
	skimOutside skimState = iota // before the top-level object, or between its parts
	skimKey                      // in a key at the top level
	skimColon                    // behind a key
	skimScalar                   // in a number or literal at the top level
	skimString                   // in a string, at whatever depth
	skimNested                   // inside of a nested array or object
)

// Write reads the next piece. It never fails.
func (s *Skim) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		if s.state == skimString && !s.escaped && (s.depth > 1 || s.key.over) {
			if i = plain(p, i); i == len(p) { // nothing of it is kept
				break
			}
		}
		s.next(p[i])
	}
	return len(p), nil
}

func (s *Skim) next(c byte) {
	switch s.state {
	case skimOutside:
		switch c {
		case '{', '[':
			s.depth++
		case '}', ']':
			s.depth--
		case '"':
			if s.depth == 1 {
				s.key, s.state = skimText{text: s.key.text[:0]}, skimKey
			}
		}
	case skimKey:
		if s.quoted(c) {
			s.name, s.state = string(s.key.text), skimColon
		} else {
			s.key.add(c)
		}
	case skimColon:
		s.value(c)
	case skimScalar:
		if c == ',' || c == '}' || c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			s.keep()
			s.state = skimOutside
			if c == '}' {
				s.depth--
			}
			return
		}
		s.key.add(c)
	case skimString:
		if s.depth == 1 {
			s.key.add(c)
		}
		if s.quoted(c) {
			if s.state = skimNested; s.depth == 1 {
				s.keep()
				s.state = skimOutside
			}
		}
	case skimNested:
		switch c {
		case '"':
			s.state = skimString
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == 1 {
				s.state = skimOutside
			}
		}
	}
}

// value begins the value of a member at the top level.
func (s *Skim) value(c byte) {
	if c == ':' || c == ' ' || c == '\t' || c == '\r' || c == '\n' {
		return
	}
	s.result = s.result || s.name == "result" || s.name == "error"
	s.key = skimText{text: s.key.text[:0]}
	switch c {
	case '{', '[':
		s.depth++
		s.state = skimNested
	case '"':
		s.key.add(c)
		s.state = skimString
	default:
		s.key.add(c)
		s.state = skimScalar
	}
}

// quoted reports whether c ends the string that it stands in.
func (s *Skim) quoted(c byte) bool {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		return true
	}
	return false
}

// keep takes the value that was read if it is one that counts; of duplicates the last.
func (s *Skim) keep() {
	switch s.name {
	case "id":
		s.id = skimText{append([]byte(nil), s.key.text...), s.key.over}
	case "method":
		s.method = skimText{append([]byte(nil), s.key.text...), s.key.over}
	}
}

// ID returns the message's id as it was written, nil if it has none that is a
// string or a number.
func (s *Skim) ID() []byte {
	if s.id.over || len(s.id.text) == 0 {
		return nil
	}
	end := 0
	switch c := s.id.text[0]; {
	case c == '"':
		end, _ = str(s.id.text, 1)
	case c == '-' || c >= '0' && c <= '9':
		end = number(s.id.text, 0)
	}
	if end != len(s.id.text) {
		return nil
	}
	return s.id.text
}

// Kind returns what the message is, as far as can be told.
func (s *Skim) Kind() Kind {
	_, hasMethod := String(s.method.text, Span{0, len(s.method.text)})
	switch {
	case hasMethod && s.ID() != nil:
		return KindRequest
	case hasMethod:
		return KindNotification
	case s.result && s.ID() != nil:
		return KindResult
	}
	return KindInvalid
}

// Whole reports whether the end of the message was reached: what was read is
// not the beginning of a longer text.
func (s *Skim) Whole() bool { return s.depth == 0 && s.state == skimOutside }

// Method returns the message's method, empty if it has none.
func (s *Skim) Method() string {
	m, _ := String(s.method.text, Span{0, len(s.method.text)})
	return m
}
