package svg

import (
	"image/color"
	"strings"
)

// A style is what an element draws with: its parent's, but for what it says
// itself (SVG 2 section 6).
type style struct {
	fill, stroke               paint
	fillOpacity, strokeOpacity float64
	evenOdd, clipEvenOdd       bool
	color                      color.NRGBA
	width, miter, dashOffset   float64
	dashes                     []float64
	cap, join                  string
	hidden                     bool
}

// A paint is a colour, or the id of a gradient.
type paint struct {
	color    color.NRGBA
	gradient string
}

var initialStyle = style{
	fill:        paint{color: color.NRGBA{A: 255}},
	fillOpacity: 1, strokeOpacity: 1,
	color: color.NRGBA{A: 255},
	width: 1, miter: 4,
	cap: "butt", join: "miter",
}

// with returns s as n changes it.
func (s style) with(n *node) style {
	if v, ok := n.attrs["color"]; ok {
		s.color = s.colour(v.text)
	}
	for name, v := range n.attrs {
		switch name {
		case "fill":
			s.fill = s.paint(v.text)
		case "stroke":
			s.stroke = s.paint(v.text)
		case "fill-opacity":
			s.fillOpacity = v.numbers[0]
		case "stroke-opacity":
			s.strokeOpacity = v.numbers[0]
		case "fill-rule":
			s.evenOdd = v.text == "evenodd"
		case "clip-rule":
			s.clipEvenOdd = v.text == "evenodd"
		case "stroke-width":
			s.width = max(0, v.numbers[0])
		case "stroke-miterlimit":
			s.miter = v.numbers[0]
		case "stroke-dasharray":
			s.dashes = v.numbers
		case "stroke-dashoffset":
			s.dashOffset = v.numbers[0]
		case "stroke-linecap":
			s.cap = v.text
		case "stroke-linejoin":
			s.join = v.text
		case "visibility":
			s.hidden = v.text != "visible"
		}
	}
	return s
}

func (s style) colour(text string) color.NRGBA {
	if text == "currentColor" {
		return s.color
	}
	c, _ := parseColour(text)
	return c
}

func (s style) paint(text string) paint {
	if text == "none" {
		return paint{}
	}
	if id, ok := reference(text); ok {
		return paint{gradient: id}
	}
	return paint{color: s.colour(text)}
}

// reference returns the id of a value that Parse wrote as url(#id).
func reference(text string) (id string, ok bool) {
	id, ok = strings.CutPrefix(text, "url(#")
	return strings.TrimSuffix(id, ")"), ok
}

// number returns an attribute's number, or byDefault.
func (n *node) number(name string, byDefault float64) float64 {
	if v, ok := n.attrs[name]; ok {
		return v.numbers[0]
	}
	return byDefault
}

// matrix returns an attribute's transform.
func (n *node) matrix(name string) matrix {
	v, ok := n.attrs[name]
	if !ok {
		return identity
	}
	return matrix{v.numbers[0], v.numbers[1], v.numbers[2], v.numbers[3], v.numbers[4], v.numbers[5]}
}
