package icon

import (
	"bytes"
	"mime"
	"strings"
)

// A format is one of the image formats that are decoded.
type format uint8

const (
	formatNone format = iota
	formatPNG
	formatJPEG
	formatGIF
	formatWebP
	formatSVG
)

var formatNames = [...]string{"none", "png", "jpeg", "gif", "webp", "svg"}

func (f format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return "invalid"
}

// sniff tells the format by the first bytes alone. An SVG has no magic, so
// whatever starts as markup is left to the SVG reader to judge.
func sniff(b []byte) format {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return formatPNG
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return formatJPEG
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return formatGIF
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return formatWebP
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("<")) {
		return formatSVG
	}
	return formatNone
}

// mediaTypes are the media types that declare a format. image/jpg is no
// registered type, but a common spelling that the MCP specification names.
var mediaTypes = map[string]format{
	"image/png":     formatPNG,
	"image/jpeg":    formatJPEG,
	"image/jpg":     formatJPEG,
	"image/gif":     formatGIF,
	"image/webp":    formatWebP,
	"image/svg+xml": formatSVG,
}

// declaredFormat reads a media type with or without parameters. An empty one
// declares nothing (formatNone, true); false means a type that is no allowed
// image's, or no media type at all.
func declaredFormat(mediaType string) (format, bool) {
	if mediaType == "" {
		return formatNone, true
	}
	if f, ok := mediaTypes[mediaType]; ok { // as nearly all are written
		return f, true
	}
	name, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return formatNone, false
	}
	f, ok := mediaTypes[name]
	return f, ok
}

// contentFormat is declaredFormat for a response's Content-Type. The two
// spellings of "some bytes" that object stores use declare nothing.
func contentFormat(values []string) (format, bool) {
	switch len(values) {
	case 0:
		return formatNone, true
	case 1:
	default:
		return formatNone, false
	}
	if v := strings.ToLower(strings.TrimSpace(values[0])); v == "application/octet-stream" || v == "binary/octet-stream" {
		return formatNone, true
	} else if v == "" {
		return formatNone, false
	}
	return declaredFormat(values[0])
}

// labelAgrees says whether an icon's mimeType may stand over bytes of format
// f. Sites that serve uploads label every picture image/png, and the pixels
// that go out are re-encoded anyway, so one raster label may stand over
// another raster format. Markup labelled as pixels, or pixels as markup, may
// not.
func labelAgrees(label, f format) bool {
	return label == formatNone || label == f || (label != formatSVG && f != formatSVG)
}
