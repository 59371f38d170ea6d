package supervisor

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/protocol"
)

// child is the other end of a ring, as recorder_ring.py writes it.
type child struct {
	*ring
	written uint64
}

func newChild(t *testing.T) *child {
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
	return &child{ring: r}
}

func (c *child) write(data []byte) {
	for _, b := range data {
		c.memory[ringHead+c.written%ringSize] = b
		c.written++
	}
	c.counter(ringWritten).Store(c.written)
}

func TestARingGivesWhatWasWrittenInOrder(t *testing.T) {
	c := newChild(t)
	var wrote, got []byte
	for i := range 50 { // past its end many times
		part := bytes.Repeat([]byte{byte(i)}, 10_001+i*4000)
		c.write(part)
		wrote = append(wrote, part...)
		var err error
		if got, err = c.take(got); err != nil {
			t.Fatal(err)
		}
		if read := c.counter(ringRead).Load(); read != c.written {
			t.Fatalf("room is made up to %d of %d", read, c.written)
		}
	}
	if !bytes.Equal(wrote, got) {
		t.Errorf("%d bytes, of %d, or others", len(got), len(wrote))
	}
	if more, err := c.take(nil); len(more) != 0 || err != nil {
		t.Errorf("%d bytes that nobody wrote, %v", len(more), err)
	}
}

func TestARingWhoseCounterIsForged(t *testing.T) {
	for _, forged := range []uint64{0, 4999, 5000 + ringSize + 1, 1 << 63, 1<<64 - 1} {
		c := newChild(t)
		c.write(make([]byte, 5000))
		if _, err := c.take(nil); err != nil {
			t.Fatal(err)
		}
		c.counter(ringWritten).Store(forged)
		var illegal *protocol.IllegalFrame
		if got, err := c.take(nil); !errors.As(err, &illegal) || len(got) > 0 {
			t.Errorf("%d after 5000: %d bytes, %v", forged, len(got), err)
		}
	}
}

func TestARingWhoseTailIsForgedHarmsNobody(t *testing.T) {
	c := newChild(t)
	c.counter(ringRead).Store(1 << 60) // the child's own loss
	c.write([]byte("records"))
	if got, err := c.take(nil); string(got) != "records" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A smaller file would end the process that reads the memory behind its end.
func TestTheMemoryOfARingStaysAsLargeAsItIs(t *testing.T) {
	c := newChild(t)
	for _, size := range []int64{0, ringHead, ringHead + 2*ringSize} {
		if err := unix.Ftruncate(c.fd(), size); err != unix.EPERM {
			t.Errorf("to %d bytes: %v", size, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(c.fd()), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != unix.EPERM {
		t.Errorf("another seal: %v", err)
	}
}
