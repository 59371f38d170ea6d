package history

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"glasshouse/sandbox"
)

// leastFree is what the disk of the log, where the embedded database is, too, must have
// left for an execution to begin: a server that can't write its log stops, and what
// runs must still be able to end.
const leastFree = 256 << 20

// disk watches how much is left where a folder is.
type disk struct {
	folder string
	least  uint64 // bytes

	mu   sync.Mutex
	seen time.Time
	left uint64
}

// room is FaultUnavailable where too little is left; it looks once a second.
func (d *disk) room() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.seen) > time.Second {
		var st syscall.Statfs_t
		if err := syscall.Statfs(d.folder, &st); err != nil {
			return fmt.Errorf("history's disk: %w", err)
		}
		d.seen, d.left = now, st.Bavail*uint64(st.Bsize)
	}
	if d.left >= d.least {
		return nil
	}
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, RetryAfter: 60,
		Detail: fmt.Sprintf("the disk of the service's data folder is nearly full: %d MiB are left, and %d are kept free; nothing runs without history", d.left>>20, d.least>>20)}
}
