package policy

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDecide parses and checks a form of 20 fields, as once per human answer.
func BenchmarkDecide(b *testing.B) {
	kinds := [][2]string{
		{`{"type":"string","minLength":1,"maxLength":80,"pattern":"^[A-Za-z ]+$"}`, `"Ann Example"`},
		{`{"type":"string","format":"email"}`, `"ann@example.com"`},
		{`{"type":"integer","minimum":1,"maximum":100}`, `42`},
		{`{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"m","title":"Medium"},{"const":"l","title":"Large"}]}`, `"m"`},
		{`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},"minItems":1}`, `["a","b"]`},
	}
	var properties, content []string
	for i := range 20 {
		k := kinds[i%len(kinds)]
		properties = append(properties, fmt.Sprintf(`"field_%d":%s`, i, k[0]))
		content = append(content, fmt.Sprintf(`"field_%d":%s`, i, k[1]))
	}
	schema := []byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":["field_0"]}`)
	result := []byte(accept(`{` + strings.Join(content, ",") + `}`))
	var a Answers
	b.ReportAllocs()
	for b.Loop() {
		if d := a.Decide(schema, result); d.Outcome != Pass {
			b.Fatal(ProblemText(d.Problems))
		}
	}
}
