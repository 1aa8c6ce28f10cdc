package proxy

import (
	"regexp"
	"strings"
	"testing"
)

var sseLine = regexp.MustCompile(`[^\r\n]*(\r\n|\r|\n|$)`)

// cutLines is a stream without what stands behind a foreign line end, in lines
// that are not data.
func cutLines(stream string) string {
	var b strings.Builder
	for i, line := range sseLine.FindAllString(stream, -1) {
		text := strings.TrimRight(line, "\r\n")
		name := text
		if i == 0 {
			name = strings.TrimPrefix(name, string(bom))
		}
		at := len(text)
		if name != fieldData && !strings.HasPrefix(name, fieldData+":") {
			for _, end := range foreignEnds {
				if n := strings.Index(text, end); n >= 0 {
					at = min(at, n)
				}
			}
		}
		b.WriteString(text[:at] + line[len(text):])
	}
	return b.String()
}

// What another reader takes for a line end hides no line from us.
func TestSSEForeignLineEnds(t *testing.T) {
	var streams []string
	for _, end := range foreignEnds {
		streams = append(streams, ": c"+end+"data: {}"+end+end+"\n\ndata: 1\n\n", "data: a"+end+"b\nx: y"+end+"data: {}\r\rdata: 2\n\n")
	}
	for stream, want := range map[string]string{
		strings.Join(streams, ""):                       "",
		"event: a\u2028event: endpoint\ndata: 1\n\n":    "event: a\ndata: 1\n\n",
		"\ufeffevent\u0085data: {}\rid: 1\x1cid: 2\n\n": "\ufeffevent\rid: 1\n\n",
		"\u2028data: {}\n\n":                            "\n\n",
		": \u20ac \u2027 \u00a9 \x19\x1f\n: \xe2\x80\n": ": \u20ac \u2027 \u00a9 \x19\x1f\n: \xe2\x80\n",
		"data: 1\n\n: \xe2":                             "data: 1\n\n: \xe2",
		"data: 1\n\n: x\x1edata: {}":                    "data: 1\n\n: x",
	} {
		if want == "" {
			want = cutLines(stream)
		}
		for i := range len(stream) + 1 {
			for k := i; k <= min(len(stream), i+4); k++ {
				out, events, _ := readSSE([][]byte{[]byte(stream[:i]), []byte(stream[i:k]), []byte(stream[k:])}, 0, keep)
				if out != want {
					t.Fatalf("cut at %d and %d: %q came out of %q, want %q", i, k, out, stream, want)
				}
				for _, e := range events {
					if strings.Contains(e, "{") || strings.HasPrefix(e, "endpoint") {
						t.Fatalf("cut at %d: the event %q", i, e)
					}
				}
			}
		}
	}
}
