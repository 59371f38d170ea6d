package embedded

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// demoVersion is the version of demo.sql, which grows with every change. LoadDemo replaces a demo of another version.
const demoVersion = 2

//go:embed demo.sql
var demoSQL string

// LoadDemo creates the demo knowledge base if it is missing, and moves its dates up to today. It returns an error if a
// table that does not belong to the demo has the name of a demo table.
func (s *Server) LoadDemo(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL(RoleOwner, DatabaseKnowledge))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	changed := false
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var exists bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('glasshouse_demo.made') IS NOT NULL`).Scan(&exists); err != nil {
			return err
		}
		if exists {
			var version int
			var dated time.Time
			row := tx.QueryRow(ctx, `SELECT version, dated FROM glasshouse_demo.made`)
			if err := row.Scan(&version, &dated); err != nil {
				return err
			}
			if version == demoVersion {
				var err error
				changed, err = shiftDates(ctx, tx, dated)
				return err
			}
		}
		changed = true
		return createDemo(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("load the demo data: %w", err)
	}
	if changed {
		_, err = conn.Exec(ctx, "VACUUM ANALYZE")
	}
	return err
}

// createDemo creates the demo. It drops a demo of another version first.
func createDemo(ctx context.Context, tx pgx.Tx) error {
	for _, sql := range []string{
		`DO $$ DECLARE old regclass; BEGIN
			IF to_regclass('glasshouse_demo.tables') IS NOT NULL THEN
				FOR old IN SELECT to_regclass(name) FROM glasshouse_demo.tables WHERE to_regclass(name) IS NOT NULL
				LOOP EXECUTE format('DROP TABLE %s CASCADE', old); END LOOP;
			END IF;
		END $$`,
		`DROP SCHEMA IF EXISTS glasshouse_demo CASCADE`,
		`CREATE TEMP TABLE before ON COMMIT DROP AS SELECT oid FROM pg_class`,
		demoSQL,
		`CREATE SCHEMA glasshouse_demo`,
		`CREATE TABLE glasshouse_demo.tables AS SELECT format('public.%I', relname) AS name FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND oid NOT IN (SELECT oid FROM before)`,
		fmt.Sprintf(`CREATE TABLE glasshouse_demo.made AS SELECT %d AS version, now() AS dated`, demoVersion),
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// shiftDates moves every date of the demo by the whole days since dated, so that no date is in the future. It reports
// whether it changed any.
func shiftDates(ctx context.Context, tx pgx.Tx, dated time.Time) (bool, error) {
	days := int(time.Since(dated) / (24 * time.Hour))
	if days <= 0 {
		return false, nil
	}
	rows, _ := tx.Query(ctx, `SELECT format('UPDATE %I.%I SET %s', n.nspname, c.relname,
			string_agg(format('%1$I = %1$I + make_interval(days => $1)', a.attname), ', '))
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname = 'public' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
			AND a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype)
		GROUP BY n.nspname, c.relname`)
	updates, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, err
	}
	updates = append(updates, `UPDATE glasshouse_demo.made SET dated = dated + make_interval(days => $1)`)
	for _, update := range updates {
		if _, err := tx.Exec(ctx, update, days); err != nil {
			return false, err
		}
	}
	return true, nil
}
