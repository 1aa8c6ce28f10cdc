package proxy

import (
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// A Proxy stands between MCP clients and MCP servers. Its zero value passes
// every message. Set the fields before the first use; after that they must not
// be changed.
type Proxy struct {
	// Policy returns the policy in force. It is called for every message, so a
	// reload takes hold with the next one. nil: everything passes.
	Policy func() *policy.Policy

	// Icons fetches and decodes the icons that the policy inlines. nil: they
	// are stripped.
	Icons *icon.Fetcher

	// IconsFor, if not nil, returns what to use in the place of Icons for a
	// message that is judged by the given policy, so that a reload can change
	// how icons are fetched. It may return nil, as for Icons.
	IconsFor func(*policy.Policy) *icon.Fetcher

	// FetchObserved fetches and decodes icons even where the policy only
	// observes, so that OnDecision is told what would have come of them.
	FetchObserved bool

	// Seal seals the state that modern clients carry between a question and
	// its answer. nil: a key of this process's own, made on first use.
	Seal *Sealer

	// Log is told of every rewrite (info), of what passes unchecked or is
	// refused (warn). nil: nobody.
	Log *zap.Logger

	// OnDecision is told of everything that was changed, refused or (with the
	// policy's observe) would have been. It is called before the message is
	// passed on, by many goroutines at once. nil: nobody.
	OnDecision func(Decision)

	// OnMessage is told of every message that was handled. nil: nobody.
	OnMessage func(Message)

	// OnCall is told of every request when it is over. nil: nobody, and then
	// requests are not timed.
	OnCall func(Call)

	// OnAnswer is told what the check of each ElicitResult came to: kept,
	// refused, asked again or passed (a Verdict constant). nil: nobody.
	OnAnswer func(verdict string)

	// OnSession is told when a session begins and when it is over. A request
	// over HTTP that belongs to no session is none. nil: nobody.
	OnSession func(session string, open bool)

	// OnServer is told the name that a server gives itself in the result of
	// initialize, before that result is judged: Policy may answer differently
	// from then on. A server can take any name. nil: nobody.
	OnServer func(name string)

	// OnStray is given each line on a stdio server's output that is no
	// JSON-RPC message, without its end. It must not keep it. nil: nobody.
	OnStray func(line []byte)

	// Upstream is the server's URL, for ServeHTTP: its origin is where all
	// requests go, its path is the MCP endpoint, and its query is put in front
	// of that of requests to this path. nil: every request is answered 500.
	Upstream *url.URL

	// Transport carries the requests to Upstream. nil: that of NewTransport.
	Transport http.RoundTripper

	// Header is put into every request to Upstream, in the place of what the
	// client sent under the same name. The names are canonical.
	Header http.Header

	// Authorizer obtains the credentials for Upstream, for RunURL. nil: there
	// are none but those of Header, and a server that wants others is an error
	// that says so.
	Authorizer Authorizer

	// ClientHost sends Upstream the Host that the client sent, with
	// X-Forwarded-Host and X-Forwarded-Proto where there are none. Without it,
	// Upstream is sent its own Host.
	ClientHost bool

	// AllowOrigins are the values of Origin that are accepted besides loopback;
	// "*" is any. Others are refused with 403.
	AllowOrigins []string

	// AllowHosts are the values of Host that are accepted besides loopback,
	// with or without a port. If there are none, Host is not looked at, unless
	// CheckHost is set, which is for servers that listen on loopback alone.
	AllowHosts []string
	CheckHost  bool

	// EndWait is how long Run goes on once its context has ended, for the
	// server to end and for the client to read what is left. 0 is
	// DefaultEndWait; negative is no wait.
	EndWait time.Duration

	inflight inflight
	tasks    taskCache
	subs     subscriptions
	sealOnce sync.Once
	sessions httpSessions
	side     httpSide
}

// DefaultEndWait is the EndWait of a [Proxy] whose field is zero.
const DefaultEndWait = 5 * time.Second

// policy is what is in force, nil if everything passes.
func (p *Proxy) policy() *policy.Policy {
	if p.Policy == nil {
		return nil
	}
	return p.Policy()
}

// fetcher fetches the icons of messages under that policy, nil if nothing does.
func (p *Proxy) fetcher(under *policy.Policy) *icon.Fetcher {
	if p.IconsFor != nil {
		return p.IconsFor(under)
	}
	return p.Icons
}

// session tells that a session begins or is over.
func (p *Proxy) session(id string, open bool) {
	if p.OnSession != nil {
		p.OnSession(id, open)
	}
}

func (p *Proxy) logger() *zap.Logger {
	if p.Log == nil {
		return nopLog
	}
	return p.Log
}

var nopLog = zap.NewNop()
