package proxy

import (
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// announce tells the client, once the icons that a list went out without have
// arrived, that the list has changed. It does so once, and only where the
// server itself would: before 2026-07-28 if it declared listChanged, and after
// that on the streams that it acknowledged for it.
func (m *message) announce(late []*icon.Pending) {
	s := m.session
	notification, of := listChangedOf(m.method())
	if notification == "" {
		return
	}
	modern := m.call != nil && m.call.revision >= revisionModern
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announcing[notification] || !modern && !of(s.changed) {
		return
	}
	if s.announcing == nil {
		s.announcing = make(map[string]bool)
	}
	s.announcing[notification] = true
	go s.announceLater(notification, of, modern, late)
}

func (s *session) announceLater(notification string, of func(listChanged) bool, modern bool, late []*icon.Pending) {
	arrived := false
	for _, p := range late {
		<-p.Done()
		_, err := p.Result()
		arrived = arrived || err == nil
	}
	s.mu.Lock()
	delete(s.announcing, notification)
	s.mu.Unlock()
	switch {
	case !arrived:
	case modern:
		s.proxy.subs.notify(notification, of)
	case s.send != nil:
		s.send(ToClient, []byte(`{"jsonrpc":"2.0","method":"`+notification+`"}`))
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
