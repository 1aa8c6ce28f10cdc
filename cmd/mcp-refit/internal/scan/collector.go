package scan

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-refit/mcp-refit/proxy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// A Collector listens to a proxy. Its methods are the proxy's hooks, and may be
// called by many goroutines at once. The zero value is ready.
type Collector struct {
	mu       sync.Mutex
	calling  string // the tool that is being called
	findings []Finding
	seen     map[string]bool // findings that are there, by all that they say
	forms    []Form
	counts   Counts
	names    map[string]bool   // of tools, prompts and resources, with their kind
	pages    map[string]page   // by method
	refitted map[string]*refit // by the schema before
	last     listing           // of the message at hand
	strays   int
}

// Bounds on what a hostile server can make us keep.
const (
	maxFindings = 10_000
	maxForms    = 200
	maxStrays   = 20
	maxText     = 300 // bytes of a text of the server's that are shown
)

// Reset forgets all.
func (c *Collector) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calling, c.findings, c.seen, c.forms, c.counts, c.strays = "", nil, nil, nil, Counts{}, 0
	c.names, c.pages, c.refitted, c.last = nil, nil, nil, listing{}
}

// Calling says which tool is being called from now on.
func (c *Collector) Calling(tool string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calling = tool
}

// Add adds a finding that was made elsewhere.
func (c *Collector) Add(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(f)
}

func (c *Collector) add(f Finding) {
	if len(c.findings) == maxFindings {
		f = Finding{Level: Fault, Rule: "scan", Subject: theServer, Reason: fmt.Sprintf("there is more than %d findings; the rest is left out", maxFindings)}
	}
	where := f.Method + "\x00" + f.Path
	if f.Subject == theServer {
		where = "" // it says who it is in every result of 2026-07-28
	}
	key := strings.Join([]string{string(f.Level), f.Rule, f.Subject, f.Verdict, f.Reason, f.URL, where}, "\x00")
	if len(c.findings) > maxFindings || c.seen[key] {
		return // a list that is asked for twice
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[key] = true
	c.findings = append(c.findings, f)
}

// Decision is the hook Proxy.OnDecision.
func (c *Collector) Decision(d proxy.Decision) {
	if d.To != proxy.ToClient {
		return // of our own making: it tells nothing of the server
	}
	f := Finding{Level: levelOf(d.Verdict), Rule: d.Rule, Verdict: d.Verdict, Reason: d.Reason, Method: d.Method, Path: d.Path}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Subject = c.subject(d.Message, d.Method, d.Path)
	if d.Rule == "icon" {
		f.URL, f.Host = shownURL(string(d.Before))
		f.Picture = picture(d.After)
	}
	if strings.Contains(d.Path, ".requestedSchema") && len(d.After) > 0 {
		c.refit(d)
	}
	c.add(f)
}

// refit keeps what becomes of a schema, for the form that it is in.
func (c *Collector) refit(d proxy.Decision) {
	r := c.refitted[string(d.Before)]
	if r == nil {
		if len(c.refitted) >= maxForms {
			return
		}
		if c.refitted == nil {
			c.refitted = map[string]*refit{}
		}
		r = &refit{after: bytes.Clone(d.After)}
		c.refitted[string(d.Before)] = r
	}
	if !slices.Contains(r.rules, d.Rule) {
		r.rules = append(r.rules, d.Rule)
	}
}

func levelOf(verdict string) Level {
	switch verdict {
	case proxy.VerdictKept:
		return Note
	case proxy.VerdictRewritten, proxy.VerdictStripped, proxy.VerdictInlined:
		return Change
	}
	return Fault
}

// Message is the hook Proxy.OnMessage.
func (c *Collector) Message(m proxy.Message) {
	if m.To != proxy.ToClient {
		return
	}
	env, err := rewrite.Scan(m.Raw)
	if err != nil || env.Kind == rewrite.KindBatch {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(env.Surplus) > 0 {
		c.add(Finding{Level: Change, Rule: "surplus", Subject: c.subject(m.Raw, m.Method, ""), Method: m.Method, Verdict: proxy.VerdictStripped,
			Reason: "a member of the envelope is written twice or in another case, which two readers could read in two ways"})
	}
	c.questions(m, env)
	if env.Kind == rewrite.KindResult {
		c.iconMembers(m, env)
		c.list(m)
	}
}

// questions keeps each form with what would become of it. The proxy has told of
// its changes before, but not of forms that need none.
func (c *Collector) questions(m proxy.Message, env rewrite.Envelope) {
	for _, q := range rewrite.FindQuestions(m.Raw, env).List {
		schema := q.Schema.Of(m.Raw)
		if len(schema) == 0 || q.ModeOf(m.Raw) != rewrite.ModeForm || len(c.forms) >= maxForms {
			continue
		}
		text, _ := rewrite.String(m.Raw, q.Message)
		f := Form{Subject: c.subject(m.Raw, m.Method, q.Path), Message: cut(text), Before: bytes.Clone(schema), Rules: []string{}}
		f.After = f.Before
		if r := c.refitted[string(schema)]; r != nil {
			f.After, f.Rules = r.after, r.rules
		}
		if !slices.ContainsFunc(c.forms, func(o Form) bool {
			return o.Subject == f.Subject && o.Message == f.Message && bytes.Equal(o.Before, f.Before)
		}) {
			c.forms = append(c.forms, f)
		}
	}
}

// iconMembers looks for members of icons that clients fail on.
func (c *Collector) iconMembers(m proxy.Message, env rewrite.Envelope) {
	sets, err := rewrite.Icons(m.Raw, env, rewrite.Place{ToClient: true, Method: m.Method})
	if err != nil {
		return // the proxy has refused the message, and said so
	}
	for _, set := range sets {
		for i := range set.Icons {
			for _, odd := range set.Icons[i].Odd(m.Raw) {
				path := set.Path() + ".icons[" + strconv.Itoa(i) + "]"
				c.add(Finding{Level: Change, Rule: "icon-member", Subject: c.subject(m.Raw, m.Method, path), Verdict: proxy.VerdictRewritten,
					Reason: odd, Method: m.Method, Path: path})
			}
		}
	}
}

// Stray is the hook Proxy.OnStray.
func (c *Collector) Stray(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.strays++; c.strays > maxStrays {
		return
	}
	c.add(Finding{Level: Fault, Rule: "stray-line", Subject: "stdout", Verdict: proxy.VerdictStripped,
		Reason: fmt.Sprintf("a line that is no message stands on the server's stdout, which is for messages alone: %q", cut(string(line)))})
}

// cut shortens a text of the server's to what is shown.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// shownURL is a URL without what may be secret in it, and its host.
func shownURL(src string) (shown, host string) {
	if scheme, rest, ok := strings.Cut(src, ":"); ok && strings.EqualFold(scheme, "data") {
		head, _, _ := strings.Cut(rest, ",")
		return cut("data:" + head + ",… (" + strconv.Itoa(len(src)) + " bytes)"), ""
	}
	u, err := url.Parse(src)
	if err != nil {
		return "no URL", ""
	}
	query := u.RawQuery != ""
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	shown = u.String()
	if query {
		shown += "?…"
	}
	return cut(shown), u.Host
}

// picture lets a data: URI of our own making through, and nothing else.
func picture(after []byte) string {
	base64, ok := bytes.CutPrefix(after, []byte("data:image/png;base64,"))
	if !ok || len(base64) == 0 || bytes.ContainsFunc(base64, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '+' || r == '/' || r == '=')
	}) {
		return ""
	}
	return string(after)
}
