package icon

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// confine limits this process for the rest of its life: its memory to memory
// bytes above what it holds now, no new descriptors (so neither files nor
// sockets), no file growth, no core dump. RLIMIT_DATA it is, since RLIMIT_AS
// counts the address space that the Go runtime reserves at its start.
// What cannot be set is left: the parent's clock and the watchdog still hold.
func confine(memory uint64) {
	setLimit(syscall.RLIMIT_CORE, 0)
	setLimit(syscall.RLIMIT_FSIZE, 0)
	if held, ok := dataSize(); ok && memory > 0 {
		setLimit(syscall.RLIMIT_DATA, held+memory)
	}
	setLimit(syscall.RLIMIT_NOFILE, 0)
}

// dataSize returns the bytes that RLIMIT_DATA counts: the sixth field of
// /proc/self/statm, in pages.
func dataSize() (uint64, bool) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(statm)
	if len(fields) < 6 {
		return 0, false
	}
	pages, err := strconv.ParseUint(string(fields[5]), 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}
