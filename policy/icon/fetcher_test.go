package icon

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestFetch(t *testing.T) {
	s := newSite(t, serveBytes("image/png", testPNG(t, 200, 100)))
	var fetches []FetchInfo
	var decodings []DecodeInfo
	f := s.fetcher(t, func(f *Fetcher) {
		f.OnFetch = func(i FetchInfo) { fetches = append(fetches, i) }
		f.OnDecode = func(i DecodeInfo) { decodings = append(decodings, i) }
	})
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
	if len(fetches) != 1 || fetches[0].Host != "cdn.example.com:"+s.port || fetches[0].Bytes == 0 || fetches[0].Reason != "" {
		t.Errorf("told of fetches %+v", fetches)
	}
	if len(decodings) != 1 || decodings[0].Format != "png" || decodings[0].Bytes != len(m.URI) || decodings[0].Reason != "" {
		t.Errorf("told of decodings %+v, want one of %d bytes", decodings, len(m.URI))
	}
}

func TestFetchSVG(t *testing.T) {
	s := newSite(t, serveBytes("image/svg+xml", []byte(testSVG)))
	f := s.fetcher(t, func(f *Fetcher) { f.Edge = 500 })
	m, err := f.Fetch(t.Context(), s.url("/a.svg"), "image/svg+xml")
	wantReason(t, err, "")
	readImage(t, m)
	if m.Width != maxEdge || m.Height != maxEdge {
		t.Errorf("%d×%d, want the largest edge there is", m.Width, m.Height)
	}
}

func TestFetchPlainHTTP(t *testing.T) {
	s := newSite(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Server{Handler: serveBytes("image/png", testPNG(t, 8, 8))}
	var running sync.WaitGroup
	running.Go(func() { _ = plain.Serve(l) })
	t.Cleanup(func() { plain.Close(); running.Wait() })
	url := "http://cdn.example.com:" + strings.TrimPrefix(l.Addr().String(), "127.0.0.1:") + "/"
	_, err = s.fetcher(t, nil).Fetch(t.Context(), url, "")
	wantReason(t, err, ReasonURL)
	_, err = s.fetcher(t, func(f *Fetcher) { f.AllowHTTP = true }).Fetch(t.Context(), url, "")
	wantReason(t, err, "")
	_, err = s.fetcher(t, func(f *Fetcher) { f.AllowHTTP, f.AllowPrivate = true, false }).Fetch(t.Context(), url, "")
	wantReason(t, err, ReasonAddress)
}

// TestDeadHost: thirty icons of a host that never answers cost a message its
// deadline once.
func TestDeadHost(t *testing.T) {
	s := newSite(t, nil)
	s.names.handle(func(dns.ResponseWriter, *dns.Msg) bool { return true })
	f := s.fetcher(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var all []*Pending
	for i := range 30 {
		all = append(all, f.Begin(s.url(fmt.Sprintf("/%d.png", i)), ""))
	}
	for _, p := range all {
		if _, err := p.Wait(ctx); !errors.Is(err, ErrPending) {
			t.Fatal(err)
		}
	}
}

func TestShrink(t *testing.T) {
	f := &Fetcher{Worker: testWorker(t)}
	t.Cleanup(func() { f.Close() })
	m, err := f.Decode(t.Context(), dataURI("image/png", encoded(t, formatPNG, noise(64, 64))), "")
	wantReason(t, err, "")
	if len(m.URI) > defaultMaxIcon {
		t.Errorf("%d bytes", len(m.URI))
	}
	same, err := f.Shrink(t.Context(), m, len(m.URI))
	wantReason(t, err, "")
	if same != m {
		t.Error("what fits was changed")
	}
	for _, most := range []int{len(m.URI) - 1, 8000, 2000} {
		small, err := f.Shrink(t.Context(), m, most)
		wantReason(t, err, "")
		readImage(t, small)
		if len(small.URI) > most || small.Width >= m.Width {
			t.Errorf("%d bytes and edge %d, within %d", len(small.URI), small.Width, most)
		}
	}
	for _, most := range []int{100, 0, -1} {
		_, err = f.Shrink(t.Context(), m, most)
		wantReason(t, err, ReasonBudget)
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

func BenchmarkCacheHit(b *testing.B) {
	f := &Fetcher{Worker: testWorker(b)}
	b.Cleanup(func() { f.Close() })
	for name, url := range map[string]string{"https": "https://cdn.example.com/logo.png", "data": dataURI("image/png", testPNG(b, 8, 8))} {
		b.Run(name, func(b *testing.B) {
			if name == "https" {
				f.once.Do(f.init)
				f.cache.put(&entry{key: key{formatPNG, url}, outcome: ended(Image{URI: pngPrefix}, nil), expires: time.Now().Add(time.Hour)})
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Fetch(b.Context(), url, "image/png"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, uri := range map[string]string{
		"png/1024": dataURI("image/png", testPNG(b, 1024, 1024)),
		"png/512":  dataURI("image/png", testPNG(b, 512, 512)),
		"png/64":   dataURI("image/png", testPNG(b, 64, 64)),
		"svg":      dataURI("image/svg+xml", []byte(testSVG)),
	} {
		b.Run(name, func(b *testing.B) {
			f := &Fetcher{Worker: testWorker(b), CacheSize: -1}
			b.Cleanup(func() { f.Close() })
			for b.Loop() {
				if _, err := f.Decode(b.Context(), uri, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCold starts a worker for each icon.
func BenchmarkCold(b *testing.B) {
	for name, uri := range map[string]string{
		"png/512": dataURI("image/png", testPNG(b, 512, 512)),
		"svg":     dataURI("image/svg+xml", []byte(testSVG)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f := &Fetcher{Worker: testWorker(b)}
				if _, err := f.Decode(b.Context(), uri, ""); err != nil {
					b.Fatal(err)
				}
				f.Close()
			}
		})
	}
}
