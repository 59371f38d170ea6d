package run

import (
	"slices"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// Bounds of the event logs of ended executions, which are kept for readers that lost their connection.
const (
	eventLogAge   = 5 * time.Minute
	eventLogBytes = 64 << 20 // of all of them, approximately
)

// eventLogs has the event logs of executions that run, and of those that have ended and were read. The zero value is
// empty. It is safe for concurrent use.
type eventLogs struct {
	mu    sync.Mutex
	of    map[string]*keptLog // by execution
	ended []*keptLog          // those of ended executions, in the order of their ends
	bytes int                 // approximate size of the ended ones
}

// keptLog is an event log in eventLogs.
type keptLog struct {
	*EventLog
	isFollowed bool // somebody has it
	endedAt    time.Time
}

// keep adds the log of an execution that begins, which is not on record yet. isFollowed says that somebody has it
// already.
func (k *eventLogs) keep(e *sandbox.Execution, owner string, l *EventLog, isFollowed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.id, l.owner = e.ID, owner
	if k.of == nil {
		k.of = map[string]*keptLog{}
	}
	k.of[e.ID] = &keptLog{EventLog: l, isFollowed: isFollowed}
}

// follow returns the log of an execution; nil: there is none.
func (k *eventLogs) follow(execution string) *EventLog {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.of[execution]
	if kept == nil {
		return nil
	}
	kept.isFollowed = true
	return kept.EventLog
}

// forgetUnfollowed removes the log of an execution that ends, if nobody has it, and reports whether it did.
func (k *eventLogs) forgetUnfollowed(execution string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.of[execution]
	if kept != nil && kept.isFollowed {
		return false
	}
	delete(k.of, execution)
	return true
}

// end ends a log with the execution, or with the service's error if it did not run the code. A log that is kept is then
// one of an ended execution. Over is closed last, so the logs end here in the order in which others see it.
func (k *eventLogs) end(l *EventLog, e *sandbox.Execution, err error, now time.Time) {
	defer close(l.over)
	l.end(e, err)
	begun, _ := l.Execution()
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.of[l.id]
	if begun == nil { // it was never on record
		delete(k.of, l.id)
	}
	if begun == nil || kept == nil {
		return
	}
	kept.endedAt = now
	k.ended = append(k.ended, kept)
	k.bytes += kept.size()
	k.removeOld(now)
}

// remove removes the logs of ended executions that are too old.
func (k *eventLogs) remove(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removeOld(now)
}

// removeOld removes the logs that are older than eventLogAge, and then the logs that ended first until the rest is
// within eventLogBytes. The caller holds mu.
func (k *eventLogs) removeOld(now time.Time) {
	for len(k.ended) > 0 && (k.bytes > eventLogBytes || now.Sub(k.ended[0].endedAt) >= eventLogAge) {
		k.bytes -= k.ended[0].size()
		delete(k.of, k.ended[0].id)
		k.ended = k.ended[1:]
	}
}

// forget removes the logs of ended executions that are erased.
func (k *eventLogs) forget(isErased func(execution, user string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = slices.DeleteFunc(k.ended, func(kept *keptLog) bool {
		if e, _ := kept.Execution(); e == nil || !isErased(kept.id, e.User) {
			return false
		}
		k.bytes -= kept.size()
		delete(k.of, kept.id)
		return true
	})
}
