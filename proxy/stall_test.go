package proxy

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that reads nothing does not keep us from seeing that the client has
// ended, however much was on its way to it.
func TestRunClientEndsWhileTheServerDoesNotRead(t *testing.T) {
	tests := []struct {
		name string
		said []string
	}{
		{"a message that is being written", []string{note(1)}},
		{"a long message", []string{note(10 * frameBuffer)}},
		{"a buffer full and more", slices.Repeat([]string{note(100)}, 2000)},
		{"as much as is read ahead", []string{note(4 * frameBuffer), note(maxAhead - 2*frameBuffer)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
				r.client.send(tt.said...)
				r.client.say.Close()
				time.Sleep(DefaultEndWait)
				synctest.Wait()
				r.server.expectEnd(t)
			})
		})
	}
}

// The wait begins when the client ends, and what a slow server reads meanwhile
// is not lost.
func TestRunClientEndsBeforeASlowServer(t *testing.T) {
	bubble(t, &Proxy{}, nil, func(t *testing.T, r *running) {
		const pause = DefaultEndWait - 2*time.Second
		said := []string{note(2 * frameBuffer), note(3 * frameBuffer), note(4 * frameBuffer)}
		r.client.send(said...)
		time.Sleep(time.Hour)
		r.client.say.Close()
		for _, line := range said {
			time.Sleep(pause)
			r.server.expect(t, line)
		}
		r.server.expectEnd(t)
	})
}

// note is a notification of about n bytes.
func note(n int) string {
	return `{"jsonrpc":"2.0","method":"n","params":{"x":"` + strings.Repeat("x", n) + `"}}`
}
