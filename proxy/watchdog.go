package proxy

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// watchdogKillAfter is the watchdog's time between SIGTERM and SIGKILL.
const watchdogKillAfter = time.Second

// RunWatchdog is the body of the process that [Child.Watchdog] names, and
// returns its exit code. It waits on in, the read end of a pipe whose write
// end is held by the parent alone. The first line is the number of the process
// group to watch, or empty if there will be none. A byte after it says that all
// has ended well, and nothing is done. The end of file without one says that
// the parent is gone, however it went, and the group is ended: SIGTERM, and
// after a second SIGKILL.
//
// main should look for the watchdog's argument and call this before it does
// anything else, so that the process starts fast and stays small.
func RunWatchdog(in io.Reader) int {
	ignoreSignals()
	r := bufio.NewReaderSize(in, 16) // bytes: a number and a line end
	line, err := r.ReadString('\n')
	if err != nil || line == "\n" {
		return 0
	}
	group, err := watchedGroup(strings.TrimSuffix(line, "\n"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if _, err := r.ReadByte(); err == nil {
		return 0
	}
	if group.end(watchdogKillAfter) != nil {
		return 1
	}
	return 0
}

// watchedGroup reads the number of a process group. 0 and 1 would mean our own
// group, and every process there is.
func watchedGroup(line string) (*processGroup, error) {
	if id, err := strconv.Atoi(line); err == nil && id > 1 && !ownGroup(id) {
		return &processGroup{id: id}, nil
	}
	return nil, fmt.Errorf("the watchdog takes the number of a process group; it is started by the proxy itself, not by hand")
}
