package isolate

import (
	"sync"
	"time"
)

// lateInterval is the time between two attempts of a late cleanup.
const lateInterval = time.Second

// lateKind is what a late cleanup removes.
type lateKind string

const (
	lateProcess lateKind = "process" // that was killed and has not exited
	lateFolder  lateKind = "folder"  // of a session, on levels without private mounts
)

// lateCleanups remove in the background what the Close of a process or of a session directory could not remove, for
// example because the machine is overloaded or the service has no file descriptor left.
type lateCleanups struct {
	log func(format string, args ...any)

	mu       sync.Mutex
	waiting  map[lateKind][]func() error
	isClosed bool
	stopping chan struct{}  // closed by close
	running  sync.WaitGroup // one goroutine, while something waits
}

func newLateCleanups(log func(format string, args ...any)) *lateCleanups {
	return &lateCleanups{log: log, waiting: map[lateKind][]func() error{}, stopping: make(chan struct{})}
}

// add calls remove every lateInterval until it returns nil. It logs the reason, unless others of the kind wait already.
// After close it calls remove once.
func (c *lateCleanups) add(kind lateKind, reason error, remove func() error) {
	c.mu.Lock()
	if c.isClosed {
		c.mu.Unlock()
		_ = remove()
		return
	}
	defer c.mu.Unlock()
	if len(c.waiting[kind]) == 0 {
		c.log("%v: it is removed later, and others that are late meanwhile are only counted", reason)
	}
	if c.total() == 0 {
		c.running.Go(c.run)
	}
	c.waiting[kind] = append(c.waiting[kind], remove)
}

// total returns how many cleanups wait. The caller holds mu.
func (c *lateCleanups) total() (n int) {
	for _, removes := range c.waiting {
		n += len(removes)
	}
	return n
}

// counts returns how many cleanups wait, by kind.
func (c *lateCleanups) counts() map[lateKind]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[lateKind]int{lateProcess: len(c.waiting[lateProcess]), lateFolder: len(c.waiting[lateFolder])}
}

// run tries until nothing waits or close is called.
func (c *lateCleanups) run() {
	ticker := time.NewTicker(lateInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.stopping:
			return
		}
		if !c.try() {
			return
		}
	}
}

// try tries all cleanups once. It reports whether some wait still.
func (c *lateCleanups) try() bool {
	c.mu.Lock()
	before := make(map[lateKind][]func() error, len(c.waiting))
	for kind, removes := range c.waiting {
		before[kind] = removes
	}
	c.mu.Unlock()
	for kind, removes := range before {
		var left []func() error
		for _, remove := range removes {
			if remove() != nil {
				left = append(left, remove)
			}
		}
		c.mu.Lock()
		c.waiting[kind] = append(left, c.waiting[kind][len(removes):]...) // with those that were added meanwhile
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total() > 0
}

// close stops the attempts after a last one.
func (c *lateCleanups) close() {
	c.mu.Lock()
	if c.isClosed {
		c.mu.Unlock()
		return
	}
	c.isClosed = true
	close(c.stopping)
	c.mu.Unlock()
	c.running.Wait()
	c.try()
}
