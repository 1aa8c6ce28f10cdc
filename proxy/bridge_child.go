package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// Defaults of a ChildTransport.
const (
	DefaultChildPath    = "/mcp"
	DefaultChildren     = 64
	DefaultReplayEvents = 1024
	DefaultFullText     = "mcp-refit: too many sessions are open (limits.children); try again later"
)

// A ChildTransport is an http.RoundTripper that answers in the place of an MCP
// server at a URL: it is the server side of Streamable HTTP, in both eras, in
// front of servers that speak stdio. As the Transport of a Proxy it makes the
// bridge from an HTTP client to a child. It carries raw messages and changes
// nothing in them but, where two clients share a child, ids and tokens.
//
// Before 2026-07-28 each session has a child of its own, from its initialize to
// its DELETE, its idle time or the child's end. Requests of 2026-07-28, which
// are stateless, share one child; it is started with the first of them, and
// again if it dies. Their headers are checked against their bodies, the
// Mcp-Param ones of a call from when its tool was first listed: nothing else
// says which parameters have headers.
type ChildTransport struct {
	// Start starts a child. Its error is told to the client that waits.
	Start func() (*Child, error)

	// Path is the MCP endpoint. Empty is DefaultChildPath.
	Path string

	// ChildLimits are the bounds on sessions, where Limits is nil.
	ChildLimits
	// Limits, if not nil, gives the bounds on sessions. It is asked whenever one
	// is looked at, so that they may change while sessions go on.
	Limits func() ChildLimits
	// MaxMessage is the largest message of a child in bytes; negative is any. 0
	// is what the policy of Proxy says, at any time.
	MaxMessage int64
	// Proxy is whose bounds hold for messages of the children, too. nil: none does.
	Proxy *Proxy

	// Log is told of what goes wrong. nil: nobody.
	Log *zap.Logger
	// OnStray is given each line of a child's output that is no message.
	OnStray func(line []byte)
	// OnChildren is told how many children run, whenever that changes. It must
	// not wait.
	OnChildren func(running int)
	// OnSilentEnd is told how a child ended that sent no message and that we did
	// not end: it could not do its work. nil: nobody.
	OnSilentEnd func(how string)

	mu       sync.Mutex
	sessions map[string]*childSession
	shared   *sharedChild
	peers    map[*childPeer]struct{} // all that run
	running  int                     // children that run or are being started
	own      int                     // those of them that belong to a session
	closed   bool
	children sync.WaitGroup

	starting   sync.Mutex // held while the shared child is started; guards what follows
	startAgain time.Time
	delay      time.Duration
}

// ChildLimits are the bounds on the sessions of a [ChildTransport].
type ChildLimits struct {
	// Children is how many sessions may have a child at once. 0 is
	// DefaultChildren; negative is any number. The child that stateless requests
	// share does not count.
	Children int
	// FullText is what the client is told that wants one more. Empty is DefaultFullText.
	FullText string
	// Idle is how long a session may be silent, with no request and no GET
	// stream under way, and how long the shared child may be without a request.
	// It is looked at when the silence begins. 0 and less is for ever.
	Idle time.Duration
	// Lifetime is how long a session may last. It is looked at when the session
	// begins. 0 and less is for ever.
	Lifetime time.Duration
	// Replay is how many events of a stream are kept for a client that comes
	// back, and for one that is slow. It is looked at when the stream begins. 0
	// is DefaultReplayEvents; negative keeps none for clients that come back.
	Replay int
}

// limits are the bounds in force.
func (t *ChildTransport) limits() ChildLimits {
	if t.Limits != nil {
		return t.Limits()
	}
	return t.ChildLimits
}

// RoundTrip answers one request. It never fails: what goes wrong is said in
// the answer.
func (t *ChildTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	path := t.Path
	if path == "" {
		path = DefaultChildPath
	}
	if r.URL.Path != path {
		return respond(r, http.StatusNotFound, nil), nil
	}
	switch r.Method {
	case http.MethodPost:
		return t.post(r), nil
	case http.MethodGet:
		return t.get(r), nil
	case http.MethodDelete:
		return t.delete(r), nil
	}
	res := respond(r, http.StatusMethodNotAllowed, nil)
	res.Header.Set("Allow", "GET, POST, DELETE")
	return res, nil
}

// post takes a message from the client.
func (t *ChildTransport) post(r *http.Request) *http.Response {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return refuseHTTP(r, http.StatusBadRequest, nil, codeInvalidRequest, "mcp-refit: the body could not be read")
	}
	env, err := rewrite.Scan(body)
	switch {
	case errors.Is(err, rewrite.ErrNotMessage):
		return refuseHTTP(r, http.StatusBadRequest, nil, codeInvalidRequest, textNotMessage)
	case err != nil:
		return refuseHTTP(r, http.StatusBadRequest, nil, codeParse, textParse)
	}
	if isModern(r, body, env) {
		return t.postShared(r, body, env)
	}
	id := r.Header.Get(headerSession)
	switch {
	case env.Kind == rewrite.KindRequest && env.Method == "initialize":
		return t.open(r, body, env)
	case id == "":
		return refuseHTTP(r, http.StatusBadRequest, env.ID.Of(body), codeInvalidRequest, "mcp-refit: no "+headerSession+"; begin with initialize")
	}
	s := t.session(id)
	if s == nil {
		return refuseHTTP(r, http.StatusNotFound, env.ID.Of(body), codeInvalidRequest, textNoSession)
	}
	if v := r.Header.Get(headerVersion); !isLegacy(v) {
		return refuseHTTP(r, http.StatusBadRequest, env.ID.Of(body), codeInvalidRequest, "mcp-refit: "+headerVersion+" "+inQuotes(v)+" is no revision of the protocol")
	}
	return s.post(r, body, env)
}

const textNoSession = "mcp-refit: there is no such session (any more); begin again with initialize"

// isModern reports whether a request is of 2026-07-28 or later, by its header
// or by what its body declares.
func isModern(r *http.Request, body []byte, env rewrite.Envelope) bool {
	return r.Header.Get(headerVersion) >= revisionModern || declared(body, env) >= revisionModern
}

// legacyRevisions are those with sessions. A server behind stdio can't see the
// header, so what is none of them is refused here, as a server must (2025-06-18,
// transports, protocol version header).
var legacyRevisions = []string{"2024-10-07", "2024-11-05", "2025-03-26", revisionElicitation, revisionTitled}

// isLegacy reports whether a version header may stand in a session. None may, too.
func isLegacy(version string) bool {
	return version == "" || slices.Contains(legacyRevisions, version)
}

// declared is the revision that a request's _meta declares, empty if none.
func declared(body []byte, env rewrite.Envelope) string {
	if env.Seen&(rewrite.KeyProtocolVersion|rewrite.KeyOdd) == 0 {
		return ""
	}
	at, _ := rewrite.Lookup(body, env.Params, "_meta", metaProtocolVersion)
	v, _ := rewrite.String(body, at)
	return v
}

func (t *ChildTransport) get(r *http.Request) *http.Response {
	id := r.Header.Get(headerSession)
	if id == "" {
		return noSessionHeader(r)
	}
	s := t.session(id)
	if s == nil {
		return respond(r, http.StatusNotFound, nil)
	}
	return s.get(r)
}

func (t *ChildTransport) delete(r *http.Request) *http.Response {
	id := r.Header.Get(headerSession)
	if id == "" {
		return noSessionHeader(r)
	}
	s := t.session(id)
	if s == nil {
		return respond(r, http.StatusNotFound, nil)
	}
	s.close("the client has ended the session")
	return respond(r, http.StatusNoContent, nil)
}

// noSessionHeader answers a GET or DELETE outside of a session: without one,
// as in 2026-07-28, there is POST alone.
func noSessionHeader(r *http.Request) *http.Response {
	res := respond(r, http.StatusMethodNotAllowed, nil)
	res.Header.Set("Allow", "POST")
	return res
}

func (t *ChildTransport) session(id string) *childSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessions[id]
}

// Close ends all sessions and children, and waits for the children.
func (t *ChildTransport) Close() {
	t.mu.Lock()
	t.closed = true
	sessions := slices.Collect(maps.Values(t.sessions))
	peers := slices.Collect(maps.Keys(t.peers))
	t.mu.Unlock()
	for _, s := range sessions {
		s.close(errStopping.Error())
	}
	for _, p := range peers {
		go p.child.Shutdown()
	}
	t.children.Wait()
}

func (t *ChildTransport) log() *zap.Logger {
	if t.Log == nil {
		return nopLog
	}
	return t.Log
}

// reader reads what a child writes, within the bounds.
func (t *ChildTransport) reader(child *Child) *frameReader {
	r := &frameReader{r: child.Stdout(), max: max(t.MaxMessage, 0), taken: room{answers: true}}
	if t.Proxy == nil {
		return r
	}
	r.room, r.limit = &t.Proxy.inflight, func() int64 {
		if limit := t.Proxy.lineLimit(); t.MaxMessage == 0 {
			return limit
		}
		return max(t.MaxMessage, 0)
	}
	return r
}

// full is the answer to a client that wants one child too many: with status
// 200, since clients show their user a JSON-RPC error and not the body of a 503.
func (t *ChildTransport) full(r *http.Request, id []byte) *http.Response {
	text := t.limits().FullText
	if text == "" {
		text = DefaultFullText
	}
	return refuseHTTP(r, http.StatusOK, id, codeInternal, text)
}

func (t *ChildTransport) replay() int {
	switch n := t.limits().Replay; {
	case n == 0:
		return DefaultReplayEvents
	default:
		return max(n, 0)
	}
}

// respond makes a response. A nil body is none.
func respond(r *http.Request, status int, body []byte) *http.Response {
	res := &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: make(http.Header), Body: http.NoBody, Request: r,
	}
	if body != nil {
		res.Header["Content-Type"] = jsonType
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return res
}

// refuseHTTP answers with a JSON-RPC error.
func refuseHTTP(r *http.Request, status int, id []byte, code int, text string) *http.Response {
	return respond(r, status, errorMessage(id, code, text))
}

// answerEvents answers with an event stream.
func answerEvents(r *http.Request, body io.ReadCloser) *http.Response {
	res := respond(r, http.StatusOK, nil)
	res.Header["Content-Type"] = []string{typeEvents}
	res.Header["Cache-Control"] = []string{"no-cache, no-transform"}
	res.Header["X-Accel-Buffering"] = []string{"no"}
	res.Body, res.ContentLength = body, -1
	return res
}

// eventsAfter is how long an answer may take before its event stream is begun,
// so that whoever stands between does not take the silence for a failure.
const eventsAfter = 10 * time.Second

// await is the answer to a POST whose calls are answered on stream: JSON if
// the first thing that comes is the one answer, and an event stream else.
func await(r *http.Request, s *eventStream, left func()) *http.Response {
	ctx := r.Context()
	if s.jsonOnly {
		all, err := s.all(ctx)
		if err != nil {
			s.detach(0)
			left()
			return leftEarly(r)
		}
		left()
		return respond(r, http.StatusOK, all)
	}
	first, cancel := context.WithTimeout(ctx, eventsAfter)
	err := s.wait(first, 0)
	cancel()
	if err != nil && ctx.Err() != nil {
		s.detach(0)
		left()
		return leftEarly(r)
	}
	if only, ok := s.only(); ok {
		left()
		return respond(r, http.StatusOK, only)
	}
	body, err := s.body(ctx, fromStart, false, left)
	if err != nil { // a client that came back by Last-Event-ID was faster
		left()
		return leftEarly(r)
	}
	return answerEvents(r, body)
}

// leftEarly is the answer that nobody is there for.
func leftEarly(r *http.Request) *http.Response {
	return refuseHTTP(r, http.StatusBadGateway, nil, codeInternal, "mcp-refit: the client is gone")
}

// acceptsNoEvents reports whether a request says that it takes no event stream.
func acceptsNoEvents(h http.Header) bool { return !acceptsEvents(h) && !acceptsAnything(h) }

// acceptsAnything reports whether a request does not say what it accepts.
func acceptsAnything(h http.Header) bool {
	accept := h.Get("Accept")
	return accept == "" || strings.Contains(accept, "*/*")
}
