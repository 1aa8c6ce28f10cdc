package proxy

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A sessionServer is a server with sessions, whose tool asks a question.
type sessionServer struct {
	sync.Mutex
	opened  int
	field   map[string]string // what each session's tool asks for
	answers []string          // "session body" of what else it got
	status  int               // of its answer to that; 0: 202
	dead    map[string]bool
}

func (s *sessionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.Lock()
	defer s.Unlock()
	id := r.Header.Get(headerSession)
	body := string(b)
	switch {
	case s.dead[id]:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case strings.Contains(body, `"initialize"`):
		s.opened++
		w.Header().Set(headerSession, fmt.Sprintf("s%d", s.opened))
		answerJSON(w, initialzed)
	case r.Method == http.MethodGet, strings.Contains(body, `"tools/call"`):
		startEvents(w)
		say(w, "id: 1\ndata: "+question("0", s.field[id])+"\n\n")
	default:
		s.answers = append(s.answers, id+" "+body)
		if s.status == 0 {
			s.status = http.StatusAccepted
		}
		w.WriteHeader(s.status)
	}
}

func (s *sessionServer) last() string {
	s.Lock()
	defer s.Unlock()
	return s.answers[len(s.answers)-1]
}

func (s *sessionServer) answer(status int) {
	s.Lock()
	defer s.Unlock()
	s.status = status
}

func in(session string) headers { return headers{headerSession: session} }

// Equal ids in two sessions never meet; the answer comes in a POST of its own.
func TestHTTPSessionsAreApart(t *testing.T) {
	s := &sessionServer{field: map[string]string{"s1": "a", "s2": "b"}}
	f := serve(t, s.ServeHTTP)
	for _, id := range []string{"s1", "s2"} {
		f.post(t, initialize, nil)
		if _, got := f.post(t, callTool, in(id)); got != "id: 1\ndata: "+asked("0", s.field[id])+"\n\n" {
			t.Fatal(got)
		}
	}
	for _, c := range []struct{ session, content, want string }{
		{"s2", `{"b":"n"}`, `s2 {"jsonrpc":"2.0","id":0,"result"`},
		{"s1", `{"b":"n"}`, `s1 {"jsonrpc":"2.0","id":0,"error":{"code":-32602`},
	} {
		status, body := f.post(t, accept("0", c.content), in(c.session))
		if status != http.StatusAccepted || body != "" || !strings.HasPrefix(s.last(), c.want) {
			t.Errorf("%s: %d %s, the server got %s", c.session, status, body, s.last())
		}
	}
}

// The JSON type of an id counts, and the direction of the request.
func TestHTTPIDs(t *testing.T) {
	answers := make(chan string, 1)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), `"initialize"`):
			w.Header().Set(headerSession, "s1")
			answerJSON(w, initialzed)
		case strings.Contains(string(b), `"tools/call"`):
			startEvents(w)
			say(w, "data: "+question(`"1"`, "a")+"\n\ndata: "+question("1", "b")+"\n\n")
		default:
			answers <- string(b)
			w.WriteHeader(http.StatusAccepted)
		}
	})
	f.post(t, initialize, nil)
	f.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, in("s1"))
	for _, answer := range []string{accept("1", `{"b":"d"}`), accept(`"1"`, `{"a":"n"}`)} {
		f.post(t, answer, in("s1"))
		if got := <-answers; got != answer {
			t.Errorf("the server got %s", got)
		}
	}
}

// An answer that the server did not take is checked again when it comes again.
func TestHTTPAnswerNotTaken(t *testing.T) {
	s := &sessionServer{field: map[string]string{"s1": "a"}}
	f := serve(t, s.ServeHTTP)
	f.post(t, initialize, nil)
	f.post(t, callTool, in("s1"))
	s.answer(http.StatusUnauthorized)
	f.post(t, accept("0", `{"a":"d"}`), in("s1"))
	s.answer(http.StatusAccepted)
	f.post(t, accept("0", `{"a":"neither"}`), in("s1"))
	if got := s.last(); !strings.Contains(got, `"error":{"code":-32602`) {
		t.Errorf("the server got %s", got)
	}
}

// A client that comes back is told again, and its answer checked once.
func TestHTTPResume(t *testing.T) {
	var resumed atomic.Value
	s := &sessionServer{field: map[string]string{"s1": "a"}}
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			resumed.Store(r.Header.Get("Last-Event-ID"))
		}
		s.ServeHTTP(w, r)
	})
	f.post(t, initialize, nil)
	f.post(t, callTool, in("s1"))
	for range 3 {
		h := in("s1")
		h["Last-Event-ID"], h["Accept"] = "s1-5", typeEvents
		if got := readAll(t, f.do(t, http.MethodGet, "/mcp", "", h)); got != "id: 1\ndata: "+asked("0", "a")+"\n\n" {
			t.Fatal(got)
		}
	}
	if resumed.Load() != "s1-5" {
		t.Errorf("Last-Event-ID %q", resumed.Load())
	}
	one := f.sessions.byKey[idKey("/mcp", "s1")]
	if n := one.calls.forms; n != 1 || len(one.calls.open) != 2 {
		t.Errorf("%d forms wait, %d calls are open", n, len(one.calls.open))
	}
	f.post(t, accept("0", `{"a":"n"}`), in("s1"))
	if one.calls.forms != 0 {
		t.Errorf("%d forms wait", one.calls.forms)
	}
}

// Calls whose stream ended without an answer are kept for a client that comes
// back, but not without end.
func TestHTTPOrphans(t *testing.T) {
	s := &sessionServer{field: map[string]string{"s1": "a"}}
	f := serve(t, s.ServeHTTP)
	f.post(t, initialize, nil)
	for i := range maxOrphans + 20 {
		f.post(t, strings.Replace(callTool, `"id":3`, fmt.Sprintf(`"id":%d`, i+10), 1), in("s1"))
	}
	if n := len(f.sessions.byKey[idKey("/mcp", "s1")].calls.open); n != maxOrphans+1 {
		t.Errorf("%d calls are open", n)
	}
}

// A session that we did not see begin is known from then on, but an answer to
// a question that we did not pass on is refused.
func TestHTTPSessionBegunElsewhere(t *testing.T) {
	s := &sessionServer{field: map[string]string{"other": "a"}}
	f := serve(t, s.ServeHTTP)
	f.post(t, accept("7", `{"a":"d"}`), in("other"))
	if got := s.last(); !strings.Contains(got, `"error":{"code":-32602`) {
		t.Errorf("the server got %s", got)
	}
	f.post(t, callTool, in("other"))
	answer := accept("0", `{"a":"d"}`)
	f.post(t, answer, in("other"))
	if got := s.last(); got != "other "+answer {
		t.Errorf("the server got %s", got)
	}
	f.post(t, answer, in("other"))
	if got := s.last(); !strings.Contains(got, `"error":{"code":-32602`) {
		t.Errorf("the server got %s", got)
	}
}

func TestHTTPSessionEnds(t *testing.T) {
	for name, end := range map[string]func(*sessionServer, front){
		"DELETE": func(_ *sessionServer, f front) { f.do(t, http.MethodDelete, "/mcp", "", in("s1")) },
		"404": func(s *sessionServer, f front) {
			s.Lock()
			s.dead = map[string]bool{"s1": true}
			s.Unlock()
			if status, _ := f.post(t, listTools, in("s1")); status != http.StatusNotFound {
				t.Errorf("status %d", status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(sessionServer)
			f := serve(t, s.ServeHTTP)
			f.post(t, initialize, nil)
			if len(f.sessions.byKey) != 1 {
				t.Fatal("no session")
			}
			end(s, f)
			if n := len(f.sessions.byKey); n != 0 || f.sessions.sweeper != nil {
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

func TestHTTPSessionsFull(t *testing.T) {
	s := new(sessionServer)
	f := serve(t, s.ServeHTTP, with(t, func(c *policy.Config) { c.Limits.Sessions = 2 }))
	for range 2 {
		f.post(t, initialize, nil)
	}
	status, body := f.post(t, initialize, nil)
	if status != http.StatusOK || !strings.Contains(body, `"id":0,"error":{"code":-32603,"message":"mcp-refit: too many sessions are open (limits.sessions)`) || s.opened != 2 {
		t.Errorf("%d %s; %d sessions at the server", status, body, s.opened)
	}
	if _, body := f.post(t, listTools, in("stranger")); body != "" || len(f.sessions.byKey) != 2 {
		t.Errorf("%s; %d sessions", body, len(f.sessions.byKey))
	}
	f.do(t, http.MethodDelete, "/mcp", "", in("s1"))
	if _, body := f.post(t, initialize, nil); body != initialzed {
		t.Errorf("after one has ended: %s", body)
	}
}

func TestHTTPSessionIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{Policy: testPolicy(t, func(c *policy.Config) { c.Limits.SessionIdle = policy.Duration(time.Hour) })}
		p.Upstream = mustURL("http://server.example/mcp")
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
		sessions := make(map[string]*httpSession)
		for _, name := range []string{"idle", "busy", "used", "asked"} {
			s := p.newSession()
			s.enter(r)
			p.sessions.mu.Lock()
			p.sessions.add(s, idKey("/mcp", name))
			p.sessions.mu.Unlock()
			if sessions[name] = s; name != "busy" {
				s.leave()
			}
		}
		asked := &sessions["asked"].session
		asked.mu.Lock()
		asked.calls.add(callKey{ToClient, "1"}, &call{form: &form{}})
		asked.mu.Unlock()
		time.Sleep(50 * time.Minute)
		sessions["used"].enter(r)
		sessions["used"].leave()
		left := func() string {
			synctest.Wait()
			p.sessions.mu.Lock()
			defer p.sessions.mu.Unlock()
			var names []string
			for _, name := range []string{"idle", "busy", "used", "asked"} {
				if p.sessions.byKey[idKey("/mcp", name)] != nil {
					names = append(names, name)
				}
			}
			return strings.Join(names, " ")
		}
		for _, c := range []struct {
			sleep time.Duration
			want  string
		}{
			{9 * time.Minute, "idle busy used asked"},
			{2 * time.Minute, "busy used asked"},
			{time.Hour, "busy asked"},
		} {
			time.Sleep(c.sleep)
			if got := left(); got != c.want {
				t.Errorf("left after %v more: %s, want %s", c.sleep, got, c.want)
			}
		}
		sessions["busy"].leave()
		asked.mu.Lock()
		asked.calls.remove(callKey{ToClient, "1"})
		asked.mu.Unlock()
		time.Sleep(3 * time.Hour)
		if got := left(); got != "" || p.sessions.sweeper != nil {
			t.Errorf("left at the end: %s", got)
		}
	})
}

// A thousand sessions leave nothing behind.
func TestHTTPThousandSessions(t *testing.T) {
	s := &sessionServer{field: map[string]string{}}
	f := serve(t, s.ServeHTTP)
	f.post(t, initialize, nil)
	f.do(t, http.MethodDelete, "/mcp", "", in("s1"))
	before := goleak.IgnoreCurrent()
	var heap [2]runtime.MemStats
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	send := func(method, session, body string) *http.Response {
		r, _ := http.NewRequestWithContext(t.Context(), method, f.url+"/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", bothTypes)
		if session != "" {
			r.Header.Set(headerSession, session)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return &http.Response{Body: http.NoBody}
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res
	}
	round := func(sessions int) {
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range sessions / 8 {
					id := send(http.MethodPost, "", initialize).Header.Get(headerSession)
					send(http.MethodPost, id, callTool)
					send(http.MethodGet, id, "")
					send(http.MethodPost, id, accept("0", `{"":"d"}`))
					send(http.MethodDelete, id, "")
				}
			})
		}
		wait.Wait()
	}
	for i := range heap {
		round([]int{80, 1000}[i])
		s.Lock()
		s.answers = nil
		s.Unlock()
		runtime.GC()
		runtime.ReadMemStats(&heap[i])
	}
	if n := len(f.sessions.byKey); n != 0 || f.sessions.reserved != 0 || len(f.sessions.standing) != 0 || f.sessions.sweeper != nil {
		t.Errorf("%d sessions, %d reserved, %d streams are left", n, f.sessions.reserved, len(f.sessions.standing))
	}
	if grown := int64(heap[1].HeapAlloc) - int64(heap[0].HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	client.CloseIdleConnections()
	f.Transport.(*http.Transport).CloseIdleConnections()
	goleak.VerifyNone(t, before)
}
