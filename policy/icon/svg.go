package icon

import "image"

func decodeSVG(body []byte) (func(edge int) (*image.NRGBA, error), error) {
	return nil, fail(ReasonSVG, nil)
}
