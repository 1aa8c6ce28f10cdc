package rewrite

// methodAt decodes the method at s. For one that MCP defines it returns a
// constant, so that reading a message takes no memory.
func methodAt(raw []byte, s Span) (string, bool) {
	if s.End-s.Start > 2 && raw[s.Start] == '"' {
		if m := known(raw[s.Start+1 : s.End-1]); m != "" {
			return m, true
		}
	}
	return String(raw, s)
}

// known returns the method of that name, of the revisions from 2024-11-05 to
// 2026-07-28 and the tasks extension; empty if there is none.
func known(name []byte) string {
	switch string(name) {
	case "initialize":
		return "initialize"
	case "ping":
		return "ping"
	case "tools/list":
		return "tools/list"
	case "tools/call":
		return "tools/call"
	case "prompts/list":
		return "prompts/list"
	case "prompts/get":
		return "prompts/get"
	case "resources/list":
		return "resources/list"
	case "resources/templates/list":
		return "resources/templates/list"
	case "resources/read":
		return "resources/read"
	case "resources/subscribe":
		return "resources/subscribe"
	case "resources/unsubscribe":
		return "resources/unsubscribe"
	case "completion/complete":
		return "completion/complete"
	case "logging/setLevel":
		return "logging/setLevel"
	case "sampling/createMessage":
		return "sampling/createMessage"
	case "roots/list":
		return "roots/list"
	case "elicitation/create":
		return "elicitation/create"
	case "tasks/get":
		return "tasks/get"
	case "tasks/result":
		return "tasks/result"
	case "tasks/list":
		return "tasks/list"
	case "tasks/cancel":
		return "tasks/cancel"
	case "tasks/update":
		return "tasks/update"
	case "server/discover":
		return "server/discover"
	case "subscriptions/listen":
		return "subscriptions/listen"
	case "notifications/initialized":
		return "notifications/initialized"
	case "notifications/cancelled":
		return "notifications/cancelled"
	case "notifications/progress":
		return "notifications/progress"
	case "notifications/message":
		return "notifications/message"
	case "notifications/tools/list_changed":
		return "notifications/tools/list_changed"
	case "notifications/prompts/list_changed":
		return "notifications/prompts/list_changed"
	case "notifications/resources/list_changed":
		return "notifications/resources/list_changed"
	case "notifications/resources/updated":
		return "notifications/resources/updated"
	case "notifications/roots/list_changed":
		return "notifications/roots/list_changed"
	case "notifications/elicitation/complete":
		return "notifications/elicitation/complete"
	case "notifications/tasks/status":
		return "notifications/tasks/status"
	case "notifications/tasks":
		return "notifications/tasks"
	}
	return ""
}
