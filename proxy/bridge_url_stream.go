package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// How long to wait before an event stream is asked for again: the server's own
// retry if it gave one, else the first, and twice as long after each attempt
// that brought nothing, up to the last.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// maxResumes is how often in a row a call's stream may fail to come back before
// the call is given up.
const maxResumes = 5

// follow carries the event stream that answers a post, and goes on with it, as
// long as its answer is not there, where it breaks off and the server numbers
// its events.
func (r *remote) follow(p *post, body io.Reader) error {
	var at position
	err := r.events(p.ctx, body, &at, p)
	for failed := 0; r.waiting(p); {
		switch {
		case p.ctx.Err() != nil:
			return r.unreachable(p, p.ctx.Err())
		case p.isModern() || at.id == "":
			return brokeOff(p, err)
		case failed >= maxResumes:
			return fmt.Errorf("the stream of this call broke off and could not be taken up again: %w", withoutURL(err))
		}
		if !pause(p.ctx, backoff(at.retry, failed)) {
			continue
		}
		var res *http.Response
		if res, err = r.get(p.ctx, at.id); err != nil {
			failed++
			continue
		}
		switch {
		case success(res.StatusCode) && mediaType(res.Header) == typeEvents:
			before := at.id
			err = r.events(p.ctx, plainBody(res), &at, p)
			if failed++; err == nil || at.id != before {
				failed = 0
			}
		case res.StatusCode >= http.StatusInternalServerError, res.StatusCode == http.StatusTooManyRequests:
			err = fmt.Errorf("the server answered %s", res.Status)
			failed++
		default:
			res.Body.Close()
			return fmt.Errorf("the stream of this call broke off, and the server answered %s when asked for the rest; the call may have had its effect", res.Status)
		}
		res.Body.Close()
	}
	return nil
}

// brokeOff says that a stream ended without the answer.
func brokeOff(p *post, err error) error {
	switch {
	case p.method == "subscriptions/listen":
		return errors.New("the server ended the subscription's stream")
	case err == nil:
		return errors.New("the server ended the stream of this call before it answered; the call may have had its effect")
	}
	return fmt.Errorf("the connection to the server broke off before it answered (%s); the call may have had its effect", reason(err))
}

// events carries the messages of one event stream, which is that of a call, or
// for nil the server's own.
func (r *remote) events(ctx context.Context, body io.Reader, at *position, on *post) error {
	e := remoteEvents{at: at}
	e.each = func(name string, data []byte) {
		if name != "" && name != "message" {
			r.log().Debug("an event of another name was skipped", zap.String("event", name))
			return
		}
		if err := r.deliver(data, on); err != nil {
			r.log().Warn("an event of the server is no message and was not passed on", zap.Error(err), zap.Int("bytes", len(data)))
		}
	}
	e.skim = r.tooLarge
	return e.read(ctx, body, r.proxy)
}

// tooLarge answers for an event that was skipped.
func (r *remote) tooLarge(s rewrite.Skim) {
	text := "it is larger than the largest message allowed, " + sizeText(r.proxy.maxMessage()) + " (--max-message), or too many bytes are in flight (limits.max-inflight)"
	var p *post
	if s.Kind() == rewrite.KindResult {
		key := canonicalID(s.ID())
		r.mu.Lock()
		if p = r.open[key]; p != nil {
			delete(r.open, key)
			delete(p.waits, key)
			if len(p.waits) > 0 {
				p = nil
			}
		}
		r.mu.Unlock()
	}
	r.link.tooLarge(ToClient, &frame{tooLarge: text, skim: s})
	if p != nil {
		p.finish()
	}
}

// get asks for an event stream of the session, for the rest of one if after is
// the id of an event.
func (r *remote) get(ctx context.Context, after string) (*http.Response, error) {
	h := http.Header{"Accept": acceptEvents}
	r.mu.Lock()
	to := r.url
	setSession(h, r.session.id, r.session.revision)
	r.mu.Unlock()
	if after != "" {
		h.Set(headerLastEvent, after)
	}
	if err := r.credentials(ctx, h); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = h
	return r.http.Do(req)
}

// listen carries the stream on which the server speaks for itself, as long as
// the session lasts. A server without one says so by 405.
func (r *remote) listen(ctx context.Context, generation int) {
	defer r.setListening(generation, false)
	var at position
	had := false
	for failed := 0; ctx.Err() == nil; {
		res, err := r.get(ctx, at.id)
		if err != nil {
			r.log().Debug("the server's stream can't be opened", zap.Error(withoutURL(err)))
		} else {
			again := r.listenTo(ctx, generation, res, &at, &failed, &had)
			res.Body.Close()
			if !again {
				return
			}
		}
		r.setListening(generation, false)
		if !pause(ctx, backoff(at.retry, failed)) {
			return
		}
		failed++
	}
}

// listenTo reads an answer to listen's GET. It reports whether to ask again.
func (r *remote) listenTo(ctx context.Context, generation int, res *http.Response, at *position, failed *int, had *bool) bool {
	switch status := res.StatusCode; {
	case success(status) && mediaType(res.Header) == typeEvents:
		*had = true
		r.setListening(generation, true)
		opened := time.Now()
		_ = r.events(ctx, plainBody(res), at, nil)
		if time.Since(opened) > lastRetry || at.retry > 0 {
			*failed = 0
		}
		return true
	case status == http.StatusNotFound && *had:
		// r.ctx, since this stream ends with the session that is lost.
		if err := r.renew(r.ctx, generation); err != nil && r.ctx.Err() == nil {
			r.log().Warn("the session is lost", zap.Error(err))
		}
		return false
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return true
	case status == http.StatusUnauthorized && r.proxy.Authorizer != nil && *had:
		return r.proxy.Authorizer.Authorize(ctx, res) == nil
	case status != http.StatusMethodNotAllowed:
		r.log().Info("the server has no stream of its own", zap.String("status", res.Status))
	}
	return false
}

// backoff is how long to wait before an attempt, after so many that brought
// nothing.
func backoff(retry time.Duration, failed int) time.Duration {
	wait := firstRetry
	if retry > 0 {
		wait = retry
	}
	for range failed {
		if wait >= lastRetry {
			break
		}
		wait = min(2*wait, lastRetry)
	}
	if failed > 0 { // clients that lost the same server do not come back as one
		wait += rand.N(wait/4 + 1)
	}
	return wait
}

// pause waits, and reports false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
