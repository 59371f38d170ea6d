package history

import (
	"context"
	"fmt"
	"io/fs"
	"sort"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/migrations"
)

// migrate runs the migrations that the database does not have, in one transaction and under a lock. It returns an
// error if the database has a migration that this program does not know.
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
		for n, name := range applied {
			if n >= len(names) || names[n] != name {
				return fmt.Errorf("the database has migration %s, which this glasshouse does not know: "+
					"use a newer glasshouse or another database", name)
			}
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
