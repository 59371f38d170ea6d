package isolate

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
)

// cpuSharing divides CPU time among users by their weights: the running processes of each user with
// the largest weight together have the priority of one process. It counts the processes every
// sharingInterval, and gives each 1/n of that priority, where n is limit.Users.Divisors of the last
// count. A process that begins to run gets its part at once. The zero value is ready to use.
//
// With control groups the priority is the group's weight. Without, it is the nice value, which only a
// service with CAP_SYS_NICE can lower again: without that capability a process keeps its
// largest n.
type cpuSharing struct {
	users *limit.Users

	mu       sync.Mutex
	running  map[*Process]bool
	divisors map[string]int // at the last count, by user
	isTimed  bool           // count will be called
	begun    int64          // number of times that a process began to run
	memory   memoryGuard
}

// sharingInterval is the time between two counts.
const sharingInterval = 50 * time.Millisecond

// begin notes that a process runs. It does nothing for a process that has no user yet.
func (s *cpuSharing) begin(p *Process) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[*Process]bool{}
	}
	if !s.running[p] {
		s.running[p] = true
		s.begun++
		p.begun = s.begun
	}
	p.setCPUPart(max(s.divisors[p.user], 1))
	if !s.isTimed {
		s.isTimed = true
		time.AfterFunc(sharingInterval, s.count)
	}
}

// end notes that a process does not run.
func (s *cpuSharing) end(p *Process) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
}

// count counts the running processes of each user, and sets their priorities.
func (s *cpuSharing) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for p := range s.running {
		counts[p.user]++
	}
	s.divisors = s.users.Divisors(counts)
	for p := range s.running {
		p.setCPUPart(s.divisors[p.user])
	}
	s.memory.relieve(s.running)
	if s.isTimed = len(s.running) > 0; s.isTimed {
		time.AfterFunc(sharingInterval, s.count)
	}
}

// setCPUPart gives the process 1/n of the priority of a process that runs alone. If the kernel
// refuses, the process keeps its priority.
func (p *Process) setCPUPart(n int) {
	if p.group != nil {
		_ = p.group.Divide(n)
		return
	}
	if n == max(p.cpuPart, 1) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// The signal 0 tests that the process exists, as its number may be another's soon.
	if p.pidfd >= 0 && unix.PidfdSendSignal(p.pidfd, 0, nil, 0) == nil &&
		unix.Setpriority(unix.PRIO_PROCESS, p.pid, limit.Nice(n)) == nil {
		p.cpuPart = n
	}
}
