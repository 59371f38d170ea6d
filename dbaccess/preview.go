package dbaccess

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/nodetree"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

const (
	// maxPreviewTime bounds each statement of a preview, which holds locks on the rows that it changes.
	maxPreviewTime = 5 * time.Second
	// previewLockTimeout bounds each wait for a lock: who waits for a lock makes others wait.
	previewLockTimeout = time.Second
	// maxPreviewBytes bounds a row before and after as JSON, and the analysis of the statement.
	maxPreviewBytes = 8 << 20
)

// Preview checks a captured statement again, runs it with the writing login in a transaction that is rolled back, and
// returns rows before and after. Values that the reading login may not see, and those of masked columns, are "***". The
// error is a *sandbox.Refusal if a rollback would not undo all effects of the statement, or if they cannot be known.
func (r *Reader) Preview(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits,
) (out sandbox.WritePreview, err error) {
	if r.writer == nil {
		return out, errNoWriter()
	}
	stmt, bound, err := r.checkWrite(ctx, sql, params)
	if err != nil {
		return out, err
	}
	derived, err := r.checker.Derive(ctx, parse.Request{SQL: stmt.SQL, Derive: parse.Preview})
	if err != nil {
		return out, err
	}
	l.Timeout = min(r.config.Limits.Timeout, maxPreviewTime)
	// REPEATABLE READ: the rows of the check are those that the statement changes.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadWrite}
	err = r.withWriter(ctx, stmt, l, l.Timeout, options, func(ctx context.Context, tx pgx.Tx) (err error) {
		tx.Conn().PgConn().Frontend().SetMaxBodyLen(maxPreviewBytes)
		var table uint32
		var isTable bool
		if err := tx.QueryRow(ctx, tableSQL, derived.Target).Scan(&table, &isTable); err != nil {
			return err
		}
		if !isTable {
			return noPreview("%s is a view or a foreign table, which may change other tables", derived.Target)
		}
		tree, err := analyze(ctx, tx, derived.Derived, bound)
		if err != nil {
			return err
		}
		if err := refuseEffects(ctx, tx, table, tree); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+stmt.SearchPath); err != nil {
			return err
		}
		columns, err := r.shownColumns(ctx, table, stmt.Catalog)
		if err != nil {
			return err
		}
		out, err = runPreview(ctx, tx, derived.Derived, bound, columns)
		return err
	})
	if err == nil {
		return out, nil
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" {
		no := sandbox.Refusef("timeout", "another transaction holds a lock that the statement needs for longer than %s",
			previewLockTimeout)
		no.Failed = true
		return out, no
	}
	if large, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return out, sandbox.Refusef("too-large", "a row of the preview has %d bytes; the limit is %d",
			large.ActualBodyLen, maxPreviewBytes)
	}
	err = r.translateError(ctx, err, stmt, l)
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok {
		no.Position, no.Line = 0, 0 // of another text
	}
	return out, err
}

// analyze returns the server's tree of a statement, after rules and with the defaults of columns. It runs nothing.
func analyze(ctx context.Context, tx pgx.Tx, sql string, bound *boundParameters) (tree string, err error) {
	settings := "SET LOCAL lock_timeout = " + strconv.FormatInt(previewLockTimeout.Milliseconds(), 10) +
		"; SET LOCAL client_min_messages = log; SET LOCAL debug_pretty_print = off" +
		"; SET LOCAL debug_print_rewritten = on"
	if _, err := tx.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return "", err
	}
	pg := tx.Conn().PgConn()
	frontend := pg.Frontend()
	frontend.SendParse(&pgproto3.Parse{Query: sql, ParameterOIDs: bound.oids})
	frontend.SendSync(&pgproto3.Sync{})
	if err := frontend.Flush(); err != nil {
		return "", err
	}
	trees := 0
	for isReady := false; !isReady; {
		message, receiveErr := pg.ReceiveMessage(ctx)
		if receiveErr != nil {
			return "", receiveErr
		}
		switch m := message.(type) {
		case *pgproto3.NoticeResponse:
			if strings.HasPrefix(m.Message, "rewritten parse tree") {
				tree, trees = m.Detail, trees+1
			}
		case *pgproto3.ErrorResponse:
			err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			isReady = true
		}
	}
	if err == nil && trees != 1 {
		err = noPreview("the server sent %d analyses of the statement, want 1: the operator connects to PostgreSQL "+
			"itself, not to a pooler that keeps its messages", trees)
	}
	if err == nil {
		_, err = tx.Exec(ctx, "SET LOCAL debug_print_rewritten = off")
	}
	return tree, err
}

func noPreview(format string, args ...any) *sandbox.Refusal {
	return sandbox.Refusef("no-preview", "the statement has no preview: "+format, args...)
}

// writes returns the number of queries of a tree that change rows, and whether one takes the next value of an identity.
func writes(nodes []*nodetree.Node) (queries int, takesIdentity bool) {
	for _, n := range nodes {
		if n.Name == "QUERY" && n.Word("commandType") != "1" { // CMD_SELECT
			queries++
		}
		inside, takes := writes(n.Children())
		queries, takesIdentity = queries+inside, takesIdentity || takes || n.Name == "NEXTVALUEEXPR"
	}
	return queries, takesIdentity
}

// tableSQL returns the relation of a name, and whether it is a table with rows of its own or of its partitions.
const tableSQL = `SELECT oid, relkind IN ('r', 'p') FROM pg_catalog.pg_class
	WHERE oid OPERATOR(pg_catalog.=) $1::pg_catalog.text::pg_catalog.regclass`

// effectsSQL returns why a rollback would not undo a statement that changes the table $1, or why that is not known. $2
// and $3 are the relations and the functions of the server's tree, and $4 its operators.
const effectsSQL = `
WITH RECURSIVE tables AS (
	SELECT $1::oid AS oid UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = oid
), relations AS (
	SELECT unnest($2::oid[]) AS oid UNION SELECT inhrelid FROM pg_inherits JOIN relations ON inhparent = oid
), types AS (
	SELECT atttypid AS oid FROM pg_attribute JOIN tables ON attrelid = tables.oid WHERE attnum > 0 AND NOT attisdropped
	UNION SELECT typbasetype FROM pg_type t JOIN types ON t.oid = types.oid WHERE typtype = 'd'
), constraints AS (
	SELECT conbin::text AS tree FROM pg_constraint
	WHERE contype = 'c' AND (conrelid IN (TABLE tables) OR contypid IN (TABLE types))
), called AS (
	SELECT unnest($3::oid[]) AS oid
	UNION SELECT oprcode::oid FROM pg_operator WHERE oid = ANY ($4::oid[])
	UNION SELECT found[1]::oid FROM constraints, regexp_matches(tree, ':(?:funcid|opfuncid) (\d+)', 'g') AS found
)
SELECT format('%s is a foreign table, which is on another server', oid::regclass)
	FROM pg_class WHERE relkind = 'f' AND (oid IN (TABLE tables) OR oid IN (TABLE relations))
UNION ALL SELECT format('the table %s has the rule %I', ev_class::regclass, rulename)
	FROM pg_rewrite WHERE ev_class IN (TABLE tables)
UNION ALL SELECT format('the table %s has row security', oid::regclass)
	FROM pg_class WHERE relrowsecurity AND oid IN (TABLE tables)
UNION ALL SELECT format('the table %s has the trigger %I', tgrelid::regclass, tgname)
	FROM pg_trigger t WHERE tgenabled <> 'D' AND tgrelid IN (TABLE tables) AND NOT EXISTS (
		SELECT FROM pg_constraint c WHERE c.oid = tgconstraint AND contype IN ('f', 'p', 'u', 'x'))
UNION ALL SELECT format('the foreign key %I of the table %s changes other rows', conname, conrelid::regclass)
	FROM pg_constraint WHERE contype = 'f' AND confrelid IN (TABLE tables)
	AND (confdeltype NOT IN ('a', 'r') OR confupdtype NOT IN ('a', 'r'))
UNION ALL SELECT format('it calls the volatile function %s', oid::regprocedure)
	FROM pg_proc WHERE provolatile = 'v' AND oid IN (TABLE called)
LIMIT 1`

// refuseEffects returns a *sandbox.Refusal unless a rollback undoes all that a statement does to a table. The tree is
// the server's.
func refuseEffects(ctx context.Context, tx pgx.Tx, table uint32, tree string) error {
	queries, takesIdentity := writes(nodetree.Parse(tree))
	if queries != 1 {
		return noPreview("it has %d parts that change rows, want 1: because of WITH or of a rule", queries)
	}
	if takesIdentity {
		return noPreview("it takes the next value of an identity column, which a rollback does not give back")
	}
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return err
	}
	objects := nodetree.Read(tree)
	var reason string
	err := tx.QueryRow(ctx, effectsSQL, table, objects.Relations, append(objects.Functions, objects.Casts...),
		objects.Operators).Scan(&reason)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = noPreview("%s", reason)
	}
	return err
}

// shownColumn is a column of a preview.
type shownColumn struct {
	name    string
	isShown bool // the reading login may see it, and it is not masked
}

// shownColumns returns the columns of a table in their order.
func (r *Reader) shownColumns(
	ctx context.Context, table uint32, catalog *check.Catalog,
) (out []shownColumn, err error) {
	masked := map[string]bool{}
	err = readCatalog(ctx, r.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `WITH RECURSIVE tables AS (
				SELECT $1::oid AS oid UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = oid)
			SELECT attname, attrelid, attnum, attrelid = $1 AND has_column_privilege(attrelid, attnum, 'SELECT')
			FROM pg_attribute JOIN tables ON attrelid = oid WHERE attnum > 0 AND NOT attisdropped
			ORDER BY attrelid <> $1, attnum`, table)
		if err != nil {
			return err
		}
		var name string
		var at check.Origin
		var mayRead bool
		_, err = pgx.ForEachRow(rows, []any{&name, &at.Relation, &at.Column, &mayRead}, func() error {
			if at.Relation == table {
				out = append(out, shownColumn{name, mayRead})
			}
			masked[name] = masked[name] || catalog.MaskedColumns[at]
			return nil
		})
		return err
	})
	for i := range out {
		out[i].isShown = out[i].isShown && !masked[out[i].name]
	}
	return out, err
}

// runPreview runs the statement of a preview.
func runPreview(
	ctx context.Context, tx pgx.Tx, sql string, bound *boundParameters, columns []shownColumn,
) (out sandbox.WritePreview, err error) {
	out.Rows = []sandbox.ChangedRow{}
	changes, err := runChanges(ctx, tx, sql, bound, maxPreviewBytes)
	if err != nil {
		return out, err
	}
	out.Affected = changes.affected
	for _, row := range changes.rows {
		var changed sandbox.ChangedRow
		if changed.Before, err = shownRow(row.before, columns); err == nil {
			changed.After, err = shownRow(row.after, columns)
		}
		if err != nil {
			return out, err
		}
		out.Rows = append(out.Rows, changed)
	}
	_, err = tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE") // as COMMIT would check them
	return out, err
}

// changes are the rows that a statement has changed, as JSON objects of the server.
type changes struct {
	affected int64
	rows     []changedRow // the first ones
}

type changedRow struct{ before, after []byte } // nil: there was none, or there is none

// runChanges runs a statement that was derived as a Preview or as Changes. It keeps rows until they have maxBytes.
func runChanges(
	ctx context.Context, tx pgx.Tx, sql string, bound *boundParameters, maxBytes int,
) (out changes, err error) {
	reader := tx.Conn().PgConn().ExecParams(ctx, sql, bound.texts, bound.oids, nil, nil)
	size := 0
	for reader.NextRow() {
		values := reader.Values()
		if out.affected, err = strconv.ParseInt(string(values[0]), 10, 64); err != nil {
			break
		}
		size += len(values[1]) + len(values[2])
		if size <= maxBytes || len(out.rows) == 0 {
			out.rows = append(out.rows, changedRow{bytes.Clone(values[1]), bytes.Clone(values[2])})
		}
	}
	_, closeErr := reader.Close()
	return out, errors.Join(err, closeErr)
}

// shownRow returns a row as a JSON object in the order of the columns, or null.
func shownRow(row []byte, columns []shownColumn) (json.RawMessage, error) {
	if row == nil {
		return json.RawMessage("null"), nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(row, &values); err != nil {
		return nil, fmt.Errorf("read a row of a preview: %w", err)
	}
	out := bytes.NewBufferString("{")
	for i, column := range columns {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(column.name)
		if err != nil {
			return nil, err
		}
		value := values[column.name]
		if !column.isShown {
			value = json.RawMessage(`"` + check.MaskValue + `"`)
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
