package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// Idle time and lifetime, against what is under way.
func TestBridgeTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &childSession{t: &ChildTransport{ChildLimits: ChildLimits{Idle: time.Hour}}, calls: map[string]*childCall{}, streams: map[string]*eventStream{}, standing: newEventStream("g", 1)}
		s.peer = &childPeer{child: &Child{stop: make(chan struct{}), done: make(chan struct{})}}
		close(s.peer.child.done)
		s.idle = time.AfterFunc(time.Hour, s.closeIdle)
		at := func(d time.Duration, want bool) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := s.stands(); got != want {
				t.Errorf("after %v: stands is %v", d, got)
			}
		}
		at(59*time.Minute, true)
		s.mu.Lock()
		s.enter() // a call that waits for a human, or a GET stream
		s.mu.Unlock()
		at(100*time.Hour, true)
		s.t.Limits = func() ChildLimits { return ChildLimits{Idle: 2 * time.Hour} }
		s.leave(nil)
		at(119*time.Minute, true)
		at(2*time.Minute, false)
	})
}

// readEvents reads what a stream has now.
func readEvents(t *testing.T, s *eventStream, from int) string {
	t.Helper()
	body, err := s.body(t.Context(), from, false, func() {})
	if err != nil {
		return err.Error()
	}
	defer body.Close()
	p := make([]byte, 4<<10)
	n, err := body.Read(p)
	if err != nil {
		return err.Error()
	}
	return string(p[:n])
}

// A stream keeps what its bounds allow, whatever comes and whoever reads.
func TestBridgeStreamBounds(t *testing.T) {
	large := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	tests := []struct {
		name  string
		keep  int
		push  int
		what  []byte
		read  bool // by a client, as it comes
		first int  // the first that is kept
	}{
		{"unread", 8, 2 * maxWaiting, []byte("1"), false, maxWaiting},
		{"unread and large", 8, 100, large, false, 37},
		{"read", 8, 100, []byte("1"), true, 92},
		{"read and large", 8, 100, large, true, 99},
		{"read, nothing kept", 0, 100, []byte("1"), true, 100},
	}
	for _, tt := range tests {
		s := newEventStream("p1", tt.keep)
		for i := range tt.push {
			s.push(tt.what)
			if tt.read {
				readEvents(t, s, i)
			}
		}
		size := 0
		for _, e := range s.events {
			size += len(e)
		}
		if s.first != tt.first || s.size != size || s.first+len(s.events) != tt.push {
			t.Errorf("%s: %d to %d are kept, %d bytes (counted %d), want from %d", tt.name, s.first, s.first+len(s.events), size, s.size, tt.first)
		}
		if got := readEvents(t, s, 0); tt.first > 0 && got != errBehind.Error() {
			t.Errorf("%s: from the start: %.60q", tt.name, got)
		}
	}
}

// A carriage return between tokens does not cut an event in two.
func TestBridgeEventIsOneLine(t *testing.T) {
	s := newEventStream("", 1)
	s.push([]byte("{\"a\":1,\r\"b\":2}"))
	if got, want := readEvents(t, s, 0), "event: message\ndata: {\"a\":1, \"b\":2}\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A silent stream says now and then that it is there.
func TestBridgeKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEventStream("", 1)
		start := time.Now()
		if got := readEvents(t, s, 0); got != ":\n\n" || time.Since(start) != keepAlive {
			t.Errorf("%q after %v", got, time.Since(start))
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
		r.Header.Set("Accept", bothTypes)
		start = time.Now()
		res := await(r, s, func() {})
		if res.Header.Get("Content-Type") != typeEvents || time.Since(start) != eventsAfter {
			t.Errorf("%v after %v", res.Header, time.Since(start))
		}
	})
}

// A reader that was replaced never reads again, whoever else has left.
func TestBridgeSuperseded(t *testing.T) {
	s := newEventStream("g", 4)
	first, _ := s.body(t.Context(), fromUnread, true, func() {})
	if _, err := s.body(t.Context(), fromUnread, true, func() {}); !errors.Is(err, errTaken) {
		t.Errorf("alone: %v", err)
	}
	second, _ := s.body(t.Context(), 0, false, func() {})
	second.Close()
	third, _ := s.body(t.Context(), fromUnread, true, func() {})
	s.push([]byte("1"))
	if _, err := first.Read(make([]byte, 64)); !errors.Is(err, errSuperseded) {
		t.Errorf("the first reader: %v", err)
	}
	if n, err := third.Read(make([]byte, 64)); err != nil || n == 0 {
		t.Errorf("the third reader: %d %v", n, err)
	}
}

// Where a message of the child goes, and that it goes to one place alone.
func TestBridgeRouting(t *testing.T) {
	ask := question("0", "size")
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b","progress":1}}`
	type setup struct {
		calls     string // one letter a call: h here, a away, j takes JSON alone, c cancelled, p away and can come back
		listening bool   // somebody reads the standing stream
	}
	tests := []struct {
		name    string
		setup   setup
		message string
		want    int // the number of the call; -1 for the standing stream
	}{
		{"one call", setup{"h", true}, ask, 0},
		{"no call", setup{"", false}, ask, -1},
		{"several calls, GET", setup{"hh", true}, ask, -1},
		{"several calls, no GET", setup{"hh", false}, ask, 1},
		{"progress of the second", setup{"hhh", true}, progress, 1},
		{"progress of one that takes JSON", setup{"hj", true}, progress, 1},
		{"the only call takes JSON alone", setup{"j", false}, ask, -1},
		{"the only one is cancelled", setup{"c", false}, ask, -1},
		{"one is cancelled", setup{"ch", true}, ask, 1},
		{"its client has left", setup{"a", true}, ask, -1},
		{"its client has left, for good", setup{"a", false}, ask, -1},
		{"its client has left and may come back", setup{"p", false}, ask, 0},
		{"one client has left", setup{"ha", false}, ask, 0},
	}
	for _, tt := range tests {
		s := &childSession{calls: map[string]*childCall{}, standing: newEventStream("g", 4)}
		if tt.setup.listening {
			if _, err := s.standing.body(t.Context(), fromUnread, true, func() {}); err != nil {
				t.Fatal(err)
			}
		}
		var streams []*eventStream
		for i, kind := range tt.setup.calls {
			stream := newEventStream(fmt.Sprint("p", i), 4)
			stream.away, stream.jsonOnly, stream.prime = kind == 'a' || kind == 'p', kind == 'j', kind == 'p'
			s.order = append(s.order, &childCall{token: `"` + string(rune('a'+i)), stream: stream, cancelled: kind == 'c'})
			streams = append(streams, stream)
		}
		env, err := rewrite.Scan([]byte(tt.message))
		if err != nil {
			t.Fatal(err)
		}
		s.deliver([]byte(tt.message), env)
		for i, stream := range append(streams, s.standing) {
			want := 0
			if i == tt.want || i == len(streams) && tt.want < 0 {
				want = 1
			}
			if len(stream.events) != want {
				t.Errorf("%s: %d messages on %s, want %d", tt.name, len(stream.events), stream.id, want)
			}
		}
	}
}

// A batch of answers goes where its requests came from.
func TestBridgeBatches(t *testing.T) {
	result := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }
	tests := []struct {
		name, batch string
		want        [2]string // of the POST with 1 and 2, and of that with 3
	}{
		{"of one POST", "[" + result("2") + "," + result("1") + "]", [2]string{"[" + result("2") + "," + result("1") + "]", ""}},
		{"of two", "[" + result("2") + "," + result("3") + "]", [2]string{result("2"), result("3")}},
		{"with a notification", `[{"jsonrpc":"2.0","method":"n"},` + result("3") + "]", [2]string{"", `[{"jsonrpc":"2.0","method":"n"},` + result("3") + "]"}},
		{"of one that is unknown", "[" + result("9") + "," + result("3") + "]", [2]string{"", "[" + result("9") + "," + result("3") + "]"}},
	}
	for _, tt := range tests {
		s := &childSession{t: &ChildTransport{}, calls: map[string]*childCall{}, standing: newEventStream("g", 4)}
		both, alone := newEventStream("p1", 4), newEventStream("p2", 4)
		two, one := 2, 1
		for id, stream := range map[string]*eventStream{"1": both, "2": both, "3": alone} {
			left := &two
			if stream == alone {
				left = &one
			}
			call := &childCall{id: []byte(id), stream: stream, left: left}
			s.calls[id] = call
			s.order = append(s.order, call)
		}
		env, err := rewrite.Scan([]byte(tt.batch))
		if err != nil {
			t.Fatal(err)
		}
		s.deliver([]byte(tt.batch), env)
		for i, stream := range []*eventStream{both, alone} {
			if got := string(bytes.Join(stream.events, nil)); got != tt.want[i] {
				t.Errorf("%s: %s got %s, want %s", tt.name, stream.id, got, tt.want[i])
			}
			if answered := *map[*eventStream]*int{both: &two, alone: &one}[stream] == 0; stream.done != answered {
				t.Errorf("%s: %s is done: %v", tt.name, stream.id, stream.done)
			}
		}
	}
}

// Where a notification without a name belongs.
func TestBridgeNameless(t *testing.T) {
	log, list := "notifications/message", "notifications/tools/list_changed"
	tests := []struct {
		name, method string
		calls        []sharedCall
		abandoned    time.Time
		want         int // calls that get it
	}{
		{"one call that asked for logs", log, []sharedCall{{logs: true}}, time.Time{}, 1},
		{"one call that did not", log, []sharedCall{{}}, time.Time{}, 0},
		{"two calls", log, []sharedCall{{logs: true}, {}}, time.Time{}, 0},
		{"one call beside a subscription", log, []sharedCall{{logs: true}, {method: "subscriptions/listen"}}, time.Time{}, 1},
		{"another was cancelled just now", log, []sharedCall{{logs: true}}, time.Now(), 0},
		{"another was cancelled long ago", log, []sharedCall{{logs: true}}, time.Now().Add(-time.Hour), 1},
		{"list_changed", list, []sharedCall{{logs: true}}, time.Time{}, 0},
		{"list_changed of a subscription", list, []sharedCall{{method: "subscriptions/listen"}}, time.Time{}, 0},
	}
	for _, tt := range tests {
		c := &sharedChild{t: &ChildTransport{}, calls: map[int64]*sharedCall{}, abandoned: tt.abandoned}
		for i := range tt.calls {
			tt.calls[i].stream = newEventStream("", 0)
			c.calls[int64(i+1)] = &tt.calls[i]
		}
		raw := []byte(`{"jsonrpc":"2.0","method":"` + tt.method + `","params":{}}`)
		env, err := rewrite.Scan(raw)
		if err != nil {
			t.Fatal(err)
		}
		c.deliver(raw, env)
		got := 0
		for _, one := range tt.calls {
			got += len(one.stream.events)
		}
		if got != tt.want {
			t.Errorf("%s: %d calls got it, want %d", tt.name, got, tt.want)
		}
	}
}
