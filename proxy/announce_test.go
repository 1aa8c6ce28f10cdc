package proxy

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// A list whose icons never all fit into the cache has the client told again
// and again, but not for ever as fast as it asks; and never once the session
// has ended.
func TestAnnouncementsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(icon.Fetcher)
		arrived := f.BeginShrink(icon.Image{URI: "data:"}, 100) // small enough as it is
		failed := f.Begin("https://a.example.com/i", "")        // there is no worker
		var a announcements
		var told atomic.Int32
		tell := func() { told.Add(1) }

		a.add("n", []*icon.Pending{failed}, tell)
		synctest.Wait()
		if told.Load() != 0 {
			t.Errorf("told %d times of what has not come", told.Load())
		}
		for range 3 * announceBurst {
			a.add("n", []*icon.Pending{failed, arrived, arrived}, tell)
			synctest.Wait()
		}
		if told.Load() != announceBurst {
			t.Errorf("told %d times at once, want %d", told.Load(), announceBurst)
		}
		time.Sleep(announceEvery)
		synctest.Wait()
		if told.Load() != announceBurst+1 {
			t.Errorf("told %d times after a while, want %d", told.Load(), announceBurst+1)
		}
		a.add("other", []*icon.Pending{arrived}, tell)
		synctest.Wait()
		if told.Load() != announceBurst+2 {
			t.Error("another list waits for this one")
		}
		a.add("n", []*icon.Pending{arrived}, tell)
		a.end()
		time.Sleep(time.Hour)
		if told.Load() != announceBurst+2 {
			t.Error("told after the end")
		}
	})
}
