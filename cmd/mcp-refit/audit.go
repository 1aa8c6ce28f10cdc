package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-refit/mcp-refit/proxy"
)

// auditQueue is how many lines may wait to be written.
const auditQueue = 4096

// An audit writes one JSON line a decision. A decision is handed over without
// waiting: where the file is slower than the decisions come, or is full, lines
// are dropped, and the next line that is written says how many.
//
// A line never holds what a user or server wrote, save for the server's name,
// methods, and where in a message something stands. What was decided about is
// there as a digest, to be compared with what somebody has; an icon's URL also
// by its host.
type audit struct {
	lines   chan auditLine
	reopens chan struct{}
	quit    chan struct{} // closed when what waits is to be written, and no more
	done    chan struct{}
	once    sync.Once
	log     *zap.Logger
	open    func() (io.WriteCloser, error)

	written, dropped atomic.Int64 // in all, for the metrics
	unsaid           atomic.Int64 // dropped by record and not yet said

	// Of the writer alone:
	owed int64 // dropped in all and not yet said
	torn bool  // the last line was cut off, on a disk that is full
}

// An auditLine is one line of the audit.
type auditLine struct {
	Time      string `json:"time"` // RFC 3339 with nanoseconds, UTC
	Server    string `json:"server,omitempty"`
	Session   string `json:"session,omitempty"`
	Direction string `json:"direction,omitempty"`
	Method    string `json:"method,omitempty"`
	Path      string `json:"path,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Verdict   string `json:"verdict,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Observed  bool   `json:"observed,omitempty"` // nothing was done
	Host      string `json:"host,omitempty"`     // of an icon's URL
	Before    string `json:"before,omitempty"`   // sha256:… of the bytes in question
	After     string `json:"after,omitempty"`
	Dropped   int64  `json:"dropped,omitempty"` // lines that are missing before this one
}

// newAudit opens the file, or stderr for "-", and begins to write.
func newAudit(file string, stderr io.Writer, log *zap.Logger) (*audit, error) {
	a := &audit{
		lines: make(chan auditLine, auditQueue), reopens: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}), log: log,
		open: func() (io.WriteCloser, error) {
			if file == "-" {
				return nopCloser{stderr}, nil
			}
			flag := os.O_WRONLY
			if info, err := os.Stat(file); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
				flag = os.O_RDWR // or opening it waits for a reader
			}
			return os.OpenFile(file, flag|os.O_CREATE|os.O_APPEND, 0o600)
		},
	}
	w, err := a.open()
	if err != nil {
		return nil, err
	}
	go a.run(w)
	return a, nil
}

// record is for proxy.Proxy.OnDecision. It never waits.
func (a *audit) record(d proxy.Decision) {
	line := auditLine{
		Time:   time.Now().UTC().Format(time.RFC3339Nano),
		Server: short(d.Server), Session: d.Session, Direction: d.To.String(), Method: short(d.Method), Path: short(d.Path),
		Rule: d.Rule, Verdict: d.Verdict, Reason: short(d.Reason), Observed: d.Observed,
		Before: digest(d.Before), After: digest(d.After),
	}
	if d.Rule == "icon" {
		line.Host = hostOf(d.Before)
	}
	select {
	case a.lines <- line:
	default:
		a.unsaid.Add(1)
		a.dropped.Add(1)
	}
}

// maxAuditText bounds the texts of a line, which the server has a say in, in bytes.
const maxAuditText = 512

func short(s string) string {
	if len(s) > maxAuditText {
		return strings.ToValidUTF8(s[:maxAuditText], "") + "…"
	}
	return s
}

func digest(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hostOf is the host of an icon's URL, without user, query and port; "data:"
// for a picture that came in the message.
func hostOf(src []byte) string {
	if len(src) >= 5 && bytes.EqualFold(src[:5], []byte("data:")) {
		return "data:"
	}
	u, err := url.Parse(string(src))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// reopen writes on to a file of the same name, for a log that was moved away.
func (a *audit) reopen() {
	select {
	case a.reopens <- struct{}{}:
	default: // one is coming
	}
}

// close writes what waits. It gives up after a while: a pipe that nobody reads
// must not keep the process.
func (a *audit) close(wait time.Duration) {
	a.once.Do(func() { close(a.quit) })
	select {
	case <-a.done:
	case <-time.After(wait):
		a.log.Warn("the audit could not be written to its end", zap.Int("lines", len(a.lines)))
	}
}

// run writes until quit is closed.
func (a *audit) run(w io.WriteCloser) {
	defer close(a.done)
	defer func() { w.Close() }()
	failing := false
	put := func(line auditLine) {
		err := a.write(w, line)
		if err != nil && !failing {
			a.log.Error("the audit can't be written, its lines are dropped", zap.Error(err))
		}
		failing = err != nil
	}
	for {
		select {
		case line := <-a.lines:
			put(line)
		case <-a.reopens:
			next, err := a.open()
			if err != nil {
				a.log.Error("the audit file could not be opened again; the one before it is written on", zap.Error(err))
				continue
			}
			w.Close()
			w = next
			a.log.Info("the audit file was opened again")
		case <-a.quit:
			for {
				select {
				case line := <-a.lines:
					put(line)
					continue
				default:
				}
				a.sayDropped(w)
				return
			}
		}
	}
}

// sayDropped says at the end what no other line has said.
func (a *audit) sayDropped(w io.Writer) {
	if a.owed+a.unsaid.Load() > 0 {
		_ = a.write(w, auditLine{Time: time.Now().UTC().Format(time.RFC3339Nano)}) // there is nobody left to tell
	}
}

// write writes one line, and what is to be said of those that were dropped.
func (a *audit) write(w io.Writer, line auditLine) error {
	a.owed += a.unsaid.Swap(0)
	line.Dropped = a.owed
	raw, err := marshalLine(line)
	if err != nil {
		return err
	}
	if a.torn {
		raw = append([]byte{'\n'}, raw...)
	}
	n, err := w.Write(raw)
	if err != nil {
		a.torn = a.torn && n == 0 || n > 1
		a.owed++
		a.dropped.Add(1)
		return err
	}
	a.owed, a.torn = 0, false
	a.written.Add(1)
	return nil
}
