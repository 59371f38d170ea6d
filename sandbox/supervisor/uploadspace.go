package supervisor

import (
	"fmt"
	"sync"

	"glasshouse/sandbox"
)

// UploadSpace limits the memory that the uploads of all sandboxes take together. Each sandbox
// has its uploads in a tmpfs, which its policy limits; UploadSpace limits the sum. It counts
// whole pages, and one page for each name, which is about the memory that the kernel uses.
type UploadSpace struct {
	All, User int64 // bytes, of all users and of one; 0: no limit

	mu    sync.Mutex
	used  int64
	users map[string]int64 // used by each
}

const pageSize = 4096

// spaceOf returns the space that a file of this size uses.
func spaceOf(size int64) int64 { return pageSize + (size+pageSize-1)/pageSize*pageSize }

// reserve reserves n bytes for a user, or returns an error if a limit would be exceeded.
func (s *UploadSpace) reserve(user string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.User > 0 && s.users[user]+n > s.User:
		return sandbox.Errorf(
			sandbox.FaultTooLarge,
			"the uploads of all your sandboxes may use %d bytes, in whole pages, and %d are in use; delete some",
			s.User,
			s.users[user],
		)
	case s.All > 0 && s.used+n > s.All:
		return &sandbox.Error{Fault: sandbox.FaultFull, RetryAfter: 10,
			Detail: fmt.Sprintf(
				"the uploads of all sandboxes use the %d bytes that this service has for them; try again later",
				s.All,
			)}
	}
	s.add(user, n)
	return nil
}

// release releases n bytes of a user. A negative n reserves bytes without checking the limits.
func (s *UploadSpace) release(user string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(user, -n)
}

func (s *UploadSpace) add(user string, n int64) {
	if s.users == nil {
		s.users = map[string]int64{}
	}
	s.used += n
	if s.users[user] += n; s.users[user] == 0 {
		delete(s.users, user)
	}
}
