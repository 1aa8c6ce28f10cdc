package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// auditInto is an audit that writes to w.
func auditInto(t *testing.T, w io.Writer) *audit {
	t.Helper()
	a, err := newAudit("-", w, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// records are the lines of an audit.
func records(t *testing.T, text string) []auditLine {
	t.Helper()
	var out []auditLine
	for line := range strings.Lines(text) {
		var r auditLine
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, r)
	}
	return out
}

func TestAuditLine(t *testing.T) {
	var b bytes.Buffer
	a := auditInto(t, &b)
	a.record(proxy.Decision{
		Session: "s1", Server: "github", To: proxy.ToServer, Method: "elicitation/create", Path: "result", Rule: "answer",
		Verdict: proxy.VerdictRefused, Reason: "size: enum", Before: []byte(`{"size":"SECRET"}`),
	})
	a.record(proxy.Decision{
		To: proxy.ToClient, Rule: "icon", Verdict: proxy.VerdictInlined, Observed: true,
		Before: []byte("https://user:SECRET@CDN.example.com:8443/SECRET?SECRET#SECRET"), After: []byte("data:image/png;base64,SECRET"),
	})
	a.record(proxy.Decision{Rule: "icon", Before: []byte("DATA:image/png;base64,SECRET")})
	a.close(hang)
	if strings.Contains(b.String(), "SECRET") {
		t.Fatalf("content in the audit: %s", b.String())
	}
	got := records(t, b.String())
	for i := range got {
		if got[i].Time == "" {
			t.Errorf("line %d has no time", i)
		}
		got[i].Time = ""
	}
	want := []auditLine{
		{
			Server: "github", Session: "s1", Direction: "to server", Method: "elicitation/create", Path: "result", Rule: "answer",
			Verdict: "refused", Reason: "size: enum", Before: digest([]byte(`{"size":"SECRET"}`)),
		},
		{
			Direction: "to client", Rule: "icon", Verdict: "inlined", Observed: true, Host: "CDN.example.com",
			Before: digest([]byte("https://user:SECRET@CDN.example.com:8443/SECRET?SECRET#SECRET")), After: digest([]byte("data:image/png;base64,SECRET")),
		},
		{Direction: "to server", Rule: "icon", Host: "data:", Before: digest([]byte("DATA:image/png;base64,SECRET"))},
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	}
}

// A gate lets nothing through until it is opened.
type gate struct {
	open chan struct{}
	b    bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.b.Write(p)
}

// Decisions are handed over without waiting. Those that find no room are
// counted, and the next line says how many.
func TestAuditDrops(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	a := auditInto(t, g)
	const all = 3 * auditQueue
	for range all {
		a.record(proxy.Decision{Rule: "icon"})
	}
	if a.dropped.Load() == 0 {
		t.Fatal("nothing was dropped")
	}
	close(g.open)
	a.close(hang)
	written, dropped := 0, int64(0)
	for _, r := range records(t, g.b.String()) {
		dropped += r.Dropped
		if r.Rule != "" {
			written++
		}
	}
	if int64(written)+dropped != all || dropped != a.dropped.Load() {
		t.Errorf("%d written and %d dropped of %d; the count says %d", written, dropped, all, a.dropped.Load())
	}
}

// A disk takes so many bytes, and then no more until it has room again.
type disk struct {
	room atomic.Int64
	b    bytes.Buffer
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(int64(len(p)), d.room.Load())
	d.b.Write(p[:n])
	d.room.Add(-n)
	if int(n) < len(p) {
		return int(n), errors.New("no space left on device")
	}
	return int(n), nil
}

// A line that a full disk cut off spoils no other.
func TestAuditFullDisk(t *testing.T) {
	d := new(disk)
	a := &audit{log: zap.NewNop()}
	line := auditLine{Rule: "icon"}
	d.room.Store(20)
	for range 2 {
		if err := a.write(d, line); err == nil {
			t.Fatal("a line was written on a disk that is full")
		}
	}
	d.room.Store(1 << 20)
	for range 2 {
		if err := a.write(d, line); err != nil {
			t.Fatal(err)
		}
	}
	torn, rest, _ := strings.Cut(d.b.String(), "\n")
	if len(torn) != 20 {
		t.Errorf("the torn line is %q", torn)
	}
	if got := records(t, rest); len(got) != 2 || got[0].Dropped != 2 || got[1].Dropped != 0 {
		t.Errorf("got %+v", got)
	}
}
