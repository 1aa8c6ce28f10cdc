package icon

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"runtime/metrics"
	"time"
)

// Exit codes of RunWorker.
const (
	workerDone   = 0 // the input ended
	workerFailed = 1 // the input was no stream of requests, or the output failed
	workerMemory = 3 // the watchdog saw more memory than a job may have
	workerCPU    = 4 // a job took more CPU time than it may have
)

// watchInterval is how often the worker looks at its own memory during a job.
const watchInterval = 5 * time.Millisecond

// RunWorker decodes images: it reads requests from in until it ends, writes an
// answer to each to out, and returns the process's exit code. It is made to be
// the whole life of a process of its own, which it limits as far as the system
// allows and which its parent kills without regret; it must not be called in a
// process that has anything else to do.
func RunWorker(in io.Reader, out io.Writer) int {
	base := memoryInUse()
	started := time.NewTimer(0) // sets up the poller, which needs a descriptor, before there are none
	<-started.C
	confined := false
	for {
		var request requestHeader
		body, err := readFrame(in, &request, maxFrame)
		if errors.Is(err, io.EOF) {
			return workerDone
		}
		if err != nil {
			return workerFailed
		}
		if !confined {
			catchCPU()
			confine(request.Memory)
			confined = true
		}
		limitCPU(request.CPU)
		stop := watchMemory(base, request.Memory)
		response, png := runJob(convert, request, body)
		stop()
		if err := writeFrame(out, response, png); err != nil {
			return workerFailed
		}
	}
}

// watchMemory ends the process when its memory grows by more than limit above
// base, until stop is called. It holds where the system has no limit to set,
// and where it has one, it ends a slow growth before that does.
func watchMemory(base, limit uint64) (stop func()) {
	if limit == 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if memoryInUse() > base+limit {
					os.Exit(workerMemory)
				}
			}
		}
	}()
	return func() { close(done) }
}

// memoryInUse returns the bytes that the runtime holds and has not given back.
func memoryInUse() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// runJob has work do one job and contains its panics.
func runJob(work func(requestHeader, []byte) (image.Image, []byte, error), request requestHeader, body []byte) (response responseHeader, png []byte) {
	defer func() {
		if v := recover(); v != nil {
			response, png = responseHeader{Status: workerStatus(ReasonPanic)}, nil
		}
	}()
	m, png, err := work(request, body)
	if err != nil {
		return responseHeader{Status: workerStatus(ReasonOf(err))}, nil
	}
	size := m.Bounds().Size()
	return responseHeader{Width: uint16(size.X), Height: uint16(size.Y)}, png
}

// convert makes of an image a PNG within request's edge and bytes: at the
// largest edge of a falling row that is small enough.
func convert(request requestHeader, body []byte) (image.Image, []byte, error) {
	if request.Edge == 0 {
		return nil, nil, fail(ReasonBudget, errors.New("no edge"))
	}
	draw, err := decodeImage(request, body)
	if err != nil {
		return nil, nil, err
	}
	last := image.Point{}
	for _, edge := range edges(int(request.Edge)) {
		m, err := draw(edge)
		if err != nil {
			return nil, nil, err
		}
		size := m.Bounds().Size()
		if size == last {
			continue // a raster that is smaller than both edges
		}
		last = size
		png, err := encodePNG(m)
		if err != nil {
			return nil, nil, fail(ReasonDecode, err)
		}
		if uint32(len(png)) <= request.MaxPNG {
			return m, png, nil
		}
	}
	return nil, nil, fail(ReasonBudget, fmt.Errorf("more than %d bytes at every edge", request.MaxPNG))
}

// edges returns the edges to try: most, then each smaller one of a fixed row.
func edges(most int) []int {
	row := []int{most}
	for _, edge := range [...]int{96, 64, 48, 32, 24, 16} {
		if edge < most {
			row = append(row, edge)
		}
	}
	return row
}

// A drawer draws an image within an edge.
type drawer func(edge int) (*image.NRGBA, error)

// decodeImage reads an image.
func decodeImage(request requestHeader, body []byte) (drawer, error) {
	if request.Format == formatSVG {
		return decodeSVG(body)
	}
	m, err := decodeRaster(request.Format, body, int(request.MaxPixels))
	if err != nil {
		return nil, err
	}
	return func(edge int) (*image.NRGBA, error) {
		size := m.Bounds().Size()
		w, h := fit(size.X, size.Y, edge)
		return scale(m, w, h), nil
	}, nil
}
