package svg

import (
	"image"
	"math"
)

// A pixel is premultiplied red, green, blue and alpha, from 0 to 1.
type pixel [4]float32

// A layer is a picture that elements are drawn into.
type layer struct {
	width, height int
	pixels        []pixel
}

func newLayer(width, height int) *layer {
	return &layer{width, height, make([]pixel, width*height)}
}

// over puts src, at an opacity, over what is at i.
func (l *layer) over(i int, src pixel, opacity float32) {
	keep := 1 - src[3]*opacity
	for k := range src {
		l.pixels[i][k] = src[k]*opacity + l.pixels[i][k]*keep
	}
}

// compose puts all of src over l, at an opacity and through masks.
func (l *layer) compose(src *layer, opacity float32, masks ...[]float32) {
	for i, p := range src.pixels {
		if p[3] == 0 {
			continue
		}
		o := opacity
		for _, m := range masks {
			o *= m[i]
		}
		l.over(i, p, o)
	}
}

// alpha returns the layer's alpha as a mask, or its luminance times alpha
// (CSS Masking 1 section 6, in sRGB as SVG's masks are by default).
func (l *layer) mask(luminance bool) []float32 {
	m := make([]float32, len(l.pixels))
	for i, p := range l.pixels {
		m[i] = p[3]
		if luminance {
			m[i] = 0.2126*p[0] + 0.7152*p[1] + 0.0722*p[2]
		}
	}
	return m
}

// image returns the layer as a picture.
func (l *layer) image() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, l.width, l.height))
	for i, p := range l.pixels {
		if p[3] <= 0 {
			continue
		}
		for k := range 3 {
			m.Pix[4*i+k] = byteOf(p[k] / p[3])
		}
		m.Pix[4*i+3] = byteOf(p[3])
	}
	return m
}

func byteOf(v float32) uint8 { return uint8(math.Round(float64(min(max(v, 0), 1)) * 255)) }
