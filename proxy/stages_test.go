package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// What the stages are measured on.
var (
	smallCall = []byte(`{"jsonrpc":"2.0","id":1234,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/srv/data/report.txt","depth":3}}}`)
	largeForm = askFor(20)
)

// askFor asks for so many fields, of five kinds in turn.
func askFor(fields int) []byte {
	var b strings.Builder
	for i := range fields {
		kind := [...]string{
			`{"type":"string","title":"Size","enum":["s","m","l"],"enumNames":["Small","Medium","Large"],"default":"m"}`,
			`{"type":"string","minLength":1,"maxLength":80,"pattern":"^[A-Za-z ]+$"}`,
			`{"type":"string","format":"email","title":"Your address"}`,
			`{"type":"integer","minimum":1,"maximum":100}`,
			`{"type":"boolean","default":false}`,
		}[i%5]
		fmt.Fprintf(&b, `,"field_%d":%s`, i, kind)
	}
	return []byte(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"Please fill in","requestedSchema":{"type":"object","properties":{` +
		b.String()[1:] + `},"required":["field_0"]}}}`)
}

// answerTo fills in the fields of askFor.
func answerTo(fields int) []byte {
	var b strings.Builder
	for i := range fields {
		fmt.Fprintf(&b, `,"field_%d":%s`, i, [...]string{`"m"`, `"Ann Example"`, `"ann@example.com"`, `42`, `true`}[i%5])
	}
	return []byte(`{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{` + b.String()[1:] + `}}}`)
}

// toolList is a list of so many tools, with an icon each or without.
func toolList(n int, host string) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"name":"tool_%d","title":"Tool number %d","description":"Does the thing number %d with some words around it, as real tools do.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"depth":{"type":"integer","minimum":0}},"required":["path"]}`, i, i, i)
		if host != "" {
			fmt.Fprintf(&b, `,"icons":[{"src":"https://%s/%d.png","mimeType":"image/png","sizes":["48x48"]}]`, host, i%100)
		}
		b.WriteByte('}')
	}
	return []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + b.String()[1:] + `]}}`)
}

// largeText is a result of so many bytes of text.
func largeText(size int) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some words, ", size/12) + `"}]}}`)
}

// A stage is one step of a message's way, on one message. The allocations are
// exact, as of the Go release in go.mod: whoever changes them changes the table.
type stage struct {
	name   string
	raw    []byte
	allocs float64
	set    func(t testing.TB, raw []byte) func()
}

// stages are the steps, in the order of a message's way.
func stages(site *iconSite) []stage {
	plain, icons := func(n int) []byte { return toolList(n, "") }, func(n int) []byte { return toolList(n, "icons.example") }
	return []stage{
		{"frame/call", smallCall, 0, stageFrame},
		{"frame/1000 tools", plain(1000), 0, stageFrame},
		{"frame/1 MB", largeText(1 << 20), 2, stageFrame},
		{"parse/call", smallCall, 0, stageParse},
		{"parse/form of 20", largeForm, 0, stageParse},
		{"parse/20 tools", plain(20), 0, stageParse},
		{"parse/1000 tools", plain(1000), 0, stageParse},
		{"parse/1000 tools with icons", icons(1000), 0, stageParse},
		{"parse/10000 tools", plain(10000), 0, stageParse},
		{"parse/1 MB", largeText(1 << 20), 0, stageParse},
		{"parse/50 MB", largeText(50 << 20), 0, stageParse},
		{"find/10 tools with icons", icons(10), 13, stageFind},
		{"find/100 tools with icons", icons(100), 103, stageFind},
		{"find/1000 tools with icons", icons(1000), 1003, stageFind},
		{"find/10000 tools with icons", icons(10000), 10026, stageFind},
		{"find/form of 20", largeForm, 10, stageFindForm},
		{"judge/icon", []byte("https://icons.example/1.png"), 0, stageJudge},
		{"splice/1000 tools with icons", icons(1000), 1, stageSplice},
		{"refit/form of 20", largeForm, 26, stageRefit},
		{"SSE event/call", smallCall, 0, stageSSE},
		{"SSE event/1 MB", largeText(1 << 20), 0, stageSSE},
		{"check/form of 20", largeForm, 786, stageCheck},
		{"seal and open/form of 20", largeForm, 14, stageSeal},
		{"pass/call", smallCall, 10, stageHandle},
		{"pass/1000 tools", plain(1000), 0, stageHandle},
		{"pass/1 MB", largeText(1 << 20), 0, stageHandle},
		{"pass/50 MB", largeText(50 << 20), 0, stageHandle},
		{"ask and answer/form of 20", largeForm, 869, stageAsk},
		{"strip/10 tools", icons(10), 19, stageHandle},
		{"strip/100 tools", icons(100), 109, stageHandle},
		{"strip/1000 tools", icons(1000), 1009, stageHandle},
		{"strip/10000 tools", icons(10000), 10062, stageHandle},
		{"inline/10 tools", toolList(10, site.host), 19, site.stageInline},
		{"inline/100 tools", toolList(100, site.host), 109, site.stageInline},
		{"inline/1000 tools", toolList(1000, site.host), 1009, site.stageInline},
		{"inline/10000 tools", toolList(10000, site.host), 10082, site.stageInline},
	}
}

func stageFrame(t testing.TB, raw []byte) func() {
	line := append(bytes.Clone(raw), '\n')
	f := frameReader{r: &repeating{text: line}, max: 64 << 20}
	w := newFrameWriter(io.Discard)
	return func() {
		fr, err := f.next(context.Background())
		if err != nil || len(fr.line) != len(raw) {
			t.Fatal(err, fr.tooLarge)
		}
		if err := w.write(fr.line, fr.wire); err != nil {
			t.Fatal(err)
		}
	}
}

func stageParse(t testing.TB, raw []byte) func() {
	return func() {
		if _, err := rewrite.Scan(raw); err != nil {
			t.Fatal(err)
		}
	}
}

func scanned(t testing.TB, raw []byte) rewrite.Envelope {
	t.Helper()
	env, err := rewrite.Scan(raw)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func stageFind(t testing.TB, raw []byte) func() {
	env := scanned(t, raw)
	var f rewrite.IconFinder
	return func() {
		if sets, err := f.Icons(raw, env, rewrite.Place{ToClient: true, Method: "tools/list"}); err != nil || len(sets) == 0 {
			t.Fatal(err)
		}
		f.Reset()
	}
}

func stageFindForm(t testing.TB, raw []byte) func() {
	env := scanned(t, raw)
	return func() {
		if q := rewrite.FindQuestions(raw, env); len(q.List) != 1 {
			t.Fatal("no question")
		}
	}
}

func stageJudge(t testing.TB, url []byte) func() {
	c := policy.Default()
	c.Icons.Rules = []policy.IconRule{{Host: "*.example.com", Action: policy.Keep}, {Host: "icons.example", Action: policy.Inline}}
	p, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	args := policy.IconArgs{URL: string(url)}
	return func() {
		if p.Icons.Decide(args).Verdict != policy.Inline {
			t.Fatal("not inlined")
		}
	}
}

func stageSplice(t testing.TB, raw []byte) func() {
	sets, err := rewrite.Icons(raw, scanned(t, raw), rewrite.Place{ToClient: true, Method: "tools/list"})
	if err != nil {
		t.Fatal(err)
	}
	place := []rewrite.Placement{{URI: "data:image/png;base64," + strings.Repeat("A", 228), Width: 64, Height: 64}}
	var e rewrite.Edits
	return func() {
		for i := range sets {
			sets[i].Edit(raw, &e, place, true)
		}
		if out := e.Apply(raw); len(out) < len(raw) {
			t.Fatal("nothing was placed")
		}
		e.Reset()
	}
}

func stageRefit(t testing.TB, raw []byte) func() {
	schema, _ := rewrite.Lookup(raw, scanned(t, raw).Params, "requestedSchema")
	return func() {
		if f := rewrite.RefitForm(schema.Of(raw), rewrite.Titled, rewrite.DefaultRules); len(f.Changes) == 0 {
			t.Fatal("nothing was changed")
		}
	}
}

func stageSSE(t testing.TB, raw []byte) func() {
	wire := []byte("event: message\nid: 1\ndata: " + string(raw) + "\n\n")
	p := sseParser{event: func(_ string, data []byte) []byte { return data }}
	return func() {
		for n := 0; n < len(wire); {
			n += p.write(wire[n:])
		}
		if len(p.out) != len(wire) {
			t.Fatalf("%d bytes of %d", len(p.out), len(wire))
		}
		p.out = p.out[:0]
	}
}

func stageCheck(t testing.TB, raw []byte) func() {
	schema, _ := rewrite.Lookup(raw, scanned(t, raw).Params, "requestedSchema")
	answer := answerTo(20)
	result := scanned(t, answer).Result
	var a policy.Answers
	return func() {
		if d := a.Decide(schema.Of(raw), result.Of(answer)); d.Outcome != policy.Pass {
			t.Fatal(policy.ProblemText(d.Problems))
		}
	}
}

func stageSeal(t testing.TB, raw []byte) func() {
	s := &Sealer{Keys: []Key{testKey(t, 1)}}
	state := State{ServerState: []byte(`"s"`), Forms: []SealedForm{{Key: "q", Request: raw}}}
	return func() {
		if _, err := s.Open(seal(t, s, state), state.Call); err != nil {
			t.Fatal(err)
		}
	}
}

// stageHandle is all that happens to a message between two transports.
func stageHandle(t testing.TB, raw []byte) func() {
	s := benchSession(t)
	to := ToClient
	if scanned(t, raw).Kind == rewrite.KindRequest {
		to = ToServer
	}
	return func() {
		if out, err := s.handle(to, raw); err != nil || out.forward == nil {
			t.Fatal(err)
		}
	}
}

func stageAsk(t testing.TB, raw []byte) func() {
	s := benchSession(t)
	answer := answerTo(20)
	return func() {
		if out, err := s.handle(ToClient, raw); err != nil || same(out.forward, raw) {
			t.Fatal("not refitted", err)
		}
		if out, err := s.handle(ToServer, answer); err != nil || !same(out.forward, answer) {
			t.Fatalf("not passed: %v, %.200s", err, out.forward)
		}
	}
}

// stageInline is stageHandle where the icons are to be had from the cache.
func (site *iconSite) stageInline(t testing.TB, raw []byte) func() {
	s := iconSession(t, site, func(c *policy.Config) { c.Icons.Budget.PerMessage = -1 })
	s.proxy.Icons.HostRate, s.proxy.Icons.Rate = -1, -1
	var pending []*icon.Pending
	for i := range 100 {
		pending = append(pending, s.proxy.Icons.Begin(fmt.Sprintf("https://%s/%d.png", site.host, i), "image/png"))
	}
	for _, p := range pending {
		<-p.Done()
		if _, err := p.Result(); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if out, err := s.handle(ToClient, raw); err != nil || len(out.forward) < len(raw) {
			t.Fatal("not inlined", err)
		}
	}
}

func BenchmarkStages(b *testing.B) {
	for _, s := range stages(newIconSite(b, servePNG)) {
		b.Run(s.name, func(b *testing.B) {
			run := s.set(b, s.raw)
			b.SetBytes(int64(len(s.raw)))
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

func TestStageAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	if testing.Short() {
		t.Skip("large messages")
	}
	// What is kept for the next message is lost with each collection, which comes when it will.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, s := range stages(newIconSite(t, servePNG)) {
		run := s.set(t, s.raw)
		runs := min(100, 1+(4<<20)/len(s.raw))
		var n float64
		for range 3 { // what else is going on can only add
			if n = testing.AllocsPerRun(runs, run); n == s.allocs {
				break
			}
		}
		if n != s.allocs {
			t.Errorf("%s: %v allocations, want %v", s.name, n, s.allocs)
		}
	}
}
