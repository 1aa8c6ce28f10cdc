package proxy

import (
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// A Key is one key of a Sealer.
type Key struct {
	id   [4]byte
	aead cipher.AEAD
}

// KeySize is the size of a key in bytes.
const KeySize = chacha20poly1305.KeySize

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
