package icon

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// maxAddresses bounds how many of a name's addresses are tried.
const maxAddresses = 4

// fallbackDelay is how long one address may be tried alone before the next
// one is tried beside it (RFC 8305 section 5).
const fallbackDelay = 200 * time.Millisecond

// dialTLS connects to hostPort and makes a TLS session. It is the transport's
// DialTLSContext.
func (f *Fetcher) dialTLS(ctx context.Context, network, hostPort string) (net.Conn, error) {
	raw, err := f.dial(ctx, network, hostPort)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, errors.Join(fail(ReasonURL, err), raw.Close())
	}
	conn := tls.Client(raw, &tls.Config{
		ServerName: host,
		RootCAs:    f.RootCAs,
		NextProtos: []string{"http/1.1"},
		MinVersion: tls.VersionTLS12,
	})
	ctx, cancel := withTimeout(ctx, f.TLSTimeout, defaultTLSTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the handshake's error says more
		return nil, fail(ReasonTLS, err)
	}
	return conn, nil
}

// dial looks hostPort's name up and connects to one of its addresses. It is
// the transport's DialContext for http.
func (f *Fetcher) dial(ctx context.Context, _, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fail(ReasonURL, err)
	}
	addresses, err := f.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withTimeout(ctx, f.ConnectTimeout, defaultConnectTimeout)
	defer cancel()
	return f.race(ctx, addresses, port)
}

// resolve returns the addresses of host. A name is looked up with the root
// dot, so that no search domain is ever tried.
func (f *Fetcher) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	if host == "localhost" { // RFC 6761, section 6.3; resolvers differ on localhost with a root dot
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	ctx, cancel := withTimeout(ctx, f.ResolveTimeout, defaultResolveTimeout)
	defer cancel()
	resolver := f.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addresses, err := resolver.LookupNetIP(ctx, "ip", host+".")
	if err != nil {
		return nil, fail(ReasonResolve, err)
	}
	return addresses, nil
}

// race connects to the first address that answers: one after another, the next
// one when the one before failed or has had its time alone. Addresses that
// must not be dialled fail in control and cost nothing.
func (f *Fetcher) race(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, error) {
	var refused error
	var allowed []netip.Addr
	for _, a := range addresses {
		if err := judgeAddress(a, f.AllowPrivate); err != nil {
			refused = fail(ReasonAddress, err)
		} else if len(allowed) < maxAddresses {
			allowed = append(allowed, a)
		}
	}
	if len(allowed) == 0 {
		if refused == nil {
			refused = fail(ReasonResolve, errors.New("no addresses"))
		}
		return nil, refused
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer := net.Dialer{ControlContext: f.control}
	type attempt struct {
		conn net.Conn
		err  error
	}
	attempts := make(chan attempt)
	start := func(a netip.Addr) {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), port))
		select {
		case attempts <- attempt{conn, err}:
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close() // another address won
			}
		}
	}
	next := time.NewTimer(0)
	defer next.Stop()
	running, last := 0, error(nil)
	for {
		select {
		case <-next.C:
			if len(allowed) > 0 {
				go start(allowed[0])
				allowed = allowed[1:]
				running++
				next.Reset(fallbackDelay)
			}
		case got := <-attempts:
			if got.err == nil {
				return got.conn, nil
			}
			last = got.err
			if running--; running == 0 && len(allowed) == 0 {
				return nil, connectError(last)
			}
			next.Reset(0)
		case <-ctx.Done():
			return nil, fail(ReasonConnect, errors.Join(context.Cause(ctx), last))
		}
	}
}

// control judges the address that is being dialled, at the last moment and on
// every attempt: whatever the look-up said and however it got here.
func (f *Fetcher) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fail(ReasonAddress, err)
	}
	if err := judgeAddress(ap.Addr(), f.AllowPrivate); err != nil {
		return fail(ReasonAddress, err)
	}
	return nil
}

func connectError(err error) error {
	if ReasonOf(err) != "" {
		return err
	}
	return fail(ReasonConnect, err)
}

// withTimeout bounds ctx by a bound's field: 0 is the default, negative is
// none.
func withTimeout(ctx context.Context, bound, byDefault time.Duration) (context.Context, context.CancelFunc) {
	d := duration(bound, byDefault)
	if d == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
