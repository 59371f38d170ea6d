package dbaccess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// maxUndoBytes bounds the rows in the script that undoes a write.
const maxUndoBytes = 4 << 20

// laterChanges is what no script can undo.
const laterChanges = "what others did because of these rows, and rows that have changed since: the script leaves them"

// ApplyKeepingUndo is Apply, and calls keep with a script that undoes the statement before it commits. If keep fails,
// the statement changes nothing. A statement whose old rows cannot be read, for example because another transaction
// changes them at the same time, is applied without a script, and keep gets the reason. estimate is the planner's
// number of rows: old rows are not read if there are far too many for a script.
func (r *Reader) ApplyKeepingUndo(
	ctx context.Context, sql string, params map[string]any, estimate int64,
	keep func(context.Context, sandbox.WriteUndo) error,
) (rows int64, err error) {
	if r.writer == nil {
		return 0, errNoWriter()
	}
	stmt, bound, err := r.checkWrite(ctx, sql, params)
	if err != nil {
		return 0, err
	}
	missing := fmt.Sprintf("PostgreSQL expected %d rows; a script has at most %d", estimate, parse.MaxChanges)
	if estimate <= 10*parse.MaxChanges {
		a := &undoableWrite{reader: r, stmt: stmt, bound: bound, keep: keep}
		if err = a.apply(ctx); err == nil {
			return a.rows, nil
		}
		if a.isKept { // only COMMIT can have failed
			if !errors.Is(err, sandbox.ErrOutcomeUnknown) {
				err = r.translateError(ctx, err, stmt, r.config.Limits)
			}
			return 0, err
		}
		if a.keepErr != nil {
			return 0, a.keepErr
		}
		if missing = reasonWithoutUndo(err); missing == "" {
			return 0, r.translateError(ctx, err, stmt, r.config.Limits)
		}
	}
	if err := keep(ctx, sandbox.WriteUndo{Missing: missing, Cannot: []string{}}); err != nil {
		return 0, err
	}
	return r.Apply(ctx, sql, params)
}

// reasonWithoutUndo returns why the rows of a statement could not be read while it ran, or "" if the statement cannot
// be tried again without reading them: the server does not answer, or the caller has left.
func reasonWithoutUndo(err error) string {
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok {
		return no.Message
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.SeverityUnlocalized != "ERROR" {
		return ""
	}
	return "the old rows could not be read while the statement ran: " + pg.Message
}

// undoableWrite is a statement that is applied while its rows before and after are read.
type undoableWrite struct {
	reader *Reader
	stmt   *check.Statement
	bound  *boundParameters
	keep   func(context.Context, sandbox.WriteUndo) error

	rows    int64
	isKept  bool  // keep has the script
	keepErr error // of keep
}

// apply runs the statement and commits.
func (a *undoableWrite) apply(ctx context.Context) error {
	r := a.reader
	derived, err := r.checker.Derive(ctx, parse.Request{SQL: a.stmt.SQL, Derive: parse.Changes})
	if err != nil {
		return err
	}
	// REPEATABLE READ: the old rows are those that the statement changes.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadWrite}
	return r.withWriter(ctx, a.stmt, sandbox.QueryLimits{}, r.config.Limits.Timeout, options,
		func(ctx context.Context, tx pgx.Tx) error {
			table, err := r.undoTable(ctx, tx, derived.Target, derived.Write.Verb, a.stmt.Catalog)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+a.stmt.SearchPath); err != nil {
				return err
			}
			found, err := runChanges(ctx, tx, derived.Derived, a.bound, maxUndoBytes)
			if err != nil {
				return err
			}
			undo := table.undo(derived.Write, found)
			if a.keepErr = a.keep(ctx, undo); a.keepErr != nil {
				return a.keepErr
			}
			a.rows, a.isKept = found.affected, true
			return commit(ctx, tx)
		})
}

// undoTable is the table of a write, as a script names it.
type undoTable struct {
	name    string // as SQL
	columns []undoColumn
	effects []string // what else happens with its rows
}

type undoColumn struct {
	name        string
	isShown     bool
	isKey       bool // of the primary key
	isGenerated bool // has a value that PostgreSQL computes
}

// undoEffectsSQL returns what an INSERT, UPDATE or DELETE ($2) of the table $1 may do beyond it.
const undoEffectsSQL = `
WITH RECURSIVE tables AS (
	SELECT $1::oid AS oid UNION SELECT inhrelid FROM pg_catalog.pg_inherits JOIN tables ON inhparent = oid
)
SELECT format('what the trigger %I of the table %s did', tgname, tgrelid::regclass) FROM pg_catalog.pg_trigger
	WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgrelid IN (TABLE tables)
	AND tgtype & CASE $2 WHEN 'INSERT' THEN 4 WHEN 'DELETE' THEN 8 ELSE 16 END <> 0
UNION ALL SELECT format('what the foreign key %I did with rows of the table %s', conname, conrelid::regclass)
	FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confrelid IN (TABLE tables)
	AND CASE $2 WHEN 'DELETE' THEN confdeltype NOT IN ('a', 'r') WHEN 'UPDATE' THEN confupdtype NOT IN ('a', 'r') END
UNION ALL SELECT format('what the rule %I of the table %s did', rulename, ev_class::regclass)
	FROM pg_catalog.pg_rewrite WHERE ev_class IN (TABLE tables)
ORDER BY 1 LIMIT 20`

// undoTable reads what a script has to know of a table. The error is a *sandbox.Refusal if it is not a table.
func (r *Reader) undoTable(
	ctx context.Context, tx pgx.Tx, target, verb string, catalog *check.Catalog,
) (out undoTable, err error) {
	var oid uint32
	var isTable bool
	if err := tx.QueryRow(ctx, tableSQL, target).Scan(&oid, &isTable); err != nil {
		return out, err
	}
	if !isTable {
		return out, sandbox.Refusef("no-undo", "%s is a view or a foreign table", target)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return out, err
	}
	err = tx.QueryRow(ctx, `SELECT format('%I.%I', nspname, relname) FROM pg_class c
		JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = $1`, oid).Scan(&out.name)
	if err != nil {
		return out, err
	}
	shown, err := r.shownColumns(ctx, oid, catalog)
	if err != nil {
		return out, err
	}
	isShown := map[string]bool{}
	for _, column := range shown {
		isShown[column.name] = column.isShown
	}
	rows, _ := tx.Query(ctx, `SELECT attname, attgenerated <> '', coalesce(attnum = ANY (conkey), false)
		FROM pg_attribute LEFT JOIN pg_constraint ON conrelid = attrelid AND contype = 'p'
		WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, oid) // ForEachRow returns its error
	var c undoColumn
	_, err = pgx.ForEachRow(rows, []any{&c.name, &c.isGenerated, &c.isKey}, func() error {
		c.isShown = isShown[c.name]
		out.columns = append(out.columns, c)
		return nil
	})
	if err != nil {
		return out, err
	}
	rows, _ = tx.Query(ctx, undoEffectsSQL, oid, verb)
	out.effects, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return out, err
}

// undo returns the script for the rows that a statement has changed.
func (t undoTable) undo(w parse.Write, found changes) sandbox.WriteUndo {
	out := sandbox.WriteUndo{Cannot: append(slices.Clone(t.effects), laterChanges)}
	switch {
	case w.IsUpsert:
		out.Missing = "the rows that ON CONFLICT DO UPDATE found are not known as they were"
	case found.affected == 0:
		out.Missing = "it changed no row"
	case int64(len(found.rows)) < found.affected:
		out.Missing = fmt.Sprintf("it changed %d rows; a script has at most %d rows and %d MB", found.affected,
			parse.MaxChanges, maxUndoBytes>>20)
	}
	if out.Missing == "" {
		out.Script, out.Missing = t.script(w.Verb, found, &out)
	}
	if out.Missing == "" {
		out.Rows = found.affected
	}
	return out
}

// script returns the SQL, or why there is none. It adds to the notes of out what the SQL leaves out.
func (t undoTable) script(verb string, found changes, out *sandbox.WriteUndo) (sql, missing string) {
	var rows []undoneRow
	for _, row := range found.rows {
		var next undoneRow
		err := errors.Join(unmarshalRow(row.before, &next.Before), unmarshalRow(row.after, &next.After))
		if err != nil {
			return "", "a row cannot be read as JSON"
		}
		rows = append(rows, next)
	}
	if verb == "DELETE" {
		return t.insertAgain(rows)
	}
	keys := columnsOf(t.columns, func(c undoColumn) bool { return c.isKey })
	if len(keys) == 0 {
		return "", "the table has no primary key, by which a script could find the rows"
	}
	if slices.ContainsFunc(t.columns, func(c undoColumn) bool { return c.isKey && !c.isShown }) {
		return "", "the primary key is hidden"
	}
	if verb == "INSERT" {
		out.Cannot = append(out.Cannot, "the numbers that sequences gave, which are not given again")
		compared := columnsOf(t.columns, func(c undoColumn) bool { return c.isShown && !c.isGenerated })
		return t.text(rows, compared, "DELETE FROM "+t.name+" AS t USING", t.condition(keys, compared), "after"), ""
	}
	return t.setAgain(rows, keys, out)
}

// insertAgain returns a script that inserts deleted rows.
func (t undoTable) insertAgain(rows []undoneRow) (sql, missing string) {
	for _, column := range t.columns {
		if !column.isShown && !column.isGenerated {
			return "", fmt.Sprintf("the column %q is hidden or masked, so its values may not be in a script",
				column.name)
		}
	}
	columns := columnsOf(t.columns, func(c undoColumn) bool { return !c.isGenerated })
	names := quotedNames("", columns)
	return t.text(rows, columns, fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE\nSELECT %s FROM",
		t.name, names, quotedNames("o.", columns)), "", "before"), ""
}

// setAgain returns a script that sets the changed columns of updated rows.
func (t undoTable) setAgain(rows []undoneRow, keys []string, out *sandbox.WriteUndo) (sql, missing string) {
	isChanged := func(c undoColumn) bool {
		return !c.isGenerated && slices.ContainsFunc(rows, func(row undoneRow) bool {
			return string(row.Before[c.name]) != string(row.After[c.name])
		})
	}
	changed := columnsOf(t.columns, func(c undoColumn) bool { return c.isShown && isChanged(c) })
	hidden := columnsOf(t.columns, func(c undoColumn) bool { return !c.isShown && isChanged(c) })
	for _, name := range hidden {
		out.Cannot = append(out.Cannot, fmt.Sprintf("the column %q, which is hidden or masked", name))
	}
	if len(changed) == 0 {
		return "", "no column that may be in a script has another value than before"
	}
	var set []string
	for _, name := range changed {
		set = append(set, quoteName(name)+" = o."+quoteName(name))
	}
	needed := append(slices.Clone(keys), slices.DeleteFunc(slices.Clone(changed), func(name string) bool {
		return slices.Contains(keys, name)
	})...)
	return t.text(rows, needed, "UPDATE "+t.name+" AS t SET "+strings.Join(set, ", ")+"\nFROM",
		t.condition(keys, changed), "before", "after"), ""
}

// condition returns the condition that a row of the table is the one of a pair, and is as the write left it.
func (t undoTable) condition(keys, compared []string) string {
	var all []string
	for _, name := range keys {
		all = append(all, "t."+quoteName(name)+" = n."+quoteName(name))
	}
	for _, column := range compared {
		if name := quoteName(column); !slices.Contains(keys, column) {
			all = append(all, "t."+name+"::text IS NOT DISTINCT FROM n."+name+"::text") // json has no =
		}
	}
	return strings.Join(all, "\n\tAND ")
}

// text returns a script: head, the rows with the columns, and a condition. Of each row it has those parts that are
// named: "before" as o, and "after" as n.
func (t undoTable) text(rows []undoneRow, columns []string, head, condition string, parts ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN;\n%s pg_catalog.json_array_elements(%s) AS pair",
		head, quoteText(pairsOf(rows, columns, parts)))
	for _, part := range parts {
		alias := map[string]string{"before": "o", "after": "n"}[part]
		fmt.Fprintf(&b, ",\n\tpg_catalog.json_populate_record(NULL::%s, pair->'%s') AS %s", t.name, part, alias)
	}
	if condition != "" {
		b.WriteString("\nWHERE " + condition)
	}
	b.WriteString(";\nCOMMIT;\n")
	return b.String()
}

// undoneRow is a row before and after a write, by column.
type undoneRow struct {
	Before map[string]json.RawMessage
	After  map[string]json.RawMessage
}

func unmarshalRow(text []byte, to *map[string]json.RawMessage) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, to)
}

// pairsOf returns a JSON array of parts of the rows, with some of their columns, a row on each line.
func pairsOf(rows []undoneRow, columns, parts []string) string {
	var lines []string
	for _, row := range rows {
		var pair []string
		for _, part := range parts {
			values := row.Before
			if part == "after" {
				values = row.After
			}
			var fields []string
			for _, column := range columns {
				name, _ := json.Marshal(column) // a text always has JSON
				fields = append(fields, string(name)+":"+string(values[column]))
			}
			pair = append(pair, `"`+part+`":{`+strings.Join(fields, ",")+"}")
		}
		lines = append(lines, "{"+strings.Join(pair, ",")+"}")
	}
	return "[" + strings.Join(lines, ",\n") + "]"
}

func columnsOf(columns []undoColumn, is func(undoColumn) bool) (names []string) {
	for _, c := range columns {
		if is(c) {
			names = append(names, c.name)
		}
	}
	return names
}

func quotedNames(prefix string, names []string) string {
	quoted := make([]string, len(names))
	for n, name := range names {
		quoted[n] = prefix + quoteName(name)
	}
	return strings.Join(quoted, ", ")
}

func quoteName(name string) string { return pgx.Identifier{name}.Sanitize() }

// quoteText returns a text as SQL that means the same with any setting of standard_conforming_strings.
func quoteText(text string) string {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if !strings.Contains(text, `\`) {
		return quoted
	}
	return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
}
