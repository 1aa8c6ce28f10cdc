package main

import "os"

// reopenSignals never has a value: there is no SIGUSR1 here.
func reopenSignals() (<-chan os.Signal, func()) { return nil, func() {} }
