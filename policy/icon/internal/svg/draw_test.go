package svg

import (
	"image/color"
	"math"
	"testing"
)

// TestDraw looks at single pixels of a 24-pixel picture.
func TestDraw(t *testing.T) {
	red, none, black := color.NRGBA{255, 0, 0, 255}, color.NRGBA{}, color.NRGBA{0, 0, 0, 255}
	blue := color.NRGBA{0, 0, 255, 255}
	type at struct {
		x, y int
		want color.NRGBA
	}
	for name, c := range map[string]struct {
		in string
		at []at
	}{
		"fill":                 {`<rect x="4" y="4" width="16" height="16" fill="red"/>`, []at{{12, 12, red}, {2, 2, none}, {4, 4, red}, {3, 3, none}, {19, 19, red}, {20, 20, none}}},
		"half a pixel":         {`<rect x="4.5" y="4" width="8" height="8" fill="red"/>`, []at{{4, 6, color.NRGBA{255, 0, 0, 128}}, {12, 6, color.NRGBA{255, 0, 0, 128}}}},
		"default is black":     {`<circle cx="12" cy="12" r="10"/>`, []at{{12, 12, black}, {1, 1, none}}},
		"current colour":       {`<g color="red"><rect width="24" height="24" fill="currentColor"/></g>`, []at{{12, 12, red}}},
		"inherited":            {`<g fill="red"><rect width="24" height="24"/></g>`, []at{{12, 12, red}}},
		"style wins":           {`<rect width="24" height="24" fill="blue" style="fill:red"/>`, []at{{12, 12, red}}},
		"even-odd":             {`<path fill="red" fill-rule="evenodd" d="M0 0h24v24H0zM8 8h8v8H8z"/>`, []at{{2, 2, red}, {12, 12, none}}},
		"non-zero":             {`<path fill="red" d="M0 0h24v24H0zM8 8h8v8H8z"/>`, []at{{12, 12, red}}},
		"non-zero turned":      {`<path fill="red" d="M0 0h24v24H0zM8 8v8h8V8z"/>`, []at{{2, 2, red}, {12, 12, none}}},
		"stroke":               {`<path fill="none" stroke="red" stroke-width="4" d="M4 12h16"/>`, []at{{12, 11, red}, {12, 13, red}, {12, 8, none}, {2, 12, none}}},
		"square cap":           {`<path stroke="red" stroke-width="4" stroke-linecap="square" d="M4 12h16"/>`, []at{{2, 12, red}, {0, 12, none}}},
		"dot":                  {`<path stroke="red" stroke-width="6" stroke-linecap="round" d="M12 12h0"/>`, []at{{12, 12, red}, {13, 11, red}, {12, 8, none}}},
		"no dot":               {`<path stroke="red" stroke-width="6" d="M12 12h0"/>`, []at{{12, 12, none}}},
		"closed dot":           {`<path stroke="red" stroke-width="6" stroke-linecap="round" d="M12 12z"/>`, []at{{2, 2, none}}},
		"miter":                {`<path fill="none" stroke="red" stroke-width="4" d="M4 20V4h16"/>`, []at{{2, 2, red}}},
		"closed almost":        {`<path fill="none" stroke="red" stroke-width="4" d="M4 4h16v16h-16L4.02 4Z"/>`, []at{{2, 2, red}}},
		"bevel":                {`<path fill="none" stroke="red" stroke-width="4" stroke-linejoin="bevel" d="M4 20V4h16"/>`, []at{{2, 2, none}}},
		"dashes":               {`<path stroke="red" stroke-width="4" stroke-dasharray="6" d="M0 12h24"/>`, []at{{3, 12, red}, {9, 12, none}, {15, 12, red}, {21, 12, none}}},
		"dash offset":          {`<path stroke="red" stroke-width="4" stroke-dasharray="6" stroke-dashoffset="-6" d="M0 12h24"/>`, []at{{3, 12, none}, {9, 12, red}}},
		"opacity of a group":   {`<g opacity=".5"><rect width="24" height="24" fill="blue"/><rect width="24" height="24" fill="red"/></g>`, []at{{12, 12, color.NRGBA{255, 0, 0, 128}}}},
		"fill opacity":         {`<rect width="24" height="24" fill="red" fill-opacity="50%"/>`, []at{{12, 12, color.NRGBA{255, 0, 0, 128}}}},
		"transform":            {`<g transform="translate(12 0) scale(2)"><rect width="2" height="2" fill="red"/></g>`, []at{{13, 1, red}, {15, 3, red}, {16, 4, none}, {11, 1, none}}},
		"rotate":               {`<rect transform="rotate(90 12 12)" width="4" height="4" fill="red"/>`, []at{{22, 2, red}, {2, 2, none}}},
		"clip":                 {`<clipPath id="c"><rect width="12" height="24"/></clipPath><rect width="24" height="24" fill="red" clip-path="url(#c)"/>`, []at{{6, 12, red}, {18, 12, none}}},
		"mask":                 {`<mask id="m"><rect width="12" height="24" fill="white"/><rect x="12" width="12" height="24"/></mask><rect width="24" height="24" fill="red" mask="url(#m)"/>`, []at{{6, 12, red}, {18, 12, none}}},
		"alpha mask":           {`<mask id="m" mask-type="alpha"><rect width="12" height="24"/></mask><rect width="24" height="24" fill="red" mask="url(#m)"/>`, []at{{6, 12, red}, {18, 12, none}}},
		"clip of itself":       {`<clipPath id="c" clip-path="url(#c)"><rect width="12" height="24"/></clipPath><rect width="24" height="24" fill="red" clip-path="url(#c)"/>`, []at{{6, 12, red}, {18, 12, none}}},
		"mask of itself":       {`<mask id="m"><rect width="24" height="24" fill="white" mask="url(#m)"/></mask><rect width="24" height="24" fill="red" mask="url(#m)"/>`, []at{{12, 12, red}}},
		"linear":               {`<linearGradient id="g"><stop stop-color="red"/><stop offset="1" stop-color="blue"/></linearGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{0, 12, color.NRGBA{250, 0, 5, 255}}, {23, 12, color.NRGBA{5, 0, 250, 255}}}},
		"linear in user space": {`<linearGradient id="g" gradientUnits="userSpaceOnUse" x1="8" x2="16"><stop stop-color="red"/><stop offset="1" stop-color="blue"/></linearGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{3, 3, red}, {20, 3, blue}}},
		"repeat":               {`<linearGradient id="g" x2=".5" spreadMethod="repeat"><stop offset=".5" stop-color="red"/><stop offset=".5" stop-color="blue"/></linearGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{3, 3, red}, {9, 3, blue}, {15, 3, red}, {21, 3, blue}}},
		"reflect":              {`<linearGradient id="g" x2=".5" spreadMethod="reflect"><stop offset=".5" stop-color="red"/><stop offset=".5" stop-color="blue"/></linearGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{3, 3, red}, {9, 3, blue}, {15, 3, blue}, {21, 3, red}}},
		"radial":               {`<radialGradient id="g"><stop offset=".5" stop-color="red"/><stop offset=".5" stop-color="blue"/></radialGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{12, 12, red}, {1, 12, blue}, {12, 22, blue}, {12, 8, red}}},
		"radial with focus":    {`<radialGradient id="g" fx="0"><stop offset=".5" stop-color="red"/><stop offset=".5" stop-color="blue"/></radialGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{2, 12, red}, {20, 12, blue}}},
		"stop opacity":         {`<linearGradient id="g"><stop stop-color="red" stop-opacity=".5"/></linearGradient><rect width="24" height="24" fill="url(#g)"/>`, []at{{12, 12, color.NRGBA{255, 0, 0, 128}}}},
		"no such gradient":     {`<rect width="24" height="24" fill="url(#g)"/>`, []at{{12, 12, none}}},
		"gradient of a mask":   {`<mask id="g"/><rect width="24" height="24" fill="url(#g)"/>`, []at{{12, 12, none}}},
		"hidden":               {`<g visibility="hidden"><rect width="24" height="24"/><rect width="4" height="4" fill="red" visibility="visible"/></g>`, []at{{12, 12, none}, {2, 2, red}}},
		"rounded":              {`<rect width="24" height="24" rx="12" fill="red"/>`, []at{{1, 1, none}, {12, 1, red}, {12, 12, red}}},
		"ellipse":              {`<ellipse cx="12" cy="12" rx="12" ry="4" fill="red"/>`, []at{{2, 12, red}, {12, 6, none}}},
		"line":                 {`<line y1="12" x2="24" y2="12" stroke="red" stroke-width="2"/>`, []at{{12, 12, red}}},
		"polygon":              {`<polygon points="0,0 24,0 24,24" fill="red"/>`, []at{{20, 4, red}, {4, 20, none}}},
		"percent":              {`<rect width="50%" height="100%" fill="red"/>`, []at{{6, 20, red}, {18, 20, none}}},
		"up to a mistake":      {`<path fill="red" d="M0 0h24v24H0z x L1 1"/>`, []at{{12, 12, red}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := draw(t, c.in)
			for _, p := range c.at {
				got := m.NRGBAAt(p.x, p.y)
				for k, d := range [4]int{int(got.R) - int(p.want.R), int(got.G) - int(p.want.G), int(got.B) - int(p.want.B), int(got.A) - int(p.want.A)} {
					if (p.want.A != 0 || k == 3) && (d > 3 || d < -3) {
						t.Errorf("at %d,%d: %v, want %v", p.x, p.y, got, p.want)
						break
					}
				}
			}
		})
	}
}

// TestDrawSize: the viewBox gives the proportions, the edge the size.
func TestDrawSize(t *testing.T) {
	for viewBox, want := range map[string][2]int{
		`viewBox="0 0 24 24"`: {64, 64}, `viewBox="-5 -5 200 100"`: {64, 32}, `viewBox="0,0,1,1000"`: {1, 64},
		`width="32px" height="16"`: {64, 32}, `width="1in" height="96"`: {64, 64}, `width="10" height="20" viewBox="0 0 2 1"`: {64, 32},
	} {
		d, err := Parse([]byte(`<svg xmlns="` + namespace + `" ` + viewBox + `/>`))
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Draw(64)
		if err != nil {
			t.Fatal(err)
		}
		if size := m.Bounds().Size(); size.X != want[0] || size.Y != want[1] {
			t.Errorf("%s: %v, want %v", viewBox, size, want)
		}
	}
}

func TestParsePath(t *testing.T) {
	for in, want := range map[string]string{
		"M1 2L3 4":                 "M1 2 L3 4",
		"m1 2 3 4 5 6":             "M1 2 L4 6 L9 12",
		"M1,2,3,4":                 "M1 2 L3 4",
		"M1-2.5.5e1":               "M1 -2.5",
		"M0 0H5V6h-5v-6z":          "M0 0 L5 0 L5 6 L0 6 L0 0 Z",
		"M0 0zL1 1":                "M0 0 Z M0 0 L1 1",
		"M0 0C1 1 2 2 3 3S5 5 6 6": "M0 0 C1 1 2 2 3 3 C4 4 5 5 6 6",
		"M0 0S5 5 6 6":             "M0 0 C0 0 5 5 6 6",
		"M0 0Q1 1 2 0T4 0":         "M0 0 Q1 1 2 0 Q3 -1 4 0",
		"M0 0T4 0":                 "M0 0 Q0 0 4 0",
		"M0 0A0 5 0 0 1 3 3":       "M0 0 L3 3",
		"M0 0a5 5 0 010 0":         "M0 0",
		"M0 0a1 1 0 2 0 3 3":       "M0 0",
		"L1 1":                     "",
		"M0 0L1":                   "M0 0",
		"M0 0 L1 1 ,":              "M0 0 L1 1",
		"M0 0 L1 1 garbage":        "M0 0 L1 1",
		"M1. 2.L.5.5":              "M1 2 L0.5 0.5",
		"M+1 +2e0":                 "M1 2",
	} {
		p, err := parsePath(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if got := p.markup(); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	// A half circle, its flags without separators.
	p, err := parsePath("M0 0a1 1 0 01-2 0")
	if err != nil || len(p) != 3 {
		t.Fatal(p.markup(), err)
	}
	if mid := p[1].points[2]; math.Hypot(mid.x+1, mid.y-1) > 1e-9 {
		t.Errorf("the arc goes by %v", mid)
	}
}

func TestParseColour(t *testing.T) {
	for in, want := range map[string]string{
		"red": "#ff0000", "RED": "#ff0000", " #abc ": "#aabbcc", "#abcd": "#aabbccdd", "#a1b2c3": "#a1b2c3", "#a1b2c3ff": "#a1b2c3", "#a1b2c300": "#a1b2c300",
		"rgb(1, 2,3)": "#010203", "rgb(100%,0%,50%)": "#ff0080", "rgba(1,2,3,.5)": "#01020380", "rgb(1 2 3 / 50%)": "#01020380", "rgb(300,-1,0)": "#ff0000",
		"hsl(120,100%,50%)": "#00ff00", "hsla(240deg 100% 50% / 0.5)": "#0000ff80", "hsl(-120,100%,50%)": "#0000ff", "transparent": "#00000000", "rebeccapurple": "#663399",
	} {
		c, ok := parseColour(in)
		if got := formatColour(c); !ok || got != want {
			t.Errorf("%q: %s %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "#", "#ab", "#abcde", "#+bc", "#ggg", "rgb(1,2)", "rgb(1,2,3", "rgb(a,b,c)", "rgb(1,2,3)x", "hsl(1,2,3)", "lab(1 2 3)", "url(#a)", "var(--x)", "inherit"} {
		if c, ok := parseColour(in); ok {
			t.Errorf("%q is %v", in, c)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	d, err := Parse([]byte(wrap(`<g fill="none" stroke="#000" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="10"/><path d="m9 12 2 2 4-4"/></g>`)))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Draw(64); err != nil {
			b.Fatal(err)
		}
	}
}
