package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"go.uber.org/zap"
)

// An admin serves what operators and their machines ask: /healthz, /readyz,
// /version, /metrics, and where the policy says so /debug/pprof/.
type admin struct {
	live    *livePolicy
	certs   *certificates // nil without TLS
	metrics *metrics
	reach   func(context.Context) error // whether the server can be reached
	pprof   bool
	ending  context.Context // done once the process is to end
}

// readyTimeout bounds the look whether the server can be reached. Probes of
// Kubernetes give up after a second by default.
const readyTimeout = 800 * time.Millisecond

func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", a.readyz)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": versionText(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	})
	mux.Handle("GET /metrics", a.metrics.handler())
	if a.pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// A readiness is what /readyz answers. A reload that failed is no reason not
// to be ready: the policy, or the certificate, before it is in force.
type readiness struct {
	Ready   bool      `json:"ready"`
	Server  string    `json:"server"`            // "ok", or why it can't be reached or started
	Policy  string    `json:"policy"`            // "ok", or why its last reload failed
	TLS     string    `json:"tls,omitempty"`     // the same of the certificate; empty without one
	Loaded  time.Time `json:"loaded"`            // when the policy in force was read
	Waiting []string  `json:"waiting,omitempty"` // settings that were changed and wait for the next start
	Ending  bool      `json:"ending,omitempty"`
}

func (a *admin) readyz(w http.ResponseWriter, r *http.Request) {
	ready := readiness{Ready: true, Server: "ok", Policy: "ok"}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := a.reach(ctx); err != nil {
		ready.Ready, ready.Server = false, err.Error()
	}
	if err := a.live.lastFault(); err != nil {
		ready.Policy = err.Error()
	}
	if a.certs != nil {
		ready.TLS = "ok"
		if err := a.certs.lastFault(); err != nil {
			ready.TLS = err.Error()
		}
	}
	ready.Loaded, ready.Waiting = a.live.state()
	if a.ending.Err() != nil {
		ready.Ready, ready.Ending = false, true
	}
	status := http.StatusOK
	if !ready.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, ready)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the peer has gone
}

// serve serves at the listener until it is closed.
func (a *admin) serve(l net.Listener, log *zap.Logger) *http.Server {
	server := &http.Server{
		Handler: a.handler(), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: zap.NewStdLog(log),
	}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the admin address is not served any more", zap.Error(err))
		}
	}()
	return server
}
