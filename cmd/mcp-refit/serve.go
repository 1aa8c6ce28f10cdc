package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// serve runs the proxy in the form that the command line asks for.
func serve(ctx context.Context, live *livePolicy, t *target, std stdio) error {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	p := live.policy()
	if !live.reloads() && !servesTLS(p.Config.HTTP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	defer stop()
	// Whoever reads our stdout or stderr may be gone: that is an error of Write
	// and not our end, since what we started is to be ended in order.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	log := newLog(p.Config.Run, std.err, live.level)
	seal, err := newSealer(p.Config)
	if err != nil {
		return err
	}
	px := &proxy.Proxy{
		Policy:   live.policy,
		IconsFor: live.icons,
		OnServer: live.named,
		Seal:     seal,
		Log:      log,
		OnStray: func(line []byte) {
			_, _ = std.err.Write(append(line[:len(line):len(line)], '\n'))
		},
	}
	health := newHealth(ctx, t, p.Config.HTTP.Listen != "", func() (*proxy.Child, error) {
		child := newChild(p, t, std, log)
		return child, child.Start(context.WithoutCancel(ctx))
	})
	defer health.close()
	watching, err := watch(ctx, live, px, health, t, std, log)
	if err != nil {
		return err
	}
	defer watching.close()
	switch {
	case t.url != nil && p.Config.HTTP.Listen != "":
		return reverseProxy(ctx, px, p, t.url, watching.certs, log)
	case t.url != nil:
		return serveURL(ctx, px, p.Config, t.url, std)
	case p.Config.HTTP.Listen != "":
		return serveChildren(ctx, px, p, t, log, health, watching)
	}
	watching.children(1)
	defer watching.children(0)
	return wrapChild(ctx, px, p, t, std, log, health.set)
}

// endedWait is how long a child has to say how it ended, once its output has.
const endedWait = 2 * time.Second

// wrapChild starts the server as a child and carries the messages between it
// and our own stdio. The exit code is the child's. state is told that the
// child runs, and why it does not any more.
func wrapChild(ctx context.Context, px *proxy.Proxy, p *policy.Policy, t *target, std stdio, log *zap.Logger, state func(fault error)) error {
	px.EndWait = 2*p.Config.Limits.Grace.Std() + time.Second // the child's grace, and the time to SIGKILL
	child := newChild(p, t, std, log)
	if err := child.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	ended := make(chan proxy.ExitStatus, 1)
	state(nil)
	go func() {
		status := child.Wait()
		state(errors.New("the server " + status.String()))
		ended <- status
	}()
	server := proxy.Stream{
		R: child.Stdout(),
		W: childInput{child.Stdin(), child},
		Ended: func() string {
			select {
			case status := <-ended:
				ended <- status
				return status.String()
			case <-time.After(endedWait):
				return "closed its output"
			}
		},
	}
	client := proxy.Stream{R: std.in, W: nopCloser{std.out}}
	if err := px.Run(ctx, client, server); err != nil && ctx.Err() == nil {
		log.Error("the connection ended", zap.Error(err))
	}
	if err := child.Shutdown(); err != nil {
		log.Error("the server could not be ended", zap.Error(err))
	}
	if status := <-ended; status.Code != exitOK {
		return exitCode(status.Code)
	}
	return nil
}

// newChild is the server as a child, to be started.
func newChild(p *policy.Policy, t *target, std stdio, log *zap.Logger) *proxy.Child {
	grace := p.Config.Limits.Grace.Std()
	return &proxy.Child{
		Command: t.command, Stderr: std.err, Grace: grace, KillAfter: grace, Watchdog: self(argWatchdog),
		Warn: func(err error) { log.Warn(err.Error()) },
	}
}

// childInput is a child's stdin. Its end is the beginning of the child's.
type childInput struct {
	io.Writer
	child *proxy.Child
}

func (c childInput) Close() error {
	go c.child.Shutdown()
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
