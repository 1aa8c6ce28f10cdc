package icon

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestDecodeDataURI(t *testing.T) {
	f := &Fetcher{Worker: testWorker(t)}
	t.Cleanup(func() { f.Close() })
	picture := base64.StdEncoding.EncodeToString(testPNG(t, 8, 8))
	drawing := base64.StdEncoding.EncodeToString([]byte(testSVG))
	for _, c := range []struct {
		name, uri, label string
		want             Reason
	}{
		{"png", "data:image/png;base64," + picture, "image/png", ""},
		{"no label", "data:image/png;base64," + picture, "", ""},
		{"upper case", "DATA:IMAGE/PNG;BASE64," + picture, "", ""},
		{"svg", "data:image/svg+xml;base64," + drawing, "image/svg+xml", ""},
		{"svg with charset", "data:image/svg+xml;charset=UTF-8;base64," + drawing, "", ""},
		{"html", "data:text/html,<script>alert(1)</script>", "", ReasonDataURI},
		{"html in base64", "data:text/html;base64,PHNjcmlwdD4=", "", ReasonDataURI},
		{"svg not in base64", "data:image/svg+xml,<svg onload=alert(1)>", "", ReasonDataURI},
		{"svg in percent", "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'%3E%3C/svg%3E", "", ReasonDataURI},
		{"png not in base64", "data:image/png,rawbytes", "", ReasonDataURI},
		{"no type", "data:;base64," + picture, "", ReasonDataURI},
		{"nothing", "data:,x", "", ReasonDataURI},
		{"no comma", "data:image/png;base64", "", ReasonDataURI},
		{"empty", "data:image/png;base64,", "", ReasonDataURI},
		{"other parameter", "data:image/png;name=x;base64," + picture, "", ReasonDataURI},
		{"other charset", "data:image/svg+xml;charset=utf-7;base64," + drawing, "", ReasonDataURI},
		{"base64 twice", "data:image/png;base64;base64," + picture, "", ReasonDataURI},
		{"space", "data:image/png;base64, " + picture, "", ReasonDataURI},
		{"line break", "data:image/png;base64," + picture[:40] + "\n" + picture[40:], "", ReasonDataURI},
		{"carriage return", "data:image/png;base64," + picture + "\r", "", ReasonDataURI},
		{"percent", "data:image/png;base64," + strings.ReplaceAll(picture, "+", "%2B") + "%3D", "", ReasonDataURI},
		{"URL alphabet", "data:image/png;base64,_-" + picture[2:], "", ReasonDataURI},
		{"no padding", "data:image/png;base64,iVBORw0KGg", "", ReasonDataURI},
		{"padding within", "data:image/png;base64,iVBO==Rw" + picture[8:], "", ReasonDataURI},
		{"stray bits", "data:image/png;base64,iVBORx==", "", ReasonDataURI},
		{"fragment", "data:image/png;base64," + picture + "#x", "", ReasonDataURI},
		{"20 MB", "data:image/png;base64," + strings.Repeat("A", 20<<20), "", ReasonDataURI},
		{"label says png", "data:image/svg+xml;base64," + drawing, "image/png", ReasonMismatch},
		{"label says jpeg", "data:image/png;base64," + picture, "image/jpeg", ReasonMismatch},
		{"type says jpeg", "data:image/jpeg;base64," + picture, "", ReasonMismatch},
		{"type says png", "data:image/png;base64," + drawing, "", ReasonMismatch},
		{"no image", "data:image/png;base64,AAAA", "", ReasonFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := f.Decode(t.Context(), c.uri, c.label)
			wantReason(t, err, c.want)
			if err == nil {
				readImage(t, m)
			}
		})
	}
}

// TestDataURILengthComesFirst: what is too long is not decoded, whatever it is.
func TestDataURILengthComesFirst(t *testing.T) {
	uri := "data:image/png;base64," + strings.Repeat("A", 1<<20)
	if n := testing.AllocsPerRun(10, func() { _, _, _ = parseDataURI(uri, 1024) }); n > 8 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseDataURI(f *testing.F) {
	f.Add("data:image/png;base64,AAAA")
	f.Add("DATA:image/svg+xml;charset=utf-8;base64,PHN2Zy8+")
	f.Add("data:image/png,x")
	f.Fuzz(func(t *testing.T, uri string) {
		body, declared, err := parseDataURI(uri, 1024)
		if err != nil {
			if ReasonOf(err) != ReasonDataURI {
				t.Fatalf("%q: %v", uri, err)
			}
			return
		}
		_, encoded, _ := strings.Cut(uri, ",")
		if declared == formatNone || base64.StdEncoding.EncodeToString(body) != encoded {
			t.Fatalf("%q is read as %q of %v", uri, body, declared)
		}
	})
}
