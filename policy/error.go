package policy

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a policy.
type Error struct {
	Source Source // where it is written; zero if it is in no file and no flag
	Path   string // of the key, "" if the text as a whole is meant
	Msg    string // what is wrong and, where it can be told, what was meant
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Source != (Source{}) {
		b.WriteString(e.Source.String())
		b.WriteString(": ")
	}
	if e.Path != "" && e.Source.Flag == "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Errors is all that is wrong with a policy, in the order of the file; it is
// never empty. Its text is that of the first, on one line.
type Errors []*Error

func (e Errors) Error() string {
	if n := len(e) - 1; n > 0 {
		return fmt.Sprintf("%v (and %d more)", e[0], n)
	}
	return e[0].Error()
}
