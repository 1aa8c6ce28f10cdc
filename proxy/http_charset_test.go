package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What was judged as UTF-8 is read as that, whatever it says that it is.
func TestHTTPCharset(t *testing.T) {
	for name, c := range map[string]struct {
		given []string // Content-Type
		want  []string // nil: the same
	}{
		"none":                  {[]string{"application/json"}, nil},
		"UTF-8":                 {[]string{`Application/JSON ;  Charset="UTF-8"; x=y`}, nil},
		"UTF-8, by its old nam": {[]string{"application/json;charset=utf8"}, nil},
		"UTF-7":                 {[]string{"application/json; charset=utf-7"}, []string{"application/json; charset=utf-8"}},
		"Shift_JIS":             {[]string{"application/vnd.x+json; charset=Shift_JIS; x=y"}, []string{"application/vnd.x+json; charset=utf-8"}},
		"UTF-16, extended":      {[]string{"application/json; charset*=utf-8''utf-16"}, []string{"application/json; charset=utf-8"}},
		"two of them":           {[]string{"application/json; charset=utf-8; charset=utf-7"}, []string{"application/json; charset=utf-8"}},
		"malformed":             {[]string{"application/json; charset = utf-7"}, []string{"application/json; charset=utf-8"}},
		"a second header":       {[]string{"application/json", "application/json; charset=utf-7"}, []string{"application/json"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == nil {
				c.want = c.given
			}
			var asked, registered []string
			f := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(b), `"tools/call"`) {
					registered = r.Header["Content-Type"]
				} else {
					asked = r.Header["Content-Type"]
				}
				for _, v := range c.given {
					if r.Method == http.MethodGet {
						v = strings.NewReplacer("application/json", typeEvents, "Application/JSON", typeEvents, "application/vnd.x+json", typeEvents).Replace(v)
					}
					w.Header().Add("Content-Type", v)
				}
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":3,"result":{}}`)
			})
			for _, body := range []string{callTool, `{"redirect_uris":[]}`} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/mcp", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header["Content-Type"] = c.given
				res, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if got := res.Header["Content-Type"]; body == callTool && !slices.Equal(got, c.want) {
					t.Errorf("an answer: %q, want %q", got, c.want)
				}
			}
			if !slices.Equal(asked, c.want) || !slices.Equal(registered, c.want) {
				t.Errorf("requests: %q and %q, want %q", asked, registered, c.want)
			}
			stream := f.do(t, http.MethodGet, "/mcp", "", headers{"Accept": typeEvents})
			got, want := stream.Header["Content-Type"], strings.NewReplacer("application/json", typeEvents, "Application/JSON", typeEvents, "application/vnd.x+json", typeEvents).Replace(c.want[0])
			if len(got) != 1 || got[0] != want {
				t.Errorf("a stream: %q, want %q", got, want)
			}
		})
	}
}
