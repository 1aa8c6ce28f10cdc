package icon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The worker protocol. Each direction carries frames: a 4-byte big-endian
// length and that many bytes. A request frame is a requestHeader and the
// image's bytes; a response frame is a responseHeader and the PNG's bytes. One
// request is answered by one response before the next is sent.

// maxFrame bounds a frame in either direction, in bytes.
const maxFrame = 4 << 20

var errFrame = errors.New("malformed frame")

// A requestHeader says what to make of the image and within which limits.
type requestHeader struct {
	Format    format
	_         uint8
	Edge      uint16 // the output's longer edge at most, in pixels
	MaxPixels uint32 // source pixels
	MaxPNG    uint32 // output bytes
	CPU       uint32 // seconds of CPU for this job
	Memory    uint64 // bytes above what the worker needs at its start; 0 is no limit
}

// A responseHeader tells how a job ended. Status is an index into
// workerReasons; 0 is success.
type responseHeader struct {
	Status        uint8
	_             uint8
	Width, Height uint16 // pixels of the PNG
}

// workerReasons are the reasons that a worker can give, by wire status.
var workerReasons = [...]Reason{
	"", ReasonFormat, ReasonDimensions, ReasonDecode, ReasonPanic, ReasonSVG, ReasonBudget,
}

func workerStatus(r Reason) uint8 {
	for i, known := range workerReasons {
		if r == known {
			return uint8(i)
		}
	}
	return workerStatus(ReasonDecode)
}

// writeFrame writes header and body as one frame.
func writeFrame(w io.Writer, header any, body []byte) error {
	n := binary.Size(header) + len(body)
	if n > maxFrame {
		return fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	frame := make([]byte, 0, 4+n)
	frame = binary.BigEndian.AppendUint32(frame, uint32(n))
	frame, err := binary.Append(frame, binary.BigEndian, header)
	if err != nil {
		return err
	}
	_, err = w.Write(append(frame, body...))
	return err
}

// readFrame reads one frame into header and returns the rest of it, at most
// limit bytes. io.EOF means that the stream ended between frames.
func readFrame(r io.Reader, header any, limit int) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n, size := int64(binary.BigEndian.Uint32(length[:])), int64(binary.Size(header))
	if n < size || n-size > int64(limit) {
		return nil, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(r, frame); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := binary.Decode(frame, binary.BigEndian, header); err != nil {
		return nil, err
	}
	return frame[size:], nil
}
