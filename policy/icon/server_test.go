package icon

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// An authority signs the certificates of a test's servers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key, pool}
}

// issue returns a certificate; change may spoil it before it is signed.
func (a *authority) issue(t testing.TB, change func(*x509.Certificate), names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A countingListener counts the connections that reach it.
type countingListener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// A site is an icon host: a TLS server on loopback for cdn.example.com, and
// the name server that names it.
type site struct {
	*httptest.Server
	authority *authority
	listener  *countingListener
	names     *nameServer
	port      string
}

func newSite(t testing.TB, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{authority: newAuthority(t), names: newNameServer(t)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener = &countingListener{Listener: l}
	s.Server = httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener.Close()
	s.Listener = s.listener
	s.TLS = &tls.Config{Certificates: []tls.Certificate{s.authority.issue(t, nil, "cdn.example.com", "other.example.org")}}
	s.StartTLS()
	t.Cleanup(s.Close)
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	s.names.set("cdn.example.com", "127.0.0.1")
	s.names.set("other.example.org", "127.0.0.1")
	return s
}

// url is the address of path on the site.
func (s *site) url(path string) string { return "https://cdn.example.com:" + s.port + path }

// fetcher returns a Fetcher that reaches the site; change may set more.
func (s *site) fetcher(t testing.TB, change func(*Fetcher)) *Fetcher {
	t.Helper()
	f := &Fetcher{Worker: testWorker(t), AllowPrivate: true, RootCAs: s.authority.pool, Resolver: s.names.resolver(t)}
	if change != nil {
		change(f)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A nameServer is a DNS server on loopback, over UDP and TCP.
type nameServer struct {
	address string
	mu      sync.Mutex
	answers map[string][]netip.Addr // by name without the root dot
	answer  func(w dns.ResponseWriter, q *dns.Msg) bool
	asked   []string
}

func newNameServer(t testing.TB) *nameServer {
	t.Helper()
	n := &nameServer{answers: make(map[string][]netip.Addr)}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.address = packets.LocalAddr().String()
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(n.serve)}
	ready := make(chan struct{})
	server.NotifyStartedFunc = func() { close(ready) }
	var running sync.WaitGroup
	running.Go(func() { _ = server.ActivateAndServe() })
	<-ready
	t.Cleanup(func() { _ = server.Shutdown(); running.Wait() })
	return n
}

func (n *nameServer) set(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name] = nil
	for _, a := range addresses {
		n.answers[name] = append(n.answers[name], netip.MustParseAddr(a))
	}
}

// handle sets what answers in place of the table; it returns false to leave a
// question to the table.
func (n *nameServer) handle(answer func(w dns.ResponseWriter, q *dns.Msg) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = answer
}

// questions returns the names asked for so far.
func (n *nameServer) questions() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.asked...)
}

func (n *nameServer) serve(w dns.ResponseWriter, q *dns.Msg) {
	n.mu.Lock()
	n.asked = append(n.asked, q.Question[0].Name)
	answer := n.answer
	addresses := n.answers[strings.TrimSuffix(strings.ToLower(q.Question[0].Name), ".")]
	n.mu.Unlock()
	if answer != nil && answer(w, q) {
		return
	}
	_ = w.WriteMsg(reply(q, addresses...))
}

// reply answers q with those of addresses that are of the type asked for.
func reply(q *dns.Msg, addresses ...netip.Addr) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	head := dns.RR_Header{Name: q.Question[0].Name, Rrtype: q.Question[0].Qtype, Class: dns.ClassINET}
	for _, a := range addresses {
		if q.Question[0].Qtype == dns.TypeA && a.Is4() {
			m.Answer = append(m.Answer, &dns.A{Hdr: head, A: a.AsSlice()})
		}
		if q.Question[0].Qtype == dns.TypeAAAA && a.Is6() {
			m.Answer = append(m.Answer, &dns.AAAA{Hdr: head, AAAA: a.AsSlice()})
		}
	}
	if len(addresses) == 0 {
		m.Rcode = dns.RcodeNameError
	}
	return m
}

// resolver returns a resolver that asks n. What a look-up leaves behind when
// its wait ends, which net's resolver does for seconds, ends with the test.
func (n *nameServer) resolver(t testing.TB) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if t.Context().Err() != nil {
			return nil, t.Context().Err()
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "udp", n.address)
		if err == nil {
			context.AfterFunc(t.Context(), func() { conn.Close() })
		}
		return conn, err
	}}
}

// testPNG is a PNG of one picture with a hole.
func testPNG(t testing.TB, w, h int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			if (x/8+y/8)%2 == 0 {
				m.SetNRGBA(x, y, color.NRGBA{uint8(x), uint8(y), 200, 255})
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// serveBytes answers with body under a media type.
func serveBytes(mediaType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(body)
	}
}

// wantReason fails the test unless err has the reason; "" wants success.
func wantReason(t testing.TB, err error, want Reason) {
	t.Helper()
	if want == "" && err != nil || ReasonOf(err) != want {
		t.Fatalf("error %v, want reason %q", err, want)
	}
}
