package icon

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

//go:generate go run gen_address.go

// globalUnicast is all of IPv6 that has been given out for unicast (RFC 4291
// section 2.4, IANA IPv6 address space registry). What lies outside is refused
// whatever it is or may become.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// nat64 is the well-known prefix under which translators reach IPv4 (RFC 6052
// section 2.1): the one registered block that leads to ordinary hosts.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unlisted are IPv4 blocks that the special-purpose registry does not list.
var unlisted = []netip.Prefix{
	netip.MustParsePrefix("224.0.0.0/4"), // multicast (RFC 5771)
}

// metadata are the addresses at which clouds answer questions about the
// machine that asks, credentials among them. They are refused even where
// private addresses are allowed. Azure's is of a public block.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // AWS, Azure, Google, DigitalOcean, OpenStack and others
	netip.MustParseAddr("169.254.169.253"), // AWS, name server
	netip.MustParseAddr("169.254.170.2"),   // AWS ECS
	netip.MustParseAddr("169.254.170.23"),  // AWS EKS
	netip.MustParseAddr("169.254.0.23"),    // Tencent
	netip.MustParseAddr("169.254.42.42"),   // Scaleway
	netip.MustParseAddr("168.63.129.16"),   // Azure, wire server
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // AWS EKS
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
}

// judgeAddress returns nil for an address that an icon may be fetched from,
// and otherwise why not.
//
// It allows by list: of IPv4, what no registry sets apart; of IPv6, global
// unicast that no registry sets apart. Every registered block is refused, the
// ones marked globally reachable too, since those are anycast services of the
// network and not hosts; but for NAT64's, which stands for the IPv4 address
// within. An address that holds another is judged by that one as well.
// allowPrivate leaves only zones and metadata servers refused.
func judgeAddress(a netip.Addr, allowPrivate bool) error {
	if !a.IsValid() {
		return errors.New("no address")
	}
	if a.Zone() != "" {
		return fmt.Errorf("%v has a zone", a)
	}
	a = a.Unmap()
	inner := embedded(a)
	for _, x := range append(inner, a) {
		if slices.Contains(metadata, x) {
			return fmt.Errorf("%v leads to a metadata server", a)
		}
	}
	if allowPrivate {
		return nil
	}
	for _, x := range inner {
		if err := judge4(x); err != nil {
			return fmt.Errorf("%v: %w", a, err)
		}
	}
	switch {
	case a.Is4():
		return judge4(a)
	case nat64.Contains(a):
		return nil // its IPv4 address was judged above
	case !globalUnicast.Contains(a):
		return fmt.Errorf("%v is not global unicast", a)
	}
	return judgeBlocks(a, special6)
}

func judge4(a netip.Addr) error {
	if err := judgeBlocks(a, special4); err != nil {
		return err
	}
	return judgeBlocks(a, unlisted)
}

func judgeBlocks(a netip.Addr, blocks []netip.Prefix) error {
	for _, b := range blocks {
		if b.Contains(a) {
			return fmt.Errorf("%v is in %v", a, b)
		}
	}
	return nil
}

// The IPv6 forms that hold IPv4 addresses, besides nat64 and the mapped form.
var (
	compatible = netip.MustParsePrefix("::/96")          // RFC 4291 section 2.5.5.1, deprecated
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")      // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")      // RFC 4380
)

// embedded returns the IPv4 addresses that an IPv6 address holds, in every
// reading of it.
func embedded(a netip.Addr) []netip.Addr {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	at := func(i, j, k, l int) netip.Addr { return netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]}) }
	switch {
	case nat64.Contains(a), compatible.Contains(a):
		return []netip.Addr{at(12, 13, 14, 15)}
	case localNAT64.Contains(a): // RFC 6052 section 2.2, for prefixes of 48, 56, 64 and 96 bits
		return []netip.Addr{at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)}
	case sixToFour.Contains(a):
		return []netip.Addr{at(2, 3, 4, 5)}
	case teredo.Contains(a): // the server's, and the client's with all bits turned
		return []netip.Addr{at(4, 5, 6, 7), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP, behind any prefix (RFC 5214 section 6.1)
		return []netip.Addr{at(12, 13, 14, 15)}
	}
	return nil
}
