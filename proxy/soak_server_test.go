package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

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
// answered with an error, which the client knows that it must not see. What
// else it has got it tells in tools/list.
type soakServer struct {
	mu      sync.Mutex
	seen    recent
	asked   map[string]func(result string) // by the question's id
	calls   int
	answers int      // to questions that were open
	odd     int      // answers to others
	notes   []string // numbers of notifications, as they came
}

func newSoakServer() *soakServer {
	return &soakServer{asked: map[string]func(string){}}
}

// A recent is a set of the texts that were added last: enough to know one that
// comes twice, and no more after an hour than after a minute.
type recent struct {
	set  map[string]bool
	ring [4096]string
	next int
}

// add reports false if the text is there already.
func (r *recent) add(text string) bool {
	if r.set[text] {
		return false
	}
	if r.set == nil {
		r.set = make(map[string]bool)
	}
	delete(r.set, r.ring[r.next])
	r.set[text], r.ring[r.next] = true, text
	r.next = (r.next + 1) % len(r.ring)
	return true
}

// soakProgress is how many notifications come with each call, numbered from 1.
const soakProgress = 2

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
			s.notes = append(s.notes, at("n"))
		}
		return
	case env.Kind == rewrite.KindResult || env.Kind == rewrite.KindError:
		if told := s.asked[id]; told != nil {
			delete(s.asked, id)
			s.answers++
			told(string(env.Result.Of(raw)))
		} else {
			s.odd++
		}
		return
	case env.Method == "initialize":
		answer(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)
		return
	case env.Method == "tools/list":
		answer(fmt.Sprintf(`{"calls":%d,"answers":%d,"odd":%d,"notes":[%s],"tools":[{"name":"t","icons":[{"src":"https://x.example/i.png"}]}]}`, s.calls, s.answers, s.odd, strings.Join(s.notes, ",")))
		return
	}
	if !s.seen.add(number + at("requestState")) {
		say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":1,"message":"twice"}}`)
		return
	}
	s.calls++
	for n := range soakProgress {
		say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, at("_meta", "progressToken"), n+1))
	}
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
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if err != nil || env.Kind != rewrite.KindRequest {
			if err == nil {
				s.hear(body, func(string) {})
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", typeEvents)
		said := make(chan string, 8) // more than one call says
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
