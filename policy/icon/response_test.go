package icon

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRedirect(t *testing.T) {
	picture := testPNG(t, 8, 8)
	elsewhere := newSite(t, serveBytes("image/png", picture))
	var s *site
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if referer := r.Header.Get("Referer"); referer != "" {
			t.Errorf("Referer %q", referer)
		}
		to := map[string]string{
			"/relative": "/a.png", "/absolute": s.url("/a.png"), "/upper": "https://CDN.EXAMPLE.COM:" + s.port + "/a.png", "/loop": "/loop", "/none": "",
			"/http": "http://cdn.example.com/a.png", "/file": "file:///etc/passwd", "/gopher": "gopher://cdn.example.com/",
			"/port": elsewhere.url("/a.png"), "/host": "https://other.example.org:" + s.port + "/a.png",
			"/metadata": "http://169.254.169.254/latest/meta-data/", "/user": "https://u:p@cdn.example.com:" + s.port + "/a.png",
			"/long": "/" + strings.Repeat("x", maxURL), "/bad": "https://[::1", "/data": "data:image/png;base64,AAAA", "/network": "//other.example.org:" + s.port + "/",
		}
		if location, ok := to[r.URL.Path]; ok {
			if location != "" {
				w.Header().Set("Location", location)
			}
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(picture)
	})
	f := s.fetcher(t, nil)
	for path, want := range map[string]Reason{
		"/relative": "", "/absolute": "", "/upper": "", "/loop": ReasonRedirect, "/none": ReasonRedirect,
		"/http": ReasonRedirect, "/file": ReasonRedirect, "/gopher": ReasonRedirect, "/port": ReasonRedirect, "/host": ReasonRedirect,
		"/metadata": ReasonRedirect, "/user": ReasonRedirect, "/long": ReasonRedirect, "/bad": ReasonRedirect, "/data": ReasonRedirect, "/network": ReasonRedirect,
	} {
		t.Run(path, func(t *testing.T) {
			_, err := f.Fetch(t.Context(), s.url(path), "")
			wantReason(t, err, want)
		})
	}
	if n := elsewhere.listener.accepted.Load(); n != 0 {
		t.Errorf("%d connections to another origin", n)
	}
	// Where plain http is allowed, it is another origin all the same.
	down := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+"/a.png")
		w.WriteHeader(http.StatusFound)
	})
	_, err := down.fetcher(t, func(f *Fetcher) { f.AllowHTTP = true }).Fetch(t.Context(), down.url("/"), "")
	wantReason(t, err, ReasonRedirect)
	if n := down.listener.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want that of the first request", n)
	}
	one := s.fetcher(t, func(f *Fetcher) { f.MaxRedirects = -1 })
	_, err = one.Fetch(t.Context(), s.url("/relative"), "")
	wantReason(t, err, ReasonRedirect)
}

func TestStatus(t *testing.T) {
	for _, status := range []int{201, 204, 206, 300, 304, 305, 401, 403, 404, 407, 429, 500, 503} {
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(status)
		})
		_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
		if ReasonOf(err) != ReasonStatus {
			t.Errorf("%d: %v", status, err)
		}
		if n := s.listener.accepted.Load(); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

func TestContentType(t *testing.T) {
	picture := testPNG(t, 8, 8)
	for _, c := range []struct {
		types []string // of the response
		label string   // the icon's mimeType
		body  []byte
		want  Reason
	}{
		{nil, "", picture, ""},
		{[]string{"image/png"}, "", picture, ""},
		{[]string{"IMAGE/PNG; charset=binary"}, "", picture, ""},
		{[]string{"application/octet-stream"}, "", picture, ""},
		{[]string{"binary/octet-stream"}, "image/png", picture, ""},
		{[]string{"image/png"}, "image/jpeg", picture, ""}, // uploads labelled by rote: the bytes decide
		{[]string{"text/html"}, "", picture, ReasonType},
		{[]string{"text/plain"}, "", picture, ReasonType},
		{[]string{"image/png, text/html"}, "", picture, ReasonType},
		{[]string{"image/png", "text/html"}, "", picture, ReasonType},
		{[]string{"image/png", "image/png"}, "", picture, ReasonType},
		{[]string{"image"}, "", picture, ReasonType},
		{[]string{"image/png;;"}, "", picture, ReasonType},
		{[]string{""}, "", picture, ReasonType},
		{[]string{"image/x-icon"}, "", picture, ReasonType},
		{[]string{"image/jpeg"}, "", picture, ReasonMismatch},
		{[]string{"image/svg+xml"}, "", picture, ReasonMismatch},
		{[]string{"image/png"}, "image/svg+xml", picture, ReasonMismatch},
		{[]string{"image/png"}, "text/html", picture, ReasonMismatch},
		{[]string{"image/png"}, "nonsense", picture, ReasonMismatch},
		{[]string{"image/png"}, "", []byte("<html><script>1</script></html>"), ReasonMismatch},
		{nil, "", []byte("<html><script>1</script></html>"), ReasonSVG},
		{nil, "", []byte(`{"AccessKeyId":"AKIA","SecretAccessKey":"s"}`), ReasonFormat},
		{[]string{"image/svg+xml"}, "image/png", []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>`), ReasonMismatch},
		{nil, "", nil, ReasonFormat},
	} {
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = c.types
			_, _ = w.Write(c.body)
		})
		_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), c.label)
		if ReasonOf(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%q labelled %q, body %.10q: %v, want %q", c.types, c.label, c.body, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "AKIA") {
			t.Errorf("the error quotes the body: %v", err)
		}
	}
}

func TestCompressedBodyIsLeftUnread(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(testPNG(t, 8, 8))
	_ = z.Close()
	for _, coding := range []string{"gzip", "br", "deflate", "zstd", "identity, gzip", "x"} {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("Accept-Encoding %q", got)
			}
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(packed.Bytes())
		})
		_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
		if ReasonOf(err) != ReasonEncoding {
			t.Errorf("%s: %v", coding, err)
		}
	}
	// An .svgz without the header is no image that we know.
	s := newSite(t, serveBytes("image/svg+xml", packed.Bytes()))
	_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/a.svgz"), "")
	wantReason(t, err, ReasonMismatch)
}

func TestBodySize(t *testing.T) {
	picture := testPNG(t, 8, 8)
	for name, c := range map[string]struct {
		size     int
		announce bool
		want     Reason
	}{
		"at the limit": {256 << 10, false, ""},
		"over it":      {256<<10 + 1, false, ReasonTooLarge},
		"announced":    {256<<10 + 1, true, ReasonTooLarge},
		"endless":      {1 << 30, false, ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "image/png")
				if c.announce {
					w.Header().Set("Content-Length", fmt.Sprint(c.size))
				}
				n, _ := w.Write(picture)
				block := make([]byte, 4096)
				for n < c.size {
					m, err := w.Write(block[:min(len(block), c.size-n)])
					if err != nil {
						return
					}
					n += m
				}
			})
			_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
			wantReason(t, err, c.want)
		})
	}
	t.Run("cut short", func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("Content-Length", fmt.Sprint(2*len(picture)))
			_, _ = w.Write(picture)
		})
		_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
		wantReason(t, err, ReasonBody)
	})
}

// rawSite is a site that answers with what talk writes, once the request's
// header has come.
func rawSite(t *testing.T, talk func(w io.Writer)) *site {
	t.Helper()
	s := newSite(t, nil)
	l, err := tls.Listen("tcp", "127.0.0.1:0", s.TLS)
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					talk(c)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return s
}

func TestBrokenHTTP(t *testing.T) {
	body := string(testPNG(t, 8, 8))
	ok := "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
	for name, c := range map[string]struct {
		answer string
		want   Reason
	}{
		"HTTP/0.9":          {body, ReasonHTTP},
		"SSH banner":        {"SSH-2.0-OpenSSH_9.6 secret-host\r\n", ReasonHTTP},
		"silence":           {"", ReasonHTTP},
		"header flood":      {ok + strings.Repeat("X-Filler: "+strings.Repeat("y", 500)+"\r\n", 100) + "\r\n" + body, ReasonHTTP},
		"1xx flood":         {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n", 5000) + ok + "\r\n" + body, ReasonHTTP},
		"one 103":           {"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" + ok + "Refresh: 0; url=/x\r\nAlt-Svc: h3=\":443\"\r\nConnection: close\r\n\r\n" + body, ""},
		"chunk extensions":  {ok + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 2000)+"\r\na\r\n", 200) + "0\r\n\r\n", ReasonBody},
		"two lengths":       {ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + body, ReasonHTTP},
		"length and chunks": {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ReasonHTTP},
		"upgrade":           {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", ReasonStatus},
	} {
		t.Run(name, func(t *testing.T) {
			s := rawSite(t, func(w io.Writer) { _, _ = io.WriteString(w, c.answer) })
			_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
			wantReason(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the host: %v", err)
			}
		})
	}
}

// TestSlowHeader: a header that comes a byte at a time has its time all the
// same.
func TestSlowHeader(t *testing.T) {
	s := rawSite(t, func(w io.Writer) {
		if _, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n"); err != nil {
			return
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := io.WriteString(w, "X: y\r\n"); err != nil {
				return
			}
		}
	})
	f := s.fetcher(t, func(f *Fetcher) { f.HeaderTimeout, f.TotalTimeout = 30*time.Millisecond, -1 })
	_, err := f.Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, ReasonHTTP)
}

// TestNothingIdentifies: no request holds anything of an answer before it, or
// of who asks.
func TestNothingIdentifies(t *testing.T) {
	var seen []http.Header
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		w.Header().Set("Set-Cookie", "id=1")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(testPNG(t, 8, 8))
	})
	f := s.fetcher(t, nil)
	for range 2 {
		_, err := f.Fetch(t.Context(), s.url("/a.png?uid=u-123"), "")
		wantReason(t, err, "")
		f.Purge()
	}
	if len(seen) != 2 {
		t.Fatalf("%d requests", len(seen))
	}
	for _, header := range seen {
		for name := range header {
			switch name {
			case "User-Agent", "Accept", "Accept-Encoding", "Connection":
			default:
				t.Errorf("%s: %q", name, header[name])
			}
		}
	}
}

func TestURLs(t *testing.T) {
	f := &Fetcher{Worker: testWorker(t)}
	t.Cleanup(func() { f.Close() })
	for _, raw := range []string{
		"", "x.png", "/x", "//cdn.example.com/x", "http://cdn.example.com/a.png", "ftp://cdn.example.com/", "file:///etc/hostname",
		"https:cdn.example.com", "https:///a", "https://", "https://u:p@cdn.example.com/", "https://u@cdn.example.com/", "https://cdn.example.com:/",
		"https://[fe80::1%25lo]/", "https://cdn.example.com:https/", "https://%00/", "https://a b/", "javascript:alert(1)",
		"https://cdn.example.com/" + strings.Repeat("x", maxURL),
	} {
		if _, err := f.Fetch(t.Context(), raw, ""); ReasonOf(err) != ReasonURL {
			t.Errorf("%.60q: %v", raw, err)
		}
	}
	for _, raw := range []string{"https://cdn.example.com/a.png#x", "https://cdn.example.com", "https://[2606:4700::1]:8443/"} {
		if u, err := f.parseURL(raw); err != nil || strings.Contains(u.String(), "#") {
			t.Errorf("%q: %v, %v", raw, u, err)
		}
	}
}
