package rewrite

import (
	"bytes"
	"encoding/json"
)

// quote returns s as a JSON string, without the escapes for HTML.
func quote(s string) string { return string(Quote(s)) }

// Quote returns s as a JSON string, without the escapes for HTML.
func Quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
