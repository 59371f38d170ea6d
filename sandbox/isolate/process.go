package isolate

import (
	"container/list"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/isolate/zygote"
	"glasshouse/sandbox/protocol"
)

// Process is one child behind the isolation layers. The caller of Start closes it.
type Process struct {
	Conn           *protocol.Conn
	Stdout, Stderr *os.File    // read ends, which do not block; nil while the process is idle, see Wake
	SessionDir     *SessionDir // a caller that sets this to nil takes over the directory, and must close it
	Network        *os.File    // the listener in the child's network namespace, or nil
	FromPool       bool        // it was waiting when it was started

	mu     sync.Mutex // held while the pidfd is used or closed, because a closed descriptor's number is reused
	pidfd  int        // -1 after Close
	pid    int        // in the service's namespace
	zygote *zygote.Zygote
	env    *warmEnvironment // nil until the process is assigned to a sandbox
	pool   *zygotePool      // of env: it was taken from there; nil as long as env is
	group  *cgroup.Group    // nil on levels without

	givenDir    *SessionDir // the SessionDir that it was started with; its owner closes it
	enforcer    *limitEnforcer
	sharing     *cpuSharing // of the isolator; nil until the process is assigned to a sandbox
	user        string      // whose share of CPU time the process gets
	cpuPart     int         // the n of setCPUPart on levels without control groups
	cpuLifted   bool        // the CPU limit of the control group is off, so that an interrupted run can end
	neverFrozen bool        // a test leaves out the layer Freeze

	use      sync.Mutex   // held while isAwake changes, and while copies are given back
	isAwake  bool         // between Wake and Rest
	shareCPU atomic.Int64 // CPU time for giving back copies, in nanoseconds

	idlers  *idleProcesses
	idle    *list.Element // in idlers; nil: it is not idle, or its spare files are closed
	isGone  bool          // it is closed
	hasRun  bool          // it may have threads of user code
	outputs [2]fileID     // the pipes of Stdout and Stderr while these are nil

	released chan<- struct{} // Isolator.released
	late     *lateCleanups   // of the isolator
	begun    int64           // a number that is larger the later it began to run; guarded by sharing
	isVictim atomic.Bool     // killed because the guests together have no memory left

	done    chan struct{} // closed when the process has exited
	status  int           // wait status; valid after done
	cpuTime time.Duration // of its whole life; valid after done
	exited  sync.Once
	closed  sync.Once
}

// onExit is the process's zygote.ExitFunc.
func (p *Process) onExit(status int, cpuTime time.Duration) {
	p.exited.Do(func() {
		p.status, p.cpuTime = status, cpuTime
		close(p.done)
		p.Conn.CloseRead()
	})
}

// EnvironmentVersion returns the version of the environment that the process has.
func (p *Process) EnvironmentVersion() sandbox.EnvironmentVersion {
	return sandbox.EnvironmentVersion{Name: p.env.pinned.Name, Digest: p.env.pinned.Digest}
}

// Done returns a channel that is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

func (p *Process) hasExited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// cannotJoin is the exit status of a child that could not join its control groups. It is the
// same number as in the guest.
const cannotJoin = 73

func (p *Process) failedToJoin() bool {
	return p.hasExited() && unix.WaitStatus(p.status).ExitStatus() == cannotJoin
}

// Signal sends a signal to the process if it still exists. It may be called after Close.
func (p *Process) Signal(s unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, s, nil, 0)
	}
}

// Interrupt raises KeyboardInterrupt in the running code. It suspends the CPU limit until
// RestoreCPULimit, so that code that has used up its share can end.
func (p *Process) Interrupt() {
	if p.group != nil {
		p.cpuLifted = p.group.LiftCPU() == nil
	}
	if p.enforcer != nil {
		p.enforcer.liftCPU()
	}
	p.Signal(unix.SIGINT)
}

// Kill ends the process at once. User code can't prevent it.
func (p *Process) Kill() { p.Signal(unix.SIGKILL) }

// Freeze stops every thread of the process, until Thaw or Resume.
func (p *Process) Freeze() {
	defer p.sharing.end(p) // the process uses no CPU time now
	if p.enforcer != nil {
		p.enforcer.stop()
	}
	if !p.neverFrozen {
		p.Signal(unix.SIGSTOP)
	}
}

// EnforceLimits starts the enforcement of the limits of a run, including a CPU limit that an
// Interrupt suspended. Call it before sending the process a frame, because a process that was
// never frozen handles the frame at once.
func (p *Process) EnforceLimits() {
	p.sharing.begin(p)
	p.RestoreCPULimit()
	if p.enforcer != nil {
		p.enforcer.start()
	}
}

// RestoreCPULimit enforces the control group's CPU limit again after an Interrupt.
func (p *Process) RestoreCPULimit() {
	if p.cpuLifted {
		p.cpuLifted = p.group.RestoreCPU() != nil
	}
}

// Thaw ends a Freeze.
func (p *Process) Thaw() { p.Signal(unix.SIGCONT) }

// Resume ends a Freeze in the middle of a run. A CPU limit that an Interrupt suspended stays
// suspended in the control group.
func (p *Process) Resume() {
	p.sharing.begin(p)
	if p.enforcer != nil {
		p.enforcer.start()
	}
	p.Thaw()
}

// ExceededLimit returns the limit for which the service killed the process. It returns "" if
// the service did not kill it for a limit.
func (p *Process) ExceededLimit() string {
	if p.enforcer == nil {
		return ""
	}
	return p.enforcer.exceededLimit()
}

// EndedByMachineMemory is the value of EndedBy if the memory of all sandboxes together, or of the
// machine, ran out before the process reached its own limit.
const EndedByMachineMemory = "machine_memory"

// EndedBy returns the limit for which the kernel or the service killed the process, the
// name of a signal, or "exit". It is valid after Done.
func (p *Process) EndedBy() string {
	if limit := p.ExceededLimit(); limit != "" {
		return limit
	}
	if p.isVictim.Load() {
		return EndedByMachineMemory
	}
	if p.group != nil && p.group.OOMKills() > 0 {
		if p.group.IsFarFromLimit() {
			return EndedByMachineMemory
		}
		return "max_memory_mb"
	}
	if w := unix.WaitStatus(p.status); w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return "exit"
}

// CPU returns the CPU time that the process has used since its fork, without that for shareCopies.
func (p *Process) CPU() time.Duration {
	var used time.Duration
	if p.hasExited() {
		used = p.cpuTime // which is set before
	} else {
		used = procfs.CPUTime(p.pid)
	}
	return max(0, used-time.Duration(p.shareCPU.Load()))
}

// Memory returns the bytes of memory that the process does not share with its zygote. Without a
// control group it is an estimate.
func (p *Process) Memory() int64 {
	if p.group != nil {
		return p.group.Memory()
	}
	return procfs.HeldBy(p.pid).Beyond(p.zygote.Held) << 10
}

// Peak returns the largest value that Memory had. Without a control group it is the largest
// value that was measured.
func (p *Process) Peak() int64 {
	if p.group != nil {
		return p.group.PeakMemory()
	}
	if p.enforcer == nil {
		return p.Memory()
	}
	return max(p.Memory(), p.enforcer.peak())
}

// ThreadAndFileCounts returns how many threads and open files the process has.
func (p *Process) ThreadAndFileCounts() (threads, files int) {
	return procfs.CountThreads(p.pid), procfs.CountFiles(p.pid)
}

// ExitTimeout is how long Close waits for a killed process to exit.
const ExitTimeout = 10 * time.Second

// Close is CloseWithin with ExitTimeout.
func (p *Process) Close() { p.CloseWithin(ExitTimeout) }

// CloseWithin kills the process, waits until it has exited, and releases its resources. A process that has not exited
// within the timeout, as on an overloaded machine, runs no code any more. Its resources are released when it has.
func (p *Process) CloseWithin(timeout time.Duration) {
	p.closed.Do(func() {
		p.Kill()
		p.sharing.end(p)
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
		if p.hasExited() {
			p.release()
			return
		}
		p.idlers.remove(p, true)
		p.closeStreams() // who reads from them waits no longer
		notExited := fmt.Errorf("the killed process %d has not exited in time", p.pid)
		p.late.add(lateProcess, notExited, func() error {
			if !p.hasExited() {
				return notExited
			}
			p.release()
			return nil
		})
	})
}

// release releases the resources of a process that has exited.
func (p *Process) release() {
	if p.enforcer != nil {
		p.enforcer.stop()
	}
	p.waitForKernel()
	p.idlers.remove(p, true)
	p.closeFiles()
	if p.group != nil {
		if p.failedToJoin() { // a group that cannot be joined must not become a spare
			p.group.Remove()
		} else {
			p.group.Release()
		}
	}
	if p.env != nil {
		p.pool.inUse.Add(-1)
		p.env.release()
	}
	p.noteRelease()
}

// noteRelease makes one of the pools that lack something try again.
func (p *Process) noteRelease() {
	select {
	case p.released <- struct{}{}:
	default:
	}
}

// abandon releases the resources of a child whose fork failed. The fork may still succeed
// later.
func (p *Process) abandon() {
	p.closeFiles()
	if p.group != nil {
		p.group.Remove()
	}
}

// waitForKernel waits until the kernel has removed the process. When a zygote dies, all its
// children are reported as killed, but without a pid namespace they die slightly later.
func (p *Process) waitForKernel() {
	fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	for p.pidfd >= 0 {
		n, err := unix.Poll(fds, int(ExitTimeout.Milliseconds()))
		if n > 0 || err != unix.EINTR {
			return
		}
	}
}

// closeFiles closes the service's descriptors, and the session directory unless a caller has
// taken it over.
func (p *Process) closeFiles() {
	p.closeStreams()
	p.mu.Lock()
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
		p.pidfd = -1
	}
	p.mu.Unlock()
	if p.SessionDir != nil && p.SessionDir != p.givenDir {
		p.SessionDir.Close()
	}
}

// closeStreams closes the service's ends of the connections to the process. Another call does nothing.
func (p *Process) closeStreams() {
	_ = p.Conn.Close()
	for _, f := range []*os.File{p.Stdout, p.Stderr, p.Network} {
		if f != nil {
			_ = f.Close()
		}
	}
}
