package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// soakEnv is how long TestSoak goes on, a time.Duration. Without it, two seconds.
const soakEnv = "MCP_REFIT_SOAK"

// A soakTalk is one client's talk with a server, on any transport.
type soakTalk struct {
	t       *testing.T
	name    string
	send    func(body string, h headers)
	recv    func() string
	restart func() // the proxy, with the same key; nil: it is not
	legacy  bool   // it says initialize, and may be asked in mid-call

	open     map[string]string // the numbers of calls in flight, by their id
	progress map[string]int    // how much of each call's has come
	asked    map[string]bool   // the server's questions
	calls    int
}

// What the clients have numbered and accounted for.
var soakNumber, soakAnswered, soakProgressed, soakAsked, soakNoted, soakSealed, soakRestarts atomic.Int64

// start sends a call, or the second part of one.
func (c *soakTalk) start(number, more string) {
	tool := map[bool][]string{true: {"ask", "plain", "plain"}, false: {"input", "plain", "input"}}[c.legacy][int(number[len(number)-1])%3]
	id := `"` + number + more[:min(len(more), 1)] + `"`
	c.open[id] = number
	c.calls++
	params := `"name":"` + tool + `","arguments":{"n":"` + number + `"},` + strings.TrimPrefix(more, "r")
	if c.legacy {
		c.send(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{`+params+`"_meta":{"progressToken":`+id+`}}}`, nil)
		return
	}
	body, h := modernCall(id, "tools/call", params)
	h[headerName] = tool
	c.send(strings.Replace(body, `"tok"`, id, 1), h)
}

// talk has a number of calls at once in flight, and accounts for each, for what
// the server says on the way, and for what it asks.
func (c *soakTalk) talk(rounds int) {
	c.open, c.progress, c.asked = map[string]string{}, map[string]int{}, map[string]bool{}
	for range rounds {
		const calls = 9
		for range calls {
			c.start(fmt.Sprint(soakNumber.Add(1)), "")
		}
		for len(c.open) > 0 {
			if raw := c.recv(); !c.hear([]byte(raw)) {
				c.t.Errorf("%s: lost, twice or in another's place: %s", c.name, raw)
				return
			}
		}
	}
}

// hear deals with a message, and reports whether it had to come.
func (c *soakTalk) hear(raw []byte) bool {
	env, err := rewrite.Scan(raw)
	id := string(env.ID.Of(raw))
	switch {
	case err != nil:
		return false
	case env.Method == "elicitation/create":
		again := c.asked[id]
		c.asked[id] = true
		soakAsked.Add(1)
		c.send(`{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{"size":"d"}}}`, nil)
		return !again && c.open[strings.Replace(id, "q", "", 1)] != ""
	case env.Method == "notifications/progress":
		at, _ := rewrite.Lookup(raw, env.Params, "progressToken")
		n, _ := rewrite.Lookup(raw, env.Params, "progress")
		token := string(at.Of(raw))
		c.progress[token]++
		soakProgressed.Add(1)
		return c.open[token] != "" && string(n.Of(raw)) == fmt.Sprint(c.progress[token])
	case c.open[id] == "" || c.progress[id] != soakProgress:
		return false
	}
	number := c.open[id]
	delete(c.open, id)
	soakAnswered.Add(1)
	state, again := rewrite.Lookup(raw, env.Result, "requestState")
	if again && strings.Contains(string(raw), sealPrefix) {
		if c.restart != nil && soakSealed.Add(1)%16 == 0 {
			c.restart()
			soakRestarts.Add(1)
		}
		c.start(number, `r"inputResponses":{"f":{"action":"accept","content":{"size":"n"}}},"requestState":`+string(state.Of(raw))+`,`)
		return true
	}
	n, _ := rewrite.Lookup(raw, env.Result, "n")
	return string(n.Of(raw)) == `"`+number+`"`
}

// count sends numbered notifications, and compares what was sent and asked with
// what the server has got. The server is the client's own.
func (c *soakTalk) count(sent int) {
	var numbers []string
	for n := range sent {
		numbers = append(numbers, fmt.Sprint(n))
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/soak","params":{"n":%d}}`, n), nil)
	}
	soakNoted.Add(int64(sent))
	c.send(listTools, nil)
	want := fmt.Sprintf(`"calls":%d,"answers":%d,"odd":0,"notes":[%s],"tools":[{"name":"t"}]`, c.calls, len(c.asked), strings.Join(numbers, ","))
	if got := c.recv(); !strings.Contains(got, want) {
		c.t.Errorf("%s: got %s, want %s and no icons", c.name, got, want)
	}
}

// overStdio is the life of one session of Run.
func overStdio(t *testing.T, p *Proxy, legacy bool) {
	r := startRun(t, p, nil)
	s := newSoakServer()
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			line, err := r.server.line.ReadBytes('\n')
			if err != nil {
				return
			}
			s.hear(line, func(text string) { r.server.send(text) })
		}
	}()
	c := &soakTalk{t: t, name: "stdio", legacy: legacy, send: func(body string, _ headers) { r.client.send(body) }, recv: func() string {
		line, _ := r.client.line.ReadString('\n')
		return strings.TrimSuffix(line, "\n")
	}}
	if legacy {
		c.send(initialize, nil)
		c.recv()
	}
	c.talk(4)
	c.count(10)
	r.client.say.Close()
	r.server.say.Close()
	<-served
	if err := <-r.done; err != nil {
		t.Errorf("Run: %v", err)
	}
	r.cancel() // or the test's own context remembers it
}

// overURL is the life of one session of RunURL.
func overURL(t *testing.T, p *Proxy, legacy bool) {
	client, stream := newPeer()
	done := make(chan error, 1)
	go func() { done <- p.RunURL(context.Background(), stream) }()
	c := &soakTalk{t: t, name: "url", legacy: legacy, send: func(body string, _ headers) { client.send(body) }, recv: func() string {
		line, _ := client.line.ReadString('\n')
		return strings.TrimSuffix(line, "\n")
	}}
	if legacy {
		c.send(initialize, nil)
		c.recv()
	}
	c.talk(4)
	if legacy {
		c.count(10)
	}
	client.say.Close()
	if err := <-done; err != nil {
		t.Errorf("RunURL: %v", err)
	}
	client.vanish()
}

// overHTTP is the life of one session with a proxy that listens.
func overHTTP(t *testing.T, name, url string, legacy bool, restart func()) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var session string
	got := make(chan string, 256)
	var posts sync.WaitGroup
	post := func(method, body string, h headers) {
		r, _ := http.NewRequestWithContext(context.Background(), method, url+"/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", bothTypes)
		if session != "" {
			r.Header.Set(headerSession, session)
			r.Header.Set(headerVersion, "2025-11-25")
		}
		for k, v := range h {
			r.Header.Set(k, v)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		defer res.Body.Close()
		if id := res.Header.Get(headerSession); id != "" && session == "" {
			session = id
		}
		if res.StatusCode == http.StatusAccepted || method == http.MethodDelete {
			return
		}
		lines := bufio.NewReader(res.Body)
		for {
			line, err := lines.ReadString('\n')
			if line = strings.TrimSpace(strings.TrimPrefix(line, "data:")); strings.HasPrefix(line, "{") {
				got <- line
			}
			if err != nil {
				if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
		}
	}
	c := &soakTalk{t: t, name: name, legacy: legacy, restart: restart, recv: func() string { return <-got }, send: func(body string, h headers) {
		if strings.Contains(body, "notifications/") || strings.Contains(body, `"method":"initialize"`) {
			post(http.MethodPost, body, h)
			return
		}
		posts.Go(func() { post(http.MethodPost, body, h) })
	}}
	if legacy {
		c.send(initialize, nil)
		c.recv()
	}
	c.talk(4)
	if legacy {
		c.count(10)
	}
	posts.Wait()
	if legacy {
		post(http.MethodDelete, "", nil)
	}
}

// held is what a process holds.
type held struct {
	heap                      uint64
	goroutines, fds, children int
}

func hold() held {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd") // none elsewhere
	return held{m.HeapAlloc, runtime.NumGoroutine(), len(fds), processesOf(os.Getpid())}
}

// processesOf is how many children a process has, those that have ended and
// were not waited for among them. 0 where there is no /proc.
func processesOf(parent int) (n int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(stat), ") ") // behind the name: state, parent
		if f := strings.Fields(rest); len(f) > 1 && f[1] == fmt.Sprint(parent) {
			n++
		}
	}
	return n
}

// within reports whether no more is held than before, but for what is on its
// way out: connections that are being closed, children that end.
func (h held) within(before held) bool {
	const spare = 16
	return h.goroutines <= before.goroutines+spare && h.fds <= before.fds+spare && h.children <= before.children && h.heap <= before.heap+before.heap/4+8<<20
}

// A restarting is a proxy that listens and can be made anew, with the same key.
type restarting struct{ now atomic.Pointer[Proxy] }

func (r *restarting) ServeHTTP(w http.ResponseWriter, q *http.Request) { r.now.Load().ServeHTTP(w, q) }

// TestSoak keeps all transports and both eras busy at once while the policy
// changes, proxies are made anew and children start and end. Every message is
// numbered, and accounted for at both ends: none may be lost or come twice.
// Nothing may have grown between the end of the second minute (or quarter, if
// it is short) and the end.
func TestSoak(t *testing.T) {
	length := 2 * time.Second
	if v := os.Getenv(soakEnv); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	lives, idle := soakLives(t)
	periods := max(4, int(length/time.Minute))
	var second held
	for period := range periods {
		until := time.Now().Add(length / time.Duration(periods))
		var busy sync.WaitGroup
		for _, life := range lives {
			busy.Go(func() {
				for ok := true; ok; ok = time.Now().Before(until) && !t.Failed() {
					life()
				}
			})
		}
		busy.Wait()
		if period == 1 {
			idle()
			second = hold()
			t.Logf("after period 2 of %d: %+v", periods, second)
		}
	}
	idle()
	last := hold()
	for range 1000 {
		if last.within(second) {
			break
		}
		idle()
		last = hold()
	}
	t.Logf("%d calls answered, %d progress, %d questions and %d other notifications accounted for, %d restarts with a sealed question open; at the end: %+v",
		soakAnswered.Load(), soakProgressed.Load(), soakAsked.Load(), soakNoted.Load(), soakRestarts.Load(), last)
	if !last.within(second) {
		t.Errorf("held after period 2 %+v, at the end %+v", second, last)
	}
	if soakRestarts.Load() == 0 {
		t.Error("no proxy was made anew")
	}
}

// soakLives are the lives of a session: one of each transport and era. idle
// closes the connections to the server that are kept for the next request.
func soakLives(t *testing.T) (lives []func(), idle func()) {
	policies := []*policy.Policy{testPolicy(t)(), testPolicy(t, func(c *policy.Config) { c.Answers.FillDefaults = true })()}
	var turn atomic.Int64
	reloading := func() *policy.Policy { return policies[turn.Add(1)/64%2] }
	back := httptest.NewServer(soakHandler())
	t.Cleanup(back.Close)
	transport := NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	key := testKey(t, 7)
	made := func() *Proxy {
		return &Proxy{Policy: reloading, Upstream: mustURL(back.URL + "/mcp"), Transport: transport, Seal: &Sealer{Keys: []Key{key}}}
	}
	var front restarting
	front.now.Store(made())
	restart := func() { front.now.Store(made()) }
	anew := httptest.NewServer(&front)
	t.Cleanup(anew.Close)
	lasts := httptest.NewServer(made())
	t.Cleanup(lasts.Close)
	bridge := startBridge(t, func(c *ChildTransport) {
		c.Start = func() (*Child, error) {
			one := &Child{Command: []string{os.Args[0], soakArg}, Grace: 5 * time.Second}
			return one, one.Start(context.Background())
		}
		c.OnChildren = nil
	})
	return []func(){
		func() { overStdio(t, &Proxy{Policy: reloading}, true) },
		func() { overStdio(t, &Proxy{Policy: reloading}, false) },
		func() { overHTTP(t, "http", lasts.URL, true, nil) },
		func() { overHTTP(t, "http", anew.URL, false, restart) },
		func() { overHTTP(t, "bridge", bridge.url, true, nil) },
		func() { overHTTP(t, "bridge", bridge.url, false, nil) },
		func() { overURL(t, made(), true) },
		func() { overURL(t, made(), false) },
	}, transport.CloseIdleConnections
}
