package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A remoteSession is what client and server have agreed on by initialize
// (before 2026-07-28).
type remoteSession struct {
	id         string // Mcp-Session-Id; empty if the server keeps none
	revision   string // negotiated; empty before that
	generation int    // how often it was made anew

	// What the client said to make it, to be said again.
	initialize, initialized []byte

	cancel    context.CancelFunc // ends listen; nil: it does not run
	listening bool               // the server's own stream is open
}

// begin notes that a POST is being answered.
func (r *remote) begin(p *post, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.began = true
	if p.method != "initialize" {
		return
	}
	if p.again {
		p.session = session
		return
	}
	r.session.id, r.session.initialize = session, p.body
}

// agree notes what an initialize result says.
func (r *remote) agree(p *post, revision string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.again {
		r.session.revision = revision
	}
}

// initialized notes that the session is there, and opens the server's stream.
// It returns once that has been asked for, so that what the client says next
// does not overtake it.
func (r *remote) initialized(p *post) {
	r.mu.Lock()
	r.session.initialized = p.body
	var sent <-chan struct{}
	if r.session.cancel == nil && !p.isModern() {
		sent = r.startListen()
	}
	r.mu.Unlock()
	if sent == nil {
		return
	}
	select {
	case <-sent:
	case <-time.After(ackWait):
	case <-r.ctx.Done():
	}
}

// startListen opens the server's stream. sent is closed when it has been asked
// for. The lock is held.
func (r *remote) startListen() (sent <-chan struct{}) {
	if r.old != nil || r.closed {
		return nil
	}
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(r.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { once() },
	}))
	r.session.cancel = cancel
	generation := r.session.generation
	r.loops.Go(func() {
		defer once()
		r.listen(ctx, generation)
	})
	return asked
}

func (r *remote) setListening(generation int, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session.generation == generation {
		r.session.listening = on
	}
}

// answersElsewhere reports whether an answer may come on another stream than
// that of the POST.
func (r *remote) answersElsewhere() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.old != nil || r.session.listening
}

// isLost reports whether a refusal says that the server does not know the
// session: 404 by the specification, and what servers that follow the examples
// of the official SDKs say, 400 with an error that speaks of it. Either way,
// the server has not looked at the message.
func (r *remote) isLost(p *post, status int, text []byte) bool {
	if p.isModern() || p.method == "initialize" {
		return false
	}
	r.mu.Lock()
	kept := r.session.id != "" || r.old != nil
	r.mu.Unlock()
	switch {
	case !kept:
		return false
	case status == http.StatusNotFound:
		return errorCode(text) != codeMethodNotFound
	case status == http.StatusBadRequest:
		return errorCode(text) == codeServer && bytes.Contains(bytes.ToLower(text), []byte("session"))
	}
	return false
}

// ready makes a session that is known to be lost anew before p is sent in it.
func (r *remote) ready(p *post) error {
	if p.isModern() || p.again {
		return nil
	}
	r.mu.Lock()
	generation, lost := r.session.generation, r.old != nil && r.old.ended
	r.mu.Unlock()
	switch {
	case !lost:
		return nil
	case p.method == "initialize":
		return r.connectOld(p.ctx)
	}
	return r.renew(p.ctx, generation)
}

// renew makes a lost session anew, unless that has been done since.
func (r *remote) renew(ctx context.Context, generation int) error {
	r.renewing.Lock()
	defer r.renewing.Unlock()
	r.mu.Lock()
	lost := r.session
	isOld := r.old != nil
	r.mu.Unlock()
	if lost.generation != generation {
		return nil
	}
	r.abandon(generation)
	if lost.initialize == nil || lost.initialized == nil {
		return errors.New("the server has lost the session; start it again")
	}
	if isOld {
		if err := r.connectOld(ctx); err != nil {
			return fmt.Errorf("the connection to the server is lost, and there is no new one: %w", err)
		}
	}
	id, revision, err := r.initializeAgain(ctx, lost)
	if err != nil {
		return fmt.Errorf("the server has lost the session, and made no new one: %w", err)
	}
	if revision != lost.revision {
		return fmt.Errorf("the server has lost the session, and speaks revision %s now instead of %s; start the session again", inQuotes(revision), inQuotes(lost.revision))
	}
	p := r.newPost(lost.initialized)
	p.again, p.session = true, id
	defer p.cancel()
	if err := r.exchange(p); err != nil {
		return fmt.Errorf("the server does not take up its new session: %w", err)
	}
	r.log().Warn("the server had lost the session; a new one was made, without the client's subscriptions and log level")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session.id = id
	r.session.generation++
	r.session.listening = false
	r.startListen()
	return nil
}

// initializeAgain says once more what the client said to begin the session, and
// returns the session's id and the revision that the server answers with.
func (r *remote) initializeAgain(ctx context.Context, lost remoteSession) (id, revision string, err error) {
	env, err := rewrite.Scan(lost.initialize)
	if err != nil {
		return "", "", err
	}
	var e rewrite.Edits
	e.Replace(env.ID, []byte(`"mcp-refit-initialize-`+strconv.Itoa(lost.generation+1)+`"`))
	p := r.newPost(e.Apply(lost.initialize))
	answer := make(chan []byte, 1)
	p.again, p.sink = true, answer
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	timer := time.AfterFunc(handshakeTimeout, p.cancel)
	defer timer.Stop()
	r.mu.Lock()
	for key := range p.waits {
		r.open[key] = p
	}
	r.mu.Unlock()
	r.run(p)
	select {
	case <-p.done:
	case <-p.ctx.Done(): // on HTTP+SSE, the answer comes on the stream
		r.refuse(p, errors.New("it does not answer"))
	}
	response := <-answer
	if env, err = rewrite.Scan(response); err != nil {
		return "", "", err
	}
	if env.Kind != rewrite.KindResult {
		at, _ := rewrite.Lookup(response, env.Error, "message")
		text, _ := rewrite.String(response, at)
		return "", "", errors.New(strings.TrimPrefix(text, "mcp-refit: "))
	}
	at, _ := rewrite.Lookup(response, env.Result, "protocolVersion")
	revision, _ = rewrite.String(response, at)
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.session, revision, nil
}

// errLost is what a call is told of which nobody knows whether it had an effect.
var errLost = errors.New("the server has lost the session before it answered; the call may have had its effect")

// abandon answers the calls of a lost session: those to which an answer has
// begun at once, the others if they are not answered, or turned away and sent
// again, soon.
func (r *remote) abandon(generation int) {
	r.mu.Lock()
	if r.session.cancel != nil {
		r.session.cancel()
	}
	r.mu.Unlock()
	r.dropQuestions()
	r.abandonIf(func(p *post) bool { return p.generation == generation && p.began })
	time.AfterFunc(lostGrace, func() {
		r.abandonIf(func(p *post) bool { return p.generation == generation && !p.renewed && p.logins == 0 })
	})
}

func (r *remote) abandonIf(is func(*post) bool) {
	var gone []*post
	seen := make(map[*post]bool)
	r.mu.Lock()
	for _, p := range r.open {
		if !p.isModern() && !p.again && is(p) && !seen[p] {
			seen[p] = true
			gone = append(gone, p)
		}
	}
	r.mu.Unlock()
	for _, p := range gone {
		r.refuse(p, errLost)
	}
}

// delete ends the session on the server.
func (r *remote) delete() {
	r.mu.Lock()
	to, session := r.url, r.session
	r.mu.Unlock()
	if session.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	h := make(http.Header)
	setSession(h, session.id, session.revision)
	if err := r.credentials(ctx, h); err != nil {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, to.String(), nil)
	if err != nil {
		return
	}
	req.Header = h
	res, err := r.http.Do(req)
	if err != nil {
		r.log().Debug("the session could not be deleted", zap.Error(withoutURL(err)))
		return
	}
	res.Body.Close() // 405 is allowed, and whatever else it says changes nothing
}
