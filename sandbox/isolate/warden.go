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
	share   int     // of CPU, in percent
	threads int     // at the most; -1 where the kernel counts them
	yards   []*yard // folders to measure; none where the kernel does

	mu      sync.Mutex
	stop    chan struct{} // closed when the run is over; nil between runs
	ended   chan struct{} // closed when nobody looks any more
	stopped bool          // the child is, by us
	lifted  bool          // no share of CPU until the next run
	broke   string        // the limit that it was killed for
	second  time.Time     // when the one began that is counted now
	used    time.Duration // CPU time before it
	next    time.Time     // when the yards are measured again
}

// yard is a folder that a child writes to.
type yard struct {
	dir           string
	most, allowed extent // allowed is most, or what there was before the run where that is more
}

// watch begins to look after a run.
func (w *warden) watch() {
	w.rest()
	w.next = time.Time{}
	for _, y := range w.yards {
		y.allowed = y.most
		if now, err := measure(y.dir, 2*y.most.files); err == nil {
			y.allowed = extent{max(now.bytes, y.most.bytes), max(now.files, y.most.files)}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lifted = false
	w.stop, w.ended = make(chan struct{}), make(chan struct{})
	go w.run(w.stop, w.ended)
}

func (w *warden) run(stop, ended chan struct{}) {
	defer close(ended)
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
	stop, ended := w.stop, w.ended
	w.stop, w.stopped = nil, false
	w.mu.Unlock()
	if stop == nil {
		return
	}
	close(stop)
	<-ended
	if !w.p.over() {
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
	if began := time.Now(); !began.Before(w.next) {
		w.size()
		w.next = time.Now().Add(10 * time.Since(began)) // a tenth of a core at the most
	}
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

// size measures the folders.
func (w *warden) size() {
	for _, y := range w.yards {
		now, err := measure(y.dir, y.allowed.files)
		if err == nil && now.bytes <= y.allowed.bytes && now.files <= y.allowed.files {
			continue
		}
		w.mu.Lock()
		if now.files > y.allowed.files {
			w.end("workspace_max_inodes")
		} else {
			w.end("workspace_max_bytes")
		}
		w.mu.Unlock()
	}
}

// end kills the child for a limit. The caller holds w.mu.
func (w *warden) end(limit string) {
	if w.broke == "" {
		w.broke = limit
	}
	w.p.Kill()
}
