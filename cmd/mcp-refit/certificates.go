package main

import (
	"crypto/tls"
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// certificates are the certificate that --listen serves TLS with and its key.
// They are read again when one of the files has changed: what renews them
// restarts nobody. A pair that does not load, such as one of which only one
// half is new, leaves the one before it in place.
type certificates struct {
	cert, key string // files
	log       *zap.Logger
	now       atomic.Pointer[tls.Certificate]

	mu    sync.Mutex
	seen  [2]identity // of the files that were last read
	fault error       // why the last reload failed
}

// newCertificates loads the pair for the first time.
func newCertificates(cert, key string, log *zap.Logger) (*certificates, error) {
	c := &certificates{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, usagef("--tls-cert, --tls-key: %v", err)
	}
	return c, nil
}

// load reads the pair.
func (c *certificates) load() error {
	c.seen = c.identities()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.now.Store(&pair)
	}
	return err
}

func (c *certificates) identities() [2]identity {
	return [2]identity{identityOf(c.cert), identityOf(c.key)}
}

// config has each handshake use the pair that is in force.
func (c *certificates) config() *tls.Config {
	return &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil }}
}

// reload puts the files' pair into force, or leaves the one before it.
func (c *certificates) reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault = c.load(); c.fault != nil {
		c.log.Error("the TLS certificate was not reloaded; the one before it goes on", zap.Error(c.fault))
		return
	}
	c.log.Info("the TLS certificate was reloaded", zap.Time("expires", c.now.Load().Leaf.NotAfter))
}

// lastFault is why the last reload failed, nil if it did not.
func (c *certificates) lastFault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

func (c *certificates) changed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identities() != c.seen
}

// watcher watches the files. It is nil where files can't be watched; then the
// signal is left.
func (c *certificates) watcher() *fsnotify.Watcher {
	w, err := watchFiles(c.cert, c.key)
	if err != nil {
		c.log.Warn("the TLS certificate can't be watched; SIGHUP reloads it", zap.Error(err))
		return nil
	}
	return w
}

// following reloads the pair.
func (c *certificates) following() following {
	return following{changed: c.changed, reload: c.reload, trouble: func(err error) {
		c.log.Warn("the TLS certificate's directory is hard to watch", zap.Error(err))
	}}
}
