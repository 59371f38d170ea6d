package supervisor

import (
	"context"
	"sync"
	"time"

	"glasshouse/sandbox/isolate"
)

// What ends a run from outside.
const (
	limitTime   = "max_execution_time"
	limitCancel = "cancel"
)

// cutter ends what runs in a process when its time is over or its context is
// cancelled: it interrupts, and kills after a grace.
type cutter struct {
	process *isolate.Process
	asking  context.Context // ends with either, so that queries are given up, too
	stopAsk context.CancelFunc
	release func() bool
	stood   time.Duration // how long the deadline has been held

	mu       sync.Mutex
	deadline *time.Timer
	until    time.Time // the deadline's
	by       string
	over     bool
	killed   bool
}

func newCutter(ctx context.Context, p *isolate.Process, limit time.Duration) *cutter {
	c := &cutter{process: p, until: time.Now().Add(limit)}
	c.asking, c.stopAsk = context.WithCancel(context.WithoutCancel(ctx))
	c.deadline = time.AfterFunc(limit, func() { c.cut(limitTime, timeoutGrace) })
	c.release = context.AfterFunc(ctx, func() { c.cut(limitCancel, cancelGrace) })
	return c
}

func (c *cutter) cut(why string, grace time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.by != "" {
		return
	}
	c.by = why
	c.stopAsk()
	c.process.Interrupt()
	time.AfterFunc(grace, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.over {
			c.killed = true
			c.process.Kill()
		}
	})
}

// interrupt ends an expression that runs while the program stands.
func (c *cutter) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over && c.by == "" {
		c.process.Interrupt()
	}
}

// throttle has the share of CPU hold again after an expression that was interrupted; a run
// that is to end needs what it was given for that.
func (c *cutter) throttle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == "" {
		c.process.RestoreCPULimit()
	}
}

// hold stops the clock until the func that it returns is called.
func (c *cutter) hold() (letGo func()) {
	began := time.Now()
	c.deadline.Stop()
	return func() {
		stood := time.Since(began)
		c.stood += stood
		c.until = c.until.Add(stood)
		c.deadline.Reset(max(time.Until(c.until), time.Millisecond))
	}
}

// stop ends the watch, and says what cut the run short, if anything, and whether the
// child was killed.
func (c *cutter) stop() (by string, killed bool) {
	c.deadline.Stop()
	c.release()
	c.stopAsk()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.by, c.killed
}
