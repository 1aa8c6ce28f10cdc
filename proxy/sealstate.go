package proxy

import (
	"encoding/binary"
	"time"
)

// State is what is sealed with the questions of one result.
type State struct {
	// ServerState is the server's own requestState, raw JSON; nil if it sent none.
	ServerState []byte
	// Call is the CallDigest of the request that was answered with questions.
	Call [32]byte
	// Dialect is the rewrite.Dialect in which the client was asked.
	Dialect uint8
	// Forms are the questions whose answers are to be checked.
	Forms []SealedForm
	// Answered are the good answers of earlier rounds, raw JSON, by their keys.
	Answered map[string][]byte

	expires time.Time
}

// SealedForm is one question.
type SealedForm struct {
	Key     string // in inputRequests
	Request []byte // its value there, as the server wrote it
	Rules   uint32 // the rewrite.Rules by which the client was asked
	URL     bool   // it is of mode url
	Tries   int    // how often it was asked again
}

// The layout of a state: each number a varint, each text its length and bytes.

func (s *State) append(b []byte) []byte {
	b = append(b, s.Call[:]...)
	expires := int64(0)
	if !s.expires.IsZero() {
		expires = s.expires.UnixMilli()
	}
	b = binary.AppendVarint(b, expires)
	b = append(b, s.Dialect, flag(s.ServerState != nil))
	b = appendText(b, s.ServerState)
	b = binary.AppendVarint(b, int64(len(s.Forms)))
	for _, f := range s.Forms {
		b = appendText(b, []byte(f.Key))
		b = appendText(b, f.Request)
		b = binary.AppendVarint(b, int64(f.Rules))
		b = append(b, flag(f.URL))
		b = binary.AppendVarint(b, int64(f.Tries))
	}
	b = binary.AppendVarint(b, int64(len(s.Answered)))
	for key, result := range s.Answered {
		b = appendText(appendText(b, []byte(key)), result)
	}
	return b
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func appendText(b, text []byte) []byte {
	return append(binary.AppendVarint(b, int64(len(text))), text...)
}

// stateReader reads a state. Once something is amiss, bad is set for good.
type stateReader struct {
	b   []byte
	bad bool
}

func readState(plain []byte) (State, bool) {
	r := stateReader{b: plain}
	var s State
	copy(s.Call[:], r.take(int64(len(s.Call))))
	if ms := r.number(); ms != 0 {
		s.expires = time.UnixMilli(ms)
	}
	s.Dialect = r.flag()
	has := r.flag() == 1
	if text := r.text(); has {
		s.ServerState = text
	}
	for n := r.number(); n > 0 && !r.bad; n-- {
		s.Forms = append(s.Forms, SealedForm{
			Key: string(r.text()), Request: r.text(), Rules: uint32(r.number()), URL: r.flag() == 1, Tries: int(r.number()),
		})
	}
	for n := r.number(); n > 0 && !r.bad; n-- {
		if s.Answered == nil {
			s.Answered = make(map[string][]byte)
		}
		key := string(r.text())
		s.Answered[key] = r.text()
	}
	return s, !r.bad && len(r.b) == 0
}

func (r *stateReader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.b)) {
		r.bad = true
		return nil
	}
	text := r.b[:n:n]
	r.b = r.b[n:]
	return text
}

func (r *stateReader) number() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) text() []byte { return r.take(r.number()) }

func (r *stateReader) flag() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}
