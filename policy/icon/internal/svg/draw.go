package svg

import (
	"image"
	"math"
	"slices"

	"github.com/srwiley/rasterx"
	"golang.org/x/image/math/fixed"
)

// The budget of one drawing: far above what icons need, far below what takes
// a second or 64 MiB.
const (
	budgetCrossings = 4 << 20
	budgetNodes     = 20_000
	maxDashCount    = 5_000 // of one path
	maxReferences   = 4     // masks within masks within clip paths
)

// Draw draws the document within a square of edge pixels, as large as it goes.
func (d *Document) Draw(edge int) (*image.NRGBA, error) {
	vw, vh := d.viewBox[2], d.viewBox[3]
	scale := float64(edge) / max(vw, vh)
	w, h := max(1, int(math.Round(vw*scale))), max(1, int(math.Round(vh*scale)))
	work := &budget{crossings: budgetCrossings, nodes: budgetNodes}
	c := &canvas{doc: d, work: work, scanner: newScanner(w, h, work)}
	to := newLayer(w, h)
	m := matrix{scale, 0, 0, scale, -d.viewBox[0] * scale, -d.viewBox[1] * scale}
	c.node(to, d.root, initialStyle, m)
	if work.spent {
		return nil, refused("too much work to draw")
	}
	return to.image(), nil
}

// A canvas draws one document.
type canvas struct {
	doc        *Document
	work       *budget
	scanner    *scanner
	references int // masks and clip paths that are being drawn
}

// node draws n and what is in it. Opacity, clip paths and masks work on the
// whole of it: it is drawn apart and then put where it belongs.
func (c *canvas) node(to *layer, n *node, s style, m matrix) {
	if !c.work.take(&c.work.nodes, 1) || n.name == "defs" || n.name == "clipPath" || n.name == "mask" || isGradient(n.name) {
		return
	}
	s = s.with(n)
	m = m.mul(n.matrix("transform"))
	opacity := n.number("opacity", 1)
	var masks [][]float32
	if id, ok := reference(n.attrs["clip-path"].text); ok {
		masks = c.clip(masks, id, m)
	}
	if id, ok := reference(n.attrs["mask"].text); ok {
		masks = c.mask(masks, id, m)
	}
	if opacity == 1 && len(masks) == 0 {
		c.content(to, n, s, m)
		return
	}
	apart := newLayer(to.width, to.height)
	c.content(apart, n, s, m)
	to.compose(apart, float32(opacity), masks...)
}

func (c *canvas) content(to *layer, n *node, s style, m matrix) {
	for _, child := range n.children {
		c.node(to, child, s, m)
	}
	if p := n.outline(); len(p) > 0 && !s.hidden {
		c.shape(to, p, s, m)
	}
}

// clip adds a clip path's mask (CSS Masking 1 section 5): all that its shapes
// fill, whatever their paint.
func (c *canvas) clip(masks [][]float32, id string, m matrix) [][]float32 {
	n := c.doc.ids[id]
	if n == nil || n.name != "clipPath" || c.references >= maxReferences {
		return masks
	}
	c.references++
	defer func() { c.references-- }()
	m = m.mul(n.matrix("transform"))
	mask := make([]float32, c.scanner.width*c.scanner.height)
	for _, child := range n.children {
		s := initialStyle.with(n).with(child)
		p := child.outline()
		if len(p) == 0 || s.hidden || !c.work.take(&c.work.nodes, 1) {
			continue
		}
		for i, v := range c.fill(p, m.mul(child.matrix("transform")), s.clipEvenOdd) {
			mask[i] = max(mask[i], v)
		}
	}
	masks = append(masks, mask)
	if id, ok := reference(n.attrs["clip-path"].text); ok {
		masks = c.clip(masks, id, m)
	}
	return masks
}

// mask adds a mask element's mask.
func (c *canvas) mask(masks [][]float32, id string, m matrix) [][]float32 {
	n := c.doc.ids[id]
	if n == nil || n.name != "mask" || c.references >= maxReferences {
		return masks
	}
	c.references++
	defer func() { c.references-- }()
	apart := newLayer(c.scanner.width, c.scanner.height)
	s := initialStyle.with(n)
	for _, child := range n.children {
		c.node(apart, child, s, m)
	}
	return append(masks, apart.mask(n.attrs["mask-type"].text != "alpha"))
}

// shape fills and strokes one outline.
func (c *canvas) shape(to *layer, p path, s style, m matrix) {
	if from := c.source(s.fill, s, p, m, s.fillOpacity); from != nil {
		paintThrough(to, c.fill(p, m, s.evenOdd), from)
	}
	if s.width == 0 {
		return
	}
	if from := c.source(s.stroke, s, p, m, s.strokeOpacity); from != nil {
		paintThrough(to, c.stroke(p, m, s), from)
	}
}

func (c *canvas) source(p paint, s style, outline path, m matrix, opacity float64) source {
	if p.gradient != "" {
		return c.doc.gradientSource(p.gradient, s, m, outline.bounds(), opacity)
	}
	if p.color.A == 0 || opacity == 0 {
		return nil
	}
	colour := premultiply(p.color, opacity)
	return func(int, int) pixel { return colour }
}

func paintThrough(to *layer, coverage []float32, from source) {
	for i, v := range coverage {
		if v > 0 {
			to.over(i, from(i%to.width, i/to.width), min(v, 1))
		}
	}
}

// fill returns the coverage of p's inside.
func (c *canvas) fill(p path, m matrix, evenOdd bool) []float32 {
	filler := rasterx.NewFiller(c.scanner.width, c.scanner.height, c.scanner)
	c.scanner.SetWinding(!evenOdd)
	c.trace(filler, p, m)
	return c.scanner.coverage()
}

var caps = map[string]rasterx.CapFunc{"butt": rasterx.ButtCap, "round": rasterx.RoundCap, "square": rasterx.SquareCap}

var joins = map[string]rasterx.JoinMode{"miter": rasterx.Miter, "round": rasterx.Round, "bevel": rasterx.Bevel}

// stroke returns the coverage of p's stroke. Its width is scaled evenly, so a
// transform that stretches or skews a stroke does so to its course alone.
func (c *canvas) stroke(p path, m matrix, s style) []float32 {
	scale := m.scale() * subpixels
	width := s.width * scale
	if !(width < maxDevice) {
		c.work.spent = true
		return nil
	}
	dasher := rasterx.NewDasher(c.scanner.width, c.scanner.height, c.scanner)
	dashes, offset := s.dashPattern()
	if len(dashes) > 0 && p.length()/sum(dashes)*float64(len(dashes)) > maxDashCount {
		c.work.spent = true
		return nil
	}
	for i := range dashes {
		dashes[i] *= scale
	}
	dasher.SetStroke(fixed.Int26_6(width*64), fixed.Int26_6(min(s.miter, 1000)*64), caps[s.cap], nil, nil, joins[s.join], dashes, offset*scale)
	c.scanner.SetWinding(true)
	p = p.closed(s.width / 100)
	if s.cap != "butt" {
		p = p.withDots()
	}
	if s.cap == "round" && s.join == "round" {
		p = p.cutAtCusps()
	}
	c.trace(dasher, p, m)
	return c.scanner.coverage()
}

// dashPattern returns the dashes and gaps in user units, an even number of
// them, and an offset within the first round of them.
func (s style) dashPattern() (dashes []float64, offset float64) {
	dashes = slices.Clone(s.dashes)
	if len(dashes)%2 == 1 {
		dashes = append(dashes, dashes...)
	}
	total := sum(dashes)
	if total == 0 {
		return nil, 0
	}
	offset = math.Mod(s.dashOffset, total)
	if offset < 0 {
		offset += total
	}
	return dashes, offset
}

func sum(list []float64) (total float64) {
	for _, n := range list {
		total += n
	}
	return total
}

// trace gives p to rasterx in subpixels.
func (c *canvas) trace(to rasterx.Adder, p path, m matrix) {
	open := false
	for _, seg := range p {
		var q [3]fixed.Point26_6
		for k, at := range seg.points[:seg.count()] {
			at = m.apply(at)
			at.x, at.y = at.x*subpixels, at.y*subpixels
			if !(math.Abs(at.x) < maxDevice && math.Abs(at.y) < maxDevice) {
				c.work.spent = true
				return
			}
			q[k] = fixed.Point26_6{X: fixed.Int26_6(math.Round(at.x * 64)), Y: fixed.Int26_6(math.Round(at.y * 64))}
		}
		switch seg.op {
		case 'M':
			if open {
				to.Stop(false)
			}
			to.Start(q[0])
			open = true
		case 'L':
			to.Line(q[0])
		case 'Q':
			to.QuadBezier(q[0], q[1])
		case 'C':
			to.CubeBezier(q[0], q[1], q[2])
		case 'Z':
			to.Stop(true)
			open = false
		}
	}
	if open {
		to.Stop(false)
	}
}
