package icon

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const testSVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M4 4h16v16H4z" fill="#c00"/></svg>`

// testRequest is a job with a Fetcher's defaults.
func testRequest(f format) requestHeader {
	return requestHeader{Format: f, Edge: defaultEdge, MaxPixels: defaultMaxPixels, MaxPNG: defaultMaxIcon * 3 / 4, CPU: 2, Memory: defaultWorkerMemory}
}

// noise is a picture that no encoder can make small.
func noise(w, h int) *image.NRGBA {
	r := rand.New(rand.NewPCG(1, 2))
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = uint8(r.Uint32())
	}
	return m
}

func encoded(t testing.TB, f format, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch f {
	case formatPNG:
		err = png.Encode(&b, m)
	case formatJPEG:
		err = jpeg.Encode(&b, m, nil)
	case formatGIF:
		err = gif.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// chunk is one chunk of a PNG.
func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// withChunks puts chunks after a PNG's header.
func withChunks(picture []byte, chunks ...[]byte) []byte {
	head := 8 + 12 + 13
	out := bytes.Clone(picture[:head])
	for _, c := range chunks {
		out = append(out, c...)
	}
	return append(out, picture[head:]...)
}

// pngHeader is a PNG that says its size and has no pixels.
func pngHeader(w, h uint32) []byte {
	data := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h)
	return append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(data, 8, 6, 0, 0, 0))...)
}

// webpFile is a RIFF file of a VP8X header that says one size and whatever
// picture follows.
func webpFile(t testing.TB, canvas uint32, picture []byte) []byte {
	t.Helper()
	data := []byte{0x10, 0, 0, 0}
	data = append(data, byte(canvas-1), byte((canvas-1)>>8), byte((canvas-1)>>16), byte(canvas-1), byte((canvas-1)>>8), byte((canvas-1)>>16))
	body := append([]byte("WEBPVP8X\x0a\x00\x00\x00"), data...)
	body = append(body, picture[12:]...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRaster(t *testing.T) {
	small := testPNG(t, 8, 8)
	photo := encoded(t, formatJPEG, noise(64, 64))
	dot := encoded(t, formatJPEG, image.NewGray(image.Rect(0, 0, 8, 8)))
	scan := dot[bytes.LastIndex(dot, []byte{0xff, 0xda}) : len(dot)-2]
	manyScans := slices.Concat(dot[:len(dot)-2], bytes.Repeat(scan, 10_000), dot[len(dot)-2:])
	fewScans := slices.Concat(dot[:len(dot)-2], bytes.Repeat(scan, maxScans-1), dot[len(dot)-2:])
	webp := readTestdata(t, "lossless.webp")
	frames := &gif.GIF{}
	for range 300 {
		frames.Image = append(frames.Image, image.NewPaletted(image.Rect(0, 0, 4, 4), color.Palette{color.White, color.Black}))
		frames.Delay = append(frames.Delay, 1)
	}
	var film bytes.Buffer
	if err := gif.EncodeAll(&film, frames); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(small)
	flipped[len(flipped)-20] ^= 0xff
	zeroGIF := []byte("GIF89a/*\x00\x00\x00\x00\x00*/=1;alert(1);")
	for _, c := range []struct {
		name   string
		format format
		body   []byte
		want   Reason
		w, h   int
	}{
		{"png", formatPNG, testPNG(t, 200, 100), "", 64, 32},
		{"small png", formatPNG, small, "", 8, 8},
		{"tall png", formatPNG, testPNG(t, 10, 1000), "", 1, 64},
		{"jpeg", formatJPEG, photo, "", 64, 64},
		{"gif", formatGIF, encoded(t, formatGIF, noise(100, 100)), "", 64, 64},
		{"webp", formatWebP, webp, "", 16, 16},
		{"film", formatGIF, film.Bytes(), "", 4, 4},
		{"noise", formatPNG, encoded(t, formatPNG, noise(1024, 1024)), "", 64, 64},
		{"huge header", formatPNG, pngHeader(65535, 65535), ReasonDimensions, 0, 0},
		{"wide header", formatPNG, pngHeader(1<<20, 1), ReasonDimensions, 0, 0},
		{"most header", formatPNG, pngHeader(1<<31-1, 1<<31-1), ReasonDecode, 0, 0},
		{"no pixels", formatPNG, pngHeader(0, 8), ReasonDecode, 0, 0},
		{"gif of no height", formatGIF, zeroGIF, ReasonDimensions, 0, 0},
		{"gif frame of no width", formatGIF, []byte("GIF89a\x04\x00\x04\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x00\x00\x04\x00\x00\x02\x02\x2c\x01\x00;"), ReasonDimensions, 0, 0},
		{"10,000 scans", formatJPEG, manyScans, ReasonDecode, 0, 0},
		{"as many scans as may be", formatJPEG, fewScans, "", 8, 8},
		{"markup after magic", formatPNG, []byte("\x89PNG\r\n\x1a\n<script>alert(1)</script>"), ReasonDecode, 0, 0},
		{"cut", formatPNG, small[:len(small)/2], ReasonDecode, 0, 0},
		{"bit flipped", formatPNG, flipped, ReasonDecode, 0, 0},
		{"cut jpeg", formatJPEG, photo[:len(photo)/8], ReasonDecode, 0, 0},
		{"webp canvas", formatWebP, webpFile(t, 400, webp), ReasonDecode, 0, 0},
		{"webp of many pixels", formatWebP, webpFile(t, 4000, webp), ReasonDimensions, 0, 0},
		{"webp cut", formatWebP, webp[:30], ReasonDecode, 0, 0},
		{"bmp", formatNone, []byte("BM\x36\x00"), ReasonFormat, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, out, err := convert(testRequest(c.format), c.body)
			wantReason(t, err, c.want)
			if err != nil {
				return
			}
			if size := m.Bounds().Size(); size != image.Pt(c.w, c.h) {
				t.Errorf("size %v, want %d×%d", size, c.w, c.h)
			}
			if len(out) > defaultMaxIcon*3/4 {
				t.Errorf("%d bytes", len(out))
			}
		})
	}
}

func TestSniff(t *testing.T) {
	for body, want := range map[string]format{
		"\x89PNG\r\n\x1a\n": formatPNG, "\x89PNG\n": formatNone, "\xff\xd8\xff\xe0": formatJPEG, "GIF87a": formatGIF, "GIF89a": formatGIF, "GIF88a": formatNone,
		"RIFF....WEBP": formatWebP, "RIFF....WAVE": formatNone, "RIFF": formatNone, "<svg": formatSVG, "\xef\xbb\xbf \n<?xml": formatSVG,
		"": formatNone, "BM": formatNone, "II*\x00": formatNone, "MM\x00*": formatNone, "\x00\x00\x01\x00": formatNone, "%PDF-1.7": formatNone, "%!PS": formatNone,
		"\x00\x00\x00\x20ftypavif": formatNone, "\x00\x00\x00\x20ftypheic": formatNone, "push graphic-context": formatNone, "\x1f\x8b\x08": formatNone,
		"\xfe\xff\x00<": formatNone, "<\x00s\x00": formatSVG,
	} {
		if got := sniff([]byte(body)); got != want {
			t.Errorf("%q: %v, want %v", body, got, want)
		}
	}
}

// TestNothingOfTheSourceIsLeft: what goes out holds no chunk but the picture's.
func TestNothingOfTheSourceIsLeft(t *testing.T) {
	payload := []byte("PAYLOAD<script>alert(1)</script>")
	source := withChunks(testPNG(t, 32, 32),
		chunk("tEXt", append([]byte("Comment\x00"), payload...)), chunk("iTXt", payload), chunk("iCCP", payload), chunk("eXIf", payload), chunk("zzZz", payload))
	source = append(source, payload...)
	_, out, err := convert(testRequest(formatPNG), source)
	wantReason(t, err, "")
	kinds := map[string]bool{"IHDR": true, "PLTE": true, "tRNS": true, "IDAT": true, "IEND": true}
	rest := out[8:]
	for len(rest) > 0 {
		n := binary.BigEndian.Uint32(rest)
		if kind := string(rest[4:8]); !kinds[kind] {
			t.Errorf("chunk %s", kind)
		}
		rest = rest[12+n:]
	}
	if bytes.Contains(out, []byte("PAYLOAD")) {
		t.Error("the payload is still there")
	}
	// EXIF, with a place, in a JPEG.
	photo := encoded(t, formatJPEG, noise(16, 16))
	exif := append([]byte{0xff, 0xe1, 0, byte(2 + 6 + len(payload))}, append([]byte("Exif\x00\x00"), payload...)...)
	_, out, err = convert(testRequest(formatJPEG), append(append(bytes.Clone(photo[:2]), exif...), photo[2:]...))
	wantReason(t, err, "")
	if bytes.Contains(out, []byte("PAYLOAD")) || bytes.Contains(out, []byte("Exif")) {
		t.Error("the EXIF is still there")
	}
}

// TestTransparentPixelsLendNoColour: what is under full transparency does not
// bleed when the picture is made smaller.
func TestTransparentPixelsLendNoColour(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 128, 128))
	for i := 0; i < len(m.Pix); i += 4 {
		copy(m.Pix[i:], []uint8{255, 0, 0, 0})
		if i/4%128 < 64 {
			copy(m.Pix[i:], []uint8{0, 0, 255, 255})
		}
	}
	small := scale(m, 64, 64)
	for i := 0; i < len(small.Pix); i += 4 {
		if p := small.Pix[i : i+4]; p[3] > 8 && p[0] > 8 {
			t.Fatalf("pixel %d is %v", i/4, p)
		}
	}
}

// TestPalette: few colours go out by palette, and the same.
func TestPalette(t *testing.T) {
	source := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for i := 0; i < len(source.Pix); i += 4 {
		copy(source.Pix[i:], []uint8{uint8(i / 4 % 7 * 30), 10, 200, uint8(i / 4 % 3 * 127)})
	}
	out, err := encodePNG(source)
	if err != nil {
		t.Fatal(err)
	}
	back, err := png.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := back.(*image.Paletted); !ok {
		t.Errorf("%T", back)
	}
	for i := range 64 * 64 {
		want := source.NRGBAAt(i%64, i/64)
		got := color.NRGBAModel.Convert(back.At(i%64, i/64)).(color.NRGBA)
		if want.A == 0 && got.A == 0 {
			continue
		}
		if got != want {
			t.Fatalf("pixel %d: %v, want %v", i, got, want)
		}
	}
	if out, err := encodePNG(noise(64, 64)); err != nil || palettize(noise(64, 64)) != nil {
		t.Errorf("noise: %d bytes, %v", len(out), err)
	}
}

func TestFit(t *testing.T) {
	for _, c := range [][5]int{{100, 50, 64, 64, 32}, {50, 100, 64, 32, 64}, {8, 8, 64, 8, 8}, {1, 8192, 64, 1, 64}, {65, 64, 64, 64, 63}, {64, 64, 64, 64, 64}} {
		if w, h := fit(c[0], c[1], c[2]); w != c[3] || h != c[4] {
			t.Errorf("%d×%d within %d is %d×%d, want %d×%d", c[0], c[1], c[2], w, h, c[3], c[4])
		}
	}
}

// TestBudgetTakesASmallerEdge: the bytes decide the edge.
func TestBudgetTakesASmallerEdge(t *testing.T) {
	request := testRequest(formatPNG)
	request.Edge = 128
	body := encoded(t, formatPNG, noise(128, 128))
	last := 129
	for _, most := range []uint32{70_000, 20_000, 10_000, 5_000, 1_500} {
		request.MaxPNG = most
		m, out, err := convert(request, body)
		wantReason(t, err, "")
		if w := m.Bounds().Dx(); w >= last || len(out) > int(most) {
			t.Errorf("within %d bytes: edge %d after %d, %d bytes", most, w, last, len(out))
		} else {
			last = w
		}
	}
	request.MaxPNG = 60
	_, _, err := convert(request, body)
	wantReason(t, err, ReasonBudget)
}

// FuzzConvert: no bytes make a decoder panic, or anything but a PNG in bounds.
func FuzzConvert(f *testing.F) {
	f.Add(uint8(formatPNG), testPNG(f, 8, 8))
	f.Add(uint8(formatJPEG), encoded(f, formatJPEG, noise(8, 8)))
	f.Add(uint8(formatGIF), encoded(f, formatGIF, noise(8, 8)))
	f.Add(uint8(formatWebP), readTestdata(f, "lossless.webp"))
	f.Add(uint8(formatSVG), []byte(testSVG))
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		request := testRequest(format(kind))
		request.MaxPixels = 1 << 16
		m, out, err := convert(request, body)
		if err != nil {
			if ReasonOf(err) == "" {
				t.Fatalf("no reason: %v", err)
			}
			return
		}
		size := m.Bounds().Size()
		config, err := png.DecodeConfig(bytes.NewReader(out))
		if err != nil || image.Pt(config.Width, config.Height) != size || max(size.X, size.Y) > defaultEdge {
			t.Fatalf("%v: %v", size, err)
		}
		if strings.Contains(string(out), "<script") {
			t.Fatal("markup in the output")
		}
	})
}
