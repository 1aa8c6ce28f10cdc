package main

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// A livePolicy is the policy in force, with the fetcher that it asks for. A
// reload swaps both as a whole: open sessions go on with the next one from
// their next message on.
type livePolicy struct {
	settings *settings
	read     func() (*policy.Config, error) // the file anew, with the flags over it
	command  []string                       // the server, as the policy's sections match it

	log      *zap.Logger
	level    zap.AtomicLevel                    // the log's
	fetcher  func(*policy.Config) *icon.Fetcher // makes one; nil: no icon is fetched
	onReload func(fault error)                  // told how each reload went; may be nil

	now     atomic.Pointer[inForce]
	closing sync.WaitGroup // of fetchers that are not in use any more

	mu      sync.Mutex // held by whoever changes what follows, and now
	seen    identity   // of the file that was last read
	general *policy.Config
	server  string    // the name that the server gave itself
	fault   error     // why the last reload failed
	waiting []string  // settings that were changed and wait for the next start
	loaded  time.Time // when what is in force was read
}

// An inForce is a policy and what fetches icons under it.
type inForce struct {
	policy *policy.Policy
	icons  *icon.Fetcher
	before *inForce // for messages that began under it; nil for the first, and beyond one
}

// newLivePolicy loads the policy for the first time.
func newLivePolicy(s *settings, flags *pflag.FlagSet, command []string) (*livePolicy, error) {
	l := &livePolicy{
		settings: s, command: command, log: zap.NewNop(), level: zap.NewAtomicLevel(),
		read: func() (*policy.Config, error) { return s.general(flags) },
	}
	p, err := l.load()
	if err != nil {
		return nil, err
	}
	l.now.Store(&inForce{policy: p})
	return l, nil
}

// load reads the policy of this server.
func (l *livePolicy) load() (*policy.Policy, error) {
	l.seen = identityOf(l.settings.file)
	general, err := l.read()
	if err != nil {
		return nil, err
	}
	p, err := l.settings.compile(general, l.server, l.command)
	if err == nil {
		l.general, l.loaded = general, time.Now()
	}
	return p, err
}

// policy is what is in force.
func (l *livePolicy) policy() *policy.Policy { return l.now.Load().policy }

// icons is what fetches the icons of messages that are judged by the given
// policy, nil if nothing does. For one that was in force just before it is a
// fetcher that is being closed: no icon is fetched any more under settings that
// were taken back.
func (l *livePolicy) icons(under *policy.Policy) *icon.Fetcher {
	for now := l.now.Load(); now != nil; now = now.before {
		if now.policy == under {
			return now.icons
		}
	}
	return nil
}

// startIcons has icons fetched, by fetchers that make makes. The policy must
// not be in use yet.
func (l *livePolicy) startIcons(fetcher func(*policy.Config) *icon.Fetcher) {
	p := l.policy()
	l.fetcher = fetcher
	l.now.Store(&inForce{policy: p, icons: fetcher(p.Config)})
}

// close ends the fetching of icons.
func (l *livePolicy) close() {
	if icons := l.now.Load().icons; icons != nil {
		icons.Close()
	}
	l.closing.Wait()
}

// reloads reports whether there is a file to load again.
func (l *livePolicy) reloads() bool { return l.settings.file != "" }

// lastFault is why the last reload failed, nil if it did not.
func (l *livePolicy) lastFault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// state is when the policy in force was loaded, and which of its settings wait
// for the next start.
func (l *livePolicy) state() (loaded time.Time, waiting []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded, l.waiting
}

// reload puts the file's policy into force, whole or not at all: while it has
// a fault, the policy before it goes on.
func (l *livePolicy) reload() {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.load()
	l.fault = err
	if err != nil {
		l.log.Error("the policy was not reloaded; the one before it goes on", zap.Error(err))
	} else {
		l.swap(p, "the policy was reloaded")
	}
	if l.onReload != nil {
		l.onReload(err)
	}
}

// named puts the section of the server into force, once its name is known. A
// name given on the command line stands.
func (l *livePolicy) named(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settings.server != "" || server == l.server || len(l.general.Servers) == 0 {
		return
	}
	p, err := l.settings.compile(l.general, server, l.command)
	if err != nil {
		l.log.Error("the section of this server does not compile", zap.Error(err)) // Parse has seen that it does
		return
	}
	l.server = server
	l.swap(p, "the policy for this server")
}

// swap puts a policy into force. The lock is held.
func (l *livePolicy) swap(p *policy.Policy, what string) {
	was := l.now.Load()
	diff := p.Config.Diff(was.policy.Config)
	next := &inForce{policy: p, icons: was.icons, before: &inForce{policy: was.policy, icons: was.icons}}
	if l.fetcher != nil && iconsChanged(diff) {
		next.icons = l.fetcher(p.Config)
	}
	l.now.Store(next)
	if next.icons != was.icons { // with all that it has cached
		l.closing.Go(func() { was.icons.Close() })
	}
	if len(diff) == 0 {
		return
	}
	if level, err := zapcore.ParseLevel(p.Config.Run.LogLevel); err == nil {
		l.level.SetLevel(level)
	}
	l.log.Info(what, zap.Strings("changed", diff))
	if fixed := fixedChanges(diff); len(fixed) > 0 {
		l.waiting = append(slices.DeleteFunc(l.waiting, func(s string) bool { return slices.Contains(fixed, s) }), fixed...)
		l.log.Warn("these settings take hold at the next start only", zap.Strings("settings", fixed))
	}
}

// iconsChanged reports whether icons that were made under one policy may be out
// of place under the other. What only loosens it costs a few fetches.
func iconsChanged(diff []string) bool {
	return slices.ContainsFunc(diff, func(line string) bool { return strings.HasPrefix(line, "icons.") })
}

// fixed are the settings that are read once, at the start: the addresses that
// are served, the process's files, and what each child is started with.
var fixed = []string{
	"http.", "run.admin", "run.pprof", "run.audit", "run.state-key-file", "run.log-format",
	"answers.state-expiry", "limits.grace",
}

// fixedChanges are those of the changes that a running process does not make.
func fixedChanges(diff []string) []string {
	var out []string
	for _, line := range diff {
		path, _, _ := strings.Cut(line, ":")
		if slices.ContainsFunc(fixed, func(f string) bool {
			return path == f || strings.HasSuffix(f, ".") && strings.HasPrefix(path, f)
		}) {
			out = append(out, path)
		}
	}
	return out
}

// watcher watches the file. It is nil where files can't be watched; then the
// signal is left.
func (l *livePolicy) watcher() *fsnotify.Watcher {
	w, err := watchFiles(l.settings.file)
	if err != nil {
		l.log.Warn("the policy file can't be watched; SIGHUP reloads it", zap.Error(err))
		return nil
	}
	return w
}

// following reloads the policy.
func (l *livePolicy) following() following {
	return following{changed: l.changed, reload: l.reload, trouble: func(err error) {
		l.log.Warn("the policy file's directory is hard to watch", zap.Error(err))
	}}
}

// changed reports whether the file is another than the one that was last read.
func (l *livePolicy) changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return identityOf(l.settings.file) != l.seen
}
