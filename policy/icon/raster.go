package icon

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// maxScans bounds the scans of a JPEG. Encoders write 1 to 12; a progressive
// file of 256 KiB can hold 20,000, each of which visits every block.
const maxScans = 48

// maxSourceEdge bounds a source's longer edge, in pixels.
const maxSourceEdge = 8192

// decodeRaster decodes the first picture in body. Dimensions are judged before
// any pixel is allocated, and again on what the decoder made of them.
func decodeRaster(f format, body []byte, maxPixels int) (image.Image, error) {
	if f == formatJPEG && bytes.Count(body, []byte{0xff, 0xda}) > maxScans {
		return nil, fail(ReasonDecode, errors.New("too many JPEG scans"))
	}
	var config image.Config
	var err error
	switch f {
	case formatPNG:
		config, err = png.DecodeConfig(bytes.NewReader(body))
	case formatJPEG:
		config, err = jpeg.DecodeConfig(bytes.NewReader(body))
	case formatGIF:
		config, err = gif.DecodeConfig(bytes.NewReader(body))
	case formatWebP:
		config, err = webp.DecodeConfig(bytes.NewReader(body))
	default:
		return nil, fail(ReasonFormat, nil)
	}
	if err != nil {
		return nil, fail(ReasonDecode, err)
	}
	if err := checkSize(config.Width, config.Height, maxPixels); err != nil {
		return nil, err
	}
	var m image.Image
	switch f {
	case formatPNG:
		m, err = png.Decode(bytes.NewReader(body))
	case formatJPEG:
		m, err = jpeg.Decode(bytes.NewReader(body))
	case formatGIF:
		m, err = gif.Decode(bytes.NewReader(body)) // the first frame; DecodeAll would keep thousands
	case formatWebP:
		m, err = webp.Decode(bytes.NewReader(body))
	}
	if err != nil {
		return nil, fail(ReasonDecode, err)
	}
	size := m.Bounds().Size() // of a GIF's first frame, which may be less than its canvas
	if err := checkSize(size.X, size.Y, maxPixels); err != nil {
		return nil, err
	}
	return m, nil
}

func checkSize(w, h, maxPixels int) error {
	if w < 1 || h < 1 || w > maxSourceEdge || h > maxSourceEdge || w*h > maxPixels {
		return fail(ReasonDimensions, fmt.Errorf("%d×%d", w, h))
	}
	return nil
}

// fit returns the size of a w×h picture within edge, never larger than it is.
func fit(w, h, edge int) (int, int) {
	longer := max(w, h)
	if longer <= edge {
		return w, h
	}
	scale := func(n int) int { return max(1, (n*edge+longer/2)/longer) }
	return scale(w), scale(h)
}

// sharpEdge is up to which edge, in pixels, a picture is scaled by the sharper
// kernel; a larger one by the one that takes half the time.
const sharpEdge = 256

// scale draws m into a w×h picture. Only its pixels are read: no colour
// profile, orientation or other metadata has a say.
func scale(m image.Image, w, h int) *image.NRGBA {
	to := image.NewNRGBA(image.Rect(0, 0, w, h))
	if m.Bounds().Size() == to.Bounds().Size() {
		draw.Draw(to, to.Bounds(), m, m.Bounds().Min, draw.Src)
		return to
	}
	// The kernel works on premultiplied colours, so that what is transparent
	// lends its neighbours no colour.
	mid := image.NewRGBA(to.Bounds())
	kernel := draw.CatmullRom
	if size := m.Bounds().Size(); size.X > sharpEdge || size.Y > sharpEdge {
		kernel = draw.BiLinear
	}
	kernel.Scale(mid, mid.Bounds(), m, m.Bounds(), draw.Src, nil)
	draw.Draw(to, to.Bounds(), mid, image.Point{}, draw.Src)
	return to
}
