package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// chunks is a reader that hands out one piece a Read, however large the buffer.
type chunks struct {
	pieces [][]byte
	err    error // at the end
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, c.err
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

func cutAt(text string, at int) io.Reader {
	c := &chunks{err: io.EOF}
	for _, piece := range []string{text[:at], text[at:]} {
		if piece != "" {
			c.pieces = append(c.pieces, []byte(piece))
		}
	}
	return c
}

// readFrames reads a stream to its end: the lines, and the error that ended it.
// A line that was skipped is shown as its id and method.
func readFrames(t *testing.T, r io.Reader, limit int64) ([]string, error) {
	t.Helper()
	f := frameReader{r: r, max: limit}
	var lines []string
	for {
		fr, err := f.next(t.Context())
		if err != nil {
			return lines, err
		}
		if fr.tooLarge != "" {
			lines = append(lines, fmt.Sprintf("skipped %s %s", fr.skim.ID(), fr.skim.Method()))
			continue
		}
		if fr.wire != nil && string(fr.wire) != string(fr.line)+"\n" {
			t.Fatalf("wire is %q, line %q", fr.wire, fr.line)
		}
		lines = append(lines, string(fr.line))
	}
}

func TestFramesCutAtEveryByte(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []string
	}{
		{"LF", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}},
		{"CRLF", "{\"a\":1}\r\n{\"b\":2}\r\n", []string{`{"a":1}`, `{"b":2}`}},
		{"mixed ends", "{\"a\":1}\r\n{\"b\":2}\n{\"c\":3}\r\n", []string{`{"a":1}`, `{"b":2}`, `{"c":3}`}},
		{"byte order mark", "\ufeff{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}},
		{"byte order mark, CRLF", "\ufeff{\"a\":1}\r\n", []string{`{"a":1}`}},
		{"byte order mark alone", "\ufeff\n{\"a\":1}\n", []string{`{"a":1}`}},
		{"byte order mark later on stays", "{\"a\":1}\n\ufeff{\"b\":2}\n", []string{`{"a":1}`, "\ufeff{\"b\":2}"}},
		{"half a byte order mark stays", "\xef\xbb{\"a\":1}\n", []string{"\xef\xbb{\"a\":1}"}},
		{"blank lines", "\n\r\n  \t\n{\"a\":1}\n\n\r\n{\"b\":2}\n \r\n", []string{`{"a":1}`, `{"b":2}`}},
		{"no end", "{\"a\":1}\n{\"b\":2}", []string{`{"a":1}`, `{"b":2}`}},
		{"no end, one line", "{\"a\":1}", []string{`{"a":1}`}},
		{"CR for an end", "{\"a\":1}\n{\"b\":2}\r", []string{`{"a":1}`, `{"b":2}`}},
		{"CR inside", "a\rb\n", []string{"a\rb"}},
		{"two CRs", "a\r\r\n", []string{"a\r"}},
		{"characters of several bytes", "{\"a\":\"— 日本 🙂\"}\n", []string{`{"a":"— 日本 🙂"}`}},
		{"other line ends are text", "{\"a\":\"\u2028\u2029\u0085\v\f\"}\n", []string{"{\"a\":\"\u2028\u2029\u0085\v\f\"}"}},
		{"white space at the end", "{\"a\":1}\n   ", []string{`{"a":1}`}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			readers := map[string]io.Reader{
				"byte by byte":       iotest.OneByteReader(strings.NewReader(tt.stream)),
				"by halves":          iotest.HalfReader(strings.NewReader(tt.stream)),
				"end with the bytes": iotest.DataErrReader(strings.NewReader(tt.stream)),
			}
			for at := range len(tt.stream) + 1 {
				readers[fmt.Sprint("cut at ", at)] = cutAt(tt.stream, at)
			}
			for how, r := range readers {
				got, err := readFrames(t, r, 0)
				if err != io.EOF || !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %q, %v; want %q", how, got, err, tt.want)
				}
			}
		})
	}
}

// Lines around the sizes at which the reader changes its ways.
func TestFramesAroundBufferSizes(t *testing.T) {
	var stream bytes.Buffer
	var want []string
	for _, size := range []int{1, frameBuffer, 2 * frameBuffer, keepBuffer, 3} {
		for d := -2; d <= 2; d++ {
			for _, end := range []string{"\n", "\r\n"} {
				if size+d > 0 {
					line := strings.Repeat(string(rune('a'+len(want)%26)), size+d)
					want = append(want, line)
					stream.WriteString(line + end)
				}
			}
		}
	}
	for how, r := range map[string]io.Reader{
		"at once":   bytes.NewReader(stream.Bytes()),
		"by halves": iotest.HalfReader(bytes.NewReader(stream.Bytes())),
		"no end":    bytes.NewReader(bytes.TrimRight(stream.Bytes(), "\r\n")),
	} {
		got, err := readFrames(t, r, 0)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%s: %d lines, %v; want %d", how, len(got), err, len(want))
		}
	}
}

func TestFramesTooLarge(t *testing.T) {
	const limit = 60
	filler := strings.Repeat("x", limit)
	tests := []struct {
		name, line, want string
	}{
		{"id first", `{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"` + filler + `"}}`, "skipped 7 m"},
		{"id last", `{"result":{"id":1,"a":"` + filler + `"},"jsonrpc":"2.0","id":"s"}`, `skipped "s" `},
		{"method last", `{"jsonrpc":"2.0","params":{"method":"no","a":"` + filler + `"},"id":0,"method":"m"}`, "skipped 0 m"},
		{"notification", `{"jsonrpc":"2.0","params":"` + filler + `","method":"m"}`, "skipped  m"},
		{"no JSON", filler + filler, "skipped  "},
		{"at the limit", strings.Repeat("y", limit), strings.Repeat("y", limit)},
		{"one more", strings.Repeat("y", limit+1), "skipped  "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, end := range []string{"\n", ""} {
				stream := "{\"a\":1}\n" + tt.line + end
				want := []string{`{"a":1}`, tt.want}
				if end != "" {
					stream, want = stream+"{\"b\":2}\n", append(want, `{"b":2}`)
				}
				for at := range len(stream) + 1 {
					got, err := readFrames(t, cutAt(stream, at), limit)
					if err != io.EOF || !slices.Equal(got, want) {
						t.Fatalf("cut at %d: got %q, %v; want %q", at, got, err, want)
					}
				}
			}
		})
	}
}

// endless says the same thing for ever, and then an id.
type endless struct {
	left int
	tail string
	look func()
}

func (e *endless) Read(p []byte) (int, error) {
	e.look()
	if e.left <= 0 {
		n := copy(p, e.tail)
		e.tail = e.tail[n:]
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'z'
	}
	e.left -= n
	return n, nil
}

func TestFrameEndlessLineTakesBoundedMemory(t *testing.T) {
	const limit = 2 << 20
	f := frameReader{max: limit}
	held := 0
	f.r = io.MultiReader(
		strings.NewReader(`{"jsonrpc":"2.0","result":"`),
		&endless{left: 64 << 20, tail: `","id":5}` + "\n{}\n", look: func() { held = max(held, cap(f.long)+cap(f.buf)) }},
	)
	fr, err := f.next(t.Context())
	if err != nil || fr.tooLarge == "" || string(fr.skim.ID()) != "5" || fr.skim.Kind() != rewrite.KindResult {
		t.Fatalf("got %q, id %s, %v", fr.tooLarge, fr.skim.ID(), err)
	}
	if held > 2*limit+frameBuffer {
		t.Errorf("held %d bytes for a line that may have %d", held, limit)
	}
	if fr, err := f.next(t.Context()); err != nil || string(fr.line) != "{}" {
		t.Errorf("then %q, %v", fr.line, err)
	}
}

func TestFrameBrokenReaders(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name string
		r    io.Reader
		want []string
		err  error
	}{
		{"an error after half a line", &chunks{[][]byte{[]byte("{}\n{\"a\"")}, broken}, []string{"{}", `{"a"`}, broken},
		{"an error with bytes", iotest.DataErrReader(&chunks{[][]byte{[]byte("{}\n")}, broken}), []string{"{}"}, broken},
		{"never anything", &chunks{nil, nil}, nil, io.ErrNoProgress},
		{"an error while skipping", &chunks{[][]byte{bytes.Repeat([]byte("x"), 200)}, broken}, []string{"skipped  "}, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFrames(t, tt.r, 100)
			if !errors.Is(err, tt.err) || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// However the stream is cut, its lines are those of a plain split.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\ufeff{\"a\":1}\r\n\n{\"b\":2}"), uint16(3), int64(0))
	f.Add([]byte("aaaaaaaaaaaa\n\r\n \nb\r"), uint16(1), int64(5))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16, limit int64) {
		if limit < 0 {
			limit = 0
		}
		c := &chunks{err: io.EOF}
		for piece := range slices.Chunk(stream, int(size)+1) {
			c.pieces = append(c.pieces, piece)
		}
		var want []string
		for i, line := range strings.Split(string(stream), "\n") {
			over := limit > 0 && int64(len(line)) > limit
			line = strings.TrimSuffix(line, "\r")
			if i == 0 && !over {
				line = strings.TrimPrefix(line, "\ufeff")
			}
			switch {
			case over:
				var s rewrite.Skim
				s.Write([]byte(line))
				want = append(want, fmt.Sprintf("skipped %s %s", s.ID(), s.Method()))
			case strings.Trim(line, " \t\r") != "":
				want = append(want, line)
			}
		}
		got, err := readFrames(t, c, limit)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	})
}

// recordWriter keeps what it is given, or fails.
type recordWriter struct {
	writes [][]byte
	err    error
}

func (w *recordWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.writes = append(w.writes, bytes.Clone(p))
	return len(p), nil
}

func TestFrameWriterGathersSmallMessages(t *testing.T) {
	large := bytes.Repeat([]byte("x"), frameBuffer+1)
	tests := []struct {
		name     string
		messages []string
		writes   []int // sizes
	}{
		{"one", []string{"{}"}, []int{3}},
		{"many small", slices.Repeat([]string{"{}"}, 100), []int{300}},
		{"as many as fit, and one more", slices.Repeat([]string{string(large[:1023])}, 65), []int{64 << 10, 1 << 10}},
		{"a large one is not copied", []string{"{}", string(large), "{}"}, []int{3, frameBuffer + 1, 4}},
		{"none", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w recordWriter
			f := newFrameWriter(&w)
			for _, m := range tt.messages {
				if err := f.write([]byte(m), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.close(); err != nil {
				t.Fatal(err)
			}
			var sizes []int
			for _, p := range w.writes {
				sizes = append(sizes, len(p))
			}
			if !slices.Equal(sizes, tt.writes) {
				t.Errorf("wrote %v, want %v", sizes, tt.writes)
			}
			want := ""
			for _, m := range tt.messages {
				want += m + "\n"
			}
			if got := string(bytes.Join(w.writes, nil)); got != want {
				t.Errorf("wrote %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

// A line that still stands before its own end is written as it stands.
func TestFrameWriterTakesTheWire(t *testing.T) {
	var w recordWriter
	f := newFrameWriter(&w)
	line := append(bytes.Repeat([]byte("x"), frameBuffer), '\n')
	if err := f.write(line[:len(line)-1], line); err != nil || len(w.writes) != 1 || !bytes.Equal(w.writes[0], line) {
		t.Errorf("%d writes, %v", len(w.writes), err)
	}
}

func TestFrameWriterKeepsItsError(t *testing.T) {
	gone := errors.New("gone")
	f := newFrameWriter(&recordWriter{err: gone})
	if err := f.write([]byte("{}"), nil); err != nil {
		t.Errorf("into the buffer: %v", err)
	}
	if err := f.flush(); !errors.Is(err, gone) {
		t.Errorf("flush: %v", err)
	}
	if err := f.write([]byte("{}"), nil); !errors.Is(err, gone) {
		t.Errorf("write: %v", err)
	}
	f.post([]byte("{}")) // lost, and nobody waits for it
	if err := f.close(); !errors.Is(err, gone) {
		t.Errorf("close: %v", err)
	}
	if f.post([]byte("{}")) {
		t.Error("posted on a closed writer")
	}
}

// Whoever posts a message may use its memory again.
func TestFrameWriterPostsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		f := newFrameWriter(w)
		message := []byte("{1}\n")[:3]
		for i := range 3 { // the first is being written, the others wait
			message[1] = '1' + byte(i)
			f.post(message)
			synctest.Wait()
		}
		message[1] = 'x'
		go func() {
			_ = f.close()
			w.Close()
		}()
		if got, err := io.ReadAll(r); err != nil || string(got) != "{1}\n{2}\n{3}\n" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
