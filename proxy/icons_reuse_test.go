package proxy

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
)

// The memory that one list leaves to the next holds nothing of it: lists of all
// sizes, handled by many sessions at once, come out as each does by itself.
func TestIconsShareNoMemory(t *testing.T) {
	site := newIconSite(t, servePNG)
	inForce := iconSession(t, site, func(c *policy.Config) {
		c.Icons.Rules = append(c.Icons.Rules, policy.IconRule{Host: "kept.example", Action: policy.Keep})
		c.Icons.Budget.PerMessage = -1
	}).proxy
	inForce.Icons.HostRate, inForce.Icons.Rate = -1, -1
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"name":"t%d","icons":[{"src":"https://kept.example/%d-%d.png","theme":"odd"},{"src":"https://gone.example/%d.png"},{"src":"https://%s/%d.png","mimeType":"image/jpeg"}],"Icons":%d}`,
				i, n, i, i, site.host, i%5, i)
		}
		return `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + b.String()[1:] + `]}}`
	}
	sizes := []int{1, 700, 3, 40, 2, 1500, 7, 1}
	lists, want := make([]string, len(sizes)), make([]string, len(sizes))
	alone := func() *session {
		return &session{proxy: inForce, known: true, revision: revisionTitled}
	}
	for i, n := range sizes {
		lists[i] = list(n)
		want[i], _ = pass(t, alone(), ToClient, lists[i])
		for k := range n {
			if kept := fmt.Sprintf(`{"src":"https://kept.example/%d-%d.png"}`, n, k); !strings.Contains(want[i], kept) {
				t.Fatalf("%s is not there", kept)
			}
		}
		if strings.Contains(want[i], "gone.example") || strings.Contains(want[i], `"Icons"`) || strings.Count(want[i], `"image/png"`) != n {
			t.Fatalf("a list of %d: %.500s", n, want[i])
		}
	}
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			s := alone()
			for turn := range 2 * len(sizes) {
				i := (worker + turn*(1+worker%3)) % len(sizes)
				out, err := s.handle(ToClient, []byte(lists[i]))
				if err != nil || string(out.forward) != want[i] {
					t.Errorf("a list of %d came out otherwise: %v, %.300s", sizes[i], err, out.forward)
					return
				}
			}
		})
	}
	running.Wait()
}
