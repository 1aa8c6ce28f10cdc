package policy

import (
	"math/big"
	"strconv"
	"strings"
)

// Bounds on a number's text. Within them every comparison is exact; beyond them
// no reader keeps the number, and the check refuses it.
const (
	maxNumberBytes    = 1024
	maxExponentDigits = 18
)

// decimal is a JSON number as it was written: ±digits×10^exp. It is compared
// digit by digit and never expanded, so 1e999999999 costs what 1 does.
type decimal struct {
	negative bool
	digits   string // no leading and no trailing zeros; "" is zero
	exp      int64
}

// parseDecimal reads the text of a JSON number.
func parseDecimal(text []byte) (decimal, bool) {
	if len(text) > maxNumberBytes {
		return decimal{}, false
	}
	var d decimal
	s, negative := strings.CutPrefix(string(text), "-")
	d.negative = negative
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exponent := s[i+1:]
		if len(strings.TrimLeft(exponent, "+-0")) > maxExponentDigits {
			return decimal{}, false
		}
		n, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil {
			return decimal{}, false
		}
		d.exp, s = n, s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	d.exp -= int64(len(fraction))
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	d.exp += int64(len(digits) - len(d.digits))
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

// decimalOf is a whole number that we counted ourselves.
func decimalOf(n int) decimal {
	d, _ := parseDecimal([]byte(strconv.Itoa(n)))
	return d
}

func (d decimal) integer() bool { return d.digits == "" || d.exp >= 0 }

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare returns -1, 0 or 1 as d is less than, equal to or greater than e.
func (d decimal) compare(e decimal) int {
	if c := d.sign() - e.sign(); c != 0 {
		return max(-1, min(1, c))
	}
	magnitude := 0
	if a, b := int64(len(d.digits))+d.exp, int64(len(e.digits))+e.exp; a != b {
		magnitude = 1
		if a < b {
			magnitude = -1
		}
	} else {
		// The first digits have the same weight and there are no trailing
		// zeros, so the order of the texts is the order of the numbers.
		magnitude = strings.Compare(d.digits, e.digits)
	}
	return magnitude * d.sign()
}

// multipleOf reports whether d is a whole multiple of m, which is not zero.
func (d decimal) multipleOf(m decimal) bool {
	if d.digits == "" {
		return true
	}
	shift := d.exp - m.exp
	if shift < 0 {
		// d's digits end in no zero, so they are no multiple of a power of ten.
		return false
	}
	a, _ := new(big.Int).SetString(d.digits, 10)
	b, _ := new(big.Int).SetString(m.digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(shift), b)
	return a.Mul(a, power).Mod(a, b).Sign() == 0
}

func (d decimal) String() string {
	if d.digits == "" {
		return "0"
	}
	s := d.digits
	if d.exp != 0 {
		s += "e" + strconv.FormatInt(d.exp, 10)
	}
	if d.negative {
		s = "-" + s
	}
	return s
}
