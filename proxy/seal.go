package proxy

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A Sealer seals the state that a modern client carries from a question to its
// answer (the requestState of 2026-07-28), so that no replica has to keep it.
// It is safe for concurrent use; the fields must not change after the first.
//
// A token is "mcpr1." and, in base64url, the id of the key (4 bytes), a nonce
// (24 bytes) and the state, compressed and sealed with XChaCha20-Poly1305. The
// nonce is drawn at random, for which AES-GCM's 12 bytes are too few under a key
// that many replicas share for years (NIST SP 800-38D allows 2^32 of them).
type Sealer struct {
	// Keys are the keys: the first seals, all open. At least one.
	Keys []Key
	// Expiry is how long a token can be opened. 0 is 24 h, negative is for ever.
	Expiry time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// A Key is one key of a Sealer.
type Key struct {
	id   [4]byte
	aead cipher.AEAD
}

// KeySize is the size of a key in bytes.
const KeySize = chacha20poly1305.KeySize

// DefaultStateExpiry is the Expiry of a Sealer that has none.
const DefaultStateExpiry = 24 * time.Hour

// maxState bounds a state in bytes, before compression.
const maxState = 64 << 20

// sealPrefix begins every token, and tells a state of ours from the server's own.
const sealPrefix = "mcpr1."

// The errors of Open. Their texts are meant for the client.
var (
	ErrNotSealed   = errors.New("it is none that we sealed")
	ErrSealAltered = errors.New("it was altered, or sealed with a key that is not in use here")
	ErrSealExpired = errors.New("it has expired")
	ErrSealForeign = errors.New("it belongs to another call")
)

// NewKey makes a key of KeySize bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) != KeySize {
		return Key{}, fmt.Errorf("a key of %d bytes; it must be %d", len(secret), KeySize)
	}
	aead, err := chacha20poly1305.NewX(secret)
	if err != nil {
		return Key{}, err
	}
	sum := sha256.Sum256(append([]byte("mcp-refit key id\x00"), secret...))
	return Key{id: [4]byte(sum[:4]), aead: aead}, nil
}

// ParseKeys reads a key file: a key a line, in base64 or hexadecimal; empty
// lines and those that begin with # don't count. An error names the line.
func ParseKeys(name string, data []byte) ([]Key, error) {
	var keys []Key
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		secret, err := decodeSecret(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: not 32 bytes in base64 or hexadecimal; make a key with: openssl rand -base64 32", name, i+1)
		}
		key, err := NewKey(secret)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: no key in it; make one with: openssl rand -base64 32", name)
	}
	return keys, nil
}

func decodeSecret(text string) ([]byte, error) {
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(text); err == nil && len(b) == KeySize {
			return b, nil
		}
	}
	return nil, errors.New("no key")
}

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

func (s *Sealer) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// Seal makes a token of a state.
func (s *Sealer) Seal(state State) (string, error) {
	if len(s.Keys) == 0 {
		return "", errors.New("no key to seal with")
	}
	switch {
	case s.Expiry == 0:
		state.expires = s.now().Add(DefaultStateExpiry)
	case s.Expiry > 0:
		state.expires = s.now().Add(s.Expiry)
	}
	plain := state.append(nil)
	if len(plain) > maxState {
		return "", fmt.Errorf("it has %d bytes, more than %d", len(plain), maxState)
	}
	key := s.Keys[0]
	header := len(key.id) + chacha20poly1305.NonceSizeX
	sealed := make([]byte, header, header+s2.MaxEncodedLen(len(plain))+chacha20poly1305.Overhead)
	copy(sealed, key.id[:])
	nonce := sealed[len(key.id):header]
	rand.Read(nonce) // never fails
	sealed = key.aead.Seal(sealed, nonce, s2.Encode(nil, plain), []byte(sealPrefix+string(key.id[:])))
	return sealPrefix + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open opens a token that was handed back with the given call (see
// CallDigest). Its errors are ErrNotSealed for what is no token of ours at
// all, ErrSealAltered, ErrSealExpired and ErrSealForeign.
func (s *Sealer) Open(token string, call [32]byte) (State, error) {
	text, ours := strings.CutPrefix(token, sealPrefix)
	if !ours {
		return State{}, ErrNotSealed
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return State{}, ErrSealAltered
	}
	compressed, ok := s.open(sealed)
	if !ok {
		return State{}, ErrSealAltered
	}
	if n, err := s2.DecodedLen(compressed); err != nil || n > maxState {
		return State{}, ErrSealAltered
	}
	plain, err := s2.Decode(nil, compressed)
	if err != nil {
		return State{}, ErrSealAltered
	}
	state, ok := readState(plain)
	switch {
	case !ok:
		return State{}, ErrSealAltered
	case !state.expires.IsZero() && s.now().After(state.expires):
		return State{}, ErrSealExpired
	case state.Call != call:
		return State{}, ErrSealForeign
	}
	return state, nil
}

func (s *Sealer) open(sealed []byte) ([]byte, bool) {
	const header = 4 + chacha20poly1305.NonceSizeX
	if len(sealed) < header {
		return nil, false
	}
	for _, key := range s.Keys {
		if string(key.id[:]) != string(sealed[:4]) {
			continue
		}
		plain, err := key.aead.Open(nil, sealed[4:header], sealed[header:], []byte(sealPrefix+string(key.id[:])))
		if err == nil {
			return plain, true
		}
	}
	return nil, false
}

// sealer is the proxy's Sealer, made on first use if it was given none.
func (p *Proxy) sealer(in *policy.Policy) *Sealer {
	p.sealOnce.Do(func() {
		if p.Seal == nil {
			secret := make([]byte, KeySize)
			rand.Read(secret) // never fails
			key, _ := NewKey(secret)
			p.Seal = &Sealer{Keys: []Key{key}, Expiry: in.Config.Answers.StateExpiry.Std()}
		}
	})
	return p.Seal
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
