package parse

import (
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// The LIMITs of the changed rows that a preview and that Changes return.
const (
	maxPreviewRows = 100
	MaxChanges     = 10_000
)

// derivePreview returns a statement that runs a statement that writes, and returns the number of the changed rows and
// at most maxPreviewRows or MaxChanges of them as JSON, as they were before and as they are after. The row before an
// INSERT and the row after a DELETE are null. Both statements have $n. derivePreview also returns the name of the
// changed table as SQL. The statement is made and compared like a sample (derive).
func derivePreview(numbered string, d Derivation) (statement, table string, bad *Fault) {
	w, bad := splitWrite(numbered)
	if bad == nil {
		bad = w.checkTarget()
	}
	if bad != nil {
		return "", "", bad
	}
	text, write := w.returningRows()
	const head, tail = `WITH "changed rows" AS (`, `) SELECT (SELECT pg_catalog.count(*) FROM "changed rows"), ` +
		`"before", "after" FROM "changed rows" LIMIT `
	limit := strconv.Itoa(maxPreviewRows)
	if d == Changes {
		limit = strconv.Itoa(MaxChanges)
	}
	query := parsedSelect(head + "SELECT" + tail + limit)
	query.WithClause.Ctes[0].GetCommonTableExpr().Ctequery = write
	statement = head + text + tail + limit
	tree, err := pg_query.Parse(statement)
	meant := &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}
	if err != nil || len(tree.Stmts) != 1 || !sameTree(tree.Stmts[0].Stmt, nil, meant, nil) {
		return "", "", errNotSplit()
	}
	return statement, w.table(), nil
}

// returningRows returns the statement with the rows as its RETURNING: its text and its tree. An UPDATE joins the rows
// of its table as they were, under names that no other item of FROM has.
func (w *writeStatement) returningRows() (text string, write *pg_query.Node) {
	const none = "NULL::pg_catalog.json"
	name := quoteName(w.targetName())
	row := "pg_catalog.to_json(" + name + ".*)"
	switch {
	case w.insert != nil:
		returning := none + ` AS "before", ` + row + ` AS "after"`
		insert := proto.CloneOf(w.insert)
		insert.ReturningList = parsedSelect("SELECT " + returning).TargetList
		return w.bodyText + " RETURNING " + returning,
			&pg_query.Node{Node: &pg_query.Node_InsertStmt{InsertStmt: insert}}
	case w.delete != nil:
		returning := row + ` AS "before", ` + none + ` AS "after"`
		deletes := proto.CloneOf(w.delete)
		deletes.ReturningList = parsedSelect("SELECT " + returning).TargetList
		return w.bodyText + " RETURNING " + returning,
			&pg_query.Node{Node: &pg_query.Node_DeleteStmt{DeleteStmt: deletes}}
	}
	returning := `"old rows"."old row" AS "before", ` + row + ` AS "after"`
	from := `(SELECT o.tableoid AS "old table", o.ctid AS "old ctid", pg_catalog.to_json(o.*) AS "old row" FROM `
	if !w.target.Inh {
		from += "ONLY "
	}
	from += w.table() + ` AS o) AS "old rows"`
	where := `"old rows"."old table" OPERATOR(pg_catalog.=) ` + name + `.tableoid AND ` +
		`"old rows"."old ctid" OPERATOR(pg_catalog.=) ` + name + `.ctid`
	parts := parsedSelect("SELECT " + returning + " FROM " + from + " WHERE " + where)
	update := proto.CloneOf(w.update)
	update.ReturningList = parts.TargetList
	update.FromClause = append(update.FromClause, parts.FromClause...)
	update.WhereClause = parts.WhereClause
	if w.condition != nil { // the last operand, because AND takes over the operands of an AND before it
		both := update.WhereClause.GetBoolExpr()
		both.Args = append(both.Args, w.condition)
		where += " AND (" + w.conditionText + ")"
	}
	if w.othersText != "" {
		from = w.othersText + ", " + from
	}
	text = "UPDATE " + w.targetText + " SET " + w.setText + " FROM " + from + " WHERE " + where +
		" RETURNING " + returning
	if w.withText != "" {
		text = w.withText + " " + text
	}
	return text, &pg_query.Node{Node: &pg_query.Node_UpdateStmt{UpdateStmt: update}}
}

// table returns the name of the target as SQL, without its alias.
func (w *writeStatement) table() string {
	if w.target.Schemaname == "" {
		return quoteName(w.target.Relname)
	}
	return quoteName(w.target.Schemaname) + "." + quoteName(w.target.Relname)
}
