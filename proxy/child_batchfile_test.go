package proxy

import (
	"strings"
	"testing"
)

func TestBatchCommandLine(t *testing.T) {
	const head = `"C:\W\cmd.exe" /d /e:on /v:off /s /c ""C:\n p\npx.cmd"`
	for _, tc := range []struct {
		name string
		args []string
		want string // after head; empty: refused
		err  string
	}{
		{"no arguments", nil, `"`, ""},
		{"every argument is quoted", []string{"-y", "", "a b"}, ` "-y" "" "a b""`, ""},
		{"operators are inside the quotes", []string{"a&calc|b>c<d^e(f)"}, ` "a&calc|b>c<d^e(f)""`, ""},
		{"a quote does not end the quotes", []string{`x"&calc`}, ` "x""&calc""`, ""},
		{"backslashes before a quote", []string{`x\\"y`, `dir\`}, ` "x\\\\""y" "dir\\""`, ""},
		{"other backslashes", []string{`a\b\\c`}, ` "a\b\\c""`, ""},
		{"percent signs", []string{"%PATH%"}, ` "%%cd:~,%PATH%%cd:~,%""`, ""},
		{"exclamation marks", []string{"!x!"}, ` "!x!""`, ""},
		{"a line feed", []string{"a\nb"}, "", "line break"},
		{"a carriage return", []string{"a\rb"}, "", "line break"},
		{"a NUL", []string{"a\x00b"}, "", "line break"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := batchCommandLine(`C:\W\cmd.exe`, `C:\n p\npx.cmd`, tc.args)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %q, %v; want an error about a %s", got, err, tc.err)
				}
				return
			}
			if err != nil || got != head+tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, head+tc.want)
			}
		})
	}
	if _, err := batchCommandLine("cmd.exe", `a".cmd`, nil); err == nil {
		t.Error("a quote in the script's name was not refused")
	}
}

func TestIsBatchFile(t *testing.T) {
	for path, want := range map[string]bool{
		`C:\n\npx.cmd`: true, `x.BAT`: true, `npx`: false, `x.exe`: false, `x.cmd.exe`: false,
	} {
		if got := isBatchFile(path); got != want {
			t.Errorf("isBatchFile(%q) = %v", path, got)
		}
	}
}
