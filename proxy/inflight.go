package proxy

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// InflightWait is how long a message waits for room under max-inflight before
// it is answered with an error.
const InflightWait = 10 * time.Second

// inflight bounds the bytes that are buffered for inspection, all messages of
// all sessions together. Its zero value has no bound.
type inflight struct {
	mu  sync.Mutex
	sem *semaphore.Weighted
	max int64
}

// limit sets the bound, in bytes; 0 and less is none. A change takes hold for
// what is taken after it.
func (f *inflight) limit(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bytes == f.max {
		return
	}
	f.max, f.sem = bytes, nil
	if bytes > 0 {
		f.sem = semaphore.NewWeighted(bytes)
	}
}

// A room is what one message has taken of the bound.
type room struct {
	sem       *semaphore.Weighted
	max, size int64
}

// take makes room for n more bytes of a message, and waits for it for at most
// InflightWait. It reports false if there is none, at once for a message that
// is larger than the bound by itself.
func (f *inflight) take(ctx context.Context, r *room, n int64) bool {
	if r.sem == nil {
		f.mu.Lock()
		r.sem, r.max = f.sem, f.max
		f.mu.Unlock()
		if r.sem == nil {
			return true
		}
	}
	if r.size+n > r.max {
		return false
	}
	if !r.sem.TryAcquire(n) {
		ctx, cancel := context.WithTimeout(ctx, InflightWait)
		defer cancel()
		if r.sem.Acquire(ctx, n) != nil {
			return false
		}
	}
	r.size += n
	return true
}

// give frees the room.
func (r *room) give() {
	if r.sem != nil && r.size > 0 {
		r.sem.Release(r.size)
	}
	*r = room{}
}
