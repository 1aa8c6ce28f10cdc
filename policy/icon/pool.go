package icon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A pool keeps the worker processes: started on first need, at most size at a
// time, ended when idle. Its zero value has none.
type pool struct {
	command []string
	wall    time.Duration // for one job, the start of the process included; 0 is no limit
	idle    time.Duration // an idle worker is ended after it; 0 is never
	slots   chan struct{} // a token for each running job
	memory  uint64        // for the job object, where there is one

	mu     sync.Mutex
	free   []*worker // the most recently used last
	closed bool
}

// A worker is one process and its pipes. It is used by one job at a time.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	fresh  bool
	killed atomic.Bool
	expiry *time.Timer
	end    func() // ends the process and waits for it; once
}

// run does one job on a worker. Waiting for a worker is bounded by ctx; the
// job itself by the pool's wall clock.
func (p *pool) run(ctx context.Context, request requestHeader, body []byte) (response responseHeader, out []byte, err error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return response, nil, fail(ReasonBusy, context.Cause(ctx))
	}
	for {
		w, err := p.take()
		if err != nil {
			return response, nil, err
		}
		response, out, err = p.job(w, request, body)
		if err == nil {
			p.put(w)
			return response, out, checkOutput(request, response, out)
		}
		late := w.killed.Load()
		w.end()
		// A worker that sat idle may have been ended from outside since its
		// last job: that says nothing of this one.
		if w.fresh || late {
			return response, nil, fail(ReasonWorker, err)
		}
	}
}

// job sends one request and reads its answer, and kills the worker when the
// wall clock runs out.
func (p *pool) job(w *worker, request requestHeader, body []byte) (response responseHeader, out []byte, err error) {
	if p.wall > 0 {
		clock := time.AfterFunc(p.wall, func() {
			w.killed.Store(true)
			_ = w.cmd.Process.Kill() // it may have ended already
		})
		defer clock.Stop()
	}
	if err := writeFrame(w.in, request, body); err != nil {
		return response, nil, err
	}
	out, err = readFrame(w.out, &response, int(request.MaxPNG))
	if w.killed.Load() {
		return response, nil, errors.New("killed by the clock")
	}
	return response, out, err
}

// checkOutput judges a worker's answer: even one that an image took over can
// hand back nothing but a PNG of the size it says, within the limits.
func checkOutput(request requestHeader, response responseHeader, out []byte) error {
	if response.Status != 0 {
		if int(response.Status) >= len(workerReasons) {
			return fail(ReasonWorker, errFrame)
		}
		return fail(workerReasons[response.Status], nil)
	}
	config, err := png.DecodeConfig(bytes.NewReader(out))
	if err != nil || config.Width != int(response.Width) || config.Height != int(response.Height) ||
		max(config.Width, config.Height) > int(request.Edge) {
		return fail(ReasonWorker, errFrame)
	}
	return nil
}

// take returns an idle worker, or starts one.
func (p *pool) take() (*worker, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, fail(ReasonClosed, nil)
	}
	if n := len(p.free); n > 0 {
		w := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		if w.expiry != nil {
			w.expiry.Stop()
		}
		w.fresh = false
		return w, nil
	}
	p.mu.Unlock()
	w, err := startWorker(p.command, p.memory)
	if err != nil {
		return nil, fail(ReasonWorker, err)
	}
	return w, nil
}

func (p *pool) put(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		w.end()
		return
	}
	p.free = append(p.free, w)
	if p.idle > 0 {
		w.expiry = time.AfterFunc(p.idle, func() { p.expire(w) })
	}
}

// expire ends w if it is still idle.
func (p *pool) expire(w *worker) {
	p.mu.Lock()
	i := slices.Index(p.free, w)
	if i >= 0 {
		p.free = slices.Delete(p.free, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		w.end()
	}
}

// close ends every idle worker; one at work is ended when its job is.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.free {
		if w.expiry != nil {
			w.expiry.Stop()
		}
		w.end()
	}
	p.free = nil
}

// startWorker starts command with an empty environment: it needs nothing of
// ours and is to know nothing.
func startWorker(command []string, memory uint64) (*worker, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = []string{}
	cmd.SysProcAttr = workerAttr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	release := limitProcess(cmd.Process, memory)
	w := &worker{cmd: cmd, in: in, out: out, fresh: true}
	w.end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // the exit status of a killed process; Wait closes the pipes
		release()
	})
	return w, nil
}
