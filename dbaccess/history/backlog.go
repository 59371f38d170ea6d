package history

import (
	"cmp"
	"slices"
	"time"

	"glasshouse/dbaccess/history/wal"
)

// backlog holds the rows that are in the write-ahead log and not yet in PostgreSQL: those of each user in the order of
// the log. A row replaces an earlier row with the same key, and the end of an execution replaces all rows of the
// execution. The zero value is empty.
type backlog struct {
	users      map[string]*userBacklog
	byKey      map[string]*waitingRow   // rows that wait
	executions map[string][]*waitingRow // the same, of an execution
	rows       int                      // number of rows that wait
	bytes      int                      // of their records

	turns      uint64 // number of rows that were taken so far
	tookLarge  bool   // the last take returned large rows
	tookWanted bool   // the last take returned rows of wanted users only

	// wanted are the users for whose rows somebody waits; nil: none. The next take forgets them.
	wanted map[string]bool

	// since is when the first row came, or when rows were inserted last. It is zero if the backlog is empty.
	since time.Time
}

// userBacklog holds the rows of one user.
type userBacklog struct {
	waiting []*waitingRow
	taken   []*waitingRow // those that are being inserted; they come before the waiting ones
	bytes   int           // of the records of both

	lastTurn uint64 // when the user's last row was taken, counted in turns
}

const (
	largeRowBytes = 64 << 10 // a record of so many bytes is inserted without rows of other users
	maxLargeBytes = 1 << 20  // of the records that are inserted with a large one, in addition to the last
)

// waitingRow is a row in the backlog, at the place of the first row that it replaces.
type waitingRow struct {
	row
	number   uint64       // of the first row
	before   wal.Position // the end of the log before the first row
	owner    string       // whose userBacklog has it
	replaced bool         // the end of its execution has replaced it
}

// add adds a row that the log has behind the position before, to the backlog of a user.
func (b *backlog) add(r row, user string, number uint64, before wal.Position, now time.Time) {
	if b.since.IsZero() {
		b.since = now
	}
	b.put(&waitingRow{row: r, number: number, before: before, owner: user})
}

func (b *backlog) put(w *waitingRow) {
	if end := b.byKey[w.executionID]; w.isProgress() && end != nil && end.isEnd() {
		return // the end has it
	}
	earlier := b.byKey[w.key]
	if w.isEnd() {
		for n, of := range b.executions[w.executionID] {
			if n == 0 {
				earlier = of
			} else {
				b.count(of, -1)
				of.replaced, of.row = true, row{}
			}
			delete(b.byKey, of.key)
		}
		delete(b.executions, w.executionID)
	}
	if b.byKey == nil {
		b.users, b.byKey = map[string]*userBacklog{}, map[string]*waitingRow{}
		b.executions = map[string][]*waitingRow{}
	}
	if earlier != nil {
		b.count(earlier, -1)
		earlier.row = w.row
		w = earlier
	} else {
		u := b.users[w.owner]
		if u == nil {
			u = &userBacklog{}
			b.users[w.owner] = u
		}
		u.waiting = append(u.waiting, w)
	}
	if w.executionID != "" && (earlier == nil || w.isEnd()) {
		b.executions[w.executionID] = append(b.executions[w.executionID], w)
	}
	b.byKey[w.key] = w
	b.count(w, 1)
}

// count adds a waiting row to the sums, or subtracts it if sign is -1.
func (b *backlog) count(w *waitingRow, sign int) {
	size := sign * len(w.record)
	b.rows += sign
	b.bytes += size
	b.users[w.owner].bytes += size
}

// take returns waiting rows that are to be inserted now, in one transaction: at most maxRows and about maxBytes of
// records. They are small rows of all users, who get equal numbers of bytes, or rows of one user that begin with a
// large one, about maxLargeBytes of them. If both wait, they take turns, and so do users with large rows. So a small
// row waits for few large ones: while 16 clients printed 900 kB a run, another user's list took 22 ms when all
// rows were inserted together, and 4 ms since. Every other take returns rows of wanted users only, if there are any.
// The rows stay in the backlog until inserted or putBack is called.
func (b *backlog) take(maxRows, maxBytes int) (rows []row) {
	if b.tookWanted = !b.tookWanted && b.wanted != nil; b.next(nil, true) == nil && b.next(nil, false) == nil {
		b.tookWanted = false // no wanted user has rows
	}
	defer func() { b.wanted = nil }()
	var only *userBacklog // whose large row is first
	if next := b.next(nil, true); next != nil && (!b.tookLarge || b.next(nil, false) == nil) {
		only, maxBytes = next, min(maxBytes, maxLargeBytes)
	}
	b.tookLarge = only != nil
	taken := map[*userBacklog]int{} // bytes
	for size := 0; len(rows) < maxRows && size < maxBytes; {
		next := only
		if next == nil {
			next = b.next(taken, false)
		} else if next.skipReplaced(); len(next.waiting) == 0 {
			next = nil
		}
		if next == nil {
			break
		}
		w := next.waiting[0]
		next.waiting, next.taken = next.waiting[1:], append(next.taken, w)
		b.turns++
		next.lastTurn = b.turns
		delete(b.byKey, w.key)
		if list := b.executions[w.executionID]; len(list) > 1 {
			b.executions[w.executionID] = list[1:] // w was the first
		} else {
			delete(b.executions, w.executionID)
		}
		b.rows--
		b.bytes -= len(w.record)
		size += len(w.record)
		taken[next] += max(len(w.record), 1)
		rows = append(rows, w.row)
	}
	return rows
}

// want notes that somebody waits for rows of a user.
func (b *backlog) want(user string) {
	if b.wanted == nil {
		b.wanted = map[string]bool{}
	}
	b.wanted[user] = true
}

// next returns the user whose turn it is among those whose first waiting row is large, or is not: the one with the
// fewest bytes in taken, and then the one whose last turn was first. It returns nil if there is none.
func (b *backlog) next(taken map[*userBacklog]int, large bool) (next *userBacklog) {
	for user, u := range b.users {
		u.skipReplaced()
		if len(u.waiting) == 0 || u.waiting[0].isLarge() != large || b.tookWanted && !b.wanted[user] {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(taken[u], taken[next]), cmp.Compare(u.lastTurn, next.lastTurn),
			cmp.Compare(u.waiting[0].number, next.waiting[0].number)) < 0 {
			next = u
		}
	}
	return next
}

// skipReplaced removes replaced rows from the front.
func (u *userBacklog) skipReplaced() {
	for len(u.waiting) > 0 && u.waiting[0].replaced {
		u.waiting = u.waiting[1:]
	}
}

// inserted removes the rows of the last take, which are in PostgreSQL now.
func (b *backlog) inserted(now time.Time) {
	for user, u := range b.users {
		for _, w := range u.taken {
			u.bytes -= len(w.record)
		}
		u.taken = nil
		if u.skipReplaced(); len(u.waiting) == 0 {
			delete(b.users, user)
		}
	}
	if b.since = now; b.rows == 0 {
		b.since = time.Time{}
	}
}

// putBack puts rows of the last take, which could not be inserted, in front of those that wait. The other rows of the
// take are in PostgreSQL.
func (b *backlog) putBack(left []row) {
	isLeft := map[string]bool{}
	for _, r := range left {
		isLeft[r.key] = true
	}
	var all []*waitingRow
	for _, u := range b.users {
		for _, w := range u.taken {
			if isLeft[w.key] {
				all = append(all, w)
			}
		}
		for _, w := range u.waiting {
			if !w.replaced {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, func(one, other *waitingRow) int { return cmp.Compare(one.number, other.number) })
	*b = backlog{since: b.since, turns: b.turns, tookLarge: b.tookLarge, wanted: b.wanted}
	for _, w := range all {
		b.put(w)
	}
}

// oldest returns the first row of a user; nil if there is none.
func (b *backlog) oldest(user string) *waitingRow {
	u := b.users[user]
	if u == nil {
		return nil
	}
	if len(u.taken) > 0 {
		return u.taken[0]
	}
	if u.skipReplaced(); len(u.waiting) > 0 {
		return u.waiting[0]
	}
	return nil
}

// first returns the first row of all users; nil if the backlog is empty.
func (b *backlog) first() (first *waitingRow) {
	for user := range b.users {
		if w := b.oldest(user); w != nil && (first == nil || w.number < first.number) {
			first = w
		}
	}
	return first
}

// isFull reports whether a user has a full share of maxBacklogBytes. Users whose rows wait have equal shares, so a user
// without rows always has room.
func (b *backlog) isFull(user string) bool {
	u := b.users[user]
	return u != nil && u.bytes >= maxBacklogBytes/len(b.users)
}
