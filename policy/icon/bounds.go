package icon

import (
	"strings"
	"time"
)

// The defaults of a Fetcher's bounds.
const (
	defaultResolveTimeout = 1 * time.Second
	defaultConnectTimeout = 1 * time.Second
	defaultTLSTimeout     = 1 * time.Second
	defaultHeaderTimeout  = 1 * time.Second
	defaultBodyTimeout    = 2 * time.Second
	defaultTotalTimeout   = 5 * time.Second
	defaultQueueTimeout   = 30 * time.Second
	defaultMaxRedirects   = 3
	defaultMaxBytes       = 256 << 10
	defaultEdge           = 64
	defaultMaxPixels      = 2048 * 2048
	defaultMaxIcon        = 24 << 10
	defaultMaxPending     = 4096
	defaultMaxWaiting     = 32 << 20
	defaultMaxFetches     = 16
	defaultMaxHostFetches = 6
	defaultRate           = 50
	defaultHostRate       = 20
	defaultMinTTL         = 1 * time.Minute
	defaultTTL            = 1 * time.Hour // where the host says nothing
	defaultMaxTTL         = 24 * time.Hour
	defaultFailureTTL     = 1 * time.Minute
	defaultCacheSize      = 8 << 20
	defaultWorkers        = 2
	defaultWorkerMemory   = 128 << 20
	defaultWorkerCPU      = 2 * time.Second
	defaultWorkerTimeout  = 3 * time.Second
	defaultWorkerIdle     = 30 * time.Second

	maxEdge = 128
)

func (f *Fetcher) edge() int     { return min(positive(f.Edge, defaultEdge), maxEdge) }
func (f *Fetcher) maxIcon() int  { return positive(f.MaxIcon, defaultMaxIcon) }
func (f *Fetcher) maxBytes() int { return min(positive(f.MaxBytes, defaultMaxBytes), 1<<20) }

func (f *Fetcher) workerMemory() uint64 {
	if f.WorkerMemory == 0 {
		return defaultWorkerMemory
	}
	return uint64(max(f.WorkerMemory, 0))
}

func isDataURI(url string) bool { return len(url) >= 5 && strings.EqualFold(url[:5], "data:") }

// count reads a number's field: 0 is the default, negative is 0.
func count(bound, byDefault int) int {
	if bound == 0 {
		return byDefault
	}
	return max(bound, 0)
}

// positive reads a number's field that cannot be off: 0 and negative are the
// default.
func positive(bound, byDefault int) int {
	if bound <= 0 {
		return byDefault
	}
	return bound
}

// duration reads a bound's field: 0 is the default, negative is none, which is
// returned as 0.
func duration(bound, byDefault time.Duration) time.Duration {
	if bound == 0 {
		return byDefault
	}
	return max(bound, 0)
}
