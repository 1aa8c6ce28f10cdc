package icon

import (
	"context"
	"encoding/base64"
	"time"
)

// FetchInfo tells how a fetch ended.
type FetchInfo struct {
	Host     string
	Duration time.Duration // without the wait for a turn
	Bytes    int           // of the body
	Reason   Reason        // "" is success
}

// DecodeInfo tells how a decoding ended.
type DecodeInfo struct {
	Format   string        // png, jpeg, gif, webp or svg
	Duration time.Duration // with the wait for a worker
	Bytes    int           // of the data: URI
	Reason   Reason        // "" is success
}

// makeRemote fetches and decodes one icon.
func (f *Fetcher) makeRemote(ctx context.Context, url string, label format) (Image, time.Duration, error) {
	u, err := f.parseURL(url)
	if err != nil {
		return Image{}, 0, err
	}
	release, err := f.queue.turn(ctx, u.Hostname())
	if err != nil {
		return Image{}, 0, err
	}
	start := time.Now()
	got, err := f.get(ctx, u)
	release()
	if f.OnFetch != nil {
		f.OnFetch(FetchInfo{Host: u.Host, Duration: time.Since(start), Bytes: len(got.body), Reason: ReasonOf(err)})
	}
	if err != nil {
		return Image{}, 0, err
	}
	sniffed := sniff(got.body)
	if got.format != formatNone && got.format != sniffed || !labelAgrees(label, sniffed) {
		return Image{}, got.ttl, fail(ReasonMismatch, nil)
	}
	f.mu.Lock()
	room := f.hold(len(got.body))
	f.mu.Unlock()
	if !room {
		return Image{}, 0, fail(ReasonBusy, nil)
	}
	defer f.release(len(got.body))
	m, err := f.decode(ctx, sniffed, got.body, f.maxIcon())
	return m, got.ttl, err
}

// decode has a worker make a PNG of body, which must be of format want, in at
// most maxURI bytes of data: URI.
func (f *Fetcher) decode(ctx context.Context, want format, body []byte, maxURI int) (m Image, err error) {
	if got := sniff(body); got == formatNone {
		return Image{}, fail(ReasonFormat, nil)
	} else if got != want {
		return Image{}, fail(ReasonMismatch, nil)
	}
	start := time.Now()
	if f.OnDecode != nil {
		defer func() {
			f.OnDecode(DecodeInfo{Format: want.String(), Duration: time.Since(start), Bytes: len(m.URI), Reason: ReasonOf(err)})
		}()
	}
	maxPNG := base64.StdEncoding.DecodedLen(max(0, maxURI-len(pngPrefix)) &^ 3)
	response, png, err := f.pool.run(ctx, requestHeader{
		Format:    want,
		Edge:      uint16(f.edge()),
		MaxPixels: uint32(positive(f.MaxPixels, defaultMaxPixels)),
		MaxPNG:    uint32(min(maxPNG, maxFrame/2)),
		CPU:       uint32(duration(f.WorkerCPU, defaultWorkerCPU) / time.Second),
		Memory:    f.workerMemory(),
	}, body)
	if err != nil {
		return Image{}, err
	}
	return Image{
		URI:    pngPrefix + base64.StdEncoding.EncodeToString(png),
		Width:  int(response.Width),
		Height: int(response.Height),
	}, nil
}
