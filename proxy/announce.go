package proxy

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// announce sees to it that the client is told, once the icons that a list went
// out without have arrived, that the list has changed. That is done once, and
// only where the server itself would do it: before 2026-07-28 if it declared
// listChanged, and after that on the streams that it acknowledged for it.
func (m *message) announce(late []*icon.Pending) {
	if m.to != ToClient || m.env.Kind != rewrite.KindResult {
		return
	}
	notification, of := listChangedOf(m.method())
	if notification == "" {
		return
	}
	s := m.session
	if m.call.revision >= revisionModern {
		subs := &s.proxy.subs
		m.after = func() { subs.news.add(notification, late, func() { subs.notify(notification, of) }) }
		return
	}
	s.mu.Lock()
	declared := of(s.changed)
	s.mu.Unlock()
	if declared && s.send != nil {
		m.after = func() {
			s.news.add(notification, late, func() {
				s.send(ToClient, []byte(`{"jsonrpc":"2.0","method":"`+notification+`"}`))
			})
		}
	}
}

// announcements are the list_changed notifications of ours that are to follow: at most
// one goroutine for each kind of list. The zero value has none.
type announcements struct {
	mu   sync.Mutex
	ctx  context.Context // ends with the session; nil: nothing was ever to follow
	stop context.CancelFunc
	open map[string]*announcement
	rate map[string]*rate.Limiter
}

// An announcement is one notification that is to follow.
type announcement struct {
	late  map[*icon.Pending]struct{} // these are waited for
	limit *rate.Limiter
}

// How often the client is told. A list whose icons never all fit into the
// cache would else have it ask again for ever.
const (
	announceBurst = 5
	announceEvery = time.Minute
)

// announceWithin is how long icons that come late one after the other put off
// the notification of those that have arrived.
const announceWithin = 30 * time.Second

// add has tell called once the icons have arrived, together with those that
// were added for the same notification before. If none does, it is not called.
func (a *announcements) add(notification string, late []*icon.Pending, tell func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.open[notification]
	if one == nil {
		if a.ctx == nil {
			a.ctx, a.stop = context.WithCancel(context.Background())
			a.open, a.rate = make(map[string]*announcement), make(map[string]*rate.Limiter)
		}
		if a.rate[notification] == nil {
			a.rate[notification] = rate.NewLimiter(rate.Every(announceEvery), announceBurst)
		}
		one = &announcement{limit: a.rate[notification], late: make(map[*icon.Pending]struct{})}
		a.open[notification] = one
		go a.follow(a.ctx, notification, one, tell)
	}
	for _, p := range late {
		one.late[p] = struct{}{}
	}
}

// follow waits for icons, and tells the client once none is waited for any
// more, or too long.
func (a *announcements) follow(ctx context.Context, notification string, one *announcement, tell func()) {
	begun, arrived, allowed := time.Now(), false, false
	for {
		if !arrived || time.Since(begun) < announceWithin {
			if p := a.next(one); p != nil {
				select {
				case <-p.Done():
				case <-ctx.Done():
					return
				}
				_, err := p.Result()
				arrived = arrived || err == nil
				continue
			}
		}
		switch {
		case arrived && !allowed: // what comes meanwhile is told with it
			if one.limit.Wait(ctx) != nil {
				return
			}
			allowed = true
			continue
		case arrived:
			tell()
			begun, arrived, allowed = time.Now(), false, false
		}
		if a.close(notification, one) {
			return
		}
	}
}

// next takes one of the icons that are waited for, nil if there is none.
func (a *announcements) next(one *announcement) *icon.Pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range one.late {
		delete(one.late, p)
		return p
	}
	return nil
}

// close ends an announcement, unless there are icons to wait for.
func (a *announcements) close(notification string, one *announcement) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(one.late) > 0 {
		return false
	}
	if a.open[notification] == one {
		delete(a.open, notification)
	}
	return true
}

// end forgets what was to follow.
func (a *announcements) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx != nil {
		a.stop()
		a.ctx, a.open = nil, nil
	}
}

// listChangedOf is the list_changed notification that belongs to the result of
// a method, and where a set of them says that it is wanted. It is empty if
// there is none.
func listChangedOf(method string) (string, func(listChanged) bool) {
	switch method {
	case "tools/list":
		return "notifications/tools/list_changed", func(c listChanged) bool { return c.tools }
	case "prompts/list":
		return "notifications/prompts/list_changed", func(c listChanged) bool { return c.prompts }
	case "resources/list", "resources/templates/list":
		return "notifications/resources/list_changed", func(c listChanged) bool { return c.resources }
	}
	return "", nil
}
