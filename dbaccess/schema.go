package dbaccess

import (
	"context"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

const tablesSQL = `
SELECT c.oid::int8, CASE WHEN pg_table_is_visible(c.oid) THEN relname ELSE nspname || '.' || relname END
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'v', 'm', 'p', 'f') AND NOT relispartition AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\_%'
  AND has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY 2`

// Tables lists the tables and views that may be read, those outside the search
// path with their schema.
func (r *Reader) Tables(ctx context.Context) ([]string, error) {
	tables, err := r.tables(ctx)
	names := make([]string, 0, len(tables))
	for _, t := range tables {
		names = append(names, t.name)
	}
	return names, err
}

type table struct {
	oid  int64
	name string
}

func (r *Reader) tables(ctx context.Context) ([]table, error) {
	rows, _ := r.pool.Query(ctx, tablesSQL)
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (table, error) {
		var t table
		return t, row.Scan(&t.oid, &t.name)
	})
	return tables, unavailable(err)
}

// pg_constraint, because information_schema shows no constraints to a role that
// only reads.
const schemaSQL = `
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum), a.attnum::int,
  EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'p' AND a.attnum = ANY (k.conkey)),
  (SELECT k.confrelid::regclass || '(' || f.attname || ')' FROM pg_constraint k JOIN pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[array_position(k.conkey, a.attnum)]
   WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey) LIMIT 1)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// Schema lists the columns of a table, in order. The error is a Refusal with the
// nearest name where there is no such table to read.
func (r *Reader) Schema(ctx context.Context, name string) ([]sandbox.TableColumn, error) {
	tables, err := r.tables(ctx)
	if err != nil {
		return nil, err
	}
	among := map[string]bool{}
	for _, t := range tables {
		if t.name == name || "public."+t.name == name {
			return r.columns(ctx, t.oid)
		}
		among[t.name] = true
	}
	no := refuse("unknown-table", "there is no table %q that may be read", name)
	if no.Nearest = nearest(name, among); no.Nearest != "" {
		no.Hint = "did you mean " + no.Nearest + "?"
	} else {
		no.Hint = "db_tables() lists the tables"
	}
	return nil, no
}

func (r *Reader) columns(ctx context.Context, oid int64) ([]sandbox.TableColumn, error) {
	rows, _ := r.pool.Query(ctx, schemaSQL, oid)
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (sandbox.TableColumn, error) {
		var c sandbox.TableColumn
		err := row.Scan(&c.Name, &c.Type, &c.Nullable, &c.Default, &c.Comment, &c.Position, &c.PrimaryKey, &c.References)
		c.IsNullable = "NO"
		if c.Nullable {
			c.IsNullable = "YES"
		}
		return c, err
	})
	return columns, unavailable(err)
}
