package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// findFanOuts finds sums and counts over rows that a join has repeated.
func findFanOuts(d *stageDeriver, parts *blockParts) {
	tables := parts.tables()
	if d.countedReferences(parts); len(tables) < 2 {
		d.passedFanOuts(parts)
		return
	}
	list := parts.aggregates()
	if !parts.isGrouped() {
		for _, w := range parts.windowCalls() {
			if name := functionName(w.call); name == "sum" || name == "avg" {
				list = append(list, aggregate{w.call, w.node, w.alias, w.isWhole})
			}
		}
	}
	for _, a := range list {
		if isInvariant(a.call) {
			continue
		}
		var used []*fromItem
		isKnown := true
		for _, arg := range a.call.Args {
			for _, ref := range columnsOf(arg) {
				item := d.tableOf(tables, ref)
				if item == nil {
					isKnown = false
				} else if !slices.Contains(used, item) {
					used = append(used, item)
				}
			}
		}
		s := d.spanOr(a.node, parts.clause.targets)
		if isKnown && len(used) > 0 && len(used) <= 3 {
			d.repeatedRows(parts, ProbeFanOut, s, a, used)
		}
		if a.call.AggStar {
			for _, item := range tables {
				if named := namesTable(a.alias, d.tableName(item)); named {
					d.repeatedRows(parts, ProbeCountAll, s, a, []*fromItem{item})
				}
			}
		}
	}
}

// passedFanOuts finds sums and counts of a block over the rows of another one, which passes on what its joins repeat,
// or leaves out rows of a table that are equal in the columns that it shows.
func (d *stageDeriver) passedFanOuts(parts *blockParts) {
	if len(parts.tables()) != 1 || parts.node.WhereClause != nil {
		return
	}
	inner := d.partsOf(parts.tables()[0].child)
	if inner == nil || inner.isGrouped() || inner.node.LimitCount != nil || !inner.clause.distinctOn.isEmpty() ||
		hasWindowIn(inner.node.TargetList) {
		return
	}
	for _, a := range parts.aggregates() {
		if isInvariant(a.call) || len(a.call.Args) != 1 || a.call.AggFilter != nil {
			continue
		}
		_, name := columnName(a.call.Args[0].GetColumnRef())
		value := inner.targetOf(name)
		item := d.onlyTable(inner, value)
		if name == "" || value == nil || item == nil {
			continue
		}
		s := d.spanOr(a.node, parts.clause.targets)
		switch {
		case len(inner.node.DistinctClause) > 0:
			d.lostByDistinct(parts, inner, item, a, s)
		case len(inner.tables()) > 1 && !d.isSelfJoin(inner.tables()) && !d.hasRange(inner):
			d.repeatedRows(inner, ProbeFanOut, s, a, []*fromItem{item})
		}
	}
}

// hasWindowIn reports whether a list of expressions has a window function.
func hasWindowIn(list []*pg_query.Node) bool {
	return callsIn(list, func(f *pg_query.FuncCall) bool { return f.Over != nil })
}

// lostByDistinct adds a probe for the rows of a table that SELECT DISTINCT of a block leaves out before they are added
// up.
func (d *stageDeriver) lostByDistinct(parts, inner *blockParts, item *fromItem, a aggregate, s span) {
	if name := functionName(a.call); name != "sum" && name != "avg" {
		return
	}
	var values []*pg_query.Node
	for _, t := range inner.node.TargetList {
		values = append(values, t.GetResTarget().GetVal())
	}
	var f filler
	list, ok := d.marks(&f, values)
	identity, isKey := d.rowIdentity(item)
	if !ok || !isKey || item.isLateral || item.node.GetRangeFunction() != nil {
		return
	}
	row := strings.Join(list, ", ")
	before := len(d.plan.Probes)
	d.addScoped(inner, ProbeSumDistinct, parts.id, s, fill("SELECT count(DISTINCT ROW("+row+")), count(DISTINCT ROW("+
		row+", "+f.put(identity)+"))"+d.source(&f, inner), f.holes...))
	if len(d.plan.Probes) > before {
		d.plan.Probes[before].Names = []string{functionName(a.call), item.name}
		d.plan.Probes[before].Flags = map[string]bool{"rows": true}
	}
}

// countedReferences finds COUNT of a column that refers to a table, under the name of that table, which counts a row of
// it as often as it is referred to.
func (d *stageDeriver) countedReferences(parts *blockParts) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != "count" || a.call.AggDistinct || len(a.call.Args) != 1 || a.call.AggFilter != nil {
			continue
		}
		ref := a.call.Args[0].GetColumnRef()
		item := d.tableOf(parts.tables(), ref)
		if ref == nil || item == nil || item.table == nil {
			continue
		}
		_, name := columnName(ref)
		table, _ := references(item.table, name)
		table = table[strings.LastIndex(table, ".")+1:]
		isAlone := namesTable(a.alias, table) && namesTable(table, a.alias) // rows "with a customer" are others
		if table == "" || !namesTable(a.alias, table) || namesTable(a.alias, item.table.Name) {
			continue
		}
		var f filler
		h, ok1 := d.expression(a.call.Args[0])
		m := f.put(h)
		groups, ok2 := d.groups(&f, parts)
		if !ok1 || !ok2 {
			continue
		}
		inner := fill("SELECT count("+m+`) AS "n", count(DISTINCT `+m+`) AS "d"`+groups, f.holes...)
		d.addFlagged(parts, ProbeCountAll, item.stage, d.spanOr(a.node, parts.clause.targets),
			[]string{functionName(a.call), table}, map[string]bool{"reference": true, "alone": isAlone},
			fill(`SELECT 0, coalesce(sum("n"), 0)::bigint, coalesce(sum("d"), 0)::bigint FROM (@0) AS "g"`,
				queryHole(inner)))
	}
}

// tableName returns the name of the table or WITH query that an item is, or its alias.
func (d *stageDeriver) tableName(item *fromItem) string {
	if r := item.node.GetRangeVar(); r != nil {
		return r.Relname
	}
	return item.name
}

// repeatedRows adds a probe for the rows of tables after the joins: for each table its rows, and the distinct ones. A
// table without a key also has these numbers before the joins.
func (d *stageDeriver) repeatedRows(parts *blockParts, kind string, s span, a aggregate, used []*fromItem) {
	var f filler
	list := "SELECT count(*)"
	var queries []derivedQuery
	names := []string{functionName(a.call)}
	flags := map[string]bool{}
	for i, item := range used {
		if item.isLateral || item.node.GetRangeFunction() != nil {
			return
		}
		identity, isKey := d.rowIdentity(item)
		mark := f.put(identity)
		filter := ""
		if a.call.AggFilter != nil {
			h, ok := d.expression(a.call.AggFilter)
			if !ok {
				return
			}
			filter = " AND " + f.put(h) + " IS TRUE"
		}
		// A row with a NULL in it is neither NULL nor NOT NULL.
		filter = " FILTER (WHERE NOT (" + mark + " IS NULL)" + filter + ")"
		list += ", count(*)" + filter + ", count(DISTINCT " + mark + ")" + filter
		names = append(names, item.name)
		if len(used) == 1 && kind == ProbeFanOut {
			flags["lookup"] = d.isLookup(parts, item)
		}
		if !isKey {
			flags["no-key-"+strconv.Itoa(i)] = true
		}
	}
	rows := fill(list+d.source(&f, parts), f.holes...)
	if (d.isSelfJoin(parts.tables()) || d.hasRange(parts)) && len(parts.node.GroupClause) > 0 {
		// A row is counted for each of its peers, once in the group of each.
		if rows = d.repeatedInGroups(parts, list, f); rows.node == nil {
			return
		}
	}
	queries = append(queries, rows)
	for i, item := range used {
		if flags["no-key-"+strconv.Itoa(i)] {
			identity, _ := d.rowIdentity(item)
			queries = append(queries, fill("SELECT count(*), count(DISTINCT @0) FROM @1", identity,
				item.hole(d.clauseText)))
		}
	}
	d.addFlagged(parts, kind, used[0].stage, s, names, flags, queries...)
}

// isLookup reports whether a join looks up at most one row of a table for each row before it, and no later join has a
// condition on that table.
func (d *stageDeriver) isLookup(parts *blockParts, item *fromItem) (is bool) {
	for _, j := range parts.joins {
		if j.right != item {
			for _, p := range d.equalPairs(j) {
				if d.tableOf(parts.tables(), p.leftNode.GetColumnRef()) == item {
					return false
				}
			}
			continue
		}
		if item.table == nil || len(item.table.PrimaryKey) == 0 {
			return false
		}
		var names []string
		for _, p := range d.equalPairs(j) {
			_, name := columnName(p.rightNode.GetColumnRef())
			names = append(names, name)
		}
		for _, n := range j.node.GetJoinExpr().UsingClause {
			names = append(names, n.GetString_().GetSval())
		}
		isKey := true
		for _, c := range item.table.PrimaryKey {
			isKey = isKey && slices.Contains(names, c)
		}
		is = isKey || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(item.table.Unique, n) })
	}
	return is
}

// hasRange reports whether a join compares its sides with something else than =, which is meant to repeat rows.
func (d *stageDeriver) hasRange(parts *blockParts) bool {
	return slices.ContainsFunc(parts.joins, func(j *fromItem) bool { return !d.hasOnlyKeys(j) })
}

// repeatedInGroups returns the rows of a list of counts that are computed for each group and added up.
func (d *stageDeriver) repeatedInGroups(parts *blockParts, list string, f filler) (q derivedQuery) {
	from, ok := d.groups(&f, parts)
	if !ok {
		return q
	}
	columns, sums := strings.Split(strings.TrimPrefix(list, "SELECT "), ", count("), ""
	inner := ""
	for i, c := range columns {
		name := quoteName("n" + strconv.Itoa(i))
		if i > 0 {
			inner, sums, c = inner+", ", sums+", ", "count("+c
		}
		inner += c + " AS " + name
		sums += "coalesce(sum(" + name + "), 0)::bigint"
	}
	return fill("SELECT "+sums+` FROM (@0) AS "g"`, queryHole(fill("SELECT "+inner+from, f.holes...)))
}
