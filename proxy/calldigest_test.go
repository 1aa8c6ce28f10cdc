package proxy

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

func TestCallDigestOfArguments(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		same       bool
	}{
		{"none", ``, `{}`, true},
		{"null", `null`, `{}`, true},
		{"space around", " \t\r\n{ } \n", `{}`, true},
		{"space inside", `{ "a" : [ 1 , 2 ] }`, `{"a":[1,2]}`, true},
		{"order of members", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, true},
		{"order of elements", `[1,2]`, `[2,1]`, false},
		{"nesting of elements", `[1,[2]]`, `[[1],2]`, false},
		{"elements run together", `[12]`, `[1,2]`, false},
		{"an empty element", `[[]]`, `[]`, false},
		{"duplicate, last wins", `{"a":1,"a":2}`, `{"a":2}`, true},
		{"duplicate, first does not", `{"a":1,"a":2}`, `{"a":1}`, false},
		{"duplicate by an escape", `{"a":1,"b":0,"\u0061":2}`, `{"b":0,"a":2}`, true},
		{"case of a key", `{"A":1}`, `{"a":1}`, false},
		{"member left out", `{"a":1,"b":null}`, `{"a":1}`, false},
		{"escapes", `["\u00e9\/\u0022"]`, `["é/\""]`, true},
		{"HTML characters", `["\u003c\u0026"]`, `["<&"]`, true},
		{"a pair of surrogates", `["\ud83d\ude00"]`, `["😀"]`, true},
		{"text and number", `["1"]`, `[1]`, false},
		{"text and null", `["null"]`, `[null]`, false},
		{"true and false", `[true]`, `[false]`, false},
		{"a fraction of zero", `[1.0,1,1e0,10e-1,0.1E+1]`, `[1,1,1,1,1]`, true},
		{"zeros", `[0,-0,0.0,0e9,-0.00E-7]`, `[0,0,0,0,0]`, true},
		{"trailing zeros", `[100]`, `[1e2]`, true},
		{"the sign", `[-1]`, `[1]`, false},
		{"the power", `[1e2]`, `[1e3]`, false},
		{"beyond double precision", `[9007199254740993]`, `[9007199254740992]`, false},
		{"many digits", `[0.1000000000000000000000000000000001]`, `[0.1]`, false},
		{"a power beyond all sense", `[1e99999999999999999999]`, `[1e99999999999999999998]`, false},
		{"a huge power", `[1e1000000000]`, `[10e999999999]`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := CallDigest("tools/call", "t", []byte(tc.a)), CallDigest("tools/call", "t", []byte(tc.b))
			if (a == b) != tc.same {
				t.Errorf("%s and %s are the same: %v", tc.a, tc.b, a == b)
			}
		})
	}
}

func TestCallDigestOfCalls(t *testing.T) {
	seen := make(map[[32]byte]string)
	for _, call := range [][3]string{
		{"tools/call", "t", `{}`}, {"tools/call", "u", `{}`}, {"prompts/get", "t", `{}`},
		{"tools/callt", "", `{}`}, {"tools/call", "", `{}`}, {"tools/call", "t{}", `{}`},
		{"a", "1 b", `{}`}, {"a1", "b", `{}`}, {"a", "b", `{}`}, {"a", "b", `[]`},
	} {
		d := CallDigest(call[0], call[1], []byte(call[2]))
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %s are the same", call, other)
		}
		seen[d] = strings.Join(call[:], "|")
	}
	first := CallDigest("m", "t", []byte(`{"a":1}`))
	if again := CallDigest("m", "t", []byte(`{"a":1}`)); again != first {
		t.Error("the same call twice is not the same")
	}
}

func TestCallDigestAtTheDepthLimit(t *testing.T) {
	deep := strings.Repeat("[", rewrite.MaxDepth) + strings.Repeat("]", rewrite.MaxDepth)
	if CallDigest("m", "", []byte(deep)) == CallDigest("m", "", []byte(deep[1:len(deep)-1])) {
		t.Error("a level more is not noticed")
	}
}

// Texts longer than foldSize are digested in another way than short ones, and
// must be the same in the same cases.
func TestCallDigestOfLongValues(t *testing.T) {
	for _, n := range []int{1, foldSize - 8, foldSize - 6, foldSize - 5, foldSize - 4, foldSize, 3 * foldSize} {
		text := strings.Repeat("x", n)
		numbers := strings.Repeat("1.0, ", n) + "2"
		plain := `{"list":[` + strings.ReplaceAll(numbers, ".0, ", ",") + `],"text":"` + text + `","` + text + `":{"b":[],"c":"` + text + `"}}`
		for name, other := range map[string]string{
			"escaped":   strings.Replace(plain, `:"x`, `:"\u0078`, 1),
			"unordered": `{"text":"` + text + `","` + text + `":{"c":"` + text + `","b":[1],"b":[]},"list":[` + numbers + `]}`,
		} {
			if CallDigest("m", "t", []byte(plain)) != CallDigest("m", "t", []byte(other)) {
				t.Errorf("%d bytes, %s: it should be the same", n, name)
			}
		}
		for name, other := range map[string]string{
			"a byte of a text": strings.Replace(plain, `x"}`, `y"}`, 1),
			"a byte of a key":  strings.Replace(plain, `x":`, `y":`, 1),
			"the last number":  strings.Replace(plain, `2]`, `3]`, 1),
			"the first number": strings.Replace(plain, `[1`, `[5`, 1),
			"a longer text":    strings.Replace(plain, `x"}`, `xx"}`, 1),
			"an element more":  strings.Replace(plain, `2]`, `2,2]`, 1),
		} {
			if CallDigest("m", "t", []byte(plain)) == CallDigest("m", "t", []byte(other)) {
				t.Errorf("%d bytes, %s: it should be another", n, name)
			}
		}
	}
}

// The time must not grow with depth times size.
func BenchmarkCallDigestDeep(b *testing.B) {
	deep := []byte(strings.Repeat(`{"b":0,"a":`, 999) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 999))
	b.SetBytes(int64(len(deep)))
	b.ReportAllocs()
	for b.Loop() {
		CallDigest("m", "t", deep)
	}
}

// sameValue compares what encoding/json decodes: of duplicate members the
// last, lone surrogates as U+FFFD, numbers by their value.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	}
	return a == b
}

// decoded decodes what can be an argument, for sameValue. Powers of ten that
// would take big.Rat for ever are left out.
func decoded(text []byte) (any, bool) {
	message := append(append([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":`), text...), "}}"...)
	if _, err := rewrite.Scan(message); err != nil || !utf8.Valid(text) || !json.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		if n, ok := token.(json.Number); ok {
			if i := strings.IndexAny(string(n), "eE"); i >= 0 && len(n)-i > 5 {
				return nil, false
			}
		}
	}
	var v any
	d = json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&v)
	if v == nil {
		v = map[string]any{} // null and no arguments at all
	}
	return v, err == nil
}

// FuzzCallDigest compares two arguments with an independent notion of what is
// the same, and each with itself in another layout.
func FuzzCallDigest(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1,"b":[true,null,"x"]}`, `{"b":[true,null,"x"],"a":1.0}`},
		{`{"a":1,"\u0061":2}`, `{"a":2}`},
		{`[1e2,-0,0.10]`, `[100,0,1e-1]`},
		{`["\ud800","é"]`, `["\ufffd","\u00e9"]`},
		{`"a"`, `"b"`},
		{`null`, `{}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		CallDigest("m", "t", a) // no panic, whatever it is
		valueA, ok := decoded(a)
		if !ok {
			return
		}
		digest := CallDigest("m", "t", a)
		var spaced bytes.Buffer
		if err := json.Indent(&spaced, a, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		if CallDigest("m", "t", spaced.Bytes()) != digest {
			t.Errorf("%s in another layout is another call", a)
		}
		valueB, ok := decoded(b)
		if !ok {
			return
		}
		if got, want := CallDigest("m", "t", b) == digest, sameValue(valueA, valueB); got != want {
			t.Errorf("%s and %s are the same: %v; want %v", a, b, got, want)
		}
	})
}

func BenchmarkCallDigest(b *testing.B) {
	arguments := []byte(`{"path":"/srv/data/report.txt","options":{"depth":3,"follow":false,"ratio":0.25},"tags":["a","b","c"]}`)
	b.ReportAllocs()
	for b.Loop() {
		CallDigest("tools/call", "read_file", arguments)
	}
}
