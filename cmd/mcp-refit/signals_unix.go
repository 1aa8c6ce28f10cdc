//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// reopenSignals has a value whenever the audit file is to be opened anew.
func reopenSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	return c, func() { signal.Stop(c) }
}
