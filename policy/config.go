package policy

// Config is the policy: what the policy file and the command's flags say. It
// is the one source of both, and of the defaults, the docs table (Docs) and
// the JSON Schema (Schema), by its tags:
//
//	yaml     the key in the file
//	flag     the flag of the command that sets the same value; short its letter
//	default  the default, as the file would write it
//	values   the values that there are, where they can be listed
//	min, max the bounds of a number, both inclusive
//	off      "yes" where the bound may be lifted
//	type     what a string is, where it is more than text
//	secret   "yes" where the value is not to be shown
//	doc      one sentence for people
//
// A Config starts as Default or from Parse; the zero value is not valid. Once
// set up it is not changed any more and can be read concurrently.
type Config struct {
	Version Count           `yaml:"version" default:"1" min:"1" max:"1" doc:"The version of this format: 1."`
	Observe bool            `yaml:"observe" flag:"observe" default:"false" doc:"Change and refuse nothing; report all that would have been."`
	Enums   string          `yaml:"enums" flag:"enums" default:"auto" values:"auto|always|never" doc:"Whether old enum shapes are refitted: auto goes by the revision that the client itself knows."`
	Compat  string          `yaml:"compat" flag:"compat" default:"none" values:"none|plain-elicitation" doc:"What an old server needs besides: plain-elicitation sends it elicitation: {} in place of its sub-capabilities."`
	Schemas SchemasConfig   `yaml:"schemas" doc:"The schema rules, each on a switch of its own."`
	Icons   IconsConfig     `yaml:"icons" doc:"What becomes of icons and of websiteUrl."`
	Answers AnswersConfig   `yaml:"answers" doc:"How the user's answers are checked before the server sees them."`
	Forms   FormsConfig     `yaml:"forms" doc:"What a server may ask the user for."`
	Limits  LimitsConfig    `yaml:"limits" doc:"Bounds on memory and on waits; off lifts one."`
	HTTP    HTTPConfig      `yaml:"http" doc:"Serving over HTTP, and the connection to a server at a URL."`
	Run     RunConfig       `yaml:"run" doc:"Logs, audit and administration."`
	Servers []ServerSection `yaml:"servers" doc:"Sections for single servers, which override the rest; the first that matches counts."`

	provenance
}

// Values of Config.Enums.
const (
	EnumsAuto   = "auto"
	EnumsAlways = "always"
	EnumsNever  = "never"
)

// CompatPlainElicitation is the value of Config.Compat that sends an old
// server a plain elicitation capability.
const CompatPlainElicitation = "plain-elicitation"

// SchemasConfig has a switch for each rule that refits a form's schema.
type SchemasConfig struct {
	EnumNames       bool   `yaml:"enum-names" default:"true" doc:"1: enum with enumNames becomes a titled oneOf."`
	ItemEnumNames   bool   `yaml:"item-enum-names" default:"true" doc:"2: the same in items, which becomes a titled anyOf."`
	MissingType     bool   `yaml:"missing-type" default:"true" doc:"3: a missing type is added where it can only be one."`
	AnyOf           bool   `yaml:"any-of" default:"true" doc:"4: the anyOf of a single choice becomes oneOf."`
	ItemOneOf       bool   `yaml:"item-one-of" default:"true" doc:"5: oneOf in items becomes anyOf, without a type beside it."`
	Nullable        bool   `yaml:"nullable" default:"true" doc:"6: a nullable field becomes an optional one."`
	LocalRef        bool   `yaml:"local-ref" default:"true" doc:"7: a local $ref is put in place; a remote one is never fetched."`
	Const           bool   `yaml:"const" default:"true" doc:"8: const becomes an enum of one value."`
	TypedEnums      bool   `yaml:"typed-enums" default:"true" doc:"9: enums of numbers and booleans become enums of strings, and the answer is turned back."`
	Formats         string `yaml:"formats" default:"auto" values:"auto|on|off" doc:"10: formats that clients refuse are hidden from them and still checked; auto does so for clients that would refuse the form."`
	Defaults        string `yaml:"defaults" default:"auto" values:"auto|on|off" doc:"11: a default that is not valid is converted without loss or left out; auto does so for clients that would refuse the form."`
	EnumBesideOneOf bool   `yaml:"enum-beside-one-of" default:"true" doc:"12: of enum beside oneOf, oneOf alone is left."`
	Options         bool   `yaml:"options" default:"true" doc:"13: duplicate values once, blank titles are the value, surplus names go."`
}

// Values of SchemasConfig.Formats and SchemasConfig.Defaults.
const (
	SwitchAuto = "auto"
	SwitchOn   = "on"
	SwitchOff  = "off"
)

// IconsConfig is what becomes of icons; NewIcons compiles it.
type IconsConfig struct {
	Default   Verdict      `yaml:"default" flag:"icons" default:"strip" values:"strip|inline|keep" doc:"What becomes of an icon on a host that no rule names."`
	Rules     []IconRule   `yaml:"rules" doc:"Rules by host, tried in order; the first that names the host decides."`
	Private   bool         `yaml:"private" flag:"icon-private" default:"false" doc:"Let the fetcher reach private addresses (tests, intranets)."`
	AllowHTTP bool         `yaml:"allow-http" default:"false" doc:"Let icons be on http URLs, which anyone on the way can change; https and data: only without it."`
	Client    bool         `yaml:"client" default:"false" doc:"Judge the icons and websiteUrl that the client sends to the server, too."`
	Edge      Count        `yaml:"edge" default:"64" min:"8" max:"128" doc:"The longest edge of an inlined icon, in pixels."`
	Deadline  Duration     `yaml:"deadline" default:"500ms" min:"1ms" max:"30s" doc:"How long a message waits for its icons before it goes out without those that are missing."`
	Budget    IconBudget   `yaml:"budget" doc:"Bounds on inlined icons, as the bytes of their data: URIs."`
	Fetch     FetchConfig  `yaml:"fetch" doc:"Bounds on fetching an icon."`
	Worker    WorkerConfig `yaml:"worker" doc:"Bounds on the processes that decode icons."`
	Cache     CacheConfig  `yaml:"cache" doc:"The cache of fetched icons."`
}

// IconBudget bounds what inlined icons add to messages.
type IconBudget struct {
	PerIcon    Size `yaml:"per-icon" default:"24KiB" min:"256B" doc:"The most that one icon may take; a larger one is scaled down, then stripped."`
	PerMessage Size `yaml:"per-message" default:"256KiB" min:"256B" off:"yes" doc:"The most that all icons of one message may take together; the largest are scaled down first, then stripped."`
}

// FetchConfig bounds a fetch.
type FetchConfig struct {
	MaxSize Size     `yaml:"max-size" default:"256KiB" min:"1KiB" max:"1MiB" doc:"The largest file that is fetched or decoded; a longer one is dropped, not cut."`
	Timeout Duration `yaml:"timeout" default:"5s" min:"100ms" max:"1m" doc:"How long a fetch may take in all, redirects included."`
}

// WorkerConfig bounds the worker processes.
type WorkerConfig struct {
	Processes Count    `yaml:"processes" default:"2" min:"1" max:"64" doc:"Worker processes at a time."`
	Memory    Size     `yaml:"memory" default:"128MiB" min:"32MiB" doc:"The memory that a worker may hold."`
	Timeout   Duration `yaml:"timeout" default:"3s" min:"100ms" max:"1m" doc:"How long one icon may take to decode."`
}

// CacheConfig bounds the icon cache.
type CacheConfig struct {
	MaxSize Size     `yaml:"max-size" default:"8MiB" min:"64KiB" doc:"The most memory that cached icons take."`
	MinTTL  Duration `yaml:"min-ttl" default:"1m" min:"1s" doc:"The least time for which an icon is reused, whatever its host says."`
	MaxTTL  Duration `yaml:"max-ttl" default:"24h" min:"1s" doc:"The longest time for which an icon is reused, whatever its host says."`
}

// AnswersConfig is how an ElicitResult is checked.
type AnswersConfig struct {
	OnInvalid           string       `yaml:"on-invalid" flag:"on-invalid" default:"error" values:"error|cancel|decline|retry|pass" doc:"What becomes of an answer that fails its check: an error, cancel or decline in its place, the question asked again, or passed all the same."`
	Retries             Count        `yaml:"retries" default:"2" min:"0" max:"10" doc:"How often retry asks again before it is an error."`
	FillDefaults        bool         `yaml:"fill-defaults" flag:"fill-defaults" default:"false" doc:"Fill omitted fields that have a valid default, before the check."`
	Coerce              CoerceConfig `yaml:"coerce" doc:"Changes to answers before the check; each is audited."`
	RejectAsDecline     bool         `yaml:"reject-as-decline" default:"false" doc:"Read the action reject, which some clients send, as decline; without it an unknown action is refused."`
	DropDeclinedContent bool         `yaml:"drop-declined-content" default:"false" doc:"Remove the content of declined and cancelled answers."`
	DropURLContent      bool         `yaml:"drop-url-content" default:"false" doc:"Remove the content of answers to URL-mode requests."`
	UnsealedAccept      string       `yaml:"unsealed-accept" default:"refuse" values:"refuse|pass" doc:"What becomes of an accepted answer with content whose requestState was not sealed by us (2026-07-28)."`
	UnknownSession      string       `yaml:"unknown-session" default:"refuse" values:"refuse|pass" doc:"What becomes of an accepted answer with content in a session that we do not know (revisions before 2026-07-28)."`
	StateExpiry         Duration     `yaml:"state-expiry" default:"24h" min:"1m" off:"yes" doc:"How long a sealed requestState can be answered."`
}

// Values of AnswersConfig.OnInvalid.
const (
	OnInvalidError   = "error"
	OnInvalidCancel  = "cancel"
	OnInvalidDecline = "decline"
	OnInvalidRetry   = "retry"
	OnInvalidPass    = "pass"
)

// Values of AnswersConfig.UnsealedAccept and UnknownSession.
const (
	AcceptRefuse = "refuse"
	AcceptPass   = "pass"
)

// CoerceConfig are the changes to answers that can be asked for.
type CoerceConfig struct {
	Strings        bool `yaml:"strings" default:"false" doc:"Strings to numbers and booleans, where nothing is lost."`
	Titles         bool `yaml:"titles" default:"false" doc:"A choice's title to its value, where the title is unique."`
	DropEmpty      bool `yaml:"drop-empty" default:"false" doc:"Empty strings and nulls out of optional fields."`
	DropUndeclared bool `yaml:"drop-undeclared" default:"false" doc:"Fields out that the form did not ask for."`
}

// FormsConfig is what a server may ask for.
type FormsConfig struct {
	Secrets     string   `yaml:"secrets" default:"pass" values:"pass|flag|decline" doc:"What becomes of a form that asks for a password, token or key, which the specification forbids."`
	URLHosts    []string `yaml:"url-hosts" type:"host" doc:"Hosts that URL-mode requests may open, over https; none listed is any."`
	URLPunycode string   `yaml:"url-punycode" default:"pass" values:"pass|flag|decline" doc:"What becomes of a URL-mode request to an international (xn--) host, which can look like another."`
}

// Values of FormsConfig.Secrets and URLPunycode.
const (
	FormPass    = "pass"
	FormFlag    = "flag"
	FormDecline = "decline"
)

// LimitsConfig bounds memory and waits. There is no bound on how long a human
// takes to answer.
type LimitsConfig struct {
	MaxMessage    Size     `yaml:"max-message" flag:"max-message" default:"64MiB" min:"1KiB" off:"yes" doc:"The largest message."`
	MaxInflight   Size     `yaml:"max-inflight" flag:"max-inflight" default:"512MiB" min:"1KiB" off:"yes" doc:"Bytes buffered for inspection, all messages together; beyond it new messages wait, then get an error."`
	Calls         Count    `yaml:"calls" default:"1024" min:"1" off:"yes" doc:"Requests in flight in one session, both ways together."`
	Sessions      Count    `yaml:"sessions" default:"4096" min:"1" off:"yes" doc:"Sessions open at once over HTTP."`
	SessionIdle   Duration `yaml:"session-idle" flag:"session-idle" default:"1h" min:"1s" off:"yes" doc:"How long a session may be silent, with no call under way, before it is dropped."`
	Children      Count    `yaml:"children" flag:"children" default:"64" min:"1" off:"yes" doc:"Children that run at once where each HTTP session has its own."`
	ChildLifetime Duration `yaml:"child-lifetime" flag:"child-lifetime" default:"off" min:"1s" off:"yes" doc:"How long a session with a child of its own may last, calls under way or not."`
	ChildrenFull  string   `yaml:"children-full" flag:"children-full" default:"mcp-refit: too many sessions are open (limits.children); try again later" doc:"What a client is told for which there is no child left."`
	ReplayEvents  Count    `yaml:"replay-events" flag:"replay-events" default:"1024" min:"0" off:"yes" doc:"Events kept for each stream in front of a child, for a client that comes back."`
	Grace         Duration `yaml:"grace" default:"5s" min:"0s" max:"10m" doc:"How long a child has to leave after its input is closed, and again after SIGTERM; calls under way have as long when an HTTP server stops."`
}

// HTTPConfig is the HTTP side.
type HTTPConfig struct {
	Listen      string   `yaml:"listen" flag:"listen" doc:"Serve HTTP at 127.0.0.1:8080, :8080 or unix:/path; stdio without it."`
	Path        string   `yaml:"path" flag:"path" default:"/mcp" type:"path" doc:"The MCP endpoint that is served in front of a child."`
	AllowHost   []string `yaml:"allow-host" flag:"allow-host" doc:"Host values accepted besides loopback."`
	AllowOrigin []string `yaml:"allow-origin" flag:"allow-origin" doc:"Origin values accepted besides loopback."`
	Headers     []string `yaml:"headers" flag:"header" short:"H" type:"header" secret:"yes" doc:"Headers added to requests to URL, as 'Name: value'."`
	Host        string   `yaml:"host" flag:"host" default:"upstream" values:"upstream|client" doc:"The Host that URL is sent: its own, or the client's."`
	TLSCert     string   `yaml:"tls-cert" flag:"tls-cert" type:"file" doc:"Certificate (PEM) to serve TLS with."`
	TLSKey      string   `yaml:"tls-key" flag:"tls-key" type:"file" doc:"Key (PEM) to serve TLS with."`
	UpstreamCA  string   `yaml:"upstream-ca" flag:"upstream-ca" type:"file" doc:"Certificates (PEM) that URL is trusted by, in place of the system's."`
	TokenEnv    string   `yaml:"token-env" flag:"token-env" doc:"Name of the environment variable that holds a bearer token for URL."`
	ClientID    string   `yaml:"client-id" flag:"client-id" doc:"The OAuth client that logs in at URL: the id of one that was registered by hand, or the https: URL of a client ID metadata document. One is registered without it."`
	SecretEnv   string   `yaml:"client-secret-env" flag:"client-secret-env" doc:"Name of the environment variable that holds the secret of client-id."`
	LoginPort   Count    `yaml:"login-port" flag:"login-port" default:"0" min:"0" doc:"Port of 127.0.0.1 that a login comes back to, at /callback, where the client was registered with one; 0 is any."`
	NoLogin     bool     `yaml:"no-login" flag:"no-login" default:"false" doc:"Answer a server's demand for a login with an error, and open no browser."`
}

// RunConfig is how the process is watched.
type RunConfig struct {
	Admin        string `yaml:"admin" flag:"admin" doc:"Serve health, readiness and metrics at this address."`
	Pprof        bool   `yaml:"pprof" flag:"pprof" default:"false" doc:"Serve pprof at the admin address, too."`
	Audit        string `yaml:"audit" flag:"audit" type:"file" doc:"Write one JSON line a decision to this file; - is stderr."`
	StateKeyFile string `yaml:"state-key-file" flag:"state-key-file" type:"file" doc:"Keys that seal state, shared by replicas: the first seals, all open. A random one per process without it."`
	LogLevel     string `yaml:"log-level" flag:"log-level" default:"info" values:"debug|info|warn|error" doc:"The least level that is logged."`
	LogFormat    string `yaml:"log-format" flag:"log-format" default:"auto" values:"auto|console|json" doc:"How logs are written to stderr: auto is console on a terminal and json elsewhere."`
}
