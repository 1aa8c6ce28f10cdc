package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A server's name that is not resolved any more: the client is told to look at
// it, and once it is back the next call gets through.
func TestFaultsOfDNS(t *testing.T) {
	var gone atomic.Bool
	transport := NewTransport()
	transport.DisableKeepAlives = true
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if gone.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: "server.example", IsNotFound: true}}
		}
		return dial(ctx, network, address)
	}
	f := serve(t, faulting(func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, callResult) }), func(p *Proxy) { p.Transport = transport })
	modern, h := modernCall("3", "tools/call", `"name":"t",`)
	for _, call := range []struct {
		body string
		h    headers
	}{{callTool, nil}, {modern, h}} {
		f.well(t)
		gone.Store(true)
		if status, got := f.post(t, call.body, call.h); status != http.StatusBadGateway || !strings.Contains(got, `"id":3,"error"`) || !strings.Contains(got, "no such host") || !strings.Contains(got, "check the host name in the URL") {
			t.Errorf("while the name is gone: %d %s", status, got)
		}
		gone.Store(false)
		if status, got := f.post(t, call.body, call.h); status != http.StatusOK || got != callResult {
			t.Errorf("once it is back: %d %s", status, got)
		}
	}
}

// However the clock jumps, a sealed question is answered or refused with the
// reason, and never taken for another one.
func TestFaultsOfTheClock(t *testing.T) {
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	var jump atomic.Int64
	s := &Sealer{Keys: []Key{testKey(t, 1)}, Now: func() time.Time { return now.Add(time.Duration(jump.Load())) }}
	state := State{ServerState: []byte(`"s"`)}
	token := seal(t, s, state)
	for _, tt := range []struct {
		jump time.Duration
		err  error
	}{{0, nil}, {time.Hour, nil}, {DefaultStateExpiry + time.Hour, ErrSealExpired}, {-48 * time.Hour, nil}, {0, nil}} {
		jump.Store(int64(tt.jump))
		if _, err := s.Open(token, state.Call); !errors.Is(err, tt.err) {
			t.Errorf("the clock jumps by %v: %v, want %v", tt.jump, err, tt.err)
		}
	}
}
