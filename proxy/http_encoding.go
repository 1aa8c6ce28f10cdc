package proxy

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow is the largest window that a zstd body may ask for, in bytes: the
// one that every decoder of the HTTP coding has to support (RFC 8878, section
// 3.1.1.1.2 and RFC 9659).
const zstdWindow = 8 << 20

// An encodingError says that a Content-Encoding can't be undone, so that
// nothing could be checked.
type encodingError struct{ encoding string }

func (e *encodingError) Error() string {
	return "the Content-Encoding " + inQuotes(e.encoding) + " is not one that can be undone here (gzip, deflate, br, zstd, one at a time)"
}

// decode undoes a content coding (RFC 9110, section 8.4). Whoever reads it
// bounds what comes out.
func decode(r io.Reader, encodings []string) (io.ReadCloser, error) {
	coding := ""
	for _, line := range encodings {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.ToLower(strings.TrimSpace(one))
			if one == "" || one == "identity" {
				continue
			}
			if coding != "" {
				return nil, &encodingError{strings.Join(encodings, ", ")}
			}
			coding = one
		}
	}
	switch coding {
	case "":
		return io.NopCloser(r), nil
	case "gzip", "x-gzip":
		return &lazyDecoder{open: func() (io.ReadCloser, error) { return gzip.NewReader(r) }}, nil
	case "deflate":
		return &lazyDecoder{open: func() (io.ReadCloser, error) { return inflate(r) }}, nil
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		return &lazyDecoder{open: func() (io.ReadCloser, error) {
			d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		}}, nil
	}
	return nil, &encodingError{coding}
}

// inflate undoes "deflate", which is the zlib format (RFC 9110, section
// 8.4.1.2), and which many send without zlib's header.
func inflate(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// A lazyDecoder opens its decoder with the first Read, since that may have to
// wait for the peer.
type lazyDecoder struct {
	open func() (io.ReadCloser, error)
	r    io.ReadCloser
	err  error
}

func (l *lazyDecoder) Read(p []byte) (int, error) {
	if l.r == nil && l.err == nil {
		if l.r, l.err = l.open(); l.err != nil {
			l.r = nil
		}
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.r.Read(p)
}

func (l *lazyDecoder) Close() error {
	if l.r == nil {
		return nil
	}
	return l.r.Close()
}
