package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The kinds of probes. Package dbaccess has a judge for each.
const (
	ProbeNullList         = "not-in-null"
	ProbeScopeCapture     = "scope-capture"
	ProbeSelfComparison   = "self-comparison"
	ProbeCrossJoin        = "cross-join"
	ProbeDeadBranch       = "case-never-reached"
	ProbeISOWeek          = "iso-week"
	ProbeFanOut           = "fan-out"
	ProbeCountAll         = "count-of-repeated"
	ProbeNullableSide     = "nullable-side"
	ProbeArbitraryRow     = "distinct-on-order"
	ProbeFineGroups       = "group-too-fine"
	ProbeAliasShadow      = "alias-shadow"
	ProbeIntegerDivision  = "integer-division"
	ProbeLastDay          = "between-timestamp"
	ProbeTextNumber       = "text-as-number"
	ProbeWrongKey         = "wrong-key"
	ProbeNatural          = "natural-join"
	ProbePairs            = "pairs-twice"
	ProbeEmptyCount       = "count-star-left-join"
	ProbeTextKey          = "text-key"
	ProbeMixedUnits       = "mixed-units"
	ProbeRemovedRows      = "union-removes"
	ProbeWildcard         = "like-wildcard"
	ProbeNullArithmetic   = "null-arithmetic"
	ProbeTies             = "limit-ties"
	ProbePrecedence       = "or-precedence"
	ProbeLostNulls        = "null-comparison"
	ProbeMeanOfMeans      = "mean-of-means"
	ProbeCountedColumn    = "count-of-nullable"
	ProbeDenominator      = "filtered-denominator"
	ProbeMonths           = "months-of-years"
	ProbeSoftDelete       = "soft-delete"
	ProbeDuplicates       = "union-all-duplicates"
	ProbeSumOfDistinct    = "sum-of-distinct"
	ProbeConditionInWhere = "inner-after-left"
)

// sublinkQuery returns the query of a subquery in an expression as a hole.
func (d *stageDeriver) sublinkQuery(n *pg_query.Node) (h hole, s span, ok bool) {
	link := n.GetSubLink()
	query := link.GetSubselect().GetSelectStmt()
	at := d.at(locationOf(n))
	if query == nil || at < 0 {
		return h, s, false
	}
	for at < len(d.tokens) && !d.is(at, pg_query.Token_ASCII_40) {
		at++
	}
	if at >= len(d.tokens) {
		return h, s, false
	}
	s = span{at + 1, d.closes[at]}
	return queryHole(derivedQuery{d.text(s), query}), s, !s.isEmpty()
}

// isNotIn returns the subquery or the list of x NOT IN (...) and x <> ALL (...), or nil.
func isNotIn(n *pg_query.Node) (link *pg_query.Node) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop == pg_query.BoolExprType_NOT_EXPR {
		if s := b.Args[0].GetSubLink(); s != nil && s.SubLinkType == pg_query.SubLinkType_ANY_SUBLINK &&
			len(s.OperName) == 0 {
			return b.Args[0]
		}
	}
	if s := n.GetSubLink(); s != nil && s.SubLinkType == pg_query.SubLinkType_ALL_SUBLINK && len(s.OperName) == 1 &&
		s.OperName[0].GetString_().GetSval() == "<>" {
		return n
	}
	return nil
}

// findNullLists finds NOT IN with a subquery, whose rows may be NULL.
func findNullLists(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, _ place) {
		link := isNotIn(n)
		if link == nil || len(link.GetSubLink().Subselect.GetSelectStmt().GetTargetList()) > 1 {
			return
		}
		query, _, ok := d.sublinkQuery(link)
		if !ok {
			return
		}
		s := d.spanOr(n, parts.clause.where)
		d.addProbe(parts, ProbeNullList, parts.stageWith(n), s, nil,
			fill(`SELECT count(*), count(*) FILTER (WHERE "v" IS NULL) FROM (@0) AS "q" ("v")`, query))
	})
}

// findScopeCaptures finds a column of a subquery's SELECT list that no table of the subquery has, but one around it.
func findScopeCaptures(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, _ place) {
		link := n.GetSubLink()
		query := link.GetSubselect().GetSelectStmt()
		if query == nil || link.SubLinkType == pg_query.SubLinkType_EXISTS_SUBLINK || len(query.TargetList) != 1 {
			return
		}
		ref := query.TargetList[0].GetResTarget().GetVal().GetColumnRef()
		qualifier, name := columnName(ref)
		if ref == nil || qualifier != "" || name == "*" {
			return
		}
		inner, isKnown := d.rangeColumns(query, parts.scope)
		outer := d.tableOf(parts.tables(), ref)
		if !isKnown || slices.Contains(inner, name) || outer == nil {
			return
		}
		s := d.spanOr(n, parts.clause.where)
		if _, inner, ok := d.sublinkQuery(n); ok {
			s = inner
		}
		var f filler
		list := "SELECT count(*), count(*)"
		if at := parts.conjunctWith(n); at != nil {
			list = "SELECT count(*), count(*) FILTER (WHERE " + f.put(exprHole(d.text(at.span), at.node)) + " IS TRUE)"
		}
		from := query.FromClause[0].GetRangeVar()
		table := ""
		if from != nil {
			table = from.Relname
		}
		d.addProbe(parts, ProbeScopeCapture, parts.stageWith(n), s, []string{name, outer.name, table},
			fill(list+d.from(&f, parts), f.holes...))
	})
}

// conjunctWith returns the condition of WHERE that has a node, or nil.
func (p *blockParts) conjunctWith(n *pg_query.Node) (found *conjunct) {
	for i := range p.conjuncts {
		forEachNode(p.conjuncts[i].node, func(x *pg_query.Node) bool {
			if x == n {
				found = &p.conjuncts[i]
			}
			return found == nil
		})
	}
	return found
}

// rangeColumns returns the columns of the tables in FROM of a query. isKnown is false if one of them is not known.
func (d *stageDeriver) rangeColumns(query *pg_query.SelectStmt, sc scope) (columns []string, isKnown bool) {
	isKnown = len(query.FromClause) > 0
	var walk func(n *pg_query.Node)
	walk = func(n *pg_query.Node) {
		switch v := n.Node.(type) {
		case *pg_query.Node_JoinExpr:
			walk(v.JoinExpr.Larg)
			walk(v.JoinExpr.Rarg)
		case *pg_query.Node_RangeSubselect:
			names := d.outputNames(v.RangeSubselect.Subquery.GetSelectStmt(), v.RangeSubselect.Alias)
			isKnown = isKnown && names != nil
			columns = append(columns, names...)
		case *pg_query.Node_RangeVar:
			if len(v.RangeVar.Alias.GetColnames()) > 0 {
				isKnown = false
				return
			}
			if v.RangeVar.Schemaname == "" && sc.lookup(v.RangeVar.Relname) >= 0 {
				names := d.withColumns(sc, v.RangeVar.Relname)
				isKnown = isKnown && names != nil
				columns = append(columns, names...)
				return
			}
			t := d.table(v.RangeVar)
			if t == nil || hasWith(query) {
				isKnown = false
				return
			}
			for _, c := range t.Columns {
				columns = append(columns, c.Name)
			}
		default:
			isKnown = false
		}
	}
	for _, n := range query.FromClause {
		walk(n)
	}
	return columns, isKnown
}

// findSelfComparisons finds a column that is compared with itself, also in the condition of a join and of a subquery.
func findSelfComparisons(d *stageDeriver, parts *blockParts) {
	sc := parts.scope
	add := func(n *pg_query.Node, condition conjunct, from hole, stage int) {
		isSame := d.sameColumns(n, sc)
		forEachNode(n, func(n *pg_query.Node) bool {
			e := n.GetAExpr()
			if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_OP || e.Lexpr.GetColumnRef() == nil ||
				!equalNodes(e.Lexpr, e.Rexpr) && !isSame[n] {
				return true
			}
			if s, ok := d.spanOf(n); ok {
				d.addProbe(parts, ProbeSelfComparison, stage, s, nil, fill("SELECT count(*), count(*) FILTER (WHERE "+
					"@0 IS TRUE) "+
					"FROM @1",
					exprHole(d.text(condition.span), condition.node), from))
			}
			return false
		})
	}
	if len(parts.node.FromClause) == 0 {
		return
	}
	for _, c := range parts.conjuncts {
		add(c.node, c, listHole(d.text(parts.clause.from), parts.node.FromClause), c.stage)
	}
	for _, j := range parts.joins {
		if quals := j.node.GetJoinExpr().Quals; quals != nil {
			s := span{j.qual.start + 1, j.qual.end}
			add(quals, conjunct{s, quals, -1}, j.hole(d.clauseText), j.stage)
		}
	}
}

// sameColumns returns the comparisons in the subqueries of an expression whose sides are the same column, which one of
// them has with the name of its table, and the other without: a name without a table is first of the innermost query.
func (d *stageDeriver) sameColumns(n *pg_query.Node, sc scope) map[*pg_query.Node]bool {
	is := map[*pg_query.Node]bool{}
	forEachNode(n, func(n *pg_query.Node) bool {
		query := n.GetSubLink().GetSubselect().GetSelectStmt()
		if query == nil || len(query.FromClause) != 1 || query.FromClause[0].GetRangeVar() == nil {
			return true
		}
		columns, isKnown := d.rangeColumns(query, sc)
		names := rangeNames(&pg_query.SelectStmt{FromClause: query.FromClause})
		if !isKnown || len(names) != 1 || query.WhereClause == nil {
			return true
		}
		for _, condition := range andArgs(query.WhereClause) {
			left, right, _, ok := operator(condition, "=")
			if !ok || left.GetColumnRef() == nil || right.GetColumnRef() == nil {
				continue
			}
			lq, lc := columnName(left.GetColumnRef())
			rq, rc := columnName(right.GetColumnRef())
			isInner := func(q string) bool { return q == "" || q == names[0] }
			if lc == rc && isInner(lq) && isInner(rq) && slices.Contains(columns, lc) {
				is[condition] = true
			}
		}
		return true
	})
	return is
}

// findLostNulls finds conditions that rows with NULL do not pass, although they differ from the value.
func findLostNulls(d *stageDeriver, parts *blockParts) {
	for _, c := range parts.conjuncts {
		if c.stage < 0 || len(columnsOf(c.node)) == 0 || !d.isSingle(parts, c.node) || c.node.GetNullTest() != nil {
			continue
		}
		var f filler
		mark := f.put(exprHole(d.text(c.span), c.node))
		d.addFlagged(parts, ProbeLostNulls, c.stage, c.span, nil, map[string]bool{"negated": isNegated(c.node)},
			fill("SELECT count(*) FILTER (WHERE "+mark+" IS TRUE), count(*) FILTER (WHERE "+mark+" IS UNKNOWN)"+
				d.from(&f, parts), f.holes...))
	}
}

// isSingle reports whether an expression has columns of one table that no outer join leaves without a row.
func (d *stageDeriver) isSingle(parts *blockParts, n *pg_query.Node) bool {
	item := d.onlyTable(parts, n)
	return item != nil && !d.isNullable(parts, item)
}

// isNegated reports whether a condition is true for what is not something: <>, NOT, NOT IN, NOT LIKE.
func isNegated(n *pg_query.Node) bool {
	if b := n.GetBoolExpr(); b != nil {
		return b.Boolop == pg_query.BoolExprType_NOT_EXPR && b.Args[0].GetSubLink() == nil
	}
	e := n.GetAExpr()
	return e != nil && len(e.Name) == 1 && (slices.Contains([]string{"<>", "!~~", "!~~*", "!~", "!~*"},
		e.Name[0].GetString_().GetSval()) || e.Kind == pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN)
}

// findNullArithmetic finds an expression such as a - b in an aggregate, a column or a condition, where one operand is
// NULL for some rows, and the whole with it.
func findNullArithmetic(d *stageDeriver, parts *blockParts) {
	isInner := map[*pg_query.Node]bool{}
	inAggregate := map[*pg_query.Node]bool{}
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); (name == "sum" || name == "avg") && len(a.call.Args) == 1 {
			inAggregate[a.call.Args[0]] = true
		}
	}
	parts.visit(func(n *pg_query.Node, at place) {
		left, right, _, ok := operator(n, "+", "-", "*")
		if !ok || at == inGroup || isInner[n] || hasWindow(n) {
			return
		}
		if callsIn([]*pg_query.Node{n}, isAggregate) {
			if (at == inTarget || at == inHaving) && onlySums(n) {
				d.nullGroups(parts, n, left, right, at == inHaving)
			}
			return
		}
		for _, side := range []*pg_query.Node{left, right} {
			forEachNode(side, func(x *pg_query.Node) bool {
				isInner[x] = true
				return true
			})
		}
		isTested := at == inWhere
		if !inAggregate[n] && (at != inTarget && !isTested || parts.isGrouped() && at == inTarget) {
			return
		}
		if isTested && parts.conjunctWith(n) == nil {
			return
		}
		d.nullOperand(parts, n, left, right, isTested, inAggregate[n])
	})
}

// nullOperand adds the probe of an expression with two operands.
func (d *stageDeriver) nullOperand(parts *blockParts, n, left, right *pg_query.Node, isTested, isAggregated bool) {
	var f filler
	list, ok := d.marks(&f, []*pg_query.Node{n, left, right})
	if !ok || isValue(left) || isValue(right) {
		return
	}
	source := d.source(&f, parts)
	if isTested {
		source = d.from(&f, parts)
	}
	s := d.spanOr(n, parts.clause.targets)
	isTime := false
	for _, ref := range columnsOf(n) {
		c := d.columnOf(parts, &pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: ref}})
		isTime = isTime || c != nil && isTimeType(c.Type)
	}
	query := "SELECT count(*), count(*) FILTER (WHERE " + list[0] + " IS NULL AND " + list[1] + " IS NOT NULL), " +
		"count(*) FILTER (WHERE " + list[0] + " IS NULL AND " + list[2] + " IS NOT NULL), " +
		"coalesce(min(pg_typeof(" + list[0] + ")::text), '')" + source
	d.addFlagged(parts, ProbeNullArithmetic, parts.stageWith(n), s, []string{d.textOf(left), d.textOf(right)},
		map[string]bool{"time": isTime, "aggregated": isAggregated, "tested": isTested}, fill(query, f.holes...))
}

// onlySums reports whether the aggregates of an expression are sums and counts, whose value is 0 without rows.
func onlySums(n *pg_query.Node) bool {
	return !callsIn([]*pg_query.Node{n}, func(f *pg_query.FuncCall) bool {
		return isAggregate(f) && functionName(f) != "sum" && functionName(f) != "count"
	})
}

// nullGroups adds the probe of an expression over aggregates. It is NULL for a group without values, because their sum
// is NULL.
func (d *stageDeriver) nullGroups(parts *blockParts, n, left, right *pg_query.Node, isTested bool) {
	var f filler
	list, ok1 := d.marks(&f, []*pg_query.Node{n, left, right})
	groups, ok2 := d.groups(&f, parts)
	if !ok1 || !ok2 || isValue(left) || isValue(right) {
		return
	}
	inner := fill("SELECT "+list[0]+` AS "n", `+list[1]+` AS "a", `+list[2]+` AS "b"`+groups, f.holes...)
	d.addFlagged(parts, ProbeNullArithmetic, d.groupStage(parts), d.spanOr(n, parts.clause.targets),
		[]string{d.textOf(left), d.textOf(right)}, map[string]bool{"groups": true, "tested": isTested},
		fill(`SELECT count(*), count(*) FILTER (WHERE "n" IS NULL AND "a" IS NOT NULL), `+
			`count(*) FILTER (WHERE "n" IS NULL AND "b" IS NOT NULL), coalesce(min(pg_typeof("n")::text), '') `+
			`FROM (@0) AS "g"`, queryHole(inner)))
}

// inner returns the text of an expression without the parentheses of its hole.
func (h hole) inner() string {
	return strings.TrimSuffix(strings.TrimPrefix(h.text, "("), ")")
}

// findCountedColumns finds COUNT(column) under the name of the table, which leaves NULLs out.
func findCountedColumns(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != "count" || a.call.AggDistinct || len(a.call.Args) != 1 || a.call.AggFilter != nil {
			continue
		}
		ref := a.call.Args[0].GetColumnRef()
		item := d.tableOf(parts.tables(), ref)
		if ref == nil || item == nil || item.table == nil || !namesTable(a.alias, item.table.Name) {
			continue
		}
		_, name := columnName(ref)
		column := item.table.column(name)
		if column == nil || !column.IsNullable || sharesWord(a.alias, name) {
			continue
		}
		h, ok := d.expression(a.call.Args[0])
		if !ok {
			continue
		}
		if d.isNullable(parts, item) {
			continue // rows of an outer join have no row of the table to count
		}
		var f filler
		mark := f.put(h)
		s := d.spanOr(a.node, parts.clause.targets)
		d.addProbe(parts, ProbeCountedColumn, -1, s, []string{name, item.table.Name},
			fill("SELECT count(*), count(*) FILTER (WHERE "+mark+" IS NULL)"+d.source(&f, parts), f.holes...))
	}
}

// isNullable reports whether a table is on the side of an outer join that may have no row.
func (d *stageDeriver) isNullable(parts *blockParts, item *fromItem) bool {
	for _, j := range parts.joins {
		kind := j.node.GetJoinExpr().GetJointype()
		mayLackRight := kind == pg_query.JoinType_JOIN_LEFT || kind == pg_query.JoinType_JOIN_FULL
		mayLackLeft := kind == pg_query.JoinType_JOIN_RIGHT || kind == pg_query.JoinType_JOIN_FULL
		if mayLackRight && slices.Contains(j.right.tables(), item) || mayLackLeft && slices.Contains(j.left.tables(),
			item) {
			return true
		}
	}
	return false
}
