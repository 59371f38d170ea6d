package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// Begin writes the row of an execution that is about to run. Its commit may not
// be on disk yet when it returns: a crash may lose it, never its closing.
func (s *Store) Begin(ctx context.Context, e *sandbox.Execution) error {
	record, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return unavailable(s.openings.do(ctx, `INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, record) VALUES ($1,$2,$3,$4,$5,$6,$7,$8)`,
		e.ID, e.SandboxID, e.User, string(e.Kind), string(e.Status), clean(e.Code), e.CreatedAt, record))
}

// Finish writes how an execution ended; it is on disk when it returns. While the
// database is away it tries again until ctx ends.
func (s *Store) Finish(ctx context.Context, e *sandbox.Execution) error {
	record, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var failure *string
	if e.Error != nil {
		text := clean(*e.Error)
		failure = &text
	}
	return unavailable(s.closes.do(ctx, `INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, record, error, seconds, memory_mb, completed_at)
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) ON CONFLICT (id) DO UPDATE SET status = excluded.status, record = excluded.record, error = excluded.error,
		seconds = excluded.seconds, memory_mb = excluded.memory_mb, completed_at = excluded.completed_at`,
		e.ID, e.SandboxID, e.User, string(e.Kind), string(e.Status), clean(e.Code), e.CreatedAt, record, failure, e.ExecutionTime, e.MemoryUsage, e.CompletedAt))
}

// clean makes text that PostgreSQL's text type can hold; the record has it whole.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Recover closes what a service that was killed left open: executions become
// cancelled, sandboxes lost. It returns how many executions there were.
func (s *Store) Recover(ctx context.Context) (int, error) {
	rows, _ := s.pool.Query(ctx, `SELECT record FROM executions WHERE completed_at IS NULL`)
	records, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return 0, unavailable(err)
	}
	now := time.Now().UTC()
	for _, record := range records {
		e, err := decode(record)
		if err != nil {
			return 0, err
		}
		why := "the service ended while this ran"
		e.Status, e.Error, e.CompletedAt, e.Usage.EndedBy, e.SessionReset = sandbox.StatusCancelled, &why, &now, "shutdown", true
		if err := s.Finish(ctx, &e); err != nil {
			return 0, err
		}
	}
	_, err = s.pool.Exec(ctx, `UPDATE sandboxes SET state = $1, ended_at = $2 WHERE state = $3`, string(sandbox.StateLost), now, string(sandbox.StateActive))
	return len(records), unavailable(err)
}

func decode(record []byte) (sandbox.Execution, error) {
	var e sandbox.Execution
	if err := json.Unmarshal(record, &e); err != nil {
		return e, fmt.Errorf("read an execution's record: %w", err)
	}
	return e, nil
}

// Execution returns one execution. FaultNotFound where there is none.
func (s *Store) Execution(ctx context.Context, id string) (sandbox.Execution, error) {
	var record []byte
	err := s.pool.QueryRow(ctx, `SELECT record FROM executions WHERE id = $1`, clean(id)).Scan(&record)
	if errors.Is(err, pgx.ErrNoRows) {
		return sandbox.Execution{}, notFound("execution")
	}
	if err != nil {
		return sandbox.Execution{}, unavailable(err)
	}
	return decode(record)
}

// Executions lists what the filter lets through, newest first, and the cursor of
// the next page, "" where there is none.
func (s *Store) Executions(ctx context.Context, f sandbox.Filter) ([]sandbox.Execution, string, error) {
	where, args := []string{"true"}, []any{}
	add := func(clause string, v any) {
		args = append(args, v)
		where = append(where, strings.ReplaceAll(clause, "?", fmt.Sprintf("$%d", len(args))))
	}
	if f.User != "" {
		add("owner = ?", clean(f.User))
	}
	if f.SandboxID != "" {
		add("sandbox_id = ?", clean(f.SandboxID))
	}
	if f.Status != "" {
		add("status = ?", string(f.Status))
	}
	if !f.Since.IsZero() {
		add("created_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		add("created_at < ?", f.Until)
	}
	if f.Text != "" {
		add("(strpos(lower(code), lower(?)) > 0 OR strpos(lower(error), lower(?)) > 0)", clean(f.Text))
	}
	if f.After != "" {
		add("(created_at, id) < (SELECT created_at, id FROM executions WHERE id = ?)", clean(f.After))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 1000)
	rows, _ := s.pool.Query(ctx, `SELECT record FROM executions WHERE `+strings.Join(where, " AND ")+fmt.Sprintf(` ORDER BY created_at DESC, id DESC LIMIT %d`, limit+1), args...)
	records, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, "", unavailable(err)
	}
	next := ""
	list := make([]sandbox.Execution, 0, len(records))
	for n, record := range records {
		if n == limit {
			next = list[n-1].ID
			break
		}
		e, err := decode(record)
		if err != nil {
			return nil, "", err
		}
		list = append(list, e)
	}
	return list, next, nil
}

// CountExecutions is how many executions a sandbox has had.
func (s *Store) CountExecutions(ctx context.Context, sandboxID string) (int, error) {
	var n int
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM executions WHERE sandbox_id = $1`, clean(sandboxID)).Scan(&n)
	return n, unavailable(err)
}

// Statistics sums up a user's executions, or everybody's where user is "".
func (s *Store) Statistics(ctx context.Context, user string) (sandbox.Statistics, error) {
	st := sandbox.Statistics{Timestamp: time.Now().UTC()}
	err := s.pool.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('failed', 'killed')),
		count(*) FILTER (WHERE status = 'timeout'), coalesce(avg(seconds) FILTER (WHERE completed_at IS NOT NULL), 0), coalesce(max(memory_mb), 0)
		FROM executions WHERE $1 = '' OR owner = $1`, clean(user)).
		Scan(&st.TotalExecutions, &st.SuccessfulExecutions, &st.FailedExecutions, &st.TimeoutExecutions, &st.AverageExecutionTime, &st.PeakMemoryUsage)
	if st.TotalExecutions > 0 {
		st.SuccessRate = 100 * float64(st.SuccessfulExecutions) / float64(st.TotalExecutions)
	}
	return st, unavailable(err)
}
