package history

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// pendingCount is the number of pending writes that wait for a decision, in memory.
type pendingCount struct {
	counting sync.Mutex // held from a count in PostgreSQL until it is in number, so that the last count wins
	number   atomic.Int64
}

// PendingWrites returns the number of writes that wait for a decision. It does not ask PostgreSQL.
func (s *Store) PendingWrites() int { return int(s.pending.number.Load()) }

// countPending counts the writes that wait for a decision. It is called after each change of them, which is rare.
func (s *Store) countPending(ctx context.Context) error {
	s.pending.counting.Lock()
	defer s.pending.counting.Unlock()
	return s.read(context.WithoutCancel(ctx), func(ctx context.Context) error {
		var n int64
		err := s.pool.QueryRow(ctx, `SELECT count(*) FROM pending_writes WHERE status = 'pending'`).Scan(&n)
		if err == nil {
			s.pending.number.Store(n)
		}
		return err
	})
}

// recountPending is countPending after a change that has succeeded. A failure is logged: the change stands.
func (s *Store) recountPending(ctx context.Context) {
	if err := s.countPending(ctx); err != nil {
		s.logger.WithError(err).Warn("could not count the pending writes; the metric is right after the next change")
	}
}

// AddWrite stores a new pending write. It returns FaultLimit if the user would have more than maxWrites pending writes,
// or more than maxBytes of them.
func (s *Store) AddWrite(ctx context.Context, w sandbox.PendingWrite, maxWrites, maxBytes int) error {
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	err = s.transact(ctx, func(tx pgx.Tx) error {
		// One at a time for each user, so that concurrent runs do not exceed the limits together.
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('pending_writes'), hashtext($1))`, clean(w.User))
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO pending_writes (id, status, created_at, owner, record,
				execution_id)
			SELECT $1, $2, $3, $4, $5::bytea, $8 WHERE (
				SELECT count(*) < $6::int
					AND coalesce(sum(octet_length(record)), 0) + octet_length($5::bytea) <= $7::int
				FROM pending_writes WHERE owner = $4 AND status = 'pending')`,
			w.ID, string(w.Status), w.CreatedAt, clean(w.User), record, maxWrites, maxBytes,
			clean(w.ExecutionID))
		if err == nil && tag.RowsAffected() == 0 {
			return sandbox.Errorf(sandbox.FaultLimit, "the user has too many pending writes")
		}
		return err
	})
	if err == nil {
		s.recountPending(ctx)
	}
	return err
}

// MoveWrite stores a pending write if its stored status is still from, and returns FaultBusy otherwise. Therefore each
// decision is taken once. It returns after the commit is on disk. A service that does not own the database may not
// begin to apply a write: the one that does regards such a write as interrupted.
func (s *Store) MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error {
	record, err := json.Marshal(w)
	if err == nil && w.Status == sandbox.WriteApplying {
		err = s.owner.check()
	}
	if err != nil {
		return err
	}
	err = s.inTurn(ctx, func() error {
		tag, err := s.pool.Exec(ctx, `UPDATE pending_writes SET status = $2, record = $3 WHERE id = $1 AND status = $4`,
			w.ID, string(w.Status), record, string(from))
		if err == nil && tag.RowsAffected() == 0 {
			return sandbox.Errorf(sandbox.FaultBusy, "the write is no longer %s: another decision came first", from)
		}
		return err
	})
	if err == nil && (from == sandbox.WritePending || w.Status == sandbox.WritePending) {
		s.recountPending(ctx)
	}
	return err
}

// outcomeTimeout bounds the attempts to store the outcome of a write while PostgreSQL cannot be reached.
const outcomeTimeout = 30 * time.Second

// FinishWrite stores the outcome of a write that is being applied. It tries again while PostgreSQL cannot be reached:
// only the caller that applies a write finishes it, so storing the outcome twice does not matter.
func (s *Store) FinishWrite(ctx context.Context, w sandbox.PendingWrite) error {
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	return s.exec(ctx, `UPDATE pending_writes SET status = $2, record = $3 WHERE id = $1 AND status = $4`,
		w.ID, string(w.Status), record, string(sandbox.WriteApplying))
}

// interruptWrites marks the writes that were being applied when a service ended as unknown. No service is applying one:
// the caller owns the database.
func (s *Store) interruptWrites(ctx context.Context) error {
	return s.transactAsOwner(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `SELECT record FROM pending_writes WHERE status = $1 FOR UPDATE`,
			string(sandbox.WriteApplying)) // CollectRows returns its error
		list, err := pgx.CollectRows(rows, scanWrite)
		for _, w := range list {
			w.Status = sandbox.WriteUnknown
			w.Error = "the service ended while the write was being applied: " + sandbox.ErrOutcomeUnknown.Error()
			record, err := json.Marshal(w)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `UPDATE pending_writes SET status = $2, record = $3 WHERE id = $1`,
				w.ID, string(w.Status), record)
			if err != nil {
				return err
			}
		}
		return err
	})
}

// Write returns the pending write with an id, or FaultNotFound.
func (s *Store) Write(ctx context.Context, id string) (sandbox.PendingWrite, error) {
	return queryOne(ctx, s, "pending write", scanWrite, `SELECT record FROM pending_writes WHERE id = $1`, clean(id))
}

func scanWrite(row pgx.CollectableRow) (w sandbox.PendingWrite, err error) {
	var record []byte
	if err = row.Scan(&record); err == nil {
		err = json.Unmarshal(record, &w)
	}
	if err != nil {
		return w, fmt.Errorf("read a pending write: %w", err)
	}
	return w, nil
}

var orderOfWrites = order{"pending writes", []string{"created_at", "id"}, []string{"timestamptz", "text"}}

// Writes returns a page of the pending writes that match the filter, newest first, and the cursor of the next page,
// which is "" for the last page. A page has fewer writes than the filter's limit if they are very large. Writes returns
// FaultInvalid if the filter's cursor is not that of a page.
func (s *Store) Writes(ctx context.Context, f sandbox.WriteFilter) ([]sandbox.PendingWrite, string, error) {
	var c conditions
	if f.Status != "" {
		c.add("status = ?", clean(string(f.Status)))
	}
	if f.User != "" {
		c.add("owner = ?", clean(f.User))
	}
	if f.After != "" {
		if err := orderOfWrites.addCursor(&c, f.After); err != nil {
			return nil, "", err
		}
	}
	limit := pageLimit(f.Limit)
	// As for executions, the records beyond the page's size are not read.
	sql := fmt.Sprintf(`SELECT w.record FROM pending_writes w JOIN (
			SELECT id, sum(size) OVER newest - size AS before, row_number() OVER newest AS n FROM (
				SELECT id, created_at, octet_length(record) AS size
				FROM pending_writes WHERE %s ORDER BY created_at DESC, id DESC LIMIT %d) page
			WINDOW newest AS (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING)) sized ON sized.id = w.id
		WHERE sized.before <= %d OR sized.n <= 2 ORDER BY w.created_at DESC, w.id DESC`,
		&c, limit+1, maxPageBytes)
	type sized struct {
		sandbox.PendingWrite
		bytes int
	}
	rows, err := query(ctx, s, s.read, func(row pgx.CollectableRow) (sized, error) {
		w, err := scanWrite(row)
		return sized{w, len(row.RawValues()[0])}, err
	}, sql, c.args...)
	list, bytes := []sandbox.PendingWrite{}, 0
	for _, w := range rows {
		if bytes += w.bytes; len(list) == limit || len(list) > 0 && bytes > maxPageBytes {
			last := list[len(list)-1]
			next, err := orderOfWrites.cursor(last.CreatedAt, last.ID)
			return list, next, err
		}
		list = append(list, w.PendingWrite)
	}
	return list, "", err
}
