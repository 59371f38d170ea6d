package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// Begin writes the row of an execution that is about to run. It is in the log when it
// returns, so that the end of this process does not lose it. FaultUnavailable where the
// database has been away for a while; then there is no row, or one that says that it
// did not run.
func (s *Store) Begin(ctx context.Context, e *sandbox.Execution) error {
	if err := s.queue.disk.room(); err != nil {
		return err
	}
	if err := s.queue.room(); err != nil {
		return unavailable(err)
	}
	r, err := rowOf(e, false)
	if err != nil {
		return err
	}
	if err = s.keep(ctx, r, openPatience); err == nil {
		return nil
	}
	why, now, never := "it did not run: history did not take its opening row", time.Now().UTC(), *e
	never.Status, never.Error, never.CompletedAt = sandbox.StatusCancelled, &why, &now
	if r, failed := rowOf(&never, true); failed == nil {
		_, _ = s.queue.add(r)
	}
	return unavailable(err)
}

// Finish writes how an execution ended; it is on disk when it returns, or soon after where
// the store's commits are asynchronous.
func (s *Store) Finish(ctx context.Context, e *sandbox.Execution) error {
	r, err := rowOf(e, true)
	if err != nil {
		return err
	}
	if err := s.keep(ctx, r, closePatience); err != nil {
		return unavailable(err)
	}
	return nil
}

// keep puts a row into the log, and flushes one that has ended. Where the log can't be
// written it waits for the database, until ctx ends or its patience.
func (s *Store) keep(ctx context.Context, r row, patience time.Duration) error {
	mark, err := s.queue.add(r)
	switch {
	case err != nil || r.completed == nil:
	case s.asynchronous:
		s.queue.log.SyncSoon()
	default:
		err = s.queue.log.Sync(mark)
	}
	if err == nil || errors.Is(err, errClosed) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.say.WithError(err).WithField("execution_id", r.e.ID).Error("history's log can't be written; the service waits for the database instead")
	for {
		if err = s.queue.settled(ctx); err == nil || errors.Is(err, errClosed) {
			return err
		}
		select {
		case <-ctx.Done():
			return gaveUp(ctx, err)
		case <-time.After(lastWait):
		}
	}
}

// Recover closes what a service that was killed left open: executions become
// cancelled, sandboxes lost. It returns how many executions there were. It is run
// once, at the start, before anything is begun.
func (s *Store) Recover(ctx context.Context) (int, error) {
	var left []string
	err := s.readWithin(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, `SELECT id FROM executions WHERE completed_at IS NULL`)
		left, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	for _, id := range left {
		if err := s.closeLeft(ctx, id, now); err != nil {
			return 0, err
		}
	}
	if err := s.queue.settled(ctx); err != nil {
		return 0, err
	}
	err = s.readWithin(ctx, func(ctx context.Context) error {
		var b pgx.Batch
		b.Queue(`UPDATE sandboxes SET state = $1, ended_at = $2 WHERE state = $3`, string(sandbox.StateLost), now, string(sandbox.StateActive))
		b.Queue(`DELETE FROM progress`) // no execution goes on
		return s.pool.SendBatch(ctx, &b).Close()
	})
	return len(left), err
}

// closeLeft closes an execution that a killed service left open. What of it can't be read, or
// does not fit, is left out and said: no record keeps the service from its start.
func (s *Store) closeLeft(ctx context.Context, id string, now time.Time) error {
	say := s.say.WithField("execution_id", id)
	e, err := s.Execution(ctx, id)
	if isUnavailable(err) {
		return err
	}
	if err != nil {
		say.WithError(err).Error("what history has of an execution that was cut off can't be read")
		err = s.readWithin(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, `SELECT id, sandbox_id, owner, kind, code, created_at FROM executions WHERE id = $1`, id).
				Scan(&e.ID, &e.SandboxID, &e.User, &e.Kind, &e.Code, &e.CreatedAt)
		})
		if err != nil {
			return err
		}
		e.Timestamp = e.CreatedAt
		fill(&e)
	}
	why := "the service ended while this ran: run it again in a new sandbox"
	e.Status, e.Error, e.CompletedAt, e.Usage.EndedBy, e.SessionReset = sandbox.StatusCancelled, &why, &now, "shutdown", true
	cutShort(&e)
	if err = s.Finish(ctx, &e); err == nil || isUnavailable(err) {
		return err
	}
	say.WithError(err).Error("what an execution that was cut off had done can't be kept")
	e.Truncated = map[string]int64{"queries": int64(len(e.Queries)), "connections": int64(len(e.Connections))}
	e.Queries, e.Connections = []sandbox.Query{}, []sandbox.Connection{}
	return s.Finish(ctx, &e)
}

// Execution returns one execution; of one that goes on, what it has done so far.
// FaultNotFound where there is none.
func (s *Store) Execution(ctx context.Context, id string) (sandbox.Execution, error) {
	var body []byte
	var progress [][]byte
	err := s.readExecutions(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT `+bodies+` FROM executions e WHERE id = $1`, clean(id)).Scan(&body, &progress)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return sandbox.Execution{}, notFound("execution")
	}
	if err != nil {
		return sandbox.Execution{}, err
	}
	return s.executionOf(body, progress)
}

// bodies are an execution's record and, where it goes on, those of what it has done so far.
const bodies = `e.record, CASE WHEN e.completed_at IS NULL THEN
	ARRAY(SELECT p.record FROM progress p WHERE p.execution_id = e.id ORDER BY p.kind, p.number) END`

// executionOf is the execution that has these bodies.
func (s *Store) executionOf(body []byte, progress [][]byte) (sandbox.Execution, error) {
	e, err := decode(body)
	if err == nil {
		if wrong := addProgress(&e, progress); wrong != nil {
			s.say.WithError(wrong).WithField("execution_id", e.ID).Error("a part of what an execution does is left out")
		}
	}
	return e, err
}

// CountExecutions is how many executions a sandbox has had.
func (s *Store) CountExecutions(ctx context.Context, sandboxID string) (int, error) {
	var n int
	err := s.readExecutions(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT count(*) FROM executions WHERE sandbox_id = $1`, clean(sandboxID)).Scan(&n)
	})
	return n, err
}

// Statistics sums up a user's executions, or everybody's where user is "". What a
// limit or the kernel ended counts as failed; the rate and the average are of those
// that have ended.
func (s *Store) Statistics(ctx context.Context, user string) (sandbox.Statistics, error) {
	st := sandbox.Statistics{Timestamp: time.Now().UTC()}
	var ended int
	err := s.readExecutions(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT count(*), count(completed_at), count(*) FILTER (WHERE status = 'completed'),
			count(*) FILTER (WHERE status IN ('failed', 'killed')), count(*) FILTER (WHERE status = 'timeout'),
			coalesce(avg(seconds) FILTER (WHERE completed_at IS NOT NULL), 0), coalesce(max(memory_mb), 0)
			FROM executions WHERE $1 = '' OR owner = $1`, clean(user)).
			Scan(&st.TotalExecutions, &ended, &st.SuccessfulExecutions, &st.FailedExecutions, &st.TimeoutExecutions, &st.AverageExecutionTime, &st.PeakMemoryUsage)
	})
	if ended > 0 {
		st.SuccessRate = 100 * float64(st.SuccessfulExecutions) / float64(ended)
	}
	return st, err
}
