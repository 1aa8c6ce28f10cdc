package proxy

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-refit/mcp-refit/policy"
)

// While a list's bombs are being decoded the client's messages pass. The
// list's handling cannot end before they have: its one good icon is served
// only once the last of them is through, and is in the list that comes out.
func TestIconsBombsHoldNothingUp(t *testing.T) {
	const bombs, pings = 1000, 200
	asked, passed := make(chan struct{}), make(chan struct{})
	site := newIconSite(t, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-passed
		servePNG(w, r)
	})
	open := sync.OnceFunc(func() { close(passed) })
	t.Cleanup(open) // before the site waits for its handler
	s := iconSession(t, site, func(c *policy.Config) { c.Icons.Deadline = policy.Duration(30 * time.Second) })
	s.proxy.Icons.HeaderTimeout, s.proxy.Icons.TotalTimeout = -1, -1

	var list strings.Builder
	list.WriteString(`{"tools":[{"name":"good","icons":[{"src":"https://` + site.host + `/i"}]}`)
	for i := range bombs {
		fmt.Fprintf(&list, `,{"name":"bomb%d","icons":[{"src":"%s"}]}`, i, iconBomb(i))
	}
	list.WriteString(`]}`)

	pass(t, s, ToServer, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	listed := make(chan string, 1)
	go func() {
		out, err := s.handle(ToClient, []byte(`{"jsonrpc":"2.0","id":1,"result":`+list.String()+`}`))
		if err != nil {
			t.Error(err)
		}
		listed <- string(out.forward)
	}()
	<-asked
	through := 0
	for id := range pings {
		ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, id)
		if got, _ := pass(t, s, ToServer, ping); got != ping {
			t.Errorf("got %s", got)
		}
		select {
		case got := <-listed:
			t.Fatalf("the list came out after %d pings: %.200s", through, got)
		default:
			through++
		}
	}
	open()
	got := <-listed
	if n := strings.Count(got, `"icons":`); n != 1 || !strings.Contains(got, `{"name":"good","icons":[{"src":"data:image/png;base64,`) {
		t.Errorf("%d tools have icons: %.300s", n, got)
	}
	if n := strings.Count(got, `"name":"bomb`); n != bombs || through != pings {
		t.Errorf("%d tools and %d pings came through", n, through)
	}
}

// iconBomb is the i-th of the bombs, of which no two are the same: a line of a
// million dashes, and markup nested without end.
func iconBomb(i int) string {
	svg := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" stroke="red" stroke-dasharray=".001"><path d="M%d 0h1e6"/></svg>`, i)
	if i%2 == 1 {
		svg = fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d 9">`, 1+i) + strings.Repeat("<g>", 1000)
	}
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg))
}
