package icon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestNoConnection resolves a name to addresses that lead to a listener here
// and are not allowed: the listener must see nothing.
func TestNoConnection(t *testing.T) {
	for _, addresses := range [][]string{
		{"127.0.0.1"},
		{"127.0.0.2"},
		{"0.0.0.0"},
		{"::"},
		{"::1"},
		{"::ffff:127.0.0.1"},
		{"::127.0.0.1"},
		{"64:ff9b::127.0.0.1"},
		{"127.0.0.1", "10.0.0.1", "169.254.169.254"},
	} {
		t.Run(strings.Join(addresses, ","), func(t *testing.T) {
			s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
			both, err := net.Listen("tcp6", "[::]:"+s.port) // the same port on every IPv6 address
			if err == nil {
				defer both.Close()
			}
			s.names.set("cdn.example.com", addresses...)
			f := s.fetcher(t, func(f *Fetcher) { f.AllowPrivate = false })
			_, err = f.Fetch(t.Context(), s.url("/a.png"), "")
			wantReason(t, err, ReasonAddress)
			if n := s.listener.accepted.Load(); n != 0 {
				t.Errorf("%d connections", n)
			}
			if both != nil {
				if err := both.(*net.TCPListener).SetDeadline(time.Now()); err != nil {
					t.Fatal(err)
				}
				if c, err := both.Accept(); err == nil {
					c.Close()
					t.Error("a connection")
				}
			}
		})
	}
}

// TestControl judges the address that is dialled, whatever led to it.
func TestControl(t *testing.T) {
	var f Fetcher
	for address, want := range map[string]Reason{
		"8.8.8.8:443": "", "[2606:4700::1]:443": "",
		"10.0.0.1:443": ReasonAddress, "[::ffff:10.0.0.1]:443": ReasonAddress, "[fe80::1%lo]:443": ReasonAddress,
		"cdn.example.com:443": ReasonAddress, "": ReasonAddress,
	} {
		if err := f.control(t.Context(), "tcp", address, nil); ReasonOf(err) != want {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}

// TestManyPrivateAddresses: thirty addresses are refused as one.
func TestManyPrivateAddresses(t *testing.T) {
	s := newSite(t, nil)
	var private []string
	for i := range 30 {
		private = append(private, fmt.Sprintf("10.0.0.%d", i+1))
	}
	s.names.set("cdn.example.com", private...)
	told := 0
	f := s.fetcher(t, func(f *Fetcher) {
		f.AllowPrivate = false
		f.OnFetch = func(i FetchInfo) {
			told++
			if i.Reason != ReasonAddress {
				t.Errorf("told %q", i.Reason)
			}
		}
	})
	_, err := f.Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, ReasonAddress)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestMixedAddresses: of a mixed answer, only what is allowed is dialled.
func TestMixedAddresses(t *testing.T) {
	s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
	s.names.set("cdn.example.com", "169.254.169.254", "127.0.0.1") // the second is allowed here
	_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, "")
}

// TestRebinding: each look-up is judged anew, and a fetch makes one.
func TestRebinding(t *testing.T) {
	s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
	var asked atomic.Int64
	s.names.handle(func(w dns.ResponseWriter, q *dns.Msg) bool {
		if q.Question[0].Qtype != dns.TypeA {
			return false
		}
		address := "8.8.8.8"
		if asked.Add(1) > 1 {
			address = "169.254.169.254"
		}
		return w.WriteMsg(reply(q, netip.MustParseAddr(address))) == nil
	})
	f := s.fetcher(t, func(f *Fetcher) { f.ConnectTimeout = 10 * time.Millisecond })
	f.once.Do(f.init)
	if addresses, err := f.resolve(t.Context(), "cdn.example.com"); err != nil || judgeAddress(addresses[0], false) != nil {
		t.Fatal(addresses, err)
	}
	_, err := f.Fetch(t.Context(), s.url("/"), "") // the second answer
	wantReason(t, err, ReasonAddress)
	if asked.Load() != 2 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestAliasChain: a name that is an alias of another is judged by the end.
func TestAliasChain(t *testing.T) {
	s := newSite(t, nil)
	s.names.handle(func(w dns.ResponseWriter, q *dns.Msg) bool {
		m := reply(q, netip.MustParseAddr("169.254.169.254"))
		for _, rr := range m.Answer {
			rr.Header().Name = "metadata.google.internal."
		}
		m.Answer = append([]dns.RR{&dns.CNAME{
			Hdr:    dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeCNAME, Class: dns.ClassINET},
			Target: "metadata.google.internal.",
		}}, m.Answer...)
		return w.WriteMsg(m) == nil
	})
	_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, ReasonAddress)
}

// TestRootDot: only the name itself is asked for, never one below a search
// domain.
func TestRootDot(t *testing.T) {
	s := newSite(t, nil)
	s.names.set("cdn.example.com")
	_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, ReasonResolve)
	for _, name := range s.names.questions() {
		if name != "cdn.example.com." {
			t.Errorf("asked for %s", name)
		}
	}
}

func TestSilentNameServer(t *testing.T) {
	s := newSite(t, nil)
	s.names.handle(func(dns.ResponseWriter, *dns.Msg) bool { return true })
	f := s.fetcher(t, func(f *Fetcher) { f.ResolveTimeout, f.TotalTimeout = 20*time.Millisecond, -1 })
	_, err := f.Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, ReasonResolve)
}

// TestProxyFromEnvironment: a proxy would hide the address from the dialer.
func TestProxyFromEnvironment(t *testing.T) {
	proxy := newSite(t, nil)
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
	f := s.fetcher(t, nil)
	_, err := f.Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, "")
	if f.transport().Proxy != nil || proxy.listener.accepted.Load() != 0 {
		t.Error("a proxy is asked")
	}
}

func TestCertificates(t *testing.T) {
	other := newAuthority(t)
	for name, certificate := range map[string]func(s *site) tls.Certificate{
		"expired": func(s *site) tls.Certificate {
			return s.authority.issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "cdn.example.com")
		},
		"unknown authority": func(*site) tls.Certificate { return other.issue(t, nil, "cdn.example.com") },
		"wrong name":        func(s *site) tls.Certificate { return s.authority.issue(t, nil, "www.example.com") },
		"address for name": func(s *site) tls.Certificate {
			return s.authority.issue(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
			s.TLS.Certificates = []tls.Certificate{certificate(s)}
			_, err := s.fetcher(t, nil).Fetch(t.Context(), s.url("/"), "")
			wantReason(t, err, ReasonTLS)
		})
	}
}

// TestStalls: each phase has a bound of its own, which alone ends it here.
func TestStalls(t *testing.T) {
	const short = 30 * time.Millisecond
	silent := func(t *testing.T) (port string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		_, port, _ = net.SplitHostPort(l.Addr().String())
		return port
	}
	t.Run("handshake", func(t *testing.T) {
		s := newSite(t, nil)
		s.port = silent(t)
		_, err := s.fetcher(t, func(f *Fetcher) { f.TLSTimeout, f.TotalTimeout = short, -1 }).Fetch(t.Context(), s.url("/"), "")
		wantReason(t, err, ReasonTLS)
	})
	t.Run("header", func(t *testing.T) {
		s := newSite(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		_, err := s.fetcher(t, func(f *Fetcher) { f.HeaderTimeout, f.TotalTimeout = short, -1 }).Fetch(t.Context(), s.url("/"), "")
		wantReason(t, err, ReasonHTTP)
	})
	t.Run("body", func(t *testing.T) {
		s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		_, err := s.fetcher(t, func(f *Fetcher) { f.BodyTimeout, f.TotalTimeout = short, -1 }).Fetch(t.Context(), s.url("/"), "")
		wantReason(t, err, ReasonBody)
	})
	t.Run("total", func(t *testing.T) {
		s := newSite(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		f := s.fetcher(t, func(f *Fetcher) { f.TotalTimeout, f.HeaderTimeout = short, -1 })
		_, err := f.Fetch(t.Context(), s.url("/"), "")
		wantReason(t, err, ReasonHTTP)
	})
}

// TestFallback: an address that is silent does not cost the next one its turn.
func TestFallback(t *testing.T) {
	s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
	f := s.fetcher(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, refusing, _ := net.SplitHostPort(l.Addr().String())
	l.Close() // nobody listens there any more
	if _, err := f.race(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.1")}, refusing); ReasonOf(err) != ReasonConnect {
		t.Errorf("refusing: %v", err)
	}
	conn, err := f.race(t.Context(), []netip.Addr{netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("127.0.0.1")}, s.port)
	wantReason(t, err, "")
	conn.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.race(ended, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, s.port); ReasonOf(err) != ReasonConnect {
		t.Errorf("ended: %v", err)
	}
}

// TestIPLiteral: an address in the URL is judged like one from a look-up.
func TestIPLiteral(t *testing.T) {
	s := newSite(t, serveBytes("image/png", testPNG(t, 8, 8)))
	f := s.fetcher(t, func(f *Fetcher) { f.AllowPrivate = false })
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		_, err := f.Fetch(t.Context(), "https://"+host+":"+s.port+"/", "")
		wantReason(t, err, ReasonAddress)
	}
	if n := s.listener.accepted.Load(); n != 0 || slices.Contains(s.names.questions(), "127.0.0.1.") {
		t.Errorf("%d connections, asked %v", n, s.names.questions())
	}
}
