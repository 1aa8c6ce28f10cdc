//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Only when asked: figures want a machine that does nothing else.
//
//	go test ./cmd/mcp-refit -run '^TestLoad$' -load -v
//	go test ./cmd/mcp-refit -run '^TestLoad$/^memory$' -load -v
var loadFlag = flag.Bool("load", false, "measure what the proxy adds, beside direct connections and other relays")

func init() {
	programs["load-server"], programs["load-proxy"], programs["load-relay"] = loadServer, loadProxy, loadRelay
}

const (
	loadRounds = 7 // of each measurement, in turn; the medians are printed
	loadInit   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"load","version":"1"}}}`
)

// loadCall is a call with an argument of 100 bytes.
func loadCall(id int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"a":"%0100d"}}}`, id, id)
}

// loadLarge is a call whose answer has so many bytes of text.
func loadLarge(id, size int) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"large","arguments":{"size":%d}}}`, id, size)
}

// loadAnswer answers a request, and nil what is none.
func loadAnswer(request []byte) []byte {
	rest, ok := bytes.CutPrefix(request, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return nil
	}
	id, rest, _ := bytes.Cut(rest, []byte(","))
	size := 100
	if _, large, ok := bytes.Cut(rest, []byte(`"large","arguments":{"size":`)); ok {
		digits, _, _ := bytes.Cut(large, []byte("}"))
		size, _ = strconv.Atoi(string(digits))
	}
	result := fmt.Sprintf(`{"content":[{"type":"text","text":"%s"}]}`, strings.Repeat("0", size))
	if bytes.Contains(rest, []byte(`"initialize"`)) {
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"load","version":"1"}}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// loadServer is the server: over stdio or, with an address, over HTTP.
func loadServer() {
	if len(os.Args) > 1 {
		var sessions atomic.Int64
		log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet { // a stream on which nothing comes
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			body, _ := io.ReadAll(r.Body)
			answer := loadAnswer(body)
			if answer == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			if bytes.Contains(body, []byte(`"initialize"`)) {
				w.Header().Set("Mcp-Session-Id", fmt.Sprint("load-", sessions.Add(1)))
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
		})))
	}
	in, out := bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if answer := loadAnswer(line); answer != nil {
			_, _ = out.Write(append(answer, '\n'))
		}
		if in.Buffered() == 0 {
			_ = out.Flush()
		}
		if err != nil {
			return
		}
	}
}

// figures are what one run, or the median of several, has measured.
type figures struct {
	ready, p50, p99 time.Duration
	perSecond       float64
	resident        float64 // MB, of the relay's process
}

func figuresOf(took []time.Duration, all time.Duration) figures {
	slices.Sort(took)
	return figures{p50: took[len(took)/2], p99: took[len(took)*99/100], perSecond: float64(len(took)) / all.Seconds()}
}

func median(all []figures) figures {
	mid := func(of func(figures) float64) float64 {
		values := make([]float64, len(all))
		for i, f := range all {
			values[i] = of(f)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return figures{
		ready:     time.Duration(mid(func(f figures) float64 { return float64(f.ready) })),
		p50:       time.Duration(mid(func(f figures) float64 { return float64(f.p50) })),
		p99:       time.Duration(mid(func(f figures) float64 { return float64(f.p99) })),
		perSecond: mid(func(f figures) float64 { return f.perSecond }),
		resident:  mid(func(f figures) float64 { return f.resident }),
	}
}

// A loadWay is one way from the client to the server.
type loadWay struct {
	name    string
	command []string // stdio: what the client starts; HTTP: the relay, if there is one
	url     string
}

func (w loadWay) String() string { return w.name }

// resident is what a process has in memory, in MB; 0 where that can't be told.
func resident(pid int) float64 { return memoryOf(pid, "VmRSS:") }

// memoryOf is a line of proc_pid_status(5), in MB.
func memoryOf(pid int, name string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// stdio makes calls over stdio, so many in flight.
func (w loadWay) stdio(t *testing.T, calls, inFlight int) figures {
	cmd := exec.CommandContext(t.Context(), w.command[0], w.command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReaderSize(stdout, 64<<10)
	say := func(message []byte) {
		if _, err := in.Write(append(message, '\n')); err != nil {
			t.Error(err)
		}
	}
	say([]byte(loadInit))
	if line, err := out.ReadSlice('\n'); err != nil {
		t.Fatalf("%s: %q, %v", w, line, err)
	}
	ready := time.Since(began)

	sent, took := make([]time.Time, calls), make([]time.Duration, calls)
	room, begun := make(chan struct{}, inFlight), make(chan int, inFlight)
	began = time.Now()
	go func() {
		for id := range calls {
			room <- struct{}{}
			sent[id] = time.Now()
			begun <- id
			say(loadCall(id))
		}
	}()
	for range calls { // this server answers in order
		line, err := out.ReadSlice('\n')
		id := <-begun
		if err != nil || !bytes.HasPrefix(line, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`, id)) {
			t.Fatalf("%s: %q in place of the answer to %d, %v", w, line, id, err)
		}
		took[id] = time.Since(sent[id])
		<-room
	}
	f := figuresOf(took, time.Since(began))
	f.ready, f.resident = ready, resident(cmd.Process.Pid)
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	return f
}

// http makes calls over HTTP, on so many connections.
func (w loadWay) http(t *testing.T, pid, calls, connections int) figures {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	took := make([]time.Duration, calls)
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range connections {
		all.Go(func() {
			for id := int(next.Add(1)) - 1; id < calls; id = int(next.Add(1)) - 1 {
				sent := time.Now()
				answer, err := loadPost(t.Context(), client, w.url, loadCall(id))
				took[id] = time.Since(sent)
				if err != nil || !bytes.HasPrefix(answer, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`, id)) {
					t.Errorf("%s: %q in place of the answer to %d, %v", w, answer, id, err)
					return
				}
			}
		})
	}
	all.Wait()
	f := figuresOf(took, time.Since(began))
	f.resident = resident(pid)
	return f
}

func loadPost(ctx context.Context, client *http.Client, to string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// TestLoad prints a table for each transport: what a direct connection takes,
// what other relays make of it, and what we do.
func TestLoad(t *testing.T) {
	if !*loadFlag {
		t.Skip("only with -load")
	}
	program := filepath.Join(t.TempDir(), "mcp-refit")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("stdio", func(t *testing.T) { loadStdio(t, program) })
	t.Run("HTTP", func(t *testing.T) { loadHTTP(t, program) })
	t.Run("memory", func(t *testing.T) { loadMemory(t, program) })
}

func loadStdio(t *testing.T, program string) {
	ways := []loadWay{
		{name: "direct", command: []string{"load-server"}},
		{name: "`cat` on both sides", command: []string{"sh", "-c", "cat | load-server | cat"}},
		{name: "`encoding/json` on both sides", command: []string{"load-relay", "load-server"}},
		{name: "mcp-refit", command: []string{program, "--", "load-server"}},
	}
	one, many := make([]figures, len(ways)), make([]figures, len(ways))
	ones, manys := make([][]figures, len(ways)), make([][]figures, len(ways))
	for range loadRounds {
		for i, w := range ways {
			ones[i] = append(ones[i], w.stdio(t, 4000, 1))
			manys[i] = append(manys[i], w.stdio(t, 30_000, 64))
		}
	}
	for i := range ways {
		one[i], many[i] = median(ones[i]), median(manys[i])
	}
	direct, cat := one[0], one[1]
	fmt.Print("\n| stdio | p50 | p99 | added, by what `cat` adds: p50 | p99 | calls/s, 64 in flight | of direct | ready | resident |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i, w := range ways {
		a, b := one[i], many[i]
		memory := fmt.Sprintf("%.0f MB", b.resident)
		if i == 1 { // of a shell says nothing
			memory = ""
		}
		fmt.Printf("| %s | %d µs | %d µs | %.2f | %.2f | %.0f | %.2f | %.1f ms | %s |\n", w, a.p50.Microseconds(), a.p99.Microseconds(),
			ratio(a.p50-direct.p50, cat.p50-direct.p50), ratio(a.p99-direct.p99, cat.p99-direct.p99), b.perSecond, b.perSecond/many[0].perSecond, milliseconds(a.ready), memory)
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func loadHTTP(t *testing.T, program string) {
	server := freeAddress(t)
	to := "http://" + server + "/mcp"
	ways := []loadWay{{name: "direct", command: []string{"load-server", server}, url: to}}
	relay := func(name string, command func(address string) []string) {
		address := freeAddress(t)
		if args := command(address); args != nil {
			ways = append(ways, loadWay{name: name, command: args, url: "http://" + address + "/mcp"})
		}
	}
	relay("bare `httputil.ReverseProxy`", func(a string) []string { return []string{"load-proxy", a, "http://" + server} })
	relay("the same with `encoding/json`", func(a string) []string { return []string{"load-proxy", a, "http://" + server, "json"} })
	relay("nginx", func(a string) []string { return nginx(t, a, server) })
	relay("haproxy", func(a string) []string { return haproxy(t, a, server) })
	relay("mcp-refit", func(a string) []string { return []string{program, "--listen", a, to} })

	one, many := make([][]figures, len(ways)), make([][]figures, len(ways))
	pids, ready := make([]int, len(ways)), make([]time.Duration, len(ways))
	for i, w := range ways {
		pids[i], ready[i] = w.serve(t)
	}
	for range loadRounds {
		for i, w := range ways {
			one[i] = append(one[i], w.http(t, pids[i], 2000, 1))
			many[i] = append(many[i], w.http(t, pids[i], 8000, 16))
		}
	}
	bare, bareMany := median(one[1]), median(many[1])
	fmt.Print("\n| HTTP | p50 | p99 | by the bare proxy's: p50 | p99 | p50, 16 connections | p99 | calls/s | by the bare proxy's | ready | resident |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for i, w := range ways {
		a, b := median(one[i]), median(many[i])
		memory := fmt.Sprintf("%.0f MB", b.resident)
		if w.name == "nginx" { // its workers have it
			memory = ""
		}
		fmt.Printf("| %s | %d µs | %d µs | %.2f | %.2f | %d µs | %d µs | %.0f | %.2f | %.1f ms | %s |\n", w, a.p50.Microseconds(), a.p99.Microseconds(),
			ratio(a.p50, bare.p50), ratio(a.p99, bare.p99), b.p50.Microseconds(), b.p99.Microseconds(), b.perSecond, b.perSecond/bareMany.perSecond, milliseconds(ready[i]), memory)
	}
}

// serve starts what serves HTTP, for as long as the test runs, and says how
// long it took until the first answer.
func (w loadWay) serve(t *testing.T) (pid int, ready time.Duration) {
	cmd := exec.Command(w.command[0], w.command[1:]...)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		if _, err := loadPost(t.Context(), http.DefaultClient, w.url, []byte(loadInit)); err == nil {
			return cmd.Process.Pid, time.Since(began)
		}
	}
}

// nginx is the command of one that relays, nil if it is not installed.
func nginx(t *testing.T, address, server string) []string {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "conf"), `daemon off; worker_processes 2; pid `+dir+`/pid; error_log stderr crit;
events {}
http {
	access_log off; client_body_temp_path `+dir+`/1; proxy_temp_path `+dir+`/2; fastcgi_temp_path `+dir+`/3; uwsgi_temp_path `+dir+`/4; scgi_temp_path `+dir+`/5;
	upstream server { server `+server+`; keepalive 100; }
	server { listen `+address+`; location / { proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
`)
	return installed("nginx", "-c", filepath.Join(dir, "conf"))
}

// haproxy is the same for haproxy.
func haproxy(t *testing.T, address, server string) []string {
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	write(t, file, `defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	http-reuse always
listen mcp
	bind `+address+`
	server server `+server+`
`)
	return installed("haproxy", "-db", "-q", "-f", file)
}

func installed(program string, args ...string) []string {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	return append([]string{path}, args...)
}
