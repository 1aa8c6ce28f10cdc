package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
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

// soakArg makes the test binary the server that TestSoak talks with.
const soakArg = "soak-test-server"

func init() {
	if len(os.Args) > 1 && os.Args[1] == soakArg {
		s := newSoakServer()
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				os.Exit(0)
			}
			s.hear([]byte(line), func(text string) { fmt.Println(text) })
		}
	}
}

// A soakServer answers each call once. One that comes a second time is
// answered with an error, which the client knows that it must not see.
type soakServer struct {
	mu    sync.Mutex
	seen  map[string]bool
	asked map[string]func(result string) // by the question's id
	notes int
}

func newSoakServer() *soakServer {
	return &soakServer{seen: map[string]bool{}, asked: map[string]func(string){}}
}

const soakForm = `"requestedSchema":{"type":"object","properties":{"size":{"type":"string","enum":["d","n"],"enumNames":["Day","Night"]}},"required":["size"]}`

// hear handles a message. What say is given goes to the client.
func (s *soakServer) hear(raw []byte, say func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	env, err := rewrite.Scan(raw)
	if err != nil {
		return
	}
	at := func(path ...string) string {
		span, _ := rewrite.Lookup(raw, env.Params, path...)
		return string(span.Of(raw))
	}
	id := string(env.ID.Of(raw))
	answer := func(result string) { say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`) }
	number := strings.Trim(at("arguments", "n"), `"`)
	switch {
	case env.Kind == rewrite.KindNotification:
		if env.Method == "notifications/soak" {
			s.notes++
		}
		return
	case env.Kind == rewrite.KindResult || env.Kind == rewrite.KindError:
		if told := s.asked[id]; told != nil {
			delete(s.asked, id)
			told(string(env.Result.Of(raw)))
		}
		return
	case env.Method == "initialize":
		answer(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)
		return
	case env.Method == "tools/list":
		answer(fmt.Sprintf(`{"notes":%d,"tools":[{"name":"t","icons":[{"src":"https://x.example/i.png"}]}]}`, s.notes))
		return
	}
	round := number + at("requestState")
	if s.seen[round] {
		say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":1,"message":"twice"}}`)
		return
	}
	s.seen[round] = true
	say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + at("_meta", "progressToken") + `,"progress":1}}`)
	switch {
	case at("name") == `"ask"`:
		q := `"q` + number + `"`
		s.asked[q] = func(result string) { answer(`{"n":"` + number + `","told":` + result + `}`) }
		say(`{"jsonrpc":"2.0","id":` + q + `,"method":"elicitation/create","params":{"message":"m",` + soakForm + `}}`)
	case at("name") == `"input"` && at("inputResponses") == "":
		answer(`{"resultType":"input_required","requestState":"state of ` + number + `","inputRequests":{"f":{"method":"elicitation/create","params":{"message":"m",` + soakForm + `}}}}`)
	case at("name") == `"input"` && at("requestState") != `"state of `+number+`"`:
		say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":2,"message":"not the state"}}`)
	default:
		answer(`{"n":"` + number + `"}`)
	}
}

// A soakTalk is one client's talk with a server, on any transport.
type soakTalk struct {
	t      *testing.T
	name   string
	send   func(body string, h headers)
	recv   func() string
	legacy bool // it says initialize, and may be asked in mid-call
}

var soakNumber atomic.Int64

// soakAnswered is how many calls the clients have got an answer to.
var soakAnswered atomic.Int64

// talk has a number of calls at once in flight, and accounts for each.
func (c *soakTalk) talk(rounds int) {
	for range rounds {
		const calls = 9
		open, progress := map[string]string{}, map[string]bool{}
		start := func(number, more string) {
			tool := map[bool][]string{true: {"ask", "plain", "plain"}, false: {"input", "plain", "input"}}[c.legacy][int(number[len(number)-1])%3]
			id := `"` + number + more[:min(len(more), 1)] + `"`
			open[id] = number
			params := `"name":"` + tool + `","arguments":{"n":"` + number + `"},` + strings.TrimPrefix(more, "r")
			if c.legacy {
				c.send(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{`+params+`"_meta":{"progressToken":`+id+`}}}`, nil)
				return
			}
			body, h := modernCall(id, "tools/call", params)
			h[headerName] = tool
			c.send(strings.Replace(body, `"tok"`, id, 1), h)
		}
		for range calls {
			start(fmt.Sprint(soakNumber.Add(1)), "")
		}
		for len(open) > 0 {
			raw := []byte(c.recv())
			env, err := rewrite.Scan(raw)
			id := string(env.ID.Of(raw))
			switch {
			case err != nil:
				c.t.Errorf("%s: got %q: %v", c.name, raw, err)
				return
			case env.Method == "elicitation/create":
				c.send(`{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{"size":"d"}}}`, nil)
				continue
			case env.Method == "notifications/progress":
				at, _ := rewrite.Lookup(raw, env.Params, "progressToken")
				if token := string(at.Of(raw)); open[token] == "" || progress[token] {
					c.t.Errorf("%s: progress of %s, which is over or had one", c.name, token)
				} else {
					progress[token] = true
				}
				continue
			case open[id] == "" || !progress[id]:
				c.t.Errorf("%s: %s was not asked, is answered twice, or its progress was lost", c.name, raw)
				return
			}
			number := open[id]
			delete(open, id)
			soakAnswered.Add(1)
			n, _ := rewrite.Lookup(raw, env.Result, "n")
			state, again := rewrite.Lookup(raw, env.Result, "requestState")
			switch {
			case again && strings.Contains(string(raw), sealPrefix):
				start(number, `r"inputResponses":{"f":{"action":"accept","content":{"size":"n"}}},"requestState":`+string(state.Of(raw))+`,`)
			case string(n.Of(raw)) != `"`+number+`"`:
				c.t.Errorf("%s: call %s got %s", c.name, number, raw)
			}
		}
	}
}

// count compares the notifications that were sent with those that arrived.
func (c *soakTalk) count(sent int) {
	for range sent {
		c.send(`{"jsonrpc":"2.0","method":"notifications/soak"}`, nil)
	}
	c.send(listTools, nil)
	if got, want := c.recv(), fmt.Sprintf(`"notes":%d,"tools":[{"name":"t"}]`, sent); !strings.Contains(got, want) {
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
}

// overHTTP is the life of one session with a proxy that listens.
func overHTTP(t *testing.T, name, url string, legacy bool) {
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
	c := &soakTalk{t: t, name: name, legacy: legacy, recv: func() string { return <-got }, send: func(body string, h headers) {
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

// soakHandler serves each session, and all that have none, with one soakServer.
func soakHandler() http.HandlerFunc {
	var mu sync.Mutex
	servers, made := map[string]*soakServer{"": newSoakServer()}, 0
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(headerSession)
		body, _ := io.ReadAll(r.Body)
		env, err := rewrite.Scan(body)
		mu.Lock()
		if env.Method == "initialize" {
			made++
			id = fmt.Sprintf("session%d", made)
			servers[id] = newSoakServer()
			w.Header().Set(headerSession, id)
		}
		s := servers[id]
		if r.Method == http.MethodDelete {
			delete(servers, id)
		}
		mu.Unlock()
		if err != nil || env.Kind != rewrite.KindRequest {
			if err == nil {
				s.hear(body, func(string) {})
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", typeEvents)
		said := make(chan string, 4)
		s.hear(body, func(text string) { said <- text })
		for text := range said {
			_, _ = io.WriteString(w, "data: "+text+"\n\n")
			_ = http.NewResponseController(w).Flush()
			if e, err := rewrite.Scan([]byte(text)); err != nil || e.Kind == rewrite.KindResult || e.Kind == rewrite.KindError {
				return
			}
		}
	}
}

// held is what a process holds.
type held struct {
	heap            uint64
	goroutines, fds int
}

func hold() held {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd") // none elsewhere
	return held{m.HeapAlloc, runtime.NumGoroutine(), len(fds)}
}

// TestSoak keeps all transports and both eras busy at once while the policy is
// reloaded and children start and end. Every message is numbered: none may be
// lost or come twice. Nothing may have grown between the first quarter and the end.
func TestSoak(t *testing.T) {
	length := 2 * time.Second
	if v := os.Getenv(soakEnv); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	policies := []*policy.Policy{testPolicy(t)(), testPolicy(t, func(c *policy.Config) { c.Answers.FillDefaults = true })()}
	var turn atomic.Int64
	reloading := func(p *Proxy) { p.Policy = func() *policy.Policy { return policies[turn.Add(1)/64%2] } }
	upstream := serve(t, soakHandler(), reloading)
	bridge := startBridge(t, func(c *ChildTransport) {
		c.Start = func() (*Child, error) {
			one := &Child{Command: []string{os.Args[0], soakArg}, Grace: 5 * time.Second}
			return one, one.Start(context.Background())
		}
		c.OnChildren = nil
	})
	straight := new(Proxy)
	reloading(straight)
	lives := []func(){
		func() { overStdio(t, straight, true) },
		func() { overStdio(t, straight, false) },
		func() { overHTTP(t, "http", upstream.url, true) },
		func() { overHTTP(t, "http", upstream.url, false) },
		func() { overHTTP(t, "bridge", bridge.url, true) },
		func() { overHTTP(t, "bridge", bridge.url, false) },
	}
	var first held
	for quarter := range 4 {
		until := time.Now().Add(length / 4)
		var busy sync.WaitGroup
		for _, life := range lives {
			busy.Go(func() {
				for ok := true; ok; ok = time.Now().Before(until) && !t.Failed() {
					life()
				}
			})
		}
		busy.Wait()
		if quarter == 0 {
			first = hold()
		}
	}
	last := hold()
	const spare = 16 // of connections that are being closed
	for range 1000 {
		if last.goroutines <= first.goroutines+spare && last.fds <= first.fds+spare {
			break
		}
		last = hold()
	}
	t.Logf("%d calls answered; held after the first quarter %+v, at the end %+v", soakAnswered.Load(), first, last)
	if last.goroutines > first.goroutines+spare || last.fds > first.fds+spare || last.heap > first.heap+first.heap/4+8<<20 {
		t.Errorf("held after the first quarter %+v, at the end %+v", first, last)
	}
}
