package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
)

// NewTransport returns the transport that a Proxy uses by default. Its
// settings are meant to be read, and may be changed before the first use.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{
		Timeout:   10 * time.Second, // a server that can be reached at all answers sooner
		KeepAlive: 30 * time.Second, // finds a peer that is gone behind a stream that is silent
	}
	return &http.Transport{
		// There is one server, and each call under way holds a connection to
		// it. No bound on them: a call may wait for a human.
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 256,
		MaxConnsPerHost:     0,
		IdleConnTimeout:     90 * time.Second,

		// HTTP_PROXY and its like do not move the traffic elsewhere: the
		// server is the one that the URL names.
		Proxy: nil,

		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,

		// A call may wait for a human before its answer begins.
		ResponseHeaderTimeout:  0,
		MaxResponseHeaderBytes: 1 << 20,

		// The transport would undo gzip only where it asked for it; we ask for
		// none, and undo ourselves what comes all the same.
		DisableCompression: true,

		WriteBufferSize: 16 << 10, // most requests leave in one write
		ReadBufferSize:  16 << 10,
	}
}

func (p *Proxy) transport() http.RoundTripper {
	if p.Transport != nil {
		return p.Transport
	}
	return p.http().transport
}

// httpSide is what a Proxy makes for itself once it serves HTTP.
type httpSide struct {
	once      sync.Once
	transport *http.Transport
	errors    *log.Logger
	oauth     sync.Once // a warning
}

func (p *Proxy) http() *httpSide {
	h := &p.side
	h.once.Do(func() {
		h.transport = NewTransport()
		h.errors = zap.NewStdLog(p.logger())
	})
	return h
}

// limits are the policy's, or none.
func (p *Proxy) limits() policy.LimitsConfig {
	if pol := p.policy(); pol != nil {
		return pol.Config.Limits
	}
	return policy.LimitsConfig{}
}

// maxMessage is the largest message in bytes, 0 for no bound.
func (p *Proxy) maxMessage() int64 { return max(int64(p.limits().MaxMessage), 0) }

// limitInflight puts the policy's bound on all messages together in force.
func (p *Proxy) limitInflight() { p.inflight.limit(int64(p.limits().MaxInflight)) }

// lineLimit puts the policy's bounds in force for the next line of a stream.
// It returns the largest message in bytes, 0 for no bound.
func (p *Proxy) lineLimit() int64 {
	p.limitInflight()
	return p.maxMessage()
}

func isTLSError(err error) bool {
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &unknown) || errors.As(err, &host)
}

// reason is the innermost cause that says something, without the addresses and
// the URL around it.
func reason(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}
