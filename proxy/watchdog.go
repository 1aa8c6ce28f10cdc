package proxy

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// watchdogKillAfter is the watchdog's time between SIGTERM and SIGKILL.
const watchdogKillAfter = time.Second

// RunWatchdog is the body of the process that [Child.Watchdog] names, and
// returns its exit code. It waits on in, the read end of a pipe whose write
// end is held by the parent alone. A byte says that all has ended well, and
// nothing is done. The end of file without one says that the parent is gone,
// however it went, and the process group that args name is ended: SIGTERM,
// and after a second SIGKILL.
//
// main should look for the watchdog's arguments and call this before it does
// anything else, so that the process starts fast and stays small.
func RunWatchdog(in io.Reader, args []string) int {
	group, err := watchedGroup(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ignoreSignals()
	if n, _ := io.ReadFull(in, make([]byte, 1)); n > 0 {
		return 0
	}
	if group.end(watchdogKillAfter) != nil {
		return 1
	}
	return 0
}

// watchedGroup reads the watchdog's arguments: the number of a process group.
// 0 and 1 would mean our own group, and every process there is.
func watchedGroup(args []string) (*processGroup, error) {
	if len(args) == 1 {
		if id, err := strconv.Atoi(args[0]); err == nil && id > 1 && !ownGroup(id) {
			return &processGroup{id: id}, nil
		}
	}
	return nil, fmt.Errorf("the watchdog takes the number of a process group; it is started by the proxy itself, not by hand")
}
