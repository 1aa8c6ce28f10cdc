package icon

import (
	"encoding/base64"
	"strings"
)

// maxDataURIPrefix bounds what stands before a data: URI's bytes: the longest
// allowed type with a charset.
const maxDataURIPrefix = len("data:image/svg+xml;charset=utf-8;base64,")

// parseDataURI reads a data: URI (RFC 2397) of an allowed type, in base64
// (RFC 4648 section 4: padded, no other character, no stray bits), and decodes
// it. Its length is judged first. What a lenient reader would repair, such as
// white space, percent signs and the URL-safe alphabet, is refused.
func parseDataURI(uri string, maxBytes int) ([]byte, format, error) {
	if len(uri) > maxDataURIPrefix+base64.StdEncoding.EncodedLen(maxBytes) {
		return nil, formatNone, failf(ReasonDataURI, "%d bytes", len(uri))
	}
	head, encoded, ok := strings.Cut(uri, ",")
	if !ok || len(head) > maxDataURIPrefix {
		return nil, formatNone, failf(ReasonDataURI, "no head")
	}
	head, ok = strings.CutPrefix(strings.ToLower(head), "data:")
	if !ok {
		return nil, formatNone, failf(ReasonDataURI, "not data:")
	}
	head, ok = strings.CutSuffix(head, ";base64")
	if !ok {
		return nil, formatNone, failf(ReasonDataURI, "not base64")
	}
	declared := mediaTypes[strings.TrimSuffix(head, ";charset=utf-8")]
	if declared == formatNone {
		return nil, formatNone, failf(ReasonDataURI, "type %q", head)
	}
	if strings.ContainsAny(encoded, "\r\n") { // the decoder would skip them
		return nil, formatNone, failf(ReasonDataURI, "line break")
	}
	body, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, formatNone, fail(ReasonDataURI, err)
	}
	if len(body) == 0 || len(body) > maxBytes {
		return nil, formatNone, failf(ReasonDataURI, "%d bytes", len(body))
	}
	return body, declared, nil
}
