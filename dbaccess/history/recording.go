package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// KeepChunk stores a chunk of a recording. A second call with the same chunk changes nothing.
func (s *Store) KeepChunk(ctx context.Context, executionID string, c sandbox.Chunk) error {
	return s.execAsync(ctx, `INSERT INTO recording_chunks (execution_id, sequence, first_step, last_step,
			definitions, index, data)
		VALUES ($1, $2, $3, $4, coalesce($5, ''::bytea), coalesce($6, ''::bytea), coalesce($7, ''::bytea))
		ON CONFLICT DO NOTHING`,
		clean(executionID), c.Sequence, c.First, c.Last, c.Definitions, c.Index, c.Data)
}

// Chunks returns the chunks of a recording in order, with their Bytes and without their Data, or FaultNotFound.
func (s *Store) Chunks(ctx context.Context, executionID string) ([]sandbox.Chunk, error) {
	scan := func(row pgx.CollectableRow) (c sandbox.Chunk, err error) {
		err = row.Scan(&c.Sequence, &c.First, &c.Last, &c.Definitions, &c.Index, &c.Bytes)
		return c, err
	}
	list, err := query(ctx, s, s.read, scan, `SELECT sequence, first_step, last_step, definitions, index,
			length(definitions) + length(index) + length(data)
		FROM recording_chunks WHERE execution_id = $1 ORDER BY sequence`, clean(executionID))
	if err == nil && len(list) == 0 {
		return nil, notFound("recording")
	}
	return list, err
}

// ChunkData returns the Data of a chunk, or FaultNotFound.
func (s *Store) ChunkData(ctx context.Context, executionID string, sequence int) ([]byte, error) {
	return queryOne(ctx, s, "recording", pgx.RowTo[[]byte],
		`SELECT data FROM recording_chunks WHERE execution_id = $1 AND sequence = $2`, clean(executionID), sequence)
}

// recordedSteps returns the expression for the number of steps of an execution's recording, which is 0 without one. It
// is computed and not a column of executions, because retention removes recordings alone. With LIMIT, each row costs
// one index lookup; PostgreSQL could turn an EXISTS into a read of all recordings.
func recordedSteps(executionID string) string {
	return `coalesce((SELECT last_step FROM recording_chunks WHERE execution_id = ` + executionID + `
		ORDER BY sequence DESC LIMIT 1), 0)`
}

// PruneRecordings deletes the recordings whose last chunk is older than a time, and then the oldest recordings until at
// most maxBytes remain; 0 means no limit. It returns the number of deleted recordings.
func (s *Store) PruneRecordings(ctx context.Context, before time.Time, maxBytes int64) (int, error) {
	var deleted int
	err := s.readWithin(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `WITH recordings AS (
				SELECT execution_id, max(created_at) AS ended,
					sum(length(definitions) + length(index) + length(data)) AS size
				FROM recording_chunks GROUP BY 1
			), ranked AS (
				SELECT execution_id, ended, sum(size) OVER (ORDER BY ended DESC, execution_id) AS total FROM recordings
			), deleted AS (
				DELETE FROM recording_chunks USING ranked WHERE recording_chunks.execution_id = ranked.execution_id
					AND (ranked.ended < $1 OR $2::bigint > 0 AND ranked.total > $2)
				RETURNING ranked.execution_id
			) SELECT count(DISTINCT execution_id) FROM deleted`, before, maxBytes).Scan(&deleted)
	})
	return deleted, err
}
