package icon

import (
	"bytes"
	"image"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the test binary its own worker, a good one or a bad one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], "icon-worker") {
		os.Exit(testWorkers[os.Args[1]]())
	}
	goleak.VerifyTestMain(m)
}

// testWorkers are what the test binary can be.
var testWorkers = map[string]func() int{
	"icon-worker": func() int { return RunWorker(os.Stdin, os.Stdout) },
	// Answers nothing.
	"icon-worker-hang": func() int { _, _ = io.Copy(io.Discard, os.Stdin); return 0 },
	// Ends at once.
	"icon-worker-exit": func() int { return 1 },
	// Answers with what is no frame.
	"icon-worker-garbage": func() int { _, _ = os.Stdout.WriteString("panic: out of memory\n\ngoroutine 1"); return 2 },
	// Announces a frame and ends.
	"icon-worker-half": func() int { _, _ = os.Stdout.Write([]byte{0, 0, 1, 0, 0}); return 0 },
	// Takes one job and then memory, under the limits that the system has.
	"icon-worker-hog": func() int {
		request := firstRequest()
		confine(request.Memory)
		for hoard := [][]byte{}; ; {
			hoard = append(hoard, bytes.Repeat([]byte{1}, 1<<20))
			if len(hoard) > 4096 {
				return 0
			}
		}
	},
	// The same, where only the watchdog is there.
	"icon-worker-watched": func() int {
		request := firstRequest()
		defer watchMemory(memoryInUse(), request.Memory)()
		for hoard := [][]byte{}; len(hoard) < 4096; time.Sleep(watchInterval / 5) {
			hoard = append(hoard, bytes.Repeat([]byte{1}, 1<<20))
		}
		return 0
	},
	// Takes one job and then CPU.
	"icon-worker-spin": func() int {
		catchCPU()
		limitCPU(firstRequest().CPU)
		for i := 0; ; i++ {
			if i < 0 {
				return 0
			}
		}
	},
	// Answers with a PNG that is not of the size it says.
	"icon-worker-liar": func() int {
		firstRequest()
		var b bytes.Buffer
		_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 16, 16)))
		_ = writeFrame(os.Stdout, responseHeader{Width: 8, Height: 8}, b.Bytes())
		return 0
	},
	// Answers with a PNG that is larger than was asked for.
	"icon-worker-large": func() int {
		firstRequest()
		var b bytes.Buffer
		_ = png.Encode(&b, image.NewNRGBA(image.Rect(0, 0, 200, 200)))
		_ = writeFrame(os.Stdout, responseHeader{Width: 200, Height: 200}, b.Bytes())
		return 0
	},
	// Answers with markup for a PNG.
	"icon-worker-markup": func() int {
		firstRequest()
		_ = writeFrame(os.Stdout, responseHeader{Width: 8, Height: 8}, []byte("<script>alert(1)</script>"))
		return 0
	},
	// Answers with a status that there is not.
	"icon-worker-status": func() int {
		firstRequest()
		_ = writeFrame(os.Stdout, responseHeader{Status: 200}, nil)
		return 0
	},
	// Answers with what it is: its environment and whether it can open a file.
	"icon-worker-confined": func() int {
		request := firstRequest()
		confine(request.Memory)
		_, err := os.Open(os.Args[0])
		if len(os.Environ()) > 0 || err == nil {
			return 1
		}
		_ = writeFrame(os.Stdout, responseHeader{Status: workerStatus(ReasonBudget)}, nil)
		return 0
	},
}

func firstRequest() requestHeader {
	var request requestHeader
	_, _ = readFrame(os.Stdin, &request, maxFrame)
	return request
}

// testWorker is the command of a worker process.
func testWorker(t testing.TB) []string { return namedWorker(t, "icon-worker") }

func namedWorker(t testing.TB, name string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, name}
}
