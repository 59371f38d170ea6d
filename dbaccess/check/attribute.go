package check

import (
	"fmt"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
)

// The server reads x.y as y(x), or as a cast of x to the type y, if x has no column y. The text of such a call cannot
// be qualified, and the type of x is often unknown here: a row of a table is also a row of its parents and of its
// type, and an item of FROM may be a scalar. Therefore x.y is allowed only if
//
//   - x is certain to have the column y, or
//   - every visible function y that can take one argument is allowed, and every visible type y is.

// fromItem is what is certain about the columns of an item of FROM, a WITH query, or the target of a statement that
// writes. Columns that an item has beyond them are unknown.
type fromItem struct {
	listed   []string           // names of the first columns, from an explicit list
	columns  []string           // names of columns
	parts    []fromItem         // of a join, which has their columns
	table    *pg_query.RangeVar // nil: the item is no table
	relation *relation          // that the name of the table means, unless a WITH query has the name; nil: unknown
}

// addFromItem adds an item under its alias or, if it has none, under the name that the server gives it.
func (w *walker) addFromItem(alias *pg_query.Alias, name string, item fromItem) {
	if alias != nil {
		name = alias.Aliasname
	}
	w.fromItems[name] = append(w.fromItems[name], withAlias(item, alias))
}

func withAlias(item fromItem, alias *pg_query.Alias) fromItem {
	item.listed = append(item.listed, stringsOf(alias.GetColnames())...)
	return item
}

// addWriteItems adds the rows that a statement which writes can name without an item of FROM.
func (w *walker) addWriteItems() {
	for _, name := range []string{"excluded", "old", "new"} { // RETURNING has old and new since PostgreSQL 18
		w.addFromItem(nil, name, fromItem{})
	}
}

// itemOfFrom returns a part of a join, with its alias. Columns of subqueries in it count as unknown: a subquery stands
// in each of the joins around it, so their lists could take much memory.
func (w *walker) itemOfFrom(n *pg_query.Node) fromItem {
	switch {
	case n.GetRangeVar() != nil:
		return withAlias(w.tableItem(n.GetRangeVar()), n.GetRangeVar().Alias)
	case n.GetRangeFunction() != nil:
		return withAlias(functionItem(n.GetRangeFunction()), n.GetRangeFunction().Alias)
	case n.GetJoinExpr() != nil:
		return withAlias(w.joinItem(n.GetJoinExpr()), n.GetJoinExpr().Alias)
	}
	return fromItem{}
}

// The following functions return an item without its alias.

func (w *walker) tableItem(n *pg_query.RangeVar) fromItem {
	if w.catalog == nil {
		return fromItem{}
	}
	return fromItem{table: n, relation: w.findRelation(n)}
}

func (w *walker) joinItem(n *pg_query.JoinExpr) fromItem {
	return fromItem{parts: []fromItem{w.itemOfFrom(n.Larg), w.itemOfFrom(n.Rarg)}}
}

func functionItem(n *pg_query.RangeFunction) (item fromItem) {
	for _, c := range n.Coldeflist {
		item.listed = append(item.listed, c.GetColumnDef().GetColname())
	}
	return item
}

// itemOfQuery returns the columns of a query whose names its text has. UNION and its like take those of the first
// query.
func itemOfQuery(n *pg_query.Node) (item fromItem) {
	query := n.GetSelectStmt()
	for query.GetLarg() != nil {
		query = query.Larg
	}
	for _, t := range query.GetTargetList() {
		target := t.GetResTarget()
		name := target.GetName()
		if fields := target.GetVal().GetColumnRef().GetFields(); name == "" && len(fields) > 0 {
			name = fields[len(fields)-1].GetString_().GetSval() // "" for *
		}
		if name != "" {
			item.columns = append(item.columns, name)
		}
	}
	return item
}

// nameOfFunctionItem returns the name that the server gives a function of FROM without an alias, that of the first
// function, or "" if it is not known: it may be an expression such as CURRENT_DATE.
func nameOfFunctionItem(n *pg_query.RangeFunction) string {
	if len(n.Functions) == 0 || len(n.Functions[0].GetList().GetItems()) == 0 {
		return ""
	}
	names := stringsOf(n.Functions[0].GetList().Items[0].GetFuncCall().GetFuncname())
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// hasColumn reports whether an item is certain to have a column.
func (w *walker) hasColumn(item fromItem, name string) bool {
	if slices.Contains(item.listed, name) {
		return true
	}
	has := func(part fromItem) bool { return w.hasColumn(part, name) }
	switch {
	case item.table == nil:
		// A list replaces the names of the first columns, and it is not known which these are.
		return len(item.listed) == 0 && (slices.Contains(item.columns, name) || slices.ContainsFunc(item.parts, has))
	case item.table.Schemaname == "" && w.withQueries[item.table.Relname] != nil:
		// The name may also mean a table, outside of the query's scope.
		return len(item.listed) == 0 && allHave(w.withQueries[item.table.Relname], has) &&
			(item.relation == nil || slices.Contains(item.relation.columnOrder, name))
	case item.relation == nil:
		return false
	}
	return slices.Index(item.relation.columnOrder, name) >= len(item.listed)
}

func allHave(items []fromItem, has func(fromItem) bool) bool {
	return !slices.ContainsFunc(items, func(item fromItem) bool { return !has(item) })
}

// reference is the name of an item of FROM and what follows it.
type reference struct{ of, name string }

// isColumn reports whether a reference is certain to be a column. The name of an item may refer to another item in
// another part of the statement. Therefore each item of that name must have the column.
func (w *walker) isColumn(r reference) bool {
	is, known := w.knownReferences[r]
	if !known {
		items := w.fromItems[r.of]
		is = len(items) > 0 && !w.hasUnnamedItem &&
			allHave(items, func(item fromItem) bool { return w.hasColumn(item, r.name) })
		w.knownReferences[r] = is
	}
	return is
}

// checkReference checks item.name. It is called after the walk, which finds all items of FROM.
func (w *walker) checkReference(n *pg_query.ColumnRef) {
	parts := stringsOf(n.Fields)
	r := reference{parts[len(parts)-2], parts[len(parts)-1]}
	isCallable := w.catalog == nil || len(w.catalog.functions[r.name]) > 0 || len(w.catalog.types[r.name]) > 0
	if !isCallable || w.isColumn(r) {
		return
	}
	w.checkAttribute(r.name, int(n.Location), true)
	if w.err != nil {
		w.err.Message += fmt.Sprintf(", and %s is not certain to have a column %s", r.of, r.name)
		w.err.Hint = fmt.Sprintf("if it has one, list its columns in FROM: AS %s (column, ...)", r.of)
	}
}

// checkAttribute checks .name after an expression of any type. ofFromItem says that the expression is an item of FROM.
func (w *walker) checkAttribute(name string, at int, ofFromItem bool) {
	switch {
	case w.isServerText: // the server writes such calls in functional notation
		return
	case w.catalog == nil:
		if strings.HasPrefix(name, "pg_") || policy.SQLHasEffect(name) {
			w.fail(at, refuseFunction(name+", in attribute notation,", false))
		}
		return
	}
	w.mentionedNames[name] = true
	for _, t := range w.catalog.types[name] {
		// The server does not cast to types of rows in this notation. Only cstring, of the pseudo-types, has values.
		if w.isVisible(t.Schema) && t.Kind != 'c' && (t.Kind != 'p' || t.Name == "cstring") {
			w.checkType(t, at)
		}
	}
	for _, f := range w.catalog.functions[name] {
		// No row has the pseudo-type internal. A NULL may have any type.
		if !f.allowed && f.acceptsArgs(1) && w.isVisible(f.schema) && !(ofFromItem && w.catalog.takesInternal(f)) {
			w.fail(at, refuseFunction(name+", in attribute notation,", false))
		}
	}
}

// isVisible reports whether an unqualified name may refer to an object of the schema.
func (w *walker) isVisible(schema string) bool {
	return schema == "pg_catalog" || slices.Contains(w.searchPath, schema)
}
