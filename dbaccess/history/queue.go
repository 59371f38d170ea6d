package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"glasshouse/dbaccess/history/wal"
)

const (
	lag        = 50 * time.Millisecond // between a row and its way to the database, unless somebody asks for it
	maxLag     = 5 * time.Second       // rows that wait longer keep others from beginning
	maxWaiting = 64 << 20              // bytes of rows that wait; more keep others from beginning
	soon       = 4 << 20               // bytes that wait no lag
)

// queue is the executions that are in the log and not yet in the database. One
// goroutine takes them there, many at a time: of one that is over by then, its end alone.
type queue struct {
	log  *wal.Log
	disk disk
	out  *scribe // the goroutine's alone

	mu      sync.Mutex
	rows    []row          // that wait for the next attempt
	at      map[string]int // in rows, by place
	size    int            // their bytes
	oldest  time.Time      // when the first of them all came; zero: there is none
	mark    wal.Mark       // of the last
	added   uint64         // how many came,
	kept    uint64         // and how many of these are in the database
	attempt uint64         // how many have begun
	failed  error          // of the last one that has ended,
	ended   uint64         // which was this
	endedAt time.Time      // then
	changed chan struct{}  // closed, and made anew, when one has ended
	urgent  bool           // somebody waits for the next one
	closing bool

	wake chan struct{} // has room for one
	over chan struct{} // closed when the goroutine has ended
}

// openQueue opens the log in the folder, and writes what is in it to the database before
// it returns.
func openQueue(dir string, out *scribe) (*queue, error) {
	q := &queue{disk: disk{folder: dir, least: leastFree}, out: out, at: map[string]int{}, changed: make(chan struct{}), wake: make(chan struct{}, 1), over: make(chan struct{})}
	var err error
	if q.log, err = wal.Open(dir, out.replay); err != nil {
		out.close()
		return nil, err
	}
	go q.run()
	return q, nil
}

// close ends the queue, after one more attempt where one is needed. Its error says how
// much stays in the log, for the next start.
func (q *queue) close() error {
	q.mu.Lock()
	if q.closing {
		q.mu.Unlock()
		return nil
	}
	q.closing = true
	q.mu.Unlock()
	q.nudge()
	<-q.over
	err := q.log.Close()
	if q.kept < q.added {
		err = errors.Join(fmt.Errorf("%d executions are not in the history database, but in the log, for the next start: %w", len(q.rows), q.failed), err)
	}
	return err
}

// room says whether one more execution may begin: not while the database is away, or
// so slow that it comes to the same.
func (q *queue) room() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closing:
		return errClosed
	case q.oldest.IsZero() || time.Since(q.oldest) < maxLag && q.size < maxWaiting:
		return nil
	}
	return fmt.Errorf("%w: %w", errLost, errors.Join(q.failed, fmt.Errorf("%d executions wait for the database", len(q.rows))))
}

// full says that what waits is all that should.
func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size >= maxWaiting
}

// add puts a row into the log and the queue. Where the log fails, the row is in the
// queue all the same.
func (q *queue) add(r row) (wal.Mark, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		return wal.Mark{}, errClosed
	}
	mark, err := q.log.Append(r.body)
	if err == nil {
		q.mark = mark
	}
	q.size += len(r.body)
	place := r.place()
	if n, waits := q.at[place]; waits {
		q.size -= len(q.rows[n].body)
		q.rows[n] = r
	} else {
		q.at[place] = len(q.rows)
		q.rows = append(q.rows, r)
	}
	q.added++
	if first := q.oldest.IsZero(); first || q.size > soon {
		if first {
			q.oldest = time.Now()
		}
		q.nudge()
	}
	return mark, err
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// settled returns when what was added before is in the database, or the first attempt
// that began after the call has failed.
func (q *queue) settled(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	target, before := q.added, q.attempt
	for q.kept < target {
		if q.failed != nil && q.ended > before {
			return fmt.Errorf("%w: %w", errLost, q.failed)
		}
		q.urgent = true
		q.nudge()
		changed := q.changed
		q.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-q.over:
			err = errClosed
		case <-ctx.Done():
			err = gaveUp(ctx, nil)
		}
		q.mu.Lock()
		if err != nil && q.kept < target {
			return err
		}
	}
	return nil
}

func (q *queue) run() {
	defer close(q.over)
	defer q.out.close()
	for wait := lag; ; {
		q.mu.Lock()
		nothing, last := len(q.rows) == 0, q.closing
		q.mu.Unlock()
		if nothing && last {
			return
		}
		if nothing {
			<-q.wake
			continue
		}
		q.pause(wait)
		q.mu.Lock()
		last = q.closing
		q.mu.Unlock()
		err := q.try()
		switch {
		case err == nil:
			wait = lag
		case last:
			return
		default:
			wait = min(2*wait, lastWait)
		}
	}
}

// pause waits until it is time for an attempt, or somebody is in need of one.
func (q *queue) pause(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		q.mu.Lock()
		// While the database is away those who ask do not make it more attempts than that.
		now := q.closing || q.urgent && (q.failed == nil || time.Since(q.endedAt) > lag) || q.size > soon && q.failed == nil
		q.mu.Unlock()
		if now {
			return
		}
		select {
		case <-timer.C:
			return
		case <-q.wake:
		}
	}
}

// try is one attempt to write all that waits.
func (q *queue) try() error {
	q.mu.Lock()
	rows, target, mark, began := q.rows, q.added, q.mark, time.Now()
	q.rows, q.at, q.size, q.urgent = nil, make(map[string]int, len(rows)), 0, false
	q.attempt++
	attempt := q.attempt
	q.mu.Unlock()
	left, err := q.out.write(withoutOver(rows))
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.putBack(left)
	} else {
		q.kept = target
		if q.oldest = began; len(q.rows) == 0 { // what came meanwhile came after that
			q.oldest = time.Time{}
		}
		if failed := q.log.Release(mark); failed != nil {
			q.out.say.WithError(failed).Warn("release a part of history's log")
		}
	}
	q.failed, q.ended, q.endedAt = err, attempt, time.Now()
	close(q.changed)
	q.changed = make(chan struct{})
	return err
}

// putBack has rows wait again, before those that came meanwhile. The caller holds mu.
func (q *queue) putBack(left []row) {
	all := make([]row, 0, len(left)+len(q.rows))
	for _, r := range left {
		if _, again := q.at[r.place()]; !again {
			all = append(all, r)
		}
	}
	q.rows, q.size = append(all, q.rows...), 0
	for n, r := range q.rows {
		q.at[r.place()] = n
		q.size += len(r.body)
	}
}
