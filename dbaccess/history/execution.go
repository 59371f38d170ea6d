package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// Begin writes the row of an execution that is about to run. Its commit may not
// be on disk yet when it returns: a crash of the server may lose it, never its
// closing.
func (s *Store) Begin(ctx context.Context, e *sandbox.Execution) error {
	body, err := encode(e)
	if err != nil {
		return err
	}
	return unavailable(s.openings.do(ctx, len(body), `INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, record)
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8) ON CONFLICT (id) DO NOTHING`,
		clean(e.ID), clean(e.SandboxID), clean(e.User), string(e.Kind), string(e.Status), clean(e.Code), e.CreatedAt, body))
}

// Finish writes how an execution ended; it is on disk when it returns. While the
// database is away it tries again until ctx ends.
func (s *Store) Finish(ctx context.Context, e *sandbox.Execution) error {
	done := *e
	if done.CompletedAt == nil { // a row without it counts as open
		now := time.Now().UTC()
		done.CompletedAt = &now
	}
	body, err := encode(&done)
	if err != nil {
		return err
	}
	var failure *string
	if e.Error != nil {
		text := clean(*e.Error)
		failure = &text
	}
	statement, args, err := withConnections(`INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, record, error, seconds, memory_mb, completed_at)
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) ON CONFLICT (id) DO UPDATE SET status = excluded.status, record = excluded.record, error = excluded.error,
		seconds = excluded.seconds, memory_mb = excluded.memory_mb, completed_at = excluded.completed_at`,
		[]any{clean(e.ID), clean(e.SandboxID), clean(e.User), string(e.Kind), string(e.Status), clean(e.Code), e.CreatedAt, body,
			failure, e.ExecutionTime, e.MemoryUsage, done.CompletedAt}, e)
	if err != nil {
		return err
	}
	return unavailable(s.closes.do(ctx, len(body), statement, args...))
}

// Recover closes what a service that was killed left open: executions become
// cancelled, sandboxes lost. It returns how many executions there were. It is run
// once, at the start, before anything is begun.
func (s *Store) Recover(ctx context.Context) (int, error) {
	var records [][]byte
	err := s.read(func() (err error) {
		rows, _ := s.pool.Query(ctx, `SELECT record FROM executions WHERE completed_at IS NULL`)
		records, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		return err
	})
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	for _, record := range records {
		e, err := decode(record)
		if err != nil {
			return 0, err
		}
		why := "the service ended while this ran: run it again in a new sandbox"
		e.Status, e.Error, e.CompletedAt, e.Usage.EndedBy, e.SessionReset = sandbox.StatusCancelled, &why, &now, "shutdown", true
		if err := s.Finish(ctx, &e); err != nil {
			return 0, err
		}
	}
	err = s.read(func() error {
		_, err := s.pool.Exec(ctx, `UPDATE sandboxes SET state = $1, ended_at = $2 WHERE state = $3`, string(sandbox.StateLost), now, string(sandbox.StateActive))
		return err
	})
	return len(records), err
}

// Execution returns one execution. FaultNotFound where there is none.
func (s *Store) Execution(ctx context.Context, id string) (sandbox.Execution, error) {
	var body []byte
	err := s.read(func() error {
		return s.pool.QueryRow(ctx, `SELECT record FROM executions WHERE id = $1`, clean(id)).Scan(&body)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return sandbox.Execution{}, notFound("execution")
	}
	if err != nil {
		return sandbox.Execution{}, err
	}
	return decode(body)
}

// CountExecutions is how many executions a sandbox has had.
func (s *Store) CountExecutions(ctx context.Context, sandboxID string) (int, error) {
	var n int
	err := s.read(func() error {
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
	err := s.read(func() error {
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
