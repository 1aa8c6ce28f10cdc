package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"
)

// ServeHTTP passes a request on to Upstream, and the answer back. Every method
// and path is passed under the same path. Messages are handled wherever they
// stand: in the body of a POST, in the answer to one, and in every event
// stream.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{p: p, w: w, r: r, answerRoom: room{answers: true}}
	defer x.linger()
	if p.Upstream == nil {
		x.refuse(http.StatusInternalServerError, codeInternal, "mcp-refit: no upstream is set")
		return
	}
	if why := p.guard(r); why != "" {
		p.logger().Warn("a request was refused", zap.String("why", why), zap.String("path", r.URL.Path))
		x.refuse(http.StatusForbidden, codeInvalidRequest, "mcp-refit: "+why)
		return
	}
	if !x.begin() {
		return
	}
	defer x.end()
	proxy := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		ModifyResponse: x.modify,
		ErrorHandler:   x.fail,
		Transport:      p.transport(),
		BufferPool:     copyBuffers{},
		ErrorLog:       p.http().errors,
	}
	proxy.ServeHTTP(x, x.r)
}

// An exchange is one HTTP request on its way through the proxy, with all that
// answers it. It is the http.ResponseWriter of its answer, too.
type exchange struct {
	p       *Proxy
	w       http.ResponseWriter
	r       *http.Request
	session *httpSession

	// Of a request that carries messages:
	mcp        bool
	whole      bool     // its body has been read to the end
	body       []byte   // what goes on, instead of the body that came; nil: that one
	ids        [][]byte // of the requests in it, as they were written
	initialize bool     // one of them is initialize
	answered   []*call  // what the responses in it answer
	reply      []byte   // what the client gets in answer to the part that was refused
	room       room     // taken by body
	listen     bool     // one of them is subscriptions/listen

	events     bool    // it is a GET that asks for an event stream
	cancel     func()  // ends the request, if it opens a lasting stream
	stream     *stream // that answers it
	announced  bool    // the session is that of an endpoint announced in stream
	reserved   bool    // there is room kept for a session
	answerRoom room    // taken by the answer's body
	paced      bool    // the client has a deadline for reading the answer
}

// begin reads what has to be read before the request is passed on. It reports
// false if the request has been answered.
func (x *exchange) begin() bool {
	if len(x.r.Header[headerSession]) > 1 { // the server may go by another than we do
		x.refuse(http.StatusBadRequest, codeInvalidRequest, "mcp-refit: more than one Mcp-Session-Id")
		return false
	}
	switch x.r.Method {
	case http.MethodConnect:
		x.refuse(http.StatusMethodNotAllowed, codeInvalidRequest, "mcp-refit: CONNECT is not passed on")
		return false
	case http.MethodPost:
		return x.post()
	case http.MethodGet:
		x.events = acceptsEvents(x.r.Header)
		if x.events && !x.stand() {
			return false
		}
	case http.MethodHead, http.MethodDelete, http.MethodOptions:
	default: // some servers take a message by any method
		if x.r.URL.Path == x.p.Upstream.Path && x.r.ContentLength != 0 {
			return x.post()
		}
	}
	x.enter(x.p.sessions.of(x.r))
	return true
}

// enter makes s the session of the exchange; nil: one of its own.
func (x *exchange) enter(s *httpSession) {
	if s == nil {
		s = x.p.newSession()
		s.revision = x.r.Header.Get(headerVersion)
	}
	x.session = s
	s.enter(x.r)
}

func (x *exchange) end() {
	if x.stream != nil {
		x.stream.close()
		x.p.sessions.unstand(x.stream)
		x.session.orphan(x)
	}
	if x.cancel != nil {
		x.cancel()
	}
	if x.listen {
		for _, id := range x.ids {
			x.p.subs.unsubscribe(&x.session.session, id)
		}
	}
	if x.announced {
		x.p.sessions.drop(x.session)
	}
	if x.reserved {
		x.p.sessions.release()
	}
	if x.paced {
		_ = http.NewResponseController(x.w).SetWriteDeadline(time.Time{}) // it could be set before
	}
	x.session.leave()
	if x.session.key == "" {
		x.session.session.end()
	}
	x.room.give()
	x.answerRoom.give()
}

// Names of the headers that mean something to us.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// rewrite makes the request to the server.
func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	in, out, up := pr.In, pr.Out, x.p.Upstream
	out.URL.Scheme, out.URL.Host = up.Scheme, up.Host
	// Both would lose what ReverseProxy can't parse or takes for its own.
	out.URL.RawQuery = upstreamQuery(up, in.URL)
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := in.Header[name]; ok {
			out.Header[name] = v
		}
	}
	out.Header.Del("Connection")
	out.Header.Del("Upgrade")
	out.Header.Del("Expect")             // the body is here already
	delete(out.Header, "Mcp_session_id") // CGI and WSGI servers can't tell it from Mcp-Session-Id
	for _, name := range otherMethod {
		delete(out.Header, name)
	}
	x.p.upstreamHeader(out.Header)
	out.Host = ""
	if x.p.ClientHost {
		out.Host = in.Host
		setDefault(out.Header, "X-Forwarded-Host", in.Host)
		setDefault(out.Header, "X-Forwarded-Proto", clientScheme(in))
	}
	if x.body != nil {
		x.setRequestBody(out)
	}
}

// upstreamQuery is the query as the client wrote it. One that is part of the
// endpoint's URL stands in front of it.
func upstreamQuery(up, in *url.URL) string {
	if up.RawQuery == "" || in.Path != up.Path {
		return in.RawQuery
	}
	if in.RawQuery == "" {
		return up.RawQuery
	}
	return up.RawQuery + "&" + in.RawQuery
}

// upstreamHeader adds to a request's header what every request to the server
// has: no encoding that we would have to undo, and the headers that were asked for.
func (p *Proxy) upstreamHeader(h http.Header) {
	h["Accept-Encoding"] = identity
	for name, values := range p.Header {
		h[name] = values
	}
}

var identity = []string{"identity"}

// otherMethod are headers by which frameworks take one method for another, such
// as a GET, whose body we don't look at, for a POST.
var otherMethod = []string{"X-Http-Method", "X-Http-Method-Override", "X-Method-Override"}

func setDefault(h http.Header, name, value string) {
	if h.Get(name) == "" {
		h.Set(name, value)
	}
}

func clientScheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// fail answers a request for which there is no answer from the server.
func (x *exchange) fail(_ http.ResponseWriter, r *http.Request, err error) {
	x.forget()
	if x.r.Context().Err() != nil {
		// It is gone, or has shut down its write side, which net/http takes for
		// the same. Without an answer such a client would get an empty 200.
		x.refuse(http.StatusBadGateway, codeInternal, textLeft)
		return
	}
	var refused *refusal
	if errors.As(err, &refused) {
		x.refuse(refused.status, codeInternal, refused.text)
		return
	}
	status, what := http.StatusBadGateway, "check that it is running and that the URL is right"
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		what = "check the host name in the URL"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		status, what = http.StatusGatewayTimeout, "check that it can be reached from here"
	case isTLSError(err):
		what = "check its certificate (--upstream-ca names the authority to trust)"
	}
	x.p.logger().Warn("the server did not answer", zap.String("method", r.Method), zap.String("url", r.URL.Redacted()), zap.Error(err))
	x.refuse(status, codeInternal, "mcp-refit: no answer from the server at "+originOf(x.p.Upstream)+" ("+reason(err)+"): "+what)
}

// A refusal is why a server's answer is not passed on at all.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// originOf is the origin of a URL (RFC 6454, section 6.2).
func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// Header, WriteHeader, Write and FlushError make the exchange the writer that
// the answer goes through, so that a stream can be written to from the side.

// Header is the header of the answer.
func (x *exchange) Header() http.Header { return x.w.Header() }

// WriteHeader sends the header of the answer.
func (x *exchange) WriteHeader(status int) {
	if x.stream != nil && status >= http.StatusOK {
		x.stream.start(status)
		return
	}
	x.w.WriteHeader(status)
}

// Write sends bytes of the answer.
func (x *exchange) Write(b []byte) (int, error) {
	if x.stream != nil {
		return x.stream.write(b)
	}
	if x.answerRoom.size > steadyPiece { // others may wait for the room
		x.paced = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(bodyStall)) == nil
	}
	return x.w.Write(b)
}

// FlushError passes on what was written.
func (x *exchange) FlushError() error {
	if x.stream != nil {
		return x.stream.flush()
	}
	return http.NewResponseController(x.w).Flush()
}

// copyBuffers are the buffers that bodies are copied through.
type copyBuffers struct{}

// copyBuffer is their size in bytes.
const copyBuffer = 32 << 10

var copyBufferPool = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Get returns a buffer.
func (copyBuffers) Get() []byte { return copyBufferPool.Get().(*[copyBuffer]byte)[:] }

// Put takes it back.
func (copyBuffers) Put(b []byte) { copyBufferPool.Put((*[copyBuffer]byte)(b)) }
