package check

import (
	"cmp"
	"reflect"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// fromItem is what is certain about the columns of an item of FROM, a WITH query, or the target of a statement that
// writes. Columns that an item has beyond them are unknown.
type fromItem struct {
	relation *relation // nil: the item is not a table, or an unknown one
	columns  []outputColumn
	parts    []*fromItem // the item has their columns
	listed   []string    // names that an explicit list gives to the first columns
}

// outputColumn is a column of a query whose name its text has.
type outputColumn struct {
	name   string
	source *pg_query.ColumnRef // the column that it is; nil: it is another expression
}

// withQuery is a WITH query whose name is visible.
type withQuery struct {
	name string
	item *fromItem
}

// findWithQuery returns the WITH query that the name of a table means at this point of the walk; nil: it means a table.
func (w *walker) findWithQuery(n *pg_query.RangeVar) *fromItem {
	if n.Schemaname != "" || n == w.target {
		return nil
	}
	for i := len(w.withQueries) - 1; i >= 0; i-- {
		if w.withQueries[i].name == n.Relname {
			return w.withQueries[i].item
		}
	}
	return nil
}

// maxWithQueries bounds the WITH queries of a statement. PostgreSQL plans a chain in which each reads the one before in
// a time that grows with more than the square of its length, and takes no cancel request meanwhile: 100 take 0.08 s,
// 200 take 0.45 s, 400 take 16 s, and 3000 take minutes and gigabytes (PostgreSQL 15, 2 cores).
const maxWithQueries = 200

// walkWith visits the queries of a WITH clause and makes their names visible, in the order of the server: a query sees
// those before it, and after RECURSIVE all of them. The caller of the walk over the statement removes the names.
func (w *walker) walkWith(s *nodeType, with *pg_query.WithClause) {
	if w.withCount += len(with.Ctes); w.withCount > maxWithQueries {
		no := sandbox.Refusef("too-large", "the statement has more than %d WITH queries", maxWithQueries)
		no.Hint = "write it as several statements, or compute a part of it in Python"
		w.fail(int(with.Location), no)
		return
	}
	if with.Recursive {
		var made []*fromItem
		for _, n := range with.Ctes {
			made = append(made, &fromItem{})
			w.addWithQuery(withQuery{n.GetCommonTableExpr().GetCtename(), made[len(made)-1]})
		}
		for i, n := range with.Ctes {
			*made[i] = w.itemOfWithQuery(n.GetCommonTableExpr())
		}
		s.forEachChild(reflect.ValueOf(with).Elem(), w.walk)
		return
	}
	s.forEachChild(reflect.ValueOf(with).Elem(), func(child *nodeType, node reflect.Value) {
		w.walk(child, node)
		query := node.Interface().(*pg_query.Node).GetCommonTableExpr()
		item := w.itemOfWithQuery(query)
		w.addWithQuery(withQuery{query.GetCtename(), &item})
	})
}

func (w *walker) addWithQuery(query withQuery) {
	w.withQueries, w.allWithQueries = append(w.withQueries, query), append(w.allWithQueries, query)
}

func (w *walker) itemOfWithQuery(n *pg_query.CommonTableExpr) fromItem {
	item := w.itemOfQuery(n.GetCtequery())
	item.listed = stringsOf(n.GetAliascolnames())
	return item
}

// addFromItem adds an item under its alias or, if it has none, under the name that the server gives it.
func (w *walker) addFromItem(alias *pg_query.Alias, name string, item *fromItem) {
	if alias != nil {
		name = alias.Aliasname
	}
	w.fromItems[name] = append(w.fromItems[name], item)
}

// addWriteItems adds the rows that a statement which writes can name without an item of FROM.
func (w *walker) addWriteItems(statement *pg_query.Node) {
	row := &fromItem{}
	if target := targetOf(statement); w.catalog != nil && target != nil {
		row.relation = w.findRelation(target)
	}
	for _, name := range []string{"excluded", "old", "new"} { // RETURNING has old and new since PostgreSQL 18
		w.addFromItem(nil, name, row)
	}
}

// targetOf returns the table that a statement writes; nil: it writes none.
func targetOf(n *pg_query.Node) *pg_query.RangeVar {
	switch {
	case n.GetInsertStmt() != nil:
		return n.GetInsertStmt().Relation
	case n.GetUpdateStmt() != nil:
		return n.GetUpdateStmt().Relation
	case n.GetDeleteStmt() != nil:
		return n.GetDeleteStmt().Relation
	}
	return n.GetMergeStmt().GetRelation()
}

// itemOf returns an item of FROM with its alias. n is one of the types in fromNode. The names of tables have the
// meaning of this point of the walk.
func (w *walker) itemOf(n any) *fromItem {
	if item := w.itemsByNode[n]; item != nil {
		return item
	}
	item, alias := fromItem{}, (*pg_query.Alias)(nil)
	switch n := n.(type) {
	case *pg_query.RangeVar:
		alias = n.Alias
		if query := w.findWithQuery(n); query != nil {
			item.parts = []*fromItem{query}
		} else if w.catalog != nil {
			item.relation = w.findRelation(n)
		}
	case *pg_query.RangeSubselect:
		item, alias = w.itemOfQuery(n.Subquery), n.Alias
	case *pg_query.RangeFunction:
		alias = n.Alias
		for _, c := range n.Coldeflist {
			item.listed = append(item.listed, c.GetColumnDef().GetColname())
		}
	case *pg_query.JoinExpr:
		alias = n.Alias
		item.parts = []*fromItem{w.itemOf(fromNode(n.Larg)), w.itemOf(fromNode(n.Rarg))}
	}
	item.listed = append(item.listed, stringsOf(alias.GetColnames())...)
	w.itemsByNode[n] = &item
	return &item
}

// fromNode returns the content of an item of FROM whose columns may be certain, or nil.
func fromNode(n *pg_query.Node) any {
	switch {
	case n.GetRangeVar() != nil:
		return n.GetRangeVar()
	case n.GetRangeSubselect() != nil:
		return n.GetRangeSubselect()
	case n.GetRangeFunction() != nil:
		return n.GetRangeFunction()
	case n.GetJoinExpr() != nil:
		return n.GetJoinExpr()
	}
	return nil
}

// itemOfQuery returns the columns of a query whose names its text has. UNION and its like take those of the first
// query.
func (w *walker) itemOfQuery(n *pg_query.Node) (item fromItem) {
	query := n.GetSelectStmt()
	hasWith := query.GetWithClause() != nil // then the names in FROM have another meaning than here
	for query.GetLarg() != nil {
		query = query.Larg
		hasWith = hasWith || query.WithClause != nil
	}
	selectsAll := false // SELECT *
	var named map[string]*fromItem
	for _, t := range query.GetTargetList() {
		target := t.GetResTarget()
		if target.GetName() != "" {
			item.columns = append(item.columns, outputColumn{target.Name, target.Val.GetColumnRef()})
			continue
		}
		value := target.GetVal()
		for value.GetTypeCast() != nil { // a cast keeps the name of a column
			value = value.GetTypeCast().Arg
		}
		fields := value.GetColumnRef().GetFields()
		switch {
		case len(fields) == 0:
		case fields[len(fields)-1].GetAStar() == nil:
			name := fields[len(fields)-1].GetString_().GetSval()
			item.columns = append(item.columns, outputColumn{name, target.Val.GetColumnRef()})
		case hasWith:
		case len(fields) == 1:
			selectsAll = true
		case len(fields) == 2:
			if named == nil {
				named = map[string]*fromItem{}
				w.addNamedItems(named, query.FromClause)
			}
			if part := named[fields[0].GetString_().GetSval()]; part != nil {
				item.parts = append(item.parts, part)
			}
		}
	}
	if selectsAll {
		for _, n := range query.FromClause {
			item.parts = append(item.parts, w.itemOf(fromNode(n)))
		}
	}
	return item
}

// addNamedItems adds the items of FROM by their names, and those in joins without an alias.
func (w *walker) addNamedItems(named map[string]*fromItem, from []*pg_query.Node) {
	for _, n := range from {
		switch n := fromNode(n).(type) {
		case *pg_query.RangeVar:
			named[cmp.Or(n.Alias.GetAliasname(), n.Relname)] = w.itemOf(n)
		case *pg_query.RangeSubselect:
			named[n.Alias.GetAliasname()] = w.itemOf(n)
		case *pg_query.RangeFunction:
			named[n.Alias.GetAliasname()] = w.itemOf(n)
		case *pg_query.JoinExpr:
			if n.Alias == nil {
				w.addNamedItems(named, []*pg_query.Node{n.Larg, n.Rarg})
			} else {
				named[n.Alias.Aliasname] = w.itemOf(n)
			}
		}
	}
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

// hasColumn reports whether an item is certain to have a column. known has the answers for its parts, which several
// items may share.
func (w *walker) hasColumn(item *fromItem, name string, known map[*fromItem]bool) bool {
	has, isKnown := known[item]
	if isKnown || !w.spend(mapSteps+len(item.listed)+len(item.columns)) {
		return has
	}
	known[item] = false // for a query that reads itself
	switch {
	case slices.Contains(item.listed, name):
		has = true
	case item.relation != nil:
		has = slices.Index(item.relation.columnOrder, name) >= len(item.listed)
	case len(item.listed) == 0: // which columns a list renames is known of tables only
		has = slices.ContainsFunc(item.columns, func(c outputColumn) bool { return c.name == name }) ||
			slices.ContainsFunc(item.parts, func(part *fromItem) bool { return w.hasColumn(part, name, known) })
	}
	known[item] = has
	return has
}
