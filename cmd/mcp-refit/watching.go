package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/proxy"
)

// A watching is all that watches a running proxy, and reloads its policy. What
// the policy does not ask for is not made.
type watching struct {
	live    *livePolicy
	certs   *certificates // nil without TLS
	metrics *metrics      // nil without an admin address
	audit   *audit
	traces  *traces
	log     *zap.Logger

	end     []func() // in reverse
	tasks   sync.WaitGroup
	current context.CancelFunc
}

// endWait bounds how long audit and traces keep the process at its end, each.
const endWait = 2 * time.Second

// watch sets the proxy's hooks, before its first use, and begins to watch. The
// caller ends it with close.
func watch(ctx context.Context, live *livePolicy, px *proxy.Proxy, health *health, t *target, std stdio, log *zap.Logger) (*watching, error) {
	w := &watching{live: live, log: log}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.current = cancel
	live.log = log
	run := live.policy().Config.Run
	var err error
	if run.Audit != "" {
		err = w.startAudit(run.Audit, std.err)
	}
	w.startReopen()
	if http := live.policy().Config.HTTP; err == nil && servesTLS(http) {
		w.certs, err = newCertificates(http.TLSCert, http.TLSKey, log)
	}
	if err == nil && run.Admin != "" {
		err = w.startAdmin(ctx, run, health)
	}
	if err == nil && tracesWanted(os.Getenv) {
		err = w.startTraces(ctx, t)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	w.hooks(px)
	live.startIcons(w.newFetcher)
	w.end = append(w.end, live.close)
	if live.reloads() {
		w.startReloads(running, live.watcher(), live.following())
	}
	if w.certs != nil {
		w.startReloads(running, w.certs.watcher(), w.certs.following())
	}
	return w, nil
}

func (w *watching) startAudit(file string, stderr io.Writer) error {
	a, err := newAudit(file, stderr, w.log)
	if err != nil {
		return usagef("--audit: %v", err)
	}
	w.audit = a
	w.end = append(w.end, func() { a.close(endWait) })
	return nil
}

// startReopen opens the audit anew on its signal. Without an audit the signal
// does nothing: who rotates the logs of many processes sends it to all.
func (w *watching) startReopen() {
	reopen, stop := reopenSignals()
	quit := make(chan struct{})
	w.tasks.Go(func() {
		for {
			select {
			case <-reopen:
				if w.audit != nil {
					w.audit.reopen()
				}
			case <-quit:
				return
			}
		}
	})
	w.end = append(w.end, func() { stop(); close(quit) })
}

func (w *watching) startAdmin(ctx context.Context, run policy.RunConfig, health *health) error {
	l, _, err := listener(ctx, run.Admin)
	if err != nil {
		return usagef("--admin: %v", err)
	}
	w.metrics = newMetrics()
	if w.audit != nil {
		w.metrics.auditLines(w.audit)
	}
	a := &admin{live: w.live, certs: w.certs, metrics: w.metrics, reach: health.reachable, pprof: run.Pprof, ending: ctx}
	server := a.serve(l, w.log)
	w.log.Info("admin", zap.Stringer("address", l.Addr()))
	w.end = append(w.end, func() { server.Close() })
	return nil
}

func (w *watching) startTraces(ctx context.Context, t *target) error {
	transport := "pipe"
	if t.url != nil {
		transport = "tcp"
	}
	traces, err := newTraces(ctx, transport, w.log)
	if err != nil {
		return usagef("traces: %v", err)
	}
	w.traces = traces
	w.end = append(w.end, func() {
		if err := traces.close(endWait); err != nil {
			w.log.Warn("the last traces could not be sent", zap.Error(err))
		}
	})
	return nil
}

// hooks sets the hooks that somebody listens to.
func (w *watching) hooks(px *proxy.Proxy) {
	if m := w.metrics; m != nil {
		px.OnMessage, px.OnAnswer, px.OnSession = m.message, m.answer, m.session
		w.live.onReload = m.reloaded
	}
	if w.metrics != nil || w.audit != nil {
		px.OnDecision = func(d proxy.Decision) {
			if w.metrics != nil {
				w.metrics.decision(d)
			}
			if w.audit != nil {
				w.audit.record(d)
			}
		}
	}
	if w.metrics != nil || w.traces != nil {
		px.OnCall = func(c proxy.Call) {
			if w.metrics != nil {
				w.metrics.call(c)
			}
			if w.traces != nil {
				w.traces.call(c)
			}
		}
	}
}

// newFetcher makes a fetcher that the metrics see.
func (w *watching) newFetcher(c *policy.Config) *icon.Fetcher {
	icons := newFetcher(c)
	if m := w.metrics; m != nil {
		icons.OnFetch, icons.OnDecode = m.fetch, m.decode
	}
	return icons
}

func (w *watching) startReloads(ctx context.Context, watcher *fsnotify.Watcher, f following) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	w.tasks.Go(func() { f.run(ctx, watcher, hangup) })
	w.end = append(w.end, func() { signal.Stop(hangup) })
}

// children tells how many children run.
func (w *watching) children(running int) {
	if w.metrics != nil {
		w.metrics.children.Set(float64(running))
	}
}

// close ends the watching, and writes what is left of it.
func (w *watching) close() {
	w.current()
	for i := len(w.end) - 1; i >= 0; i-- {
		w.end[i]()
	}
	w.tasks.Wait()
}
