package history

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// KeepUndo stores how a pending write can be undone, in place of what it stored before. It returns after the commit is
// on disk, and FaultNotFound if there is no such write.
func (s *Store) KeepUndo(ctx context.Context, u sandbox.WriteUndo) error {
	record, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return s.inTurn(ctx, func() error {
		tag, err := s.pool.Exec(ctx, `INSERT INTO write_undos (write_id, record)
			SELECT id, $2 FROM pending_writes WHERE id = $1
			ON CONFLICT (write_id) DO UPDATE SET record = excluded.record`, clean(u.WriteID), record)
		if err == nil && tag.RowsAffected() == 0 {
			return notFound("pending write")
		}
		return err
	})
}

// Undo returns how a pending write can be undone, or FaultNotFound if it was not applied.
func (s *Store) Undo(ctx context.Context, writeID string) (sandbox.WriteUndo, error) {
	return queryOne(ctx, s, "undo script", scanUndo, `SELECT record FROM write_undos WHERE write_id = $1`,
		clean(writeID))
}

func scanUndo(row pgx.CollectableRow) (u sandbox.WriteUndo, err error) {
	var record []byte
	if err = row.Scan(&record); err == nil {
		err = json.Unmarshal(record, &u)
	}
	if err != nil {
		return u, fmt.Errorf("read an undo script: %w", err)
	}
	return u, nil
}
