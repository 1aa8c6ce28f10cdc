//go:build unix

package icon

import (
	"os"
	"syscall"
)

// workerAttr puts the worker into a process group of its own, so that a
// terminal's interrupt reaches the proxy alone; the worker ends with its pipe.
func workerAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// limitProcess has nothing to do: the worker limits itself.
func limitProcess(*os.Process, uint64) (release func()) { return func() {} }
