package supervisor

import (
	"fmt"
	"sync"

	"glasshouse/sandbox"
)

// UploadSpace is what the uploads of all sandboxes may take together. They are in file systems
// in memory, each bounded by its sandbox's policy; this bounds how many such there are.
// It counts in pages, with one for each name, as the kernel does, about.
type UploadSpace struct {
	All, User int64 // bytes, in all and of one user; 0: as many as come

	mu    sync.Mutex
	taken int64
	users map[string]int64
}

const page = 4096

// cost is what a file of a size takes.
func cost(size int64) int64 { return page + (size+page-1)/page*page }

// take takes bytes for a user's upload, where there are so many.
func (r *UploadSpace) take(user string, n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.User > 0 && r.users[user]+n > r.User:
		return sandbox.Errorf(sandbox.FaultTooLarge, "the uploads of all your sandboxes may take %d bytes, in whole pages, and %d are taken; delete some", r.User, r.users[user])
	case r.All > 0 && r.taken+n > r.All:
		return &sandbox.Error{Fault: sandbox.FaultFull, RetryAfter: 10,
			Detail: fmt.Sprintf("the uploads of all sandboxes take the %d bytes that this service has for them; try again soon", r.All)}
	}
	r.add(user, n)
	return nil
}

// give gives bytes back; fewer than none, where they are taken without asking.
func (r *UploadSpace) give(user string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(user, -n)
}

func (r *UploadSpace) add(user string, n int64) {
	if r.users == nil {
		r.users = map[string]int64{}
	}
	r.taken += n
	if r.users[user] += n; r.users[user] == 0 {
		delete(r.users, user)
	}
}
