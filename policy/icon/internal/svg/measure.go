package svg

import "math"

// A bounds is the box around a path.
type bounds struct{ min, max point }

// flattenParts is into how many lines a curve is cut to be measured.
const flattenParts = 16

// points calls yield with the points of p, curves cut into lines; move says
// that no line leads there.
func (p path) flatten(yield func(q point, move bool)) {
	var at, start point
	for _, s := range p {
		c := s.points
		switch s.op {
		case 'M':
			at, start = c[0], c[0]
			yield(at, true)
		case 'L':
			at = c[0]
			yield(at, false)
		case 'Z':
			at = start
			yield(at, false)
		case 'Q', 'C':
			if s.op == 'Q' { // as a cubic
				q, to := c[0], c[1]
				c[0] = point{at.x + (q.x-at.x)*2/3, at.y + (q.y-at.y)*2/3}
				c[1] = point{to.x + (q.x-to.x)*2/3, to.y + (q.y-to.y)*2/3}
				c[2] = to
			}
			for i := 1; i <= flattenParts; i++ {
				t := float64(i) / flattenParts
				u := 1 - t
				k0, k1, k2, k3 := u*u*u, 3*u*u*t, 3*u*t*t, t*t*t
				yield(point{k0*at.x + k1*c[0].x + k2*c[1].x + k3*c[2].x, k0*at.y + k1*c[0].y + k2*c[1].y + k3*c[2].y}, false)
			}
			at = c[2]
		}
	}
}

func (p path) bounds() bounds {
	b := bounds{point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}}
	p.flatten(func(q point, _ bool) {
		b.min = point{min(b.min.x, q.x), min(b.min.y, q.y)}
		b.max = point{max(b.max.x, q.x), max(b.max.y, q.y)}
	})
	return b
}

func (p path) length() float64 {
	var sum float64
	var at point
	p.flatten(func(q point, move bool) {
		if !move {
			sum += math.Hypot(q.x-at.x, q.y-at.y)
		}
		at = q
	})
	return sum
}
