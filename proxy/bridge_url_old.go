package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"
)

// An oldServer is one that speaks HTTP+SSE (2024-11-05): all that it says comes
// on one event stream, of which the first event names the URL that messages are
// posted to. Without the stream there is no session.
type oldServer struct {
	endpoint *url.URL
	ended    bool // guarded by the remote's lock
}

// endpointWait is how long a server may take to name its endpoint.
const endpointWait = 15 * time.Second

// maybeOld reports whether a refusal of initialize may come from a server that
// speaks HTTP+SSE alone. A modern one says so in its error.
func maybeOld(status int, text []byte) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		code := errorCode(text)
		return code > codeHeaderMismatch || code < codeHeaderMismatch-9
	}
	return false
}

// connectOld opens the stream of HTTP+SSE, and waits for the endpoint.
func (r *remote) connectOld(ctx context.Context) error {
	streamCtx, cancel := context.WithCancel(r.ctx)
	timer := time.AfterFunc(endpointWait, cancel)
	stop := context.AfterFunc(ctx, cancel)
	res, err := r.openOld(streamCtx)
	if err != nil {
		cancel()
		return err
	}
	endpoint := make(chan string, 1)
	ended := make(chan struct{})
	s := &oldServer{}
	r.loops.Go(func() {
		defer cancel()
		defer res.Body.Close()
		r.readOld(streamCtx, res, endpoint)
		close(ended)
		r.endOld(s)
	})
	var name string
	select {
	case name = <-endpoint:
	case <-ended:
		return errors.New("the server's event stream names no endpoint")
	}
	timer.Stop()
	stop()
	if s.endpoint, err = r.endpointURL(res.Request.URL, name); err != nil {
		cancel()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-ended:
		s.ended = true
	default:
	}
	r.old = s
	return nil
}

func (r *remote) openOld(ctx context.Context) (*http.Response, error) {
	res, err := r.get(ctx, "")
	if err != nil {
		return nil, err
	}
	if !success(res.StatusCode) || mediaType(res.Header) != typeEvents {
		res.Body.Close()
		return nil, fmt.Errorf("the server answered %s to a GET", res.Status)
	}
	return res, nil
}

// readOld carries the messages of the stream, to its end.
func (r *remote) readOld(ctx context.Context, res *http.Response, endpoint chan<- string) {
	e := remoteEvents{at: &position{}, skim: r.tooLarge}
	e.each = func(name string, data []byte) {
		switch name {
		case "endpoint":
			select {
			case endpoint <- string(bytes.TrimSpace(data)):
			default: // it does not move
			}
		case "", "message":
			if err := r.deliver(data, nil); err != nil {
				r.log().Warn("an event of the server is no message and was not passed on", zap.Error(err), zap.Int("bytes", len(data)))
			}
		}
	}
	if err := e.read(ctx, plainBody(res), r.proxy); err != nil && ctx.Err() == nil {
		r.log().Warn("the server's event stream broke off", zap.Error(err))
	}
}

// endOld answers the calls under way when the stream has ended: no answer can
// come any more.
func (r *remote) endOld(s *oldServer) {
	r.mu.Lock()
	s.ended = true
	current, generation := r.old == s, r.session.generation
	r.mu.Unlock()
	if current && r.ctx.Err() == nil {
		r.abandon(generation)
	}
}

// endpointURL is where messages are posted. Elsewhere than on the server's
// origin they are not: they may carry credentials.
func (r *remote) endpointURL(base *url.URL, reference string) (*url.URL, error) {
	to, err := base.Parse(reference)
	if err != nil || to.User != nil || to.Opaque != "" {
		return nil, fmt.Errorf("the server's endpoint %s is no URL", inQuotes(reference))
	}
	if canonicalOrigin(originOf(to)) != canonicalOrigin(originOf(base)) {
		return nil, fmt.Errorf("the server's endpoint %s is on another origin, where nothing is sent", inQuotes(originOf(to)))
	}
	return to, nil
}
