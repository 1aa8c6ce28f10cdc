package icon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// making returns work that takes a while, counts and succeeds.
func making(made *atomic.Int64, takes, ttl time.Duration) func(context.Context) (Image, time.Duration, error) {
	return func(ctx context.Context) (Image, time.Duration, error) {
		n := made.Add(1)
		select {
		case <-time.After(takes):
			return Image{URI: fmt.Sprintf("%s%d", pngPrefix, n)}, ttl, nil
		case <-ctx.Done():
			return Image{}, 0, fail(ReasonConnect, ctx.Err())
		}
	}
}

func TestOneFlightForManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}}
		defer f.Close()
		var made atomic.Int64
		var waiters sync.WaitGroup
		for range 100 {
			waiters.Go(func() {
				m, err := f.begin(key{source: "key"}, 0, making(&made, time.Second, time.Hour)).Wait(t.Context())
				if err != nil || m.URI != pngPrefix+"1" {
					t.Errorf("%v %v", m, err)
				}
			})
		}
		waiters.Wait()
		if made.Load() != 1 {
			t.Errorf("made %d times", made.Load())
		}
	})
}

// TestWaitEndsFirst: the flight goes on into the cache, and the waiter can be
// told.
func TestWaitEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}}
		defer f.Close()
		var made atomic.Int64
		work := making(&made, 3*time.Second, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := f.begin(key{source: "key"}, 0, work).Wait(ctx)
		if !errors.Is(err, ErrPending) || ReasonOf(err) != "" || time.Since(start) != 500*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		p, ok := errors.AsType[*Pending](err)
		if !ok {
			t.Fatalf("%T", err)
		}
		if _, err := p.Result(); !errors.Is(err, ErrPending) {
			t.Errorf("a result before the end: %v", err)
		}
		<-p.Done()
		if m, err := p.Result(); err != nil || m.URI == "" || time.Since(start) != 3*time.Second {
			t.Errorf("%v %v after %v", m, err, time.Since(start))
		}
		if _, err := f.begin(key{source: "key"}, 0, work).Wait(ctx); err != nil { // ctx ended long ago: what is there needs no wait
			t.Error(err)
		}
		if made.Load() != 1 {
			t.Errorf("made %d times", made.Load())
		}
	})
}

func TestLifetime(t *testing.T) {
	f := &Fetcher{}
	for control, want := range map[string]time.Duration{
		"":                               time.Hour,
		"max-age=600":                    10 * time.Minute,
		"public, MAX-AGE=\"600\"":        10 * time.Minute,
		"max-age=31536000":               24 * time.Hour,
		"max-age=99999999999999999999":   time.Minute,
		"max-age=0":                      time.Minute,
		"max-age=-1":                     time.Minute,
		"max-age=x":                      time.Minute,
		"no-store":                       time.Minute,
		"max-age=600, no-cache":          time.Minute,
		"private, max-age=600":           time.Minute,
		"stale-while-revalidate=9999999": time.Hour,
	} {
		header := http.Header{}
		if control != "" {
			header.Set("Cache-Control", control)
		}
		if got := f.lifetime(header); got != want {
			t.Errorf("%q: %v, want %v", control, got, want)
		}
	}
	off := &Fetcher{MinTTL: -1, MaxTTL: -1}
	if got := off.lifetime(http.Header{"Cache-Control": {"max-age=31536000"}}); got != 365*24*time.Hour {
		t.Errorf("without a cap: %v", got)
	}
}

// TestOldUntilItExpires: new bytes at an old URL are not seen before, and go
// the whole way then.
func TestOldUntilItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}}
		defer f.Close()
		var made atomic.Int64
		work := making(&made, 0, time.Hour)
		for _, c := range []struct {
			sleep time.Duration
			want  string
		}{{0, "1"}, {time.Hour - 1, "1"}, {1, "2"}, {time.Minute, "2"}, {time.Hour, "3"}} {
			time.Sleep(c.sleep)
			m, err := f.begin(key{source: "key"}, 0, work).Wait(t.Context())
			if err != nil || m.URI != pngPrefix+c.want {
				t.Errorf("after %v: %v %v, want %s", c.sleep, m, err, c.want)
			}
		}
	})
}

// TestFailuresAreKept: a storm of requests for what fails is one fetch a
// minute and not all of them at one moment.
func TestFailuresAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}}
		defer f.Close()
		var made atomic.Int64
		work := func(context.Context) (Image, time.Duration, error) {
			made.Add(1)
			return Image{}, time.Hour, fail(ReasonStatus, errors.New(strings.Repeat("x", 10_000)))
		}
		for range 59 {
			_, err := f.begin(key{source: "key"}, 0, work).Wait(t.Context())
			wantReason(t, err, ReasonStatus)
			if len(err.Error()) > 2*maxErrorText {
				t.Fatalf("an error of %d bytes is kept", len(err.Error()))
			}
			time.Sleep(time.Second)
		}
		if made.Load() != 1 {
			t.Errorf("made %d times in a minute", made.Load())
		}
		time.Sleep(31 * time.Second)
		_, _ = f.begin(key{source: "key"}, 0, work).Wait(t.Context())
		if made.Load() != 2 {
			t.Errorf("made %d times after 90 s", made.Load())
		}
	})
	distinct := map[time.Duration]bool{}
	for range 100 {
		ttl := (&Fetcher{}).failureLifetime()
		if ttl < time.Minute || ttl > 90*time.Second {
			t.Fatal(ttl)
		}
		distinct[ttl] = true
	}
	if len(distinct) < 50 {
		t.Errorf("%d lifetimes of 100 differ", len(distinct))
	}
}

// TestPurge: what was made, and what is being made, under the old policy is
// void at once.
func TestPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}}
		defer f.Close()
		var made atomic.Int64
		_, err := f.begin(key{source: "kept"}, 0, making(&made, 0, time.Hour)).Wait(t.Context())
		wantReason(t, err, "")
		flying := f.begin(key{source: "flying"}, 0, making(&made, time.Minute, time.Hour))
		// This one does not look at its context: it ends in time and must not count.
		stubborn := f.begin(key{source: "stubborn"}, 0, func(context.Context) (Image, time.Duration, error) {
			time.Sleep(time.Minute)
			return Image{URI: "old"}, time.Hour, nil
		})
		synctest.Wait()
		f.Purge()
		_, err = flying.Wait(t.Context())
		wantReason(t, err, ReasonPurged)
		m, err := f.begin(key{source: "stubborn"}, 0, making(&made, 0, time.Hour)).Wait(t.Context())
		wantReason(t, err, "")
		if m.URI == "old" {
			t.Error("the new policy got the old icon")
		}
		_, err = stubborn.Wait(t.Context())
		wantReason(t, err, ReasonPurged)
		if again, _ := f.begin(key{source: "stubborn"}, 0, making(&made, 0, time.Hour)).Wait(t.Context()); again != m {
			t.Errorf("%v after the old flight ended, want %v", again, m)
		}
		before := made.Load()
		_, err = f.begin(key{source: "kept"}, 0, making(&made, 0, time.Hour)).Wait(t.Context())
		wantReason(t, err, "")
		if made.Load() != before+1 {
			t.Error("the old icon was kept")
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}}
		var made atomic.Int64
		p := f.begin(key{source: "key"}, 0, making(&made, time.Hour, time.Hour))
		synctest.Wait()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := p.Result()
		wantReason(t, err, ReasonClosed)
		_, err = f.Fetch(t.Context(), "https://cdn.example.com/", "")
		wantReason(t, err, ReasonClosed)
		f.Purge()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
	var never Fetcher
	never.Close()
}

func TestMaxPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Worker: []string{"unused"}, MaxPending: 2}
		defer f.Close()
		var made atomic.Int64
		for i, want := range []Reason{"", "", ReasonBusy} {
			_, err := f.begin(key{source: fmt.Sprint(i)}, 0, making(&made, time.Hour, time.Hour)).Result()
			if ReasonOf(err) != want {
				t.Errorf("%d: %v, want %q", i, err, want)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		_, err := f.begin(key{source: "2"}, 0, making(&made, 0, time.Hour)).Wait(t.Context())
		wantReason(t, err, "") // being busy was not kept
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := cache{limit: 10 * (entryOverhead + 101)}
	now := time.Now()
	add := func(source string, size int) {
		c.put(&entry{key: key{source: source}, outcome: ended(Image{URI: strings.Repeat("x", size)}, nil), expires: now.Add(time.Hour)})
	}
	has := func(source string, now time.Time) bool { return c.get(key{source: source}, now) != nil }
	for i := range 10 {
		add(fmt.Sprint(i), 100)
	}
	has("0", now) // used: 1 is now the oldest
	add("x", 100)
	if !has("0", now) || has("1", now) || len(c.entries) != 10 || c.size > c.limit {
		t.Errorf("%d entries, %d bytes of %d", len(c.entries), c.size, c.limit)
	}
	add("x", 500)
	if c.size > c.limit || len(c.entries) >= 10 {
		t.Errorf("%d entries, %d bytes of %d", len(c.entries), c.size, c.limit)
	}
	add("huge", 1<<20)
	if has("huge", now) || !has("x", now) {
		t.Error("what is larger than the cache took its place")
	}
	if has("x", now.Add(time.Hour)) {
		t.Error("an entry outlived its time")
	}
	c.clear()
	if c.size != 0 || len(c.entries) != 0 || c.recent.Len() != 0 {
		t.Errorf("%d bytes, %d entries after clear", c.size, len(c.entries))
	}
}

// TestQueue: so many at a time, in all and for each host, and no dead host
// holds up another.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := (&Fetcher{MaxFetches: 3, MaxHostFetches: 2, QueueTimeout: time.Second, Rate: -1, HostRate: -1}).newQueue()
		turn := func(host string, want Reason) func() {
			t.Helper()
			release, err := q.turn(t.Context(), host)
			if ReasonOf(err) != want || want == "" && err != nil {
				t.Fatalf("%s: %v, want %q", host, err, want)
			}
			return release
		}
		dead := turn("dead", "")
		turn("dead", "")
		turn("dead", ReasonBusy)
		turn("live", "")
		turn("third", ReasonBusy) // three in all
		dead()
		turn("third", "")
	})
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := (&Fetcher{MaxFetches: -1, MaxHostFetches: -1, QueueTimeout: -1, Rate: 10, HostRate: 1}).newQueue()
		start := time.Now()
		for range 13 {
			release, err := q.turn(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second { // 3 at once, then 1 a second
			t.Errorf("13 turns at one host took %v", took)
		}
		start = time.Now()
		for i := range 121 {
			release, err := q.turn(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		if took := time.Since(start); took < 9*time.Second || took > 11*time.Second { // 21 at once, then 10 a second
			t.Errorf("121 turns took %v", took)
		}
		for i := range 10 * maxHosts {
			q.leave(q.enter(fmt.Sprint("h", i)))
		}
		if len(q.hosts) > maxHosts {
			t.Errorf("%d hosts are remembered", len(q.hosts))
		}
	})
}

func TestDuration(t *testing.T) {
	for _, c := range [][3]time.Duration{{0, 5, 5}, {3, 5, 3}, {-1, 5, 0}} {
		if got := duration(c[0], c[1]); got != c[2] {
			t.Errorf("%v by default %v: %v, want %v", c[0], c[1], got, c[2])
		}
	}
}
