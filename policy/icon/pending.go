package icon

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrPending is what a [*Pending] is: the icon is still on its way.
var ErrPending = errors.New("icon: still on its way")

// A Pending is an icon on its way, or one that has arrived: of one fetch for
// all who asked. It is also the error that [Fetcher.Fetch] returns when the
// wait ended first:
//
//	m, err := fetcher.Fetch(ctx, url, mimeType)
//	if p, ok := errors.AsType[*icon.Pending](err); ok {
//		go func() {
//			<-p.Done()
//			if _, err := p.Result(); err == nil {
//				// a list that is asked for now has the icon
//			}
//		}()
//	}
type Pending struct {
	done  chan struct{}
	image Image // valid when done is closed
	err   error
}

// Error makes a Pending an error.
func (p *Pending) Error() string { return ErrPending.Error() }

// Is makes a Pending an [ErrPending].
func (p *Pending) Is(target error) bool { return target == ErrPending }

// Done is closed when the icon has arrived or failed.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Result returns the outcome once Done is closed; before that, p itself as the
// error.
func (p *Pending) Result() (Image, error) {
	select {
	case <-p.done:
		return p.image, p.err
	default:
		return Image{}, p
	}
}

// Wait returns the outcome, or p itself as the error if ctx ends first.
func (p *Pending) Wait(ctx context.Context) (Image, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return p.Result()
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// ended is a Pending that has arrived.
func ended(m Image, err error) *Pending { return &Pending{done: closedChannel, image: m, err: err} }

// known returns the outcome for k from the cache, or the flight that will bring
// it; nil if there is neither.
func (f *Fetcher) known(k key) *Pending {
	f.once.Do(f.init)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.find(k)
}

// find is known. The lock is held.
func (f *Fetcher) find(k key) *Pending {
	if f.closed {
		return ended(Image{}, fail(ReasonClosed, nil))
	}
	if p := f.cache.get(k, time.Now()); p != nil {
		return p
	}
	return f.flights[k]
}

// begin is known, and starts a flight if there is none. Of one key, one flight
// at a time makes the icon. It holds size bytes from the beginning.
func (f *Fetcher) begin(k key, size int, work func(context.Context) (Image, time.Duration, error)) *Pending {
	f.once.Do(f.init)
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.find(k); p != nil {
		return p
	}
	if most := count(f.MaxPending, defaultMaxPending); most > 0 && len(f.flights) >= most {
		return ended(Image{}, fail(ReasonBusy, nil))
	}
	if !f.hold(size) {
		return ended(Image{}, fail(ReasonBusy, nil))
	}
	p := &Pending{done: make(chan struct{})}
	f.flights[k] = p
	policy := f.policy
	f.wg.Go(func() {
		m, ttl, err := work(policy)
		f.release(size)
		f.land(policy, k, p, m, ttl, err)
	})
	return p
}

// hold takes room for an icon's undecoded bytes, which wait for a worker, and
// reports whether there is any. The lock is held.
func (f *Fetcher) hold(size int) bool {
	if most := count(f.MaxWaiting, defaultMaxWaiting); most > 0 && f.waiting+size > most {
		return false
	}
	f.waiting += size
	return true
}

func (f *Fetcher) release(size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting -= size
}

// land ends a flight: its outcome is kept and told, unless the policy under
// which it began is void.
func (f *Fetcher) land(policy context.Context, k key, p *Pending, m Image, ttl time.Duration, err error) {
	defer close(p.done)
	f.mu.Lock()
	defer f.mu.Unlock()
	if cause := context.Cause(policy); cause != nil {
		if ReasonOf(cause) == "" {
			cause = fail(ReasonClosed, nil)
		}
		p.err = cause
		return
	}
	delete(f.flights, k)
	if err != nil {
		p.err = brief(err)
		ttl = f.failureLifetime()
		if passing(err) {
			return
		}
	} else {
		p.image = m
	}
	f.cache.put(&entry{key: k, outcome: ended(p.image, p.err), expires: time.Now().Add(ttl)})
}

// passing says whether err speaks of the moment and not of the icon, and is
// not to be kept.
func passing(err error) bool { return ReasonOf(err) == ReasonBusy }

// maxErrorText bounds an error's text that is kept, in bytes.
const maxErrorText = 256

// brief keeps of err its reason and its text: some causes hold whole
// certificates.
func brief(err error) error {
	reason := ReasonOf(err)
	if reason == "" {
		reason = ReasonWorker
	}
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Err == nil {
		return &Error{Reason: reason}
	}
	return &Error{Reason: reason, Err: fmt.Errorf("%.*s", maxErrorText, e.Err.Error())}
}
