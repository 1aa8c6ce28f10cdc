package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Of the environment, the icon fetcher takes the trusted authorities, as every
// Go program does, and no proxy: that would hide the address from its dialer.
func TestIconEnvironment(t *testing.T) {
	host, authority := iconHost(t)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan bool)
	go func() {
		conn, err := proxy.Accept()
		if err == nil {
			conn.Close()
		}
		asked <- err == nil
	}()
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
	}
	dir := t.TempDir()
	policy, authorities := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "ca.pem")
	write(t, policy, "version: 1\nicons: {deadline: 30s, private: true, rules: [{host: \""+host+"\", action: inline}]}\n")
	write(t, authorities, authority)
	for _, c := range []struct {
		file string // SSL_CERT_FILE; "" leaves the system's
		want bool   // the icon is inlined
	}{{"", false}, {authorities, true}} {
		t.Setenv("SSL_CERT_FILE", c.file)
		s := start(t, "--config="+policy, "--log-level=error", "--", "drawing-server", "https://"+host+"/a.svg")
		if got := s.list(); strings.Contains(got, "data:image/png") != c.want {
			t.Errorf("SSL_CERT_FILE=%s: got %s", c.file, got)
		}
		s.in.Close()
		if err := s.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	proxy.Close()
	if <-asked {
		t.Error("the proxy was asked")
	}
}

// iconHost serves an icon over TLS, and returns its host and port, and the
// certificate of its authority, which is its own.
func iconHost(t *testing.T) (host, authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8H0z"/></svg>`)
	}))
	site.Config.ErrorLog = log.New(io.Discard, "", 0) // a handshake is given up
	site.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	site.StartTLS()
	t.Cleanup(site.Close)
	_, port, _ := net.SplitHostPort(site.Listener.Addr().String())
	return "localhost:" + port, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
