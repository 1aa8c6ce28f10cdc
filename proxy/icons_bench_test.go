package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
	"github.com/mcp-refit/mcp-refit/rewrite"
)

// BenchmarkIcons is a list of tools with an icon each, stripped or inlined from
// the cache, beside what it costs to scan and to copy it.
func BenchmarkIcons(b *testing.B) {
	site := newIconSite(b, servePNG)
	for _, n := range []int{10, 100, 1000, 10000} {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, `,{"name":"tool_%d","title":"Tool number %d","description":"Does the thing number %d with some words around it, as real tools do.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"where"},"depth":{"type":"integer","minimum":0}},"required":["path"]},"icons":[{"src":"https://%s/%d.png","mimeType":"image/png","sizes":["48x48"]}]}`, i, i, i, site.host, i%100)
		}
		raw := []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + list.String()[1:] + `]}}`)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		through := func(s *session) func() {
			return func() {
				if _, err := s.handle(ToClient, raw); err != nil {
					b.Fatal(err)
				}
			}
		}
		run("scan", func() { _, _ = rewrite.Scan(raw) })
		run("copy", func() { _ = append([]byte(nil), raw...) })
		run("strip", through(iconSession(b, nil, nil)))
		inline := iconSession(b, site, func(c *policy.Config) {
			c.Icons.Budget.PerMessage = -1
		})
		inline.proxy.Icons.HostRate, inline.proxy.Icons.Rate = -1, -1
		var pending []*icon.Pending
		for i := range 100 {
			pending = append(pending, inline.proxy.Icons.Begin(fmt.Sprintf("https://%s/%d.png", site.host, i), "image/png"))
		}
		for _, p := range pending {
			<-p.Done()
			if _, err := p.Result(); err != nil {
				b.Fatal(err)
			}
		}
		run("inline", through(inline))
	}
}
