package policy

import (
	"math"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Size
		back string
	}{
		{"64MiB", 64 * MiB, "64MiB"},
		{"1KiB", KiB, "1KiB"},
		{"2GiB", 2 * GiB, "2GiB"},
		{"1024", KiB, "1KiB"},
		{"1536", 1536, "1536B"},
		{"1B", 1, "1B"},
		{"0", 0, "0B"},
		{"off", -1, "off"},
		{"9223372036854775807B", math.MaxInt64, "9223372036854775807B"},
	} {
		var s Size
		if err := s.Set(tt.text); err != nil || s != tt.want || s.String() != tt.back {
			t.Errorf("%q is %d (%v), written %q; want %d, %q", tt.text, s, err, s, tt.want, tt.back)
		}
	}
	for _, text := range []string{"", "B", "MiB", "1MB", "1mib", "1 MiB", "1.5MiB", "-1", "+1", "01", "0x10", "1_000", "8589934592GiB", "9223372036854775808", "1MiBMiB", "Off"} {
		s := Size(7)
		if err := s.Set(text); err == nil || s != 7 {
			t.Errorf("%q is taken, as %v", text, s)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
		back string
	}{
		{"500ms", 500 * time.Millisecond, "500ms"},
		{"24h", 24 * time.Hour, "24h"},
		{"90m", 90 * time.Minute, "1h30m"},
		{"60s", time.Minute, "1m"},
		{"10h", 10 * time.Hour, "10h"},
		{"1h0m1s", time.Hour + time.Second, "1h0m1s"},
		{"0s", 0, "0s"},
		{"off", -1, "off"},
	} {
		var d Duration
		if err := d.Set(tt.text); err != nil || d.Std() != tt.want || d.String() != tt.back {
			t.Errorf("%q is %d (%v), written %q; want %d, %q", tt.text, d, err, d, tt.want, tt.back)
		}
	}
	for _, text := range []string{"", "5", "-5s", "+5s", "5 s", "5d", "s", "Off"} {
		d := Duration(7)
		if err := d.Set(text); err == nil || d != 7 {
			t.Errorf("%q is taken, as %v", text, d)
		}
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]Count{"0": 0, "1024": 1024, "2147483647": math.MaxInt32, "off": -1} {
		var c Count
		if err := c.Set(text); err != nil || c != want || c.String() != text {
			t.Errorf("%q is %d (%v), written %q; want %d", text, c, err, c, want)
		}
	}
	for _, text := range []string{"", "-1", "+1", "01", "1.0", "1e3", "2147483648", "Off"} {
		c := Count(7)
		if err := c.Set(text); err == nil || c != 7 {
			t.Errorf("%q is taken, as %v", text, c)
		}
	}
}
