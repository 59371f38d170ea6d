package isolate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/hatch"
)

// Process is one child behind the wall. Who got it must Close it.
type Process struct {
	Hatch          *hatch.Conn
	Stdout, Stderr *os.File // read ends, non-blocking

	pidfd  int
	pid    int // as the host sees it
	group  *cgroup
	baseKB int64 // what it shared with the zygote at birth

	done   chan struct{} // closed when it has exited
	status int           // wait status, valid once done is closed
	once   sync.Once
	closed sync.Once
}

func (p *Process) exited(status int) {
	p.once.Do(func() {
		p.status = status
		close(p.done)
	})
}

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process, if it is still there.
func (p *Process) Signal(s unix.Signal) { _ = unix.PidfdSendSignal(p.pidfd, s, nil, 0) }

// Interrupt asks the running code to end (KeyboardInterrupt).
func (p *Process) Interrupt() { p.Signal(unix.SIGINT) }

// Kill ends the process at once; nothing in it can refuse.
func (p *Process) Kill() { p.Signal(unix.SIGKILL) }

// Freeze stops every thread of it; Thaw lets them go on.
func (p *Process) Freeze() { p.Signal(unix.SIGSTOP) }

// Thaw ends a Freeze.
func (p *Process) Thaw() { p.Signal(unix.SIGCONT) }

// Ended says how the process ended: "max_memory_mb" where the kernel killed it
// for want of memory, else a signal's name, or "exit". Only after Done.
func (p *Process) Ended() string {
	if p.group != nil && p.group.oomKills() > 0 {
		return "max_memory_mb"
	}
	if w := unix.WaitStatus(p.status); w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return "exit"
}

// Used is what the process has used since its birth, as the kernel counted it:
// CPU time, and now and peak memory of its own in bytes.
func (p *Process) Used() (cpu time.Duration, now, peak int64) {
	if p.group != nil {
		now, peak = p.group.memory()
		return p.group.cpu(), now, peak
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/stat")
	if i := strings.LastIndexByte(string(stat), ')'); i > 0 {
		if f := strings.Fields(string(stat[i+1:])); len(f) > 12 {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			cpu = time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
		}
	}
	// The high-water mark less what came from the warm interpreter: an estimate.
	now = max(0, statusKB(p.pid, "VmRSS:")-p.baseKB) << 10
	peak = max(0, statusKB(p.pid, "VmHWM:")-p.baseKB) << 10
	return cpu, now, peak
}

// Counts is how many threads and open files the process has now.
func (p *Process) Counts() (threads, files int) {
	proc := "/proc/" + strconv.Itoa(p.pid)
	tasks, _ := os.ReadDir(proc + "/task")
	fds, _ := os.ReadDir(proc + "/fd")
	return len(tasks), len(fds)
}

// Close kills the process and waits until it and its cgroup are gone.
func (p *Process) Close() error {
	var err error
	p.closed.Do(func() {
		p.Kill()
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			err = fmt.Errorf("process %d did not die within 10 s", p.pid)
		}
		_ = p.Hatch.Close()
		_ = p.Stdout.Close()
		_ = p.Stderr.Close()
		_ = unix.Close(p.pidfd)
		if p.group != nil {
			if e := p.group.remove(); err == nil {
				err = e
			}
		}
	})
	return err
}
