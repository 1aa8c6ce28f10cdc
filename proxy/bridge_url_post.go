package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A post is one message on its way to the server, with all that answers it.
type post struct {
	body     []byte
	kind     rewrite.Kind
	method   string
	revision string        // declared in _meta, of a modern request
	name     string        // what a modern request is for: a name, a URI, or a task's id
	counts   bool          // the end waits for its answer
	call     bool          // a request is in it
	answers  []givenAnswer // to requests of the server, more than one in a batch
	answered []*call       // what it answers, open until it has arrived
	sink     chan<- []byte // gets the response, instead of the client; has room for one
	again    bool          // it makes a lost session anew
	session  string        // Mcp-Session-Id, if it is again
	ctx      context.Context
	cancel   context.CancelFunc
	sent     func()        // it has left, or will not leave
	done     chan struct{} // closed when nothing is awaited any more
	finish   func()
	room     room

	// Guarded by the remote's lock.
	waits      map[string][]byte // ids of the requests in it that have no response yet
	began      bool              // its answer has begun
	counted    bool              // it is one of the pending
	generation int               // of the session that it was sent in
	over       bool              // its answers have arrived, or never will
	status     int               // of the server's last answer to it, 0 if there was none
	renewed    bool              // it was turned away, and is sent once more in a new session
	logins     int               // how often credentials were asked for
	linger     *time.Timer       // ends its stream; set once nothing is awaited any more

	// What was tried for it already.
	moved  bool // to where the server redirects
	listed bool // after tools/list, with other headers
}

func (p *post) isModern() bool { return p.revision >= revisionModern }

// newPost reads what has to be known of a message to send it.
func (r *remote) newPost(message []byte) *post {
	p := &post{body: bytes.Clone(message), counts: true, sent: func() {}, done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	p.finish = sync.OnceFunc(func() { r.finished(p) })
	r.mu.Lock()
	p.generation = r.session.generation
	r.mu.Unlock()
	env, err := rewrite.Scan(p.body)
	if err != nil { // handle has let it pass, so it is one
		return p
	}
	p.kind, p.method = env.Kind, env.Method
	switch env.Kind {
	case rewrite.KindRequest:
		p.note(p.body, env)
		p.counts = p.method != "subscriptions/listen"
		p.mirror(env)
	case rewrite.KindNotification:
		p.mirror(env)
	case rewrite.KindResult, rewrite.KindError:
		p.note(p.body, env)
	case rewrite.KindBatch:
		for element, e := range messagesIn(p.body) {
			p.note(element, e)
		}
	}
	return p
}

// note notes what a message of the post waits for, or answers.
func (p *post) note(message []byte, env rewrite.Envelope) {
	id := env.ID.Of(message)
	switch env.Kind {
	case rewrite.KindRequest:
		p.call = true
		if p.waits == nil {
			p.waits = make(map[string][]byte)
		}
		p.waits[canonicalID(id)] = id
	case rewrite.KindResult, rewrite.KindError:
		p.answers = append(p.answers, givenAnswer{id, env.Kind})
	}
}

// finished is what finish does, once.
func (r *remote) finished(p *post) {
	close(p.done)
	r.mu.Lock()
	if p.counted {
		if r.pending--; r.pending == 0 && r.idle != nil {
			close(r.idle)
			r.idle = nil
		}
	}
	// What the server still sends of it is read for a while, which also lets
	// the connection be used again.
	p.linger = time.AfterFunc(afterAnswer, p.cancel)
	r.mu.Unlock()
}

// run sends a message and carries what answers it.
func (r *remote) run(p *post) {
	defer p.sent()
	defer p.room.give()
	err := r.exchange(p)
	switch {
	case err != nil:
		r.refuse(p, err)
	case !p.call:
		p.finish()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.linger != nil { // nothing more is awaited, and nothing more comes
		p.linger.Stop()
		p.cancel()
	}
}

// exchange sends a message, again if there is a reason that lets it succeed
// then. An error is one for whoever waits for the answer.
func (r *remote) exchange(p *post) error {
	for failed := 0; ; {
		if err := r.ready(p); err != nil {
			return err
		}
		again, passing, err := r.attempt(p)
		switch {
		case again:
		case passing && failed < maxRepeats && pause(p.ctx, backoff(0, failed)):
			failed++
		default:
			return err
		}
	}
}

// attempt sends a message once. It reports whether it is to be sent once more
// at once, and if not, whether that may help later.
func (r *remote) attempt(p *post) (again, passing bool, err error) {
	res, err := r.send(p)
	if err != nil {
		r.answeredWith(p, 0)
		return false, p.isPassing(0, err), r.unreachable(p, err)
	}
	defer res.Body.Close()
	r.answeredWith(p, res.StatusCode)
	again, err = r.answered(p, res)
	return again, p.isPassing(res.StatusCode, err), err
}

func (r *remote) answeredWith(p *post, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.status = status
}

// send makes one POST.
func (r *remote) send(p *post) (*http.Response, error) {
	ctx, cancel := p.ctx, context.CancelFunc(func() {})
	if !p.call || p.method == "initialize" || p.method == "server/discover" {
		ctx, cancel = context.WithTimeout(ctx, handshakeTimeout)
	}
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { p.sent() }}
	to, header, err := r.address(p)
	if err != nil {
		cancel()
		return nil, err
	}
	// A reader in memory can be sent again where a connection turns out to be dead.
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodPost, to.String(), bytes.NewReader(p.body))
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header = header
	res, err := r.http.Do(req)
	if err != nil {
		cancel()
		return nil, err
	}
	res.Body = &cancelBody{res.Body, cancel}
	return res, nil
}

// A cancelBody ends its request when it is closed.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelBody) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}

// answered looks at the answer to a POST. It reports whether the message is to
// be sent once more.
func (r *remote) answered(p *post, res *http.Response) (again bool, err error) {
	switch status := res.StatusCode; {
	case success(status):
		return false, r.take(p, res)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return r.authorize(p, res)
	case redirects(status):
		return r.redirected(p, res)
	}
	text, err := io.ReadAll(io.LimitReader(plainBody(res), maxRefusal))
	if err != nil {
		return false, r.unreachable(p, err)
	}
	switch {
	case r.isLost(p, res.StatusCode, text):
		if p.renewed {
			return false, errors.New("the server does not know the session that it has just made")
		}
		r.mu.Lock()
		p.renewed = true
		r.mu.Unlock()
		err := r.renew(p.ctx, p.generation)
		return err == nil, err
	case p.method == "initialize" && maybeOld(res.StatusCode, text):
		if err := r.connectOld(p.ctx); err == nil {
			return true, nil
		} else if p.ctx.Err() != nil {
			return false, err
		}
	case p.method == "tools/call" && p.isModern() && !p.listed && errorCode(text) == codeHeaderMismatch:
		p.listed = true
		if r.relist(p) {
			return true, nil
		}
	}
	return false, r.refused(p, res, text)
}

// maxRefusal is how much of an answer that is an HTTP error is read, in bytes.
const maxRefusal = 1 << 20

// take carries the answer of a server that has taken the message.
func (r *remote) take(p *post, res *http.Response) error {
	r.begin(p, res.Header.Get(headerSession))
	r.delivered(p)
	if !p.call {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRefusal)) // so that the connection can be used again
		if p.method == "notifications/initialized" && !p.again {
			r.initialized(p)
		}
		return nil
	}
	if res.StatusCode == http.StatusAccepted || res.StatusCode == http.StatusNoContent {
		if r.answersElsewhere() {
			return nil
		}
		return fmt.Errorf("the server answered %s, and there is no stream on which the answer could come", res.Status)
	}
	body, err := decode(res.Body, res.Header["Content-Encoding"])
	if err != nil {
		return fmt.Errorf("the server's answer can't be read: %w", err)
	}
	defer body.Close()
	switch {
	case mediaType(res.Header) == typeEvents:
		return r.follow(p, body)
	case isJSON(res.Header), mediaType(res.Header) == "":
		return r.takeJSON(p, body, res.ContentLength)
	}
	return fmt.Errorf("the server answered with %s, which is neither JSON nor an event stream; check that the URL is the one of the MCP endpoint", inQuotes(res.Header.Get("Content-Type")))
}

// takeJSON carries an answer that is one text.
func (r *remote) takeJSON(p *post, body io.Reader, length int64) error {
	taken := room{answers: true}
	defer taken.give()
	data, err := r.proxy.readBody(p.ctx, body, length, &taken)
	switch {
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("the server's answer is larger than the largest message allowed, %s (--max-message)", sizeText(r.proxy.maxMessage()))
	case errors.Is(err, errFull):
		return errNoRoom
	case err != nil && p.ctx.Err() == nil:
		return brokeOff(p, err)
	case err != nil:
		return r.unreachable(p, err)
	}
	if text := bytes.TrimSpace(data); len(text) == 0 || string(text) == "null" {
		if r.answersElsewhere() {
			return nil
		}
		return errors.New("the server's answer is empty")
	}
	if err := r.deliver(data, p); err != nil {
		return fmt.Errorf("the server's answer is no message (%w)", err)
	}
	if r.waiting(p) {
		return errors.New("the server's answer is not the one to this request: it has another id")
	}
	return nil
}

// redirected follows a redirect that stays on the server's origin, for this
// message and all that come after it. One that leads elsewhere is not followed:
// what is sent, credentials too, is for the server that the URL names.
func (r *remote) redirected(p *post, res *http.Response) (again bool, err error) {
	to, err := res.Location()
	if err != nil {
		return false, fmt.Errorf("the server answered %s without saying where to", res.Status)
	}
	from := res.Request.URL
	if canonicalOrigin(originOf(to)) != canonicalOrigin(originOf(from)) {
		return false, fmt.Errorf("the server redirects to %s, where nothing is sent; give that URL instead if it is the right one", inQuotes(originOf(to)+to.Path))
	}
	if p.moved {
		return false, errors.New("the server redirects again and again")
	}
	p.moved = true
	r.mu.Lock()
	r.url = to
	r.mu.Unlock()
	return true, nil
}

// settle notes what a message of the server answers. It returns the message,
// changed where a tool may not pass; the posts of which nothing more is
// awaited; and whether the message was one for us.
func (r *remote) settle(data []byte, env rewrite.Envelope) (now []byte, over []*post, kept bool) {
	switch env.Kind {
	case rewrite.KindResult, rewrite.KindError:
	case rewrite.KindBatch:
		for at := range rewrite.Elements(data, arrayAt(data)) {
			element := at.Of(data)
			if e, err := rewrite.Scan(element); err == nil && e.Kind != rewrite.KindBatch {
				_, o, _ := r.settle(element, e)
				over = append(over, o...)
			}
		}
		return data, over, false
	default:
		return data, nil, false
	}
	key := canonicalID(env.ID.Of(data))
	r.mu.Lock()
	p := r.open[key]
	if p == nil {
		r.mu.Unlock()
		return data, nil, false
	}
	delete(r.open, key)
	delete(p.waits, key)
	if len(p.waits) == 0 {
		over = append(over, p)
	}
	r.mu.Unlock()
	if env.Kind == rewrite.KindResult {
		data = r.learn(p, data, env)
	}
	if p.sink != nil {
		p.sink <- bytes.Clone(data)
		return data, over, true
	}
	return data, over, false
}

// learn notes what a result says that later messages have to know.
func (r *remote) learn(p *post, data []byte, env rewrite.Envelope) []byte {
	switch {
	case p.method == "initialize":
		at, _ := rewrite.Lookup(data, env.Result, "protocolVersion")
		revision, _ := rewrite.String(data, at)
		r.agree(p, revision)
	case p.method == "tools/list" && p.isModern():
		return r.tools.learn(data, env, func(tool, why string) {
			r.log().Warn("a tool was left out of tools/list", zap.String("tool", tool), zap.String("why", why))
		})
	}
	return data
}

// waiting reports whether a response is still awaited.
func (r *remote) waiting(p *post) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(p.waits) > 0
}

// refuse answers what is still awaited of a post with an error.
func (r *remote) refuse(p *post, why error) {
	r.mu.Lock()
	waits := p.waits
	p.waits = nil
	for key := range waits {
		if r.open[key] == p {
			delete(r.open, key)
		}
	}
	r.mu.Unlock()
	if !p.call && r.ctx.Err() == nil {
		r.log().Warn("a message did not reach the server", zap.String("method", p.method), zap.ByteStrings("answers", idsOf(p.answers)), zap.Error(why))
	}
	r.undelivered(p, why)
	for _, id := range waits {
		answer := answerOf(id, why)
		if p.sink != nil {
			p.sink <- answer
			continue
		}
		_ = r.deliver(answer, nil) // it is a message
	}
	p.finish()
	p.cancel() // there may be a stream still
}

// givesUp deals with the calls that a message of the client gives up. It
// reports true if that is all: in the modern era a call is cancelled by closing
// its stream.
func (r *remote) givesUp(p *post) bool {
	switch {
	case p.method == "notifications/cancelled":
		env, err := rewrite.Scan(p.body)
		return err == nil && r.cancelled(p.body, env)
	case p.kind == rewrite.KindBatch: // of an era in which the server is told
		for element, env := range messagesIn(p.body) {
			if env.Method == "notifications/cancelled" {
				r.cancelled(element, env)
			}
		}
	}
	return false
}

// cancelled is givesUp for one notification.
func (r *remote) cancelled(message []byte, env rewrite.Envelope) bool {
	at, _ := rewrite.Lookup(message, env.Params, "requestId")
	key := canonicalID(at.Of(message))
	r.mu.Lock()
	call, legacy := r.open[key], r.session.revision != ""
	if call != nil {
		delete(r.open, key)
		delete(call.waits, key)
	}
	over := call != nil && len(call.waits) == 0
	r.mu.Unlock()
	if call == nil {
		return !legacy
	}
	if over {
		call.finish()
	}
	if call.isModern() {
		call.cancel()
	}
	return call.isModern()
}

// plainBody is the body of an answer, as it came where it can't be decoded.
func plainBody(res *http.Response) io.Reader {
	body, err := decode(res.Body, res.Header["Content-Encoding"])
	if err != nil {
		return strings.NewReader("")
	}
	return body
}
