package icon

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxHosts bounds how many hosts' rates are remembered.
const maxHosts = 256

// A queue gives fetches their turns: so many at a time and a second, in all
// and for each host, so that no server can make the proxy flood anyone, and no
// dead host holds up the others.
type queue struct {
	wait      time.Duration // for a turn
	total     *rate.Limiter
	slots     chan struct{} // nil: as many as come
	hostRate  rate.Limit
	hostSlots int

	mu    sync.Mutex
	hosts map[string]*host
}

// A host is one icon host's share.
type host struct {
	limiter *rate.Limiter
	slots   chan struct{}
	users   int // turns taken or waited for
}

func (f *Fetcher) newQueue() *queue {
	q := &queue{
		wait:      duration(f.QueueTimeout, defaultQueueTimeout),
		hostRate:  limit(f.HostRate, defaultHostRate),
		hostSlots: count(f.MaxHostFetches, defaultMaxHostFetches),
		hosts:     make(map[string]*host),
	}
	total := limit(f.Rate, defaultRate)
	q.total = rate.NewLimiter(total, burst(total))
	if n := count(f.MaxFetches, defaultMaxFetches); n > 0 {
		q.slots = make(chan struct{}, n)
	}
	return q
}

func limit(perSecond, byDefault float64) rate.Limit {
	switch {
	case perSecond < 0:
		return rate.Inf
	case perSecond == 0:
		return rate.Limit(byDefault)
	}
	return rate.Limit(perSecond)
}

// burst is two seconds' worth: a list's icons come all at once.
func burst(l rate.Limit) int { return int(min(2*l, 1<<20)) + 1 }

// turn waits for a turn to fetch from name and returns what gives it back.
func (q *queue) turn(ctx context.Context, name string) (release func(), err error) {
	if q.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.wait)
		defer cancel()
	}
	h := q.enter(name)
	undo := []func(){func() { q.leave(h) }}
	release = func() {
		for _, f := range undo {
			f()
		}
	}
	for _, slots := range []chan struct{}{h.slots, q.slots} {
		if slots == nil {
			continue
		}
		select {
		case slots <- struct{}{}:
			undo = append(undo, func() { <-slots })
		case <-ctx.Done():
			release()
			return nil, fail(ReasonBusy, context.Cause(ctx))
		}
	}
	for _, l := range []*rate.Limiter{h.limiter, q.total} {
		if err := l.Wait(ctx); err != nil {
			release()
			return nil, fail(ReasonBusy, err)
		}
	}
	return release, nil
}

func (q *queue) enter(name string) *host {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.hosts[name]
	if h == nil {
		q.forget()
		h = &host{limiter: rate.NewLimiter(q.hostRate, burst(q.hostRate))}
		if q.hostSlots > 0 {
			h.slots = make(chan struct{}, q.hostSlots)
		}
		q.hosts[name] = h
	}
	h.users++
	return h
}

func (q *queue) leave(h *host) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h.users--
}

// forget drops the hosts that no fetch uses when there are too many of them.
// Their rates begin anew; the total rate does not.
func (q *queue) forget() {
	if len(q.hosts) < maxHosts {
		return
	}
	for name, h := range q.hosts {
		if h.users == 0 {
			delete(q.hosts, name)
		}
	}
}
