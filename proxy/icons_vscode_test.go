package proxy

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// vsCodeShows is the rule by which Visual Studio Code shows an icon of a server
// on stdio: a raster picture by its mimeType, and no URL over the network,
// which it takes from a server over HTTP alone.
func vsCodeShows(src, mimeType string) bool {
	u, err := url.Parse(src)
	return err == nil && u.Scheme == "data" &&
		slices.Contains([]string{"image/webp", "image/png", "image/jpeg", "image/jpg", "image/gif"}, strings.ToLower(mimeType))
}

// What that client ignores as the server sends it, it shows as it is inlined.
func TestInlinedIconsPassVSCodeRule(t *testing.T) {
	const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8H0z"/></svg>`
	site := newIconSite(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".png") {
			servePNG(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = w.Write([]byte(drawing))
	})
	type icon struct {
		Src      string `json:"src"`
		MimeType string `json:"mimeType"`
	}
	for name, sent := range map[string]icon{
		"png over https":     {"https://" + site.host + "/a.png", "image/png"},
		"svg over https":     {"https://" + site.host + "/a.svg", "image/svg+xml"},
		"svg as data":        {"data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(drawing)), "image/svg+xml"},
		"without a mimeType": {"https://" + site.host + "/b.png", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if vsCodeShows(sent.Src, sent.MimeType) {
				t.Fatal("it is shown as it was sent")
			}
			raw, err := json.Marshal(map[string]any{"tools": []any{map[string]any{"name": "t", "icons": []icon{sent}}}})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := resultOf(t, iconSession(t, site, nil), "tools/list", string(raw))
			var message struct {
				Result struct{ Tools []struct{ Icons []icon } }
			}
			if err := json.Unmarshal([]byte(got), &message); err != nil || len(message.Result.Tools) != 1 || len(message.Result.Tools[0].Icons) != 1 {
				t.Fatalf("got %.300s, %v", got, err)
			}
			if i := message.Result.Tools[0].Icons[0]; !vsCodeShows(i.Src, i.MimeType) {
				t.Errorf("%.100s of type %q is not shown", i.Src, i.MimeType)
			}
		})
	}
}
