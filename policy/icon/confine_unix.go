//go:build unix

package icon

import (
	"math"
	"os"
	"os/signal"
	"syscall"
)

// catchCPU ends the process on SIGXCPU, which the Go runtime ignores by itself.
func catchCPU() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGXCPU)
	go func() {
		<-c
		os.Exit(workerCPU)
	}()
}

// limitCPU lets this process use about seconds more of CPU time; then it gets
// SIGXCPU. Only the soft limit moves, so that each job can raise it. 0 is no
// limit.
func limitCPU(seconds uint32) {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CPU, &limit) != nil {
		return
	}
	soft := uint64(used.Utime.Sec) + uint64(used.Stime.Sec) + 1 + uint64(seconds)
	if seconds == 0 {
		soft = math.MaxInt64
	}
	limit.Cur = min(limit.Max, soft)
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &limit) // the parent's clock still holds
}

func setLimit(resource int, value uint64) {
	_ = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}) // best effort, see confine
}
