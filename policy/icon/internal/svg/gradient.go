package svg

import (
	"image/color"
	"math"
)

// A source gives the colour of each pixel.
type source func(x, y int) pixel

func premultiply(c color.NRGBA, opacity float64) pixel {
	a := float64(c.A) / 255 * opacity
	return pixel{float32(float64(c.R) / 255 * a), float32(float64(c.G) / 255 * a), float32(float64(c.B) / 255 * a), float32(a)}
}

// A stop is one colour of a gradient.
type stop struct {
	offset float64
	color  color.NRGBA
	alpha  float64
}

// gradientSource makes a source of a gradient (SVG 2 section 14.2). toDevice
// maps the shape's user units to pixels; box is the shape's. It returns nil if
// nothing is to be painted.
func (d *Document) gradientSource(id string, s style, toDevice matrix, box bounds, opacity float64) source {
	n := d.ids[id]
	if n == nil || !isGradient(n.name) {
		return nil
	}
	stops := readStops(n, s)
	if len(stops) == 0 {
		return nil
	}
	m := toDevice
	relative := n.attrs["gradientUnits"].text != "userSpaceOnUse"
	if relative {
		w, h := box.max.x-box.min.x, box.max.y-box.min.y
		if w <= 0 || h <= 0 {
			return nil
		}
		m = m.mul(matrix{w, 0, 0, h, box.min.x, box.min.y})
	}
	back, ok := m.mul(n.matrix("gradientTransform")).invert()
	if !ok {
		return uniform(stops[len(stops)-1], opacity)
	}
	at := d.linear(n, relative)
	if n.name == "radialGradient" {
		at = d.radial(n, relative)
	}
	spread := n.attrs["spreadMethod"].text
	return func(x, y int) pixel {
		t := at(back.apply(point{float64(x) + 0.5, float64(y) + 0.5}))
		return colourAt(stops, spreadOut(t, spread), opacity)
	}
}

func uniform(s stop, opacity float64) source {
	p := premultiply(s.color, s.alpha*opacity)
	return func(int, int) pixel { return p }
}

func readStops(n *node, s style) (stops []stop) {
	last := 0.0
	for _, c := range n.children {
		if c.name != "stop" {
			continue
		}
		s := s.with(c)
		st := stop{offset: max(last, c.number("offset", 0)), color: color.NRGBA{A: 255}, alpha: c.number("stop-opacity", 1)}
		if v, ok := c.attrs["stop-color"]; ok {
			st.color = s.colour(v.text)
		}
		last = st.offset
		stops = append(stops, st)
	}
	return stops
}

// coordinate returns a gradient's length: percentages are of the box, or in
// user space of whole.
func (n *node) coordinate(name string, byDefault, origin, whole float64, relative bool) float64 {
	v, ok := n.attrs[name]
	isPercent := !ok || v.text[len(v.text)-1] == '%'
	f := byDefault
	if ok {
		f = v.numbers[0]
	}
	if isPercent && !relative {
		return origin + f*whole
	}
	return f
}

func (d *Document) linear(n *node, relative bool) func(point) float64 {
	x1 := n.coordinate("x1", 0, 0, width(d), relative)
	y1 := n.coordinate("y1", 0, 0, height(d), relative)
	dx := n.coordinate("x2", 1, 0, width(d), relative) - x1
	dy := n.coordinate("y2", 0, 0, height(d), relative) - y1
	square := dx*dx + dy*dy
	return func(p point) float64 {
		if square == 0 {
			return 1
		}
		return ((p.x-x1)*dx + (p.y-y1)*dy) / square
	}
}

// radial returns where on the line from the focus through a point to the
// circle that point lies.
func (d *Document) radial(n *node, relative bool) func(point) float64 {
	cx := n.coordinate("cx", 0.5, 0, width(d), relative)
	cy := n.coordinate("cy", 0.5, 0, height(d), relative)
	r := n.coordinate("r", 0.5, 0, diagonal(d), relative)
	fx, fy := cx, cy
	if _, ok := n.attrs["fx"]; ok {
		fx = n.coordinate("fx", 0, 0, width(d), relative)
	}
	if _, ok := n.attrs["fy"]; ok {
		fy = n.coordinate("fy", 0, 0, height(d), relative)
	}
	if off := math.Hypot(fx-cx, fy-cy); off > 0.999*r { // a focus outside moves to the edge
		fx, fy = cx+(fx-cx)*0.999*r/off, cy+(fy-cy)*0.999*r/off
	}
	gx, gy := fx-cx, fy-cy
	c := gx*gx + gy*gy - r*r
	return func(p point) float64 {
		if r <= 0 {
			return 1
		}
		px, py := p.x-fx, p.y-fy
		a := px*px + py*py
		if a == 0 {
			return 0
		}
		b := px*gx + py*gy
		k := (-b + math.Sqrt(max(0, b*b-a*c))) / a // f + k·(p-f) is on the circle
		if k <= 0 {
			return 1
		}
		return 1 / k
	}
}

func spreadOut(t float64, method string) float64 {
	switch method {
	case "repeat":
		return t - math.Floor(t)
	case "reflect":
		t = math.Abs(math.Mod(t, 2))
		return min(t, 2-t)
	}
	return clamp01(t)
}

func colourAt(stops []stop, t, opacity float64) pixel {
	if t <= stops[0].offset || math.IsNaN(t) {
		return premultiply(stops[0].color, stops[0].alpha*opacity)
	}
	for i := 1; i < len(stops); i++ {
		a, b := stops[i-1], stops[i]
		if t > b.offset {
			continue
		}
		f := 1.0
		if b.offset > a.offset {
			f = (t - a.offset) / (b.offset - a.offset)
		}
		mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + f*(float64(y)-float64(x)))) }
		c := color.NRGBA{mix(a.color.R, b.color.R), mix(a.color.G, b.color.G), mix(a.color.B, b.color.B), 255}
		alpha := a.alpha*float64(a.color.A)/255*(1-f) + b.alpha*float64(b.color.A)/255*f
		return premultiply(c, alpha*opacity)
	}
	last := stops[len(stops)-1]
	return premultiply(last.color, last.alpha*opacity)
}
