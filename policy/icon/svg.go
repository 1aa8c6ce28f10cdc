package icon

import (
	"image"

	"github.com/mcp-refit/mcp-refit/policy/icon/internal/svg"
)

// decodeSVG rebuilds an SVG and returns how to draw it within an edge.
func decodeSVG(body []byte) (drawer, error) {
	document, err := svg.Parse(body)
	if err != nil {
		return nil, fail(ReasonSVG, err)
	}
	return func(edge int) (*image.NRGBA, error) {
		m, err := document.Draw(edge)
		if err != nil {
			return nil, fail(ReasonSVG, err)
		}
		return m, nil
	}, nil
}
