package svg

import (
	"math"
	"strings"
)

// A matrix maps (x, y) to (a·x + c·y + e, b·x + d·y + f).
type matrix struct{ a, b, c, d, e, f float64 }

var identity = matrix{a: 1, d: 1}

// mul returns the matrix that applies n first and then m.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m.a*n.a + m.c*n.b, m.b*n.a + m.d*n.b,
		m.a*n.c + m.c*n.d, m.b*n.c + m.d*n.d,
		m.a*n.e + m.c*n.f + m.e, m.b*n.e + m.d*n.f + m.f,
	}
}

func (m matrix) apply(p point) point { return point{m.a*p.x + m.c*p.y + m.e, m.b*p.x + m.d*p.y + m.f} }

func (m matrix) determinant() float64 { return m.a*m.d - m.b*m.c }

// scale returns by how much m makes lengths grow, on the average of both axes.
func (m matrix) scale() float64 { return math.Sqrt(math.Abs(m.determinant())) }

// norm returns the length that percentages of neither axis are of (SVG 2
// section 8.9), for a matrix that scales alone.
func (m matrix) norm() float64 { return math.Sqrt((m.a*m.a + m.d*m.d) / 2) }

// invert returns the inverse; false if there is none.
func (m matrix) invert() (matrix, bool) {
	det := m.determinant()
	if math.Abs(det) < 1e-12 || math.IsInf(det, 0) || math.IsNaN(det) {
		return matrix{}, false
	}
	return matrix{
		m.d / det, -m.b / det, -m.c / det, m.a / det,
		(m.c*m.f - m.d*m.e) / det, (m.b*m.e - m.a*m.f) / det,
	}, true
}

func (m matrix) markup() string {
	return "matrix(" + formatAll([]float64{m.a, m.b, m.c, m.d, m.e, m.f}) + ")"
}

// parseTransform reads a transform list (CSS Transforms 1 section 8) and
// multiplies it out.
func parseTransform(s string) (m matrix, ok bool, err error) {
	m = identity
	rest := strings.TrimSpace(s)
	for range maxList {
		if rest == "" {
			if !m.bounded() {
				return m, false, refused("transform out of bounds")
			}
			return m, true, nil
		}
		name, after, ok := strings.Cut(rest, "(")
		if !ok {
			return m, false, nil
		}
		arguments, after, ok := strings.Cut(after, ")")
		if !ok {
			return m, false, nil
		}
		v, ok, err := numbers(arguments, 6)
		if !ok {
			return m, false, err
		}
		n, ok := transformFunction(strings.TrimSpace(name), v)
		if !ok {
			return m, false, nil
		}
		m = m.mul(n)
		rest = strings.TrimLeft(after, " \t\r\n\f,")
	}
	return m, false, refused("transform list too long")
}

func (m matrix) bounded() bool {
	for _, v := range [...]float64{m.a, m.b, m.c, m.d, m.e, m.f} {
		if !(math.Abs(v) <= maxNumber) {
			return false
		}
	}
	return true
}

func transformFunction(name string, v []float64) (matrix, bool) {
	sin, cos := math.Sincos(v[0] * math.Pi / 180)
	switch {
	case name == "matrix" && len(v) == 6:
		return matrix{v[0], v[1], v[2], v[3], v[4], v[5]}, true
	case name == "translate" && len(v) == 1:
		return matrix{1, 0, 0, 1, v[0], 0}, true
	case name == "translate" && len(v) == 2:
		return matrix{1, 0, 0, 1, v[0], v[1]}, true
	case name == "scale" && len(v) == 1:
		return matrix{a: v[0], d: v[0]}, true
	case name == "scale" && len(v) == 2:
		return matrix{a: v[0], d: v[1]}, true
	case name == "rotate" && len(v) == 1:
		return matrix{cos, sin, -sin, cos, 0, 0}, true
	case name == "rotate" && len(v) == 3:
		to, back := matrix{1, 0, 0, 1, v[1], v[2]}, matrix{1, 0, 0, 1, -v[1], -v[2]}
		return to.mul(matrix{cos, sin, -sin, cos, 0, 0}).mul(back), true
	case name == "skewX" && len(v) == 1:
		return matrix{1, 0, math.Tan(v[0] * math.Pi / 180), 1, 0, 0}, true
	case name == "skewY" && len(v) == 1:
		return matrix{1, math.Tan(v[0] * math.Pi / 180), 0, 1, 0, 0}, true
	}
	return identity, false
}
