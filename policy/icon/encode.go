package icon

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"sync"
)

// encoderBuffers keeps encoders' buffers, most of a megabyte each, between
// pictures.
type encoderBuffers struct{ pool sync.Pool }

func (b *encoderBuffers) Get() *png.EncoderBuffer {
	buffer, _ := b.pool.Get().(*png.EncoderBuffer) // nil if there is none, which the encoder expects
	return buffer
}

func (b *encoderBuffers) Put(buffer *png.EncoderBuffer) { b.pool.Put(buffer) }

var encoder = png.Encoder{CompressionLevel: png.BestCompression, BufferPool: new(encoderBuffers)}

// encodePNG encodes m without metadata, by palette where that is smaller.
func encodePNG(m *image.NRGBA) ([]byte, error) {
	var full bytes.Buffer
	if err := encoder.Encode(&full, m); err != nil {
		return nil, err
	}
	p := palettize(m)
	if p == nil {
		return full.Bytes(), nil
	}
	var indexed bytes.Buffer
	if err := encoder.Encode(&indexed, p); err != nil {
		return nil, err
	}
	if indexed.Len() < full.Len() {
		return indexed.Bytes(), nil
	}
	return full.Bytes(), nil
}

// palettize returns m with a palette of its own colours, or nil if it has more
// than 256. All fully transparent pixels count as one colour.
func palettize(m *image.NRGBA) *image.Paletted {
	index := make(map[color.NRGBA]uint8, 256)
	out := image.NewPaletted(m.Bounds(), nil)
	for i := 0; i+4 <= len(m.Pix); i += 4 {
		c := color.NRGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3]}
		if c.A == 0 {
			c = color.NRGBA{}
		}
		n, ok := index[c]
		if !ok {
			if len(index) == 256 {
				return nil
			}
			n = uint8(len(index))
			index[c] = n
			out.Palette = append(out.Palette, c)
		}
		out.Pix[i/4] = n
	}
	return out
}
