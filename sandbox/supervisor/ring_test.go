package supervisor

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/protocol"
)

// ringWriter writes to a ring as recorder_ring.py does.
type ringWriter struct {
	*ring
	written uint64
}

func newRingWriter(t *testing.T) *ringWriter {
	t.Helper()
	r, err := newRing()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return &ringWriter{ring: r}
}

func (w *ringWriter) write(data []byte) {
	for _, b := range data {
		w.memory[ringHeader+w.written%ringSize] = b
		w.written++
	}
	w.counter(ringWrittenIndex).Store(w.written)
}

func TestRingReturnsBytesInOrder(t *testing.T) {
	t.Parallel()
	w := newRingWriter(t)
	var written, got []byte
	for i := range 50 { // wraps around many times
		records := bytes.Repeat([]byte{byte(i)}, 10_001+i*4000)
		w.write(records)
		written = append(written, records...)
		var err error
		if got, err = w.read(got); err != nil {
			t.Fatal(err)
		}
		if read := w.counter(ringReadIndex).Load(); read != w.written {
			t.Fatalf("got a read count of %d, want %d", read, w.written)
		}
	}
	if !bytes.Equal(got, written) {
		t.Errorf("got %d bytes, want the %d that were written", len(got), len(written))
	}
	if more, err := w.read(nil); len(more) != 0 || err != nil {
		t.Errorf("empty ring: got %d bytes, error %v; want none", len(more), err)
	}
}

func TestForgedWriteCountIsIllegal(t *testing.T) {
	t.Parallel()
	for _, forged := range []uint64{0, 4999, 5000 + ringSize + 1, 1 << 63, 1<<64 - 1} {
		w := newRingWriter(t)
		w.write(make([]byte, 5000))
		if _, err := w.read(nil); err != nil {
			t.Fatal(err)
		}
		w.counter(ringWrittenIndex).Store(forged)
		var illegal *protocol.IllegalFrame
		if got, err := w.read(nil); !errors.As(err, &illegal) || len(got) > 0 {
			t.Errorf("count %d after 5000: got %d bytes, error %v; want an illegal frame", forged, len(got), err)
		}
	}
}

func TestForgedReadCountHarmsOnlyTheGuest(t *testing.T) {
	t.Parallel()
	w := newRingWriter(t)
	w.counter(ringReadIndex).Store(1 << 60)
	w.write([]byte("records"))
	if got, err := w.read(nil); string(got) != "records" || err != nil {
		t.Errorf("got %q, error %v; want %q", got, err, "records")
	}
}

// A guest that could shrink the file would end this process, by SIGBUS in a read beyond its end.
func TestRingMemoryCannotBeResized(t *testing.T) {
	t.Parallel()
	w := newRingWriter(t)
	for _, size := range []int64{0, ringHeader, ringHeader + 2*ringSize} {
		if err := unix.Ftruncate(w.fd(), size); err != unix.EPERM {
			t.Errorf("ftruncate to %d bytes: got error %v, want %v", size, err, unix.EPERM)
		}
	}
	if _, err := unix.FcntlInt(uintptr(w.fd()), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != unix.EPERM {
		t.Errorf("adding a seal: got error %v, want %v", err, unix.EPERM)
	}
}
