package proxy

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
)

// Of the goroutines that many calls at once needed, some wait for the next
// message and the others are gone.
func TestRunURLIdlers(t *testing.T) {
	const calls = 10 * maxIdlers
	var release chan struct{}
	server := legacyServer("", func(w http.ResponseWriter, r *http.Request) {
		if noStream(w, r) {
			return
		}
		body := bodyOf(r)
		<-release
		writeJSON(w, `{"jsonrpc":"2.0","id":`+idOf(body)+`,"result":{}}`)
	})
	runBridge(t, &Proxy{}, server, func(t *testing.T, b *testBridge) {
		release = make(chan struct{})
		begin(b)
		synctest.Wait()
		before := runtime.NumGoroutine()
		for id := range calls {
			b.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t"}}`, id+10))
		}
		synctest.Wait()
		close(release)
		for range calls {
			b.next()
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more < 1 || more > maxIdlers {
			t.Errorf("%d goroutines more than before wait, want 1 to %d", more, maxIdlers)
		}
	})
}
