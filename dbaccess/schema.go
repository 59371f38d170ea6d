package dbaccess

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/check"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// tablesSQL lists readable tables, with their names as a statement writes them. The row estimate is the planner's, or
// the statistics collector's if there is none.
const tablesSQL = `
SELECT c.oid::int8,
  CASE WHEN count(*) OVER (PARTITION BY relname) > 1 THEN format('%I.%I', nspname, relname)
    ELSE c.oid::regclass::text END,
  CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign table' ELSE 'table' END, obj_description(c.oid, 'pg_class'),
  CASE WHEN relkind IN ('r', 'm') THEN CASE WHEN reltuples >= 0 THEN reltuples::int8 ELSE pg_stat_get_live_tuples(c.oid) END
    WHEN relkind = 'p' THEN (SELECT sum(greatest(leaf.reltuples, 0))::int8 FROM pg_partition_tree(c.oid) t JOIN pg_class leaf ON leaf.oid = t.relid WHERE t.isleaf) END,
  relname, nspname, pg_table_is_visible(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'v', 'm', 'p', 'f') AND NOT relispartition AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\_%'
  AND has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY relname, nspname`

// Tables returns the names of readable tables and views as a statement writes them: in double quotes if they need
// them, and with their schema if the search path does not find them or if two tables have the name.
func (r *Reader) Tables(ctx context.Context) ([]string, error) {
	if err := r.ensureAudited(ctx); err != nil {
		return nil, err
	}
	release, err := r.acquire(ctx, sandbox.QueryLimits{User: limit.UserOf(ctx)})
	if err != nil {
		return nil, err
	}
	defer release()
	tables, err := r.tables(ctx)
	names := make([]string, 0, len(tables))
	for _, t := range tables {
		names = append(names, t.Name)
	}
	return names, err
}

// catalogTable is a table with its object identifier, and its name without quotes.
type catalogTable struct {
	sandbox.Table
	oid             int64
	relname, schema string
	isVisible       bool // the search path finds it
}

func (r *Reader) tables(ctx context.Context) ([]catalogTable, error) {
	var tables []catalogTable
	var t catalogTable
	err := r.forEachRow(ctx, tablesSQL,
		[]any{&t.oid, &t.Name, &t.Kind, &t.Comment, &t.RowEstimate, &t.relname, &t.schema, &t.isVisible},
		func() {
			one := t
			one.PrimaryKey, one.ForeignKeys, one.Columns = []string{}, []sandbox.ForeignKey{}, []sandbox.TableColumn{}
			tables = append(tables, one)
			t = catalogTable{}
		},
	)
	return tables, r.unavailable(err)
}

// forEachRow runs a query of the service that prints names by the path of the login. The names in the query itself are
// looked up in pg_catalog first.
func (r *Reader) forEachRow(ctx context.Context, sql string, into []any, take func(), args ...any) error {
	return r.forEachRowOn(ctx, "", sql, into, take, args...)
}

// forEachRowOn runs a query of the service on a search path, or on that of forEachRow if it is empty.
func (r *Reader) forEachRowOn(
	ctx context.Context, path, sql string, into []any, take func(), args ...any,
) error {
	setPath, pathArgs := `SELECT pg_catalog.set_config('search_path',
		pg_catalog.concat('pg_catalog, ', pg_catalog.current_setting('search_path')), true)`, []any{}
	if path != "" {
		setPath, pathArgs = `SELECT pg_catalog.set_config('search_path', $1, true)`, []any{path}
	}
	return pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setPath, pathArgs...); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, sql, args...)
		_, err := pgx.ForEachRow(rows, into, func() error { take(); return nil })
		return err
	})
}

// columnsSQL reads pg_constraint because information_schema shows no constraints to a role that
// only reads.
const columnsSQL = `
SELECT a.attrelid::int8, a.attname, quote_ident(a.attname),
  format_type(a.atttypid, a.atttypmod), CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum), a.attnum::int,
  EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'p' AND a.attnum = ANY (k.conkey)),
  EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum AND i.indpred IS NULL),
  (SELECT k.confrelid::regclass || '(' || quote_ident(f.attname) || ')' FROM pg_constraint k JOIN pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[array_position(k.conkey, a.attnum)]
   WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND a.attnum = ANY (k.conkey) ORDER BY k.oid LIMIT 1)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY ($1::int8[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped AND has_column_privilege(a.attrelid, a.attnum, 'SELECT') ORDER BY a.attrelid, a.attnum`

const keysSQL = `
SELECT k.conrelid::int8, k.contype = 'p', coalesce(k.confrelid::regclass::text, ''),
  ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u(n, i) JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY i),
  ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(n, i) JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY i)
FROM pg_constraint k WHERE k.contype IN ('p', 'f') AND k.conrelid = ANY ($1::int8[]::oid[]) ORDER BY k.conrelid, k.conname`

// Schema describes the named tables, or all tables if no name is given, with their readable columns
// in order. A name is that of Tables, or another that a statement can write, also without its quotes or in another
// case. The error is a Refusal with the nearest name if there is no such readable table.
func (r *Reader) Schema(ctx context.Context, names ...string) ([]sandbox.Table, error) {
	if err := r.ensureAudited(ctx); err != nil {
		return nil, err
	}
	release, err := r.acquire(ctx, sandbox.QueryLimits{User: limit.UserOf(ctx)})
	if err != nil {
		return nil, err
	}
	defer release()
	all, err := r.tables(ctx)
	if err != nil {
		return nil, err
	}
	chosen := all
	if len(names) > 0 {
		chosen = nil
		for _, name := range names {
			t := findTable(all, name)
			if t == nil {
				return nil, refuseUnknownTable(all, name)
			}
			chosen = append(chosen, *t)
		}
	}
	if err := r.describe(ctx, chosen); err != nil {
		return nil, r.unavailable(err)
	}
	out := make([]sandbox.Table, 0, len(chosen))
	for _, t := range chosen {
		out = append(out, t.Table)
	}
	return out, nil
}

// namePart is a part of the name of a table, in double quotes or not.
var namePart = regexp.MustCompile(`"(?:[^"]|"")+"|[^."]+`)

// findTable returns the table with a name; nil: there is none.
func findTable(tables []catalogTable, name string) *catalogTable {
	var parts []string // as PostgreSQL reads them
	for _, part := range namePart.FindAllString(name, -1) {
		if strings.HasPrefix(part, `"`) {
			parts = append(parts, strings.ReplaceAll(part[1:len(part)-1], `""`, `"`))
		} else {
			parts = append(parts, strings.ToLower(part))
		}
	}
	for _, isCalled := range []func(t *catalogTable) bool{
		func(t *catalogTable) bool { return t.Name == name },
		func(t *catalogTable) bool { return t.isVisible && t.relname == name },
		func(t *catalogTable) bool { return t.schema+"."+t.relname == name },
		func(t *catalogTable) bool { return t.isVisible && slices.Equal(parts, []string{t.relname}) },
		func(t *catalogTable) bool { return slices.Equal(parts, []string{t.schema, t.relname}) },
		func(t *catalogTable) bool { return t.isVisible && strings.EqualFold(t.relname, name) },
		func(t *catalogTable) bool { return strings.EqualFold(t.schema+"."+t.relname, name) },
	} {
		for i := range tables {
			if isCalled(&tables[i]) {
				return &tables[i]
			}
		}
	}
	return nil
}

func refuseUnknownTable(tables []catalogTable, name string) error {
	among := check.Names{}
	for _, t := range tables {
		among.Add(t.relname, t.Name)
	}
	return check.RefuseUnknownTable(name, "that may be read", among)
}

// describe adds columns and keys.
func (r *Reader) describe(ctx context.Context, tables []catalogTable) error {
	oids := make([]int64, len(tables))
	of := map[int64]*sandbox.Table{}
	for i := range tables {
		oids[i] = tables[i].oid
		of[oids[i]] = &tables[i].Table
	}
	var oid int64
	var c sandbox.TableColumn
	cat, err := r.checker.Catalog(ctx)
	if err != nil {
		return err
	}
	column := []any{
		&oid, &c.Name, &c.QuotedName, &c.Type, &c.IsNullable, &c.Default, &c.Comment, &c.Position, &c.PrimaryKey,
		&c.Unique, &c.References,
	}
	err = r.forEachRow(ctx, columnsSQL, column, func() { of[oid].Columns = append(of[oid].Columns, c) }, oids)
	if err != nil {
		return err
	}
	cat.MarkMasked(of)
	var primary bool
	var key sandbox.ForeignKey
	return r.forEachRow(
		ctx,
		keysSQL,
		[]any{&oid, &primary, &key.Table, &key.Columns, &key.ReferencedColumns},
		func() {
			if t := of[oid]; primary {
				t.PrimaryKey = key.Columns
			} else {
				t.ForeignKeys = append(t.ForeignKeys, key)
			}
			key.Columns, key.ReferencedColumns = nil, nil // the next row needs its own memory
		},
		oids,
	)
}
