package proxy

import (
	"testing"

	"go.uber.org/goleak"
)

// noLeak fails if a goroutine is left when all that the test starts from here
// on has been ended.
func noLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}
