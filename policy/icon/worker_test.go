package icon

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dataURI is b as a server would send it.
func dataURI(mediaType string, b []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(b)
}

func TestBadWorkers(t *testing.T) {
	for _, c := range []struct {
		name string
		on   string // the system it is about; "" is all
		want Reason
	}{
		{"icon-worker-hang", "", ReasonWorker},
		{"icon-worker-exit", "", ReasonWorker},
		{"icon-worker-garbage", "", ReasonWorker},
		{"icon-worker-half", "", ReasonWorker},
		{"icon-worker-hog", "linux", ReasonWorker},
		{"icon-worker-watched", "", ReasonWorker},
		{"icon-worker-spin", "linux", ReasonWorker},
		{"icon-worker-liar", "", ReasonWorker},
		{"icon-worker-large", "", ReasonWorker},
		{"icon-worker-markup", "", ReasonWorker},
		{"icon-worker-status", "", ReasonWorker},
		{"icon-worker-confined", "linux", ReasonBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.on != "" && c.on != runtime.GOOS {
				t.Skip("about " + c.on)
			}
			t.Parallel()
			f := &Fetcher{Worker: namedWorker(t, c.name), WorkerMemory: 32 << 20, WorkerCPU: time.Second, WorkerTimeout: time.Minute}
			if c.name == "icon-worker-hang" {
				f.WorkerTimeout = 50 * time.Millisecond
			}
			t.Cleanup(func() { f.Close() })
			_, err := f.Decode(t.Context(), dataURI("image/png", testPNG(t, 8, 8)), "")
			wantReason(t, err, c.want)
		})
	}
}

func TestNoSuchWorker(t *testing.T) {
	f := &Fetcher{Worker: []string{"/nonexistent/worker"}}
	defer f.Close()
	_, err := f.Decode(t.Context(), dataURI("image/png", testPNG(t, 8, 8)), "")
	wantReason(t, err, ReasonWorker)
}

// TestZeroFetcher decodes nothing and dials nowhere.
func TestZeroFetcher(t *testing.T) {
	s := newSite(t, nil)
	f := &Fetcher{RootCAs: s.authority.pool, Resolver: s.names.resolver(t), AllowPrivate: true}
	defer f.Close()
	_, err := f.Fetch(t.Context(), s.url("/"), "")
	wantReason(t, err, ReasonNoWorker)
	_, err = f.Decode(t.Context(), dataURI("image/png", testPNG(t, 8, 8)), "")
	wantReason(t, err, ReasonNoWorker)
	_, err = f.Shrink(t.Context(), Image{URI: strings.Repeat("x", 100)}, 10)
	wantReason(t, err, ReasonNoWorker)
	if s.listener.accepted.Load() != 0 || len(s.names.questions()) != 0 {
		t.Error("it asked the network")
	}
}

// TestWorkerIsReplaced: a worker that was ended from outside, idle or at any
// point of a job, costs at most that job.
func TestWorkerIsReplaced(t *testing.T) {
	f := &Fetcher{Worker: testWorker(t), Workers: 1}
	t.Cleanup(func() { f.Close() })
	decode := func(i int) error {
		_, err := f.Decode(t.Context(), dataURI("image/png", testPNG(t, 8+i, 8)), "")
		return err
	}
	wantReason(t, decode(0), "")
	first := f.pool.free[0]
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantReason(t, decode(1), "") // it was idle: the job is done by the next one
	if f.pool.free[0] == first {
		t.Error("the same worker")
	}
	for i := range 20 {
		var killed sync.WaitGroup
		w := f.pool.free[0]
		killed.Go(func() { _ = w.cmd.Process.Kill() })
		if err := decode(2 + i); err != nil && ReasonOf(err) != ReasonWorker {
			t.Fatal(err)
		}
		killed.Wait()
		if len(f.pool.free) == 0 {
			wantReason(t, decode(100+i), "")
		}
	}
}

// TestWorkerIsEndedWhenIdle sees the process go.
func TestWorkerIsEndedWhenIdle(t *testing.T) {
	f := &Fetcher{Worker: testWorker(t), WorkerIdle: time.Millisecond}
	t.Cleanup(func() { f.Close() })
	f.once.Do(f.init)
	w, err := f.pool.take()
	if err != nil {
		t.Fatal(err)
	}
	f.pool.put(w)
	if _, err := w.out.Read(make([]byte, 1)); err == nil {
		t.Error("it says something")
	}
	w.end()                        // waits for the one that ends it
	if w.cmd.ProcessState == nil { // nobody has waited for its end
		t.Error("it is still there")
	}
	if len(f.pool.free) != 0 {
		t.Error("it is still held")
	}
}

func TestRunWorker(t *testing.T) {
	if code := RunWorker(strings.NewReader("no frame at all"), io.Discard); code != workerFailed {
		t.Errorf("no frame: %d", code)
	}
	if code := RunWorker(strings.NewReader(""), io.Discard); code != workerDone {
		t.Errorf("nothing: %d", code)
	}
}

// TestRunJobContainsPanics: a decoder's panic is an answer.
func TestRunJobContainsPanics(t *testing.T) {
	response, out := runJob(convert, requestHeader{Format: formatPNG, Edge: 64, MaxPixels: 1}, nil)
	if workerReasons[response.Status] != ReasonDecode || out != nil {
		t.Errorf("%+v", response)
	}
	index := func(_ requestHeader, body []byte) (image.Image, []byte, error) { return nil, body[1:2], nil }
	response, out = runJob(index, requestHeader{}, nil)
	if workerReasons[response.Status] != ReasonPanic || out != nil {
		t.Errorf("%+v", response)
	}
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	sent := requestHeader{Format: formatGIF, Edge: 64, MaxPixels: 1 << 20, MaxPNG: 1000, CPU: 2, Memory: 1 << 27}
	if err := writeFrame(&b, sent, []byte("body")); err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(b.Bytes())
	var got requestHeader
	body, err := readFrame(&b, &got, maxFrame)
	if err != nil || got != sent || string(body) != "body" {
		t.Errorf("%+v %q %v", got, body, err)
	}
	for n := range whole {
		_, err := readFrame(bytes.NewReader(whole[:n]), &got, maxFrame)
		if n == 0 && !errors.Is(err, io.EOF) || n > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if _, err := readFrame(bytes.NewReader(whole), &got, 3); !errors.Is(err, errFrame) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := readFrame(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), &got, maxFrame); !errors.Is(err, errFrame) {
		t.Errorf("4 GiB: %v", err)
	}
	if err := writeFrame(io.Discard, sent, make([]byte, maxFrame)); !errors.Is(err, errFrame) {
		t.Errorf("too large to send: %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	_ = writeFrame(&b, responseHeader{Width: 8, Height: 8}, []byte("png"))
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		var header responseHeader
		body, err := readFrame(bytes.NewReader(stream), &header, 1024)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeFrame(&again, header, body); err != nil {
			t.Fatal(err)
		}
		copy(stream[5:], []byte{0}) // the blank byte of the header
		if !bytes.Equal(again.Bytes(), stream[:again.Len()]) {
			t.Fatalf("%x is read and written as %x", stream, again.Bytes())
		}
		if request := testRequest(formatPNG); checkOutput(request, header, body) == nil && !slices.Equal(body[:8], []byte("\x89PNG\r\n\x1a\n")) {
			t.Fatal("no PNG is taken for one")
		}
	})
}
