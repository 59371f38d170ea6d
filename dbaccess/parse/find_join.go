package parse

import (
	"slices"
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
