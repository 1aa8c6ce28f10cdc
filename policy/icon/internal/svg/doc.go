// Package svg reads a small, harmless subset of SVG and draws it.
//
// [Parse] does not clean a document: it builds a new one from an allowlist of
// elements and attributes, each value read by the grammar of its type and
// written anew, and leaves out all the rest: scripts, handlers, links, style
// sheets, animation, foreign content, text, references to anything but
// gradients, clip paths and masks of the same document. What cannot be read
// without doubt is refused whole: a DOCTYPE, a processing instruction, another
// encoding than UTF-8, numbers and nesting without measure. [Document.Markup]
// writes the new document, of which Parse makes the same document again.
//
// [Document.Draw] draws it with rasterx, which flattens curves and makes
// outlines of strokes; the filling is done here, since rasterx's own scanner
// knows no even-odd rule. Drawing has a budget, because a document of a few
// bytes can ask for a lot of work.
package svg

import "errors"

// ErrRefused is what every error of this package is.
var ErrRefused = errors.New("svg: refused")

// The bounds of a document.
const (
	maxNumber   = 1e6    // magnitude of any number
	maxDepth    = 32     // nested elements
	maxElements = 4000   // in the rebuilt document
	maxTokens   = 50_000 // of XML, dropped ones included
	maxSegments = 60_000 // of all paths
	maxList     = 64     // numbers in a dash array, transforms in a list
	maxID       = 128    // bytes of an id
)
