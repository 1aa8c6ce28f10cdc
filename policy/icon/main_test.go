package icon

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary its own worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "icon-worker" {
		os.Exit(RunWorker(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// testWorker is the command of a worker process.
func testWorker(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "icon-worker"}
}
