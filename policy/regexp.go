package policy

import (
	"regexp"
	"sync"
)

// lazyRegexp compiles an expression when it is first used: the program starts
// once for each server and once more for each of its helpers, and most of
// those meet no text that any of these is for.
func lazyRegexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
