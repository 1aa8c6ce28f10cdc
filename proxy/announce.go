package proxy

import (
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// announce tells the client, once the icons that a list went out without have
// arrived, that the list has changed. It does so once, and only where the
// server itself would: where it declared listChanged.
func (s *session) announce(method string, late []*icon.Pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	notification, declared := s.changed.notification(method)
	if !declared || s.announcing[notification] {
		return
	}
	if s.announcing == nil {
		s.announcing = make(map[string]bool)
	}
	s.announcing[notification] = true
	go s.announceLater(notification, late)
}

func (s *session) announceLater(notification string, late []*icon.Pending) {
	arrived := false
	for _, p := range late {
		<-p.Done()
		_, err := p.Result()
		arrived = arrived || err == nil
	}
	s.mu.Lock()
	delete(s.announcing, notification)
	s.mu.Unlock()
	if arrived {
		s.notify(notification)
	}
}

// notification is the list_changed notification that belongs to the result of
// a method, and whether the server declared that it sends it.
func (c listChanged) notification(method string) (string, bool) {
	switch method {
	case "tools/list":
		return "notifications/tools/list_changed", c.tools
	case "prompts/list":
		return "notifications/prompts/list_changed", c.prompts
	case "resources/list", "resources/templates/list":
		return "notifications/resources/list_changed", c.resources
	}
	return "", false
}

// notify sends a list_changed notification of our own: in the modern era on
// each subscription that asked for it, before that on the session.
func (s *session) notify(notification string) {
	if s.send != nil {
		s.send(ToClient, []byte(`{"jsonrpc":"2.0","method":"`+notification+`"}`))
	}
}
