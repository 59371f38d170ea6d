package history

import "time"

// backlog holds the rows that are in the write-ahead log and not yet in PostgreSQL, in order. A row replaces an
// earlier row with the same key. The zero value is empty.
type backlog struct {
	rows  []row
	index map[string]int // into rows, by key
	bytes int            // of the rows' records
	since time.Time      // lower bound for the age of every row; zero: no row waits and no row is being inserted
}

// add appends a row, or replaces the row with the same key.
func (b *backlog) add(r row, now time.Time) {
	if b.since.IsZero() {
		b.since = now
	}
	b.bytes += len(r.record)
	if n, replaces := b.index[r.key]; replaces {
		b.bytes -= len(b.rows[n].record)
		b.rows[n] = r
		return
	}
	if b.index == nil {
		b.index = map[string]int{}
	}
	b.index[r.key] = len(b.rows)
	b.rows = append(b.rows, r)
}

// take returns all rows and empties the backlog. It keeps since, because the rows are not inserted yet.
func (b *backlog) take() []row {
	rows := b.rows
	b.rows, b.index, b.bytes = nil, nil, 0
	return rows
}

// inserted records that the rows of the last take are in PostgreSQL. taken is the time of that take.
func (b *backlog) inserted(taken time.Time) {
	if b.since = taken; len(b.rows) == 0 {
		b.since = time.Time{}
	}
}

// putBack puts rows of the last take in front of the rows that were added after it.
func (b *backlog) putBack(rows []row) {
	added, since := b.take(), b.since
	for _, r := range append(rows, added...) {
		b.add(r, since)
	}
}
