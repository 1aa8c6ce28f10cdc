package scan

import "encoding/json"

// A Report is all that was found in one server. It is what --json prints.
type Report struct {
	Version  int       `json:"version"` // of this form: 1
	Tool     string    `json:"tool"`    // mcp-refit and its version
	Target   string    `json:"target"`  // the command, or the URL without its query
	Server   Server    `json:"server"`
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"`
	Forms    []Form    `json:"forms"`
}

// Server is what the server says of itself.
type Server struct {
	Name     string `json:"name"`
	Title    string `json:"title,omitempty"`
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the protocol, as negotiated with a current client
}

// Counts are the lengths of the server's lists.
type Counts struct {
	Tools             int `json:"tools"`
	Resources         int `json:"resources"`
	ResourceTemplates int `json:"resourceTemplates"`
	Prompts           int `json:"prompts"`
}

// A Finding is one thing that mcp-refit would do or that clients stumble over.
type Finding struct {
	Level   Level  `json:"level"`
	Rule    string `json:"rule"`    // a schema rule's name, icon, website, icon-member, form, stray-line, list …
	Subject string `json:"subject"` // such as tool "search"
	Verdict string `json:"verdict,omitempty"`
	Reason  string `json:"reason"`
	Host    string `json:"host,omitempty"` // of an icon
	URL     string `json:"url,omitempty"`  // of an icon, without its query; of data: only the beginning
	Method  string `json:"method,omitempty"`
	Path    string `json:"path,omitempty"` // where in the message

	// Picture is what the icon becomes, or what is left of a data: URI: always
	// a PNG of our own making.
	Picture string `json:"picture,omitempty"`
}

// A Form is one question of the server.
type Form struct {
	Subject string          `json:"subject"` // such as tool "order"
	Message string          `json:"message"`
	Before  json.RawMessage `json:"before"` // requestedSchema as the server sends it
	After   json.RawMessage `json:"after"`  // and as the client would get it
	Rules   []string        `json:"rules"`  // that would be applied
}

// Level says how much a finding matters.
type Level string

// The levels, from the least.
const (
	Note   Level = "note"   // nothing would be changed
	Change Level = "change" // the proxy would change something, and all is well
	Fault  Level = "fault"  // something would be refused, or can't be put right
)

// Has reports whether there is a finding of that level or above.
func (r *Report) Has(least Level) bool {
	for _, f := range r.Findings {
		if f.Level == Fault || f.Level == least || least == Note {
			return true
		}
	}
	return false
}

func (r *Report) count(l Level) int {
	n := 0
	for _, f := range r.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}
