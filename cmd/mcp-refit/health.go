package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"sync"
	"time"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// A health knows whether the server can do its work: whether its URL can be
// reached, the one child runs, or children could be started for sessions.
//
// For the last it does not wait for a client to find out: after the process's
// start and after a child has failed, a readiness probe has one started and
// asked to initialize, and the server is in health again once that answers.
type health struct {
	target *target
	try    bool                         // a child is started to see whether it can be
	child  func() (*proxy.Child, error) // starts one
	base   context.Context              // ends the tries
	stop   context.CancelFunc
	tries  sync.WaitGroup

	mu     sync.Mutex
	fault  error // why the child has failed; nil if it has not
	trying bool
	again  time.Time // no try before it
}

// Times of a try.
const (
	tryEvery = 10 * time.Second // between the end of one and the next
	tryFor   = 2 * time.Minute  // to the answer: npx and uvx may have to download the server first
)

var (
	errNotRunning = errors.New("the server has not been started yet")
	errNotTried   = errors.New("the server is being started for the first time, to see that it answers")
)

// newHealth knows the server of target. child starts it; sessions says whether
// each session has one of its own.
func newHealth(ctx context.Context, t *target, sessions bool, child func() (*proxy.Child, error)) *health {
	h := &health{target: t, child: child}
	h.base, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	switch {
	case t.url != nil:
	case sessions:
		h.try, h.fault = true, errNotTried
	default:
		h.fault = errNotRunning
	}
	return h
}

// start starts a child, and remembers whether that failed.
func (h *health) start() (*proxy.Child, error) {
	child, err := h.child()
	if err != nil {
		h.set(err)
	}
	return child, err
}

// set says why the child has failed, or nil that it works.
func (h *health) set(fault error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

// reachable says why the server can't be reached or started, as far as is
// known when ctx ends.
func (h *health) reachable(ctx context.Context) error {
	if h.target.url != nil {
		return dial(ctx, h.target.url)
	}
	if _, err := exec.LookPath(h.target.command[0]); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.try && h.fault != nil && !h.trying && !time.Now().Before(h.again) && h.base.Err() == nil {
		h.trying = true
		h.tries.Go(h.attempt)
	}
	return h.fault
}

// attempt starts a child, has it answer, and ends it again.
func (h *health) attempt() {
	ctx, cancel := context.WithTimeout(h.base, tryFor)
	defer cancel()
	err := h.answers(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault, h.trying, h.again = err, false, time.Now().Add(tryEvery)
}

func (h *health) answers(ctx context.Context) error {
	child, err := h.child()
	if err != nil {
		return err
	}
	// The end of its input, or the signal that follows, ends the read below.
	forget := context.AfterFunc(ctx, func() { _ = child.Shutdown() })
	defer forget()
	defer child.Shutdown()
	go func() { _, _ = io.WriteString(child.Stdin(), initializeLine()) }() // a child that is gone is seen below
	lines := bufio.NewReader(io.LimitReader(child.Stdout(), maxTryOutput))
	for {
		line, err := lines.ReadBytes('\n')
		var message struct {
			JSONRPC string `json:"jsonrpc"`
		}
		if json.Unmarshal(line, &message) == nil && message.JSONRPC == "2.0" {
			return nil
		}
		switch {
		case ctx.Err() != nil:
			return errors.New("the server was started, and did not answer initialize")
		case err != nil:
			_ = child.Shutdown()
			return errors.New("the server " + child.Wait().String() + " before it said anything")
		}
	}
}

// maxTryOutput is how much of a child's output is read for its first message, in bytes.
const maxTryOutput = 1 << 20

// initializeLine is what a client begins with.
func initializeLine() string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
		`"clientInfo":{"name":"mcp-refit","version":%q}}}`+"\n", versionText())
}

// close ends the tries.
func (h *health) close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.tries.Wait()
}

// dial looks whether a URL's host takes connections.
func dial(ctx context.Context, u *url.URL) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", dialAddress(u))
	if err != nil {
		return err
	}
	return conn.Close()
}

// dialAddress is the host and port of a URL.
func dialAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
