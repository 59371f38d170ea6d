package history

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// KeepInputs stores the input log of an execution. A second call changes nothing.
func (s *Store) KeepInputs(ctx context.Context, executionID string, log []byte) error {
	return s.execAsync(ctx, `INSERT INTO input_logs (execution_id, log) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
		clean(executionID), log)
}

// Inputs returns the input log of an execution, or FaultNotFound.
func (s *Store) Inputs(ctx context.Context, executionID string) ([]byte, error) {
	return queryOne(ctx, s, "input log", pgx.RowTo[[]byte], `SELECT log FROM input_logs WHERE execution_id = $1`,
		clean(executionID))
}

// PruneInputs deletes the oldest input logs until at most maxBytes remain, and returns the number of deleted ones. Their
// executions stay.
func (s *Store) PruneInputs(ctx context.Context, maxBytes int64) (deleted int, err error) {
	err = s.readWithin(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `WITH ranked AS (
				SELECT execution_id, sum(length(log) + $2::bigint) OVER (ORDER BY created_at DESC, execution_id) AS total
				FROM input_logs
			), deleted AS (
				DELETE FROM input_logs USING ranked
				WHERE input_logs.execution_id = ranked.execution_id AND ranked.total > $1 RETURNING 1
			) SELECT count(*) FROM deleted`, maxBytes, int64(rowOverhead)).Scan(&deleted)
	})
	return deleted, err
}
