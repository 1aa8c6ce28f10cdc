package proxy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcp-refit/mcp-refit/rewrite"
)

// eventsOf reads a stream, and tells all that came of it.
func eventsOf(t testing.TB, r io.Reader) []string {
	t.Helper()
	var at position
	var got []string
	e := remoteEvents{at: &at, skim: func(rewrite.Skim) { got = append(got, "large") }}
	e.each = func(name string, data []byte) { got = append(got, fmt.Sprintf("%s|%s", name, data)) }
	if err := e.read(t.Context(), r, &Proxy{}); err != nil {
		t.Fatal(err)
	}
	return append(got, fmt.Sprintf("at %q after %v", at.id, at.retry))
}

// TestRemoteEvents: the position after a stream (WHATWG HTML, section 9.2.6).
func TestRemoteEvents(t *testing.T) {
	tests := []struct {
		stream string
		want   []string
	}{
		{"", []string{`at "" after 0s`}},
		{"id: 1\ndata: a\n\n", []string{"|a", `at "1" after 0s`}},
		{"data: a\nid: 1\n\n", []string{"|a", `at "1" after 0s`}},
		{"id: 1\n\n", []string{`at "1" after 0s`}},
		{"id: 1\ndata:\n\n", []string{`at "1" after 0s`}},
		{"id: 1\ndata: a\n\nid: 2\ndata: b", []string{"|a", `at "1" after 0s`}}, // broke off
		{"id: 1\ndata: a\n\nid: 2\ndata: b\n", []string{"|a", `at "1" after 0s`}},
		{"id: 1\ndata: a\n\nid\ndata: b\n\n", []string{"|a", "|b", `at "" after 0s`}},
		{"id: 1\x002\ndata: a\n\n", []string{"|a", `at "" after 0s`}},
		{"id:  x \ndata: a\n\n", []string{"|a", `at " x " after 0s`}},
		{"\ufeffid: 1\r\nevent: e\r\ndata: a\r\ndata: b\r\n\r\n", []string{"e|a\nb", `at "1" after 0s`}},
		{"id: 1\revent: e\rdata: a\r\r", []string{"e|a", `at "1" after 0s`}},
		{"retry: 250\n\n", []string{`at "" after 250ms`}},
		{"retry: x\nretry: -1\nretry: 1.5\n\n", []string{`at "" after 0s`}},
		{"retry: 99999999999999\n\n", []string{`at "" after 0s`}},
		{": id: 1\nIDs: 2\ndata: a\n\n", []string{"|a", `at "" after 0s`}},
		{"id: " + strings.Repeat("x", maxEventID+1) + "\ndata: a\n\n", []string{"|a", `at "" after 0s`}},
	}
	for _, tt := range tests {
		if got := eventsOf(t, strings.NewReader(tt.stream)); !slices.Equal(got, tt.want) {
			t.Errorf("%.60q gave %q, want %q", tt.stream, got, tt.want)
		}
		if got := eventsOf(t, iotest.OneByteReader(strings.NewReader(tt.stream))); !slices.Equal(got, tt.want) {
			t.Errorf("%.60q, byte by byte, gave %q, want %q", tt.stream, got, tt.want)
		}
	}
}

// FuzzRemoteEvents: it makes no difference where a stream is cut into reads.
func FuzzRemoteEvents(f *testing.F) {
	f.Add("id: 1\ndata: a\n\n", 3)
	f.Add("retry: 5\r\nid: 1\r\ndata: a\r\ndata: b\r\n\r\n", 7)
	f.Add("\ufeffdata: a\r\rid\rdata\r\r", 1)
	f.Fuzz(func(t *testing.T, stream string, cut int) {
		if cut < 0 || cut > len(stream) {
			return
		}
		whole := eventsOf(t, strings.NewReader(stream))
		parts := eventsOf(t, io.MultiReader(strings.NewReader(stream[:cut]), strings.NewReader(stream[cut:])))
		if !slices.Equal(whole, parts) {
			t.Errorf("whole: %q, cut at %d: %q", whole, cut, parts)
		}
	})
}

func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		retry    time.Duration
		failed   int
		min, max time.Duration
	}{
		{0, 0, firstRetry, firstRetry},
		{50 * time.Millisecond, 0, 50 * time.Millisecond, 50 * time.Millisecond},
		{0, 1, 2 * time.Second, 2500*time.Millisecond + 1},
		{0, 100, lastRetry, lastRetry + lastRetry/4 + 1},
		{time.Hour, 0, time.Hour, time.Hour}, // as the server asks
	} {
		if got := backoff(tt.retry, tt.failed); got < tt.min || got > tt.max {
			t.Errorf("backoff(%v, %d) = %v", tt.retry, tt.failed, got)
		}
	}
}
