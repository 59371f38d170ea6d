package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

const maxPendingWrites = 1000 // in one list

// AddWrite stores a new pending write.
func (s *Store) AddWrite(ctx context.Context, w sandbox.PendingWrite) error {
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `INSERT INTO pending_writes (id, status, created_at, record) VALUES ($1, $2, $3, $4)`,
		w.ID, string(w.Status), w.CreatedAt, record)
	return unavailable(err)
}

// MoveWrite stores a pending write if its stored status is still from, and returns FaultBusy otherwise. Therefore each
// write is decided once.
func (s *Store) MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error {
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	tag, err := s.pool.Exec(ctx, `UPDATE pending_writes SET status = $2, record = $3 WHERE id = $1 AND status = $4`,
		w.ID, string(w.Status), record, string(from))
	if err == nil && tag.RowsAffected() == 0 {
		return sandbox.Errorf(sandbox.FaultBusy, "the write is no longer %s: another decision came first", from)
	}
	return unavailable(err)
}

// Write returns the pending write with an id, or FaultNotFound.
func (s *Store) Write(ctx context.Context, id string) (sandbox.PendingWrite, error) {
	list, err := s.queryWrites(ctx, `WHERE id = $1`, clean(id))
	if err == nil && len(list) == 0 {
		err = notFound("pending write")
	}
	if err != nil {
		return sandbox.PendingWrite{}, err
	}
	return list[0], nil
}

// Writes returns the newest pending writes, of one status or, if status is "", of all.
func (s *Store) Writes(ctx context.Context, status sandbox.WriteStatus) ([]sandbox.PendingWrite, error) {
	order := fmt.Sprintf(`WHERE $1 IN ('', status) ORDER BY created_at DESC, id DESC LIMIT %d`, maxPendingWrites)
	return s.queryWrites(ctx, order, clean(string(status)))
}

func (s *Store) queryWrites(ctx context.Context, clauses, arg string) (list []sandbox.PendingWrite, err error) {
	records, err := query(ctx, s, s.read, pgx.RowTo[[]byte], `SELECT record FROM pending_writes `+clauses, arg)
	list = make([]sandbox.PendingWrite, len(records))
	for i, record := range records {
		err = errors.Join(err, json.Unmarshal(record, &list[i]))
	}
	if err != nil {
		return nil, fmt.Errorf("read pending writes: %w", err)
	}
	return list, nil
}
