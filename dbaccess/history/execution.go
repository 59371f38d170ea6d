package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Begin stores an execution that is about to run; its CompletedAt must be nil. When Begin returns nil, the record is
// in the log, so it survives the death of this process. Begin returns FaultUnavailable if PostgreSQL has been
// unreachable for a while, the disk is nearly full, or the user's share of the backlog stays used up for 5 s. Then the
// execution has no record, or one that says that it did not run.
func (s *Store) Begin(ctx context.Context, e *sandbox.Execution) error {
	if e.CompletedAt != nil {
		return fmt.Errorf("execution %s has completed_at set before it begins", e.ID)
	}
	if err := s.checkBegin(); err != nil {
		return err
	}
	r, err := s.executionRow(e)
	if err != nil {
		return err
	}
	if err := s.writer.waitForSpace(ctx, r.user); err != nil {
		return unavailable(err)
	}
	if err = s.writer.write(ctx, r, beginTimeout); err == nil {
		return nil
	}
	reason, now, cancelled := "it did not run: history could not store its beginning", time.Now().UTC(), *e
	cancelled.Status, cancelled.Error, cancelled.CompletedAt = sandbox.StatusCancelled, &reason, &now
	if r, encodeErr := executionRow(&cancelled); encodeErr == nil {
		_, _ = s.writer.append(r)
	}
	return unavailable(err)
}

// Finish stores an execution that has ended; its CompletedAt must be set. When Finish returns nil, the record is on
// disk, or with Config.AsynchronousCommit about 10 ms later.
func (s *Store) Finish(ctx context.Context, e *sandbox.Execution) error {
	if e.CompletedAt == nil {
		return fmt.Errorf("execution %s has no completed_at although it has ended", e.ID)
	}
	r, err := s.executionRow(e)
	if err != nil {
		return err
	}
	return unavailable(s.writer.write(ctx, r, finishTimeout))
}

// executionRow encodes a large execution in its user's turn.
func (s *Store) executionRow(e *sandbox.Execution) (r row, err error) {
	s.cpu.Compute(e.User, e.TextBytes(), func() { r, err = executionRow(e) })
	return r, err
}

// Recover closes the records that killed services left open: executions become cancelled and sandboxes become lost. It
// returns the number of these executions. No other service runs on the database, so every open record is left over. If
// another node left it, and that node's folder still has the real end in its log, the end replaces this one as soon as
// a service with that folder starts on this database. The service calls Recover once, before the first execution.
func (s *Store) Recover(ctx context.Context) (int, error) {
	type openExecution struct{ ID, Node string }
	const unended = `SELECT id, node FROM executions WHERE completed_at IS NULL`
	open, err := query(ctx, s, s.readWithin, pgx.RowToStructByName[openExecution], unended)
	if err != nil {
		return 0, err
	}
	now := time.Now().UTC()
	ofOthers := map[string]int{} // by node
	for _, e := range open {
		reason := "the service ended while this ran: run it again in a new sandbox"
		if e.Node != s.owner.node.ID && e.Node != "" {
			ofOthers[e.Node]++
			reason = "the service that ran this, node " + e.Node + ", ended or lost its history database: run it again"
		}
		if err := s.cancelOpen(ctx, e.ID, reason, now); err != nil {
			return 0, err
		}
	}
	if err := s.writer.waitInserted(ctx, scope{}); err != nil {
		return 0, unavailable(err)
	}
	err = s.transactAsOwner(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE sandboxes SET state = $1, ended_at = $2 WHERE state = $3`,
			string(sandbox.StateLost), now, string(sandbox.StateActive))
		if err == nil {
			_, err = tx.Exec(ctx, `DELETE FROM progress`) // no execution runs
		}
		return err
	})
	for node, count := range ofOthers {
		s.logger.Warnf("history: node %s left %d executions running; they are recorded as cancelled. If its data "+
			"folder still exists, a service that starts with it on this database adds the ends that it has answered",
			node, count)
	}
	return len(open), err
}

// cancelOpen finishes, with a reason, an execution that a killed service left open. It leaves out and logs parts that
// are unreadable or too large, because no record may keep the service from starting.
func (s *Store) cancelOpen(ctx context.Context, id, reason string, now time.Time) error {
	logger := s.logger.WithField("execution_id", id)
	e, err := s.Execution(ctx, id)
	if isUnavailable(err) {
		return err
	}
	if err != nil {
		logger.WithError(err).Error("the record of an interrupted execution cannot be read; its columns are kept")
		var r row
		err = s.readWithin(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, selectExecution, id).Scan(fieldsOf(storedColumns, &r)...)
		})
		if err != nil {
			return err
		}
		e = sandbox.Execution{
			ID: r.executionID, SandboxID: r.sandboxID, User: r.user, Kind: r.summary.Kind, Code: r.code,
			CreatedAt: r.summary.CreatedAt, Timestamp: r.summary.CreatedAt, ExpiresAt: r.expiresAt,
		}
		e.FillEmpty()
	}
	e.Status, e.Error, e.CompletedAt = sandbox.StatusCancelled, &reason, &now
	e.Usage.EndedBy, e.SessionReset = "shutdown", true
	cutShort(&e)
	if err = s.Finish(ctx, &e); err == nil || isUnavailable(err) {
		return err
	}
	logger.WithError(err).Error("the queries and connections of an interrupted execution cannot be stored")
	e.Truncated = map[string]int64{"queries": int64(len(e.Queries)), "connections": int64(len(e.Connections))}
	e.Queries, e.Connections = []sandbox.Query{}, []sandbox.Connection{}
	return s.Finish(ctx, &e)
}

// HasExecution reports whether there is an execution with an id. It does not read the record.
func (s *Store) HasExecution(ctx context.Context, id string) (exists bool, err error) {
	err = s.readExecutions(ctx, ofExecution(id), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM executions WHERE id = $1)`, clean(id)).Scan(&exists)
	})
	return exists, err
}

// Execution returns the execution with an id, or FaultNotFound. A running execution has its queries and connections so
// far.
func (s *Store) Execution(ctx context.Context, id string) (sandbox.Execution, error) {
	var stored storedExecution
	err := s.readExecutions(ctx, ofExecution(id), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT `+recordColumns+` FROM executions e WHERE id = $1`, clean(id)).
			Scan(stored.columns()...)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return sandbox.Execution{}, notFound("execution")
	}
	if err != nil {
		return sandbox.Execution{}, err
	}
	return s.decodeExecution(ctx, stored)
}

// storedExecution is what history has of an execution: the columns of recordColumns.
type storedExecution struct {
	record        []byte
	progress      [][]byte // records of the progress of a running execution
	recordedSteps int64
	title         string // it may be a later one than that of the record
}

func (e *storedExecution) columns() []any {
	return []any{&e.record, &e.progress, &e.recordedSteps, &e.title}
}

// size returns the bytes of the records.
func (e *storedExecution) size() int {
	n := len(e.record)
	for _, p := range e.progress {
		n += len(p)
	}
	return n
}

// recordColumns are the columns of a storedExecution e.
var recordColumns = `e.record, CASE WHEN e.completed_at IS NULL THEN
	ARRAY(SELECT p.record FROM progress p WHERE p.execution_id = e.id ORDER BY p.kind, p.number) END,
	` + recordedSteps("e.id") + `, e.title`

// decodeExecution returns a stored execution. It decodes a large record in the turn of the context's user.
func (s *Store) decodeExecution(ctx context.Context, stored storedExecution) (e sandbox.Execution, err error) {
	s.share.Charge(limit.UserOf(ctx), recordWork+time.Duration(recordByteWork*stored.size()))
	s.cpu.Compute(limit.UserOf(ctx), stored.size(), func() {
		if e, err = decode(stored.record); err != nil {
			return
		}
		e.Title = stored.title
		e.RecordedSteps = stored.recordedSteps // a recording may be removed after the record was written
		if err := addProgress(&e, stored.progress); err != nil {
			s.logger.WithError(err).WithField("execution_id", e.ID).
				Error("a query or connection of a running execution is left out")
		}
	})
	return e, err
}

// CountExecutions returns the number of executions of a sandbox.
func (s *Store) CountExecutions(ctx context.Context, sandboxID string) (int, error) {
	var n int
	err := s.readExecutions(ctx, ofSandbox(sandboxID), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT count(*) FROM executions WHERE sandbox_id = $1`, clean(sandboxID)).Scan(&n)
	})
	return n, err
}

// Statistics summarises the executions of a user, or of all users if user is "". Executions that a limit or the kernel
// ended count as failed. Running executions do not count in the success rate and the average duration. The peak memory
// is that of all executions so far, also of those that were erased.
func (s *Store) Statistics(ctx context.Context, user string) (sandbox.Statistics, error) {
	st := sandbox.Statistics{Timestamp: time.Now().UTC()}
	var ended int
	var seconds float64
	err := s.readExecutions(ctx, ofUser(user), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT coalesce(sum(executions), 0),
			coalesce(sum(executions) FILTER (WHERE status NOT IN ('created', 'running')), 0),
			coalesce(sum(executions) FILTER (WHERE status = 'completed'), 0),
			coalesce(sum(executions) FILTER (WHERE status IN ('failed', 'killed')), 0),
			coalesce(sum(executions) FILTER (WHERE status = 'timeout'), 0),
			coalesce(sum(seconds) FILTER (WHERE status NOT IN ('created', 'running')), 0),
			coalesce(max(peak_memory_mb), 0)
			FROM execution_totals WHERE $1 = '' OR owner = $1`, clean(user)).
			Scan(&st.TotalExecutions, &ended, &st.SuccessfulExecutions, &st.FailedExecutions, &st.TimeoutExecutions,
				&seconds, &st.PeakMemoryUsage)
	})
	if ended > 0 {
		st.AverageExecutionTime = seconds / float64(ended)
		st.SuccessRate = 100 * float64(st.SuccessfulExecutions) / float64(ended)
	}
	return st, err
}
