package svg

import (
	"math"
	"strings"
)

// A point is one in user or device units.
type point struct{ x, y float64 }

// A segment is one absolute path command: M, L, Q, C or Z, with its points,
// the end point last.
type segment struct {
	op     byte
	points [3]point
}

func (s segment) count() int {
	switch s.op {
	case 'M', 'L':
		return 1
	case 'Q':
		return 2
	case 'C':
		return 3
	}
	return 0
}

// A path is a list of segments that starts with an M.
type path []segment

func (p *path) add(op byte, points ...point) {
	s := segment{op: op}
	copy(s.points[:], points)
	*p = append(*p, s)
}

// bounded says whether every point of p is within maxNumber.
func (p path) bounded() bool {
	for _, s := range p {
		for _, q := range s.points {
			if !(math.Abs(q.x) <= maxNumber && math.Abs(q.y) <= maxNumber) {
				return false
			}
		}
	}
	return true
}

// markup writes p as path data.
func (p path) markup() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte(s.op)
		for k, q := range s.points[:s.count()] {
			if k > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(format(q.x) + " " + format(q.y))
		}
	}
	return b.String()
}

// A pathReader reads path data (SVG 2 section 9.3).
type pathReader struct {
	t       text
	p       path
	at      point // the current point
	start   point // the current subpath's
	control point // the last control point, for S and T
	last    byte  // the last command, upper case
}

// arguments are the numbers that each command takes.
var arguments = map[byte]int{'M': 2, 'L': 2, 'H': 1, 'V': 1, 'C': 6, 'S': 4, 'Q': 4, 'T': 2, 'A': 7, 'Z': 0}

// parsePath reads path data, up to its first mistake as the specification
// says. The error is for numbers out of bounds and for too many segments.
func parsePath(s string) (path, error) {
	r := pathReader{t: text(s)}
	for {
		r.t.space(false)
		if len(r.t) == 0 {
			return r.p, nil
		}
		command := r.t[0]
		n, known := arguments[command&^0x20]
		if !known || !isLetter(command) || len(r.p) == 0 && command&^0x20 != 'M' {
			return r.p, nil
		}
		r.t = r.t[1:]
		for first := true; ; first = false {
			r.t.space(!first)
			values, ok, err := r.values(command&^0x20, n)
			if err != nil {
				return nil, err
			}
			if !ok {
				if first {
					return r.p, nil
				}
				break
			}
			from := len(r.p)
			r.step(command, values)
			if !r.p[from:].bounded() {
				return nil, refused("path out of bounds")
			}
			if len(r.p) > maxSegments {
				return nil, refused("too many path segments")
			}
			if n == 0 {
				break
			}
			switch command { // more pairs after a move are lines
			case 'M':
				command = 'L'
			case 'm':
				command = 'l'
			}
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// values reads a command's numbers. An arc's flags are single digits that may
// stand without separators.
func (r *pathReader) values(command byte, n int) (v [7]float64, ok bool, err error) {
	t := r.t
	for i := range n {
		if i > 0 {
			t.space(true)
		}
		if command == 'A' && (i == 3 || i == 4) {
			if len(t) == 0 || t[0] != '0' && t[0] != '1' {
				return v, false, nil
			}
			v[i] = float64(t[0] - '0')
			t = t[1:]
			continue
		}
		if v[i], ok, err = t.number(); !ok {
			return v, false, err
		}
	}
	r.t = t
	return v, true, nil
}

// step adds what one command draws.
func (r *pathReader) step(command byte, v [7]float64) {
	op, from := command&^0x20, point{}
	if command != op {
		from = r.at
	}
	at := func(i int) point { return point{from.x + v[i], from.y + v[i+1]} }
	if r.last == 'Z' && op != 'M' && op != 'Z' {
		r.p.add('M', r.at) // drawing on after a close begins a new subpath
	}
	control := point{}
	switch op {
	case 'M':
		r.at = at(0)
		r.start = r.at
		r.p.add('M', r.at)
	case 'L':
		r.at = at(0)
		r.p.add('L', r.at)
	case 'H':
		r.at.x = from.x + v[0]
		r.p.add('L', r.at)
	case 'V':
		r.at.y = from.y + v[0]
		r.p.add('L', r.at)
	case 'C':
		control = at(2)
		r.at = at(4)
		r.p.add('C', at(0), control, r.at)
	case 'S':
		first := r.reflect("CS")
		control = at(0)
		r.at = at(2)
		r.p.add('C', first, control, r.at)
	case 'Q':
		control = at(0)
		r.at = at(2)
		r.p.add('Q', control, r.at)
	case 'T':
		control = r.reflect("QT")
		r.at = at(0)
		r.p.add('Q', control, r.at)
	case 'A':
		to := at(5)
		r.p.arc(r.at, to, v[0], v[1], v[2], v[3] == 1, v[4] == 1)
		r.at = to
	case 'Z':
		r.at = r.start
		r.p.add('Z')
	}
	r.control, r.last = control, op
}

// reflect returns the last control point as seen from the other side of the
// current point, if the last command was one of ops.
func (r *pathReader) reflect(ops string) point {
	if strings.IndexByte(ops, r.last) < 0 {
		return r.at
	}
	return point{2*r.at.x - r.control.x, 2*r.at.y - r.control.y}
}

// arc adds an elliptical arc as cubics of at most a quarter turn each (SVG 2
// appendix B.2).
func (p *path) arc(from, to point, rx, ry, degrees float64, large, sweep bool) {
	rx, ry = math.Abs(rx), math.Abs(ry)
	if rx == 0 || ry == 0 {
		p.add('L', to)
		return
	}
	if from == to {
		return
	}
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	dx, dy := (from.x-to.x)/2, (from.y-to.y)/2
	x, y := cos*dx+sin*dy, -sin*dx+cos*dy
	if grow := x*x/(rx*rx) + y*y/(ry*ry); grow > 1 {
		rx, ry = rx*math.Sqrt(grow), ry*math.Sqrt(grow)
	}
	k := 0.0
	if d := rx*rx*y*y + ry*ry*x*x; d > 0 {
		k = math.Sqrt(max(0, rx*rx*ry*ry-d) / d)
	}
	if large == sweep {
		k = -k
	}
	cx, cy := k*rx*y/ry, -k*ry*x/rx
	center := point{cos*cx - sin*cy + (from.x+to.x)/2, sin*cx + cos*cy + (from.y+to.y)/2}
	begin := math.Atan2((y-cy)/ry, (x-cx)/rx)
	turn := math.Atan2((-y-cy)/ry, (-x-cx)/rx) - begin
	if sweep && turn < 0 {
		turn += 2 * math.Pi
	} else if !sweep && turn > 0 {
		turn -= 2 * math.Pi
	}
	parts := max(1, int(math.Ceil(math.Abs(turn)/(math.Pi/2)-1e-9)))
	step := turn / float64(parts)
	h := 4.0 / 3 * math.Tan(step/4)
	on := func(a, tangent float64) point {
		s, c := math.Sincos(a)
		ex, ey := rx*(c-tangent*s), ry*(s+tangent*c)
		return point{center.x + cos*ex - sin*ey, center.y + sin*ex + cos*ey}
	}
	for i := range parts {
		a, b := begin+float64(i)*step, begin+float64(i+1)*step
		end := on(b, 0)
		if i == parts-1 {
			end = to
		}
		p.add('C', on(a, h), on(b, -h), end)
	}
}

// points reads the points of a polygon or polyline; an odd number at the end
// is left out.
func parsePoints(s string) ([]float64, error) {
	var list []float64
	t := text(s)
	t.space(false)
	for {
		n, ok, err := t.number()
		if err != nil {
			return nil, err
		}
		if !ok {
			return list[:len(list)&^1], nil
		}
		if list = append(list, n); len(list) > 2*maxSegments {
			return nil, refused("too many points")
		}
		t.space(true)
	}
}
