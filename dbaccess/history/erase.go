package history

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// eraseBatch is the number of executions that one transaction of EraseUser erases.
const eraseBatch = 500

// eraseExecutions deletes all that belongs to the executions whose ids it gets, and returns how much that was. A
// pending write that is being applied stays.
const eraseExecutions = `WITH
	e AS (DELETE FROM executions WHERE id = ANY ($1) AND completed_at IS NOT NULL RETURNING id),
	q AS (DELETE FROM queries WHERE execution_id IN (SELECT id FROM e) RETURNING 1),
	c AS (DELETE FROM connections WHERE execution_id IN (SELECT id FROM e) RETURNING 1),
	r AS (DELETE FROM recording_chunks WHERE execution_id IN (SELECT id FROM e) RETURNING execution_id),
	i AS (DELETE FROM input_logs WHERE execution_id IN (SELECT id FROM e)),
	p AS (DELETE FROM progress WHERE execution_id IN (SELECT id FROM e)),
	w AS (DELETE FROM pending_writes WHERE execution_id IN (SELECT id FROM e) AND status <> 'applying' RETURNING 1)
	SELECT (SELECT count(*) FROM e), (SELECT count(*) FROM q), (SELECT count(*) FROM c),
		(SELECT count(DISTINCT execution_id) FROM r), (SELECT count(*) FROM w)`

// EraseExecution deletes an ended execution with its statements, connections, artifacts, recording and pending writes,
// and what conversations hold of it. It returns FaultNotFound if there is no such execution, and FaultBusy if it runs
// or a write of it is being applied.
func (s *Store) EraseExecution(ctx context.Context, id string) (sandbox.Erased, error) {
	e, err := s.Execution(ctx, id)
	if err == nil && e.CompletedAt == nil {
		err = sandbox.Errorf(sandbox.FaultBusy, "the execution runs: cancel it first")
	}
	if err != nil {
		return sandbox.Erased{}, err
	}
	applying, err := query(ctx, s, s.read, pgx.RowTo[string],
		`SELECT id FROM pending_writes WHERE execution_id = $1 AND status = 'applying'`, clean(id))
	if err == nil && len(applying) > 0 {
		err = sandbox.Errorf(sandbox.FaultBusy, "its pending write %s is being applied: try again later", applying[0])
	}
	if err != nil {
		return sandbox.Erased{}, err
	}
	erased, err := s.erase(ctx, []string{clean(id)})
	if erased.PendingWrites > 0 {
		s.recountPending(ctx)
	}
	return erased, err
}

// EraseUser deletes all that history has of a user: the ended executions with all that belongs to them, ended
// sandboxes, conversations, other pending writes and counts. What runs stays. It erases batch after batch; after an
// error, the numbers say how much is erased, and another call continues.
func (s *Store) EraseUser(ctx context.Context, user string) (erased sandbox.Erased, err error) {
	if err := s.writer.waitInserted(ctx, ofUser(user)); err != nil {
		return erased, unavailable(err)
	}
	defer s.recountPending(ctx)
	for {
		ids, err := query(ctx, s, s.readWithin, pgx.RowTo[string], `SELECT id FROM executions
			WHERE owner = $1 AND completed_at IS NOT NULL LIMIT $2`, clean(user), eraseBatch)
		if err != nil {
			return erased, err
		}
		if len(ids) == 0 {
			break
		}
		batch, err := s.erase(ctx, ids)
		erased.Add(batch)
		if err != nil {
			return erased, err
		}
	}
	err = s.transact(ctx, func(tx pgx.Tx) error {
		for sql, count := range map[string]*int{
			`DELETE FROM sandboxes WHERE owner = $1 AND state <> 'active'`:         &erased.Sandboxes,
			`DELETE FROM pending_writes WHERE owner = $1 AND status <> 'applying'`: &erased.PendingWrites,
			`DELETE FROM conversations WHERE owner = $1`:                           &erased.Conversations,
			`DELETE FROM execution_totals WHERE owner = $1 AND executions = 0`:     new(int),
		} {
			tag, err := tx.Exec(ctx, sql, clean(user))
			if err != nil {
				return err
			}
			*count += int(tag.RowsAffected())
		}
		return nil
	})
	if err == nil {
		erased.Messages = 0 // their conversations are erased now
	}
	return erased, err
}

// EraseExecutions deletes the ended executions with these ids as EraseExecution does, in one transaction.
func (s *Store) EraseExecutions(ctx context.Context, ids []string) (sandbox.Erased, error) {
	return s.erase(ctx, ids)
}

// erase deletes ended executions, and the files of records that PostgreSQL had refused.
func (s *Store) erase(ctx context.Context, ids []string) (out sandbox.Erased, err error) {
	err = s.transact(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `DELETE FROM artifacts WHERE execution_id IN (
			SELECT id FROM executions WHERE id = ANY ($1) AND completed_at IS NOT NULL)
			RETURNING `+artifactColumns, ids)
		deleted, err := pgx.CollectRows(rows, scanArtifact)
		if err != nil {
			return err
		}
		versions, err := newestVersions(ctx, tx, deleted)
		if err != nil {
			return err
		}
		out = sandbox.Erased{Artifacts: len(deleted)}
		for _, a := range deleted {
			file := sandbox.ErasedFile{Artifact: a}
			if version, ok := versions[fileName{a.Folder, a.Path}]; ok {
				file.Version = &version
			}
			out.Files = append(out.Files, file)
		}
		err = tx.QueryRow(ctx, eraseExecutions, ids).Scan(&out.Executions, &out.Statements, &out.Connections,
			&out.Recordings, &out.PendingWrites)
		if err == nil {
			out.Messages, err = eraseMessages(ctx, tx, ids)
		}
		return err
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		for _, name := range []string{id + ".json", id + ".opening.json"} {
			removeErr := os.Remove(filepath.Join(s.refusedDir, filepath.Base(name)))
			if removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return out, err
}
