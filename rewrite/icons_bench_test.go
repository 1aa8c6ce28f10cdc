package rewrite

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkIcons(b *testing.B) {
	uri := Placement{URI: "data:image/png;base64," + strings.Repeat("A", 228), Width: 64, Height: 64}
	for _, n := range []int{10, 100, 1000, 10000} {
		raw := toolList(n, true)
		for name, place := range map[string][]Placement{"strip": {{}}, "inline": {uri}} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					env, err := Scan(raw)
					if err != nil {
						b.Fatal(err)
					}
					var e Edits
					sets, _ := Icons(raw, env, Place{ToClient: true, Method: "tools/list"})
					for i := range sets {
						sets[i].Edit(raw, &e, place, true)
					}
					e.Apply(raw)
				}
			})
		}
	}
	raw := toolList(1000, true)
	b.Run("scan/1000", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if _, err := Scan(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}
