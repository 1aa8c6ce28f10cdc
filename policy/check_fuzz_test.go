package policy

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecide: whatever comes, a decision is made, within bounds, and an answer
// that is said to pass is what the server will read.
func FuzzDecide(f *testing.F) {
	all := Answers{FillDefaults: true, Coerce: Coerce{true, true, true, true}, RejectAsDecline: true, DropDeclinedContent: true}
	f.Add([]byte(form1(`{"type":"integer","minimum":1,"default":2}`)), []byte(accept(`{"f":"5"}`)))
	f.Add([]byte(form1(`{"$ref":"#/properties/f"}`)), []byte(accept(`{"f":"5","\u0066":1}`)))
	f.Add([]byte(`{"properties":{"f":{"anyOf":[{"pattern":"^[\\s\\u{1f600}]$","format":"uri"},{"not":{"items":{"const":1e9}}}]}}}`), []byte(accept(`{"f":[1.0e9]}`)))
	f.Add([]byte(`{"$defs":{"a/b":{"enum":["x"],"enumNames":["X"]}},"properties":{"f":{"allOf":[{"$ref":"#/$defs/a~1b"}],"default":"x"}},"required":["f"]}`), []byte(`{"action":"accept"}`))
	f.Add([]byte(``), []byte(`{"Action":"accept","action":"decline","content":{"a":"\ud800"}}`))
	f.Fuzz(func(t *testing.T, schema, result []byte) {
		before := bytes.Clone(result)
		strict := new(Answers).Decide(schema, result)
		lax := all.Decide(schema, result)
		for _, d := range []AnswerDecision{strict, lax} {
			if (d.Outcome == Pass) != (len(d.Problems) == 0) {
				t.Fatalf("%v with %d problems", d.Outcome, len(d.Problems))
			}
			text := ProblemText(d.Problems)
			if len(text) > maxProblemText || len(d.Problems) > maxProblems || len(d.Unchecked) > maxUnchecked {
				t.Fatalf("%d bytes, %d problems, %d unchecked", len(text), len(d.Problems), len(d.Unchecked))
			}
			for _, p := range d.Problems {
				if !utf8.ValidString(p.Message) || len(p.Message) > 2048 || strings.ContainsAny(p.Message, "\n\r\x00") {
					t.Fatalf("message %q", p.Message)
				}
			}
			applied := d.Apply(result)
			if d.Outcome == Pass && !json.Valid(applied) {
				t.Fatalf("%s is not JSON", applied)
			}
		}
		if strict.Content != nil || !bytes.Equal(strict.Apply(result), before) || !bytes.Equal(result, before) {
			t.Fatal("an answer was altered that no option lets alter")
		}
		if lax.Outcome == Pass && lax.Content != nil {
			if again := new(Answers).Decide(schema, lax.Apply(result)); again.Outcome != Pass {
				t.Fatalf("altered to %s, which fails: %s", lax.Content, ProblemText(again.Problems))
			}
		}
		if strict.Outcome == Pass && strict.Action == "accept" {
			// The server's own reader sees what was checked.
			var read struct {
				Action  string
				Content map[string]any
			}
			if err := json.Unmarshal(result, &read); err != nil || read.Action != "accept" {
				t.Fatalf("%s is read as %q: %v", result, read.Action, err)
			}
		}
	})
}

// FuzzEdit: an object with members dropped, replaced and added is that object.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{ "a":1 , "b" : {"c":[1,"]}"]} ,"d":"\"," }`), uint8(2), uint8(1), true)
	f.Add([]byte(`{}`), uint8(0), uint8(0), true)
	f.Add([]byte(` { "a" : null } `), uint8(1), uint8(0), true)
	f.Fuzz(func(t *testing.T, doc []byte, dropped, replaced uint8, add bool) {
		object, err := parseTop(doc)
		if err != nil || object.kind != kindObject {
			return
		}
		var e objectEdit
		var want []string
		for i, m := range object.members {
			switch {
			case dropped>>(i%8)&1 == 1:
				e.drop(i)
			case replaced>>(i%8)&1 == 1:
				e.replace(i, []byte(`"new"`))
				want = append(want, string(m.key)+`"new"`)
			default:
				want = append(want, string(m.key)+string(m.value.raw))
			}
		}
		if add {
			e.add([]byte(`"added"`), []byte(`[]`))
			want = append(want, `"added"[]`)
		}
		out := e.apply(object)
		edited, err := parseTop(out)
		if err != nil {
			t.Fatalf("%s became %s: %v", doc, out, err)
		}
		var got []string
		for _, m := range edited.members {
			got = append(got, string(m.key)+string(m.value.raw))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%s became %s", doc, out)
		}
		if dropped == 0 && replaced == 0 && !add && !bytes.Equal(out, object.raw) {
			t.Fatalf("%s became %s without an edit", doc, out)
		}
	})
}

// FuzzPattern: a pattern compiles within its bound, or the reason is said.
func FuzzPattern(f *testing.F) {
	f.Add(`^[\s\u00e4\u{1f600}[^\]]+\/(?<n>\cJ|\0)$`, "x")
	f.Add(`(?i:a{1,1000}){2}[]|[^]`, "A")
	f.Add(`\ud83d\ude00\x4`, "\U0001f600")
	f.Fuzz(func(t *testing.T, source, text string) {
		p, err := compilePattern(source)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("no reason")
			}
			return
		}
		if p.instructions > maxPatternInstructions || p.instructions < 1 {
			t.Fatalf("%d instructions", p.instructions)
		}
		if p.work(text) < maxSteps {
			p.re.MatchString(text)
		}
	})
}

// FuzzDecimal: where big.Rat can follow, it comes to the same.
func FuzzDecimal(f *testing.F) {
	f.Add("9007199254740993", "9007199254740992.0")
	f.Add("-0.10e-2", "1E+2")
	f.Add("1e999999999", "7")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) || strings.Trim(a+b, "0123456789.-+eE") != "" {
			return
		}
		x, ok := parseDecimal([]byte(a))
		y, okToo := parseDecimal([]byte(b))
		if !ok || !okToo {
			return
		}
		order, multiple := x.compare(y), y.sign() > 0 && x.multipleOf(y)
		if max(x.exp, -x.exp, y.exp, -y.exp) > 1000 {
			return
		}
		p, _ := new(big.Rat).SetString(a)
		q, _ := new(big.Rat).SetString(b)
		if order != p.Cmp(q) || x.integer() != p.IsInt() || x.sign() != p.Sign() {
			t.Fatalf("%s and %s: order %d, integer %v, sign %d", a, b, order, x.integer(), x.sign())
		}
		if y.sign() > 0 && multiple != p.Quo(p, q).IsInt() {
			t.Fatalf("%s is a multiple of %s: %v", a, b, multiple)
		}
	})
}
