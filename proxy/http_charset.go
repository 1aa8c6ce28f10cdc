package proxy

import (
	"mime"
	"net/http"
	"strings"
)

// readAsUTF8 takes care that a body which was judged as UTF-8, which JSON (RFC
// 8259, section 8.1) and event streams (WHATWG HTML, section 9.2.3) are, is read
// as that by the other side, too. Some go by the charset of the Content-Type:
// body-parser, with which TypeScript servers read what they are sent, knows UTF-7,
// httpx and .NET decode what they get by it, and in most of these charsets one
// text can be two messages.
func readAsUTF8(h http.Header) {
	values := h["Content-Type"]
	if len(values) == 0 {
		return
	}
	if len(values) == 1 && !strings.Contains(strings.ToLower(values[0]), "charset") {
		return
	}
	_, params, err := mime.ParseMediaType(values[0])
	switch charset := strings.ToLower(params["charset"]); {
	case err != nil, charset != "" && charset != "utf-8" && charset != "utf8":
		h["Content-Type"] = []string{mediaType(h) + "; charset=utf-8"}
	case len(values) > 1: // the one that we have gone by
		h["Content-Type"] = values[:1]
	}
}
