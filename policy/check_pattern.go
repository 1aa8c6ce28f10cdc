package policy

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on a pattern. Go's regexp never backtracks: a match costs at most
// instructions × bytes of text, which is taken from the decision's steps.
const (
	maxPatternBytes        = 4096
	maxPatternInstructions = 10_000
)

// expression is a compiled pattern keyword.
type expression struct {
	re           *regexp.Regexp
	instructions int
}

// compilePattern compiles a pattern of JSON Schema, which is an ECMA-262 regular
// expression with the u flag, for Go's regexp. What the two read differently is
// translated; what Go's linear-time engine cannot do (look-around, back
// references) is an error.
func compilePattern(source string) (expression, error) {
	if len(source) > maxPatternBytes {
		return expression{}, fmt.Errorf("is longer than %d bytes", maxPatternBytes)
	}
	t := translator{in: source}
	if err := t.run(); err != nil {
		return expression{}, err
	}
	parsed, err := syntax.Parse(t.out.String(), syntax.Perl)
	if err != nil {
		return expression{}, errors.New("does not compile")
	}
	instructions := patternSize(parsed)
	if instructions > maxPatternInstructions {
		return expression{}, errors.New("is too large")
	}
	re, err := regexp.Compile(t.out.String())
	if err != nil {
		return expression{}, errors.New("does not compile")
	}
	return expression{re, instructions}, nil
}

// work is what a match of text costs at worst, in steps.
func (p expression) work(text string) int { return p.instructions * len(text) / 256 }

// patternSize estimates the instructions of a pattern before it is compiled:
// x{1000} is five bytes and a thousand instructions.
func patternSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return size
}

// ECMA-262 white space that \s of Go lacks, as class members.
const moreSpace = `\x0b\x{feff}\p{Z}`

// translator rewrites an ECMA-262 pattern in Go's syntax.
type translator struct {
	in  string
	at  int
	out strings.Builder
}

func (t *translator) rest() string { return t.in[t.at:] }

func (t *translator) run() error {
	for t.at < len(t.in) {
		r, size := utf8.DecodeRuneInString(t.rest())
		var err error
		switch r {
		case '\\':
			err = t.escape(false)
			size = 0
		case '[':
			err = t.class()
			size = 0
		case '.':
			t.out.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		case '(':
			err = t.group()
			size = 0
		default:
			t.out.WriteRune(r)
		}
		if err != nil {
			return err
		}
		t.at += size
	}
	return nil
}

var (
	ecmaModifiers = lazyRegexp(`^\(\?[ims]*(-[ims]+)?:`)
	ecmaName      = lazyRegexp(`^\(\?<[A-Za-z_][A-Za-z0-9_]*>`)
	ecmaProperty  = lazyRegexp(`^\\[pP]\{(?:(?:Script|sc|General_Category|gc)=)?([A-Za-z_]+)\}`)
	ecmaCodePoint = lazyRegexp(`^\\u(?:\{0*([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4}))`)
)

func (t *translator) group() error {
	opening := "("
	if strings.HasPrefix(t.rest(), "(?") {
		opening = ecmaModifiers().FindString(t.rest())
		if opening == "" {
			opening = ecmaName().FindString(t.rest())
		}
		if opening == "" {
			return errors.New("uses a group that cannot be checked")
		}
	}
	t.out.WriteString(opening)
	t.at += len(opening)
	return nil
}

func (t *translator) class() error {
	t.at++
	switch {
	case strings.HasPrefix(t.rest(), "]"): // matches nothing
		t.out.WriteString(`[^\x{0}-\x{10ffff}]`)
		t.at++
		return nil
	case strings.HasPrefix(t.rest(), "^]"): // matches any character
		t.out.WriteString(`(?s:.)`)
		t.at += 2
		return nil
	}
	t.out.WriteByte('[')
	if strings.HasPrefix(t.rest(), "^") {
		t.out.WriteByte('^')
		t.at++
	}
	for t.at < len(t.in) {
		switch c := t.in[t.at]; c {
		case ']':
			t.out.WriteByte(']')
			t.at++
			return nil
		case '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		case '[', '^':
			t.out.WriteString(`\` + string(c))
			t.at++
		default:
			t.out.WriteByte(c)
			t.at++
		}
	}
	return errors.New("does not compile")
}

// escape translates the escape sequence at t.at.
func (t *translator) escape(inClass bool) error {
	if t.at+1 >= len(t.in) {
		return errors.New("does not compile")
	}
	c := t.in[t.at+1]
	size := 2
	switch {
	case c == 'b' && inClass:
		t.out.WriteString(`\x08`)
	case c == 'B' && inClass:
		return errors.New("does not compile")
	case strings.IndexByte("dDwWbBnrtfv", c) >= 0:
		t.out.WriteString(t.in[t.at : t.at+2])
	case c == 's' && inClass:
		t.out.WriteString(`\s` + moreSpace)
	case c == 's':
		t.out.WriteString(`[\s` + moreSpace + `]`)
	case c == 'S' && !inClass:
		t.out.WriteString(`[^\s` + moreSpace + `]`)
	case c == 'x' && t.at+4 <= len(t.in):
		size = 4
		t.out.WriteString(t.in[t.at : t.at+4])
	case c == '0' && (t.at+2 == len(t.in) || t.in[t.at+2] < '0' || t.in[t.at+2] > '9'):
		t.out.WriteString(`\x00`)
	case c == 'c' && t.at+2 < len(t.in) && isLetter(t.in[t.at+2]):
		size = 3
		fmt.Fprintf(&t.out, `\x%02x`, t.in[t.at+2]&31)
	case c == 'u':
		return t.codePoint()
	case c == 'p' || c == 'P':
		m := ecmaProperty().FindStringSubmatch(t.rest())
		if m == nil {
			return errors.New("does not compile")
		}
		size = len(m[0])
		fmt.Fprintf(&t.out, `\%c{%s}`, c, m[1])
	case c < utf8.RuneSelf && !isLetter(c) && (c < '0' || c > '9'):
		t.out.WriteString(`\` + string(c))
	default:
		// Back references, and letters that mean something to Go alone.
		return fmt.Errorf(`uses \%c, which cannot be checked`, c)
	}
	t.at += size
	return nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// codePoint translates \uXXXX, a surrogate pair of two, or \u{X…}.
func (t *translator) codePoint() error {
	m := ecmaCodePoint().FindStringSubmatch(t.rest())
	if m == nil {
		return errors.New("does not compile")
	}
	n, err := strconv.ParseUint(m[1]+m[2], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return errors.New("does not compile")
	}
	t.at += len(m[0])
	r := rune(n)
	if utf16.IsSurrogate(r) {
		m := ecmaCodePoint().FindStringSubmatch(t.rest())
		if m == nil {
			return errors.New("holds half of a surrogate pair")
		}
		low, _ := strconv.ParseUint(m[2], 16, 32)
		if r = utf16.DecodeRune(r, rune(low)); r == utf8.RuneError {
			return errors.New("holds half of a surrogate pair")
		}
		t.at += len(m[0])
	}
	fmt.Fprintf(&t.out, `\x{%x}`, r)
	return nil
}
