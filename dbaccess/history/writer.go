package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/history/wal"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

const (
	flushInterval   = 50 * time.Millisecond  // between a record and its insertion, if nobody waits for it
	flushNowBytes   = 4 << 20                // a larger backlog is inserted immediately
	maxFlushBytes   = 4 << 20                // of a flush, in addition to its last record
	maxFlushRows    = 512                    // of a flush
	maxRetryDelay   = 250 * time.Millisecond // between attempts while PostgreSQL is unreachable
	maxBacklogAge   = 5 * time.Second        // if records wait and none was inserted for longer, no run may begin
	slowInsertBytes = 4 << 20                // a flush of so many bytes may take another second
	maxBacklogBytes = 64 << 20               // users share it; a user whose share is used up must wait
)

// insertByteTime is the time that PostgreSQL takes to insert a byte of a large record, in nanoseconds: 3 to 6 on two
// cores, the most for texts that cannot be compressed.
const insertByteTime = 5

// writer stores records: it appends them to the write-ahead log, and its flush loop inserts them into PostgreSQL.
type writer struct {
	log          *wal.Log
	space        freeSpace
	asynchronous bool             // the end of an execution is flushed about 10 ms later
	now          func() time.Time // tests set it
	logger       logrus.FieldLogger
	large        *limit.CPU // appends of large rows

	mu       sync.Mutex
	backlog  backlog
	last     wal.Position  // of the last record in the log
	appended uint64        // number of rows that were appended
	scopes   scopes        // of the rows that wait
	flushes  uint64        // number of flushes that have begun
	flushing int           // bytes of the flush that goes on
	result   flushResult   // of the last flush that has ended
	flushed  chan struct{} // closed and replaced when a flush ends
	urgent   bool          // a caller waits for a flush
	closing  bool

	wake    chan struct{} // capacity 1: the flush loop looks at the backlog again
	stopped chan struct{} // closed when the flush loop has ended
}

// flushResult is the result of a flush.
type flushResult struct {
	number uint64
	err    error
	at     time.Time
}

// openWriter opens the log in dir, inserts the records that it holds, and starts the flush loop. The writer owns db.
func openWriter(
	dir string, asynchronous bool, cpu *limit.CPU, db *inserter, now func() time.Time,
) (*writer, error) {
	w := &writer{
		space: freeSpace{dir: dir, min: minFreeBytes}, asynchronous: asynchronous, now: now, logger: db.logger,
		large:   cpu.Serial(insertByteTime),
		flushed: make(chan struct{}), wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	var err error
	if w.log, err = wal.Open(dir, db.replay); err != nil {
		db.close()
		return nil, err
	}
	go w.flushLoop(db)
	return w, nil
}

// close flushes the waiting rows, stops the flush loop and closes the log. Its error has the number of rows that are
// only in the log; the next start inserts them.
func (w *writer) close() error {
	w.mu.Lock()
	if w.closing {
		w.mu.Unlock()
		return nil
	}
	w.closing = true
	w.mu.Unlock()
	w.wakeLoop()
	<-w.stopped
	err := w.log.Close()
	if waiting := w.backlog.rows; waiting > 0 {
		const message = "%d records are not in the history database; they are in the write-ahead log, and the next " +
			"start inserts them: %w"
		err = errors.Join(fmt.Errorf(message, waiting, w.result.err), err)
	}
	return err
}

// checkBegin returns FaultUnavailable if no run may begin, because of the disk or of the backlog.
func (w *writer) checkBegin() error {
	if err := w.space.check(); err != nil {
		return err
	}
	return unavailable(w.checkBacklog())
}

// checkBacklog returns an error if PostgreSQL is unreachable: records wait, and none was inserted for a while.
func (w *writer) checkBacklog() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return errClosed
	}
	b := &w.backlog
	maxAge := maxBacklogAge + time.Duration(w.flushing/slowInsertBytes)*time.Second
	if b.since.IsZero() || w.now().Sub(b.since) < maxAge {
		return nil
	}
	waiting := fmt.Errorf("%d records wait for the history database", b.rows)
	return fmt.Errorf("%w: %w", errNotConfirmed, errors.Join(w.result.err, waiting))
}

// status returns how many records wait for PostgreSQL, and the free space of the disk.
func (w *writer) status() sandbox.HistoryStatus {
	free, _ := w.space.measure() // 0 if it is not known
	w.mu.Lock()
	defer w.mu.Unlock()
	st := sandbox.HistoryStatus{WaitingRecords: w.backlog.rows, WaitingBytes: int64(w.backlog.bytes), FreeBytes: free}
	if !w.backlog.since.IsZero() {
		st.WaitingSeconds = w.now().Sub(w.backlog.since).Seconds()
	}
	return st
}

// waitForSpace waits until the backlog has room for a record of a user. It returns an error if a flush fails meanwhile,
// or after beginTimeout.
func (w *writer) waitForSpace(ctx context.Context, user string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.backlog.isFull(user) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	return w.waitUntil(ctx, func() bool {
		isFull := w.backlog.isFull(user)
		if isFull {
			w.backlog.want(user)
		}
		return !isFull
	})
}

// userOf returns the user of a running execution; "" if it is not known.
func (w *writer) userOf(execution string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scopes.userOf(execution)
}

// write stores a row: in the log, and on disk if the row asks for it. If the log cannot be written, write waits
// until the row is in PostgreSQL, or until the timeout.
func (w *writer) write(ctx context.Context, r row, timeout time.Duration) error {
	err := w.writeLog(r)
	if err == nil || errors.Is(err, errClosed) {
		return err
	}
	w.logger.WithError(err).WithField("record", r.key).
		Error("the write-ahead log of history cannot be written; the service waits for the history database instead")
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		if err = w.waitInserted(ctx, scope{}); err == nil || errors.Is(err, errClosed) {
			return err
		}
		select {
		case <-ctx.Done():
			return notConfirmed(ctx, err)
		case <-time.After(maxRetryDelay):
		}
	}
}

// writeLog appends a row to the log, and flushes the log if the row asks for it. Large rows (limit.CPU says from which
// size on) are written one after the other, in turn by user, because writing and flushing 1 MB takes milliseconds, and
// all other rows wait for it: while 16 clients printed 900 kB a run, a small run took 5.5 to 7 ms before large rows
// were written alone, and 4 ms since. While other users send requests, a pause follows each large row of a user. It is
// three times as long as the row takes in the log and in PostgreSQL, so at most a quarter of the time other users find
// one of them busy with it.
func (w *writer) writeLog(r row) (err error) {
	w.large.Compute(r.user, len(r.record), func() {
		var position wal.Position
		position, err = w.append(r)
		switch {
		case err != nil || !r.mustSync:
		case w.asynchronous:
			w.log.SyncSoon()
		default:
			err = w.log.Sync(position)
		}
	})
	return err
}

// append adds a row to the log and to the backlog. If the log fails, append still adds the row to the backlog.
func (w *writer) append(r row) (wal.Position, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return wal.Position{}, errClosed
	}
	before := w.last
	position, err := w.log.Append(r.record)
	if err == nil {
		w.last = position
	}
	idle := w.backlog.since.IsZero()
	w.appended++
	w.backlog.add(r, w.scopes.add(r, w.appended), w.appended, before, w.now())
	if idle || w.backlog.bytes > flushNowBytes {
		w.wakeLoop()
	}
	return position, err
}

func (w *writer) wakeLoop() {
	select {
	case w.wake <- struct{}{}:
	default: // the loop has not yet seen the last call
	}
}

// waitInserted returns when all rows of a scope that were appended before the call are in PostgreSQL. It returns an
// error if a flush that began after the call fails.
func (w *writer) waitInserted(ctx context.Context, of scope) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of == (scope{}) {
		target := w.appended
		return w.waitUntil(ctx, func() bool {
			first := w.backlog.first()
			return first == nil || first.number > target
		})
	}
	targets := w.scopes.lastOf(of)
	return w.waitUntil(ctx, func() bool {
		inserted := true
		for _, target := range targets {
			if !w.isInserted(target) {
				w.backlog.want(target.user)
				inserted = false
			}
		}
		return inserted
	})
}

// isInserted reports whether a row does not wait. The caller holds mu.
func (w *writer) isInserted(r lastRow) bool {
	oldest := w.backlog.oldest(r.user)
	return oldest == nil || oldest.number > r.number
}

// waitUntil flushes until a condition is true. It returns an error if a flush that began after the call fails. The
// caller holds mu, as condition's caller does.
func (w *writer) waitUntil(ctx context.Context, condition func() bool) error {
	before := w.flushes
	for !condition() {
		if w.result.err != nil && w.result.number > before {
			return fmt.Errorf("%w: %w", errNotConfirmed, w.result.err)
		}
		w.urgent = true
		w.wakeLoop()
		flushed := w.flushed
		w.mu.Unlock()
		var err error
		select {
		case <-flushed:
		case <-w.stopped:
			err = errClosed
		case <-ctx.Done():
			err = notConfirmed(ctx, nil)
		}
		w.mu.Lock()
		if err != nil && !condition() {
			return err
		}
	}
	return nil
}

// notConfirmed returns the error of a write whose caller stopped waiting. err is the error of the last attempt.
func notConfirmed(ctx context.Context, err error) error {
	return fmt.Errorf("%w: %w", errNotConfirmed, errors.Join(context.Cause(ctx), err))
}

// flushLoop inserts the backlog into PostgreSQL until close is called. It closes db and then w.stopped.
func (w *writer) flushLoop(db *inserter) {
	defer close(w.stopped)
	defer db.close()
	for delay := flushInterval; ; {
		w.mu.Lock()
		empty, closing := w.backlog.rows == 0, w.closing
		w.mu.Unlock()
		if empty && closing {
			return
		}
		if empty {
			<-w.wake
			continue
		}
		w.waitForFlush(delay)
		w.mu.Lock()
		closing = w.closing
		w.mu.Unlock()
		switch err := w.flush(db); {
		case err == nil:
			delay = flushInterval
		case closing:
			return
		default:
			delay = min(2*delay, maxRetryDelay)
		}
	}
}

// waitForFlush returns after the delay, or as soon as a flush is wanted.
func (w *writer) waitForFlush(delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		w.mu.Lock()
		reachable := w.result.err == nil
		// While PostgreSQL is unreachable, waiting callers cause one attempt per flushInterval at most.
		wanted := w.closing || w.urgent && (reachable || time.Since(w.result.at) > flushInterval) ||
			reachable && w.backlog.bytes > flushNowBytes
		w.mu.Unlock()
		if wanted {
			return
		}
		select {
		case <-timer.C:
			return
		case <-w.wake:
		}
	}
}

// flush tries once to insert rows of the backlog, and then releases their records in the log.
func (w *writer) flush(db *inserter) error {
	w.mu.Lock()
	before := w.backlog.bytes
	rows := w.backlog.take(maxFlushRows, maxFlushBytes)
	w.flushing = before - w.backlog.bytes
	w.urgent = w.backlog.rows > 0 // what is left is inserted next
	w.flushes++
	number := w.flushes
	w.mu.Unlock()
	left, err := db.insert(rows)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushing = 0
	if err != nil {
		w.backlog.putBack(left)
	} else {
		w.backlog.inserted(w.now())
		w.scopes.forget(w.isInserted)
		position := w.last
		if first := w.backlog.first(); first != nil {
			position = first.before
		}
		if err := w.log.Release(position); err != nil {
			w.logger.WithError(err).Warn("records of the write-ahead log of history cannot be released; " +
				"the next start inserts them again, which changes nothing")
		}
	}
	w.result = flushResult{number, err, time.Now()}
	close(w.flushed)
	w.flushed = make(chan struct{})
	return err
}
