package rewrite

import (
	"testing"
)

func TestSkim(t *testing.T) {
	tests := []struct {
		raw    string
		kind   Kind
		id     string
		method string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"id":2,"method":"x"}}`, KindRequest, `1`, "tools/call"},
		{`{"result":{"a":["}\"",{"id":7}]},"jsonrpc":"2.0","id":"a\"b"}`, KindResult, `"a\"b"`, ""},
		{` { "error" : {} , "id" : -3 } `, KindResult, `-3`, ""},
		{`{"id":5,"result":{},"id":6}`, KindResult, `6`, ""},
		{`{"method":"notifications/x","params":{}}`, KindNotification, ``, "notifications/x"},
		{`{"id":null,"method":"m"}`, KindNotification, ``, "m"},
		{`{"id":{},"result":1}`, KindInvalid, ``, ""},
		{`{"id":true,"result":1}`, KindInvalid, ``, ""},
		{`[{"id":1,"method":"m"}]`, KindInvalid, ``, ""},
		{`{"id":1`, KindInvalid, ``, ""},
		{`garbage`, KindInvalid, ``, ""},
	}
	for _, tt := range tests {
		for cut := range len(tt.raw) { // the pieces don't matter
			var s Skim
			s.Write([]byte(tt.raw[:cut]))
			s.Write([]byte(tt.raw[cut:]))
			if s.Kind() != tt.kind || string(s.ID()) != tt.id || s.Method() != tt.method {
				t.Fatalf("%s cut at %d: kind %d, id %s, method %s", tt.raw, cut, s.Kind(), s.ID(), s.Method())
			}
		}
	}
}

// What a Skim says of a message is what Scan says of it.
func FuzzSkim(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,"\"{"]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","result":[{}],"id":"\u0031"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Skim
		s.Write(raw)
		env, err := Scan(raw)
		if err != nil || env.Kind == KindBatch || len(env.Surplus) > 0 {
			return
		}
		for m := range Members(raw, Span{0, len(raw)}) {
			if m.At.Start+len(m.Key)+2 > m.Value.Start {
				return // a key with escapes is no key of ours here
			}
		}
		id := env.ID.Of(raw)
		if len(id) > maxSkimText || len(env.Method) > maxSkimText/6 {
			return
		}
		if string(s.ID()) != string(id) || s.Method() != env.Method {
			t.Fatalf("id %s, method %q; want %s, %q", s.ID(), s.Method(), id, env.Method)
		}
	})
}
