package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// certificatePair is a certificate with a serial number, and its key, in PEM form.
func certificatePair(t *testing.T, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"mcp.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", pkcs8)
}

// shownSerial is the serial number of the certificate that a handshake shows.
func shownSerial(t *testing.T, c *certificates) int64 {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		_ = tls.Server(far, c.config()).HandshakeContext(t.Context()) // the client's side says what went wrong
		far.Close()
	}()
	client := tls.Client(near, &tls.Config{InsecureSkipVerify: true})
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// followed are certificates that are followed until the test ends. Each reload
// is told as the line that it logs.
func followed(t *testing.T, cert, key string) (*certificates, <-chan string) {
	t.Helper()
	lines := make(chan string, 64)
	c, err := newCertificates(cert, key, zap.New(&tellingCore{zapcore.NewNopCore(), lines}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	w := c.watcher()
	if w == nil {
		t.Fatal("the files can't be watched")
	}
	done.Go(func() { c.following().run(ctx, w, nil) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return c, lines
}

// A tellingCore tells each message that is logged.
type tellingCore struct {
	zapcore.Core
	lines chan<- string
}

func (tellingCore) Enabled(zapcore.Level) bool { return true }

func (c *tellingCore) With([]zapcore.Field) zapcore.Core { return c }

func (c *tellingCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

func (c *tellingCore) Write(e zapcore.Entry, _ []zapcore.Field) error {
	c.lines <- e.Message
	return nil
}

// What happens to the files of a certificate, and which one is shown after it.
func TestFollowCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	cert1, key1 := certificatePair(t, 1)
	cert2, key2 := certificatePair(t, 2)
	write(t, cert, cert1)
	write(t, key, key1)
	c, lines := followed(t, cert, key)
	if got := shownSerial(t, c); got != 1 {
		t.Fatalf("at the start: %d", got)
	}
	for _, step := range []struct {
		name   string
		do     func()
		serial int64
		fault  string // "" if the reload went well
	}{
		{"the certificate alone", func() { write(t, cert, cert2) }, 1, "private key does not match public key"},
		{"and its key", func() { write(t, key, key2) }, 2, ""},
		{"half written", func() { write(t, cert, cert1[:len(cert1)/2]) }, 2, "failed to find"},
		{"both, by rename", func() {
			write(t, cert+".new", cert1)
			write(t, key+".new", key1)
			rename(t, key+".new", key)
			rename(t, cert+".new", cert)
		}, 1, ""},
		{"the key deleted", func() { _ = os.Remove(key) }, 1, "tls.key"},
	} {
		step.do()
		// A step may be seen half done; what counts is where it ends.
		for {
			select {
			case <-lines:
			case <-time.After(hang):
				t.Fatalf("%s: not seen", step.name)
			}
			fault := c.lastFault()
			if fault == nil && step.fault == "" || fault != nil && step.fault != "" && strings.Contains(fault.Error(), step.fault) {
				break
			}
		}
		if got := shownSerial(t, c); got != step.serial {
			t.Errorf("%s: %d is shown, want %d", step.name, got, step.serial)
		}
	}
}

// A Secret's volume: the files are symlinks into ..data, itself a symlink that
// Kubernetes swaps, so that both change at once.
func TestFollowSecret(t *testing.T) {
	dir := t.TempDir()
	for serial, v := range map[int64]string{1: "..old", 2: "..new"} {
		if err := os.Mkdir(filepath.Join(dir, v), 0o700); err != nil {
			t.Fatal(err)
		}
		cert, key := certificatePair(t, serial)
		write(t, filepath.Join(dir, v, "tls.crt"), cert)
		write(t, filepath.Join(dir, v, "tls.key"), key)
	}
	data, cert, key := filepath.Join(dir, "..data"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	symlink(t, "..old", data)
	symlink(t, filepath.Join("..data", "tls.crt"), cert)
	symlink(t, filepath.Join("..data", "tls.key"), key)
	c, lines := followed(t, cert, key)
	symlink(t, "..new", data+"_tmp")
	rename(t, data+"_tmp", data)
	select {
	case line := <-lines:
		if got := shownSerial(t, c); got != 2 || c.lastFault() != nil {
			t.Errorf("%d is shown: %s, %v", got, line, c.lastFault())
		}
	case <-time.After(hang):
		t.Fatal("the swap was not seen")
	}
}

// A certificate that could not be reloaded is told in readiness, and is no
// reason not to be ready.
func TestReadinessOfCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certText, keyText := certificatePair(t, 1)
	write(t, cert, certText)
	write(t, key, keyText)
	c, err := newCertificates(cert, key, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	policyFile := filepath.Join(dir, "policy.yaml")
	write(t, policyFile, policyText("strip"))
	a := &admin{live: liveFrom(t, policyFile), certs: c, metrics: newMetrics(), reach: func(context.Context) error { return nil }, ending: t.Context()}
	if code, text := get(t, a.handler(), "/readyz"); code != 200 || !strings.Contains(text, `"tls":"ok"`) {
		t.Errorf("%d %s", code, text)
	}
	write(t, key, "")
	c.reload()
	if code, text := get(t, a.handler(), "/readyz"); code != 200 || !strings.Contains(text, `"ready":true`) || !strings.Contains(text, `"tls":"tls: failed to find any PEM data in key input"`) {
		t.Errorf("%d %s", code, text)
	}
}
