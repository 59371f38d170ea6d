package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// Process is one child behind the wall. Who got it must Close it.
type Process struct {
	Conn           *protocol.Conn
	Stdout, Stderr *os.File    // read ends, non-blocking
	SessionDir     *SessionDir // its files, which may outlive it: who takes it, by setting nil, must Close it
	Network        *os.File    // the listener of its own network; nil where it has none

	mu      sync.Mutex // held while the pidfd is used or closed: its number is soon another process's
	pidfd   int        // -1: closed
	pid     int        // as the host sees it
	group   *cgroup
	baseKB  int64       // resident memory that it shared with the zygote at birth
	dataKB  int64       // private writable memory then
	lifted  bool        // the CPU quota is off, so that an interrupted run can end
	given   *SessionDir // the Home that it was started with, which is another's to close
	from    *zygote
	edition *edition // nil until it is given to a sandbox
	warden  *warden  // looks after limits that the kernel can't hold here; or nil

	restless bool // never frozen: a test left that wall out

	done   chan struct{} // closed when it has exited
	status int           // wait status, valid once done is closed
	spent  time.Duration // CPU time of its whole life, likewise
	once   sync.Once
	closed sync.Once
}

func (p *Process) exited(status int, spent time.Duration) {
	p.once.Do(func() {
		p.status, p.spent = status, spent
		close(p.done)
		p.Conn.CloseRead()
	})
}

// lockTime is how long a child may take to lock itself down.
const lockTime = 10 * time.Second

// lock has the child lock itself down, with an earlier child's mounts of /session and
// /data where there are any, as it was told at its birth or is now, and takes what it hands back: descriptors of its own,
// none where there are no private mounts, and the listener of its network where it
// has one.
func (p *Process) lock(ctx context.Context, enter protocol.Enter, told bool, mounts ...int) (own []int, err error) {
	if told {
		err = p.Conn.WriteGo()
	} else {
		err = p.Conn.Write(protocol.KindEnter, enter, mounts...)
	}
	if err != nil {
		return nil, err
	}
	limit := lockTime
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	ready, fds, err := p.Conn.ReadReady(limit)
	if err != nil && ctx.Err() != nil {
		err = full(err)
	}
	want := 0
	if enter.Folder == "" {
		want += 2
	}
	if enter.Network != nil {
		want++
	}
	if err == nil && ready.Error != "" {
		err = errors.New(ready.Error)
	} else if err == nil && len(fds) != want {
		err = fmt.Errorf("%d descriptors came with ready, not %d", len(fds), want)
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return nil, err
	}
	if enter.Network != nil {
		want--
		p.Network = os.NewFile(uintptr(fds[want]), "network")
	}
	return fds[:want], nil
}

// EnvironmentVersion is the environment that it has, as it was when it was started.
func (p *Process) EnvironmentVersion() sandbox.EnvironmentVersion {
	return sandbox.EnvironmentVersion{Name: p.edition.held.Name, Digest: p.edition.held.Digest}
}

// over says whether it has exited.
func (p *Process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// noGroup is how a child leaves that could not join its control groups (syscall_batch.c and
// nursery.py have the same).
const noGroup = 73

func (p *Process) unjoined() bool {
	return p.over() && unix.WaitStatus(p.status).ExitStatus() == noGroup
}

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process, if it is still there. It may come after Close.
func (p *Process) Signal(s unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd >= 0 {
		_ = unix.PidfdSendSignal(p.pidfd, s, nil, 0)
	}
}

// Interrupt asks the running code to end (KeyboardInterrupt). What had used up its
// share of this second gets CPU time to do so, until the next Thaw.
func (p *Process) Interrupt() {
	if p.group != nil {
		p.lifted = p.group.unthrottle() == nil
	}
	if p.warden != nil {
		p.warden.lift()
	}
	p.Signal(unix.SIGINT)
}

// Kill ends the process at once; nothing in it can refuse.
func (p *Process) Kill() { p.Signal(unix.SIGKILL) }

// Freeze stops every thread of it; Guard and Thaw let them go on.
func (p *Process) Freeze() {
	if p.warden != nil {
		p.warden.rest()
	}
	if !p.restless {
		p.Signal(unix.SIGSTOP)
	}
}

// EnforceLimits has the limits hold that an Interrupt lifted, and begins to measure it where the
// service holds it to some. It comes before anything that the process is given to do, as
// one that has never been frozen acts on that at once.
func (p *Process) EnforceLimits() {
	p.RestoreCPULimit()
	if p.warden != nil {
		p.warden.watch()
	}
}

// RestoreCPULimit has its share of CPU hold again, where an Interrupt lifted it in the control group.
func (p *Process) RestoreCPULimit() {
	if p.lifted {
		p.lifted = p.group.throttle() != nil
	}
}

// Thaw ends a Freeze.
func (p *Process) Thaw() { p.Signal(unix.SIGCONT) }

// Resume ends a Freeze in the middle of a run. The share of CPU that an Interrupt lifted from its
// control group stays lifted, until Throttle.
func (p *Process) Resume() {
	if p.warden != nil {
		p.warden.watch()
	}
	p.Thaw()
}

// ExceededLimit is the limit that the process went beyond where the service, not the
// kernel, holds it to that limit, and for which it was killed; else "".
func (p *Process) ExceededLimit() string {
	if p.warden == nil {
		return ""
	}
	return p.warden.overstepped()
}

// EndedBy says how the process ended: the limit for which the kernel or the service
// killed it, else a signal's name, or "exit". Only after Done.
func (p *Process) EndedBy() string {
	if by := p.ExceededLimit(); by != "" {
		return by
	}
	if p.group != nil && p.group.oomKills() > 0 {
		return "max_memory_mb"
	}
	if w := unix.WaitStatus(p.status); w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return "exit"
}

// CPU is the time that the process has used since its birth, as the kernel counts it.
func (p *Process) CPU() time.Duration {
	if p.over() {
		return p.spent
	}
	return cpuOf(p.pid)
}

// Memory is what the process has of its own, in bytes, as the kernel counts it.
func (p *Process) Memory() int64 {
	if p.group != nil {
		return p.group.memory()
	}
	return p.own("VmRSS:")
}

// Peak is the most memory of its own that the process had, in bytes.
func (p *Process) Peak() int64 {
	if p.group != nil {
		return p.group.peak()
	}
	return p.own("VmHWM:")
}

// own is a mark of /proc/PID/status less what came from the warm interpreter, in
// bytes: an estimate.
func (p *Process) own(mark string) int64 { return max(0, statusKB(p.pid, mark)-p.baseKB) << 10 }

// cpuOf is the CPU time of all threads that a process has and had, by its CPU-time
// clock, whose number is made from the pid (clock_getcpuclockid(3)); 0 where it is
// gone.
func cpuOf(pid int) time.Duration {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	var t unix.Timespec
	if pid <= 0 || unix.ClockGettime(int32(^pid)<<3|schedClock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// ThreadAndFileCounts is how many threads and open files the process has now.
func (p *Process) ThreadAndFileCounts() (threads, files int) {
	proc := "/proc/" + strconv.Itoa(p.pid)
	tasks, _ := os.ReadDir(proc + "/task")
	fds, _ := os.ReadDir(proc + "/fd")
	return len(tasks), len(fds)
}

// Close kills the process and waits until it is gone, and its cgroup, too, or free for another.
func (p *Process) Close() error {
	var err error
	p.closed.Do(func() {
		p.Kill()
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			err = fmt.Errorf("process %d did not die within 10 s", p.pid)
		}
		if p.warden != nil {
			p.warden.rest()
		}
		p.gone()
		if e := p.letGo(); err == nil {
			err = e
		}
		if p.group != nil {
			if e := p.group.end(!p.unjoined()); err == nil {
				err = e
			}
		}
		if p.edition != nil {
			p.edition.leave()
		}
	})
	return err
}

// unborn lets go of what was made for a child that did not come, or may come too late.
func (p *Process) unborn() error {
	err := p.letGo()
	if p.group != nil {
		err = errors.Join(err, p.group.abandon())
	}
	return err
}

// gone waits until the kernel, too, says that the process is no more: a zygote that
// died said so of all its children, which without a pid namespace die a little later.
func (p *Process) gone() {
	for wait := (10 * time.Second); p.pidfd >= 0; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}, int(wait.Milliseconds()))
		if n > 0 || err != unix.EINTR {
			return
		}
	}
}

// letGo closes our ends, and the Home where nobody took it.
func (p *Process) letGo() (err error) {
	_ = p.Conn.Close()
	for _, f := range []*os.File{p.Stdout, p.Stderr, p.Network} {
		if f != nil {
			_ = f.Close()
		}
	}
	p.mu.Lock()
	if p.pidfd >= 0 {
		_ = unix.Close(p.pidfd)
		p.pidfd = -1
	}
	p.mu.Unlock()
	if p.SessionDir != nil && p.SessionDir != p.given {
		err = p.SessionDir.Close()
	}
	return err
}
