package svg

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A text is a value that is being read from its start.
type text string

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// space skips white space, and one comma within it if comma is allowed.
func (t *text) space(comma bool) {
	s := *t
	for len(s) > 0 && (isSpace(s[0]) || comma && s[0] == ',') {
		comma = comma && s[0] != ','
		s = s[1:]
	}
	*t = s
}

// number reads one number (SVG 2 section 4.2). ok is false, and t where it
// was, if there is none; the error is for one that is out of bounds.
func (t *text) number() (n float64, ok bool, err error) {
	s := string(*t)
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	whole := digits(s[i:])
	i += whole
	fraction := 0
	if i < len(s) && s[i] == '.' {
		if fraction = digits(s[i+1:]); fraction > 0 {
			i += 1 + fraction
		} else if whole > 0 {
			i++ // "1." is no number of the grammar, but every renderer reads it
		}
	}
	if whole+fraction == 0 {
		return 0, false, nil
	}
	mantissa := i
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if d := digits(s[j:]); d > 0 {
			i = j + d
		}
	}
	n, err = strconv.ParseFloat(strings.TrimSuffix(s[:mantissa], ".")+s[mantissa:i], 64)
	if err != nil || math.Abs(n) > maxNumber {
		return 0, false, fmt.Errorf("%w: number %.32q", ErrRefused, s[:i])
	}
	*t = text(s[i:])
	return n, true, nil
}

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

// numbers reads a list of at most most numbers that is all of s.
func numbers(s string, most int) (list []float64, ok bool, err error) {
	t := text(s)
	t.space(false)
	for len(t) > 0 {
		n, ok, err := t.number()
		if !ok {
			return nil, false, err
		}
		if list = append(list, n); len(list) > most {
			return nil, false, fmt.Errorf("%w: list of more than %d numbers", ErrRefused, most)
		}
		t.space(true)
	}
	return list, len(list) > 0, nil
}

// unitScale are the absolute units, in pixels, and those that depend on a font
// at its usual 16 px.
var unitScale = map[string]float64{
	"": 1, "px": 1, "pt": 4.0 / 3, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "em": 16, "rem": 16, "ex": 8,
}

// length reads a length in user units; percent is what 100 % is.
func length(s string, percent float64) (n float64, ok bool, err error) {
	t := text(strings.TrimSpace(s))
	n, ok, err = t.number()
	if !ok {
		return 0, false, err
	}
	if t == "%" {
		return n / 100 * percent, true, nil
	}
	scale, ok := unitScale[strings.ToLower(string(t))]
	if n *= scale; math.Abs(n) > maxNumber {
		return 0, false, fmt.Errorf("%w: length %.32q", ErrRefused, s)
	}
	return n, ok, nil
}

// format writes n so that it is read as n again.
func format(n float64) string {
	if n == 0 {
		return "0" // and never "-0"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func formatAll(list []float64) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(format(n))
	}
	return b.String()
}
