//go:build unix

package main

import (
	"math"
	"syscall"
)

// descriptors is how many file descriptors this process may have open. The Go
// runtime has raised the soft limit to the hard one.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt))
}
