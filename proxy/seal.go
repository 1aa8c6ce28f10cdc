package proxy

import (
	"crypto/rand"
	"encoding/base64"
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
	if err != nil || strings.ContainsAny(text, "\r\n") { // which the decoder skips
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
