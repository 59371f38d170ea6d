package supervisor

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/protocol"
)

// The layout of the ring's memory: two counters of bytes, which only ever grow, a number of
// steps, and from ringHeader on the bytes themselves, each at its count modulo ringSize.
// recorder_ring.py has the same numbers.
const (
	ringHeader       = 4096
	ringSize         = 256 << 10
	ringWrittenIndex = 0   // the guest stores how many bytes it has written, after writing them
	ringReadIndex    = 64  // the supervisor stores how many bytes it has read
	ringHeldIndex    = 128 // the guest stores how many steps it has recorded and not written yet
)

// ring reads the records of one debugged run from memory that the guest shares. The guest
// writes a record without a system call, and a killed guest loses no record.
//
// The guest can write any bytes there at any time. So its counter is read once and checked,
// and only a copy of the bytes is parsed. Seals prevent that the guest shrinks the memory,
// which would end this process with SIGBUS, or extends it without bound.
type ring struct {
	file      *os.File
	memory    []byte
	readCount uint64
}

// newRing returns an empty ring. The caller closes it.
func newRing() (*ring, error) {
	fd, err := unix.MemfdCreate("records", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make the memory of a ring: %w", err)
	}
	r := &ring{file: os.NewFile(uintptr(fd), "records")}
	if err = unix.Ftruncate(fd, ringHeader+ringSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		r.memory, err = unix.Mmap(fd, 0, ringHeader+ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, fmt.Errorf("make the memory of a ring: %w", errors.Join(err, r.file.Close()))
	}
	return r, nil
}

// fd returns the descriptor of the memory, which the guest gets with its Run frame.
func (r *ring) fd() int { return int(r.file.Fd()) }

// close unmaps the memory in this process and closes its descriptor.
func (r *ring) close() error { return errors.Join(unix.Munmap(r.memory), r.file.Close()) }

// read appends to b the bytes that the guest has written since the last read, and frees their
// space.
func (r *ring) read(b []byte) ([]byte, error) {
	written := r.counter(ringWrittenIndex).Load()
	size := written - r.readCount
	if size > ringSize {
		return b, &protocol.IllegalFrame{Why: fmt.Sprintf("%d bytes in a ring of %d", size, ringSize)}
	}
	if size == 0 {
		return b, nil
	}
	fence()
	data := r.memory[ringHeader:]
	for size > 0 {
		start := r.readCount % ringSize
		n := min(size, ringSize-start)
		b = append(b, data[start:start+n]...)
		size, r.readCount = size-n, r.readCount+n
	}
	r.counter(ringReadIndex).Store(r.readCount)
	return b, nil
}

// heldSteps returns the number of steps that the guest has recorded and not written yet.
func (r *ring) heldSteps() uint64 { return r.counter(ringHeldIndex).Load() }

func (r *ring) counter(index int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.memory[index]))
}
