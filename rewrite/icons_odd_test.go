package rewrite

import (
	"slices"
	"testing"
)

func TestIconOdd(t *testing.T) {
	const (
		draft = "sizes is one string, the form of SEP-973's first draft; clients of 2025-11-25 fail on it"
		sizes = "sizes is no array of strings; clients of 2025-11-25 fail on it"
		theme = "theme is neither light nor dark; clients of 2025-11-25 fail on it"
		mime  = "mimeType is no string; clients fail on it"
	)
	for _, test := range []struct {
		icon string
		want []string
	}{
		{`{"src":"a"}`, nil},
		{`{"src":"a","sizes":["any"],"theme":"dark","mimeType":"image/png"}`, nil},
		{`{"src":"a","sizes":"48x48"}`, []string{draft}},
		{`{"src":"a","sizes":null}`, []string{sizes}},
		{`{"src":"a","sizes":[48]}`, []string{sizes}},
		{`{"src":"a","theme":"blue"}`, []string{theme}},
		{`{"src":"a","theme":null,"mimeType":null,"sizes":"1x1"}`, []string{draft, theme, mime}},
		{`7`, nil},
	} {
		raw := []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"icons":[` + test.icon + `]}]}}`)
		env, err := Scan(raw)
		if err != nil {
			t.Fatal(err)
		}
		sets, err := Icons(raw, env, Place{ToClient: true, Method: "tools/list"})
		if err != nil {
			t.Fatal(err)
		}
		if got := sets[0].Icons[0].Odd(raw); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.icon, got, test.want)
		}
	}
}
