package svg

import (
	"image"
	"slices"

	"github.com/srwiley/rasterx"
	"golang.org/x/image/math/fixed"
)

// subpixels is how finely a pixel is divided in both directions: curves are
// flattened and strokes outlined at that scale, and each of its rows is one
// sample of the coverage.
const subpixels = 16

// maxDevice bounds a point in subpixels, far from where rasterx's 26.6
// arithmetic would overflow.
const maxDevice = 1 << 19

// A scanner makes coverage of outlines. It stands under rasterx's Filler and
// Dasher, which call Start and Line.
type scanner struct {
	width, height int // pixels
	rows          [][]crossing
	at            fixed.Point26_6
	evenOdd       bool
	held          int // crossings in rows
	work          *budget
}

// maxHeld bounds the crossings of one outline, of 8 bytes each.
const maxHeld = 1 << 20

// A crossing is where an edge crosses a row of subpixels.
type crossing struct {
	x   float32 // pixels
	dir int8    // +1 down, -1 up
}

// A budget bounds what drawing one document may cost.
type budget struct {
	crossings int
	nodes     int
	spent     bool
}

func (b *budget) take(from *int, n int) bool {
	if *from -= n; *from < 0 {
		b.spent = true
	}
	return !b.spent
}

func newScanner(width, height int, work *budget) *scanner {
	return &scanner{width: width, height: height, rows: make([][]crossing, height*subpixels), work: work}
}

// Start begins a run of edges. Runs need not be closed: rasterx gives the two
// sides of a stroke piece by piece, and only their sum is an outline.
func (s *scanner) Start(a fixed.Point26_6) { s.at = a }

// Line adds an edge.
func (s *scanner) Line(b fixed.Point26_6) {
	s.edge(s.at, b)
	s.at = b
}

// edge notes where the line from a to b crosses the middles of the rows.
func (s *scanner) edge(a, b fixed.Point26_6) {
	dir := int8(1)
	if a.Y > b.Y {
		a, b, dir = b, a, -1
	}
	// Row r has its middle at r+1/2, in 26.6 at 64r+32.
	first := max(0, (int(a.Y)+31)>>6)
	last := min(len(s.rows)-1, (int(b.Y)-33)>>6)
	if first > last || !s.work.take(&s.work.crossings, last-first+1) {
		return
	}
	if s.held += last - first + 1; s.held > maxHeld {
		s.work.spent = true
		return
	}
	slope := float64(b.X-a.X) / float64(b.Y-a.Y)
	for r := first; r <= last; r++ {
		x := float64(a.X) + slope*float64(64*r+32-int(a.Y))
		s.rows[r] = append(s.rows[r], crossing{float32(x / (64 * subpixels)), dir})
	}
}

// coverage returns how much of each pixel is inside, from 0 to 1, and makes s
// ready for the next outline.
func (s *scanner) coverage() []float32 {
	out := make([]float32, s.width*s.height)
	for r, row := range s.rows {
		if len(row) == 0 {
			continue
		}
		slices.SortFunc(row, func(a, b crossing) int {
			switch {
			case a.x < b.x:
				return -1
			case a.x > b.x:
				return 1
			}
			return 0
		})
		line := out[r/subpixels*s.width:][:s.width]
		winding := 0
		for i, c := range row[:len(row)-1] {
			winding += int(c.dir)
			if s.evenOdd && winding&1 != 0 || !s.evenOdd && winding != 0 {
				span(line, c.x, row[i+1].x)
			}
		}
		s.rows[r] = row[:0]
	}
	s.held = 0
	return out
}

// span adds one row's sample from x0 to x1.
func span(line []float32, x0, x1 float32) {
	x0, x1 = max(x0, 0), min(x1, float32(len(line)))
	if x0 >= x1 {
		return
	}
	const full = 1.0 / subpixels
	first, last := int(x0), int(x1)
	if first == last {
		line[first] += (x1 - x0) * full
		return
	}
	line[first] += (float32(first+1) - x0) * full
	for i := first + 1; i < last; i++ {
		line[i] += full
	}
	if last < len(line) {
		line[last] += (x1 - float32(last)) * full
	}
}

// The rest of rasterx.Scanner, which nothing here calls.

var _ rasterx.Scanner = (*scanner)(nil)

func (s *scanner) Draw()                              {}
func (s *scanner) GetPathExtent() fixed.Rectangle26_6 { return fixed.Rectangle26_6{} }
func (s *scanner) SetBounds(int, int)                 {}
func (s *scanner) SetColor(any)                       {}
func (s *scanner) SetWinding(useNonZeroWinding bool)  { s.evenOdd = !useNonZeroWinding }
func (s *scanner) Clear()                             {}
func (s *scanner) SetClip(image.Rectangle)            {}
