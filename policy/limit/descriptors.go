package limit

import (
	"errors"
	"syscall"
)

// ErrNoDescriptors is the error for a descriptor of the reserve.
var ErrNoDescriptors = errors.New("the reserve of file descriptors is not used for this")

// Descriptors keeps a reserve of this process's file descriptors for work that must always succeed: accepting and
// answering requests, history, and cleaning up. The kernel gives a new descriptor the lowest free number, so a
// descriptor with the number n shows that n others are open. The nil value keeps no reserve.
type Descriptors struct{ end int }

// NewDescriptors returns a Descriptors that keeps a reserve below this process's limit (RLIMIT_NOFILE).
func NewDescriptors(reserve int) *Descriptors {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil
	}
	return &Descriptors{end: int(min(limit.Cur, 1<<30)) - reserve}
}

// Check returns ErrNoDescriptors if the number of a new descriptor shows that only the reserve is left. The caller then
// closes the descriptor.
func (d *Descriptors) Check(fd int) error {
	if d != nil && fd >= d.end {
		return ErrNoDescriptors
	}
	return nil
}
