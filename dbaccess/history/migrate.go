package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sirupsen/logrus"

	"glasshouse/migrations"
	"glasshouse/sandbox"
)

// fills are the steps that follow a migration, by its name, in the same transaction: they fill new columns and tables
// from the records, which SQL cannot always read.
var fills = map[string]func(context.Context, pgx.Tx, logrus.FieldLogger) error{"0011_statements.sql": fillStatements}

// migrate runs the migrations that the database does not have, in one transaction and under a lock. It returns an
// error if the database has a migration that this program does not know.
func migrate(ctx context.Context, pool *pgxpool.Pool, logger logrus.FieldLogger) error {
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return err
	}
	sort.Strings(names)
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(7236849271)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_versions (
				name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT name FROM schema_versions ORDER BY 1`)
		applied, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if err := checkApplied(applied, names); err != nil {
			return err
		}
		for _, name := range names[len(applied):] {
			sql, err := migrations.Files.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(sql)); err != nil {
				return fmt.Errorf("migration %s: %w", name, err)
			}
			if fill := fills[name]; fill != nil {
				if err := fill(ctx, tx, logger); err != nil {
					return fmt.Errorf("migration %s: %w", name, err)
				}
			}
			if _, err := tx.Exec(ctx, `INSERT INTO schema_versions (name) VALUES ($1)`, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkApplied returns an error if the database has a migration that this program does not know.
func checkApplied(applied, names []string) error {
	for n, name := range applied {
		if n >= len(names) || names[n] != name {
			return fmt.Errorf("the database has migration %s, which this glasshouse does not know: "+
				"use a newer glasshouse or another database", name)
		}
	}
	return nil
}

// checkSchema returns an error unless the database has exactly the migrations of this program.
func checkSchema(ctx context.Context, conn *pgx.Conn) error {
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return err
	}
	sort.Strings(names)
	rows, _ := conn.Query(ctx, `SELECT name FROM schema_versions ORDER BY 1`)
	applied, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil {
		err = checkApplied(applied, names)
	}
	if err == nil && len(applied) < len(names) {
		err = fmt.Errorf("the database has no migration %s: start this version of the service once",
			names[len(applied)])
	}
	return err
}

const (
	fillBatch          = 500 // executions
	fillBatchBytes     = 32 << 20
	fillReportInterval = 10 * time.Second
	fillSummaries      = `UPDATE executions e SET cpu_ms = f.cpu_ms, query_count = f.queries, rows_read = f.rows_read,
			connection_count = f.connections, artifact_count = f.artifacts
		FROM unnest($1::text[], $2::float8[], $3::int[], $4::bigint[], $5::int[], $6::int[])
			AS f(id, cpu_ms, queries, rows_read, connections, artifacts) WHERE e.id = f.id`
)

// fillStatements fills the columns of executions that lists show, and the table queries, from the records of the ended
// executions. It leaves out records that it cannot decode, and logs them.
func fillStatements(ctx context.Context, tx pgx.Tx, logger logrus.FieldLogger) error {
	var total int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM executions WHERE completed_at IS NOT NULL`).Scan(&total)
	if err != nil || total == 0 {
		return err
	}
	// The statement that inserts statements needs this column, which a later migration adds.
	const column = `ALTER TABLE queries ADD COLUMN IF NOT EXISTS database text NOT NULL DEFAULT '` +
		sandbox.DefaultDatabase + `'`
	if _, err := tx.Exec(ctx, column); err != nil {
		return err
	}
	logger.Infof("history: the database gets a table of statements; reading %d executions", total)
	done, reported := 0, time.Now()
	for last := ""; ; {
		rows, next, err := readRecords(ctx, tx, last, logger)
		if err != nil || next == "" {
			return err
		}
		var batch pgx.Batch
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.executionID)
			queueQueries(&batch, r)
		}
		batch.Queue(fillSummaries, append([]any{ids}, summaryColumns(rows)...)...)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		last, done = next, done+len(rows)
		if time.Since(reported) > fillReportInterval {
			logger.Infof("history: %d of %d executions are read", done, total)
			reported = time.Now()
		}
	}
}

// readRecords returns the rows of the next ended executions after an id, and the id of the last of them; "" if there
// are no more.
func readRecords(
	ctx context.Context, tx pgx.Tx, last string, logger logrus.FieldLogger,
) (list []row, next string, err error) {
	rows, err := tx.Query(ctx, `SELECT id, record FROM (
			SELECT id, record, sum(octet_length(record)) OVER (ORDER BY id) - octet_length(record) AS before FROM (
				SELECT id, record FROM executions WHERE completed_at IS NOT NULL AND id > $1 ORDER BY id LIMIT $2) page
		) sized WHERE before < $3 ORDER BY id`, last, fillBatch, fillBatchBytes)
	if err != nil {
		return nil, "", err
	}
	var id string
	var record []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &record}, func() error {
		next = id
		e, err := decode(record)
		if err == nil {
			var r row
			if r, err = executionRow(&e); err == nil {
				r.executionID = id
				list = append(list, r)
			}
		}
		if err != nil {
			logger.WithError(err).WithField("execution_id", id).
				Error("a record cannot be read: lists show no statements of this execution")
		}
		return nil
	})
	return list, next, err
}

// textIndex lets searches find text in any of a million executions. It needs an extension that belongs to PostgreSQL,
// but that some servers do not have, or do not let this role create.
const textIndex = `CREATE INDEX IF NOT EXISTS executions_text ON executions
	USING gin (code gin_trgm_ops, error gin_trgm_ops)`

// ensureTextIndex makes the index for searches. Without it, searches read every execution.
func ensureTextIndex(ctx context.Context, pool *pgxpool.Pool, logger logrus.FieldLogger) error {
	for _, sql := range []string{`CREATE EXTENSION IF NOT EXISTS pg_trgm`, textIndex} {
		_, err := pool.Exec(ctx, sql)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && !isConnectionError(err) {
			logger.WithError(err).Warn("history: the index for text cannot be made, so searches for text will be " +
				"slow in a large history: install PostgreSQL's contrib modules, or let an administrator run " +
				"CREATE EXTENSION pg_trgm in the history database, and restart this service")
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// summaryColumns returns the columns cpu_ms, query_count, rows_read, connection_count and artifact_count of rows.
func summaryColumns(rows []row) []any {
	var cpu []float64
	var queries, connections, artifacts []int
	var rowsRead []int64
	for _, r := range rows {
		cpu, queries = append(cpu, r.summary.CPUMS), append(queries, r.summary.Queries)
		rowsRead, connections = append(rowsRead, r.summary.RowsRead), append(connections, r.summary.Connections)
		artifacts = append(artifacts, r.summary.Artifacts)
	}
	return []any{cpu, queries, rowsRead, connections, artifacts}
}
