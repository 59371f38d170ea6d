package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// ExpiredExecutions returns the ids of at most limit ended executions that began before a time or, if byKey is set,
// whose own time of expiry is before it; the oldest first. It leaves out executions whose writes wait for a decision,
// are being applied, or have an unknown outcome.
func (s *Store) ExpiredExecutions(
	ctx context.Context, before time.Time, byKey bool, limit int,
) ([]string, error) {
	column := "created_at"
	if byKey {
		column = "expires_at"
	}
	return query(ctx, s, s.readWithin, pgx.RowTo[string], fmt.Sprintf(`SELECT id FROM executions e
		WHERE %[1]s < $1 AND completed_at IS NOT NULL AND NOT EXISTS (SELECT FROM pending_writes w
			WHERE w.execution_id = e.id AND w.status IN ('pending', 'applying', 'unknown'))
		ORDER BY %[1]s, id LIMIT $2`, column), before, limit)
}

// EraseEnded deletes at most limit sandboxes that ended before a time and have no execution, at most limit
// conversations without a message since then, and files of refused records that are older and have no execution: a kill
// between the transaction of erase and the removal of a file leaves such files.
func (s *Store) EraseEnded(ctx context.Context, before time.Time, limit int) (erased sandbox.Erased, err error) {
	err = s.transact(ctx, func(tx pgx.Tx) error {
		for sql, count := range map[string]*int{
			`DELETE FROM sandboxes WHERE id IN (SELECT id FROM sandboxes s
				WHERE created_at < $1 AND ended_at < $1 AND state <> 'active'
				AND NOT EXISTS (SELECT FROM executions e WHERE e.sandbox_id = s.id)
				ORDER BY created_at LIMIT $2)`: &erased.Sandboxes,
			`DELETE FROM conversations WHERE id IN (SELECT id FROM conversations
				WHERE updated_at < $1 ORDER BY updated_at LIMIT $2)`: &erased.Conversations,
		} {
			tag, err := tx.Exec(ctx, sql, before, limit)
			if err != nil {
				return err
			}
			*count += int(tag.RowsAffected())
		}
		return nil
	})
	if err == nil && erased.Sandboxes+erased.Conversations == 0 { // the last batch
		err = s.removeRefused(ctx, before)
	}
	return erased, err
}

// removeRefused removes the files of refused records that were written before a time and whose execution was erased.
func (s *Store) removeRefused(ctx context.Context, before time.Time) error {
	entries, err := os.ReadDir(s.refusedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if infoErr != nil || !info.ModTime().Before(before) {
			continue
		}
		id, _, _ := strings.Cut(entry.Name(), ".")
		var exists bool
		err = errors.Join(err, s.read(ctx, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM executions WHERE id = $1)`, id).Scan(&exists)
		}))
		if err == nil && !exists {
			err = os.Remove(filepath.Join(s.refusedDir, entry.Name()))
		}
		if err != nil {
			return err
		}
	}
	return err
}

const (
	sizeIntervals = 1000 // into which SizeLimit divides a time
	// rowOverhead is the approximate number of bytes of a row's other columns and index entries.
	rowOverhead = 300
)

// sizesByTime returns the bytes of history by interval. Large records count as they are stored, compressed.
var sizesByTime = `SELECT width_bucket(extract(epoch FROM at), extract(epoch FROM $1::timestamptz),
		extract(epoch FROM $2::timestamptz), $3) AS n, sum(bytes)::bigint AS bytes FROM (
		SELECT created_at AS at, pg_column_size(record) + 2 * pg_column_size(code) + $4::bigint AS bytes FROM executions
		WHERE created_at >= $1 AND created_at < $2
	UNION ALL SELECT created_at, length(definitions) + length(index) + length(data) + $4 FROM recording_chunks
		WHERE created_at >= $1 AND created_at < $2
	UNION ALL SELECT created_at, length(log) + $4 FROM input_logs WHERE created_at >= $1 AND created_at < $2
	UNION ALL SELECT e.created_at, pg_column_size(k.record) + $4 FROM kept_stages k JOIN executions e
		ON e.id = k.execution_id WHERE e.created_at >= $1 AND e.created_at < $2
	UNION ALL SELECT started_at, pg_column_size(sql) + $4 FROM queries WHERE started_at >= $1 AND started_at < $2
	UNION ALL SELECT started_at, $4 FROM connections WHERE started_at >= $1 AND started_at < $2
	) sizes GROUP BY 1 ORDER BY 1 DESC`

// SizeLimit returns a time so that the records, recordings, statements and connections since then have at most about
// maxBytes. The time is zero if all of history has at most maxBytes. SizeLimit reads the sizes of all rows, but only if
// the database is larger than maxBytes.
func (s *Store) SizeLimit(ctx context.Context, maxBytes int64) (limit time.Time, err error) {
	var databaseBytes int64
	var first, last *time.Time
	err = s.readWithin(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT pg_database_size(current_database()), min(created_at),
			max(created_at) + interval '1 day' FROM executions`).Scan(&databaseBytes, &first, &last)
	})
	if err != nil || databaseBytes <= maxBytes || first == nil {
		return time.Time{}, err
	}
	from, to := *first, *last
	for { // each round looks closer at the interval in which the limit lies
		interval := to.Sub(from) / sizeIntervals
		number, bytes, err := s.intervalBeyond(ctx, from, to, maxBytes)
		if err != nil {
			return time.Time{}, err
		}
		if number == 0 { // of the first round: all of history has at most maxBytes
			return limit, nil
		}
		limit = from.Add(time.Duration(number) * interval) // without the whole interval
		if interval <= time.Millisecond {
			return limit, nil
		}
		maxBytes -= bytes
		from, to = from.Add(time.Duration(number-1)*interval), limit
	}
}

// intervalBeyond returns the number, from 1, of the newest interval with which the newest intervals have more than
// maxBytes, and the bytes of the intervals after it. The number is 0 if all have at most maxBytes.
func (s *Store) intervalBeyond(
	ctx context.Context, from, to time.Time, maxBytes int64,
) (number int, newer int64, err error) {
	type sized struct {
		Number int
		Bytes  int64
	}
	list, err := query(ctx, s, s.readWithin, pgx.RowToStructByPos[sized], sizesByTime, from, to, sizeIntervals,
		rowOverhead)
	for _, interval := range list {
		if newer+interval.Bytes > maxBytes {
			return interval.Number, newer, err
		}
		newer += interval.Bytes
	}
	return 0, newer, err
}
