package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// MaskValue replaces every value of a masked column, NULL included.
const MaskValue = "***"

// Origin identifies a column of a relation, as the server reports it for an output column.
type Origin struct {
	Relation uint32
	Column   uint16
}

// maskedSQL finds the listed columns and those with the same values: columns of parents and
// children, and columns generated from them.
const maskedSQL = `WITH RECURSIVE masked(listed, rel, att) AS (
	SELECT l, c.oid, attnum FROM unnest($1::text[]) l JOIN pg_attribute a ON NOT attisdropped AND attnum > 0 AND l LIKE '%.' || replace(replace(attname, '\', '\\'), '_', '\_')
	JOIN pg_class c ON c.oid = attrelid AND relkind IN ('r', 'v', 'm', 'p', 'f') JOIN pg_namespace n ON n.oid = relnamespace
	WHERE l = nspname || '.' || relname || '.' || attname OR l = relname || '.' || attname AND nspname = ANY ($2::text[])
	UNION SELECT listed, same.rel, same.att FROM masked m CROSS JOIN LATERAL (
		SELECT a.attrelid AS rel, a.attnum AS att FROM pg_attribute mine JOIN pg_inherits i ON mine.attrelid IN (inhrelid, inhparent)
		JOIN pg_attribute a ON a.attrelid IN (inhrelid, inhparent) AND a.attname = mine.attname AND NOT a.attisdropped WHERE mine.attrelid = m.rel AND mine.attnum = m.att
		UNION ALL SELECT a.attrelid, a.attnum FROM pg_depend d JOIN pg_attribute a ON a.attrelid = d.objid AND a.attnum = d.objsubid
		WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND refobjid = m.rel AND refobjsubid = m.att AND attgenerated = 's'
		UNION ALL SELECT adrelid, adnum FROM pg_depend d JOIN pg_attrdef e ON e.oid = d.objid JOIN pg_attribute a ON a.attrelid = adrelid AND a.attnum = adnum
		WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass AND refobjid = m.rel AND refobjsubid = m.att AND attgenerated = 's') same)
	SELECT listed, rel, att, attname FROM masked JOIN pg_attribute ON attrelid = rel AND attnum = att`

// dependentViewsSQL finds all views over relations, directly or through other views.
const dependentViewsSQL = `WITH RECURSIVE tainted(rel) AS (SELECT unnest($1::int8[])::oid
	UNION SELECT ev_class FROM tainted JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = rel AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite r ON r.oid = d.objid)
	SELECT rel FROM tainted`

// loadMaskedColumns marks the listed columns. A listed column that does not exist is an error,
// because its values may be visible under another name.
func (cat *Catalog) loadMaskedColumns(ctx context.Context, tx pgx.Tx, listed []string) error {
	if len(listed) == 0 {
		return nil
	}
	byOID := map[uint32]*relation{}
	for _, all := range cat.relations {
		for _, r := range all {
			byOID[r.oid] = r
		}
	}
	cat.MaskedColumns = map[Origin]bool{}
	found := map[string]bool{}
	var tainted []int64
	var name, column string
	var o Origin
	var att int16
	if err := forEachRow(ctx, tx, maskedSQL, []any{&name, &o.Relation, &att, &column}, func() {
		o.Column, found[name] = uint16(att), true
		cat.MaskedColumns[o] = true
		tainted = append(tainted, int64(o.Relation))
		if r := byOID[o.Relation]; r != nil {
			if r.maskedColumns == nil {
				r.maskedColumns = map[string]bool{}
			}
			r.maskedColumns[column] = true
		}
	}, listed, cat.searchPath); err != nil {
		return err
	}
	for _, name := range listed {
		if !found[name] {
			return &sandbox.Error{
				Fault: sandbox.FaultUnavailable,
				Detail: fmt.Sprintf(
					"the masked column %s (--mask-columns) does not exist in the database; no statement runs until the "+
						"list is correct",
					name,
				),
			}
		}
	}
	var oid uint32
	return forEachRow(ctx, tx, dependentViewsSQL, []any{&oid}, func() {
		if r := byOID[oid]; r != nil {
			r.readsMasked = true
		}
	}, tainted)
}

// tracedColumns are the columns of a relation, or the reason why they cannot be traced.
type tracedColumns struct {
	columns []output
	refusal *sandbox.Refusal
}

// traceMasked refuses a statement that uses a masked column in any way other than selecting it, and
// records which output columns are masked. Statements that read no masked column are not traced.
func (c *Checker) traceMasked(ctx context.Context, stmt *Statement, w *walker) error {
	tainted := false
	for rel := range w.relations {
		tainted = tainted || rel.readsMasked
	}
	if !tainted {
		return nil
	}
	t := c.newTracer(ctx, w)
	var outs []output
	switch top := w.statementNode; {
	case w.allowWrites:
		t.traceWrite(top)
	case top.GetExplainStmt() != nil:
		if anyMasked(t.traceSelect(top.GetExplainStmt().Query.GetSelectStmt(), nil)) {
			t.fail(-1, "EXPLAIN of a statement with a masked column")
		}
	default:
		outs = t.traceSelect(top.GetSelectStmt(), nil)
	}
	if anyMasked(outs) {
		if slices.ContainsFunc(outs, func(o output) bool { return o.isOpenEnded }) {
			t.fail(-1, "the columns of * are unknown and one of them is masked: list the columns by name")
		}
		for _, o := range outs {
			stmt.MaskedOutputs = append(stmt.MaskedOutputs, o.masked)
		}
	}
	if t.serviceError != nil {
		return t.serviceError
	}
	if t.refusal == nil {
		return nil
	}
	if t.refusal.Position > 0 {
		t.refusal.Position, t.refusal.Line = characterAndLine(stmt.Original,
			originalOffset(stmt.toNumbered, t.refusal.Position-1))
	}
	return t.refusal
}

func (c *Checker) newTracer(ctx context.Context, w *walker) *tracer {
	t := &tracer{checker: w}
	t.columnsOf = func(rel *relation) ([]output, *sandbox.Refusal) {
		out, err := c.columnsOf(ctx, w.catalog, rel)
		if err != nil {
			t.serviceError = err
			return nil, sandbox.Refusef("masked-column", "%s cannot be read", rel.name)
		}
		return out.columns, out.refusal
	}
	return t
}

// columnsOf returns the columns of a relation. A view over masked columns is traced once through its
// definition.
func (c *Checker) columnsOf(ctx context.Context, cat *Catalog, rel *relation) (*tracedColumns, error) {
	out := &tracedColumns{}
	for _, name := range rel.columnOrder {
		out.columns = append(out.columns, output{name: name, masked: rel.maskedColumns[name]})
	}
	if !rel.readsMasked || !rel.isView && !rel.isMaterialized {
		return out, nil
	}
	if done, ok := cat.tracedViews.Load(rel); ok {
		return done.(*tracedColumns), nil
	}
	outs, why, err := c.viewColumns(ctx, cat, rel)
	if err != nil {
		return nil, err
	}
	switch {
	case why != "":
	case len(outs) != len(out.columns) || slices.ContainsFunc(outs, func(o output) bool { return o.isOpenEnded }):
		why = "its columns cannot be determined"
	default:
		for i, o := range outs {
			out.columns[i].masked = out.columns[i].masked || o.masked
		}
	}
	if why != "" {
		out.refusal = sandbox.Refusef("masked-column", "%s.%s is refused: in it, %s", rel.schema, rel.name, why)
		out.refusal.Hint = "query its underlying tables"
	}
	cat.tracedViews.Store(rel, out)
	return out, nil
}

// viewColumns traces the definition of a view as the server writes it.
func (c *Checker) viewColumns(ctx context.Context, cat *Catalog, rel *relation) (outs []output, why string, err error) {
	texts, err := c.readDefinition(ctx, definition{"view", rel.name, viewSQL, rel.oid})
	if err != nil || len(texts) != 1 {
		return nil, "", errors.Join(err, ctx.Err())
	}
	w, why, err := c.checkServerText(ctx, cat, texts[0])
	if err != nil || why != "" {
		return nil, why, err
	}
	t := c.newTracer(ctx, w)
	outs = t.traceSelect(w.statementNode.GetSelectStmt(), nil)
	if t.refusal != nil {
		why = t.refusal.Message
	}
	return outs, why, t.serviceError
}

// traceWrite traces a statement that writes: it may neither copy the value of a masked column nor
// use it to choose rows.
func (t *tracer) traceWrite(n *pg_query.Node) {
	in := (*scope)(nil).nested()
	var values []*pg_query.Node // assigned or returned expressions
	var where *pg_query.Node
	reads := func(with *pg_query.WithClause, target *pg_query.RangeVar, from []*pg_query.Node) {
		t.traceWith(with, in)
		in.sources = []source{t.traceTable(target, &scope{})}
		for _, item := range from {
			_, sources := t.traceFromItem(item, in.sources, in)
			in.sources = append(in.sources, sources...)
		}
	}
	switch {
	case n.GetInsertStmt() != nil:
		s := n.GetInsertStmt()
		reads(s.WithClause, s.Relation, nil)
		if anyMasked(t.traceSelect(s.SelectStmt.GetSelectStmt(), &scope{ctes: in.ctes})) {
			t.fail(-1, "a masked column is copied to another column")
		}
		excluded := in.sources[0]
		excluded.name = "excluded"
		in.sources = append(in.sources, excluded)
		c := s.OnConflictClause
		values, where = append(s.ReturningList, c.GetTargetList()...), c.GetWhereClause()
	case n.GetUpdateStmt() != nil:
		s := n.GetUpdateStmt()
		reads(s.WithClause, s.Relation, s.FromClause)
		values, where = append(s.ReturningList, s.TargetList...), s.WhereClause
	case n.GetDeleteStmt() != nil:
		s := n.GetDeleteStmt()
		reads(s.WithClause, s.Relation, s.UsingClause)
		values, where = s.ReturningList, s.WhereClause
	default:
		t.failUntraceable(-1, "MERGE")
	}
	for _, v := range values {
		t.requireUnmasked(v, in)
	}
	t.requireUnmasked(where, in)
}

// MarkMasked sets Masked on the columns of tables.
func (c *Checker) MarkMasked(ctx context.Context, cat *Catalog, tables map[int64]*sandbox.Table) error {
	if len(cat.MaskedColumns) == 0 {
		return nil
	}
	for _, all := range cat.relations {
		for _, rel := range all {
			table := tables[int64(rel.oid)]
			if table == nil || !rel.readsMasked {
				continue
			}
			out, err := c.columnsOf(ctx, cat, rel)
			if err != nil {
				return err
			}
			for i := range table.Columns {
				c := &table.Columns[i]
				c.Masked = out.refusal != nil ||
					slices.ContainsFunc(out.columns, func(o output) bool { return o.masked && o.name == c.Name })
			}
		}
	}
	return nil
}
