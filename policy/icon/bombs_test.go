package icon

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// memory returns the live heap and the resident set of this process in bytes,
// after all garbage has been returned to the system.
func memory(t *testing.T) (heap, resident int64) {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), residentSet(t)
}

// residentSet returns the resident set of this process in bytes, on Linux
// (proc_pid_status(5), VmRSS); elsewhere it is 0.
func residentSet(t *testing.T) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmRSS:" && fields[2] == "kB" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS in /proc/self/status")
	return 0
}

// TestBombs: a thousand hostile images leave the proxy as it was, and a good
// one passes among them.
func TestBombs(t *testing.T) {
	f := &Fetcher{Worker: testWorker(t), CacheSize: -1}
	t.Cleanup(func() { f.Close() })
	bombs := []string{
		dataURI("image/png", pngHeader(65535, 65535)),
		dataURI("image/png", pngHeader(2048, 2048)),
		dataURI("image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1e300 1"/>`)),
		dataURI("image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" stroke="red" stroke-dasharray=".001"><path d="M0 0h1e6"/></svg>`)),
		dataURI("image/svg+xml", []byte(strings.Repeat("<g>", 20_000))),
		dataURI("image/jpeg", append([]byte("\xff\xd8\xff"), bytes.Repeat([]byte{0xff, 0xda}, 20_000)...)),
		dataURI("image/gif", []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00")),
	}
	const (
		maxHeapGrowth     = 4 << 20  // in bytes, of what is live
		maxResidentGrowth = 64 << 20 // in bytes, the garbage of some decodes included
	)
	heap, resident := memory(t)
	largest := resident
	for i := range 1000 {
		if _, err := f.Decode(t.Context(), bombs[i%len(bombs)], ""); ReasonOf(err) == "" || ReasonOf(err) == ReasonWorker {
			t.Fatalf("%.60s: %v", bombs[i%len(bombs)], err)
		}
		if i%100 == 0 {
			_, err := f.Decode(t.Context(), dataURI("image/png", testPNG(t, 8, 8)), "")
			wantReason(t, err, "")
			largest = max(largest, residentSet(t))
		}
	}
	heapAfter, residentAfter := memory(t)
	largest = max(largest, residentAfter)
	t.Logf("heap %d, then %d bytes; resident %d, at most %d, then %d bytes", heap, heapAfter, resident, largest, residentAfter)
	if heapAfter-heap > maxHeapGrowth {
		t.Errorf("the heap grew by %d bytes", heapAfter-heap)
	}
	if largest-resident > maxResidentGrowth {
		t.Errorf("the resident set grew by %d bytes", largest-resident)
	}
}
