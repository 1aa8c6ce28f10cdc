package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// New messages wait for each other, but nothing that lets them go waits for them.
func TestInflightOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f inflight
		f.limit(100)
		take := func(ctx context.Context, r *room, n int64) <-chan bool {
			done := make(chan bool, 1)
			go func() { done <- f.take(ctx, r, n) }()
			synctest.Wait()
			return done
		}
		waits := func(what string, done <-chan bool) {
			t.Helper()
			synctest.Wait()
			if len(done) > 0 {
				t.Errorf("%s does not wait", what)
			}
		}
		took := func(what string, done <-chan bool, want bool) {
			t.Helper()
			synctest.Wait()
			if len(done) == 0 || <-done != want {
				t.Errorf("%s: want %v at once", what, want)
			}
		}
		var held, large, small room
		answer := room{answers: true}
		ctx, cancel := context.WithCancel(t.Context())
		took("the first", take(ctx, &held, 60), true)
		largeTook := take(ctx, &large, 50)
		smallTook := take(t.Context(), &small, 10)
		waits("one that does not fit", largeTook)
		waits("one behind it", smallTook)
		took("an answer", take(t.Context(), &answer, 20), true)
		took("the rest of the first", take(t.Context(), &held, 20), true)

		full := room{answers: true}
		fullTook := take(t.Context(), &full, 30)
		answer.give()
		waits("an answer that does not fit", fullTook)
		cancel()
		took("one that was given up", largeTook, false)
		waits("one behind it, and behind the answer", smallTook)
		held.give()
		took("the answer", fullTook, true)
		took("the last", smallTook, true)

		var late room
		start := time.Now()
		lateTook := take(t.Context(), &late, 100)
		time.Sleep(InflightWait)
		took("one that waited too long", lateTook, false)
		if waited := time.Since(start); waited != InflightWait {
			t.Errorf("waited %v", waited)
		}
		lateTook = take(t.Context(), &late, 100)
		f.limit(0)
		took("without a bound", lateTook, true)
		for _, r := range []*room{&full, &small, &late} {
			r.give()
		}
		if f.used != 0 || len(f.waiting[goesFirst])+len(f.waiting[isNew]) > 0 {
			t.Errorf("%d bytes are in use, and %d wait", f.used, len(f.waiting[0])+len(f.waiting[1]))
		}
	})
}

// What can never fit is not waited for.
func TestInflightLargerThanTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f inflight
		f.limit(100)
		var r room
		start := time.Now()
		if !f.take(t.Context(), &r, 60) || f.take(t.Context(), &r, 41) || !f.take(t.Context(), &r, 40) || time.Since(start) != 0 {
			t.Errorf("took %d bytes after %v", r.size, time.Since(start))
		}
		var other room
		if f.take(t.Context(), &other, 1) || time.Since(start) != InflightWait {
			t.Errorf("took what was not there, after %v", time.Since(start))
		}
		r.give()
		if !f.take(t.Context(), &other, 100) {
			t.Error("what was given back is not there")
		}
	})
}
