package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log"
	"math/big"
	randv2 "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// iconWorkerArg makes the test binary the process that decodes icons.
const iconWorkerArg = "icon-test-worker"

func init() {
	if len(os.Args) == 2 && os.Args[1] == iconWorkerArg {
		os.Exit(icon.RunWorker(os.Stdin, os.Stdout))
	}
}

// iconSite serves icons over TLS on loopback.
type iconSite struct {
	*httptest.Server
	host string
	cas  *x509.CertPool
}

func newIconSite(t testing.TB, handler http.HandlerFunc) *iconSite {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour), // a bubble's clock begins in 2000
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	s := &iconSite{Server: httptest.NewUnstartedServer(handler), cas: x509.NewCertPool()}
	s.cas.AddCert(cert)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // fetches are given up
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	s.host = "localhost:" + port
	return s
}

// iconSession is a stdio session of a 2025-11-25 client whose policy was
// changed by set, with the site's icons within reach.
func iconSession(t testing.TB, site *iconSite, set func(*policy.Config)) *session {
	t.Helper()
	f := &icon.Fetcher{Worker: []string{os.Args[0], iconWorkerArg}, AllowPrivate: true}
	c := policy.Default()
	if site != nil {
		f.RootCAs = site.cas
		c.Icons.Rules = []policy.IconRule{{Host: site.host, Action: policy.Inline}}
	}
	c.Icons.Deadline = policy.Duration(10 * time.Second) // of the test's, where it is not the matter
	if set != nil {
		set(c)
	}
	compiled, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &session{proxy: &Proxy{Policy: func() *policy.Policy { return compiled }, Icons: f}, known: true, revision: revisionTitled}
}

// resultOf passes a result of the server through the session, in answer to a
// request of that method, and returns what the client gets.
func resultOf(t testing.TB, s *session, method, result string) (string, outcome) {
	t.Helper()
	pass(t, s, ToServer, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`)
	return pass(t, s, ToClient, `{"jsonrpc":"2.0","id":1,"result":`+result+`}`)
}

func pass(t testing.TB, s *session, to Direction, raw string) (string, outcome) {
	t.Helper()
	out, err := s.handle(to, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if out.after != nil {
		out.after()
	}
	return string(out.forward), out
}

func pngOf(w, h int, noise bool) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	r := randv2.New(randv2.NewPCG(uint64(w), uint64(h)))
	for i := range m.Pix {
		m.Pix[i] = 0xff
		if noise && i%4 != 3 {
			m.Pix[i] = byte(r.Uint32())
		}
	}
	m.Set(0, 0, color.NRGBA{uint8(w), uint8(h), 7, 0xff}) // no two sizes are one picture
	var b bytes.Buffer
	_ = png.Encode(&b, m)
	return b.Bytes()
}

func servePNG(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "image/png")
	_, _ = w.Write(pngOf(16, 16, false))
}

// What becomes of icons by policy, era and direction.
func TestIconsByPolicy(t *testing.T) {
	data := `data:image/png;base64,` + base64.StdEncoding.EncodeToString(pngOf(16, 16, false))
	site := newIconSite(t, servePNG)
	tools := func(members string) string { return `{"tools":[{"name":"t"` + members + `}]}` }
	tests := []struct {
		name   string
		set    func(*policy.Config)
		client string // its revision, if not 2025-11-25
		in     string
		want   string // what is left behind the tool's name; "inlined" is a picture
	}{
		{"strip by default", nil, "", `,"icons":[{"src":"https://x.example.com/i"}]`, ``},
		{"inline by rule", nil, "", `,"icons":[{"src":"https://HOST/i","theme":"dark"}]`, "inlined"},
		{"data is decoded whatever the default", nil, "", `,"icons":[{"src":"` + data + `"}]`, "inlined"},
		{"data that is no picture", nil, "", `,"icons":[{"src":"data:image/png;base64,AAAA"}]`, ``},
		{"markup in data", nil, "", `,"icons":[{"src":"data:image/svg+xml,<svg onload=alert(1)>"}]`, ``},
		{"a client that knows no icons", nil, "2025-06-18", `,"icons":[{"src":"https://HOST/i"},{"src":"` + data + `"}]`, ``},
		{"kept", func(c *policy.Config) { c.Icons.Default = policy.Keep }, "", `,"icons":[{"src":"https://x.example.com/i","sizes":"48x48 96x96"}]`, `,"icons":[{"src":"https://x.example.com/i","sizes":["48x48","96x96"]}]`},
		{"observed", func(c *policy.Config) { c.Observe = true }, "", `,"icons":[{"src":"https://HOST/i"},0,null]`, `,"icons":[{"src":"https://HOST/i"},0,null]`},
		{"20 MB of data", nil, "", `,"icons":[{"src":"data:image/png;base64,` + strings.Repeat("A", 20<<20) + `"}]`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := iconSession(t, site, tt.set)
			if tt.client != "" {
				s.revision = tt.client
			}
			host := func(text string) string { return strings.ReplaceAll(text, "HOST", site.host) }
			got, _ := resultOf(t, s, "tools/list", host(tools(tt.in)))
			if tt.want == "inlined" {
				if !strings.Contains(got, `"src":"data:image/png;base64,iVBOR`) || !strings.Contains(got, `"mimeType":"image/png","sizes":["16x16"]`) || strings.Contains(got, "localhost") {
					t.Errorf("got %.300s", got)
				}
			} else if want := host(`{"jsonrpc":"2.0","id":1,"result":` + tools(tt.want) + `}`); got != want {
				t.Errorf("got %.300s\nwant %s", got, want)
			}
		})
	}
}

// The client's own icons are its own affair, unless the policy says otherwise;
// with observe they are so in any case.
func TestIconsOfTheClient(t *testing.T) {
	const raw = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","icons":[{"src":"https://x.example.com/i"}]}}}`
	s := iconSession(t, nil, nil)
	if got, _ := pass(t, s, ToServer, raw); got != raw {
		t.Errorf("changed to %s", got)
	}
	s = iconSession(t, nil, func(c *policy.Config) { c.Icons.Client = true })
	if got, _ := pass(t, s, ToServer, raw); strings.Contains(got, "x.example.com") {
		t.Errorf("got %s", got)
	}
	s = iconSession(t, nil, func(c *policy.Config) { c.Icons.Client, c.Observe = true, true })
	if got, _ := pass(t, s, ToServer, raw); got != raw {
		t.Errorf("observed, and changed to %s", got)
	}
}

// A message with too many icons is refused, to whoever waits for it.
// The fetcher of a message is that of the policy that judges it.
func TestIconsFor(t *testing.T) {
	site := newIconSite(t, servePNG)
	s := iconSession(t, site, nil)
	with := s.proxy.policy()
	without := testPolicy(t, func(c *policy.Config) { c.Icons.Rules = with.Config.Icons.Rules })()
	fetcher := s.proxy.Icons
	s.proxy.Icons, s.proxy.IconsFor = nil, func(p *policy.Policy) *icon.Fetcher {
		if p == with {
			return fetcher
		}
		return nil
	}
	list := `{"tools":[{"name":"t","icons":[{"src":"https://` + site.host + `/8.png"}]}]}`
	if got, _ := resultOf(t, s, "tools/list", list); !strings.Contains(got, `"src":"data:image/png;base64,`) {
		t.Errorf("with a fetcher: %s", got)
	}
	s.proxy.Policy = func() *policy.Policy { return without }
	if got, _ := resultOf(t, s, "tools/list", list); strings.Contains(got, "src") {
		t.Errorf("with none: %s", got)
	}
}

func TestIconsTooMany(t *testing.T) {
	list := `[` + strings.Repeat(`0,`, 1<<17) + `0]`
	s := iconSession(t, nil, nil)
	if got, _ := resultOf(t, s, "tools/list", `{"tools":[{"icons":`+list+`}]}`); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":`) {
		t.Errorf("got %.100s", got)
	}
	_, out := pass(t, s, ToClient, `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"tools":[{"icons":`+list+`}]}}`)
	if out.forward != nil || !strings.HasPrefix(string(out.reply), `{"jsonrpc":"2.0","id":7,"error":`) {
		t.Errorf("forward %.100s, reply %s", out.forward, out.reply)
	}
}

// The deadline is that of all icons of a message, and of all messages of a
// batch: there is one wait, before which what was handled before is flushed.
func TestIconsDeadline(t *testing.T) {
	s, site, _, _ := late(t)
	flushed := 0
	s.waiting = func(Direction) { flushed++ }
	result := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"icons":[{"src":"https://%s/a%d"},{"src":"https://%s/b%d"}]}]}}`, id, site.host, id, site.host, id)
	}
	got, _ := pass(t, s, ToClient, `[`+result(1)+`,`+result(2)+`,`+result(3)+`]`)
	if flushed != 1 || strings.Contains(got, "icons") {
		t.Errorf("%d waits: got %s", flushed, got)
	}
}

// The pictures of a message share its budget: the largest are scaled down, all
// to the same size, and those that can't be are stripped.
func TestIconsBudget(t *testing.T) {
	uri := func(edge int) string {
		return `data:image/png;base64,` + base64.StdEncoding.EncodeToString(pngOf(edge, edge, true))
	}
	entry := func(edge int) string { return `{"icons":[{"src":"` + uri(edge) + `"}]}` }
	const budget = 12 << 10
	s := iconSession(t, nil, func(c *policy.Config) { c.Icons.Budget = policy.IconBudget{PerIcon: budget, PerMessage: budget} })
	small, large := entry(8), entry(48)
	got, _ := resultOf(t, s, "tools/list", `{"tools":[`+strings.Join([]string{small, large, entry(50), large, small}, ",")+`]}`)
	if n := strings.Count(got, `"src":`); n != 5 || len(got) > budget+1024 {
		t.Errorf("%d icons in %d bytes", n, len(got))
	}
	if n := strings.Count(got, `"sizes":["8x8"]`); n != 2 {
		t.Errorf("of 2 small icons %d are as they were: %.200s", n, got)
	}
	many := strings.TrimSuffix(strings.Repeat(small+",", 100), ",")
	if got, _ = resultOf(t, s, "tools/list", `{"tools":[`+many+`]}`); len(got) > budget+100*80 {
		t.Errorf("%d bytes", len(got))
	}
	batch := `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + large + `,` + large + `]}}`
	if got, _ = pass(t, s, ToClient, `[`+batch+`,`+batch+`,`+batch+`]`); len(got) > budget+1024 {
		t.Errorf("a batch of %d bytes", len(got))
	}
}

// late is a session in which the site's icons come after the deadline, once
// the returned function is called.
func late(t *testing.T) (s *session, site *iconSite, told chan string, arrive func()) {
	gate := make(chan struct{})
	site = newIconSite(t, func(w http.ResponseWriter, r *http.Request) {
		<-gate
		servePNG(w, r)
	})
	s = iconSession(t, site, func(c *policy.Config) { c.Icons.Deadline = policy.Duration(time.Millisecond) })
	s.proxy.Icons.HeaderTimeout, s.proxy.Icons.TotalTimeout = -1, -1
	told = make(chan string, 8)
	s.send = func(_ Direction, raw []byte) bool { told <- string(raw); return true }
	open := func() { close(gate) }
	t.Cleanup(func() {
		select {
		case <-gate:
		default:
			open()
		}
	})
	return s, site, told, open
}

// An icon that comes too late is told of once, where the server has listChanged.
func TestIconsLate(t *testing.T) {
	s, site, told, arrive := late(t)
	resultOf(t, s, "initialize", `{"capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"s"}}`)
	list := `[{"icons":[{"src":"https://` + site.host + `/i"}]}]`
	for range 2 { // twice: told once all the same
		if got, _ := resultOf(t, s, "tools/list", `{"tools":`+list+`}`); strings.Contains(got, "icons") {
			t.Errorf("got %s", got)
		}
	}
	resultOf(t, s, "prompts/list", `{"prompts":`+list+`}`) // not declared
	arrive()
	if got := <-told; got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("told %s", got)
	}
	if got, _ := resultOf(t, s, "tools/list", `{"tools":`+list+`}`); !strings.Contains(got, "data:image/png;base64,") {
		t.Errorf("asked again, the client gets %s", got)
	}
	s.end()
	select {
	case got := <-told:
		t.Errorf("told %s too", got)
	default:
	}
}

const declaresModern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`

// In 2026-07-28 it is told on the streams that asked for it, were acknowledged
// and are still open; the list that went out without is not for sharing.
func TestIconsLateModern(t *testing.T) {
	s, site, told, arrive := late(t)
	listen := func(id, notifications string) {
		pass(t, s, ToServer, `{"jsonrpc":"2.0","id":`+id+`,"method":"subscriptions/listen","params":{`+declaresModern+`,"notifications":`+notifications+`}}`)
	}
	acknowledge := func(id, notifications string) {
		pass(t, s, ToClient, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`+id+`},"notifications":`+notifications+`}}`)
	}
	const tools = `{"toolsListChanged":true}`
	listen(`"told"`, tools)
	acknowledge(`"told"`, tools)
	acknowledge(`"told"`, tools) // again: told once all the same
	listen(`"prompts"`, `{"promptsListChanged":true}`)
	acknowledge(`"prompts"`, `{"promptsListChanged":true,"toolsListChanged":true}`) // more than asked for
	listen(`"silent"`, tools)                                                       // never acknowledged
	acknowledge(`"unasked"`, tools)
	listen(`"cancelled"`, tools)
	acknowledge(`"cancelled"`, tools)
	pass(t, s, ToServer, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"cancelled"}}`)
	acknowledge(`"cancelled"`, tools)
	listen(`"ended"`, tools)
	acknowledge(`"ended"`, tools)
	pass(t, s, ToClient, `{"jsonrpc":"2.0","id":"ended","result":{}}`)

	pass(t, s, ToServer, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+declaresModern+`}}`)
	got, _ := pass(t, s, ToClient, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"icons":[{"src":"https://`+site.host+`/i"}]}],"CacheScope":"public","cacheScope":"public","ttlMs":1,"ttlMs":3600000}}`)
	if want := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{}],"cacheScope":"private","ttlMs":1000}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	arrive()
	if got := <-told; got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"told"}}}` {
		t.Errorf("told %s", got)
	}
	s.proxy.subs.notify("notifications/prompts/list_changed", func(c listChanged) bool { return c.prompts })
	if got := <-told; !strings.Contains(got, `"prompts"`) { // and nobody else was told meanwhile
		t.Errorf("told %s", got)
	}
}

// All pages of a list that may be changed for one client are private, those
// without icons too. What can't be changed stays as it is.
func TestCacheability(t *testing.T) {
	tests := []struct{ name, method, result, inline, strip string }{
		{"a page without icons", "tools/list", `{"tools":[],"cacheScope":"public","ttlMs":5000}`, `{"tools":[],"cacheScope":"private","ttlMs":5000}`, ""},
		{"not said", "prompts/list", `{"prompts":[]}`, `{"cacheScope":"private","prompts":[]}`, ""},
		{"said by nobody who knows", "resources/list", `{"cacheScope":7}`, `{"cacheScope":"private"}`, ""},
		{"private", "resources/templates/list", `{"cacheScope":"private"}`, ``, ""},
		{"discover", "server/discover", `{"cacheScope":"public"}`, `{"cacheScope":"private"}`, ""},
		{"no list", "tools/call", `{"content":[],"cacheScope":"public"}`, ``, ""},
	}
	for _, tt := range tests {
		for _, verdict := range []policy.Verdict{policy.Strip, policy.Inline} {
			s := iconSession(t, nil, func(c *policy.Config) { c.Icons.Default = verdict })
			pass(t, s, ToServer, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{`+declaresModern+`}}`)
			got, _ := pass(t, s, ToClient, `{"jsonrpc":"2.0","id":1,"result":`+tt.result+`}`)
			want := tt.result
			if verdict == policy.Inline && tt.inline != "" {
				want = tt.inline
			}
			if want = `{"jsonrpc":"2.0","id":1,"result":` + want + `}`; got != want {
				t.Errorf("%s, %v: got %s\nwant %s", tt.name, verdict, got, want)
			}
		}
	}
}
