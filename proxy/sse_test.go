package proxy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// read gives a stream to a parser in pieces, and returns what comes out and
// the events that were judged.
func readSSE(pieces [][]byte, limit int, judge func(name string, data []byte) []byte) (out string, events []string, large int) {
	p := &sseParser{max: limit}
	p.event = func(name string, data []byte) []byte {
		events = append(events, name+"|"+string(data))
		return judge(name, data)
	}
	p.piece = func([]byte) {}
	p.tooLarge = func() []byte { large++; return []byte("too large") }
	var b bytes.Buffer
	take := func() { b.Write(p.out); p.out = p.out[:0] }
	for _, piece := range pieces {
		for len(piece) > 0 {
			piece = piece[p.write(piece):]
			take()
		}
	}
	p.end(false)
	take()
	return b.String(), events, large
}

func keep(_ string, data []byte) []byte { return data }

var sseStreams = map[string]struct {
	stream string
	events []string // name|data
}{
	"LF":                        {"data: {}\n\n", []string{"|{}"}},
	"CRLF":                      {"data: {}\r\n\r\n", []string{"|{}"}},
	"CR":                        {"data: {}\r\rdata: 2\r\r", []string{"|{}", "|2"}},
	"mixed line ends":           {"event: a\rdata: 1\n\r\ndata: 2\r\r\n", []string{"a|1", "|2"}},
	"several data lines":        {"data: {\"a\":\r\ndata: 1}\r\n\r\n", []string{"|{\"a\":\n1}"}},
	"no space":                  {"data:{}\nid:7\n\n", []string{"|{}"}},
	"one space of two":          {"data:  x\n\n", []string{"| x"}},
	"empty data":                {"id: ev-1\ndata: \n\n", []string{"|"}},
	"data without a colon":      {"data\n\ndata\ndata\n\n", []string{"|", "|\n"}},
	"comments":                  {": ping\n\n:\n\ndata: 1\n: in between\ndata: 2\n\n", []string{"|1\n2"}},
	"fields that nobody knows":  {"datax: 1\nDATA: 2\nretry: 10\nfoo\n\n", nil},
	"name behind the data":      {"data: 1\nevent: late\n\n", []string{"late|1"}},
	"the last name counts":      {"event: a\nevent: b\ndata: 1\n\ndata: 2\n\n", []string{"b|1", "|2"}},
	"byte order mark":           {"\ufeffdata: 1\n\n\ufeffdata: 2\n\n", []string{"|1"}},
	"an end that never came":    {"data: 1\n\ndata: 2", []string{"|1", "|2"}},
	"ends in a field's name":    {"data: 1\n\nda", []string{"|1"}},
	"blank lines":               {"\n\n\r\n\r\rdata: 1\n\n\n\n", []string{"|1"}},
	"very long name":            {"event: " + strings.Repeat("n", 500) + "\ndata: 1\n\n", []string{"|1"}},
	"id and retry around data":  {"id: 1\ndata: 1\nid: 2\nretry: 5\ndata: 2\n\n", []string{"|1\n2"}},
	"separators of other tools": {"data: a\u2028b\vc\u0085d\n\n", []string{"|a\u2028b\vc\u0085d"}},
}

func TestSSEUnedited(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, and slow")
	}
	for name, c := range sseStreams {
		t.Run(name, func(t *testing.T) {
			for i := range len(c.stream) + 1 {
				for k := i; k <= len(c.stream); k++ {
					pieces := [][]byte{[]byte(c.stream[:i]), []byte(c.stream[i:k]), []byte(c.stream[k:])}
					out, events, _ := readSSE(pieces, 0, keep)
					if out != c.stream {
						t.Fatalf("cut at %d and %d: %q came out of %q", i, k, out, c.stream)
					}
					if !slices.Equal(events, c.events) {
						t.Fatalf("cut at %d and %d: events %q, want %q", i, k, events, c.events)
					}
				}
			}
		})
	}
}

func TestSSEEdited(t *testing.T) {
	for name, c := range map[string]struct{ in, data, out string }{
		"id and name stay":      {"id: 1\nevent: message\ndata: old\n\n", "new", "id: 1\nevent: message\ndata: new\n\n"},
		"fields behind stay":    {"data: old\nid: 1\n\n", "new", "data: new\nid: 1\n\n"},
		"several lines to one":  {"data: o\n: c\ndata: ld\n\n", "new", "data: new\n: c\n\n"},
		"a line end in it":      {"data: old\n\n", "{\n}", "data: {\ndata: }\n\n"},
		"CRLF":                  {"id: 1\r\ndata: old\r\n\r\n", "new", "id: 1\r\ndata: new\n\r\n"},
		"dropped":               {"id: 1\ndata: old\nretry: 3\n\n", "", "id: 1\nretry: 3\n\n"},
		"others stay":           {"data: a\n\ndata: old\n\ndata: b\n\n", "new", "data: a\n\ndata: new\n\ndata: b\n\n"},
		"without an end":        {"data: old", "new", "data: new\n"},
		"behind a byte order m": {"\ufeffdata: old\n\n", "new", "\ufeffdata: new\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range len(c.in) + 1 {
				out, _, _ := readSSE([][]byte{[]byte(c.in[:i]), []byte(c.in[i:])}, 0, func(_ string, data []byte) []byte {
					switch {
					case !strings.HasPrefix(string(data), "o"):
						return data
					case c.data == "":
						return nil
					}
					return []byte(c.data)
				})
				if out != c.out {
					t.Fatalf("cut at %d: %q, want %q", i, out, c.out)
				}
			}
		})
	}
}

func TestSSETooLarge(t *testing.T) {
	long := strings.Repeat("x", 100)
	stream := "data: a\n\nid: 1\ndata: " + strings.Repeat(long, 30) + "\ndata: more\nid: 2\n\ndata: b\n\n"
	want := "data: a\n\nid: 1\ndata: too large\n\ndata: b\n\n"
	for i := range len(stream) + 1 {
		out, events, large := readSSE([][]byte{[]byte(stream[:i]), []byte(stream[i:])}, 1000, keep)
		if out != want || large != 1 || len(events) != 2 {
			t.Fatalf("cut at %d: %q, %d too large, events %q", i, out, large, events)
		}
	}
}

func TestSSEHoldsNoMoreThanItMust(t *testing.T) {
	p := &sseParser{event: keep}
	for _, step := range []struct {
		in, out  string
		boundary bool
	}{
		{": pi", ": pi", false},
		{"ng\n", "ng\n", false},
		{"\n", "\n", true},
		{"id: 1\n", "id: 1\n", false},
		{"da", "", false},
		{"ta: 1\n: c\n", "", false},
		{"\n", "data: 1\n: c\n\n", true},
		{"data: 2\n", "", true},
	} {
		p.write([]byte(step.in))
		if string(p.out) != step.out || p.boundary() != step.boundary {
			t.Fatalf("after %q: out %q, boundary %v; want %q, %v", step.in, p.out, p.boundary(), step.out, step.boundary)
		}
		p.out = p.out[:0]
	}
}

func TestSSECut(t *testing.T) {
	p := &sseParser{event: keep}
	p.write([]byte("id: 1\ndata: {\"half\":"))
	p.end(true)
	if string(p.out) != "id: 1\n" {
		t.Errorf("of a stream that broke off came %q", p.out)
	}
}

func FuzzSSE(f *testing.F) {
	for _, c := range sseStreams {
		f.Add([]byte(c.stream), uint16(3))
	}
	f.Add([]byte(": c\u2028data: {}\n\nid: \x1e\u0085\n"), uint16(5))
	f.Fuzz(func(t *testing.T, stream []byte, at uint16) {
		whole, events, _ := readSSE([][]byte{stream}, 0, keep)
		if want := cutLines(string(stream)); whole != want {
			t.Fatalf("%q came out of %q, want %q", whole, stream, want)
		}
		cut := int(at) % (len(stream) + 1)
		pieces := [][]byte{stream[:cut], stream[cut:]}
		for i := range stream {
			if len(stream) > 200 {
				break
			}
			if i == 0 {
				pieces = pieces[:0]
			}
			pieces = append(pieces, stream[i:i+1])
		}
		out, again, _ := readSSE(pieces, 0, keep)
		if out != whole || !slices.Equal(events, again) {
			t.Fatalf("in pieces: %q with %q, whole: %q with %q", out, again, whole, events)
		}
		edited, _, _ := readSSE([][]byte{stream}, 0, func(_ string, data []byte) []byte { return fmt.Appendf(nil, "[%x]", data) })
		_, now, _ := readSSE([][]byte{[]byte(edited)}, 0, keep)
		if len(now) < len(events) {
			t.Fatalf("%d events left of %d: %q", len(now), len(events), edited)
		}
	})
}
