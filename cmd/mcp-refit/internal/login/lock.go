package login

import (
	"context"
	"sync"
)

// A waitLock is a lock that a context can end the wait for.
type waitLock struct {
	once sync.Once
	held chan struct{}
}

func (l *waitLock) lock(ctx context.Context) error {
	l.once.Do(func() { l.held = make(chan struct{}, 1) })
	select {
	case l.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *waitLock) unlock() { <-l.held }
