package proxy

import (
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// benchSession is a session with the built-in policy in force.
func benchSession(b testing.TB) *session {
	b.Helper()
	compiled, err := policy.Default().Compile()
	if err != nil {
		b.Fatal(err)
	}
	return &session{proxy: &Proxy{Policy: func() *policy.Policy { return compiled }}, known: true}
}

func benchTools(n int) []byte {
	tool := `{"name":"tool","title":"A tool","description":"Does its thing, with some words around it, as real tools do.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"depth":{"type":"integer","minimum":0}},"required":["path"]}}`
	return []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + strings.TrimSuffix(strings.Repeat(tool+",", n), ",") + `]}}`)
}

// passing are messages with nothing of ours in them, and the most allocations
// that handling one takes: those of the entry in the table of calls, for a
// request, and none for all else.
var passing = []struct {
	name   string
	to     Direction
	raw    []byte
	allocs float64
}{
	{"notification", ToClient, []byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.5,"message":"half way"}}`), 0},
	{"result", ToClient, []byte(`{"jsonrpc":"2.0","id":1234,"result":{"content":[{"type":"text","text":"the answer, in a few words"}]}}`), 0},
	{"error", ToClient, []byte(`{"jsonrpc":"2.0","id":1234,"error":{"code":-32601,"message":"Method not found"}}`), 0},
	{"1000 tools", ToClient, benchTools(1000), 0},
	{"request", ToServer, []byte(`{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"t","arguments":{"a":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}}}`), 4},
	{"ping", ToServer, []byte(`{"jsonrpc":"2.0","id":1234,"method":"ping"}`), 3},
}

// raceDetector is set where the race detector is on, for which sync.Pool loses
// what it was given now and then.
var raceDetector bool

func TestPassAllocates(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for _, tt := range passing {
		s := benchSession(t)
		n := testing.AllocsPerRun(100, func() {
			if out, err := s.handle(tt.to, tt.raw); err != nil || !same(out.forward, tt.raw) {
				t.Fatal(tt.name, err)
			}
		})
		if n > tt.allocs {
			t.Errorf("%s: %v allocations, want %v at most", tt.name, n, tt.allocs)
		}
	}
}

func BenchmarkPass(b *testing.B) {
	for _, bm := range passing {
		b.Run(bm.name, func(b *testing.B) {
			s := benchSession(b)
			b.SetBytes(int64(len(bm.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.handle(bm.to, bm.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A form of the old kind, with its answer.
func BenchmarkSplice(b *testing.B) {
	ask := []byte(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"size":{"type":"string","title":"Size","enum":["s","m","l"],"enumNames":["Small","Medium","Large"],"default":"m"},"cups":{"type":"integer","minimum":1}},"required":["size"]}}}`)
	answer := []byte(`{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"size":"l","cups":2}}}`)
	s := benchSession(b)
	b.SetBytes(int64(len(ask) + len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		out, err := s.handle(ToClient, ask)
		if err != nil || same(out.forward, ask) {
			b.Fatal("not refitted", err)
		}
		if out, err = s.handle(ToServer, answer); err != nil || !same(out.forward, answer) {
			b.Fatal("not passed", err)
		}
	}
}

// repeating reads the same bytes again and again.
type repeating struct {
	text []byte
	at   int
}

func (r *repeating) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// A message that is too large, read to its end without being kept.
func BenchmarkSkim(b *testing.B) {
	raw := benchTools(1000)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		var s rewrite.Skim
		s.Write(raw)
		if s.Kind() != rewrite.KindResult {
			b.Fatal("not a result")
		}
	}
}
