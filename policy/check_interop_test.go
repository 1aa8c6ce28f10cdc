package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// verdicts asks one of the oracles in testdata/interop about samples: "valid",
// "invalid", or "error" where the schema itself is refused.
func verdicts(t *testing.T, script, module string, samples []sample) []string {
	t.Helper()
	dir := interop(t, filepath.Join("node_modules", module))
	var in bytes.Buffer
	for _, s := range samples {
		fmt.Fprintf(&in, `{"schema":%s,"content":%s}`+"\n", s.schema, s.content)
	}
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var v struct {
			Valid *bool
		}
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		switch {
		case v.Valid == nil:
			all = append(all, "error")
		case *v.Valid:
			all = append(all, "valid")
		default:
			all = append(all, "invalid")
		}
	}
	if len(all) != len(samples) {
		t.Fatalf("%d verdicts on %d samples", len(all), len(samples))
	}
	return all
}

func verdict(d AnswerDecision) string {
	if d.Outcome == Pass {
		return "valid"
	}
	return "invalid"
}

// differences are the answers on which we differ from Ajv 8 with ajv-formats 3
// (draft 2020-12, formats on), each with the reason. Everything else that the
// generator makes has one verdict.
var differences = []struct{ schema, content, ours, ajv, why string }{
	{`{"type":"integer","minimum":9007199254740993}`, `9007199254740992`, "invalid", "valid", "JavaScript rounds digits beyond 2^53; a server in another language does not"},
	{`{"type":"number","multipleOf":0.1}`, `0.3`, "valid", "invalid", "JavaScript divides floating-point numbers; 0.3 is a multiple of 0.1"},
	{`{"type":"integer","format":"int32"}`, `4294967296`, "valid", "invalid", "a format that JSON Schema does not define is an annotation"},
	{`{"type":"string","format":"email"}`, `"jörg@exämple.test"`, "valid", "invalid", "RFC 6531 addresses exist, and the server may know them"},
	{`{"type":"string","format":"email"}`, `"root@localhost"`, "valid", "invalid", "a name without a dot is a host name"},
	{`{"type":"string","format":"email"}`, `"\"a b\"@h.example"`, "valid", "invalid", "a quoted local part is an address (RFC 5322)"},
	{`{"type":"string","format":"uri"}`, `"https://exämple.test/ü"`, "valid", "invalid", "people paste IRIs, and most servers take them"},
	{`{"type":"string","format":"uri"}`, `"https:site.example"`, "invalid", "valid", "a URI by its grammar, but no web address"},
	{`{"type":"string","format":"uri"}`, `"https://"`, "invalid", "valid", "the same: it has no host"},
	{`{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"a","title":"B"}]}`, `"a"`, "valid", "invalid", "an option listed twice is an option"},
	{`{"type":"string","pattern":"^(?=.*[A-Z]).+$"}`, `"a"`, "valid", "invalid", "look-around has no linear-time match: left unchecked, and said so"},
	{`{"type":"string","pattern":"(["}`, `"a"`, "valid", "error", "one bad keyword is left unchecked, not the whole form"},
	{`{"$ref":"https://schemas.example/p.json"}`, `"a"`, "valid", "error", "never fetched: the field is left unchecked, not the whole form"},
	{`{"type":"text"}`, `"a"`, "valid", "error", "the same for a type that there is not"},
	{`{"type":"string"}`, `"a","F":"b"`, "invalid", "valid", "Go's encoding/json reads F as f"},
	{`{"type":"string"}`, `"a","g":{"x":1}`, "invalid", "valid", "ElicitResult has no objects; the SDK's own parser refuses it before Ajv"},
}

func TestInteropAjv(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	samples := make([]sample, 1000)
	for i := range samples {
		samples[i] = randomSample(r)
	}
	for i, want := range verdicts(t, "ajv-oracle.mjs", "ajv", samples) {
		s := samples[i]
		d := new(Answers).Decide([]byte(s.schema), []byte(accept(s.content)))
		if verdict(d) != want {
			t.Errorf("%s\n%s\nhere %s, Ajv says %s", s.schema, s.content, ProblemText(d.Problems), want)
		}
	}
}

func TestInteropAjvDifferences(t *testing.T) {
	var samples []sample
	for _, d := range differences {
		samples = append(samples, sample{form1(d.schema), `{"f":` + d.content + `}`})
		got := new(Answers).Decide([]byte(form1(d.schema)), []byte(accept(`{"f":`+d.content+`}`)))
		if verdict(got) != d.ours {
			t.Errorf("%s, %s: %s, want %s", d.schema, d.content, verdict(got), d.ours)
		}
	}
	for i, got := range verdicts(t, "ajv-oracle.mjs", "ajv", samples) {
		if d := differences[i]; got != d.ajv {
			t.Errorf("%s, %s: Ajv says %s, not %s (%s)", d.schema, d.content, got, d.ajv, d.why)
		}
	}
}

// A server on the TypeScript SDK takes nothing that we refuse. It refuses more:
// forms that its own types do not know, and with them every answer.
func TestInteropServerVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	samples := make([]sample, 400)
	for i := range samples {
		samples[i] = randomSample(r)
	}
	for i, want := range verdicts(t, "server-oracle-v1.mjs", filepath.Join("@modelcontextprotocol", "sdk"), samples) {
		s := samples[i]
		d := new(Answers).Decide([]byte(s.schema), []byte(accept(s.content)))
		if want == "valid" && verdict(d) != "valid" {
			t.Errorf("%s\n%s\nhere %s, the server takes it", s.schema, s.content, ProblemText(d.Problems))
		}
	}
}
