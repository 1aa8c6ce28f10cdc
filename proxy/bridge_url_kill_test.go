package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A script says where a mortal stops.
type script struct {
	hold  string // it stops at a request with this in its body, or of this method
	says  string // on the stream that answers that request; empty: none has begun
	ends  bool   // that stream ends there, and what resumes it is held in its place
	login bool   // it asks for a token first
	old   bool   // it speaks HTTP+SSE (2024-11-05), and answers no call
}

// A mortal is a server that stops at one request, and that can be cut off.
type mortal struct {
	script
	fault   atomic.Pointer[error] // what a new request meets; nil: it is answered
	cut     chan struct{}         // closed when what is open breaks off
	release chan struct{}         // closed when the request may be answered
	posted  chan struct{}         // closed when initialize has come to an old server
	open    atomic.Int32          // requests
}

var (
	errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	errHangs   = errors.New("nothing is answered")
)

func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.open.Add(1)
	defer m.open.Add(-1)
	var fault error
	if f := m.fault.Load(); f != nil {
		fault = *f
	}
	switch fault {
	case errRefused:
		panic(errRefused)
	case errReset:
		panic(http.ErrAbortHandler)
	case errHangs:
		<-r.Context().Done()
		return
	}
	if m.old {
		m.serveOld(w, r)
		return
	}
	body := bodyOf(r)
	held := m.hold != "" && (r.Method == m.hold || strings.Contains(body, m.hold))
	switch {
	case m.ends && r.Header.Get("Last-Event-ID") != "":
		writeEvents(w, "\n")
		if m.wait(r) && r.Header.Get("Last-Event-ID") == "call" {
			_, _ = io.WriteString(w, "data: "+resultOne+"\n\n")
		}
	case held && m.ends:
		writeEvents(w, m.says)
	case held && m.login && r.Header.Get("Authorization") == "":
		w.WriteHeader(http.StatusUnauthorized)
	case held:
		if m.says != "" {
			writeEvents(w, m.says)
		}
		if m.wait(r) && m.says != "" {
			_, _ = io.WriteString(w, "data: "+resultOne+"\n\n")
		} else {
			writeJSON(w, strings.Replace(resultOne, `"id":1`, `"id":`+idOf(body), 1))
		}
	case r.Method == http.MethodGet:
		writeEvents(w, "\n")
		m.wait(r)
	default:
		legacyServer("s1", func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(body, `"tools/call"`) {
				answer(w, r)
			} else {
				w.WriteHeader(http.StatusAccepted)
			}
		})(w, r)
	}
}

// serveOld answers initialize on the stream, and a call once it may.
func (m *mortal) serveOld(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet:
		writeEvents(w, "event: endpoint\ndata: /post\n\n")
		select {
		case <-m.posted:
			_, _ = io.WriteString(w, "data: "+initResult+"\n\n")
		case <-r.Context().Done():
		}
		if m.wait(r) && m.hold != "" {
			_, _ = io.WriteString(w, "data: "+resultOne+"\n\n")
		}
		<-r.Context().Done()
	case r.URL.Path != "/post":
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		w.WriteHeader(http.StatusAccepted)
		if strings.Contains(bodyOf(r), `"initialize"`) {
			close(m.posted)
		}
	}
}

// wait reports whether the request may be answered now.
func (m *mortal) wait(r *http.Request) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-m.cut:
		panic(http.ErrAbortHandler)
	case <-m.release:
		return true
	}
}

// connect is a dial that goes on as the server does.
func (m *mortal) connect(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.cut:
		return &net.OpError{Op: "dial", Err: *m.fault.Load()}
	case <-m.release:
		return nil
	}
}

// A slowLogin waits for a human, who logs in when the server goes on or breaks
// off.
type slowLogin struct {
	m     *mortal
	token atomic.Bool
	open  atomic.Int32
}

func (s *slowLogin) Token(context.Context) (string, error) {
	if s.token.Load() {
		return "t", nil
	}
	return "", nil
}

func (s *slowLogin) Authorize(ctx context.Context, _ *http.Response) error {
	s.open.Add(1)
	defer s.open.Add(-1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.m.cut:
	case <-s.m.release:
	}
	s.token.Store(true)
	return nil
}

// A killStep is a step in the life of a session.
type killStep struct {
	name    string
	server  script
	reach   func(b *testBridge, m *mortal)
	open    []string // the requests that the client waits for
	session bool     // there is one to be deleted
	later   bool     // there is one once the server goes on
	asked   bool     // the client has a question to answer
	left    bool     // the client has ended its stream already
	patient bool     // what is open has no deadline
}

func killSteps() []killStep {
	sayingAtOnce := func(messages ...string) func(*testBridge, *mortal) {
		return func(b *testBridge, _ *mortal) { b.send(messages...) }
	}
	connecting := func(message string) func(*testBridge, *mortal) {
		return func(b *testBridge, m *mortal) {
			b.dial = m.connect
			b.send(message)
		}
	}
	initialized := func(messages ...string) func(*testBridge, *mortal) {
		return func(b *testBridge, _ *mortal) {
			begin(b)
			b.send(messages...)
		}
	}
	// Once what was ended is resumed from this event.
	later := func(reach func(*testBridge, *mortal), event string) func(*testBridge, *mortal) {
		return func(b *testBridge, m *mortal) {
			reach(b, m)
			synctest.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
			gets := b.requests(http.MethodGet)
			if len(gets) == 0 || gets[len(gets)-1].header.Get("Last-Event-ID") != event {
				b.t.Fatalf("nothing was resumed from %q", event)
			}
		}
	}
	resumed := script{hold: `"id":1`, says: "id: call\ndata:\n\n", ends: true}
	resumedGET := script{hold: http.MethodGet, says: "id: own\ndata:\n\n", ends: true}
	const ask = "data: " + sayAsk + "\n\n"
	discover, call := modern(1, "server/discover", ""), modern(1, "tools/call", `"name":"t"`)
	listen := modern(1, "subscriptions/listen", `"notifications":{}`)
	one := []string{"1"}
	return []killStep{
		{name: "connecting", reach: connecting(sayInitialize), open: []string{"0"}, later: true},
		{name: "initialize is under way", server: script{hold: `"initialize"`}, reach: sayingAtOnce(sayInitialize), open: []string{"0"}},
		{name: "initialize was answered", session: true, reach: func(b *testBridge, _ *mortal) {
			b.send(sayInitialize)
			b.want(initResult)
		}},
		{name: "idle with the GET stream", reach: initialized(), session: true},
		{name: "a call to be answered by JSON", server: script{hold: `"id":1`}, reach: initialized(callOne), open: one, session: true, patient: true},
		{name: "a call on a stream", server: script{hold: `"id":1`, says: ": open\n\n"}, reach: initialized(callOne), open: one, session: true, patient: true},
		{name: "many calls", server: script{hold: `"tools/call"`}, reach: initialized(callOne, callTwo, notification, strings.Replace(callOne, `"id":1`, `"id":3`, 1)),
			open: []string{"1", "2", "3"}, session: true, patient: true},
		{name: "a batch of calls", server: script{hold: `"tools/call"`}, reach: initialized("[" + callOne + "," + callTwo + "]"), open: []string{"1", "2"}, session: true, patient: true},
		{name: "the server has asked", server: script{hold: `"id":1`, says: ask}, reach: func(b *testBridge, _ *mortal) {
			begin(b)
			b.send(callOne)
			b.want(sayAsk)
		}, open: one, session: true, asked: true, patient: true},
		{name: "a call whose stream has ended", server: resumed, reach: initialized(callOne), open: one, session: true, patient: true},
		{name: "a call whose stream is resumed", server: resumed, reach: later(initialized(callOne), "call"), open: one, session: true, patient: true},
		{name: "the GET stream has ended", server: resumedGET, reach: initialized(), session: true},
		{name: "the GET stream is resumed", server: resumedGET, reach: later(initialized(), "own"), session: true},
		{name: "DELETE is under way", server: script{hold: http.MethodDelete}, reach: func(b *testBridge, _ *mortal) {
			begin(b)
			b.send(callOne)
			b.want(resultOne)
			b.in.Close()
		}, session: true, left: true},
		{name: "login at initialize", server: script{hold: `"initialize"`, login: true}, reach: sayingAtOnce(sayInitialize), open: []string{"0"}, patient: true},
		{name: "login at a call", server: script{hold: `"id":1`, login: true}, reach: initialized(callOne), open: one, session: true, patient: true},

		{name: "HTTP+SSE, idle", server: script{old: true}, reach: initialized()},
		{name: "HTTP+SSE, a call", server: script{old: true, hold: `"tools/call"`}, reach: initialized(callOne), open: one, patient: true},

		{name: "modern, connecting", reach: connecting(call), open: one, patient: true},
		{name: "modern, server/discover", server: script{hold: `"id":1`}, reach: sayingAtOnce(discover), open: one},
		{name: "modern, idle", reach: func(b *testBridge, _ *mortal) {
			b.send(call)
			b.want(resultOne)
		}},
		{name: "modern, a call to be answered by JSON", server: script{hold: `"id":1`}, reach: sayingAtOnce(call), open: one, patient: true},
		{name: "modern, a call on a stream", server: script{hold: `"id":1`, says: ": open\n\n"}, reach: sayingAtOnce(call), open: one, patient: true},
		{name: "modern, a subscription", server: script{hold: `"id":1`, says: ": open\n\n"}, reach: sayingAtOnce(listen), open: one, patient: true},
		{name: "modern, login", server: script{hold: `"id":1`, login: true}, reach: sayingAtOnce(call), open: one, patient: true},
	}
}

// A killWay is how a session ends.
type killWay struct {
	name string
	end  func(b *testBridge, m *mortal)
	gone bool  // the client reads nothing any more
	cut  error // what becomes of the server; nil: it is there
}

func killWays() []killWay {
	cut := func(fault error) func(*testBridge, *mortal) {
		return func(_ *testBridge, m *mortal) {
			m.fault.Store(&fault)
			if fault != errHangs {
				close(m.cut)
			}
		}
	}
	return []killWay{
		{name: "by SIGTERM", end: func(b *testBridge, _ *mortal) { b.stop() }},
		{name: "by the end of the client's stdin", end: func(b *testBridge, _ *mortal) { b.in.Close() }},
		{name: "by the end of the client's stdout", gone: true, end: func(b *testBridge, m *mortal) {
			b.out.Close()
			close(m.release)
		}},
		{name: "upstream resets", cut: errReset, end: cut(errReset)},
		{name: "upstream refuses", cut: errRefused, end: cut(errRefused)},
		{name: "upstream hangs", cut: errHangs, end: cut(errHangs)},
	}
}

// TestRunURLKilled ends a session in each way at each step of its life: whatever
// the client waits for is answered once, as long as it is there to read it; no
// stream and no login is left, and no goroutine; and the server is told.
func TestRunURLKilled(t *testing.T) {
	for _, step := range killSteps() {
		for _, way := range killWays() {
			t.Run(step.name+", "+way.name, func(t *testing.T) {
				m := &mortal{script: step.server}
				p := &Proxy{Policy: defaultPolicy(t)}
				login := &slowLogin{m: m}
				if m.login {
					p.Authorizer = login
				}
				runBridge(t, p, m.ServeHTTP, func(t *testing.T, b *testBridge) {
					m.cut, m.release, m.posted = make(chan struct{}), make(chan struct{}), make(chan struct{})
					step.reach(b, m)
					synctest.Wait()
					way.end(b, m)
					heard := kill(b, step, way)
					if !way.gone {
						wantOnce(t, step.open, heard)
					}
					synctest.Wait()
					if n := m.open.Load() + login.open.Load(); n != 0 {
						t.Errorf("%d requests or logins are left", n)
					}
					want := 0
					if step.session || step.later && way.gone {
						want = 1
					}
					if n := len(b.requests(http.MethodDelete)); n != want {
						t.Errorf("%d DELETEs, want %d", n, want)
					}
				})
			})
		}
	}
}

// kill lets the session end, and returns what the client has heard until then.
func kill(b *testBridge, step killStep, way killWay) (heard []string) {
	const long = time.Hour
	limits := defaultPolicy(b.t)().Config.Limits
	most := deleteTimeout // from when the client leaves, or the proxy is to end
	ends := way.cut == nil && (!way.gone || len(step.open) > 0) || step.left
	if !ends {
		if step.asked {
			b.send(sayAnswer)
		}
		synctest.Wait()
		time.Sleep(long)
		synctest.Wait()
		for len(b.lines) > 0 {
			heard = append(heard, <-b.lines)
		}
		if way.cut != errHangs || !step.patient {
			wantOnce(b.t, step.open, heard)
		}
		b.in.Close()
	}
	if way.name != "by SIGTERM" {
		most += limits.Grace.Std()
	}
	left := time.Now()
	err := <-b.ended
	if took := time.Since(left); took > most {
		b.t.Errorf("the end took %v, want %v at most", took, most)
	}
	if wantErr := way.gone && ends && !step.left; errors.Is(err, errClientGone) != wantErr || !wantErr && err != nil {
		b.t.Errorf("the session ended with %v", err)
	}
	b.ended <- err
	for line := range b.lines {
		heard = append(heard, line)
	}
	return heard
}

// wantOnce checks that each of the requests was answered once, with an error.
func wantOnce(t *testing.T, ids, heard []string) {
	t.Helper()
	var answered []string
	for _, line := range heard {
		for one := range strings.SplitSeq(strings.Trim(line, "[]"), `,{"jsonrpc"`) {
			if strings.Contains(one, `"error"`) {
				answered = append(answered, idOf(one))
			} else {
				t.Errorf("the client got %s", line)
			}
		}
	}
	slices.Sort(answered)
	if !slices.Equal(answered, ids) {
		t.Errorf("answers to %q, want %q: %q", answered, ids, heard)
	}
}
