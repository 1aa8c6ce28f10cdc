package proxy

import (
	"strings"
	"testing"
)

// The state of a form with 20 fields, sealed and opened.
func BenchmarkSealOpen(b *testing.B) {
	var fields []string
	for i := range 20 {
		fields = append(fields, `"field`+string(rune('a'+i))+`":{"type":"string","title":"Title","description":"What it is for","enum":["small","medium","large"],"default":"medium"}`)
	}
	request := `{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{` + strings.Join(fields, ",") + `}}}}`
	key, err := NewKey(make([]byte, KeySize))
	if err != nil {
		b.Fatal(err)
	}
	s := &Sealer{Keys: []Key{key}}
	state := State{ServerState: []byte(`"s"`), Forms: []SealedForm{{Key: "q", Request: []byte(request)}}}
	b.ReportAllocs()
	for b.Loop() {
		token, err := s.Seal(state)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Open(token, state.Call); err != nil {
			b.Fatal(err)
		}
	}
}

var withoutAnswer = []struct {
	name string
	to   Direction
	text string
}{
	{"notification", ToServer, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`},
	{"log message", ToClient, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`},
}

// What carries no answer costs no memory beyond the message itself, which is one.
func TestNoAnswerNoAllocs(t *testing.T) {
	for _, test := range withoutAnswer {
		k := newTalk(t)
		raw := []byte(test.text)
		base := testing.AllocsPerRun(100, func() { _, _ = (&session{proxy: &Proxy{}}).handle(test.to, raw) })
		if n := testing.AllocsPerRun(100, func() { _, _ = k.handle(test.to, raw) }); n > base {
			t.Errorf("%s: %v allocations, and %v where everything passes", test.name, n, base)
		}
	}
}

func BenchmarkNoAnswer(b *testing.B) {
	for _, test := range withoutAnswer {
		b.Run(test.name, func(b *testing.B) {
			k := newTalk(&testing.T{})
			raw := []byte(test.text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.handle(test.to, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
