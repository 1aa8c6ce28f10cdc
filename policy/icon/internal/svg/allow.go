package svg

import (
	"encoding/xml"
	"strings"
)

// A reader reads an attribute's value. ok is false for what is no value of the
// type, which leaves the attribute out; an error refuses the document.
type reader func(d *Document, s string) (v value, ok bool, err error)

// properties are the presentation attributes, allowed on every element and in
// style attributes.
var properties = map[string]reader{
	"clip-path":         readReference,
	"clip-rule":         keyword("nonzero", "evenodd"),
	"color":             readColour,
	"display":           keyword("none", "inline"),
	"fill":              readPaint,
	"fill-opacity":      readOpacity,
	"fill-rule":         keyword("nonzero", "evenodd"),
	"mask":              readReference,
	"mask-type":         keyword("luminance", "alpha"),
	"opacity":           readOpacity,
	"stop-color":        readColour,
	"stop-opacity":      readOpacity,
	"stroke":            readPaint,
	"stroke-dasharray":  readDashes,
	"stroke-dashoffset": lengthOf(diagonal),
	"stroke-linecap":    keyword("butt", "round", "square"),
	"stroke-linejoin":   keyword("miter", "round", "bevel"),
	"stroke-miterlimit": readMiterLimit,
	"stroke-opacity":    readOpacity,
	"stroke-width":      lengthOf(diagonal),
	"transform":         readTransform,
	"visibility":        keyword("visible", "hidden", "collapse"),
}

// geometry are the attributes of single elements; an element that is not
// listed is not allowed.
var geometry = map[string]map[string]reader{
	"svg":      {"id": readID},
	"g":        {"id": readID},
	"defs":     {"id": readID},
	"path":     {"id": readID, "d": readPath},
	"rect":     {"id": readID, "x": lengthOf(width), "y": lengthOf(height), "width": lengthOf(width), "height": lengthOf(height), "rx": lengthOf(width), "ry": lengthOf(height)},
	"circle":   {"id": readID, "cx": lengthOf(width), "cy": lengthOf(height), "r": lengthOf(diagonal)},
	"ellipse":  {"id": readID, "cx": lengthOf(width), "cy": lengthOf(height), "rx": lengthOf(width), "ry": lengthOf(height)},
	"line":     {"id": readID, "x1": lengthOf(width), "y1": lengthOf(height), "x2": lengthOf(width), "y2": lengthOf(height)},
	"polyline": {"id": readID, "points": readPoints},
	"polygon":  {"id": readID, "points": readPoints},
	"clipPath": {"id": readID, "clipPathUnits": keyword("userSpaceOnUse")},
	"mask":     {"id": readID},
	"linearGradient": {
		"id": readID, "gradientUnits": readUnits, "gradientTransform": readTransform, "spreadMethod": keyword("pad", "reflect", "repeat"),
		"x1": readGradientLength, "y1": readGradientLength, "x2": readGradientLength, "y2": readGradientLength,
	},
	"radialGradient": {
		"id": readID, "gradientUnits": readUnits, "gradientTransform": readTransform, "spreadMethod": keyword("pad", "reflect", "repeat"),
		"cx": readGradientLength, "cy": readGradientLength, "r": readGradientLength, "fx": readGradientLength, "fy": readGradientLength,
	},
	"stop": {"offset": readOpacity},
}

// allowedChild says whether an element may stand in a parent: a picture's
// parts in its containers, stops in gradients, nothing in shapes.
func allowedChild(parent string, name xml.Name) bool {
	if name.Space != namespace && name.Space != "" || name.Local == "svg" || geometry[name.Local] == nil {
		return false
	}
	switch parent {
	case "svg", "g", "defs", "clipPath", "mask":
		return name.Local != "stop"
	case "linearGradient", "radialGradient":
		return name.Local == "stop"
	}
	return false
}

func keyword(words ...string) reader {
	return func(_ *Document, s string) (value, bool, error) {
		s = strings.TrimSpace(s)
		for _, w := range words {
			if s == w {
				return value{text: w}, true, nil
			}
		}
		return value{}, false, nil
	}
}

// What 100 % of a length is.
func width(d *Document) float64  { return d.viewBox[2] }
func height(d *Document) float64 { return d.viewBox[3] }
func diagonal(d *Document) float64 {
	return matrix{a: d.viewBox[2], d: d.viewBox[3]}.norm()
}

func lengthOf(percent func(*Document) float64) reader {
	return func(d *Document, s string) (value, bool, error) {
		n, ok, err := length(s, percent(d))
		return numberValue(n), ok, err
	}
}

func numberValue(n float64) value { return value{text: format(n), numbers: []float64{n}} }

// readGradientLength keeps percentages apart: of what they are depends on the
// gradient's units.
func readGradientLength(_ *Document, s string) (value, bool, error) {
	raw, isPercent := strings.CutSuffix(strings.TrimSpace(s), "%")
	n, ok, err := length(raw, 0)
	v := numberValue(n)
	if isPercent {
		v = value{text: v.text + "%", numbers: []float64{n / 100}}
	}
	return v, ok, err
}

// readOpacity reads a number or percentage from 0 to 1.
func readOpacity(_ *Document, s string) (value, bool, error) {
	n, ok, err := length(s, 1)
	return numberValue(clamp01(n)), ok, err
}

func readMiterLimit(_ *Document, s string) (value, bool, error) {
	n, ok, err := length(s, 0)
	return numberValue(n), ok && n >= 1, err
}

func readDashes(d *Document, s string) (value, bool, error) {
	if strings.TrimSpace(s) == "none" {
		return value{text: "none"}, true, nil
	}
	list, ok, err := numbers(s, maxList)
	if !ok {
		return value{}, false, err
	}
	sum := 0.0
	for _, n := range list {
		if n < 0 {
			return value{}, false, nil
		}
		sum += n
	}
	if sum == 0 {
		return value{text: "none"}, true, nil
	}
	return value{text: formatAll(list), numbers: list}, true, nil
}

func readColour(_ *Document, s string) (value, bool, error) {
	if strings.EqualFold(strings.TrimSpace(s), "currentcolor") {
		return value{text: "currentColor"}, true, nil
	}
	c, ok := parseColour(s)
	return value{text: formatColour(c)}, ok, nil
}

// readPaint reads a colour, none, or a reference to a gradient, whose fallback
// colour is left out.
func readPaint(d *Document, s string) (value, bool, error) {
	s = strings.TrimSpace(s)
	if s == "none" {
		return value{text: s}, true, nil
	}
	if strings.HasPrefix(s, "url(") {
		reference, _, _ := strings.Cut(s, ")")
		return readReference(d, reference+")")
	}
	return readColour(d, s)
}

// readReference reads url(#id), quoted or not.
func readReference(_ *Document, s string) (value, bool, error) {
	s, ok := strings.CutPrefix(strings.TrimSpace(s), "url(")
	if !ok {
		return value{}, false, nil
	}
	s, ok = strings.CutSuffix(s, ")")
	if !ok {
		return value{}, false, nil
	}
	s = strings.TrimSpace(s)
	for _, quote := range []string{`"`, `'`} {
		if len(s) >= 2 && strings.HasPrefix(s, quote) && strings.HasSuffix(s, quote) {
			s = s[1 : len(s)-1]
			break
		}
	}
	id, ok := strings.CutPrefix(s, "#")
	return value{text: "url(#" + id + ")"}, ok && validID(id), nil
}

func readID(_ *Document, s string) (value, bool, error) { return value{text: s}, validID(s), nil }

// validID allows the characters that need no quoting anywhere.
func validID(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '-' && c != '.' && c != ':' {
			return false
		}
	}
	return true
}

func readUnits(_ *Document, s string) (value, bool, error) {
	return keyword("userSpaceOnUse", "objectBoundingBox")(nil, s)
}

func readTransform(_ *Document, s string) (value, bool, error) {
	m, ok, err := parseTransform(s)
	return value{text: m.markup(), numbers: []float64{m.a, m.b, m.c, m.d, m.e, m.f}}, ok, err
}

func readPath(_ *Document, s string) (value, bool, error) {
	p, err := parsePath(s)
	return value{text: p.markup(), path: p}, len(p) > 0, err
}

func readPoints(_ *Document, s string) (value, bool, error) {
	list, err := parsePoints(s)
	return value{text: formatAll(list), numbers: list}, len(list) > 0, err
}
