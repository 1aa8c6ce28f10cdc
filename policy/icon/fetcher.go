package icon

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Fetcher makes small PNGs of icons. Its zero value decodes nothing, so that
// every icon fails with [ReasonNoWorker] and no connection is made; set Worker.
// It starts nothing, neither goroutine nor process, before the first icon. The
// fields must not change after the first call; the methods may be called at
// any time from any goroutine.
//
// Each bound's zero value is its default, and a negative one is no bound, save
// where the field says otherwise.
type Fetcher struct {
	// Worker is the command that decodes: a program and its arguments that
	// calls [RunWorker] on its standard input and output.
	Worker []string

	// AllowPrivate lets icons come from private and special addresses too,
	// for tests and intranets. Cloud metadata servers stay out of reach.
	AllowPrivate bool
	// AllowHTTP lets icons come over plain http.
	AllowHTTP bool
	// RootCAs are the certificate authorities that are trusted. Nil is the
	// system's, which SSL_CERT_FILE and SSL_CERT_DIR of the environment override
	// on Unix systems other than macOS, as [x509.SystemCertPool] says.
	RootCAs *x509.CertPool
	// Resolver looks names up. Nil is [net.DefaultResolver].
	Resolver *net.Resolver

	ResolveTimeout time.Duration // the name look-up; default 1 s
	ConnectTimeout time.Duration // a connection to any of the addresses; default 1 s
	TLSTimeout     time.Duration // the TLS handshake; default 1 s
	HeaderTimeout  time.Duration // from the request's end to the response header's; default 1 s
	BodyTimeout    time.Duration // the body; default 2 s
	TotalTimeout   time.Duration // all of a fetch, redirects included; default 5 s
	QueueTimeout   time.Duration // the wait for a turn before it; default 30 s

	MaxRedirects int // redirects followed, all on one origin; default 3, negative is none
	MaxBytes     int // bytes of an icon as it comes; default 256 KiB, as is negative; at most 1 MiB

	Edge      int // the longer edge that goes out, in pixels; default 64, at most 128
	MaxIcon   int // bytes of an icon's data: URI as it goes out; default 24 KiB, as is negative
	MaxPixels int // pixels of an icon as it comes; default 4 Mi, as is negative

	MaxPending     int     // icons on their way at a time; default 4096
	MaxWaiting     int     // bytes of the icons that wait to be decoded; default 32 MiB
	MaxFetches     int     // fetches at a time; default 16
	MaxHostFetches int     // fetches from one host at a time; default 6
	Rate           float64 // fetches a second; default 50
	HostRate       float64 // fetches a second from one host; default 20

	MinTTL     time.Duration // an icon is kept at least so long, whatever its host says; default 1 min
	MaxTTL     time.Duration // and at most so long; default 24 h
	FailureTTL time.Duration // a failure is kept so long, and up to half as long again; default 1 min
	CacheSize  int           // bytes of all outcomes kept; default 8 MiB, negative keeps none

	Workers       int           // worker processes at a time; default 2, as is negative
	WorkerMemory  int64         // bytes that a worker may hold besides its start; default 128 MiB
	WorkerCPU     time.Duration // CPU time of a job, in whole seconds; default 2 s
	WorkerTimeout time.Duration // wall clock of a job; default 3 s
	WorkerIdle    time.Duration // an idle worker is ended after it; default 30 s

	// OnFetch and OnDecode, if not nil, are told of each fetch and each decoding
	// when it ends, from the goroutine that did it. They must not block.
	OnFetch  func(FetchInfo)
	OnDecode func(DecodeInfo)

	once sync.Once
	inner
}

// inner is a Fetcher's state.
type inner struct {
	base      context.Context // ended by Close
	stop      context.CancelFunc
	pool      *pool
	queue     *queue
	transport func() *http.Transport

	mu      sync.Mutex
	closed  bool
	wg      sync.WaitGroup // flights; Add under mu, unless closed
	cache   cache
	flights map[key]*Pending
	waiting int             // bytes that flights hold undecoded
	policy  context.Context // ended by Purge: what was begun before is void
	void    context.CancelCauseFunc
}

// An Image is an icon as it goes out: a PNG that we encoded.
type Image struct {
	URI           string // data:image/png;base64,…
	Width, Height int    // pixels
}

const pngPrefix = "data:image/png;base64,"

// Fetch returns the icon at url, which the policy has decided to inline, in
// its canonical form. declared is the icon's mimeType, "" if it has none.
//
// One fetch serves all who ask for the same icon at the same time, and its
// outcome is kept. ctx bounds the wait and not the fetch: when ctx ends first,
// Fetch returns a [*Pending], which Is [ErrPending] and can be waited for.
// Every other error is an [*Error].
func (f *Fetcher) Fetch(ctx context.Context, url, declared string) (Image, error) {
	return f.Begin(url, declared).Wait(ctx)
}

// Decode is Fetch for the data: URI that a server sent in an icon's place.
func (f *Fetcher) Decode(ctx context.Context, dataURI, declared string) (Image, error) {
	return f.Begin(dataURI, declared).Wait(ctx)
}

// Begin starts to make the icon at url, which may be a data: URI, and returns
// at once. A caller that has many icons begins them all before it waits for
// any.
func (f *Fetcher) Begin(url, declared string) *Pending {
	if len(f.Worker) == 0 {
		return ended(Image{}, fail(ReasonNoWorker, nil))
	}
	label, ok := declaredFormat(declared)
	if !ok {
		return ended(Image{}, fail(ReasonMismatch, nil))
	}
	if !isDataURI(url) {
		k := key{label, url}
		if p := f.known(k); p != nil {
			return p
		}
		return f.begin(k, 0, func(ctx context.Context) (Image, time.Duration, error) {
			return f.makeRemote(ctx, url, label)
		})
	}
	body, uriFormat, err := parseDataURI(url, f.maxBytes())
	if err != nil {
		return ended(Image{}, err)
	}
	if label != formatNone && label != uriFormat {
		return ended(Image{}, fail(ReasonMismatch, nil))
	}
	digest := sha256.Sum256(body)
	return f.begin(key{uriFormat, "data:" + string(digest[:])}, len(body), func(ctx context.Context) (Image, time.Duration, error) {
		m, err := f.decode(ctx, uriFormat, body, f.maxIcon())
		return m, duration(f.MaxTTL, defaultMaxTTL), err
	})
}

// Shrink returns m in at most maxBytes of data: URI, at a smaller edge if need
// be; a message's budget can ask for it. The outcome is kept like any other.
// It fails with [ReasonBudget] when no edge is small enough.
func (f *Fetcher) Shrink(ctx context.Context, m Image, maxBytes int) (Image, error) {
	return f.BeginShrink(m, maxBytes).Wait(ctx)
}

// BeginShrink is to Shrink what Begin is to Fetch.
func (f *Fetcher) BeginShrink(m Image, maxBytes int) *Pending {
	if len(m.URI) <= maxBytes {
		return ended(m, nil)
	}
	if len(f.Worker) == 0 {
		return ended(Image{}, fail(ReasonNoWorker, nil))
	}
	digest := sha256.Sum256([]byte(m.URI))
	k := key{formatPNG, strconv.Itoa(maxBytes) + ":" + string(digest[:])}
	return f.begin(k, len(m.URI), func(ctx context.Context) (Image, time.Duration, error) {
		body, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.URI, pngPrefix))
		if err != nil {
			return Image{}, 0, fail(ReasonDataURI, err)
		}
		small, err := f.decode(ctx, formatPNG, body, maxBytes)
		return small, duration(f.MaxTTL, defaultMaxTTL), err
	})
}

// Purge makes everything unusable that was made under the policy so far, the
// icons that are still on their way included: those fail with [ReasonPurged].
func (f *Fetcher) Purge() {
	f.once.Do(f.init)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cache.clear()
	clear(f.flights)
	f.void(fail(ReasonPurged, nil))
	f.policy, f.void = context.WithCancelCause(f.base)
}

// Close ends what is on its way, and the workers, and waits for them. Icons
// asked for afterwards fail with [ReasonClosed].
func (f *Fetcher) Close() error {
	f.once.Do(f.init)
	f.mu.Lock()
	f.closed = true
	f.void(fail(ReasonClosed, nil))
	f.mu.Unlock()
	f.stop()
	f.wg.Wait()
	f.pool.close()
	return nil
}

func (f *Fetcher) init() {
	f.base, f.stop = context.WithCancel(context.Background())
	f.policy, f.void = context.WithCancelCause(f.base)
	f.flights = make(map[key]*Pending)
	f.transport = sync.OnceValue(f.newTransport)
	f.queue = f.newQueue()
	f.cache.limit = count(f.CacheSize, defaultCacheSize)
	workers := f.Workers
	if workers <= 0 {
		workers = defaultWorkers
	}
	f.pool = &pool{
		command: f.Worker,
		wall:    duration(f.WorkerTimeout, defaultWorkerTimeout),
		idle:    duration(f.WorkerIdle, defaultWorkerIdle),
		memory:  f.workerMemory(),
		slots:   make(chan struct{}, workers),
	}
}
