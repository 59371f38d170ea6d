package history

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"glasshouse/sandbox"
)

// minFreeBytes is the free space that an execution needs to begin. The embedded PostgreSQL usually has its data on the
// same disk and stops if it cannot write its own log; the rest is for running executions to end.
const minFreeBytes = 256 << 20

// freeSpace checks the free space of the disk that holds a folder.
type freeSpace struct {
	dir string
	min uint64 // bytes

	mu      sync.Mutex
	checked time.Time
	free    uint64 // bytes, when it was checked
}

// measure returns the free space in bytes.
func (f *freeSpace) measure() (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checked) > time.Second {
		var st syscall.Statfs_t
		if err := syscall.Statfs(f.dir, &st); err != nil {
			return 0, fmt.Errorf("free space of the history folder %s: %w", f.dir, err)
		}
		f.checked, f.free = now, st.Bavail*uint64(st.Bsize)
	}
	return f.free, nil
}

// check returns FaultUnavailable if less than min is free. It asks the kernel once a second at most.
func (f *freeSpace) check() error {
	free, err := f.measure()
	if err != nil || free >= f.min {
		return err
	}
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, RetryAfter: 60, Detail: fmt.Sprintf(
		"the disk of the service's data folder is nearly full: %d MiB are free, and a run needs %d MiB, because "+
			"nothing runs without history: ask the operator to free space", free>>20, f.min>>20)}
}
