package rewrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestScanKinds(t *testing.T) {
	tests := []struct {
		raw    string
		kind   Kind
		id     string
		method string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, KindRequest, `1`, "ping"},
		{`{"jsonrpc":"2.0","id":"1","method":"ping","params":{}}`, KindRequest, `"1"`, "ping"},
		{`{"method":"ping","id":9007199254740993,"jsonrpc":"2.0"}`, KindRequest, `9007199254740993`, "ping"},
		{`{"jsonrpc":"2.0","method":"p\u0069ng"}`, KindNotification, ``, "ping"},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, KindNotification, ``, "ping"},
		{` {"jsonrpc" : "2.0" , "id" : 0 , "result" : { } } `, KindResult, `0`, ""},
		{`{"jsonrpc":"2.0","id":0,"result":null}`, KindResult, `0`, ""},
		{`{"jsonrpc":"2.0","id":0,"result":{},"error":null}`, KindResult, `0`, ""},
		{`{"jsonrpc":"2.0","id":0,"result":null,"error":{"code":1,"message":"m"}}`, KindError, `0`, ""},
		{`{"jsonrpc":"2.0","id":0,"result":{},"error":{"code":1,"message":"m"}}`, KindError, `0`, ""},
		{`{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"},"id":null}`, KindError, ``, ""},
		{`{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}`, KindError, ``, ""},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, KindBatch, ``, ""},
	}
	for _, tt := range tests {
		env, err := Scan([]byte(tt.raw))
		if err != nil || env.Kind != tt.kind || string(env.ID.Of([]byte(tt.raw))) != tt.id || env.Method != tt.method {
			t.Errorf("Scan(%s) = kind %d, id %s, method %q, %v", tt.raw, env.Kind, env.ID.Of([]byte(tt.raw)), env.Method, err)
		}
	}
}

func TestScanRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	tests := []struct {
		raw  string
		want string
	}{
		{``, "not valid JSON at byte 0"},
		{`hello`, "not valid JSON at byte 0"},
		{`[2026-01-02 10:00:00] INFO start`, "not valid JSON at byte 5"},
		{`{"jsonrpc":"2.0","id":1,"result":tru}`, "not valid JSON at byte 33"},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":01}}`, "not valid JSON at byte 39"},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1,}}`, "not valid JSON at byte 40"},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":"\x"}}`, "not valid JSON at byte 39"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\x01\"}}", "not valid JSON at byte 39"},
		{`{"jsonrpc":"2.0","id":1,"result":{}}{}`, "more text after the JSON value at byte 36"},
		{`{"jsonrpc":"2.0","id":1,"result":` + deep + `}`, "nested deeper than 1000 at byte 1032"},
		{`{"level":30,"msg":"up"}`, ErrNotMessage.Error()},
		{`{"jsonrpc":"1.0","id":1,"result":{}}`, ErrNotMessage.Error()},
		{`{"jsonrpc":"2.0","id":{},"result":{}}`, ErrNotMessage.Error()},
		{`{"jsonrpc":"2.0","id":1}`, ErrNotMessage.Error()},
		{`{"jsonrpc":"2.0","result":{}}`, ErrNotMessage.Error()},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{}}`, ErrNotMessage.Error()},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":{},"error":{}}`, ErrNotMessage.Error()},
		{`{}`, ErrNotMessage.Error()},
		{`42`, ErrNotMessage.Error()},
		{`"x"`, ErrNotMessage.Error()},
		{`null`, ErrNotMessage.Error()},
	}
	for _, tt := range tests {
		if _, err := Scan([]byte(tt.raw)); err == nil || err.Error() != tt.want {
			t.Errorf("Scan(%.60s) = %v, want %s", tt.raw, err, tt.want)
		}
	}
}

func TestScanDepthAllowed(t *testing.T) {
	n := MaxDepth - 1
	raw := `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	if _, err := Scan([]byte(raw)); err != nil {
		t.Error(err)
	}
}

func TestScanSurplus(t *testing.T) {
	raw := []byte(`{"jsonrpc":"2.0","id":1,"Id":2,"id":3,"m\u0065thod":"a","METHOD":"b","method":"c","x":1}`)
	env, err := Scan(raw)
	if err != nil || string(env.ID.Of(raw)) != "3" || env.Method != "c" {
		t.Fatalf("id %s, method %s, %v", env.ID.Of(raw), env.Method, err)
	}
	var e Edits
	for _, s := range env.Surplus {
		e.Remove(s)
	}
	if got, want := string(e.Apply(raw)), `{"jsonrpc":"2.0","id":3,"method":"c","x":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestScanSeen(t *testing.T) {
	tests := []struct {
		key  string
		want Keys
	}{
		{`icons`, KeyIcons}, {`Icons`, KeyIcons}, {`icon`, 0}, {`iconss`, 0}, {`icon` + "\u017f", KeyIcons},
		{`websiteUrl`, KeyWebsiteURL}, {`WEBSITEURL`, KeyWebsiteURL}, {`inputRequests`, KeyInputRequests},
		{`inputResponses`, KeyInputResponses}, {`requestState`, KeyRequestState}, {`requestedSchema`, KeyRequestedSchema},
		{`io.modelcontextprotocol/protocolVersion`, KeyProtocolVersion},
		{`\u0069cons`, KeyOdd}, {`title`, 0}, {`inputSchema`, 0},
	}
	for _, tt := range tests {
		raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"a":[{"%s":"icons"}]}}`, tt.key)
		if env, err := Scan([]byte(raw)); err != nil || env.Seen != tt.want {
			t.Errorf("%s: seen %b, want %b, %v", tt.key, env.Seen, tt.want, err)
		}
	}
}

// Strings are read eight bytes at a time, so every byte is tried at every
// place of a step, as a key and as a value, and with every rest of a step behind.
func TestScanEveryByteOfAString(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				text := []byte(strings.Repeat("x", length))
				text[at] = byte(c)
				for _, format := range []string{`{"%s":1}`, `["%s",""]`, `"%s"`} {
					raw := fmt.Appendf(nil, format, text)
					_, err := Scan(raw)
					var syntax *SyntaxError
					var trailing *TrailingError
					if refused := errors.As(err, &syntax) || errors.As(err, &trailing); refused == json.Valid(raw) {
						t.Fatalf("%q: %v", raw, err)
					}
				}
			}
		}
	}
}

// A message that ends too early is refused wherever it is cut.
func TestScanCutAtEveryByte(t *testing.T) {
	raw := []byte(`{"jsonrpc":"2.0","id":-1.5e+7,"result":{"a\u00e9":["\ud83d\n",true,false,null,{},[]],"b" : 0 }}`)
	for n := range raw {
		var syntax *SyntaxError
		if _, err := Scan(raw[:n]); !errors.As(err, &syntax) || !errors.Is(err, errSyntax) || syntax.Offset > n {
			t.Errorf("%s: %v", raw[:n], err)
		}
	}
	if _, err := Scan(raw); err != nil {
		t.Error(err)
	}
}

// Reading a message of a known method takes no memory.
func TestScanAllocates(t *testing.T) {
	raw := []byte(`{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"t","arguments":{"é":["a",1,null]}}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Scan(raw); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,2.5e-7,"\ud83d",true,null]}}`,
		`[1,[],{}]`, `"\u00"`, `-`, `{"a":1,}`, `1.`, `{"jsonrpc":"2.0","method":"m"} x`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		env, err := Scan(raw)
		var syntax *SyntaxError
		var trailing *TrailingError
		switch {
		case errors.As(err, &syntax):
			if errors.Is(err, errSyntax) && json.Valid(raw) {
				t.Fatalf("refused valid JSON: %v", err)
			}
			return
		case errors.As(err, &trailing):
			if json.Valid(raw) || !json.Valid(raw[:trailing.Offset]) {
				t.Fatalf("wrong end of value: %v", err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted invalid JSON")
		}
		if env.Kind == KindInvalid || env.Kind == KindBatch {
			return
		}
		// What a last-wins reader sees is what the envelope says.
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil {
			return
		}
		for name, at := range map[string]Span{"params": env.Params, "result": env.Result, "error": env.Error} {
			if !at.Empty() && string(m[name]) != string(at.Of(raw)) {
				t.Fatalf("%s is %s, want %s", name, at.Of(raw), m[name])
			}
		}
		for m := range Members(raw, Span{0, len(raw)}) {
			if !json.Valid(m.Value.Of(raw)) {
				t.Fatalf("member %q: %s", m.Key, m.Value.Of(raw))
			}
		}
	})
}

func toolList(n int, icons bool) []byte {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		icon := ""
		if icons {
			icon = fmt.Sprintf(`,"icons":[{"src":"https://icons.example/t%d.png","mimeType":"image/png","sizes":["48x48"]}]`, i)
		}
		fmt.Fprintf(&b, `{"name":"tool_%d","title":"Tool number %d","description":"Does the thing number %d with some words around it, as real tools do.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"depth":{"type":"integer","minimum":0}},"required":["path"]}%s}`, i, i, i, icon)
	}
	b.WriteString(`]}}`)
	return []byte(b.String())
}

func BenchmarkScan(b *testing.B) {
	for name, raw := range map[string][]byte{
		"call":       []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}}}`),
		"1000 tools": toolList(1000, false),
		"1MB text":   []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some words, ", 1<<20/12) + `"}]}}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scan(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
