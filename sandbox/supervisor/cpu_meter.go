package supervisor

import (
	"sync"
	"time"

	"glasshouse/sandbox/isolate"
)

// cpuMeter counts the CPU time of the guests of a session, even while they run. It is the one account of it: history,
// quotas and the charges for the service's own work read it, and each remembers how far it has read. It is safe for
// concurrent use, and its methods never wait. The zero value is ready to use; the nil meter counts nothing.
type cpuMeter struct {
	mu      sync.Mutex
	process *isolate.Process // the guest; nil: none
	counted time.Duration    // CPU time of process that is counted
	total   time.Duration    // of all guests so far
	taken   time.Duration    // the part of total that take has returned
}

// follow begins to count the CPU time of another guest, from now on; nil means none.
func (m *cpuMeter) follow(process *isolate.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	m.process, m.counted = process, 0
	if process != nil {
		m.counted = process.CPU()
	}
}

// count counts what the guest has used since the last call. The caller holds m.mu.
func (m *cpuMeter) count() {
	if m.process == nil {
		return
	}
	if used := m.process.CPU(); used > 0 { // 0 if it cannot be read
		m.total += used - m.counted // less than 0 after a look while the guest gave back copies
		m.counted = used
	}
}

// add counts CPU time that the guest did not use.
func (m *cpuMeter) add(used time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += used
}

// used returns the CPU time that the guests have used so far.
func (m *cpuMeter) used() time.Duration {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	return m.total
}

func (m *cpuMeter) take() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	taken := max(m.total-m.taken, 0)
	m.taken += taken
	return taken
}

// TakeCPU returns the CPU time that the session's guests have used in runs and inspections since it was last called. It
// may be called at any time, and never waits.
func (s *Session) TakeCPU() time.Duration { return s.cpu.take() }
