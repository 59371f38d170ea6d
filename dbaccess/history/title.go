package history

import "context"

// RenameExecution gives an execution a title. It returns FaultNotFound if there is no such execution.
func (s *Store) RenameExecution(ctx context.Context, id, title string) error {
	return s.rename(ctx, ofExecution(id), "execution", `UPDATE executions SET title = $2 WHERE id = $1`, id, title)
}

// RenameSandbox gives a sandbox a title. It returns FaultNotFound if there is no such sandbox.
func (s *Store) RenameSandbox(ctx context.Context, id, title string) error {
	return s.rename(ctx, ofSandbox(id), "sandbox", `UPDATE sandboxes SET title = $2 WHERE id = $1`, id, title)
}

// rename changes a row, after the rows that wait are inserted.
func (s *Store) rename(ctx context.Context, of scope, noun, sql, id, title string) error {
	if err := s.writer.waitInserted(ctx, of); err != nil {
		return unavailable(err)
	}
	return s.inTurn(ctx, func() error {
		tag, err := s.writePool.Exec(ctx, sql, clean(id), clean(title))
		if err == nil && tag.RowsAffected() == 0 {
			return notFound(noun)
		}
		return err
	})
}
