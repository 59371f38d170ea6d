package isolate

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pulse is how often a running child is looked at where the kernel has no means, at
// this level, to hold it to a limit.
const pulse = 50 * time.Millisecond

// warden holds one running child to what the kernel can't hold it to here. A
// goroutine of it looks while the child runs: it stops the child for the rest of a
// second whose share of CPU is used up, and kills it for too many threads or for too
// much in its folder.
type warden struct {
	p       *Process
	share   int    // of CPU, in percent
	threads int    // at the most; -1 where the kernel counts them
	dir     string // to measure; "" where the kernel does
	most    extent // of dir

	mu      sync.Mutex
	stop    chan struct{} // closed when the run is over; nil between runs
	stopped bool          // the child is, by us
	lifted  bool          // no share of CPU until the next run
	broke   string        // the limit that it was killed for
	second  time.Time     // when the one began that is counted now
	used    time.Duration // CPU time before it
	allowed extent        // most, or what there was before the run where that is more
	next    time.Time     // when dir is measured again
}

// watch begins to look after a run.
func (w *warden) watch() {
	if w.dir != "" {
		w.allowed, w.next = w.most, time.Now()
		if now, err := measure(w.dir, 2*w.most.files); err == nil {
			w.allowed = extent{max(now.bytes, w.most.bytes), max(now.files, w.most.files)}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lifted = false
	if w.stop != nil {
		return
	}
	w.stop = make(chan struct{})
	go w.run(w.stop)
}

func (w *warden) run(stop chan struct{}) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.look()
		case <-stop:
			return
		case <-w.p.done:
			return
		}
	}
}

// rest ends the looking, with a last look: when it returns, no signal of ours is to come.
func (w *warden) rest() {
	w.mu.Lock()
	running := w.stop != nil
	if running {
		close(w.stop)
		w.stop, w.stopped = nil, false
	}
	w.mu.Unlock()
	if running && w.dir != "" && !w.p.over() {
		w.next = time.Time{}
		w.size()
	}
}

// lift lets an interrupted run have all the CPU that there is, to end.
func (w *warden) lift() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lifted = true
	w.wake()
}

func (w *warden) overstepped() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broke
}

func (w *warden) look() {
	w.mu.Lock()
	if w.stop == nil {
		w.mu.Unlock()
		return
	}
	w.throttle(time.Now())
	if w.threads >= 0 {
		if tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(w.p.pid) + "/task"); len(tasks) > w.threads {
			w.end("max_threads")
		}
	}
	w.mu.Unlock()
	w.size()
}

// throttle stops the child where it has had its share of this second, and lets it go
// on with the next. The caller holds w.mu.
func (w *warden) throttle(now time.Time) {
	used := cpuOf(w.p.pid)
	if now.Sub(w.second) >= time.Second {
		w.second, w.used = now, used
		w.wake()
	}
	if !w.stopped && !w.lifted && used-w.used >= time.Duration(w.share)*time.Second/100 {
		w.stopped = true
		w.p.Signal(unix.SIGSTOP)
	}
}

func (w *warden) wake() {
	if w.stopped {
		w.stopped = false
		w.p.Signal(unix.SIGCONT)
	}
}

// size measures the folder, as often as costs a tenth of a core at the most.
func (w *warden) size() {
	began := time.Now()
	if w.dir == "" || began.Before(w.next) {
		return
	}
	now, err := measure(w.dir, w.allowed.files)
	w.next = time.Now().Add(10 * time.Since(began))
	if err == nil && now.bytes <= w.allowed.bytes && now.files <= w.allowed.files {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.files > w.allowed.files {
		w.end("workspace_max_inodes")
	} else {
		w.end("workspace_max_bytes")
	}
}

// end kills the child for a limit. The caller holds w.mu.
func (w *warden) end(limit string) {
	if w.broke == "" {
		w.broke = limit
	}
	w.p.Kill()
}
