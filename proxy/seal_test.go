package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"golang.org/x/crypto/chacha20poly1305"
)

func testKey(t testing.TB, b byte) Key {
	t.Helper()
	key, err := NewKey(testSecret(b))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func seal(t testing.TB, s *Sealer, state State) string {
	t.Helper()
	token, err := s.Seal(state)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestSealAndOpen(t *testing.T) {
	s := &Sealer{Keys: []Key{testKey(t, 1)}}
	for name, state := range sealStates {
		t.Run(name, func(t *testing.T) {
			token := seal(t, s, state)
			got, err := s.Open(token, state.Call)
			got.expires = state.expires
			if err != nil || !reflect.DeepEqual(got, state) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, state)
			}
			if strings.Trim(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
				t.Errorf("%q doesn't go into JSON or a URL as it is", token)
			}
			if again := seal(t, s, state); again == token {
				t.Error("the same state twice is the same token: the nonce is not fresh")
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	s := &Sealer{Keys: []Key{testKey(t, 1)}}
	state := sealStates["forms"]
	token := seal(t, s, state)
	other := seal(t, &Sealer{Keys: []Key{testKey(t, 2)}}, state)
	call := state.Call
	call[31]++
	for _, tc := range []struct {
		name, token string
		call        [32]byte
		want        error
	}{
		{"nothing", "", state.Call, ErrNotSealed},
		{"the server's own state", "eyJzdGVwIjoxfQ", state.Call, ErrNotSealed},
		{"another version", "mcpr2." + token[len(sealPrefix):], state.Call, ErrNotSealed},
		{"a space before", " " + token, state.Call, ErrNotSealed},
		{"the prefix alone", sealPrefix, state.Call, ErrSealAltered},
		{"no base64", sealPrefix + "!", state.Call, ErrSealAltered},
		{"padding", token + "==", state.Call, ErrSealAltered},
		{"two tokens", token + token, state.Call, ErrSealAltered},
		{"another key", other, state.Call, ErrSealAltered},
		{"another call", token, call, ErrSealForeign},
		{"no call", token, [32]byte{}, ErrSealForeign},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := s.Open(tc.token, tc.call); err != tc.want || !reflect.DeepEqual(got, State{}) {
				t.Errorf("%+v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestOpenNoticesEveryAlteration(t *testing.T) {
	s := &Sealer{Keys: []Key{testKey(t, 1)}}
	state := sealStates["forms"]
	token := seal(t, s, state)
	refused := func(what, altered string, at int) {
		t.Helper()
		want := ErrSealAltered
		if at < len(sealPrefix) {
			want = ErrNotSealed
		}
		if _, err := s.Open(altered, state.Call); err != want {
			t.Errorf("byte %d %s: %v; want %v", at, what, err, want)
		}
	}
	for i := range len(token) {
		for _, b := range []byte{token[i] ^ 1, token[i] ^ 0x20, 'A', '\n', '=', 0, 0xff} {
			if b != token[i] {
				refused(fmt.Sprintf("changed to %q", b), token[:i]+string([]byte{b})+token[i+1:], i)
			}
		}
		refused("left out", token[:i]+token[i+1:], i)
		refused("cut off", token[:i], i)
		for _, b := range []string{"A", "\n", "\r"} {
			refused(fmt.Sprintf("gets %q before it", b), token[:i]+b+token[i:], i)
		}
	}
	for _, b := range []string{"A", "=", "\n"} {
		refused(fmt.Sprintf("gets %q behind it", b), token+b, len(token))
	}
}

func TestKeyRotation(t *testing.T) {
	before, after := testKey(t, 1), testKey(t, 2)
	state := sealStates["forms"]
	old := &Sealer{Keys: []Key{before}}
	both := &Sealer{Keys: []Key{after, before}}
	last := &Sealer{Keys: []Key{after}}
	for _, tc := range []struct {
		name     string
		from, to *Sealer
		want     error
	}{
		{"sealed before, opened by both", old, both, nil},
		{"sealed by both, opened by the new key", both, last, nil},
		{"sealed by both, opened by a replica that has not got the new key", both, old, ErrSealAltered},
		{"sealed before, opened when the old key is gone", old, last, ErrSealAltered},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := tc.to.Open(seal(t, tc.from, state), state.Call); err != tc.want {
				t.Errorf("%v; want %v", err, tc.want)
			}
		})
	}

	// Two keys whose ids happen to be the same are both tried.
	after.id = before.id
	if _, err := (&Sealer{Keys: []Key{after, before}}).Open(seal(t, old, state), state.Call); err != nil {
		t.Errorf("behind a key with the same id: %v", err)
	}
	if _, err := (&Sealer{}).Seal(state); err == nil {
		t.Error("sealed without a key")
	}
	if _, err := (&Sealer{}).Open(seal(t, old, state), state.Call); err != ErrSealAltered {
		t.Errorf("opened without a key: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	const ms = time.Millisecond // the resolution of a state's expiry
	for _, tc := range []struct {
		name          string
		expiry, later time.Duration
		want          error
	}{
		{"at once", 0, 0, nil},
		{"the default, just before", 0, DefaultStateExpiry - ms, nil},
		{"the default, to the moment", 0, DefaultStateExpiry, nil},
		{"the default, just after", 0, DefaultStateExpiry + ms, ErrSealExpired},
		{"a minute, before", time.Minute, time.Minute - ms, nil},
		{"a minute, after", time.Minute, time.Minute + ms, ErrSealExpired},
		{"never", -1, 100 * 365 * 24 * time.Hour, nil},
		{"on a replica whose clock is behind", 0, -time.Hour, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			s := &Sealer{Keys: []Key{testKey(t, 1)}, Expiry: tc.expiry, Now: func() time.Time { return now }}
			token := seal(t, s, State{})
			now = now.Add(tc.later)
			if _, err := s.Open(token, [32]byte{}); err != tc.want {
				t.Errorf("%v; want %v", err, tc.want)
			}
		})
	}
	t.Run("the clock is the system's if there is no other", func(t *testing.T) {
		s := &Sealer{Keys: []Key{testKey(t, 1)}}
		token := seal(t, &Sealer{Keys: s.Keys, Now: func() time.Time { return time.Now().Add(-2 * DefaultStateExpiry) }}, State{})
		if _, err := s.Open(token, [32]byte{}); err != ErrSealExpired {
			t.Error(err)
		}
		if _, err := s.Open(seal(t, s, State{}), [32]byte{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("an expired state of another call is not said to be foreign", func(t *testing.T) {
		s := &Sealer{Keys: []Key{testKey(t, 1)}, Now: func() time.Time { return time.Unix(0, 0) }}
		token := seal(t, s, State{})
		s.Now = nil
		if _, err := s.Open(token, [32]byte{1}); err != ErrSealExpired {
			t.Error(err)
		}
	})
}

// sealRaw seals what Seal would never write.
func sealRaw(key Key, compressed []byte) string {
	sealed := append(key.id[:len(key.id):len(key.id)], make([]byte, chacha20poly1305.NonceSizeX)...)
	sealed = key.aead.Seal(sealed, sealed[len(key.id):], compressed, []byte(sealPrefix+string(key.id[:])))
	return sealPrefix + base64.RawURLEncoding.EncodeToString(sealed)
}

func TestOpenIsBounded(t *testing.T) {
	key := testKey(t, 1)
	s := &Sealer{Keys: []Key{key}}
	for name, compressed := range map[string][]byte{
		"nothing":                     nil,
		"no length":                   {0xff},
		"no state":                    {0},
		"more than the bound":         binary.AppendUvarint(nil, maxState+1),
		"more than there is memory":   binary.AppendUvarint(nil, 1<<62),
		"less than the length says":   {64, 0},
		"a copy from before the text": {32, 0x7d, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			token := sealRaw(key, compressed)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Open(token, [32]byte{})
			runtime.ReadMemStats(&after)
			if err != ErrSealAltered {
				t.Error(err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%d bytes were allocated for a token of %d", n, len(token))
			}
		})
	}
	if _, err := s.Seal(State{ServerState: make([]byte, maxState+1)}); err == nil || !strings.Contains(err.Error(), "more than 67108864") {
		t.Errorf("a state beyond the bound: %v", err)
	}
}

// FuzzOpen looks for a token that opens and was not sealed. What was sealed is known by the state: the tokens of one
// state differ between the processes that fuzz, since compressing is free to choose.
func FuzzOpen(f *testing.F) {
	key := testKey(f, 1)
	s := &Sealer{Keys: []Key{key, testKey(f, 2)}, Expiry: -1}
	sealed := make(map[string]bool)
	for _, state := range sealStates {
		plain := state.append(nil)
		sealed[string(plain)] = true
		f.Add(sealRaw(key, s2.Encode(nil, plain)))
	}
	f.Add(sealPrefix)
	f.Add("mcpr2.AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		foreign := 0
		for _, state := range sealStates {
			switch got, err := s.Open(token, state.Call); err {
			case nil:
				if got.Call != state.Call || !sealed[string(got.append(nil))] {
					t.Errorf("one that was never sealed opens: %+v", got)
				}
			case ErrSealForeign:
				foreign++
			case ErrNotSealed, ErrSealAltered, ErrSealExpired:
			default:
				t.Errorf("an error of another kind: %v", err)
			}
		}
		if foreign == len(sealStates) {
			t.Error("it opens, and is of no call that was sealed")
		}
	})
}

// formState is a state as it usually is: one form of 20 fields.
func formState() State {
	var schema bytes.Buffer
	schema.WriteString(`{"method":"elicitation/create","params":{"message":"Please fill in","requestedSchema":{"type":"object","properties":{`)
	for i := range 20 {
		if i > 0 {
			schema.WriteByte(',')
		}
		fmt.Fprintf(&schema, `"field%d":{"type":"string","title":"Field %d","description":"What to enter here","enum":["a%d","b%d"],"enumNames":["The first","The second"]}`, i, i, i, i)
	}
	schema.WriteString(`},"required":["field0"]}}}`)
	return State{ServerState: []byte(`"eyJzdGVwIjoxLCJ1c2VyIjoiYWxpY2UifQ"`), Forms: []SealedForm{{Key: "form", Request: schema.Bytes()}}}
}

func BenchmarkSeal(b *testing.B) {
	s := &Sealer{Keys: []Key{testKey(b, 1)}}
	state := formState()
	b.ReportAllocs()
	for b.Loop() {
		seal(b, s, state)
	}
	b.ReportMetric(float64(len(seal(b, s, state))), "token-bytes")
}

func BenchmarkOpen(b *testing.B) {
	s := &Sealer{Keys: []Key{testKey(b, 1)}}
	token := seal(b, s, formState())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Open(token, [32]byte{}); err != nil {
			b.Fatal(err)
		}
	}
}
