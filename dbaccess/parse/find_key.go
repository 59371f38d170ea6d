package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The kinds of probes about keys.
const (
	ProbeSharedLabel  = "group-by-label"
	ProbeDoubleKey    = "duplicate-key"
	ProbePartialKey   = "partial-key"
	ProbePeriod       = "period-ignored"
	ProbeOuterFilter  = "filter-in-on"
	ProbeNullableMark = "anti-join-column"
	ProbeLostRows     = "inner-join-loses"
	ProbeSelfPairs    = "pairs-with-itself"
	ProbeOtherMaximum = "maximum-of-another"
	ProbeSharedBound  = "periods-share-a-bound"
)

// findSharedLabels finds GROUP BY of a text that is almost a key: a few rows of the table share it, and become one
// group.
func findSharedLabels(d *stageDeriver, parts *blockParts) {
	keys, ok := d.groupKeys(parts)
	if !ok || len(keys) == 0 || parts.node.HavingClause != nil && len(parts.tables()) == 1 {
		return
	}
	for i, key := range keys {
		item := d.tableOf(parts.tables(), key.GetColumnRef())
		if key.GetColumnRef() == nil || item == nil || item.table == nil || len(item.table.PrimaryKey) != 1 ||
			d.readsAt(parts, item, nil, func(at place) bool { return at == inHaving }) {
			continue
		}
		_, name := columnName(key.GetColumnRef())
		column := item.table.column(name)
		if column == nil || !isTextType(column.Type) || slices.Contains(item.table.Unique, name) ||
			d.hasOtherKey(parts, keys, i, item) || len(parts.tables()) == 1 && d.countsRows(parts) {
			continue
		}
		var f filler
		list, ok := d.marks(&f, keys)
		if !ok {
			return
		}
		identity, _ := d.rowIdentity(item)
		inner := "SELECT " + list[i] + ` AS "l", count(DISTINCT ` + f.put(identity) + `) AS "n"` + d.source(&f, parts) +
			" GROUP BY " + list[i]
		d.addProbe(parts, ProbeSharedLabel, d.groupStage(parts), d.groupSpan(parts, i),
			[]string{name, item.table.Name, item.table.PrimaryKey[0]},
			fill(`SELECT count(*), count(*) FILTER (WHERE "n" > 1), coalesce(max("n"), 0), `+
				`coalesce(sum("n"), 0)::bigint FROM (@0) AS "g" WHERE "l" IS NOT NULL`,
				queryHole(fill(inner, f.holes...))))
	}
}

// hasOtherKey reports whether the groups have another key of a table, or one that refers to its rows.
func (d *stageDeriver) hasOtherKey(parts *blockParts, keys []*pg_query.Node, but int, item *fromItem) bool {
	for i, key := range keys {
		ref := key.GetColumnRef()
		if i == but || ref == nil {
			continue
		}
		_, name := columnName(ref)
		other := d.tableOf(parts.tables(), ref)
		if other == item {
			return true
		}
		if other != nil && other.table != nil {
			if parent, _ := references(other.table, name); item.table.isNamed(parent) {
				return true
			}
		}
	}
	return false
}

// countsRows reports whether a block looks how many rows share something.
func (d *stageDeriver) countsRows(parts *blockParts) bool {
	return slices.ContainsFunc(parts.aggregates(), func(a aggregate) bool {
		return functionName(a.call) == "count"
	})
}

// findDoubleKeys finds a join over columns that are almost a key of one side: a few rows of it have the same, and
// repeat the rows of the other side.
func findDoubleKeys(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		pairs := d.equalPairs(j)
		if len(pairs) == 0 || len(j.right.tables()) != 1 || !d.hasOnlyKeys(j) {
			continue
		}
		item := j.right.tables()[0]
		if item.isLateral || item.node.GetRangeFunction() != nil || d.isReference(j, pairs) {
			continue
		}
		var f filler
		right, left := f.put(j.right.hole(d.clauseText)), f.put(j.left.hole(d.clauseText))
		var rightKeys, leftKeys []string
		for _, p := range pairs {
			rightKeys = append(rightKeys, f.put(exprHole(d.text(p.right), p.rightNode)))
			leftKeys = append(leftKeys, f.put(exprHole(d.text(p.left), p.leftNode)))
		}
		own := ""
		if quals := j.node.GetJoinExpr().Quals; quals != nil {
			for _, c := range d.splitWhere(quals, span{j.qual.start + 1, j.qual.end}) {
				if d.isOnly(parts, c.node, item) {
					own += " AND " + f.put(exprHole(d.text(c.span), c.node))
				}
			}
		}
		for _, c := range parts.conjuncts {
			if d.isOnly(parts, c.node, item) {
				own += " AND " + f.put(exprHole(d.text(c.span), c.node))
			}
		}
		own = strings.Replace(own, " AND ", " WHERE ", 1)
		counted := func(from string, keys []string) derivedQuery {
			return fill("SELECT "+keys[0]+` IS NULL AS "null", count(*) AS "n" FROM `+from+" GROUP BY "+
				strings.Join(keys, ", "), f.holes...)
		}
		const list = `SELECT count(*), count(*) FILTER (WHERE "n" > 1), coalesce(sum("n" - 1), 0)::bigint, ` +
			`coalesce(sum("n"), 0)::bigint FROM (@0) AS "g" WHERE NOT "null"`
		d.addProbe(parts, ProbeDoubleKey, j.stage, j.qual, []string{item.name, d.text(pairs[0].right)},
			fill(list, queryHole(counted(right+own, rightKeys))), fill(list, queryHole(counted(left, leftKeys))))
	}
}

// isReference reports whether the columns of a join are a foreign key of one of the sides, whose rows may repeat.
func (d *stageDeriver) isReference(j *fromItem, pairs []equalPair) bool {
	for _, p := range pairs {
		l := d.tableOf(j.left.tables(), p.leftNode.GetColumnRef())
		r := d.tableOf(j.right.tables(), p.rightNode.GetColumnRef())
		if p.leftNode.GetColumnRef() == nil || p.rightNode.GetColumnRef() == nil || l == nil || r == nil ||
			l.table == nil || r.table == nil {
			continue
		}
		_, lc := columnName(p.leftNode.GetColumnRef())
		_, rc := columnName(p.rightNode.GetColumnRef())
		if hasKey(l, r, lc, rc) {
			return true
		}
		if a, _ := references(l.table, lc); a != "" {
			if b, _ := references(r.table, rc); a == b {
				return true // rows of the same third table
			}
		}
	}
	return false
}

// findPartialKeys finds a join that has some columns of a key of several, where the other side has the others, too.
func findPartialKeys(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		pairs := d.equalPairs(j)
		for _, item := range j.right.tables() {
			if item.table == nil || len(item.table.PrimaryKey) < 2 || len(pairs) == 0 || len(j.right.tables()) != 1 {
				continue
			}
			isUsed := map[string]bool{}
			for _, p := range pairs {
				_, name := columnName(p.rightNode.GetColumnRef())
				isUsed[name] = true
			}
			missing, of := "", (*fromItem)(nil)
			count := 0
			for _, column := range item.table.PrimaryKey {
				if isUsed[column] {
					count++
					continue
				}
				missing = column
			}
			if count == 0 || count != len(item.table.PrimaryKey)-1 || d.mentions(parts, item, missing) {
				continue
			}
			for _, other := range parts.tables() {
				if other != item && other.table != nil && other.table.column(missing) != nil &&
					isSameValue(item.table, other.table, missing) && slices.Contains(j.left.tables(), other) {
					of = other
					break
				}
			}
			if of == nil {
				continue
			}
			var f filler
			join := f.put(j.hole(d.clauseText))
			full := quoteName(of.name) + "." + quoteName(missing) + " = " + quoteName(item.name) + "." +
				quoteName(missing)
			m := f.put(ownHole(full))
			d.addProbe(parts, ProbePartialKey, j.stage, j.qual, []string{item.name, missing, of.name,
				strings.Join(item.table.PrimaryKey, ", ")},
				fill("SELECT count(*), count(*) FILTER (WHERE "+m+") FROM "+join, f.holes...))
		}
	}
}

// isSameValue reports whether the columns of two tables with the same name are values of the same key: one refers to
// the other, or both to a third one.
func isSameValue(a, b *Table, column string) bool {
	aTable, aColumn := references(a, column)
	bTable, bColumn := references(b, column)
	return aTable != "" && (aTable == bTable && aColumn == bColumn || b.isNamed(aTable) && aColumn == column) ||
		bTable != "" && a.isNamed(bTable) && bColumn == column
}

// mentions reports whether a block has a column of an item anywhere.
func (d *stageDeriver) mentions(parts *blockParts, item *fromItem, column string) (is bool) {
	parts.visit(func(n *pg_query.Node, _ place) {
		if ref := n.GetColumnRef(); ref != nil {
			_, name := columnName(ref)
			is = is || name == column && d.tableOf(parts.tables(), ref) == item || name == "*"
		}
	})
	for _, link := range parts.sublinks() {
		for _, ref := range columnsOf(link) {
			_, name := columnName(ref)
			is = is || name == column
		}
	}
	return is
}

// sublinks returns the subqueries in the expressions of a block.
func (p *blockParts) sublinks() (list []*pg_query.Node) {
	p.visit(func(n *pg_query.Node, _ place) {
		if n.GetSubLink() != nil {
			list = append(list, n)
		}
	})
	return list
}

// findSharedBounds finds a value BETWEEN two columns of a table whose periods adjoin: at the bound that two of them
// share, both match.
func findSharedBounds(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		quals := j.node.GetJoinExpr().Quals
		if quals == nil {
			continue
		}
		for _, c := range d.splitWhere(quals, span{j.qual.start + 1, j.qual.end}) {
			e := c.node.GetAExpr()
			if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_BETWEEN {
				continue
			}
			ends := e.Rexpr.GetList().GetItems()
			item, periods := d.onlyTable(parts, e.Lexpr), d.onlyTable(parts, e.Rexpr)
			if len(ends) != 2 || item == nil || periods == nil || item == periods {
				continue
			}
			var f filler
			list, ok := d.marks(&f, []*pg_query.Node{e.Lexpr, ends[0], ends[1]})
			identity, isKey := d.rowIdentity(item)
			if !ok || !isKey || !slices.Contains(j.left.tables(), item) || len(j.right.tables()) != 1 {
				continue
			}
			id, from := f.put(identity), f.put(j.hole(d.clauseText))
			inner := fill("SELECT bool_or("+list[0]+" = "+list[1]+") AND bool_or("+list[0]+" = "+list[2]+" AND "+
				list[1]+" < "+list[2]+`) AS "both" FROM `+from+" GROUP BY "+id, f.holes...)
			d.addProbe(parts, ProbeSharedBound, j.stage, c.span, []string{periods.name, d.textOf(e.Lexpr), item.name},
				fill(`SELECT count(*), count(*) FILTER (WHERE "both") FROM (@0) AS "g"`, queryHole(inner)))
		}
	}
}

// findOuterFilters finds a condition of a LEFT JOIN that is on the side whose rows are all kept.
func findOuterFilters(d *stageDeriver, parts *blockParts) {
	for _, n := range parts.nullSides() {
		quals := n.join.node.GetJoinExpr().Quals
		if quals == nil {
			continue
		}
		kept := n.join.left
		if n.isLeft {
			kept = n.join.right
		}
		for _, c := range d.splitWhere(quals, span{n.join.qual.start + 1, n.join.qual.end}) {
			refs := columnsOf(c.node)
			if len(refs) == 0 || d.sideOf(c.node, kept.tables(), n.side.tables()) != 1 || !isCompared(c.node) {
				continue
			}
			isShown := false
			parts.visit(func(x *pg_query.Node, at place) {
				if ref := x.GetColumnRef(); ref != nil && at != inJoin {
					for _, own := range refs {
						_, a := columnName(own)
						_, b := columnName(ref)
						isShown = isShown || a == b || b == "*"
					}
				}
			})
			hasOthers := false // a column of another table that is joined after it
			for _, t := range parts.node.TargetList {
				for _, ref := range columnsOf(t) {
					item := d.tableOf(parts.tables(), ref)
					hasOthers = hasOthers || item == nil || !slices.Contains(kept.tables(), item) &&
						!slices.Contains(n.side.tables(), item)
				}
			}
			var f filler
			m, from := f.put(exprHole(d.text(c.span), c.node)), f.put(kept.hole(d.clauseText))
			d.addFlagged(parts, ProbeOuterFilter, n.join.stage, c.span, []string{n.join.joinWord(),
				kept.tables()[0].name},
				map[string]bool{"only": !isShown && !hasOthers},
				fill("SELECT count(*), count(*) FILTER (WHERE "+m+" IS NOT TRUE) FROM "+from, f.holes...))
		}
	}
}

// isCompared reports whether a condition compares with constants.
func isCompared(n *pg_query.Node) bool {
	e := n.GetAExpr()
	return e != nil && (len(columnsOf(e.Lexpr)) == 0 || len(columnsOf(e.Rexpr)) == 0)
}

// findNullableMarks finds IS NULL after a LEFT JOIN of a column that rows with a match may lack, too.
func findNullableMarks(d *stageDeriver, parts *blockParts) {
	for _, n := range parts.nullSides() {
		key, ok := d.nullKey(n)
		if !ok {
			continue
		}
		for _, c := range parts.conjuncts {
			test := c.node.GetNullTest()
			if test == nil || test.Nulltesttype != pg_query.NullTestType_IS_NULL ||
				test.Arg.GetColumnRef() == nil || !d.has(c.node, parts.tables(), n.side.tables()) {
				continue
			}
			var f filler
			k, m := f.put(key), f.put(exprHole(d.text(c.span), c.node))
			isRead := d.readsAt(parts, n.side, c.node, func(at place) bool { return at != inJoin })
			d.addFlagged(parts, ProbeNullableMark, c.stage, c.span, []string{n.side.name, d.textOf(test.Arg)},
				map[string]bool{"unread": !isRead && len(parts.sublinks()) == 0 && !d.isLookup(parts, n.side),
					"reference": isReference(n.side.table, test.Arg)},
				fill("SELECT count(*) FILTER (WHERE "+m+" AND "+k+" IS NULL), count(*) FILTER (WHERE "+m+" AND "+k+
					" IS NOT NULL)"+d.from(&f, parts), f.holes...))
		}
	}
}

// isReference reports whether a column of a table refers to another row, so that NULL means that there is none.
func isReference(t *Table, column *pg_query.Node) bool {
	_, name := columnName(column.GetColumnRef())
	return t != nil && slices.ContainsFunc(t.ForeignKeys, func(k ForeignKey) bool {
		return len(k.Columns) == 1 && k.Columns[0] == name
	})
}

// readsAt reports whether a block has a column of an item in the clauses that isAt takes, outside of a condition.
func (d *stageDeriver) readsAt(parts *blockParts, item *fromItem, but *pg_query.Node, isAt func(place) bool) (is bool) {
	parts.visit(func(n *pg_query.Node, at place) {
		ref := n.GetColumnRef()
		if ref == nil || !isAt(at) || hasNode(but, n) {
			return
		}
		qualifier, name := columnName(ref)
		is = is || d.tableOf(parts.tables(), ref) == item || name == "*" && (qualifier == "" || qualifier == item.name)
	})
	return is
}

// findLostRows finds inner joins that leave out rows of the table before, because nothing matches them.
func findLostRows(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		join := j.node.GetJoinExpr()
		if join.Jointype != pg_query.JoinType_JOIN_INNER || join.IsNatural || join.Quals == nil {
			continue
		}
		pairs := d.equalPairs(j)
		if len(pairs) != 1 || j.right.left != nil || len(d.splitWhere(join.Quals, span{j.qual.start + 1,
			j.qual.end})) != 1 {
			continue
		}
		right := j.right.tables()[0]
		left := d.tableOf(j.left.tables(), pairs[0].leftNode.GetColumnRef())
		if pairs[0].leftNode.GetColumnRef() == nil || left == nil || right.isLateral ||
			len(j.left.tables()) > 1 && d.isNullable(parts, left) {
			continue
		}
		d.lostRows(parts, j, left, right, pairs[0], false)
		if parts.isGroupedBy(d, right) {
			d.lostRows(parts, j, right, left, equalPair{pairs[0].right, pairs[0].left, pairs[0].rightNode,
				pairs[0].leftNode}, true)
		}
	}
}

// isGroupedBy reports whether the groups of a block have a column of an item.
func (p *blockParts) isGroupedBy(d *stageDeriver, item *fromItem) bool {
	return slices.ContainsFunc(p.node.GroupClause, func(n *pg_query.Node) bool {
		return n.GetColumnRef() != nil && d.tableOf(p.tables(), n.GetColumnRef()) == item
	})
}

// lostRows adds a probe for the rows of one side of a join without a match among those rows of the other side that pass
// their own conditions.
func (d *stageDeriver) lostRows(parts *blockParts, j, left, right *fromItem, pair equalPair, isGroup bool) {
	var f filler
	l, r := f.put(left.hole(d.clauseText)), f.put(right.hole(d.clauseText))
	a, b := f.put(exprHole(d.text(pair.left), pair.leftNode)), f.put(exprHole(d.text(pair.right), pair.rightNode))
	own := func(item *fromItem) (out string) {
		for _, c := range parts.conjuncts {
			if d.isOnly(parts, c.node, item) {
				out += " AND " + f.put(exprHole(d.text(c.span), c.node))
			}
		}
		return strings.Replace(out, " AND ", " WHERE ", 1)
	}
	conditions := own(right)
	query := "SELECT count(*), count(*) FILTER (WHERE " + a + " IS NULL), count(*) FILTER (WHERE " + a +
		` IS NOT NULL AND "other"."k" IS NULL) FROM ` + l + " LEFT JOIN (SELECT DISTINCT " + b + ` AS "k" FROM ` + r +
		conditions + `) AS "other" ON ` + a + ` = "other"."k"` + own(left)
	d.addFlagged(parts, ProbeLostRows, j.stage, span{j.left.end, j.end}, []string{left.name, right.name,
		d.text(pair.left)}, map[string]bool{"grouped": parts.isGrouped(), "group": isGroup,
		"conditions": conditions != ""}, fill(query, f.holes...))
}

// findSelfPairs finds joins of a table with itself over a shared value that also join each row with itself.
func findSelfPairs(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		if len(j.right.tables()) != 1 || !d.hasOnlyKeys(j) || j.node.GetJoinExpr().Quals == nil ||
			j.node.GetJoinExpr().Jointype != pg_query.JoinType_JOIN_INNER {
			continue
		}
		r := j.right.tables()[0]
		if r.table == nil || len(r.table.PrimaryKey) != 1 {
			continue
		}
		for _, pair := range d.equalPairs(j) {
			l := d.tableOf(j.left.tables(), pair.leftNode.GetColumnRef())
			_, lc := columnName(pair.leftNode.GetColumnRef())
			_, rc := columnName(pair.rightNode.GetColumnRef())
			if pair.leftNode.GetColumnRef() == nil || pair.rightNode.GetColumnRef() == nil || l == nil ||
				l.table != r.table || lc != rc || lc == r.table.PrimaryKey[0] {
				continue
			}
			key := quoteName(r.table.PrimaryKey[0])
			var f filler
			m := f.put(ownHole(quoteName(l.name) + "." + key + " = " + quoteName(r.name) + "." + key))
			d.addFlagged(parts, ProbeSelfPairs, j.stage, j.qual, []string{r.table.Name, l.name, r.name,
				r.table.PrimaryKey[0]}, map[string]bool{"grouped": len(parts.node.GroupClause) > 0},
				fill("SELECT count(*), count(*) FILTER (WHERE "+m+")"+d.source(&f, parts), f.holes...))
			break
		}
	}
}

// findJoinedMaxima finds joins of a table with the largest value of each of its groups that do not compare the group.
func findJoinedMaxima(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		pairs := d.equalPairs(j)
		if len(j.right.tables()) != 1 || len(pairs) == 0 || !d.hasOnlyKeys(j) {
			continue
		}
		item := j.right.tables()[0]
		inner := d.partsOf(item.child)
		if inner == nil || len(inner.node.GroupClause) != 1 || len(inner.tables()) != 1 {
			continue
		}
		keys, ok := d.groupKeys(inner)
		if !ok || keys[0].GetColumnRef() == nil {
			continue
		}
		_, key := columnName(keys[0].GetColumnRef())
		isCompared, hasExtreme := false, false
		var left *fromItem
		for _, p := range pairs {
			_, name := columnName(p.rightNode.GetColumnRef())
			target := inner.targetOf(name)
			isCompared = isCompared || equalNodes(target, keys[0])
			if call := functionName(target.GetFuncCall()); call == "max" || call == "min" {
				hasExtreme, left = true, d.tableOf(j.left.tables(), p.leftNode.GetColumnRef())
			}
		}
		if isCompared || !hasExtreme || left == nil || left.table == nil || left.table != inner.tables()[0].table ||
			inner.targetOf(key) == nil {
			continue
		}
		var f filler
		from := f.put(j.hole(d.clauseText))
		m := f.put(ownHole(quoteName(left.name) + "." + quoteName(key) + " IS DISTINCT FROM " +
			quoteName(item.name) + "." +
			quoteName(key)))
		d.addProbe(parts, ProbeOtherMaximum, j.stage, j.qual, []string{"extreme", key},
			fill("SELECT count(*), count(*) FILTER (WHERE "+m+") FROM "+from, f.holes...))
	}
}

// findOtherMaxima finds x IN (SELECT max(x) FROM t GROUP BY k), which also keeps rows with the maximum of another k.
func findOtherMaxima(d *stageDeriver, parts *blockParts) {
	for _, c := range parts.conjuncts {
		link := c.node.GetSubLink()
		query := link.GetSubselect().GetSelectStmt()
		if query == nil || link.SubLinkType != pg_query.SubLinkType_ANY_SUBLINK || len(query.TargetList) != 1 ||
			len(query.GroupClause) != 1 || len(query.FromClause) != 1 || link.Testexpr.GetColumnRef() == nil ||
			len(link.OperName) > 0 {
			continue
		}
		call := query.TargetList[0].GetResTarget().GetVal().GetFuncCall()
		item := d.tableOf(parts.tables(), link.Testexpr.GetColumnRef())
		inner := query.FromClause[0].GetRangeVar()
		if name := functionName(call); name != "max" && name != "min" || item == nil || item.table == nil ||
			inner == nil || d.table(inner) != item.table {
			continue
		}
		_, key := columnName(query.GroupClause[0].GetColumnRef())
		if key == "" || item.table.column(key) == nil {
			continue
		}
		value, ok1 := d.expression(link.Testexpr)
		extreme, ok2 := d.expression(query.TargetList[0].GetResTarget().GetVal())
		_ = extreme
		if !ok1 || !ok2 {
			continue
		}
		var f filler
		m, v := f.put(exprHole(d.text(c.span), c.node)), f.put(value)
		k := f.put(ownHole(quoteName(item.name) + "." + quoteName(key)))
		rows := fill("SELECT "+m+` AS "in", `+v+` AS "v", `+functionName(call)+"("+v+") OVER (PARTITION BY "+k+
			`) AS "own"`+" FROM "+f.put(item.hole(d.clauseText)), f.holes...)
		d.addProbe(parts, ProbeOtherMaximum, c.stage, c.span, []string{functionName(call), key},
			fill(`SELECT count(*) FILTER (WHERE "in"), count(*) FILTER (WHERE "in" AND "v" <> "own") FROM (@0) AS "q"`,
				queryHole(rows)))
	}
}
