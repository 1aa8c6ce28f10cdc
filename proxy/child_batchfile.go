package proxy

import (
	"fmt"
	"path/filepath"
	"strings"
)

// isBatchFile reports whether Windows runs path by cmd.exe.
func isBatchFile(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".bat", ".cmd":
		return true
	}
	return false
}

// batchCommandLine is the command line that has cmd.exe run the batch file
// script with args, each of which arrives as it is.
//
// CreateProcess and os/exec quote for programs that split their command line
// as the C library does. cmd.exe does not: it would take an & or | in an
// argument for its own and expand %NAME% even between quotes (CVE-2024-24576
// in other languages; os/exec leaves it to its caller, see exec.Command). So
// every argument is quoted. A quote in it is doubled: cmd.exe, which reads the
// line once more where the batch file says %*, stays inside the quotes, and
// the C library takes the two for one (\" would do for the latter alone).
// %cd:~,% stands behind each percent sign: an empty substring, so that what
// follows can't be the name of a variable; /e:on is for that, and /v:off keeps
// ! from being one more such sign. There is no way to quote a line break.
func batchCommandLine(cmdExe, script string, args []string) (string, error) {
	var line strings.Builder
	fmt.Fprintf(&line, `"%s" /d /e:on /v:off /s /c "`, cmdExe)
	if strings.ContainsRune(script, '"') {
		return "", fmt.Errorf("%q can't be a file name", script)
	}
	for i, arg := range append([]string{script}, args...) {
		if strings.ContainsAny(arg, "\x00\r\n") {
			return "", fmt.Errorf("argument %q has a line break, which a batch file can't be given", arg)
		}
		if i > 0 {
			line.WriteByte(' ')
		}
		quoteForBatch(&line, arg)
	}
	line.WriteByte('"')
	return line.String(), nil
}

func quoteForBatch(line *strings.Builder, arg string) {
	line.WriteByte('"')
	backslashes := 0
	for i := range len(arg) {
		switch arg[i] {
		case '\\':
			backslashes++
		case '"':
			// Backslashes before a quote are escapes to the program that
			// the batch file hands its arguments to.
			line.WriteString(strings.Repeat(`\`, backslashes))
			line.WriteByte('"')
			backslashes = 0
		case '%':
			line.WriteString(`%%cd:~,`)
			backslashes = 0
		default:
			backslashes = 0
		}
		line.WriteByte(arg[i])
	}
	line.WriteString(strings.Repeat(`\`, backslashes))
	line.WriteByte('"')
}
