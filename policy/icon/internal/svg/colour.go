package svg

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"
	"sync"
)

// parseColour reads a colour (CSS Color 3, and the forms with a slash).
func parseColour(s string) (c color.NRGBA, ok bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	if hex, ok := strings.CutPrefix(s, "#"); ok {
		return parseHex(hex)
	}
	if name, rest, ok := strings.Cut(s, "("); ok {
		arguments, end, ok := strings.Cut(rest, ")")
		if !ok || end != "" {
			return c, false
		}
		return parseFunction(strings.TrimSpace(name), arguments)
	}
	if s == "transparent" {
		return color.NRGBA{}, true
	}
	rgb, ok := namedColours()[s]
	return color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255}, ok
}

func parseHex(hex string) (c color.NRGBA, ok bool) {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || strings.ContainsAny(hex, "+_") {
		return c, false
	}
	nibble := func(shift int) uint8 { return uint8(n>>shift&0xf) * 0x11 }
	switch len(hex) {
	case 3:
		return color.NRGBA{nibble(8), nibble(4), nibble(0), 255}, true
	case 4:
		return color.NRGBA{nibble(12), nibble(8), nibble(4), nibble(0)}, true
	case 6:
		return color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}, true
	case 8:
		return color.NRGBA{uint8(n >> 24), uint8(n >> 16), uint8(n >> 8), uint8(n)}, true
	}
	return c, false
}

// parseFunction reads rgb(), rgba(), hsl() and hsla().
func parseFunction(name, arguments string) (c color.NRGBA, ok bool) {
	fields := strings.FieldsFunc(arguments, func(r rune) bool { return strings.ContainsRune(" ,/\t\r\n\f", r) })
	if len(fields) != 3 && len(fields) != 4 {
		return c, false
	}
	var v [4]float64 // as fractions, but for the hue
	v[3] = 1
	hsl := strings.HasPrefix(name, "hsl")
	for i, field := range fields {
		t := text(field)
		n, ok, err := t.number()
		if !ok || err != nil {
			return c, false
		}
		switch {
		case hsl && i == 0 && (t == "" || t == "deg"):
			v[i] = n
		case t == "%" && !(hsl && i == 0):
			v[i] = n / 100
		case t == "" && i == 3:
			v[i] = n
		case t == "" && !hsl:
			v[i] = n / 255
		default:
			return c, false
		}
	}
	switch name {
	case "rgb", "rgba":
		return color.NRGBA{to8(v[0]), to8(v[1]), to8(v[2]), to8(v[3])}, true
	case "hsl", "hsla":
		channel := func(offset float64) uint8 {
			k := math.Mod(math.Mod(offset+v[0]/30, 12)+12, 12)
			a := clamp01(v[1]) * min(clamp01(v[2]), 1-clamp01(v[2]))
			return to8(clamp01(v[2]) - a*max(-1, min(k-3, 9-k, 1)))
		}
		return color.NRGBA{channel(0), channel(8), channel(4), to8(v[3])}, true
	}
	return c, false
}

func clamp01(v float64) float64 { return min(max(v, 0), 1) }

func to8(v float64) uint8 { return uint8(math.Round(clamp01(v) * 255)) }

// formatColour writes c so that it is read as c again.
func formatColour(c color.NRGBA) string {
	if c.A == 255 {
		return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
	}
	return fmt.Sprintf("#%02x%02x%02x%02x", c.R, c.G, c.B, c.A)
}

// namedColours are CSS's, read when first needed.
var namedColours = sync.OnceValue(func() map[string]uint32 {
	fields := strings.Fields(colourTable)
	names := make(map[string]uint32, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		rgb, err := strconv.ParseUint(fields[i+1], 16, 32)
		if err != nil {
			panic("svg: colour table: " + err.Error())
		}
		names[fields[i]] = uint32(rgb)
	}
	return names
})
