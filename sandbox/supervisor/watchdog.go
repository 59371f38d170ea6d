package supervisor

import (
	"cmp"
	"context"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// The reasons for which the watchdog ends a run. Clients see these values in Usage.EndedBy.
const (
	endedByTimeout = "max_execution_time"
	endedByCancel  = "cancel"
)

// How long an interrupted run may take to end before it is killed.
const (
	timeoutGracePeriod = 300 * time.Millisecond
	cancelGracePeriod  = 30 * time.Millisecond
)

// runEnd is the report of a watchdog about a run that has ended.
type runEnd struct {
	by     string        // endedByTimeout, endedByCancel, or "" if the run ended by itself
	killed bool          // the process was killed after its grace period
	held   time.Duration // how long the deadline was suspended
}

// watchdog ends a run at its deadline or when its context is cancelled: it interrupts the
// process, and kills it after a grace period.
type watchdog struct {
	process  *isolate.Process
	caller   context.Context // its end cancels the run
	requests context.Context // for the code's requests; ends when the watchdog interrupts the run
	cancel   context.CancelFunc
	onEnd    func()        // called when the run is interrupted, and when it is over
	release  func() bool   // stops watching the caller's context
	stopped  chan struct{} // closed by stop; nil: nobody waits for it

	mu       sync.Mutex
	timer    *time.Timer
	kill     *time.Timer // at the end of the grace period; nil before the run is interrupted
	deadline time.Time
	end      runEnd
	over     bool
}

// newWatchdog starts the watchdog of a run that may take as long as limit, and a CancelTimeout after its last
// interrupt. It calls onEnd, which does not wait, when it interrupts the run and when it is stopped. A
// context.AfterFunc would start a goroutine in each run.
func newWatchdog(
	ctx context.Context, process *isolate.Process, limit time.Duration, request sandbox.Request, onEnd func(),
) *watchdog {
	w := &watchdog{
		process: process, caller: ctx, onEnd: onEnd, deadline: time.Now().Add(limit),
	}
	if request.Interrupts != nil {
		w.stopped = make(chan struct{})
	}
	w.requests, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.timer = time.AfterFunc(limit, func() { w.endRun(endedByTimeout, timeoutGracePeriod) })
	w.release = context.AfterFunc(ctx, func() {
		gracePeriod := cmp.Or(request.CancelTimeout, cancelGracePeriod)
		if sandbox.FaultOf(context.Cause(ctx)) == sandbox.FaultLimit {
			gracePeriod = timeoutGracePeriod
		}
		w.endRun(endedByCancel, gracePeriod)
		w.interruptAgain(request.Interrupts, gracePeriod)
	})
	return w
}

func (w *watchdog) endRun(by string, gracePeriod time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.end.by != "" {
		return
	}
	w.end.by = by
	w.cancel()
	w.onEnd()
	w.process.Interrupt()
	w.kill = time.AfterFunc(gracePeriod, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.over {
			w.end.killed = true
			w.process.Kill()
		}
	})
}

// interruptAgain interrupts a cancelled run at each value of interrupts, because code may catch an interrupt and go on.
// It gives the code another grace period each time, up to the time limit of the run, and returns when the run is over.
func (w *watchdog) interruptAgain(interrupts <-chan struct{}, gracePeriod time.Duration) {
	if interrupts == nil {
		return
	}
	for {
		select {
		case <-interrupts:
		case <-w.stopped:
			return
		}
		w.mu.Lock()
		if left := time.Until(w.deadline); !w.over && w.end.by == endedByCancel {
			w.process.Interrupt()
			if left > 0 && w.kill.Stop() {
				w.kill.Reset(min(gracePeriod, left))
			}
		}
		w.mu.Unlock()
	}
}

// interrupt interrupts a command of the debugger that takes too long.
func (w *watchdog) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over && w.end.by == "" {
		w.process.Interrupt()
	}
}

// throttle restores the CPU limit that an interrupt lifted, unless the watchdog is ending the
// run, which needs that CPU time.
func (w *watchdog) throttle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.by == "" {
		w.process.RestoreCPULimit()
	}
}

// hold suspends the deadline until resume is called.
func (w *watchdog) hold() (resume func()) {
	began := time.Now()
	w.timer.Stop()
	return func() {
		held := time.Since(began)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end.held += held
		w.deadline = w.deadline.Add(held)
		w.timer.Reset(max(time.Until(w.deadline), time.Millisecond))
	}
}

// stop ends the watchdog and returns its report. died says that the guest ended without an answer. If the caller's
// context has ended as well, that is why, even if the function that watches the context has not yet run.
func (w *watchdog) stop(died bool) runEnd {
	w.timer.Stop()
	w.release()
	w.cancel()
	w.onEnd()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.stopped != nil {
		close(w.stopped)
	}
	if died && w.end.by == "" && w.caller.Err() != nil {
		w.end.by = endedByCancel
	}
	return w.end
}
