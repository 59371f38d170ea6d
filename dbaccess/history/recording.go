package history

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// KeepChunk writes a part of a recording. It may be called again with the same.
func (s *Store) KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error {
	size := len(c.Definitions) + len(c.Index) + len(c.Data)
	return unavailable(s.openings.do(ctx, size, `INSERT INTO recording_chunks (execution_id, sequence, first_step, last_step, definitions, index, data)
		VALUES ($1,$2,$3,$4,$5,$6,$7) ON CONFLICT DO NOTHING`, clean(execution), c.Sequence, c.First, c.Last, notNil(c.Definitions), notNil(c.Index), notNil(c.Data)))
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Chunks returns the parts of a recording in order, without their Data, but with their
// Bytes. FaultNotFound
// where there are none.
func (s *Store) Chunks(ctx context.Context, execution string) ([]sandbox.Chunk, error) {
	var list []sandbox.Chunk
	err := s.read(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, `SELECT sequence, first_step, last_step, definitions, index, length(definitions) + length(index) + length(data) FROM recording_chunks WHERE execution_id = $1 ORDER BY sequence`, clean(execution))
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c sandbox.Chunk, err error) {
			err = row.Scan(&c.Sequence, &c.First, &c.Last, &c.Definitions, &c.Index, &c.Bytes)
			return c, err
		})
		return err
	})
	if err == nil && len(list) == 0 {
		return nil, notFound("recording")
	}
	return list, err
}

// ChunkData returns one part's Data.
func (s *Store) ChunkData(ctx context.Context, execution string, sequence int) ([]byte, error) {
	var data []byte
	err := s.read(ctx, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `SELECT data FROM recording_chunks WHERE execution_id = $1 AND sequence = $2`, clean(execution), sequence).Scan(&data)
		if err == pgx.ErrNoRows {
			return notFound("recording")
		}
		return err
	})
	return data, err
}

// PruneRecordings deletes recordings whose last part is older than before, and then the
// oldest until bytes are left; with 0, however many. It returns how many are gone.
func (s *Store) PruneRecordings(ctx context.Context, before time.Time, bytes int64) (int, error) {
	var gone int
	err := s.readWithin(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `WITH each AS (
				SELECT execution_id, max(created_at) AS ended, sum(length(definitions) + length(index) + length(data)) AS size FROM recording_chunks GROUP BY 1
			), newer AS (
				SELECT execution_id, ended, sum(size) OVER (ORDER BY ended DESC, execution_id) AS size FROM each
			), removed AS (
				DELETE FROM recording_chunks USING newer WHERE recording_chunks.execution_id = newer.execution_id AND (newer.ended < $1 OR $2::bigint > 0 AND newer.size > $2)
				RETURNING newer.execution_id
			) SELECT count(DISTINCT execution_id) FROM removed`, before, bytes).Scan(&gone)
	})
	return gone, err
}
