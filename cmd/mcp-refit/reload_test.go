package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// hang is when a test gives up.
const hang = 30 * time.Second

// liveFrom is the policy of a file.
func liveFrom(t *testing.T, file string) *livePolicy {
	t.Helper()
	l, err := newLivePolicy(&settings{file: file}, pflag.NewFlagSet("", pflag.ContinueOnError), []string{"echo-server"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip(err) // Windows, without the right to
	}
}

func policyText(icons string) string { return "version: 1\nicons: {default: " + icons + "}\n" }

// What happens to a file, and what is in force after it.
func TestFollowFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	write(t, file, policyText("strip"))
	l := liveFrom(t, file)
	reloads := make(chan error, 16)
	l.onReload = func(err error) { reloads <- err }
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	w := l.watcher()
	following.Go(func() { l.following().run(ctx, w, nil) })
	defer following.Wait()
	defer cancel()
	for _, step := range []struct {
		name  string
		do    func()
		icons policy.Verdict // in force afterwards
		fault string         // "" if the reload went well
	}{
		{"written in place", func() { write(t, file, policyText("inline")) }, policy.Inline, ""},
		{"half written", func() { write(t, file, "version: 1\nicons: {default: ke") }, policy.Inline, "policy.yaml:2:"},
		{"written to the end", func() { write(t, file, policyText("keep")) }, policy.Keep, ""},
		{"deleted", func() { _ = os.Remove(file) }, policy.Keep, "policy.yaml"},
		{"there again, by rename", func() {
			write(t, file+".new", policyText("strip"))
			rename(t, file+".new", file)
		}, policy.Strip, ""},
		{"a key that does not exist", func() { write(t, file, policyText("keep")+"icon: {}\n") }, policy.Strip, `did you mean "icons"?`},
		{"mended", func() { write(t, file, policyText("inline")+"# mended\n") }, policy.Inline, ""},
	} {
		step.do()
		// A step may be seen half done; what counts is where it ends.
		for {
			var err error
			select {
			case err = <-reloads:
			case <-time.After(hang):
				t.Fatalf("%s: not seen", step.name)
			}
			if err == nil && step.fault == "" && l.policy().Config.Icons.Default == step.icons {
				break
			}
			if err != nil && step.fault != "" && strings.Contains(err.Error(), step.fault) {
				break
			}
		}
		if got := l.policy().Config.Icons.Default; got != step.icons {
			t.Errorf("%s: %v is in force, want %v", step.name, got, step.icons)
		}
		if fault := l.lastFault(); (fault == nil) != (step.fault == "") {
			t.Errorf("%s: the last fault is %v", step.name, fault)
		}
	}
}

// A ConfigMap's volume: the file is a symlink into ..data, itself a symlink
// that Kubernetes swaps.
func TestFollowConfigMap(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"strip", "keep"} {
		if err := os.Mkdir(filepath.Join(dir, "..v_"+v), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "..v_"+v, "policy.yaml"), policyText(v))
	}
	data := filepath.Join(dir, "..data")
	symlink(t, "..v_strip", data)
	symlink(t, filepath.Join("..data", "policy.yaml"), filepath.Join(dir, "policy.yaml"))

	l := liveFrom(t, filepath.Join(dir, "policy.yaml"))
	reloads := make(chan error, 16)
	l.onReload = func(err error) { reloads <- err }
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	w := l.watcher()
	following.Go(func() { l.following().run(ctx, w, nil) })
	defer following.Wait()
	defer cancel()

	symlink(t, "..v_keep", data+"_tmp")
	rename(t, data+"_tmp", data)
	select {
	case err := <-reloads:
		if err != nil || l.policy().Config.Icons.Default != policy.Keep {
			t.Errorf("%v, %v is in force", err, l.policy().Config.Icons.Default)
		}
	case <-time.After(hang):
		t.Fatal("the swap was not seen")
	}
}

// 10,000 calls while the policy flips: none is lost, and each is judged by one
// policy as a whole: of the two icons exactly one is kept.
func TestReloadUnderLoad(t *testing.T) {
	const calls = 10_000
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	text := func(host string) string {
		return "version: 1\nrun: {log-level: error}\nicons: {rules: [{host: " + host + ".example.com, action: keep}]}\n"
	}
	write(t, file, text("a"))
	l := liveFrom(t, file)
	clientIn, in := io.Pipe()
	out, clientOut := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- serve(t.Context(), l, &target{command: []string{"echo-server"}}, stdio{clientIn, clientOut, io.Discard})
		clientOut.Close()
	}()
	var stop atomic.Bool
	var work sync.WaitGroup
	flips := 0
	flip := func() {
		for ; !stop.Load(); flips++ {
			write(t, file+".new", text(string("ba"[flips%2])))
			rename(t, file+".new", file)
			l.reload()
		}
	}
	work.Go(func() {
		for id := range calls {
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", id)
		}
	})
	judged := map[string]int{}
	lines := bufio.NewReader(out)
	for id := range calls {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d answers: %v", id, err)
		}
		if !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,`) {
			t.Fatalf("answer %d is %s", id, line)
		}
		a, b := strings.Contains(line, "//a.example.com/"), strings.Contains(line, "//b.example.com/")
		if a == b {
			t.Fatalf("answer %d is judged by no whole policy: %s", id, line)
		}
		judged[fmt.Sprint(a)]++
		if id == 0 { // all is set up
			work.Go(flip)
		}
	}
	stop.Store(true)
	work.Wait()
	in.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Logf("%d reloads, judged by the one policy and the other: %v", flips, judged)
	if len(judged) != 2 {
		t.Errorf("all were judged by one policy, in %d reloads", flips)
	}
}

// A reload that changes icons puts another fetcher in force, with the settings
// of that policy and nothing cached, and the one before it is closed; one that
// does not leaves it. A message goes by the fetcher of its own policy.
func TestReloadIcons(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, policyText("inline"))
	l := liveFrom(t, file)
	l.startIcons(newFetcher)
	defer l.close()
	one := l.policy()
	first := l.icons(one)
	write(t, file, policyText("inline")+"observe: true\n")
	l.reload()
	if l.policy() == one || l.icons(l.policy()) != first || l.icons(one) != first {
		t.Error("another fetcher for observe")
	}
	two := l.policy()
	write(t, file, "version: 1\nicons: {default: inline, private: true, allow-http: true, edge: 16, fetch: {max-size: 2KiB}}\n")
	l.reload()
	second := l.icons(l.policy())
	if second == first || !second.AllowPrivate || !second.AllowHTTP || second.Edge != 16 || second.MaxBytes != 2<<10 {
		t.Errorf("the fetcher is %+v", second)
	}
	if l.icons(two) != first || l.icons(one) != nil {
		t.Error("a message that began before goes by another fetcher")
	}
	l.closing.Wait()
	if _, err := first.Fetch(t.Context(), "https://a.example.com/i.png", ""); icon.ReasonOf(err) != icon.ReasonClosed {
		t.Errorf("the first one still fetches: %v", err)
	}
	if _, waiting := l.state(); waiting != nil {
		t.Errorf("%v wait for the next start", waiting)
	}
}

// The section of a server takes hold once its name is known; a name from the
// command line stands.
func TestNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, file, policyText("strip")+"servers: [{name: github, icons: {default: keep}}]\n")
	l := liveFrom(t, file)
	if got := l.policy().Config.Icons.Default; got != policy.Strip {
		t.Errorf("before: %v", got)
	}
	l.named("github")
	l.reload()
	if got := l.policy().Config.Icons.Default; got != policy.Keep {
		t.Errorf("named: %v", got)
	}
	l.named("other")
	if got := l.policy().Config.Icons.Default; got != policy.Strip {
		t.Errorf("another name: %v", got)
	}
	l.settings.server = "other"
	l.named("github")
	if got := l.policy().Config.Icons.Default; got != policy.Strip {
		t.Errorf("a name against that of the command line: %v", got)
	}
}

// Which settings take hold at the next start only. Every key is in one of the
// two lists.
func TestFixedChanges(t *testing.T) {
	live := []string{
		"observe", "enums", "compat", "schemas.", "icons.", "answers.", "forms.", "run.log-level",
		"limits.max-message", "limits.max-inflight", "limits.calls", "limits.sessions", "limits.session-idle",
		"limits.children", "limits.children-full", "limits.child-lifetime", "limits.replay-events", "servers", "version",
	}
	for _, f := range policy.Fields() {
		isLive := slices.ContainsFunc(live, func(p string) bool {
			return f.Path == p || strings.HasSuffix(p, ".") && strings.HasPrefix(f.Path, p)
		}) && f.Path != "answers.state-expiry"
		if isFixed := len(fixedChanges([]string{f.Path + ": a, was b"})) == 1; isFixed == isLive {
			t.Errorf("%s: fixed is %v", f.Path, isFixed)
		}
	}
}
