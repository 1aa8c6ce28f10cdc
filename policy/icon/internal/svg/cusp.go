package svg

import "math"

// withDots gives each subpath that draws something and yet has no length a
// length of next to nothing, so that its caps are drawn (SVG 2 section 13.5).
func (p path) withDots() path {
	out := make(path, 0, len(p))
	for i, s := range p {
		if s.op == 'L' && p[i-1].op == 'M' && p[i:].still(p[i-1].points[0]) {
			s.points[0].x += 1e-3
		}
		out = append(out, s)
	}
	return out
}

// still says whether p stays at one point up to the next subpath.
func (p path) still(at point) bool {
	for _, s := range p {
		if s.op == 'M' {
			return true
		}
		for _, q := range s.points[:s.count()] {
			if q != at {
				return false
			}
		}
	}
	return true
}

// closed moves the end of a subpath that is closed onto its start, where the
// two are nearer to each other than gap, as the sums of rounded numbers are.
// rasterx draws no join at the ends of a line that is too short for it.
func (p path) closed(gap float64) path {
	out := make(path, 0, len(p))
	var start point
	for _, s := range p {
		switch n := len(out) - 1; {
		case s.op == 'M':
			start = s.points[0]
		case s.op == 'Z' && n >= 0 && out[n].op != 'M' && out[n].op != 'Z':
			end := &out[n].points[out[n].count()-1]
			if math.Hypot(end.x-start.x, end.y-start.y) < gap {
				*end = start
			}
		}
		out = append(out, s)
	}
	return out
}

// cutAtCusps ends a subpath and begins a new one wherever its course turns
// right back. rasterx takes such a point for a straight line and draws no
// join; where joins and caps are both round, two caps are the same as a join.
func (p path) cutAtCusps() path {
	out := make(path, 0, len(p))
	var at, start, direction point
	cut := false // the subpath's beginning is no longer where out's is
	for _, s := range p {
		switch s.op {
		case 'M':
			at, start, direction, cut = s.points[0], s.points[0], point{}, false
			out = append(out, s)
			continue
		case 'Z':
			if cut {
				out.add('L', start)
			} else {
				out = append(out, s)
			}
			at, direction, cut = start, point{}, false
			continue
		}
		n := s.count()
		course := append([]point{at}, s.points[:n]...)
		begin, end := heading(course, false), heading(course, true)
		if turnsBack(direction, begin) {
			out.add('M', at)
			cut = true
		}
		out = append(out, s)
		at = s.points[n-1]
		if end != (point{}) {
			direction = end
		}
	}
	return out
}

// heading returns the direction in which a segment begins or ends, as a unit
// vector; zero if it has no length.
func heading(course []point, atEnd bool) point {
	for i := 1; i < len(course); i++ {
		a, b := course[0], course[i]
		if atEnd {
			a, b = course[len(course)-1-i], course[len(course)-1]
		}
		if d := math.Hypot(b.x-a.x, b.y-a.y); d > 1e-9 {
			return point{(b.x - a.x) / d, (b.y - a.y) / d}
		}
	}
	return point{}
}

// turnsBack says whether b leads back where a came from, within some 10°.
func turnsBack(a, b point) bool { return a.x*b.x+a.y*b.y < -0.985 }
