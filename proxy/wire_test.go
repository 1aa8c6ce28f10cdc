package proxy

import (
	"bytes"
	"context"
	goflag "flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

var update = goflag.Bool("update", false, "write what the wire transcripts have to be")

// wireDir has the transcripts. Each is a txtar file: prose, then what the peers say (client,
// server) and, behind each, what comes of it on the two sides (to-server,
// to-client). "to-server same" stands for the very bytes that were said; where
// there is no such part, nothing arrives. A line "flags: …" in the prose sets
// the policy. ${CR} and ${BOM} are what an editor would hide or mend; ${sealed} is
// the state that the client was given last, which is another one each time;
// ${icons} is the host of the icons. A part "later" lets so much time pass.
const wireDir = "../testdata/wire"

func TestWire(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(wireDir, "*", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	site := newIconSite(t, serveWireIcons) // outside of the bubbles, whose time stands still while it is asked
	for _, file := range files {
		name, _ := filepath.Rel(wireDir, file)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txtar"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playTranscript(t, file, site) })
		})
	}
}

// serveWireIcons serves the icons of the transcripts.
func serveWireIcons(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/a.png", "/b.png":
		servePNG(w, r)
	case "/c.svg":
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><script>alert(1)</script><path fill="red" d="M0 0h8v8H0z"/></svg>`))
	default:
		http.NotFound(w, r)
	}
}

func playTranscript(t *testing.T, file string, site *iconSite) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	w := newWire(t, archive.Comment, site)
	defer w.end()

	played := txtar.Archive{Comment: archive.Comment}
	for i := 0; i < len(archive.Files); {
		said := archive.Files[i]
		played.Files = append(played.Files, said)
		heard := w.say(t, said)
		played.Files = append(played.Files, heard...)
		i++
		var want []txtar.File
		for ; i < len(archive.Files) && strings.HasPrefix(archive.Files[i].Name, "to-"); i++ {
			want = append(want, archive.Files[i])
		}
		if got, want := show(heard), show(want); got != want && !*update {
			t.Errorf("after %s\n%s\ngot\n%swant\n%s", said.Name, said.Data, got, want)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(&played), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func show(files []txtar.File) string { return string(txtar.Format(&txtar.Archive{Files: files})) }

// wire is a proxy between two peers that only note what they are told.
type wire struct {
	says   [2]*queue // by the direction of what is said
	hears  [2]*notes // likewise
	sealed string
	icons  *icon.Fetcher
	host   string // of the icons
	cancel context.CancelFunc
	done   chan error
}

// notes keeps what is written.
type notes struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *notes) Close() error { return nil }

func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.buf.String()
	n.buf.Reset()
	return text
}

func newWire(t *testing.T, prose []byte, site *iconSite) *wire {
	config := policy.Default()
	for line := range strings.Lines(string(prose)) {
		flags, ok := strings.CutPrefix(line, "flags: ")
		if !ok {
			continue
		}
		for _, f := range strings.Fields(flags) {
			if site != nil {
				f = strings.ReplaceAll(f, "${icons}", site.host)
			}
			name, value, set := strings.Cut(strings.TrimPrefix(f, "--"), "=")
			if !set {
				value = "true"
			}
			if err := config.SetFlag(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	compiled, err := config.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Policy: func() *policy.Policy { return compiled }}
	if site != nil {
		// One fetch every four seconds: what comes right behind another is late.
		p.Icons = &icon.Fetcher{Worker: []string{os.Args[0], iconWorkerArg}, AllowPrivate: true, RootCAs: site.cas, HostRate: 0.25}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &wire{
		says:  [2]*queue{newQueue(), newQueue()},
		hears: [2]*notes{new(notes), new(notes)}, icons: p.Icons, cancel: cancel, done: make(chan error, 1),
	}
	if site != nil {
		w.host = site.host
	}
	go func() {
		w.done <- p.Run(ctx, Stream{R: w.says[ToServer], W: w.hears[ToClient]}, Stream{R: w.says[ToClient], W: w.hears[ToServer]})
	}()
	return w
}

func (w *wire) end() {
	w.says[ToServer].Close()
	w.says[ToClient].Close()
	w.cancel()
	<-w.done
	if w.icons != nil {
		w.icons.Close()
	}
}

var stateMember = regexp.MustCompile(`"requestState":"([^"]*)"`)

// say has a peer say what stands in its part of the transcript, and returns
// the parts that come of it.
func (w *wire) say(t *testing.T, said txtar.File) []txtar.File {
	if said.Name == "later" {
		pause, err := time.ParseDuration(strings.TrimSpace(string(said.Data)))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause) // of the bubble's clock
		synctest.Wait()
		return w.heard("")
	}
	to, ok := map[string]Direction{"client": ToServer, "server": ToClient}[said.Name]
	if !ok {
		t.Fatalf("a part of the transcript is called %q", said.Name)
	}
	text := strings.NewReplacer("${sealed}", w.sealed, "${CR}", "\r", "${BOM}", "\ufeff", "${icons}", w.host).Replace(string(said.Data))
	w.says[to].add(text)
	synctest.Wait()
	return w.heard(text)
}

// heard are the parts that came of what was said since it was called last.
func (w *wire) heard(text string) []txtar.File {
	var heard []txtar.File
	for to, name := range [2]string{ToServer: "to-server", ToClient: "to-client"} {
		got := w.hears[to].take()
		if got == "" {
			continue
		}
		if got == text {
			heard = append(heard, txtar.File{Name: name + " same"})
			continue
		}
		if m := stateMember.FindStringSubmatch(got); m != nil && Direction(to) == ToClient && !strings.Contains(text, m[0]) {
			w.sealed = m[1]
			got = strings.ReplaceAll(got, m[1], "${sealed}")
		}
		if w.host != "" {
			got = strings.ReplaceAll(got, w.host, "${icons}")
		}
		heard = append(heard, txtar.File{Name: name, Data: []byte(got)})
	}
	return heard
}

// Every transcript has something that no revision knows, from both sides.
func TestWireHasGrease(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(wireDir, "*", "*.txtar"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		greased := map[string]bool{}
		for _, part := range txtar.Parse(data).Files {
			greased[part.Name] = greased[part.Name] || bytes.Contains(part.Data, []byte("x-grease"))
		}
		if !greased["client"] || !greased["server"] {
			t.Error(fmt.Sprint(file, ": nothing unknown is sent by ", greased))
		}
	}
}
