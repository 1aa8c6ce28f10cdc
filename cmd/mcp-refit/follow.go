package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A following has files loaded again when they have changed.
type following struct {
	changed func() bool     // whether they are others than those that were last read
	reload  func()          // reads them
	trouble func(err error) // told that changes may have been missed
}

// settle is how long after a change the files are read: editors and Kubernetes
// write in several steps. What is half written even then has a fault, and is
// read again after the next step.
const settle = 100 * time.Millisecond

// watchFiles watches the files' directories, not the files: editors put a new
// file in the place of the old, and in a ConfigMap's or Secret's volume it is a
// symlink to a symlink whose swap touches neither.
func watchFiles(files ...string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := w.Add(filepath.Dir(file)); err != nil {
			w.Close()
			return nil, err
		}
	}
	return w, nil
}

// run reloads when something was changed in the watched directories, and on
// each value of hangup, until ctx ends. It closes the watcher, which may be nil.
func (f following) run(ctx context.Context, w *fsnotify.Watcher, hangup <-chan os.Signal) {
	var events chan fsnotify.Event
	var errs chan error
	if w != nil {
		defer w.Close()
		events, errs = w.Events, w.Errors
	}
	timer := time.NewTimer(settle) // for what has changed since it was read
	defer timer.Stop()
	waiting := true
	look := func() {
		// Not put off by further events: another file of the directory, such as
		// a log, may be written all the time.
		if !waiting {
			waiting = true
			timer.Reset(settle)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			f.reload()
		case <-events:
			look()
		case err := <-errs: // events may have been lost
			f.trouble(err)
			look()
		case <-timer.C:
			waiting = false
			if f.changed() {
				f.reload()
			}
		}
	}
}

// An identity tells one state of a file from another.
type identity struct {
	real     string // where the symlinks lead
	size     int64
	modified time.Time
	there    bool
}

func identityOf(file string) identity {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return identity{}
	}
	info, err := os.Stat(real)
	if err != nil {
		return identity{}
	}
	return identity{real, info.Size(), info.ModTime(), true}
}
