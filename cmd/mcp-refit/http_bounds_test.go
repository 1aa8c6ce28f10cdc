package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A pipeListener is a listener in memory, so that what takes time over HTTP can
// be tested where time is not real.
type pipeListener struct {
	conns  chan net.Conn
	closed context.Context
	close  func()
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// A testConn is a client's connection.
type testConn struct {
	net.Conn
	r *bufio.Reader
}

// say sends bytes, and does not wait until they are read.
func (c *testConn) say(text string) {
	go func() { _, _ = io.WriteString(c, text) }() // one that is closed needs none
	synctest.Wait()
}

// status reads an answer, and returns its status.
func (c *testConn) status(t *testing.T) int {
	t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// bounded serves in memory, where time is not real. The handler answers once
// finish is closed, and there may be two connections.
func bounded(t *testing.T, test func(t *testing.T, dial func() *testConn, stop func(), finish chan struct{}, done <-chan error)) {
	synctest.Test(t, func(t *testing.T) {
		closed, closeIt := context.WithCancel(t.Context())
		l := &pipeListener{make(chan net.Conn, 8), closed, closeIt}
		dial := func() *testConn {
			near, far := net.Pipe()
			t.Cleanup(func() { near.Close() })
			l.conns <- far
			return &testConn{near, bufio.NewReader(near)}
		}
		finish, done := make(chan struct{}), make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		t.Cleanup(stop)
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-finish })
		go func() { done <- serveHTTP(ctx, l, 2, handler, func() {}, nil, policy.Default(), zap.NewNop()) }()
		test(t, dial, stop, finish, done)
	})
}

const request = "GET / HTTP/1.1\r\nHost: localhost\r\n"

// A client that does not send its header, or nothing more after an answer, is
// not waited for.
func TestServeHTTPSlowClients(t *testing.T) {
	bounded(t, func(t *testing.T, dial func() *testConn, _ func(), finish chan struct{}, _ <-chan error) {
		close(finish)
		slow, start := dial(), time.Now()
		slow.say(request)
		if _, err := io.ReadAll(slow.r); err != nil || time.Since(start) != headerTimeout {
			t.Errorf("without a header: %v after %v, want the end after %v", err, time.Since(start), headerTimeout)
		}
		idle := dial()
		idle.say(request + "\r\n")
		if status := idle.status(t); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		start = time.Now()
		if _, err := idle.r.ReadByte(); err != io.EOF || time.Since(start) != idleTimeout {
			t.Errorf("idle: %v after %v, want the end after %v", err, time.Since(start), idleTimeout)
		}
		large := dial()
		large.say(request + fmt.Sprintf("X: %s\r\n\r\n", strings.Repeat("x", 2*maxHeaderBytes)))
		if status := large.status(t); status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a large header: status %d", status)
		}
	})
}

// A connection too many waits until another one is closed.
func TestServeHTTPConnections(t *testing.T) {
	bounded(t, func(t *testing.T, dial func() *testConn, _ func(), finish chan struct{}, _ <-chan error) {
		close(finish)
		var all [3]*testConn
		answered := make(chan int, len(all))
		for i := range all {
			all[i] = dial()
			all[i].say(request + "\r\n")
			go func() { answered <- all[i].status(t) }()
		}
		synctest.Wait()
		if n := len(answered); n != 2 {
			t.Errorf("%d were answered, want 2", n)
		}
		all[0].Close()
		synctest.Wait()
		if n := len(answered); n != 3 {
			t.Errorf("%d were answered once one was closed, want 3", n)
		}
	})
}

// Calls under way have the policy's grace to finish, and no longer.
func TestServeHTTPGrace(t *testing.T) {
	grace := policy.Default().Limits.Grace.Std()
	bounded(t, func(t *testing.T, dial func() *testConn, stop func(), finish chan struct{}, done <-chan error) {
		defer close(finish)
		c := dial()
		c.say(request + "\r\n")
		start := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(start) != grace {
			t.Errorf("ended after %v with %v, want %v", time.Since(start), err, grace)
		}
		if _, err := c.r.ReadByte(); err != io.EOF {
			t.Errorf("the call: %v, want the end", err)
		}
	})
	bounded(t, func(t *testing.T, dial func() *testConn, stop func(), finish chan struct{}, done <-chan error) {
		c := dial()
		c.say(request + "\r\n")
		stop()
		time.Sleep(grace / 2)
		close(finish)
		if status := c.status(t); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
