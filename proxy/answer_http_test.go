package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A slowServer is a server with one session, which takes its time over the
// first answer, and says what it does with the second.
type slowServer struct {
	mu      sync.Mutex
	arrived chan string   // the answers, as they come
	release chan struct{} // lets the first one return
	status  int
}

func (s *slowServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	body := string(b)
	switch {
	case strings.Contains(body, `"initialize"`):
		w.Header().Set(headerSession, "s1")
		answerJSON(w, initialzed)
	case r.Method == http.MethodGet, strings.Contains(body, `"tools/call"`):
		startEvents(w)
		say(w, "data: "+asks("0", "n", asksInt)+"\n\n")
		<-r.Context().Done()
	default:
		s.arrived <- body
		<-s.release
		s.mu.Lock()
		defer s.mu.Unlock()
		w.WriteHeader(s.status)
	}
}

// A second answer may overtake the first, so it is checked as long as the
// first has not arrived; and where that failed, as long as the question is open.
func TestHTTPAnswerOvertakes(t *testing.T) {
	s := &slowServer{arrived: make(chan string, 4), release: make(chan struct{}), status: http.StatusServiceUnavailable}
	f := serve(t, s.ServeHTTP)
	f.do(t, http.MethodPost, "/mcp", initialize, nil).Body.Close()
	stream := f.do(t, http.MethodPost, "/mcp", callTool, in("s1"))
	defer stream.Body.Close()
	if _, err := io.ReadAtLeast(stream.Body, make([]byte, 1<<10), 32); err != nil { // the question is there
		t.Fatal(err)
	}
	var both sync.WaitGroup
	answer := func(content string) string {
		both.Go(func() { f.do(t, http.MethodPost, "/mcp", accept("0", content), in("s1")).Body.Close() })
		return <-s.arrived
	}
	if got := answer(`{"n":1}`); !strings.Contains(got, `"accept"`) {
		t.Errorf("the first: %s", got)
	}
	if got := answer(badN); !strings.Contains(got, "-32602") {
		t.Errorf("the second, while the first is on its way: %s", got)
	}
	close(s.release)
	both.Wait()
	s.mu.Lock()
	s.status = http.StatusAccepted
	s.mu.Unlock()
	if got := answer(badN); !strings.Contains(got, "-32602") {
		t.Errorf("after the server took neither: %s", got)
	}
	both.Wait()
	one := f.sessions.byKey[idKey("/mcp", "s1")]
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.calls.forms != 0 {
		t.Error("the question is still open after its answer has arrived")
	}
}

// No way of naming a session leads past the question that is open in it.
func TestHTTPAnswerSessionNames(t *testing.T) {
	s := &slowServer{arrived: make(chan string, 4), release: make(chan struct{}), status: http.StatusAccepted}
	close(s.release)
	f := serve(t, s.ServeHTTP)
	f.do(t, http.MethodPost, "/mcp", initialize, nil).Body.Close()
	stream := f.do(t, http.MethodPost, "/mcp", callTool, in("s1"))
	defer stream.Body.Close()
	if _, err := io.ReadAtLeast(stream.Body, make([]byte, 1<<10), 32); err != nil {
		t.Fatal(err)
	}
	post := func(path, body string, h http.Header) (status int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = h
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", bothTypes)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if status := post("/mcp", accept("0", badN), http.Header{headerSession: {"s2", "s1"}}); status != http.StatusBadRequest {
		t.Errorf("two session ids: %d", status)
	}
	// A server may take an initialize that names a session for one more message of that.
	post("/mcp", initialize, http.Header{headerSession: {"s1"}})
	for name, h := range map[string]http.Header{
		"the session":        {headerSession: {"s1"}},
		"another one":        {headerSession: {"s9"}},
		"none":               {},
		"an underscore, CGI": {"Mcp_session_id": {"s1"}},
	} {
		for _, path := range []string{"/mcp", "/other"} {
			if status := post(path, accept("0", badN), h.Clone()); status != http.StatusAccepted {
				t.Errorf("%s, %s: %d", name, path, status)
			}
			if got := <-s.arrived; !strings.Contains(got, "-32602") {
				t.Errorf("%s, %s: the server got %s", name, path, got)
			}
		}
	}
}

// To a server, several paths may be one: a question that comes by one of them
// is not forgotten by another.
func TestHTTPAnswerOtherPath(t *testing.T) {
	s := &slowServer{arrived: make(chan string, 4), release: make(chan struct{}), status: http.StatusAccepted}
	close(s.release)
	f := serve(t, s.ServeHTTP)
	f.do(t, http.MethodPost, "/mcp", initialize, nil).Body.Close()
	f.do(t, http.MethodPost, "/mcp", accept("9", badN), in("s1")).Body.Close()
	if got := <-s.arrived; !strings.Contains(got, `"accept"`) {
		t.Errorf("an answer to nothing: %s", got)
	}
	h := in("s1")
	h["Accept"] = typeEvents
	stream := f.do(t, http.MethodGet, "/mcp/", "", h)
	defer stream.Body.Close()
	if _, err := io.ReadAtLeast(stream.Body, make([]byte, 1<<10), 32); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/mcp": "a session that we do not know", "/mcp/": "n: "} {
		f.do(t, http.MethodPost, path, accept("0", badN), in("s1")).Body.Close()
		if got := <-s.arrived; !strings.Contains(got, want) {
			t.Errorf("%s: the server got %s", path, got)
		}
	}
}

// A session whose id the client brought along does not begin with its initialize.
func TestHTTPAnswerSessionBroughtAlong(t *testing.T) {
	s := &slowServer{arrived: make(chan string, 4), release: make(chan struct{}), status: http.StatusAccepted}
	close(s.release)
	f := serve(t, s.ServeHTTP) // has just been started, in front of a server that has not
	f.do(t, http.MethodPost, "/mcp", initialize, in("s1")).Body.Close()
	f.do(t, http.MethodPost, "/mcp", accept("0", badN), in("s1")).Body.Close()
	if got := <-s.arrived; !strings.Contains(got, "a session that we do not know") {
		t.Errorf("the server got %s", got)
	}
}
