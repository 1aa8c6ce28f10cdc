package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// A say writes to a stream and flushes.
func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func startEvents(w http.ResponseWriter) {
	w.Header().Set("Content-Type", typeEvents)
	say(w, "")
}

func TestHTTPStream(t *testing.T) {
	result := `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`
	for name, c := range map[string]struct{ in, want string }{
		"nothing of ours":   {": hi\r\nretry: 10\r\n\r\nid:1\nevent: message\ndata:" + result + "\n\n", ""},
		"a priming event":   {"id: ev-1\ndata: \n\nevent: message\nid: ev-2\ndata: " + question("0", "t") + "\n\n", "id: ev-1\ndata: \n\nevent: message\nid: ev-2\ndata: " + asked("0", "t") + "\n\n"},
		"several lines":     {"data: {\"jsonrpc\":\"2.0\",\"id\":3,\ndata: \"result\":{\"content\":[]}}\n\n", ""},
		"another name":      {"event: other\ndata: " + question("0", "t") + "\n\n", "event: other\ndata: " + asked("0", "t") + "\n\n"},
		"an end that never": {"data: " + question("0", "t"), "data: " + asked("0", "t") + "\n"},
		"a ping":            {"event: ping\ndata: 2026-11-30\n\ndata: [DONE]\n\n", ""},
		"no message":        {"id: 4\ndata: {\"id\":0,\"method\":\"elicitation/create\"}\n\ndata: " + result + "\n\n", "id: 4\n\ndata: " + result + "\n\n"},
		"NaN": {"data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"n\":NaN}}\n\n: bye\n\n",
			`data: {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"mcp-refit: this message was not passed on: not valid JSON at byte 38"}}` + "\n\n: bye\n\n"},
		"cut short": {"data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"n\":1}\n\n: bye\n\n", "\n: bye\n\n" +
			`data: {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"mcp-refit: the server's answer was not passed on: it is not valid JSON"}}` + "\n\n"},
		"a batch": {"data: [" + question("0", "t") + "," + result + "]\n\n", "data: [" + asked("0", "t") + "," + result + "]\n\n"},
		"5 MB":    {"data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"t\":\"" + strings.Repeat("x", 5<<20) + "\"}}\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "Text/Event-Stream;charset=utf-8")
				w.Header().Set("X-Accel-Buffering", "no")
				w.Header().Set("Cache-Control", "no-cache, no-transform")
				_, _ = io.WriteString(w, c.in)
			})
			res := f.do(t, http.MethodPost, "/mcp", callTool, nil)
			if c.want == "" {
				c.want = c.in
			}
			if got := readAll(t, res); got != c.want {
				t.Errorf("%.500q, want %.500q", got, c.want)
			}
			if res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Cache-Control") != "no-cache, no-transform" {
				t.Errorf("headers %v", res.Header)
			}
		})
	}
}

// Each event is passed on while the stream stays open, and the header before
// the first of them.
func TestHTTPStreamFlush(t *testing.T) {
	steps := make(chan string)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		startEvents(w)
		say(w, "")
		for text := range steps {
			say(w, text)
		}
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		res := f.do(t, method, "/mcp", map[string]string{http.MethodPost: callTool}[method], headers{"Accept": typeEvents})
		e := events(res)
		for i := range 3 {
			for _, text := range []string{": ping\n\n", fmt.Sprintf("id: %d\n\n", i), "data: " + listTools + "\n\n"} {
				steps <- text
				if got := e.next(t); got != text {
					t.Fatalf("%q, want %q", got, text)
				}
			}
		}
		if method == http.MethodPost {
			close(steps)
		} else {
			res.Body.Close()
			steps <- ": the end of it\n\n" // taken by the handler that is about to end
			close(steps)
			steps = make(chan string)
		}
	}
}

// A GET that asks for a stream is answered with one, whatever its label: there
// are clients that don't look at it.
func TestHTTPStreamUnderAnotherLabel(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = io.WriteString(w, "data: "+question("0", "t")+"\n\n")
	})
	want := "data: " + asked("0", "t") + "\n\n"
	for _, a := range []string{typeEvents, "application/json, Text/Event-Stream;q=0.5", "text/*"} {
		if got := readAll(t, f.do(t, http.MethodGet, "/mcp", "", headers{"Accept": a})); got != want {
			t.Errorf("Accept %s: %s", a, got)
		}
	}
	if got := readAll(t, f.do(t, http.MethodGet, "/picture", "", headers{"Accept": "image/*"})); got == want {
		t.Errorf("another download was taken for a stream: %s", got)
	}
}

func TestHTTPEndpointEvent(t *testing.T) {
	for name, c := range map[string]struct {
		data, want string // "": the stream ends
		posts      string
	}{
		"relative":           {data: "/messages?sid=1", want: "/messages?sid=1", posts: "/messages?sid=1"},
		"relative to here":   {data: "messages?sid=1&x=a%20b", want: "messages?sid=1&x=a%20b", posts: "/old/messages?sid=1&x=a%20b"},
		"absolute":           {data: "${HOST}/messages?sid=1", want: "/messages?sid=1", posts: "/messages?sid=1"},
		"only a query":       {data: "?sid=1", want: "?sid=1", posts: "/old/sse?sid=1"},
		"odd characters":     {data: "/messages?sid=<1>", want: "/messages?sid=<1>", posts: "/messages?sid=%3C1%3E"},
		"elsewhere":          {data: "https://evil.example/messages"},
		"without a scheme":   {data: "//evil.example/messages"},
		"with a backslash":   {data: `/\evil.example/messages`},
		"with a user":        {data: "http://u@evil.example/"},
		"another scheme":     {data: "javascript:alert(1)"},
		"two slashes inside": {data: "${HOST}//evil.example/x"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := make(chan string, 1)
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					b, _ := io.ReadAll(r.Body)
					answers <- r.URL.RequestURI() + " " + string(b)
					w.WriteHeader(http.StatusAccepted)
					_, _ = io.WriteString(w, "Accepted")
					return
				}
				startEvents(w)
				say(w, "event: endpoint\r\ndata: "+strings.ReplaceAll(c.data, "${HOST}", "http://"+r.Host)+"\r\n\r\n")
				say(w, "data: "+question("0", "t")+"\n\n")
				<-r.Context().Done()
			})
			res := f.do(t, http.MethodGet, "/old/sse", "", headers{"Accept": typeEvents})
			e := events(res)
			if c.want == "" {
				got, err := io.ReadAll(e)
				if err == nil || strings.Contains(string(got), "evil") || strings.Contains(string(got), "javascript") {
					t.Fatalf("%q, %v", got, err)
				}
				return
			}
			got := strings.ReplaceAll(e.next2(t), "\r", "")
			if got != "event: endpoint\ndata: "+c.want+"\n\n" && c.want != "/messages?sid=<1>" {
				t.Fatalf("%q", got)
			}
			if got := e.next(t); got != "data: "+asked("0", "t")+"\n\n" {
				t.Fatalf("%q", got)
			}
			answer := accept("0", `{"t":"d"}`)
			if res := f.do(t, http.MethodPost, c.posts, answer, nil); res.StatusCode != http.StatusAccepted || readAll(t, res) != "Accepted" {
				t.Errorf("status %d", res.StatusCode)
			}
			if got := <-answers; got != c.posts+" "+answer {
				t.Errorf("the server got %s", got)
			}
			// The answer was one to a question of this session; a second one is not.
			wrong := accept("0", `{"t":"other"}`)
			_, _ = f.post(t, wrong, nil)
			if got := <-answers; strings.Contains(got, "accept") {
				t.Errorf("the server got %s", got)
			}
		})
	}
}

// next2 returns the next event of a stream with CRLF.
func (e eventReader) next2(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := e.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		if line == "\n" || line == "\r\n" {
			return b.String()
		}
	}
}

// When the client goes, the request to the server ends, and the other way round.
func TestHTTPDisconnect(t *testing.T) {
	gone := make(chan error, 1)
	broken := make(chan struct{})
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		startEvents(w)
		say(w, "data: "+question("0", "t")+"\n\n")
		select {
		case <-r.Context().Done():
			gone <- context.Cause(r.Context())
		case <-broken:
			panic(http.ErrAbortHandler)
		}
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		res := f.do(t, method, "/mcp", map[string]string{http.MethodPost: callTool}[method], headers{"Accept": typeEvents})
		events(res).next(t)
		res.Body.Close()
		if err := <-gone; err == nil {
			t.Errorf("%s: the request to the server goes on", method)
		}
	}
	res := f.do(t, http.MethodGet, "/mcp", "", headers{"Accept": typeEvents})
	events(res).next(t)
	close(broken)
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a stream that broke ended with %v", err)
	}
}

// A question is asked again on a stream of its session, between two events.
func TestHTTPAskAgain(t *testing.T) {
	answers, more := make(chan string, 4), make(chan string)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), `"initialize"`):
			w.Header().Set(headerSession, "s1")
			answerJSON(w, initialzed)
		case strings.Contains(string(b), `"tools/call"`):
			startEvents(w)
			for text := range more {
				say(w, text)
			}
		default:
			answers <- string(b)
			w.WriteHeader(http.StatusAccepted)
		}
	}, with(t, func(c *policy.Config) { c.Answers.OnInvalid = policy.OnInvalidRetry }))
	f.post(t, initialize, nil)
	in := headers{headerSession: "s1"}
	res := f.do(t, http.MethodPost, "/mcp", callTool, in)
	e := events(res)
	more <- "id: 1\ndata: " + question("0", "t") + "\n\nid: 2\n"
	if got := e.next(t); got != "id: 1\ndata: "+asked("0", "t")+"\n\n" {
		t.Fatalf("%q", got)
	}
	if line, _ := e.ReadString('\n'); line != "id: 2\n" {
		t.Fatalf("%q", line)
	}
	if status, body := f.post(t, accept("0", `{"t":"neither"}`), in); status != http.StatusAccepted || body != "" {
		t.Fatalf("%d %s", status, body)
	}
	more <- "data: " + listTools + "\n\n"
	if got := e.next(t); got != "data: "+listTools+"\n\n" {
		t.Fatalf("the event under way was cut by ours: %q", got)
	}
	if got := e.next(t); !strings.HasPrefix(got, `data: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"Fill this in\n\n`) {
		t.Fatalf("%q", got)
	}
	good := accept("0", `{"t":"n"}`)
	f.post(t, good, in)
	if got := <-answers; got != good {
		t.Errorf("the server got %s", got)
	}
	close(more)
}

// Without a stream that could carry it, a question is not asked again.
func TestHTTPNoStreamToAskAgain(t *testing.T) {
	answers := make(chan string, 1)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), `"initialize"`):
			w.Header().Set(headerSession, "s1")
			answerJSON(w, initialzed)
		case strings.Contains(string(b), `"tools/call"`):
			startEvents(w)
			say(w, "id: 1\ndata: "+question("0", "t")+"\n\n") // and the client is to come back
		default:
			answers <- string(b)
			w.WriteHeader(http.StatusAccepted)
		}
	}, with(t, func(c *policy.Config) { c.Answers.OnInvalid = policy.OnInvalidRetry }))
	f.post(t, initialize, nil)
	in := headers{headerSession: "s1"}
	readAll(t, f.do(t, http.MethodPost, "/mcp", callTool, in))
	f.post(t, accept("0", `{"t":"neither"}`), in)
	if got := <-answers; !strings.Contains(got, `"id":0,"error":{"code":-32602`) {
		t.Errorf("the server got %s", got)
	}
}

// A question that is refused is answered to the server, with the client's headers.
func TestHTTPRefusedQuestion(t *testing.T) {
	var wait sync.WaitGroup
	wait.Add(1)
	var got *http.Request
	var body string
	done := make(chan struct{})
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), `"initialize"`):
			w.Header().Set(headerSession, "s1")
			answerJSON(w, initialzed)
		case strings.Contains(string(b), `"tools/call"`):
			startEvents(w)
			say(w, "data: "+question("0", "t")+"\n\n")
			<-done
			say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\n")
		default:
			got, body = r, string(b)
			w.WriteHeader(http.StatusAccepted)
			close(done)
			wait.Done()
		}
	}, with(t, func(c *policy.Config) { c.Limits.Calls = 1 }), func(p *Proxy) { p.Header = http.Header{"X-Key": {"k"}} })
	f.post(t, initialize, nil)
	h := headers{headerSession: "s1", "Authorization": "Bearer t", headerVersion: "2025-11-25", "Last-Event-ID": "9"}
	stream := readAll(t, f.do(t, http.MethodPost, "/mcp", callTool, h))
	wait.Wait()
	if strings.Contains(stream, "elicitation") {
		t.Errorf("the client got %s", stream)
	}
	if !strings.Contains(body, `"id":0,`) {
		t.Errorf("the server got %s", body)
	}
	for name, value := range map[string]string{headerSession: "s1", "Authorization": "Bearer t", headerVersion: "2025-11-25", "X-Key": "k", "Content-Type": "application/json", "Last-Event-Id": "", "Accept-Encoding": "identity"} {
		if got.Header.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), value)
		}
	}
}
