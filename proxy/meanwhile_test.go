package proxy

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// meanwhile has another client call on and on, once its first call has been
// answered. The function that it returns ends that, and sees that each call was answered. How long they took is
// logged, and never judged: that is the machine's.
func meanwhile(t *testing.T, call func(id int) error) (end func()) {
	stop, done := make(chan struct{}), make(chan []time.Duration, 1)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	go func() {
		var took []time.Duration
		defer func() { done <- took }()
		pace := time.NewTicker(time.Millisecond) // the machine is for the others, too
		defer pace.Stop()
		for id := 0; ; id++ {
			since := time.Now()
			if err := call(id); err != nil {
				begin()
				t.Errorf("another client, after %d answers: %v", len(took), err)
				return
			}
			took = append(took, time.Since(since))
			begin()
			select {
			case <-stop:
				return
			case <-pace.C:
			}
		}
	}()
	<-begun
	return func() {
		t.Helper()
		close(stop)
		took := <-done
		if len(took) == 0 {
			return // the error is told
		}
		slices.Sort(took)
		t.Logf("another client's %d calls were answered, in %v at the median and %v at most", len(took), took[len(took)/2], took[len(took)-1])
	}
}

// meanwhile has another client list the tools of a faulting server.
func (f front) meanwhile(t *testing.T) (end func()) {
	transport := NewTransport()
	client := &http.Client{Transport: transport}
	ended := meanwhile(t, func(int) error {
		res, err := client.Post(f.url+"/mcp", "application/json", strings.NewReader(listTools))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != `{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}` {
			return fmt.Errorf("%s %q, %w", res.Status, got, err)
		}
		return nil
	})
	return func() {
		t.Helper()
		ended()
		transport.CloseIdleConnections()
	}
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
