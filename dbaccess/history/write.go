package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// AddWrite keeps a new pending write.
func (s *Store) AddWrite(ctx context.Context, w sandbox.PendingWrite) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	_, err = s.pool.Exec(ctx, `INSERT INTO pending_writes (id, status, created_at, record) VALUES ($1, $2, $3, $4)`, w.ID, string(w.Status), w.CreatedAt, body)
	return unavailable(err)
}

// MoveWrite writes a pending write where it is still in the state from; FaultBusy
// where it is not, which is how each is decided on once.
func (s *Store) MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	tag, err := s.pool.Exec(ctx, `UPDATE pending_writes SET status = $2, record = $3 WHERE id = $1 AND status = $4`, w.ID, string(w.Status), body, string(from))
	if err == nil && tag.RowsAffected() == 0 {
		return sandbox.Errorf(sandbox.FaultBusy, "the write is not %s any more: somebody has decided on it", from)
	}
	return unavailable(err)
}

// Write returns one. FaultNotFound where there is none.
func (s *Store) Write(ctx context.Context, id string) (sandbox.PendingWrite, error) {
	list, err := s.writes(ctx, `WHERE id = $1`, clean(id))
	if err == nil && len(list) == 0 {
		return sandbox.PendingWrite{}, notFound("pending write")
	}
	if err != nil {
		return sandbox.PendingWrite{}, err
	}
	return list[0], nil
}

// Writes lists the newest, of one status or, where it is "", of all.
func (s *Store) Writes(ctx context.Context, status sandbox.WriteStatus) ([]sandbox.PendingWrite, error) {
	return s.writes(ctx, `WHERE $1 IN ('', status) ORDER BY created_at DESC, id DESC LIMIT 1000`, clean(string(status)))
}

func (s *Store) writes(ctx context.Context, where, arg string) (list []sandbox.PendingWrite, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `SELECT record FROM pending_writes `+where, arg)
		if err != nil {
			return err
		}
		bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		list = make([]sandbox.PendingWrite, len(bodies))
		for i, body := range bodies {
			err = errors.Join(err, json.Unmarshal(body, &list[i]))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read pending writes: %w", err)
	}
	return list, nil
}
