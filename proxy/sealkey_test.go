package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// testSecret is a secret made of one byte.
func testSecret(b byte) []byte { return bytes.Repeat([]byte{b}, KeySize) }

func TestParseKeys(t *testing.T) {
	one, two := testSecret(0xfb), testSecret(2) // 0xfb: + and - in the alphabets
	const howTo = "not 32 bytes in base64 or hexadecimal; make a key with: openssl rand -base64 32"
	for _, tc := range []struct {
		name, file string
		want       [][]byte
		err        string
	}{
		{"base64, as openssl writes it", base64.StdEncoding.EncodeToString(one) + "\n", [][]byte{one}, ""},
		{"base64 without padding", base64.RawStdEncoding.EncodeToString(one), [][]byte{one}, ""},
		{"base64url", base64.URLEncoding.EncodeToString(one), [][]byte{one}, ""},
		{"base64url without padding", base64.RawURLEncoding.EncodeToString(one), [][]byte{one}, ""},
		{"hexadecimal", hex.EncodeToString(one) + "\n" + strings.ToUpper(hex.EncodeToString(two)), [][]byte{one, two}, ""},
		{"comments, blank lines, CRLF", "# new\r\n\r\n  " + hex.EncodeToString(two) + "  \r\n# old\r\n" + hex.EncodeToString(one) + "\r\n", [][]byte{two, one}, ""},
		{"empty", "", nil, "keys: no key in it; make one with: openssl rand -base64 32"},
		{"comments alone", "# none yet\n", nil, "keys: no key in it; make one with: openssl rand -base64 32"},
		{"no key at all", "# mine\n\nsecret!\n", nil, "keys:3: " + howTo},
		{"too short", hex.EncodeToString(one[1:]), nil, "keys:1: " + howTo},
		{"too long", hex.EncodeToString(one) + "\n" + base64.StdEncoding.EncodeToString(append(one, 0)), nil, "keys:2: " + howTo},
		{"two on a line", hex.EncodeToString(one) + " " + hex.EncodeToString(two), nil, "keys:1: " + howTo},
		{"a comment behind", hex.EncodeToString(one) + " # mine", nil, "keys:1: " + howTo},
	} {
		t.Run(tc.name, func(t *testing.T) {
			keys, err := ParseKeys("keys", []byte(tc.file))
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got  %v\nwant %s", err, tc.err)
				}
				return
			}
			if err != nil || len(keys) != len(tc.want) {
				t.Fatalf("%d keys, %v; want %d", len(keys), err, len(tc.want))
			}
			for i, secret := range tc.want {
				want, err := NewKey(secret)
				if err != nil || keys[i].id != want.id {
					t.Errorf("key %d is another", i)
				}
			}
		})
	}
}

func TestNewKeyRefusesOtherSizes(t *testing.T) {
	for _, n := range []int{0, 16, KeySize - 1, KeySize + 1} {
		if _, err := NewKey(make([]byte, n)); err == nil || !strings.Contains(err.Error(), "it must be 32") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("# a key\n" + base64.StdEncoding.EncodeToString(testSecret(1)) + "\n"))
	f.Add([]byte(hex.EncodeToString(testSecret(1)) + "\r\n"))
	f.Add([]byte("secret"))
	f.Fuzz(func(t *testing.T, file []byte) {
		keys, err := ParseKeys("keys", file)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		// A slip in the file must not print a secret.
		if err != nil && !strings.HasPrefix(err.Error(), "keys:") {
			t.Errorf("no place in %q", err)
		}
	})
}
