package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// findCrossJoins finds items in the list of FROM that no condition connects with those before them.
func findCrossJoins(d *stageDeriver, parts *blockParts) {
	for i := 1; i < len(parts.items); i++ {
		item := parts.items[i]
		if d.isConnected(parts, i) || len(item.tables()) == 0 || item.tables()[0].isLateral ||
			item.node.GetRangeFunction() != nil {
			continue
		}
		list := span{parts.items[0].start, parts.items[i-1].end}
		d.addProbe(parts, ProbeCrossJoin, -1, item.span, []string{item.name},
			fill("SELECT count(*) FROM @0", listHole(d.text(list), parts.node.FromClause[:i])),
			fill("SELECT count(*) FROM @0", item.hole(d.clauseText)))
	}
}

// isConnected reports whether a condition has columns of the item with an index and of another one, or may have.
func (d *stageDeriver) isConnected(parts *blockParts, i int) bool {
	for _, c := range parts.conjuncts {
		items, isKnown := d.itemsOf(parts, c.node)
		if !isKnown && len(columnsOf(c.node)) > 1 || slices.Contains(items, i) && len(items) > 1 {
			return true
		}
	}
	return false
}

// rowIdentity returns an expression that is another for each row of a table, or for each different row of it.
// isKey is false if the table may have the same row twice.
func (d *stageDeriver) rowIdentity(item *fromItem) (h hole, isKey bool) {
	name := quoteName(item.name)
	if item.table != nil && len(item.table.PrimaryKey) > 0 &&
		len(item.node.GetRangeVar().GetAlias().GetColnames()) == 0 {
		text := name + "." + quoteName(item.table.PrimaryKey[0])
		if len(item.table.PrimaryKey) > 1 {
			var columns []string
			for _, c := range item.table.PrimaryKey {
				columns = append(columns, name+"."+quoteName(c))
			}
			text = "ROW(" + strings.Join(columns, ", ") + ")"
		}
		return ownHole(text), true
	}
	return ownHole(name + ".*"), false
}

// ownHole returns a hole for an expression of this package.
func ownHole(text string) hole {
	node := parsedSelect("SELECT (" + text + ")").TargetList[0].GetResTarget().Val
	return hole{text: "(" + text + ")", nodes: []*pg_query.Node{node}}
}

// isInvariant reports whether repeated rows do not change an aggregate.
func isInvariant(call *pg_query.FuncCall) bool {
	switch functionName(call) {
	case "sum", "avg", "count", "stddev", "stddev_samp", "variance", "var_samp", "string_agg", "array_agg", "json_agg",
		"jsonb_agg":
		return call.AggDistinct
	}
	return true
}

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

// nullSides returns the joins of a block whose right or left side may have no row, with that side.
func (p *blockParts) nullSides() (list []nullSide) {
	for _, j := range p.joins {
		switch j.node.GetJoinExpr().Jointype {
		case pg_query.JoinType_JOIN_LEFT:
			list = append(list, nullSide{j, j.right, false})
		case pg_query.JoinType_JOIN_RIGHT:
			list = append(list, nullSide{j, j.left, true})
		}
	}
	return list
}

// nullSide is the side of an outer join that may have no row.
type nullSide struct {
	join   *fromItem
	side   *fromItem
	isLeft bool
}

// key returns an expression that is NULL in the rows that have no row of the side: a column that the join compares.
func (d *stageDeriver) nullKey(n nullSide) (h hole, ok bool) {
	for _, pair := range d.equalPairs(n.join) {
		node, s := pair.rightNode, pair.right
		if n.isLeft {
			node, s = pair.leftNode, pair.left
		}
		if node.GetColumnRef() != nil {
			return exprHole(d.text(s), node), true
		}
	}
	for _, t := range n.side.tables() {
		if t.table != nil && len(t.table.PrimaryKey) > 0 && len(n.side.tables()) == 1 {
			return ownHole(quoteName(t.name) + "." + quoteName(t.table.PrimaryKey[0])), true
		}
	}
	return h, false
}

// has reports whether an expression has a column of the tables.
func (d *stageDeriver) has(n *pg_query.Node, all, tables []*fromItem) bool {
	return slices.ContainsFunc(columnsOf(n), func(ref *pg_query.ColumnRef) bool {
		return slices.Contains(tables, d.tableOf(all, ref))
	})
}

// findNullableSides finds conditions of WHERE, and joins, that no unmatched row of an outer join passes.
func findNullableSides(d *stageDeriver, parts *blockParts) {
	all := parts.tables()
	for _, n := range parts.nullSides() {
		key, ok := d.nullKey(n)
		if !ok {
			continue
		}
		for _, c := range parts.conjuncts {
			if !d.has(c.node, all, n.side.tables()) {
				continue
			}
			var f filler
			k, condition := f.put(key), f.put(exprHole(d.text(c.span), c.node))
			query := "SELECT count(*) FILTER (WHERE " + k + " IS NULL), count(*) FILTER (WHERE " + k + " IS NULL AND " +
				condition + " IS TRUE), count(*) FILTER (WHERE " + condition + " IS TRUE)"
			kept := n.join.left
			if n.isLeft {
				kept = n.join.right
			}
			_, _, _, isStrict := operator(c.node, "=", "<>", "<", ">", "<=", ">=")
			if identity, isKey := d.rowIdentity(kept.tables()[0]); isKey && isStrict {
				id := f.put(identity)
				query += ", count(DISTINCT " + id + "), count(DISTINCT " + id + ") FILTER (WHERE " + condition + " " +
					"IS TRUE)"
			}
			d.addFlagged(parts, ProbeNullableSide, c.stage, c.span, []string{n.side.name, n.join.joinWord()},
				map[string]bool{"strict": isStrict && !hasCall(c.node)}, fill(query+d.from(&f, parts), f.holes...))
		}
		for _, later := range parts.joins {
			join := later.node.GetJoinExpr()
			if later == n.join || join.Jointype != pg_query.JoinType_JOIN_INNER || join.Quals == nil ||
				!slices.ContainsFunc([]*fromItem{later.left, later.right},
					func(x *fromItem) bool { return x == n.join }) ||
				!d.has(join.Quals, all, n.side.tables()) {
				continue
			}
			d.addProbe(parts, ProbeConditionInWhere, later.stage, span{later.qual.start + 1, later.qual.end},
				[]string{n.side.name, n.join.joinWord()},
				fill("SELECT count(*) FILTER (WHERE @0 IS NULL) FROM @1", key, n.join.hole(d.clauseText)),
				fill("SELECT count(*) FILTER (WHERE @0 IS NULL) FROM @1", key, later.hole(d.clauseText)))
		}
	}
}

func (f *fromItem) joinWord() string {
	if f.node.GetJoinExpr().Jointype == pg_query.JoinType_JOIN_RIGHT {
		return "RIGHT JOIN"
	}
	return "LEFT JOIN"
}

// findWrongKeys finds joins of two tables over other columns than their foreign key, and NATURAL joins.
func findWrongKeys(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		join := j.node.GetJoinExpr()
		left, right := j.left.tables(), j.right.tables()
		if join.IsNatural && len(left) == 1 && len(right) == 1 {
			d.naturalJoin(parts, j, left[0], right[0])
			continue
		}
		pairs := d.equalPairs(j)
		if len(pairs) != 1 || len(right) != 1 || right[0].table == nil {
			continue
		}
		l := d.tableOf(left, pairs[0].leftNode.GetColumnRef())
		r := right[0]
		if pairs[0].leftNode.GetColumnRef() == nil || pairs[0].rightNode.GetColumnRef() == nil || l == nil ||
			l.table == nil ||
			l.table == r.table {
			continue
		}
		_, lc := columnName(pairs[0].leftNode.GetColumnRef())
		_, rc := columnName(pairs[0].rightNode.GetColumnRef())
		for _, k := range foreignKeys(l, r) {
			isUsed := k.left == lc && k.right == rc
			isOther := k.left != lc && k.right == rc || k.left == lc && k.right != rc
			if isUsed {
				break
			}
			if !isOther || hasKey(l, r, lc, rc) {
				continue
			}
			lt, rt := quoteName(l.name)+"."+quoteName(k.left), quoteName(r.name)+"."+quoteName(k.right)
			from := listHole(d.text(l.span)+", "+d.text(r.span), []*pg_query.Node{l.node, r.node})
			d.addProbe(parts, ProbeWrongKey, j.stage, j.qual, []string{lc, rc, k.left, k.right, l.name, r.name},
				fill("SELECT count(*) FROM @0 WHERE @1 = @2", from, exprHole(d.text(pairs[0].left), pairs[0].leftNode),
					exprHole(d.text(pairs[0].right), pairs[0].rightNode)),
				fill("SELECT count(*) FROM @0 WHERE @1 = @2", from, ownHole(lt), ownHole(rt)))
			break
		}
	}
}

// keyPair is a foreign key of one column between two tables, in either direction.
type keyPair struct{ left, right string }

func foreignKeys(l, r *fromItem) (list []keyPair) {
	for _, k := range l.table.ForeignKeys {
		if len(k.Columns) == 1 && r.table.isNamed(k.Table) {
			list = append(list, keyPair{k.Columns[0], k.ReferencedColumns[0]})
		}
	}
	for _, k := range r.table.ForeignKeys {
		if len(k.Columns) == 1 && l.table.isNamed(k.Table) {
			list = append(list, keyPair{k.ReferencedColumns[0], k.Columns[0]})
		}
	}
	return list
}

func hasKey(l, r *fromItem, lc, rc string) bool {
	return slices.Contains(foreignKeys(l, r), keyPair{lc, rc})
}

// isNamed reports whether a name, as PostgreSQL prints it, is that of the table.
func (t *Table) isNamed(name string) bool {
	name = strings.ReplaceAll(name, `"`, "")
	return name == t.Name || name == t.Schema+"."+t.Name
}

// naturalJoin adds a probe for a NATURAL join over more columns than the foreign key.
func (d *stageDeriver) naturalJoin(parts *blockParts, j, l, r *fromItem) {
	if l.table == nil || r.table == nil {
		return
	}
	var shared []string
	for _, c := range l.columns {
		if slices.Contains(r.columns, c) {
			shared = append(shared, c)
		}
	}
	keys := foreignKeys(l, r)
	if len(shared) == 0 || len(keys) == 0 || len(shared) == 1 && keys[0] == (keyPair{shared[0], shared[0]}) {
		return
	}
	k := keys[0]
	from := listHole(d.text(l.span)+", "+d.text(r.span), []*pg_query.Node{l.node, r.node})
	d.addProbe(parts, ProbeNatural, j.stage, span{j.left.end, j.end},
		[]string{strings.Join(shared, ", "), k.left, k.right, l.name, r.name},
		fill("SELECT count(*) FROM @0", j.hole(d.clauseText)),
		fill("SELECT count(*) FROM @0 WHERE @1 = @2", from, ownHole(quoteName(l.name)+"."+quoteName(k.left)),
			ownHole(quoteName(r.name)+"."+quoteName(k.right))))
}

// findPairs finds joins of a table with itself that have each pair in both orders.
func findPairs(d *stageDeriver, parts *blockParts) {
	check := func(c conjunct, stage int) {
		e := c.node.GetAExpr()
		if e == nil || len(e.Name) != 1 || e.Name[0].GetString_().GetSval() != "<>" {
			return
		}
		l, r := d.tableOf(parts.tables(), e.Lexpr.GetColumnRef()), d.tableOf(parts.tables(), e.Rexpr.GetColumnRef())
		_, lc := columnName(e.Lexpr.GetColumnRef())
		_, rc := columnName(e.Rexpr.GetColumnRef())
		if l == nil || r == nil || l == r || l.table == nil || l.table != r.table || lc != rc ||
			parts.isGroupedBy(d, l) != parts.isGroupedBy(d, r) { // the others of each row
			return
		}
		left, ok1 := d.expression(e.Lexpr)
		right, ok2 := d.expression(e.Rexpr)
		if !ok1 || !ok2 {
			return
		}
		var f filler
		a, b := f.put(left), f.put(right)
		d.addProbe(parts, ProbePairs, stage, c.span, []string{l.table.Name, left.inner(), right.inner()},
			fill("SELECT count(*) FILTER (WHERE "+a+" < "+b+"), count(*) FILTER (WHERE "+a+" > "+b+")"+d.source(&f,
				parts),
				f.holes...))
	}
	for _, c := range parts.conjuncts {
		check(c, c.stage)
	}
	for _, j := range parts.joins {
		if quals := j.node.GetJoinExpr().Quals; quals != nil {
			for _, c := range d.splitWhere(quals, span{j.qual.start + 1, j.qual.end}) {
				check(c, j.stage)
			}
		}
	}
}

// findEmptyCounts finds COUNT(*) after an outer join, which counts an unmatched row as one.
func findEmptyCounts(d *stageDeriver, parts *blockParts) {
	if len(parts.node.GroupClause) == 0 {
		return
	}
	for _, a := range parts.aggregates() {
		if !a.call.AggStar {
			continue
		}
		for _, n := range parts.nullSides() {
			key, ok := d.nullKey(n)
			if !ok {
				continue
			}
			var f filler
			k := f.put(key)
			filter := ""
			if a.call.AggFilter != nil {
				h, ok := d.expression(a.call.AggFilter)
				if !ok {
					continue
				}
				filter = " AND " + f.put(h) + " IS TRUE"
			}
			groups, ok := d.groups(&f, parts)
			if !ok {
				continue
			}
			inner := fill("SELECT count(*) FILTER (WHERE "+k+" IS NULL"+filter+`) AS "u", count(`+k+`) AS "m"`+groups,
				f.holes...)
			kept := n.join.left
			if n.isLeft {
				kept = n.join.right
			}
			var g filler
			own := g.put(kept.hole(d.clauseText))
			d.addProbe(parts, ProbeEmptyCount, n.join.stage, d.spanOr(a.node, parts.clause.targets),
				[]string{n.side.name, n.join.joinWord()},
				fill(`SELECT count(*), count(*) FILTER (WHERE "u" > 0 AND "m" = 0), coalesce(max("u"), 0) FROM (@0) `+
					`AS "g"`,
					queryHole(inner)), fill("SELECT count(*) FROM "+own, g.holes...))
		}
	}
}

// findTextKeys finds joins over texts that have more matches without upper case and blanks.
func findTextKeys(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		join := j.node.GetJoinExpr()
		if join.Quals == nil {
			continue
		}
		condition := span{j.qual.start + 1, j.qual.end}
		conjuncts := d.splitWhere(join.Quals, condition)
		for i, c := range conjuncts {
			pair, ok := d.equalPair(c, j.left.tables(), j.right.tables())
			if !ok || !d.mayBeText(parts, pair.leftNode) || !d.mayBeText(parts, pair.rightNode) {
				continue
			}
			var f filler
			left, right := f.put(j.left.hole(d.clauseText)), f.put(j.right.hole(d.clauseText))
			a, b := f.put(exprHole(d.text(pair.left), pair.leftNode)), f.put(exprHole(d.text(pair.right),
				pair.rightNode))
			on := "lower(btrim(" + a + ")) = lower(btrim(" + b + "))"
			for m, other := range conjuncts {
				if m != i {
					on += " AND " + f.put(exprHole(d.text(other.span), other.node))
				}
			}
			d.addProbe(parts, ProbeTextKey, j.stage, c.span, nil,
				fill("SELECT count(*), count(*) FILTER (WHERE "+a+" = "+b+") FROM "+left+" JOIN "+right+" ON "+on,
					f.holes...))
		}
	}
}

// mayBeText reports whether an expression may be a text.
func (d *stageDeriver) mayBeText(parts *blockParts, n *pg_query.Node) bool {
	if c := d.columnOf(parts, n); c != nil {
		return isTextType(c.Type)
	}
	return true
}

func isTextType(name string) bool {
	return name == "text" || strings.HasPrefix(name, "character") || strings.HasPrefix(name, "varchar") ||
		name == "citext"
}
