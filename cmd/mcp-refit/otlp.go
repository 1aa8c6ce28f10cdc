package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// An otlpClient sends spans by OTLP over HTTP, as protobuf, to where the
// standard variables of OpenTelemetry say. The exporter's own client links
// grpc, whatever the protocol: 10 MB of program, of which every process, each
// icon worker included, has 4 MB resident.
type otlpClient struct {
	endpoint string
	header   http.Header
	timeout  time.Duration
	gzip     bool
	client   *http.Client
}

// The defaults that the specification of the exporter gives.
const (
	otlpEndpoint = "http://localhost:4318"
	otlpPath     = "/v1/traces"
	otlpTimeout  = 10 * time.Second
)

// otlpRetries and otlpPause bound the tries of one upload: a pause is twice
// that before it, or what the collector asks for.
const (
	otlpRetries = 4
	otlpPause   = 500 * time.Millisecond
)

// newOTLPClient reads the environment; a variable for traces stands over that
// for all signals.
func newOTLPClient(env func(string) string) (*otlpClient, error) {
	of := func(name string) string {
		if v := env("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v
		}
		return env("OTEL_EXPORTER_OTLP_" + name)
	}
	c := &otlpClient{header: make(http.Header), timeout: otlpTimeout, gzip: of("COMPRESSION") == "gzip"}
	if c.endpoint = env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); c.endpoint == "" {
		base := env("OTEL_EXPORTER_OTLP_ENDPOINT")
		if base == "" {
			base = otlpEndpoint
		}
		c.endpoint = strings.TrimSuffix(base, "/") + otlpPath
	}
	if u, err := url.Parse(c.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http(s) URL", c.endpoint)
	}
	for pair := range strings.SplitSeq(of("HEADERS"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		if value, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			c.header.Set(strings.TrimSpace(name), value)
		}
	}
	if ms, err := strconv.Atoi(of("TIMEOUT")); err == nil && ms > 0 {
		c.timeout = time.Duration(ms) * time.Millisecond
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: idleTimeout}
	if file := of("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", file)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	c.client = &http.Client{Transport: transport}
	return c, nil
}

// Start and Stop are of otlptrace.Client.
func (c *otlpClient) Start(context.Context) error { return nil }

// Stop lets go of the connections.
func (c *otlpClient) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, again if the collector can't take them at the
// moment.
func (c *otlpClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// The bytes are those of an ExportTraceServiceRequest, whose package links grpc.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(body) // into memory
		_ = w.Close()
		body = b.Bytes()
	}
	pause := otlpPause
	for try := 1; ; try++ {
		after, err := c.post(ctx, body)
		if err == nil || after < 0 || try == otlpRetries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(max(after, pause)):
			pause *= 2
		}
	}
}

// post sends a body once. What may be sent again, may be so after a time that
// is not negative.
func (c *otlpClient) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	req.Header = c.header.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return time.Duration(max(seconds, 0)) * time.Second, errors.New("the collector answered " + res.Status)
	}
	return -1, errors.New("the collector answered " + res.Status)
}
