package icon

import (
	"encoding/csv"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"code.dny.dev/ssrf"
)

func TestJudgeAddress(t *testing.T) {
	refused := strings.Fields(`
		127.0.0.1 127.255.255.254 ::1 ::ffff:127.0.0.1
		169.254.169.254 169.254.170.2 169.254.170.23 168.63.129.16 ::ffff:169.254.169.254
		100.100.100.200 100.64.0.0 100.127.255.255
		192.0.0.192 192.0.0.8 192.0.0.9 192.0.0.170
		10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 ::ffff:10.0.0.1
		0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0
		fe80::1 fe80::1%lo fec0::1 fc00::1 fd00:ec2::254 fd20:ce::254
		::a9fe:a9fe ::8.8.8.8
		64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b::127.0.0.1
		64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1::8.8.8.8
		2002:a9fe:a9fe:: 2002:808:808::
		2001:0:a9fe:a9fe::1 2001::1
		2606:4700::200:5efe:a9fe:a9fe 2606:4700::5efe:a00:1 2606:4700::300:5efe:127.0.0.1
		198.18.0.1 198.19.255.255 192.0.2.1 198.51.100.1 203.0.113.1
		240.0.0.1 224.0.0.1 239.255.255.255 255.255.255.255
		192.88.99.1 192.31.196.1 192.52.193.1 192.175.48.1
		100::1 100:0:0:1::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2620:4f:8000::1 3fff::1 5f00::1
		ff02::1 4000::1 1000::1 8000::1 e000::1
	`)
	for _, s := range refused {
		if err := judgeAddress(netip.MustParseAddr(s), false); err == nil {
			t.Errorf("%s is allowed", s)
		}
	}
	allowed := strings.Fields(`
		8.8.8.8 1.1.1.1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
		100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 198.17.255.255 198.20.0.0 192.0.1.0 11.0.0.0 9.255.255.255
		126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 192.167.255.255 192.169.0.0 223.255.255.255 168.63.129.17
		2001:200:: 2606:4700:4700::1111 2000::1 2003::1 2606:4700::200:5efe:808:808 3ffe::1
	`)
	for _, s := range allowed {
		if err := judgeAddress(netip.MustParseAddr(s), false); err != nil {
			t.Errorf("%s is refused: %v", s, err)
		}
	}
	if judgeAddress(netip.Addr{}, false) == nil || judgeAddress(netip.Addr{}, true) == nil {
		t.Error("no address is allowed")
	}
}

func TestJudgeAddressWithPrivateAllowed(t *testing.T) {
	for _, s := range strings.Fields("127.0.0.1 ::1 10.0.0.1 192.168.1.1 fd00::1 198.18.0.1 ::ffff:127.0.0.1") {
		if err := judgeAddress(netip.MustParseAddr(s), true); err != nil {
			t.Errorf("%s is refused: %v", s, err)
		}
	}
	// Metadata servers stay out of reach, in every form of their addresses.
	for _, s := range strings.Fields(`
		169.254.169.254 169.254.170.2 169.254.170.23 100.100.100.200 192.0.0.192 168.63.129.16 fd00:ec2::254 fd20:ce::254
		::ffff:169.254.169.254 ::a9fe:a9fe 64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00::
		2002:a9fe:a9fe:: 2001:0:a9fe:a9fe::1 2001::5601:5601 2606:4700::200:5efe:a9fe:a9fe fe80::1%lo
	`) {
		if err := judgeAddress(netip.MustParseAddr(s), true); err == nil {
			t.Errorf("%s is allowed", s)
		}
	}
}

// TestAddressTables holds the generated tables to the registries' text.
func TestAddressTables(t *testing.T) {
	for file, table := range map[string][]netip.Prefix{"ipv4-special-registry.csv": special4, "ipv6-special-registry.csv": special6} {
		text, err := os.Open("testdata/iana/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer text.Close()
		rows, err := csv.NewReader(text).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var want []netip.Prefix
		for _, row := range rows[1:] {
			for cell := range strings.SplitSeq(row[0], ", ") {
				want = append(want, netip.MustParsePrefix(strings.Fields(cell)[0]))
			}
		}
		if !slices.Equal(table, want) {
			t.Errorf("%s: the table is stale: run go generate", file)
		}
	}
}

// TestAgainstSSRF compares the judge with a library made for the same end.
// Where they differ, the judge must be the stricter one, save NAT64's prefix.
func TestAgainstSSRF(t *testing.T) {
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork())
	check := func(a netip.Addr) {
		if judgeAddress(a, false) != nil || nat64.Contains(a) || a.Is4In6() {
			return
		}
		if err := guard.SafeAddr(a); err != nil {
			t.Errorf("%v is allowed, and the other says %v", a, err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, table := range [][]netip.Prefix{special4, special6, unlisted, {globalUnicast}} {
		for _, p := range table {
			first, last := ends(p)
			for _, a := range []netip.Addr{first, last, first.Prev(), last.Next()} {
				if a.IsValid() {
					check(a)
				}
			}
		}
	}
	for range 20_000 {
		var b [16]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		check(netip.AddrFrom4([4]byte(b[:4])))
		check(netip.AddrFrom16(b))
		b[0] = b[0]&0x1f | 0x20
		check(netip.AddrFrom16(b))
	}
}

// ends returns the first and last addresses of p.
func ends(p netip.Prefix) (first, last netip.Addr) {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ = netip.AddrFromSlice(b)
	return p.Masked().Addr(), last
}

// FuzzJudgeAddress holds the judge to what netip knows of an address: what it
// allows is global unicast, not private, and no form of it is worse than
// another.
func FuzzJudgeAddress(f *testing.F) {
	for _, s := range []string{"8.8.8.8", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "2606:4700::200:5efe:a9fe:a9fe"} {
		b := netip.MustParseAddr(s).As16()
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 16 {
			return
		}
		a := netip.AddrFrom16([16]byte(b))
		if judgeAddress(a, true) != nil && judgeAddress(a, false) == nil {
			t.Fatalf("%v: refused only where private addresses are allowed", a)
		}
		if judgeAddress(a, false) != nil {
			return
		}
		u := a.Unmap()
		if !u.IsGlobalUnicast() || u.IsPrivate() || u.IsLoopback() || u.IsLinkLocalUnicast() || u.IsMulticast() || u.IsUnspecified() {
			t.Fatalf("%v is allowed", a)
		}
		if judgeAddress(a.WithZone("lo"), false) == nil && a.Is6() && !a.Is4In6() {
			t.Fatalf("%v is allowed with a zone", a)
		}
		if u.Is4() {
			four := u.As4()
			mapped := [16]byte{0, 0x64, 0xff, 0x9b, 12: four[0], four[1], four[2], four[3]}
			if err := judgeAddress(netip.AddrFrom16(mapped), false); err != nil {
				t.Fatalf("%v is allowed, behind NAT64 it is not: %v", u, err)
			}
		}
	})
}
