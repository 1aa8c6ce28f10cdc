package proxy

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

// sealStates are states of every kind, for round trips and as seeds.
var sealStates = map[string]State{
	"empty":               {},
	"no server state":     {Forms: []SealedForm{{Key: "k", Request: []byte(`{"method":"elicitation/create"}`)}}},
	"empty server state":  {ServerState: []byte(`""`)},
	"null server state":   {ServerState: []byte(`null`)},
	"escaped and unusual": {ServerState: []byte(`"\u00e9\ud800 é\u0000"`), Dialect: 1},
	"forms": {
		ServerState: []byte(`"s"`), Dialect: 1, Call: [32]byte{1, 2, 3},
		Forms: []SealedForm{
			{Key: "", Request: []byte(`{}`), Rules: 1<<32 - 1, Tries: 2},
			{Key: "a\x00é", Request: []byte(`{"a":1}`), URL: true},
		},
		Answered: map[string][]byte{"x": []byte(`{"action":"accept"}`), "": []byte(`{}`)},
		expires:  time.UnixMilli(1_800_000_000_123),
	},
}

func TestStateLayout(t *testing.T) {
	for name, state := range sealStates {
		t.Run(name, func(t *testing.T) {
			plain := state.append(nil)
			got, ok := readState(plain)
			if !ok || !reflect.DeepEqual(got, state) {
				t.Errorf("got  %+v, %v\nwant %+v", got, ok, state)
			}
			for n := range len(plain) {
				if _, ok := readState(plain[:n]); ok {
					t.Errorf("the first %d of %d bytes are read as a state", n, len(plain))
				}
			}
			if _, ok := readState(append(plain, 0)); ok {
				t.Error("a byte behind the state is not noticed")
			}
		})
	}
}

// FuzzReadState has what an attacker never has, a state with a good seal.
// Whatever is read as one is the same when it is written and read again.
func FuzzReadState(f *testing.F) {
	for _, state := range sealStates {
		f.Add(state.append(nil))
	}
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, plain []byte) {
		state, ok := readState(plain)
		if !ok {
			return
		}
		again, ok := readState(state.append(nil))
		if !ok || !reflect.DeepEqual(again, state) {
			t.Errorf("got  %+v, %v\nwant %+v", again, ok, state)
		}
	})
}
