package proxy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// InflightWait is how long a message waits for room under max-inflight before
// it is answered with an error.
const InflightWait = 10 * time.Second

// inflight bounds the bytes that are buffered for inspection, all messages of
// all sessions together. Its zero value has no bound.
//
// New messages wait behind each other. What lets others go does not wait behind
// them: the rest of a message of which some is here already, and a message to
// the client, which is what a request that has room waits for.
type inflight struct {
	mu      sync.Mutex
	max     int64 // in bytes; 0 and less is no bound
	used    int64
	waiting [2][]*roomWaiter // those that go first, and new messages, each in order
}

const (
	goesFirst = iota
	isNew
)

type roomWaiter struct {
	size int64
	has  chan struct{} // closed once it has the room
}

// limit sets the bound, in bytes; 0 and less is none.
func (f *inflight) limit(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes != f.max {
		f.max = bytes
		f.serve()
	}
}

// A room is what one message has taken of the bound.
type room struct {
	// answers says that it is for messages to the client.
	answers bool

	of   *inflight
	size int64
}

// take makes room for n more bytes of a message, and waits for it for at most
// InflightWait. It reports false if there is none, at once for a message that
// is larger than the bound by itself.
func (f *inflight) take(ctx context.Context, r *room, n int64) bool {
	queue := isNew
	if r.answers || r.size > 0 {
		queue = goesFirst
	}
	f.mu.Lock()
	switch {
	case f.max > 0 && r.size+n > f.max:
		f.mu.Unlock()
		return false
	case f.fits(n) && len(f.waiting[goesFirst]) == 0 && (queue == goesFirst || len(f.waiting[isNew]) == 0):
		f.used += n
		f.mu.Unlock()
	default:
		w := &roomWaiter{n, make(chan struct{})}
		f.waiting[queue] = append(f.waiting[queue], w)
		f.mu.Unlock()
		if !f.wait(ctx, queue, w) {
			return false
		}
	}
	r.of = f
	r.size += n
	return true
}

func (f *inflight) fits(n int64) bool { return f.max <= 0 || f.used+n <= f.max }

// wait waits until there is room.
func (f *inflight) wait(ctx context.Context, queue int, w *roomWaiter) bool {
	late := time.NewTimer(InflightWait)
	defer late.Stop()
	select {
	case <-w.has:
		return true
	case <-ctx.Done():
	case <-late.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.waiting[queue], w)
	if i < 0 {
		return true // just now
	}
	f.waiting[queue] = slices.Delete(f.waiting[queue], i, i+1)
	f.serve() // it was in the way
	return false
}

// serve gives room to those that wait, as far as there is any. The lock is held.
func (f *inflight) serve() {
	for i := range f.waiting {
		for len(f.waiting[i]) > 0 {
			w := f.waiting[i][0]
			if !f.fits(w.size) {
				return
			}
			f.used += w.size
			close(w.has)
			f.waiting[i] = f.waiting[i][1:]
		}
		f.waiting[i] = nil
	}
}

// give frees the room.
func (r *room) give() {
	if f := r.of; f != nil {
		f.mu.Lock()
		f.used -= r.size
		f.serve()
		f.mu.Unlock()
	}
	*r = room{answers: r.answers}
}
