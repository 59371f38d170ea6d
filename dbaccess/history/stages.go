package history

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// KeepStages keeps the stages of a statement with its execution, in place of those that were kept before. They are
// erased with the execution. KeepStages does not wait for the disk. It keeps nothing if there is no such execution.
func (s *Store) KeepStages(ctx context.Context, execution string, number int, record []byte) error {
	if err := s.writer.waitInserted(ctx, ofExecution(execution)); err != nil {
		return unavailable(err)
	}
	return s.execAsync(ctx, `INSERT INTO kept_stages (execution_id, number, record)
		SELECT id, $2, $3 FROM executions WHERE id = $1 FOR KEY SHARE
		ON CONFLICT (execution_id, number) DO UPDATE SET record = excluded.record`, clean(execution), number, record)
}

// Stages returns the kept stages of a statement, or FaultNotFound.
func (s *Store) Stages(ctx context.Context, execution string, number int) (record []byte, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT record FROM kept_stages WHERE execution_id = $1 AND number = $2`,
			clean(execution), number).Scan(&record)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, notFound("stages")
	}
	return record, err
}
