package policy

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostileURLs makes URLs out of parts that parsers have disagreed on, some of
// them with a byte changed.
func hostileURLs(rng *rand.Rand, n int) []string {
	schemes := []string{"https://", "HTTPS://", "https:", "https:/", "https:///", `https:\\`, "http://", "hTtPs://", " https://", "https:// "}
	users := []string{"", "", "", "", "", "u@", "u:p@", "@", "cdn.example.com@", "cdn.example.com:443@", "a%40b@", `x\@`, "&@"}
	hosts := []string{
		"cdn.example.com", "CDN.Example.COM", "a.b.example.org", "localhost", "metadata", "xn--bcher-kva.de", "xn--80ak6aa92e.com", "xn--example-.org",
		"xn--a.com", "xn--.com", "xn--zn7c.com", "xn--ls8h.la", "xn--1ug.com", "xn--fa-hia.de", "bücher.de", "ⓔⓧ.org", "faß.de", "ab--cd.com", "a_b.com", "-a.com", "a-.com",
		"1.2.3.4", "127.1", "0x7f.1", "a.1", "a.0x1", "a.0x", "1e1.com", "0x.com", "[::1]", "x[::1]", "example.com.", ".example.com", "a..b", "a%2eb.com", "a\u00adb.com", "a\u3002com", "",
		strings.Repeat("a", 63) + ".com", strings.Repeat("a", 64) + ".com",
	}
	ports := []string{"", "", "", "", ":443", ":80", ":0443", ":", ":+443", ":https", ":8443", ":65535", ":65536", ":443:443"}
	tails := []string{"", "/", "/a.png", "?q", "#f", "/@x", "?@evil.com/", "#@evil.com/", `\@evil.com`, "/%41", "/%", "/%zz", "/a b", "/\t", "//evil.com/", "/../x", "/a?b=c#d#e", ";x", "/é", `/"'<>`, "/[x]", "/{x}|^`"}
	alphabet := []rune("aZ0.-_:/?#@[]\\%\t\n \x00&+;,=é\u00ad\u200b\u3002．／＠：xn--")
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	urls := make([]string, n)
	for i := range urls {
		u := pick(schemes[:1+rng.IntN(len(schemes))]) + pick(users) + pick(hosts) + pick(ports) + pick(tails)
		if rng.IntN(2) == 0 {
			at := rng.IntN(len(u) + 1)
			u = u[:at] + string(alphabet[rng.IntN(len(alphabet))]) + u[min(len(u), at+rng.IntN(2)):]
		}
		if utf8.ValidString(u) { // others do not come out of JSON
			urls[i] = u
		}
	}
	return urls
}

// A URL that is kept or fetched has one host, for net/url, for the WHATWG URL
// Standard and for us.
func TestInteropKeptHostsAreThoseOfWHATWG(t *testing.T) {
	dir := interop(t, "node_modules/whatwg-url")
	icons := mustIcons(t, IconsConfig{Default: Keep, AllowHTTP: true, Rules: attackRules})
	var kept []string
	var hosts []string
	var in bytes.Buffer
	const seed = 1
	for _, raw := range hostileURLs(rand.New(rand.NewPCG(seed, seed)), 200_000) {
		d := icons.Decide(IconArgs{URL: raw})
		if d.Verdict == Strip {
			continue
		}
		line, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
		kept, hosts = append(kept, raw), append(hosts, d.Host)
	}
	if len(kept) < 1000 {
		t.Fatalf("only %d URLs were kept: this proves little", len(kept))
	}
	cmd := exec.CommandContext(t.Context(), "node", "whatwg-oracle.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for i, raw := range kept {
		var w struct{ Error, Protocol, Username, Password, Hostname, Port string }
		if err := answers.Decode(&w); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Errorf("%q is kept, and net/url refuses it: %v", raw, err)
			continue
		}
		loc, _, _ := splitURL(raw)
		port := ""
		if loc.port != ownPort(loc.https) {
			port = strconv.Itoa(int(loc.port))
		}
		if w.Error != "" || w.Hostname != hosts[i] || w.Username+w.Password != "" || w.Port != port || w.Protocol != u.Scheme+":" || strings.ToLower(u.Hostname()) != hosts[i] {
			t.Errorf("%q: we read the host %q, net/url %q, WHATWG %+v", raw, hosts[i], u.Hostname(), w)
		}
	}
	t.Logf("seed %d: %d of the URLs were kept", seed, len(kept))
}
