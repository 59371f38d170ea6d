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

// The ring's memory: two counters of bytes, both only ever growing, and behind
// ringHead the bytes themselves, each at its count modulo ringSize. recorder_ring.py
// has the same numbers.
const (
	ringHead    = 4096
	ringSize    = 256 << 10
	ringWritten = 0  // where the child says how many it has written, after it has written them
	ringRead    = 64 // where the host says how many it has taken
)

// ring takes what the recorder of one watched run writes: memory that the child
// shares, so that handing over a record is a store, and a kill takes nothing with it.
//
// The child can write anything there at any time. So its counter is read once, checked
// and copied by, and only the copy is looked at. It can't make the memory smaller, which
// would end the process that reads it, or larger, which nothing would bound.
type ring struct {
	file   *os.File
	memory []byte
	read   uint64
}

// newRing returns an empty ring; it is to be closed.
func newRing() (*ring, error) {
	fd, err := unix.MemfdCreate("records", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("the memory of a ring: %w", err)
	}
	r := &ring{file: os.NewFile(uintptr(fd), "records")}
	if err = unix.Ftruncate(fd, ringHead+ringSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		r.memory, err = unix.Mmap(fd, 0, ringHead+ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, fmt.Errorf("the memory of a ring: %w", errors.Join(err, r.file.Close()))
	}
	return r, nil
}

// fd is the descriptor that goes to the child with its Run.
func (r *ring) fd() int { return int(r.file.Fd()) }

// close gives up the host's share of the memory.
func (r *ring) close() error { return errors.Join(unix.Munmap(r.memory), r.file.Close()) }

// take appends to b what the child has written since the last take, and makes room for
// as much.
func (r *ring) take(b []byte) ([]byte, error) {
	written := r.counter(ringWritten).Load()
	size := written - r.read
	if size > ringSize {
		return b, &protocol.IllegalFrame{Why: fmt.Sprintf("%d bytes in a ring of %d", size, ringSize)}
	}
	if size == 0 {
		return b, nil
	}
	fence()
	data := r.memory[ringHead:]
	for size > 0 {
		at := r.read % ringSize
		n := min(size, ringSize-at)
		b = append(b, data[at:at+n]...)
		size, r.read = size-n, r.read+n
	}
	r.counter(ringRead).Store(r.read)
	return b, nil
}

func (r *ring) counter(at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.memory[at]))
}
