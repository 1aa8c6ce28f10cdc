package icon

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"strings"
	"testing"
)

func TestFetch(t *testing.T) {
	s := newSite(t, serveBytes("image/png", testPNG(t, 200, 100)))
	f := s.fetcher(t, nil)
	m, err := f.Fetch(t.Context(), s.url("/a.png"), "image/png")
	wantReason(t, err, "")
	if m.Width != 64 || m.Height != 32 {
		t.Errorf("size %d×%d, want 64×32", m.Width, m.Height)
	}
	readImage(t, m)
	again, err := f.Fetch(t.Context(), s.url("/a.png"), "image/png")
	wantReason(t, err, "")
	if again != m {
		t.Error("second fetch differs")
	}
	if n := s.listener.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// readImage reads an Image back and checks that it is what it says.
func readImage(t testing.TB, m Image) []byte {
	t.Helper()
	encoded, ok := strings.CutPrefix(m.URI, "data:image/png;base64,")
	if !ok {
		t.Fatalf("URI %.40q", m.URI)
	}
	body, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != m.Width || size.Y != m.Height {
		t.Fatalf("picture is %v, Image says %d×%d", size, m.Width, m.Height)
	}
	return body
}
