package isolate

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/filetree"
	"glasshouse/sandbox/isolate/procfs"
)

// measureInterval is how often a limitEnforcer measures a running process.
const measureInterval = 50 * time.Millisecond

// limitEnforcer enforces the limits of one process that the kernel does not enforce on this
// level. When the process has used up its CPU share of a second, limitEnforcer stops it for
// the rest of that second. It kills the process for too much memory, too many threads or too
// large folders. RLIMIT_DATA bounds most memory exactly, but it counts neither page tables, nor
// memory that became read-only after it was written, nor stacks.
type limitEnforcer struct {
	process    *Process
	cpuPercent int               // of one core
	maxMemory  int64             // in bytes
	maxThreads int               // -1 if the kernel enforces the limit
	folders    []*measuredFolder // none if the kernel enforces their size

	nextMeasure time.Time // when to measure the folders again; used by one goroutine at a time

	mu         sync.Mutex
	stopping   chan struct{} // closed to end the goroutine; nil between runs
	stopped    chan struct{} // closed when the goroutine has ended
	isStopped  bool          // the enforcer has sent SIGSTOP
	cpuLifted  bool          // no CPU limit until the next run
	exceeded   string        // the limit for which the enforcer killed the process
	second     time.Time     // when the current second began
	usedBefore time.Duration // CPU time before the current second
	peakMemory int64         // the most memory that was measured, in bytes
}

// measuredFolder is a folder that a process writes to.
type measuredFolder struct {
	path    string
	limit   filetree.Size
	allowed filetree.Size // the limit, or the size before the run if that is larger
}

// start starts the enforcement of the limits of a run.
func (e *limitEnforcer) start() {
	e.stop()
	e.nextMeasure = time.Time{}
	for _, f := range e.folders {
		f.allowed = f.limit
		if size, err := filetree.Measure(f.path, 2*f.limit.Files); err == nil {
			f.allowed = filetree.Size{Bytes: max(size.Bytes, f.limit.Bytes), Files: max(size.Files, f.limit.Files)}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cpuLifted = false
	e.stopping, e.stopped = make(chan struct{}), make(chan struct{})
	go e.run(e.stopping, e.stopped)
}

func (e *limitEnforcer) run(stopping, stopped chan struct{}) {
	defer close(stopped)
	tick := time.NewTicker(measureInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.measure()
		case <-stopping:
			return
		case <-e.process.done:
			return
		}
	}
}

// stop measures memory and folders one last time. After it returns, the enforcer sends no signals.
func (e *limitEnforcer) stop() {
	e.mu.Lock()
	stopping, stopped := e.stopping, e.stopped
	e.stopping, e.isStopped = nil, false
	e.mu.Unlock()
	if stopping == nil {
		return
	}
	close(stopping)
	<-stopped
	if !e.process.hasExited() {
		e.mu.Lock()
		e.enforceMemory()
		e.mu.Unlock()
		e.measureFolders()
	}
}

// liftCPU suspends the CPU limit for the rest of the run, so that an interrupted run can
// end.
func (e *limitEnforcer) liftCPU() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cpuLifted = true
	e.wake()
}

func (e *limitEnforcer) exceededLimit() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.exceeded
}

func (e *limitEnforcer) measure() {
	e.mu.Lock()
	if e.stopping == nil {
		e.mu.Unlock()
		return
	}
	e.enforceCPU(time.Now())
	e.enforceMemory()
	if e.maxThreads >= 0 && procfs.CountThreads(e.process.pid) > e.maxThreads {
		e.kill("max_threads")
	}
	e.mu.Unlock()
	if began := time.Now(); !began.Before(e.nextMeasure) {
		e.measureFolders()
		e.nextMeasure = time.Now().Add(10 * time.Since(began)) // at most a tenth of a core
	}
}

// peak returns the most memory that was measured, in bytes.
func (e *limitEnforcer) peak() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peakMemory
}

// enforceMemory kills the process if it has more memory than its limit. The caller holds e.mu.
func (e *limitEnforcer) enforceMemory() {
	held := e.process.Memory()
	e.peakMemory = max(e.peakMemory, held)
	if held > e.maxMemory {
		e.kill("max_memory_mb")
	}
}

// enforceCPU stops the process if it has used up its share of the current second, and
// continues it in the next second. The caller holds e.mu.
func (e *limitEnforcer) enforceCPU(now time.Time) {
	used := procfs.CPUTime(e.process.pid)
	if now.Sub(e.second) >= time.Second {
		e.second, e.usedBefore = now, used
		e.wake()
	}
	if !e.isStopped && !e.cpuLifted && used-e.usedBefore >= time.Duration(e.cpuPercent)*time.Second/100 {
		e.isStopped = true
		e.process.Signal(unix.SIGSTOP)
	}
}

func (e *limitEnforcer) wake() {
	if e.isStopped {
		e.isStopped = false
		e.process.Signal(unix.SIGCONT)
	}
}

func (e *limitEnforcer) measureFolders() {
	for _, f := range e.folders {
		size, err := filetree.Measure(f.path, f.allowed.Files)
		if err == nil && size.Bytes <= f.allowed.Bytes && size.Files <= f.allowed.Files {
			continue
		}
		e.mu.Lock()
		if size.Files > f.allowed.Files {
			e.kill("workspace_max_inodes")
		} else {
			e.kill("workspace_max_bytes")
		}
		e.mu.Unlock()
	}
}

// kill kills the process for a limit. The caller holds e.mu.
func (e *limitEnforcer) kill(limit string) {
	if e.exceeded == "" {
		e.exceeded = limit
	}
	e.process.Kill()
}
