package supervisor

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox/isolate"
)

// The CPU time of work that is too short or too often interrupted to be measured.
const (
	frameWork       = 2 * time.Microsecond   // to read a frame, in addition to its bytes
	frameByteWork   = 1.5                    // to read a byte of a frame, in nanoseconds
	stopWork        = 20 * time.Microsecond  // to handle a stop, in addition to freezing and resuming the guest
	valueByteWork   = 10                     // to check and decode a byte of the answer to a command, in nanoseconds
	queryByteWork   = 4                      // a byte of a statement or its parameters, in nanoseconds
	printedByteWork = 0.3                    // to read and keep a byte of stdout or stderr, in nanoseconds
	statementWork   = 250 * time.Microsecond // of a short statement, in the service and in PostgreSQL
)

// minMeasuredBytes is the size of the smallest input whose work is measured. Measuring takes half a
// microsecond.
const minMeasuredBytes = 512

// settledWork is how much work collects before the meter settles it with the user's account.
const settledWork = time.Millisecond

// workMeter charges the user of a run for the CPU time that the service spends on what the guest
// sends. If the user's account is overdrawn, it makes the reader of the guest wait; the guest then
// waits too, because its pipes and its socket are full. Several goroutines may use it.
type workMeter struct {
	work    *limit.Work
	share   *limit.Share
	cpu     *limit.CPU
	user    string
	process *isolate.Process
	guests  *cpuMeter     // of the session
	began   time.Duration // of guests, when the run began

	over     chan struct{} // closed by stop; then nobody waits
	overOnce sync.Once

	owed atomic.Int64 // nanoseconds of work that are not settled

	mu       sync.Mutex
	credited time.Duration // the CPU time of the run that was credited
}

func (s *Session) newWorkMeter(process *isolate.Process) *workMeter {
	return &workMeter{
		work: &s.supervisor.Work, share: s.supervisor.Share, cpu: s.supervisor.CPU,
		user: s.sandbox.Owner, process: process, guests: &s.cpu, began: s.cpu.used(),
		over: make(chan struct{}),
	}
}

// stop ends all waiting, because the run is to end.
func (m *workMeter) stop() { m.overOnce.Do(func() { close(m.over) }) }

// add charges for work without waiting.
func (m *workMeter) add(work time.Duration) { m.owed.Add(int64(work)) }

// addFrame charges for reading a frame.
func (m *workMeter) addFrame(bytes int) {
	m.add(frameWork + time.Duration(frameByteWork*float64(bytes)))
}

// addPrinted charges for reading and keeping printed bytes.
func (m *workMeter) addPrinted(bytes int) { m.add(time.Duration(printedByteWork * float64(bytes))) }

// measure charges for the CPU time of f, whose input has a number of bytes. A small input is
// not measured. f should seldom block, because its goroutine keeps its thread.
func (m *workMeter) measure(bytes int, f func() error) error {
	if bytes < minMeasuredBytes {
		return f()
	}
	defer m.begin()()
	return f()
}

// parse is measure for an f that only computes. A large input is parsed in the turn of the user.
func (m *workMeter) parse(bytes int, f func() error) (err error) {
	m.cpu.Compute(m.user, bytes, func() { err = m.measure(bytes, f) })
	return err
}

// begin begins to measure. The function that it returns charges for the CPU time since then. The same goroutine must
// call it. Freezing a guest by signals costs 90 to 300 microseconds, which differ by machine and hour.
func (m *workMeter) begin() (end func()) {
	runtime.LockOSThread()
	began := threadCPUTime()
	return func() {
		m.add(threadCPUTime() - began)
		runtime.UnlockOSThread()
	}
}

// wait returns when the user's account allows more work. Usually that is at once.
func (m *workMeter) wait() {
	if m.owed.Load() < int64(settledWork) {
		return
	}
	for {
		now := time.Now()
		pause := m.work.Charge(m.user, time.Duration(m.owed.Swap(0)), m.earned(), now)
		if pause == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			continue
		case <-m.over:
		case <-m.process.Done():
		}
		timer.Stop()
		return
	}
}

// waitForStatement returns when the user may run one more statement, or when ctx ends. On two cores, another user's
// requests next to 60 runs that query without end took 2.5 to 4.5 times as long without this limit.
func (m *workMeter) waitForStatement(ctx context.Context) { m.share.Wait(ctx, m.user, statementWork) }

// used returns the CPU time of the run so far.
func (m *workMeter) used() time.Duration { return max(m.guests.used()-m.began, 0) }

// earned returns the CPU time of the run since it was last called.
func (m *workMeter) earned() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	earned := max(m.used()-m.credited, 0)
	m.credited += earned
	return earned
}

// threadCPUTime returns the CPU time that the calling thread has used.
func threadCPUTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // never fails
	return time.Duration(t.Nano())
}

// ThreadCPUTime returns the CPU time of a thread of this process; 0 if the thread is gone.
func ThreadCPUTime(tid int) time.Duration {
	const threadSchedClock = 2 | 4 // CPUCLOCK_SCHED and CPUCLOCK_PERTHREAD_MASK
	var t unix.Timespec
	if tid <= 0 || unix.ClockGettime(int32(^tid)<<3|threadSchedClock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
