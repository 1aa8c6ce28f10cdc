package proxy

import "runtime"

// largeBuffer is the size of a buffer, in bytes, that is not made before what
// is not in use any more has been collected.
const largeBuffer = 16 << 20

// bodyBuffer makes an empty buffer for a message, of so many bytes. The buffers
// that it grew out of, and those of the large message before it, are garbage,
// but the collector would let as much of it gather as there is in use. With a
// few large messages that doubles what the process has in memory; to collect
// costs little beside reading one.
func bodyBuffer(size int) []byte {
	if size >= largeBuffer {
		runtime.GC()
	}
	return make([]byte, 0, size)
}
