package dbaccess

import (
	"sync"
	"time"
)

const (
	// minMeasuredWork is the time after which the CPU time of a statement is read. Reading it takes about 20 µs.
	minMeasuredWork = 20 * time.Millisecond
	// maxChargedWork bounds the time that a user is charged for a statement. After some long statements, while another
	// user does little, the next one then waits for seconds and not for minutes.
	maxChargedWork = time.Second
)

// measureWork measures a statement that begins in the server's process with a pid. work returns for how much CPU time
// the user is charged: the time that the statement took, if that is short; else the CPU time of the process, as a long
// statement may wait for a lock or a disk. If that is not known, it is minMeasuredWork.
func (r *Reader) measureWork(pid uint32) (work func() time.Duration) {
	began := time.Now()
	if r.config.CPUTime == nil {
		return func() time.Duration { return min(time.Since(began), minMeasuredWork) }
	}
	var mu sync.Mutex
	var before time.Duration
	var isKnown bool
	timer := time.AfterFunc(minMeasuredWork, func() {
		mu.Lock()
		defer mu.Unlock()
		before, isKnown = r.config.CPUTime(pid)
	})
	return func() time.Duration {
		if timer.Stop() {
			return time.Since(began)
		}
		mu.Lock()
		defer mu.Unlock()
		after, isKnownNow := r.config.CPUTime(pid)
		if !isKnown || !isKnownNow {
			return minMeasuredWork
		}
		return min(minMeasuredWork+after-before, maxChargedWork)
	}
}
