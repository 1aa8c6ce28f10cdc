package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// withLimits makes a policy that differs from the built-in one in its limits.
func withLimits(t *testing.T, set func(*policy.Config)) func() *policy.Policy {
	t.Helper()
	c := policy.Default()
	set(c)
	p, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return func() *policy.Policy { return p }
}

func TestRunPassesBothWays(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"sql":"a<b && c>d"}}`,
			`{ "method" : "x/unknown" , "jsonrpc" : "2.0" }`,
			`[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"n"}]`,
		} {
			r.client.send(line)
			r.server.expect(t, line)
		}
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":9007199254740993,"result":{"text":"x\ud83dy","a":1,"a":2}}`,
			`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`,
		} {
			r.server.send(line)
			r.client.expect(t, line)
		}
	})
}

// The client ends: the server is told, its last words still arrive, Run ends well.
func TestRunClientEnds(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
		r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		r.client.say.Close()
		r.server.expect(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		r.server.expectEnd(t)
		r.server.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		r.client.expect(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		r.server.say.Close()
		r.client.expectEnd(t)
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		r.done <- nil
	})
}

// The server ends: whoever waits for it is told how.
func TestRunServerEnds(t *testing.T) {
	ended := func() string { return "exited with code 3" }
	bubble(t, &Proxy{}, ended, func(t *testing.T, r *running) {
		r.client.send(`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		r.server.expectHolding(t, `"a"`)
		r.server.expectHolding(t, `ping`)
		r.server.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		r.client.expect(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		r.server.vanish()
		r.client.expect(t, `{"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"mcp-refit: the server exited with code 3 before it answered"}}`)
		r.client.expectEnd(t)
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		r.done <- nil
	})
}

// A server that closes its input only is not gone: it may still speak.
func TestRunServerStopsReading(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
		r.server.hear.Close()
		r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		r.client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		for _, id := range []string{`"id":1`, `"id":2`} {
			r.client.expectHolding(t, id, `-32603`, "does not read its input any more")
		}
		r.client.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call"}`)
		r.client.expectHolding(t, `"id":3`, `-32603`, "does not read its input any more")
		r.server.send(`{"jsonrpc":"2.0","method":"notifications/message"}`)
		r.client.expect(t, `{"jsonrpc":"2.0","method":"notifications/message"}`)
		r.server.say.Close()
		r.client.expectEnd(t)
	})
}

// The client dies: the server's input is closed although its output goes on.
func TestRunClientVanishes(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
		r.client.hear.Close()
		r.server.send(`{"jsonrpc":"2.0","method":"notifications/message"}`)
		r.server.expectEnd(t)
		if err := <-r.done; !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		r.done <- nil
	})
}

// A line that is no JSON but was meant as a message, to its end, leaves nobody
// waiting; one that was cut, or that nobody waits for, is a log line.
func TestRunUnreadable(t *testing.T) {
	deep := strings.Repeat("[", rewrite.MaxDepth) + strings.Repeat("]", rewrite.MaxDepth)
	p := &Proxy{Policy: testPolicy(t)}
	bubble(t, p, nil, func(t *testing.T, r *running) {
		const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`
		for _, result := range []string{`{"n":NaN}`, `{"n":-Infinity,}`, `{"s":"\x"}`, deep} {
			r.client.send(call)
			r.server.expect(t, call)
			r.server.send(`{"jsonrpc":"2.0","id":8,"result":`+result+`}`, `{"jsonrpc":"2.0","id":7,"result":`+result, `{"jsonrpc":"2.0","result":`+result+`,"id":7}`)
			r.client.expectHolding(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`, `this message was not passed on: n`)
		}
		question := strings.Replace(asks("5", "n", asksInt), `"m"`, `"m","x":NaN`, 1)
		r.server.send(question)
		r.server.expectHolding(t, `"id":5,"error":{"code":-32600`, `not valid JSON`)

		r.server.send(asks("5", "n", asksInt))
		r.client.expect(t, asks("5", "n", asksInt))
		r.client.send(accept("5", `{"n":NaN}`))
		r.client.expectHolding(t, `"id":null,"error":{"code":-32700`)
		r.client.send(accept("5.0", `{"n":`+deep+`}`)) // valid JSON, so there is no better way to say it
		r.server.expectHolding(t, `"id":5,"error":{"code":-32600`, `nested deeper than 1000`)
		r.client.send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":` + deep + `}`)
		r.client.expectHolding(t, `"id":9,"error":{"code":-32600`, `nested deeper than 1000`)
	})
}

// A value that stands behind a CR would be a message of its own to a reader that
// takes CR for a line end, and an answer that nobody has checked.
func TestRunCarriageReturn(t *testing.T) {
	bubble(t, &Proxy{Policy: testPolicy(t)}, nil, func(t *testing.T, r *running) {
		r.server.send(asks("0", "n", asksInt))
		r.client.expect(t, asks("0", "n", asksInt))
		const hides = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"x\":\r%s\r}}\r\r"
		const shows = `{"jsonrpc":"2.0","method":"notifications/x","params":{"x": %s }} `
		r.client.send(fmt.Sprintf(hides, accept("0", badN)))
		r.server.expect(t, fmt.Sprintf(shows, accept("0", badN)))
		r.server.send(fmt.Sprintf(hides, asks("1", "n", asksInt)))
		r.client.expect(t, fmt.Sprintf(shows, asks("1", "n", asksInt)))
	})
}

func TestRunStrayLines(t *testing.T) {
	var stray []string
	p := &Proxy{OnStray: func(line []byte) { stray = append(stray, string(line)) }}
	bubble(t, p, nil, func(t *testing.T, r *running) {
		lines := []string{
			"Server started", "[2026-01-02 10:00:00] INFO start", "[db] Connected", "{", `  "jsonrpc": "2.0",`, "}",
			`{"level":30,"msg":"up"}`, "42", `"x"`, "null", "[]", "[1]", `[{"jsonrpc":"2.0","id":1,"result":{}},2]`,
			`{"jsonrpc":"1.0","id":1,"result":{}}`, "\x1b[32mready\x1b[0m", "\xff\xfe",
		}
		r.server.send(lines...)
		r.server.send("\ufeff", "", `{"jsonrpc":"2.0","id":1,"result":{}}`+"\r")
		r.client.expect(t, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		if want := append(lines, "\ufeff"); strings.Join(stray, "\n") != strings.Join(want, "\n") {
			t.Errorf("stray lines: %q\nwant: %q", stray, want)
		}
	})
}

func TestRunClientNoise(t *testing.T) {
	tests := []struct {
		line, code, reason string
	}{
		{"hello", "-32700", "not valid JSON"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"`, "-32700", "not valid JSON"},
		{`{"id":1,"method":"ping"}`, "-32600", "not a JSON-RPC 2.0 message"},
		{`42`, "-32600", "not a JSON-RPC 2.0 message"},
		{`[]`, "-32600", "an empty batch is no message"},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},7]`, "-32600", "not a JSON-RPC 2.0 message"},
	}
	for _, tt := range tests {
		bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
			r.client.send(tt.line)
			r.client.expectHolding(t, `"id":null`, `"code":`+tt.code, tt.reason)
			r.client.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			r.server.expect(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		})
	}
}

// Several messages on one line are taken apart; what is none goes its own way.
func TestRunConcatenated(t *testing.T) {
	one, two := `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":[1]}`
	var stray []string
	p := &Proxy{OnStray: func(line []byte) { stray = append(stray, string(line)) }}
	bubble(t, p, nil, func(t *testing.T, r *running) {
		r.server.send(one+two, one+" \t"+two+" ", one+"garbage", "{}"+one)
		r.client.expect(t, one, two, one+" \t", two+" ", one)
		r.server.send(two)
		r.client.expect(t, two)
		if want := []string{"garbage", "{}" + one}; strings.Join(stray, "|") != strings.Join(want, "|") {
			t.Errorf("stray lines: %q, want %q", stray, want)
		}
		r.client.send(one + two)
		r.server.expect(t, one, two)
	})
}

// A line of a million messages is no deeper than one of two.
func TestRunConcatenatedWithoutEnd(t *testing.T) {
	const count = 200_000
	one := `{"jsonrpc":"2.0","method":"n"}`
	l := (&Proxy{}).link(Stream{W: nopWriter{}}, Stream{W: nopWriter{}})
	seen := 0
	l.proxy.OnMessage = func(Message) { seen++ }
	if err := l.carry(ToClient, bytes.Repeat([]byte(one), count), nil); err != nil || seen != count {
		t.Errorf("%d messages, %v", seen, err)
	}
}

type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }
func (nopWriter) Close() error                { return nil }

// A message that is too large is answered to whoever waits for it.
func TestRunTooLarge(t *testing.T) {
	filler := strings.Repeat("x", 2000)
	p := &Proxy{Policy: withLimits(t, func(c *policy.Config) { c.Limits.MaxMessage = 1024 })}
	tests := []struct {
		name   string
		from   Direction
		line   string
		told   Direction // who is
		holds  []string
		silent bool // nobody is
	}{
		{"the client's request", ToServer, `{"jsonrpc":"2.0","method":"tools/call","params":"` + filler + `","id":4}`, ToClient,
			[]string{`"id":4`, "-32600", "1KiB", "--max-message"}, false},
		{"the server's result", ToClient, `{"result":{"id":9,"text":"` + filler + `"},"jsonrpc":"2.0","id":"r"}`, ToClient,
			[]string{`"id":"r"`, "-32600", "--max-message"}, false},
		{"the server's request", ToClient, `{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":"` + filler + `"}`, ToServer,
			[]string{`"id":0`, "-32600", "--max-message"}, false},
		{"the client's answer", ToServer, `{"jsonrpc":"2.0","id":0,"result":"` + filler + `"}`, ToServer,
			[]string{`"id":0`, "-32600", "--max-message"}, false},
		{"the client's batch", ToServer, `[{"jsonrpc":"2.0","id":0,"method":"m","params":"` + filler + `"}]`, ToClient,
			[]string{`"id":null`, "-32600", "--max-message"}, false},
		{"a notification", ToServer, `{"jsonrpc":"2.0","method":"m","params":"` + filler + `"}`, ToClient, nil, true},
		{"a log line", ToClient, filler, ToServer, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, p, nil, func(t *testing.T, r *running) {
				peers := [2]*peer{ToServer: r.server, ToClient: r.client}
				peers[tt.from.back()].send(tt.line)
				if !tt.silent {
					peers[tt.told].expectHolding(t, tt.holds...)
				}
				next := `{"jsonrpc":"2.0","id":77,"method":"ping"}` // the stream goes on
				peers[tt.from.back()].send(next)
				peers[tt.from].expect(t, next)
				peers[tt.from].send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
				peers[tt.from.back()].expect(t, `{"jsonrpc":"2.0","id":77,"result":{}}`)
			})
		})
	}
}

// A client that reads nothing holds up what comes from the server, after a
// bounded number of bytes, and nothing else.
func TestRunSlowClient(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) { slowPeer(t, r.server, r.client) })
}

func TestRunSlowServer(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) { slowPeer(t, r.client, r.server) })
}

func slowPeer(t *testing.T, fast, slow *peer) {
	t.Helper()
	line := fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"a":"%s"}}`, strings.Repeat("x", 1000))
	all := strings.Repeat(line+"\n", 10_000)
	fast.say.add(all)
	synctest.Wait()
	if held := len(all) - fast.say.left(); held > 4*frameBuffer {
		t.Errorf("%d bytes are held for a peer that does not read", held)
	}
	// The slow one may still speak, and noise of its own does not stop it
	// until it has left a fair number of answers unread.
	for i := range maxPosts {
		slow.send("noise")
		ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		slow.send(ping)
		fast.expect(t, ping)
	}
	// It reads at last, and gets all in order.
	for range 100 {
		for {
			got, err := slow.line.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if got == line+"\n" {
				break
			}
		}
	}
}

// Whatever blocks, Run ends once its context has, and says so in time.
func TestRunContextEnds(t *testing.T) {
	tests := []struct {
		name  string
		block func(t *testing.T, r *running)
		read  bool // the client reads
		want  time.Duration
	}{
		{"the server ends at once", func(t *testing.T, r *running) {
			go func() {
				_, _ = io.Copy(io.Discard, r.server.hear)
				r.server.say.Close()
			}()
		}, true, 0},
		{"the server never ends", func(*testing.T, *running) {}, true, DefaultEndWait},
		{"the server ends in time", func(t *testing.T, r *running) {
			time.AfterFunc(3*time.Second, func() { r.server.say.Close() })
		}, true, 3 * time.Second},
		{"the server does not read", func(t *testing.T, r *running) {
			r.client.send(slices.Repeat([]string{`{"jsonrpc":"2.0","method":"n"}`}, 10_000)...)
		}, true, DefaultEndWait},
		{"the client does not read", func(t *testing.T, r *running) {
			r.server.send(`{"jsonrpc":"2.0","method":"n"}`)
		}, false, DefaultEndWait},
		{"the client does not read the answers", func(t *testing.T, r *running) {
			r.client.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			synctest.Wait()
			r.server.say.Close()
		}, false, DefaultEndWait},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
				tt.block(t, r)
				synctest.Wait()
				if tt.read {
					go func() { _, _ = io.Copy(io.Discard, r.client.hear) }()
				}
				start := time.Now()
				r.cancel()
				err := <-r.done
				r.done <- nil
				if took := time.Since(start); err != nil || took != tt.want {
					t.Errorf("took %v, %v; want %v", took, err, tt.want)
				}
			})
		})
	}
}

// A server that does not read its input must not keep us from closing it when
// the client has ended.
func TestRunClientEndsBeforeAServerThatDoesNotRead(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
		r.client.send(`{"jsonrpc":"2.0","method":"n"}`)
		r.client.say.Close()
		start := time.Now()
		time.Sleep(DefaultEndWait - time.Nanosecond)
		synctest.Wait()
		select {
		case <-r.done:
			t.Error("ended early")
		default:
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		r.server.say.Close()
		if err := <-r.done; err != nil || time.Since(start) != DefaultEndWait {
			t.Error(err, time.Since(start))
		}
		r.done <- nil
	})
}

// What is said while a message waits for room is not held back.
func TestRunMaxInflight(t *testing.T) {
	large := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m","params":"%s"}`, id, strings.Repeat("x", 2*frameBuffer))
	}
	p := &Proxy{Policy: withLimits(t, func(c *policy.Config) {
		c.Limits.MaxMessage, c.Limits.MaxInflight = 3*frameBuffer, 3*frameBuffer
	})}
	synctest.Test(t, func(t *testing.T) {
		first, second := startRun(t, p, nil), startRun(t, p, nil)
		defer first.end()
		defer second.end()
		say := func(r *running, lines ...string) {
			r.client.send(lines...)
			synctest.Wait()
		}
		small := `{"jsonrpc":"2.0","method":"n"}`

		say(first, large(1)) // held, since the first server does not read
		start := time.Now()
		say(second, small, large(2))
		second.server.expect(t, small) // before the wait for room, not behind it
		time.Sleep(3 * time.Second)
		first.server.expect(t, large(1))
		second.server.expect(t, large(2)) // now there is room
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("waited %v for room", took)
		}

		say(first, large(3))
		start = time.Now()
		say(second, large(4))
		second.client.expectHolding(t, `"id":4`, "-32600", "--max-inflight")
		if took := time.Since(start); took != InflightWait {
			t.Errorf("answered after %v, want %v", took, InflightWait)
		}
		first.server.expect(t, large(3))
	})
}
