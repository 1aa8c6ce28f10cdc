package rewrite_test

import (
	"os"
	"path/filepath"
	"testing"
)

// interop is where the peers are installed. A test that can't run one skips,
// and fails where they are meant to be there.
func interop(t *testing.T, needs ...string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "interop"))
	for _, need := range needs {
		if err == nil {
			_, err = os.Stat(filepath.Join(dir, need))
		}
	}
	if err != nil {
		if os.Getenv("MCP_REFIT_INTEROP") != "" {
			t.Fatalf("the peers are not installed: %v", err)
		}
		t.Skipf("the peers are not installed (testdata/interop/install): %v", err)
	}
	return dir
}
