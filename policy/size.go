package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// off is how the policy file and flags write that a bound is lifted; the
// value is then negative.
const off = "off"

// Size is a number of bytes; a negative one lifts the bound. As text it is a
// whole number with a unit of 1024 (B, KiB, MiB, GiB), or "off". It can be
// used as a pflag.Value.
type Size int64

// Units of Size.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

func (s Size) String() string {
	if s < 0 {
		return off
	}
	for _, u := range sizeUnits {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0B"
}

// Set reads what String writes, and a bare number as bytes.
func (s *Size) Set(text string) error {
	if text == off {
		*s = -1
		return nil
	}
	unit := Size(1)
	digits := text
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = n, u.size
			break
		}
	}
	n, err := parseNumber(digits)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return fmt.Errorf("%q is not a size; write a whole number of B, KiB, MiB or GiB, as in 64MiB", text)
	}
	*s = Size(n) * unit
	return nil
}

// Type is the name of the type in a flag's usage.
func (Size) Type() string { return "size" }

// MarshalText writes what String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what Set does.
func (s *Size) UnmarshalText(text []byte) error { return s.Set(string(text)) }

// Duration is a time.Duration; a negative one lifts the bound. As text it is
// Go's ("500ms", "24h"), or "off". It can be used as a pflag.Value.
type Duration time.Duration

// Std is d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

func (d Duration) String() string {
	if d < 0 {
		return off
	}
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} { // 24h0m0s is 24h
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Set reads what String writes.
func (d *Duration) Set(text string) error {
	if text == off {
		*d = -1
		return nil
	}
	n, err := time.ParseDuration(text)
	if err != nil || n < 0 || strings.HasPrefix(text, "+") {
		return fmt.Errorf("%q is not a duration; write a number with its unit, as in 500ms, 30s or 24h", text)
	}
	*d = Duration(n)
	return nil
}

// Type is the name of the type in a flag's usage.
func (Duration) Type() string { return "duration" }

// MarshalText writes what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what Set does.
func (d *Duration) UnmarshalText(text []byte) error { return d.Set(string(text)) }

// Count is a number of things; a negative one lifts the bound. As text it is
// a whole number, or "off". It can be used as a pflag.Value.
type Count int

func (c Count) String() string {
	if c < 0 {
		return off
	}
	return strconv.Itoa(int(c))
}

// Set reads what String writes.
func (c *Count) Set(text string) error {
	if text == off {
		*c = -1
		return nil
	}
	n, err := parseNumber(text)
	if err != nil || n > math.MaxInt32 {
		return fmt.Errorf("%q is not a whole number", text)
	}
	*c = Count(n)
	return nil
}

// Type is the name of the type in a flag's usage.
func (Count) Type() string { return "number" }

// MarshalText writes what String does.
func (c Count) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what Set does.
func (c *Count) UnmarshalText(text []byte) error { return c.Set(string(text)) }

// parseNumber reads decimal digits and nothing else: no sign, no underscore,
// no leading zero.
func parseNumber(s string) (int64, error) {
	if s == "" || s[0] == '+' || s[0] == '-' || len(s) > 1 && s[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, 64)
}
