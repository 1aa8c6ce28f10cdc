package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
)

// An httpSession is a session over HTTP: of one Mcp-Session-Id, of one
// announced endpoint (HTTP+SSE), or of a single request.
type httpSession struct {
	session
	key string // in the table; empty for one that is in none

	http    sync.Mutex // guards what follows
	active  int        // requests under way
	used    time.Time  // when the last one began or ended
	streams []*stream
	header  http.Header // of the client's last request
	postTo  *url.URL    // where its messages go
	orphans [][]byte    // ids of calls whose stream ended before their answer, oldest first
}

// maxOrphans is how many calls a session remembers whose stream has ended, for
// a client that comes back with Last-Event-ID.
const maxOrphans = 64

func (p *Proxy) newSession() *httpSession {
	s := &httpSession{session: session{proxy: p, origin: originOf(p.Upstream)}}
	s.send, s.ask, s.settles = s.sendTo, s.askServer, true
	s.requestHeader = s.clientHeader
	return s
}

// clientHeader is a header of the client's last request.
func (s *httpSession) clientHeader(name string) string {
	s.http.Lock()
	defer s.http.Unlock()
	return s.header.Get(name)
}

// enter begins a request.
func (s *httpSession) enter(r *http.Request) {
	s.http.Lock()
	defer s.http.Unlock()
	s.active++
	s.used = time.Now()
	s.header = r.Header
	if s.postTo == nil || r.Method == http.MethodPost {
		s.postTo = r.URL
	}
}

// leave ends a request.
func (s *httpSession) leave() {
	s.http.Lock()
	defer s.http.Unlock()
	s.active--
	s.used = time.Now()
	s.streams = slices.DeleteFunc(s.streams, func(t *stream) bool { return t.isClosed() })
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// attach adds a stream to the client. One that belongs to no call is the first
// choice for messages of our own.
func (s *httpSession) attach(t *stream) {
	s.http.Lock()
	defer s.http.Unlock()
	if t.standing {
		s.streams = slices.Insert(s.streams, 0, t)
	} else {
		s.streams = append(s.streams, t)
	}
}

// orphan notes the calls of a request whose stream has ended without an
// answer. The client may come back for it.
func (s *httpSession) orphan(x *exchange) {
	s.http.Lock()
	defer s.http.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range x.ids {
		if s.calls.open[callKey{ToServer, canonicalID(id)}] != nil {
			s.orphans = append(s.orphans, id)
		}
	}
	for len(s.orphans) > maxOrphans {
		s.calls.remove(callKey{ToServer, canonicalID(s.orphans[0])})
		s.orphans = s.orphans[1:]
	}
}

// idle reports since when nothing has been under way, and whether a form waits
// for its answer.
func (s *httpSession) idle() (since time.Time, asked, ok bool) {
	s.http.Lock()
	defer s.http.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.calls.forms > 0, s.active == 0
}

// httpSessions is the table of the sessions over HTTP. Its zero value is empty.
type httpSessions struct {
	mu        sync.Mutex
	byKey     map[string]*httpSession
	endpoints int // how many of them are of HTTP+SSE
	reserved  int // of initialize requests under way
	sweeper   *time.Timer
	standing  map[*stream]struct{}
	draining  bool
}

// Keys of the table: the two kinds never meet.
// An id belongs to the path that it came from: under another, the server may go
// by something else.
func idKey(path, id string) string { return idPrefix + path + " " + id }

const idPrefix = "id "

// endpointKey goes by what a URL means, since clients write it in their own ways.
func endpointKey(u *url.URL) string {
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		query = u.RawQuery
	}
	return "at " + u.Path + "?" + query
}

// of is the session that a request belongs to, nil if it is none that we know.
func (t *httpSessions) of(r *http.Request) *httpSession {
	id := r.Header.Get(headerSession)
	t.mu.Lock()
	defer t.mu.Unlock()
	if id != "" {
		if s := t.byKey[idKey(r.URL.Path, id)]; s != nil {
			return s
		}
		t.split(id)
	}
	if t.endpoints > 0 && r.Method == http.MethodPost {
		return t.byKey[endpointKey(r.URL)]
	}
	return nil
}

// split notes that an id is used under a path where we don't know it. To the
// server it may be the session that we know under another: then a question may
// come there, and its answer here.
func (t *httpSessions) split(id string) {
	for key, s := range t.byKey {
		if strings.HasPrefix(key, idPrefix) && strings.HasSuffix(key, " "+id) {
			s.session.mu.Lock()
			s.session.split = true
			s.session.mu.Unlock()
		}
	}
}

// reserve makes sure that there is room for one more session. Whoever gets it
// gives it back with release.
func (t *httpSessions) reserve(l policy.LimitsConfig) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.Sessions > 0 && len(t.byKey)+t.reserved >= int(l.Sessions) && !t.evict(l.SessionIdle.Std()) {
		return false
	}
	t.reserved++
	return true
}

func (t *httpSessions) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reserved--
}

// evict drops the session that has been idle for the longest, of those whose
// initialize we never saw, or that are kept past their time for a form.
func (t *httpSessions) evict(idle time.Duration) bool {
	var oldest *httpSession
	var when time.Time
	for _, s := range t.byKey {
		since, _, quiet := s.idle()
		if !quiet || s.known && (idle <= 0 || time.Since(since) < idle) {
			continue
		}
		if oldest == nil || since.Before(when) {
			oldest, when = s, since
		}
	}
	if oldest == nil {
		return false
	}
	t.remove(oldest)
	return true
}

// add puts a session into the table.
func (t *httpSessions) add(s *httpSession, key string) {
	if t.byKey == nil {
		t.byKey = make(map[string]*httpSession)
	}
	if old := t.byKey[key]; old != nil {
		t.remove(old)
	}
	s.key = key
	s.id = logID(key)
	t.byKey[key] = s
	s.proxy.session(s.id, true)
	if t.sweeper == nil {
		if idle := s.proxy.limits().SessionIdle.Std(); idle > 0 {
			t.sweeper = time.AfterFunc(idle, func() { t.sweep(s.proxy) })
		}
	}
}

// logID names a session in logs and in the audit. The id itself is as good as
// a password there.
func logID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

func (t *httpSessions) remove(s *httpSession) {
	if t.byKey[s.key] != s {
		return
	}
	delete(t.byKey, s.key)
	s.session.end()
	s.proxy.session(s.id, false)
	if s.key[0] == 'a' {
		t.endpoints--
	}
	if len(t.byKey) == 0 && t.sweeper != nil {
		t.sweeper.Stop()
		t.sweeper = nil
	}
}

// sweep drops the sessions that have been idle for too long, and comes again
// when the next one may be. A form that waits for a human keeps its session.
func (t *httpSessions) sweep(p *Proxy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sweeper == nil {
		return
	}
	idle := p.limits().SessionIdle.Std()
	if idle <= 0 {
		t.sweeper = nil
		return
	}
	next := idle
	for _, s := range t.byKey {
		since, asked, quiet := s.idle()
		if !quiet || asked {
			continue
		}
		if left := idle - time.Since(since); left > 0 {
			next = min(next, left)
		} else {
			t.remove(s)
		}
	}
	if t.sweeper != nil {
		t.sweeper.Reset(next)
	}
}

// learn keeps the table by what the server answers.
func (t *httpSessions) learn(x *exchange, res *http.Response) {
	asked := x.r.Header.Get(headerSession)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !x.isMCP() {
		return
	}
	gone := res.StatusCode == http.StatusNotFound || x.r.Method == http.MethodDelete && success(res.StatusCode)
	if gone && asked != "" {
		if s := t.byKey[idKey(x.r.URL.Path, asked)]; s != nil {
			t.remove(s)
		}
		return
	}
	if !success(res.StatusCode) || x.r.Method == http.MethodDelete {
		return
	}
	id := res.Header.Get(headerSession)
	if id == "" {
		id = asked
	}
	key := idKey(x.r.URL.Path, id)
	if id == "" || !x.initialize && t.byKey[key] != nil {
		return
	}
	if limit := x.p.limits().Sessions; !x.initialize && limit > 0 && len(t.byKey)+t.reserved >= int(limit) {
		return // one that we do not know is not worth one that we do
	}
	if x.session.key != "" {
		return // another one, or this one and dropped meanwhile: for good
	}
	// A session that the client names itself is not one that begins here: the
	// server may take the message as one of a session that it has.
	x.session.known = x.session.known || x.initialize && id != asked
	t.add(x.session, key)
}

// announce puts the session of an announced endpoint into the table.
func (t *httpSessions) announce(x *exchange, to *url.URL) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := x.session
	if s.key != "" {
		return
	}
	if limit := x.p.limits().Sessions; limit > 0 && len(t.byKey)+t.reserved >= int(limit) && !t.evict(x.p.limits().SessionIdle.Std()) {
		x.p.logger().Warn(textSessionsFull)
		return
	}
	s.known = true
	s.http.Lock()
	s.postTo = to
	s.http.Unlock()
	t.add(s, endpointKey(to))
	t.endpoints++
	x.announced = true
}

// drop drops a session.
func (t *httpSessions) drop(s *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(s)
}
