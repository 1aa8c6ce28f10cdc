package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/netutil"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// Bounds on slow and idle clients. There is none on how long an answer may
// take: it may be a stream, or wait for a human.
const (
	headerTimeout  = 10 * time.Second // for a request's header to arrive
	idleTimeout    = 2 * time.Minute  // for a connection without a request
	maxHeaderBytes = 64 << 10
	maxConnections = 16384 // at once; others wait to be accepted
)

// connectionsOf is how many connections of clients there may be at once, of as
// many file descriptors: a third of them, since each may need another to the
// server, and icons, children and files need some as well. Where clients could
// use them up, no child could be started, and no connection made, for those
// that have been accepted.
func connectionsOf(descriptors int) int { return min(maxConnections, max(descriptors/3, 1)) }

// connections is the same of this process, and tells where that is few.
func connections(log *zap.Logger) int {
	all := descriptors()
	n := connectionsOf(all)
	if n < maxConnections {
		log.Info("few file descriptors are allowed (ulimit -n), so there may be fewer connections", zap.Int("descriptors", all), zap.Int("connections", n))
	}
	return n
}

// listener opens the address that is served: HOST:PORT or unix:PATH. It says
// whether it can be reached from this machine alone.
func listener(ctx context.Context, address string) (l net.Listener, loopback bool, err error) {
	var c net.ListenConfig
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		// A socket that a killed process left behind is in the way.
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			if conn, err := net.Dial("unix", path); err == nil {
				conn.Close()
				return nil, false, fmt.Errorf("--listen %s: another process listens there", address)
			}
			if err := os.Remove(path); err != nil {
				return nil, false, err
			}
		}
		l, err = c.Listen(ctx, "unix", path)
		return l, false, err
	}
	l, err = c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, false, fmt.Errorf("--listen %s: %w", address, err)
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	return l, err == nil && bound.Addr().Unmap().IsLoopback(), nil
}

// serveHTTP serves handler until ctx ends, and then lets calls under way
// finish for at most the policy's grace. drain ends the streams that would
// never finish. connections is how many there may be at once; certs is nil
// without TLS.
func serveHTTP(ctx context.Context, l net.Listener, connections int, handler http.Handler, drain func(), certs *certificates, c *policy.Config, log *zap.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(log),
	}
	server.RegisterOnShutdown(drain)
	l = netutil.LimitListener(l, connections)
	done := make(chan error, 1)
	go func() {
		if certs != nil {
			server.TLSConfig = certs.config()
			done <- server.ServeTLS(l, "", "")
		} else {
			done <- server.Serve(l)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Limits.Grace.Std())
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		log.Warn("calls were still under way when the time to finish was over", zap.Duration("grace", c.Limits.Grace.Std()))
		return server.Close()
	}
	return nil
}

// servesTLS reports whether clients come over TLS.
func servesTLS(c policy.HTTPConfig) bool { return c.Listen != "" && c.TLSCert != "" }

// reverseProxy serves the server at a URL over HTTP.
func reverseProxy(ctx context.Context, px *proxy.Proxy, p *policy.Policy, u *url.URL, certs *certificates, log *zap.Logger) error {
	if err := upstream(px, p.Config, u); err != nil {
		return err
	}
	l, err := listen(ctx, px, p.Config, log)
	if err != nil {
		return err
	}
	defer l.Close()
	log.Info("serving", zap.Stringer("address", l.Addr()), zap.String("server", u.Redacted()))
	return serveHTTP(ctx, l, connections(log), px, px.Drain, certs, p.Config, log)
}

// listen opens the address that is served, and sets who may come.
func listen(ctx context.Context, px *proxy.Proxy, c *policy.Config, log *zap.Logger) (net.Listener, error) {
	l, loopback, err := listener(ctx, c.HTTP.Listen)
	if err != nil {
		return nil, err
	}
	px.AllowHosts, px.AllowOrigins, px.CheckHost = c.HTTP.AllowHost, c.HTTP.AllowOrigin, loopback
	if !loopback && l.Addr().Network() == "tcp" && len(c.HTTP.AllowHost) == 0 {
		log.Warn("others can reach this address, and any Host is accepted; --allow-host names those that are yours", zap.Stringer("address", l.Addr()))
	}
	return l, nil
}

// upstream sets where the server is, and how it is reached.
func upstream(px *proxy.Proxy, c *policy.Config, u *url.URL) error {
	px.Upstream, px.ClientHost = u, c.HTTP.Host == "client"
	header, err := upstreamHeader(c.HTTP, os.LookupEnv)
	if err != nil {
		return err
	}
	px.Header = header
	transport := proxy.NewTransport()
	if c.HTTP.UpstreamCA != "" {
		pem, err := os.ReadFile(c.HTTP.UpstreamCA)
		if err != nil {
			return usagef("--upstream-ca: %v", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return usagef("--upstream-ca: %s has no certificate in PEM form", c.HTTP.UpstreamCA)
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	px.Transport = transport
	return nil
}

// upstreamHeader is what -H and --token-env add to each request.
func upstreamHeader(c policy.HTTPConfig, env func(string) (string, bool)) (http.Header, error) {
	h := make(http.Header)
	for _, line := range c.Headers {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, usagef("-H: %q is not of the form 'Name: value'", name)
		}
		h.Add(name, value)
	}
	if c.TokenEnv == "" {
		return h, nil
	}
	token, ok := env(c.TokenEnv)
	switch {
	case !ok || token == "":
		return nil, usagef("--token-env: the environment has no variable %s", c.TokenEnv)
	case !httpguts.ValidHeaderFieldValue(token):
		return nil, usagef("--token-env: what is in %s can't be sent in a header", c.TokenEnv)
	}
	h.Set("Authorization", "Bearer "+token)
	return h, nil
}
