package proxy

import (
	"slices"
	"sync"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// metaSubscriptionID says in a notification's _meta which subscriptions/listen
// request it belongs to: that request's id.
const metaSubscriptionID = "io.modelcontextprotocol/subscriptionId"

// subscriptions are the open subscriptions/listen streams of a proxy's clients
// (2026-07-28). A modern list_changed travels nowhere else. They are shared by
// all sessions, since a list and the stream on which its change is told are
// different requests, which nothing ties together.
type subscriptions struct {
	mu   sync.Mutex
	open map[*session][]subscription
	news announcements
}

type subscription struct {
	id     []byte // as it was written
	wanted listChanged
}

// subscribes is what a subscription, or the acknowledgement of one, names.
func (m *message) subscribes() listChanged {
	named := func(what string) bool {
		at, _ := rewrite.Lookup(m.raw, m.env.Params, "notifications", what)
		return string(at.Of(m.raw)) == "true"
	}
	return listChanged{tools: named("toolsListChanged"), prompts: named("promptsListChanged"), resources: named("resourcesListChanged")}
}

// subscribed notes what the server acknowledges of a client's subscription,
// for as long as that is open.
func (m *message) subscribed() {
	if m.env.Kind != rewrite.KindNotification || m.env.Method != "notifications/subscriptions/acknowledged" {
		return
	}
	id, ok := rewrite.Lookup(m.raw, m.env.Params, "_meta", metaSubscriptionID)
	if !ok {
		return
	}
	key := callKey{ToServer, canonicalID(id.Of(m.raw))}
	m.session.mu.Lock()
	defer m.session.mu.Unlock() // so that it can't end in between
	one := m.session.calls.open[key]
	if one == nil || one.method != "subscriptions/listen" {
		return
	}
	granted := m.subscribes()
	granted.tools = granted.tools && one.asked.tools
	granted.prompts = granted.prompts && one.asked.prompts
	granted.resources = granted.resources && one.asked.resources
	m.session.proxy.subs.subscribe(m.session, subscription{one.id, granted})
}

func (s *subscriptions) subscribe(on *session, one subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*session][]subscription)
	}
	id := canonicalID(one.id)
	s.open[on] = append(slices.DeleteFunc(s.open[on], func(other subscription) bool { return canonicalID(other.id) == id }), one)
}

// unsubscribe forgets a stream that has ended: one of a session over which
// others may go on, or all of them if id is nil.
func (s *subscriptions) unsubscribe(on *session, id []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []subscription
	for _, one := range s.open[on] {
		if id != nil && canonicalID(one.id) != canonicalID(id) {
			left = append(left, one)
		}
	}
	if len(left) == 0 {
		delete(s.open, on)
		return
	}
	s.open[on] = left
}

// notify sends a list_changed notification of our own on each stream that was
// acknowledged for it.
func (s *subscriptions) notify(notification string, wants func(listChanged) bool) {
	type post struct {
		send    func(Direction, []byte) bool
		message []byte
	}
	var posts []post
	s.mu.Lock()
	for on, list := range s.open {
		for _, one := range list {
			if wants(one.wanted) && on.send != nil {
				posts = append(posts, post{on.send, []byte(`{"jsonrpc":"2.0","method":"` + notification + `","params":{"_meta":{"` + metaSubscriptionID + `":` + string(one.id) + `}}}`)})
			}
		}
	}
	s.mu.Unlock()
	for _, p := range posts {
		go p.send(ToClient, p.message) // one that does not read holds up no other
	}
}
