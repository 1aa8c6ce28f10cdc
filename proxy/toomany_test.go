package proxy

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A message with more of something than is looked at goes nowhere, and whoever
// waits for it is told.
func TestTooMany(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and slow")
	}
	again := func(member string, n int) string { return strings.Repeat(member+",", n) }
	list := func(element string, n int) string { return "[" + strings.Repeat(element+",", n-1) + element + "]" }
	const (
		members = "more members that are written twice or in another case than are looked at"
		form    = `"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`
		ask     = `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`
		call    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		ping    = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	)
	asks := func(keys int) string {
		var b strings.Builder
		for i := range keys {
			b.WriteString(strings.Replace(form, "k", strconv.Itoa(i), 1) + ",")
		}
		return b.String()
	}
	for _, tt := range []struct {
		name   string
		before string // goes the other way first, if anything
		to     Direction
		raw    string
		want   string // the answer's text; empty: it passes
		reply  bool   // the answer goes back, and not on
	}{
		{"a request", "", ToServer, `{` + again(`"ID":1`, rewrite.MaxSurplus+1) + ping[1:], members, true},
		{"a request with as many as are taken out", "", ToServer, `{` + again(`"ID":1`, rewrite.MaxSurplus) + ping[1:], "", false},
		{"a result", ping, ToClient, `{` + again(`"id":1`, rewrite.MaxSurplus+1) + `"jsonrpc":"2.0","id":1,"result":{}}`, members, false},
		{"an error", ping, ToClient, `{` + again(`"Error":1`, rewrite.MaxSurplus+1) + `"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, members, false},
		{"an answer", ask, ToServer, `{` + again(`"RESULT":1`, rewrite.MaxSurplus+1) + `"jsonrpc":"2.0","id":7,"result":{"action":"cancel"}}`, members, false},
		{"a form", "", ToClient, strings.Replace(ask, `"message"`, again(`"MODE":1`, rewrite.MaxSurplus+1)+`"message"`, 1), members, true},
		{"questions", call, ToClient, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{` + asks(rewrite.MaxQuestions) + form + `}}}`, "more questions than are looked at", false},
		{"answers", "", ToServer, strings.Replace(call, `"name"`, `"inputResponses":{`+asks(rewrite.MaxQuestions)+form+`},"name"`, 1), "more answers than are looked at", true},
		{"a batch of requests", "", ToServer, list(ping, maxBatch+1), "more than 16384 messages", true},
		{"a batch of results", ping, ToClient, list(`{"jsonrpc":"2.0","id":1,"result":{}}`, maxBatch+1), "more than 16384 messages", false},
		{"a batch of answers", ask, ToServer, list(`{"jsonrpc":"2.0","id":7,"result":{"action":"cancel"}}`, maxBatch+1), "more than 16384 messages", false},
		{"a batch of as many as are looked at", "", ToServer, list(`{"jsonrpc":"2.0","method":"n"}`, maxBatch), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inForce := compiled(t, policy.Strip)
			s := &session{proxy: &Proxy{Policy: func() *policy.Policy { return inForce }}, known: true}
			if tt.before != "" {
				if _, err := s.handle(tt.to.back(), []byte(tt.before)); err != nil {
					t.Fatal(err)
				}
			}
			out, err := s.handle(tt.to, []byte(tt.raw))
			if err != nil {
				t.Fatal(err)
			}
			answer, other := out.forward, out.reply
			if tt.reply {
				answer, other = other, answer
			}
			switch {
			case tt.want == "" && (answer == nil || other != nil):
				t.Errorf("it did not pass: %.300s", other)
			case tt.want != "" && (!strings.Contains(string(answer), tt.want) || !strings.Contains(string(answer), `"error"`) || other != nil):
				t.Errorf("got %.300s and %.300s, want an error that says %q", answer, other, tt.want)
			}
			if n := len(s.calls.open); tt.before != "" && n != 0 {
				t.Errorf("%d requests are still waited for", n)
			}
		})
	}
}

// What a message takes while it is looked at is no more than a few times its
// size, however it is made.
func TestHostileMemory(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and slow")
	}
	const size = 8 << 20
	fill := func(before, again, after string) string {
		return before + strings.Repeat(again, (size-len(before)-len(after))/len(again)) + after
	}
	for name, tt := range map[string]struct {
		to  Direction
		raw string
	}{
		"members of the envelope": {ToServer, fill(`{`, `"ID":1,`, `"jsonrpc":"2.0","id":1,"method":"ping"}`)},
		"questions":               {ToClient, fill(`{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{`, `"":0,`, `"":0}}}`)},
		"answers":                 {ToServer, fill(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"inputResponses":{`, `"":0,`, `"":0}}}`)},
		"icons":                   {ToClient, fill(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"icons":[`, `0,`, `0]}]}}`)},
		"tools":                   {ToClient, fill(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`, `{"icons":0},`, `{}]}}`)},
		"a batch":                 {ToClient, fill(`[`, `{"jsonrpc":"2.0","method":""},`, `{"jsonrpc":"2.0","method":""}]`)},
	} {
		t.Run(name, func(t *testing.T) {
			inForce := compiled(t, policy.Strip)
			s := &session{proxy: &Proxy{Policy: func() *policy.Policy { return inForce }}, known: true}
			raw := []byte(tt.raw)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := s.handle(tt.to, raw); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 12*size {
				t.Errorf("%.1f times its size was allocated", float64(n)/size)
			} else {
				t.Logf("%.1f times its size", float64(n)/size)
			}
		})
	}
}
