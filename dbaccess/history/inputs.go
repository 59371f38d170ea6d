package history

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// loggedInputs is the record of an input log in the write-ahead log.
type loggedInputs struct {
	ID      string `json:"inputs_of"` // the execution's
	Sandbox string `json:"sandbox_id"`
	User    string `json:"user_id"`
	Log     []byte `json:"log"`
}

const insertInputs = `INSERT INTO input_logs (execution_id, log) VALUES ($1, $2) ON CONFLICT DO NOTHING`

// maxLoggedInputs is the maximum size of an input log that passes the write-ahead log.
const maxLoggedInputs = 64 << 10

// KeepInputs stores the input log of an execution. A small one is in the write-ahead log when KeepInputs returns, and
// on disk when the Finish of its execution returns. A larger one is in the database. A second call changes nothing.
func (s *Store) KeepInputs(ctx context.Context, e *sandbox.Execution, log []byte) error {
	if len(log) > maxLoggedInputs {
		return s.exec(ctx, insertInputs, clean(e.ID), log)
	}
	r, err := inputsRow(loggedInputs{e.ID, e.SandboxID, e.User, log})
	if err != nil {
		return err
	}
	return unavailable(s.writer.write(ctx, r, finishTimeout))
}

// Inputs returns the input log of an execution, or FaultNotFound.
func (s *Store) Inputs(ctx context.Context, e *sandbox.Execution) ([]byte, error) {
	var log []byte
	err := s.readExecutions(ctx, ofExecution(e.ID), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT log FROM input_logs WHERE execution_id = $1`, clean(e.ID)).Scan(&log)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound("input log")
	}
	return log, err
}

// PruneInputs deletes the oldest input logs until at most maxBytes remain, and returns the number of deleted ones.
// Their executions stay.
func (s *Store) PruneInputs(ctx context.Context, maxBytes int64) (deleted int, err error) {
	err = s.readWithin(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `WITH ranked AS (
				SELECT execution_id,
					sum(length(log) + $2::bigint) OVER (ORDER BY created_at DESC, execution_id) AS total
				FROM input_logs
			), deleted AS (
				DELETE FROM input_logs USING ranked
				WHERE input_logs.execution_id = ranked.execution_id AND ranked.total > $1 RETURNING 1
			) SELECT count(*) FROM deleted`, maxBytes, int64(rowOverhead)).Scan(&deleted)
	})
	return deleted, err
}
