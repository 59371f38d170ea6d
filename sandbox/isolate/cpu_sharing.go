package isolate

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
)

// cpuSharing divides CPU time equally among users: a user's running processes together have
// the weight of one process. It counts the processes every sharingInterval, and gives each
// the weight 1/n, where n is how many the user had at the last count. A process that begins to
// run gets the weight at once. The zero value is ready to use.
//
// With control groups the weight is the group's. Without, it is the nice value, which only a
// service with CAP_SYS_NICE can lower again: without that capability a process keeps its
// largest n.
type cpuSharing struct {
	mu      sync.Mutex
	running map[*Process]bool
	counts  map[string]int // running processes at the last count, by user
	isTimed bool           // count will be called
	begun   int64          // number of times that a process began to run
	memory  memoryGuard
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
		s.running, s.counts = map[*Process]bool{}, map[string]int{}
	}
	if !s.running[p] {
		s.running[p] = true
		s.begun++
		p.begun = s.begun
	}
	p.setCPUPart(max(s.counts[p.user], 1))
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

// count counts the running processes of each user, and sets their weights.
func (s *cpuSharing) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
	for p := range s.running {
		s.counts[p.user]++
	}
	for p := range s.running {
		p.setCPUPart(s.counts[p.user])
	}
	s.memory.relieve(s.running)
	if s.isTimed = len(s.running) > 0; s.isTimed {
		time.AfterFunc(sharingInterval, s.count)
	}
}

// setCPUPart gives the process 1/n of the weight of a process that runs alone. If the kernel
// refuses, the process keeps its weight.
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
