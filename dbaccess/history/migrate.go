package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sirupsen/logrus"

	"glasshouse/migrations"
)

// migrate runs the migrations that the database does not have, in one transaction and under a lock. It returns an
// error if the database has a migration that this program does not have.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
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
			if _, err := tx.Exec(ctx, `INSERT INTO schema_versions (name) VALUES ($1)`, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// oldMigration is the second of the 17 migrations that made the schema before one did. Their first one had the name of
// the one that makes it now.
const oldMigration = "0002_connections.sql"

// checkApplied returns an error if the database has a migration that this program does not have.
func checkApplied(applied, names []string) error {
	for n, name := range applied {
		if name == oldMigration {
			return fmt.Errorf("the database has migration %s of an older glasshouse, and this one reads no older "+
				"databases: export the executions with the older one (glasshouse history export FILE.jsonl.zst), and "+
				"import them with this one into a new database or data folder (glasshouse history import "+
				"FILE.jsonl.zst)", name)
		}
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

// textIndex lets searches find text in any of a million executions. It needs an extension that belongs to PostgreSQL,
// but that some servers do not have, or do not let this role create.
const textIndex = `CREATE INDEX IF NOT EXISTS executions_texts ON executions
	USING gin (code gin_trgm_ops, error gin_trgm_ops, title gin_trgm_ops, output gin_trgm_ops)`

// oldTextIndex is the index of versions that searched code and errors only.
const oldTextIndex = `DROP INDEX IF EXISTS executions_text`

// statementIndex lets searches find text in any of a million statements.
const statementIndex = `CREATE INDEX IF NOT EXISTS queries_text ON queries USING gin (sql gin_trgm_ops)`

// ensureTextIndex makes the index for searches. Without it, searches read every execution.
func ensureTextIndex(ctx context.Context, pool *pgxpool.Pool, logger logrus.FieldLogger) error {
	for _, sql := range []string{`CREATE EXTENSION IF NOT EXISTS pg_trgm`, textIndex, oldTextIndex, statementIndex} {
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
