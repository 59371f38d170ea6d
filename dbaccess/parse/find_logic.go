package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The kinds of probes about conditions and whole lists.
const (
	ProbeNeverTrue     = "condition-never-true"
	ProbeAlwaysTrue    = "condition-always-true"
	ProbeNullEquals    = "equals-null"
	ProbeLiteralForm   = "literal-case"
	ProbeUncorrelated  = "exists-without-relation"
	ProbeNoOrder       = "limit-without-order"
	ProbeSwapped       = "union-columns-swapped"
	ProbeCaseGap       = "case-gap"
	ProbeOrInJoin      = "or-in-join"
	ProbeLabelOrder    = "label-order"
	ProbeConcatNull    = "null-in-text"
	ProbeCaseRemainder = "case-without-else"
	ProbeOtherTotal    = "total-of-other-rows"
	ProbeSetPrecedence = "set-precedence"
)

// findContradictions finds equal columns that are compared with several values at once: an AND that is never true, and
// an OR of <> that always is.
func findContradictions(d *stageDeriver, parts *blockParts) {
	if len(parts.node.FromClause) == 0 || parts.node.WhereClause == nil {
		return
	}
	equals := map[string][]conjunct{}
	for _, c := range parts.conjuncts {
		left, right, _, ok := operator(c.node, "=")
		if !ok || left.GetColumnRef() == nil || !isValue(right) {
			continue
		}
		text := d.textOf(left)
		equals[text] = append(equals[text], c)
	}
	for text, list := range equals {
		if len(list) < 2 {
			continue
		}
		var f filler
		a, b := f.put(exprHole(d.text(list[0].span), list[0].node)), f.put(exprHole(d.text(list[1].span), list[1].node))
		d.addProbe(parts, ProbeNeverTrue, list[1].stage, list[1].span,
			[]string{text, d.text(list[0].span)},
			fill("SELECT count(*) FILTER (WHERE "+a+"), count(*) FILTER (WHERE "+b+"), count(*) FILTER (WHERE "+a+" "+
				"AND "+
				b+")"+d.from(&f, parts), f.holes...))
	}
	for _, c := range parts.conjuncts {
		d.boundsReversed(parts, c)
		b := c.node.GetBoolExpr()
		if b == nil || b.Boolop != pg_query.BoolExprType_OR_EXPR || len(b.Args) < 2 {
			continue
		}
		column := ""
		for _, arg := range b.Args {
			left, _, _, ok := operator(arg, "<>")
			if e := arg.GetAExpr(); !ok && e != nil && e.Kind == pg_query.A_Expr_Kind_AEXPR_LIKE &&
				e.Name[0].GetString_().GetSval() == "!~~" {
				left, ok = e.Lexpr, true
			}
			if !ok || left.GetColumnRef() == nil || column != "" && column != d.textOf(left) {
				column = ""
				break
			}
			column = d.textOf(left)
		}
		if column == "" {
			continue
		}
		var f filler
		whole := f.put(exprHole(d.text(c.span), c.node))
		first, ok := d.expression(b.Args[0])
		second, ok2 := d.expression(b.Args[1])
		if !ok || !ok2 {
			continue
		}
		x, y := f.put(first), f.put(second)
		d.addProbe(parts, ProbeAlwaysTrue, c.stage, c.span, []string{column},
			fill("SELECT count(*) FILTER (WHERE "+whole+" IS NOT NULL), count(*) FILTER (WHERE "+whole+
				" IS FALSE), count(*) FILTER (WHERE ("+x+" AND "+y+") IS FALSE)"+d.from(&f, parts), f.holes...))
	}
}

// boundsReversed adds a probe for BETWEEN with the larger bound first.
func (d *stageDeriver) boundsReversed(parts *blockParts, c conjunct) {
	e := c.node.GetAExpr()
	if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_BETWEEN {
		return
	}
	items := e.Rexpr.GetList().GetItems()
	if len(items) != 2 || len(columnsOf(e.Rexpr)) > 0 {
		return
	}
	list := []*pg_query.Node{e.Lexpr, items[0], items[1]}
	var f filler
	marks, ok := d.marks(&f, list)
	if !ok {
		return
	}
	d.addProbe(parts, ProbeNeverTrue, c.stage, c.span, []string{d.textOf(e.Lexpr), ""},
		fill("SELECT count(*) FILTER (WHERE "+marks[0]+" BETWEEN "+marks[2]+" AND "+marks[1]+"), count("+marks[0]+
			"), count(*) FILTER (WHERE "+marks[0]+" BETWEEN "+marks[1]+" AND "+marks[2]+")"+d.from(&f, parts),
			f.holes...))
}

// findNullEquals finds comparisons with NULL, which are never true.
func findNullEquals(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, at place) {
		var tested *pg_query.Node
		if left, right, _, ok := operator(n, "=", "<>", "<", ">"); ok {
			switch {
			case right.GetAConst().GetIsnull():
				tested = left
			case left.GetAConst().GetIsnull():
				tested = right
			}
		}
		if c := n.GetCaseExpr(); c != nil && c.Arg != nil {
			for _, w := range c.Args {
				if w.GetCaseWhen().Expr.GetAConst().GetIsnull() {
					tested = c.Arg
				}
			}
		}
		if e := n.GetAExpr(); e != nil && e.Kind == pg_query.A_Expr_Kind_AEXPR_IN &&
			slices.ContainsFunc(e.Rexpr.GetList().GetItems(), func(i *pg_query.Node) bool {
				return i.GetAConst().GetIsnull()
			}) {
			tested = e.Lexpr
		}
		if tested == nil || at == inHaving {
			return
		}
		h, ok := d.expression(tested)
		if !ok {
			return
		}
		var f filler
		m := f.put(h)
		d.addProbe(parts, ProbeNullEquals, parts.stageWith(n), d.spanOr(n, parts.clause.all),
			[]string{d.textOf(tested)},
			fill("SELECT count(*), count(*) FILTER (WHERE "+m+" IS NULL)"+d.from(&f, parts), f.holes...))
	})
}

// findLiteralForms finds comparisons of a text with a literal that match more rows if case and blanks do not count.
func findLiteralForms(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, at place) {
		e := n.GetAExpr()
		if e == nil || e.Lexpr == nil || at == inHaving {
			return
		}
		column := d.columnOf(parts, e.Lexpr)
		if column == nil || !isTextType(column.Type) {
			return
		}
		var values []*pg_query.Node
		switch {
		case e.Kind == pg_query.A_Expr_Kind_AEXPR_IN:
			values = e.Rexpr.GetList().GetItems()
		case e.Kind == pg_query.A_Expr_Kind_AEXPR_LIKE,
			e.Kind == pg_query.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 &&
				slices.Contains([]string{"=", "<>"}, e.Name[0].GetString_().GetSval()):
			values = []*pg_query.Node{e.Rexpr}
		}
		if len(values) == 0 || len(values) > 8 || slices.ContainsFunc(values, func(v *pg_query.Node) bool {
			return v.GetAConst().GetSval() == nil
		}) {
			return
		}
		h, ok := d.expression(e.Lexpr)
		if !ok {
			return
		}
		var f filler
		x := f.put(h)
		var exact, loose []string
		for _, v := range values {
			text := v.GetAConst().GetSval().GetSval()
			if strings.ContainsAny(text, `\@`) {
				return
			}
			if e.Kind == pg_query.A_Expr_Kind_AEXPR_LIKE {
				if text != strings.TrimSpace(text) {
					return
				}
				exact = append(exact, x+" LIKE "+quoteText(text))
				loose = append(loose, "btrim("+x+") ILIKE "+quoteText(text))
				continue
			}
			exact = append(exact, x+" = "+quoteText(text))
			loose = append(loose, "lower(btrim("+x+")) = lower(btrim("+quoteText(text)+"))")
		}
		d.addProbe(parts, ProbeLiteralForm, parts.stageWith(n), d.spanOr(n, parts.clause.all), nil,
			fill("SELECT count(*) FILTER (WHERE "+strings.Join(exact, " OR ")+"), count(*) FILTER (WHERE "+
				strings.Join(loose, " OR ")+")"+d.from(&f, parts), f.holes...))
	})
}

// findUncorrelated finds EXISTS of a subquery that reads nothing of the query around it: it is the same for all rows.
func findUncorrelated(d *stageDeriver, parts *blockParts) {
	if len(parts.node.FromClause) == 0 {
		return
	}
	for _, n := range parts.sublinks() {
		link := n.GetSubLink()
		query := link.GetSubselect().GetSelectStmt()
		if link.SubLinkType != pg_query.SubLinkType_EXISTS_SUBLINK || query == nil || hasWith(query) {
			continue
		}
		columns, isKnown := d.rangeColumns(query, parts.scope)
		names := rangeNames(query)
		if !isKnown || slices.ContainsFunc(columnsOf(query), func(ref *pg_query.ColumnRef) bool {
			qualifier, name := columnName(ref)
			return qualifier != "" && !slices.Contains(names, qualifier) ||
				qualifier == "" && name != "*" && !slices.Contains(columns, name)
		}) {
			continue
		}
		h, s, ok := d.sublinkQuery(n)
		if !ok {
			continue
		}
		var f filler
		isNegated := map[string]bool{"negated": parts.isNegatedLink(n)}
		d.addFlagged(parts, ProbeUncorrelated, parts.stageWith(n), d.spanOr(n, s), nil, isNegated,
			fill(`SELECT count(*) FROM (@0) AS "q"`, h), fill("SELECT count(*)"+d.from(&f, parts), f.holes...))
	}
}

// isNegatedLink reports whether NOT stands before a subquery.
func (p *blockParts) isNegatedLink(link *pg_query.Node) (is bool) {
	p.visit(func(n *pg_query.Node, _ place) {
		b := n.GetBoolExpr()
		is = is || b != nil && b.Boolop == pg_query.BoolExprType_NOT_EXPR && b.Args[0] == link
	})
	return is
}

// rangeNames returns the names by which a query, and those in it, call their tables.
func rangeNames(query *pg_query.SelectStmt) (names []string) {
	forEachNode(query, func(n *pg_query.Node) bool {
		if r := n.GetRangeVar(); r != nil {
			if r.Alias != nil {
				names = append(names, r.Alias.Aliasname)
			} else {
				names = append(names, r.Relname)
			}
		}
		if s := n.GetRangeSubselect(); s != nil {
			names = append(names, s.Alias.GetAliasname())
		}
		return true
	})
	return names
}

// findUnordered finds LIMIT without ORDER BY.
func findUnordered(d *stageDeriver, parts *blockParts) {
	limit, ok := constantNumber(parts.node.LimitCount)
	if !ok || len(parts.node.SortClause) > 0 || len(parts.node.FromClause) == 0 || limit == 0 {
		return
	}
	for _, item := range parts.tables() {
		if b := d.partsOf(item.child); b != nil && len(b.node.SortClause) > 0 {
			return // its rows are in an order, in practice
		}
	}
	q := parts.clause
	all := d.partialSelect(parts.node, q, partial{group: true, having: true, distinct: true})
	d.addFlagged(parts, ProbeNoOrder, parts.last, q.tail, nil, map[string]bool{"result": parts.id == 0},
		fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(derivedQuery{d.text(q.all), parts.node})),
		fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(all)))
}

// findCaseGaps finds numbers between the ranges of a CASE, which no branch takes.
func findCaseGaps(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, _ place) {
		c := n.GetCaseExpr()
		if c == nil || c.Arg != nil || len(c.Args) < 2 || len(c.Args) > 12 ||
			callsIn([]*pg_query.Node{n}, func(f *pg_query.FuncCall) bool { return isAggregate(f) || f.Over != nil }) {
			return
		}
		var subject *pg_query.Node
		var f filler
		none := ""
		for _, w := range c.Args {
			e := w.GetCaseWhen().Expr
			left, right, _, ok := operator(e, "<", "<=", ">", ">=", "=")
			if x := e.GetAExpr(); x != nil && x.Kind == pg_query.A_Expr_Kind_AEXPR_BETWEEN {
				left, right, ok = x.Lexpr, x.Rexpr, true
			}
			if b := e.GetBoolExpr(); b != nil && b.Boolop == pg_query.BoolExprType_AND_EXPR {
				left, right, _, ok = operator(b.Args[0], "<", "<=", ">", ">=")
			}
			if !ok || len(columnsOf(left)) == 0 || len(columnsOf(right)) > 0 ||
				subject != nil && !equalNodes(subject, left) {
				return
			}
			subject = left
			h, ok := d.expression(e)
			if !ok {
				return
			}
			none += " AND " + f.put(h) + " IS FALSE"
		}
		h, ok := d.expression(subject)
		if !ok {
			return
		}
		x := f.put(h)
		var taken []string
		for i := range c.Args {
			taken = append(taken, "@"+string(rune('0'+i))+" IS TRUE")
		}
		if len(c.Args) > 9 {
			return
		}
		from := d.source(&f, parts)
		some := "(" + strings.Join(taken, " OR ") + ")"
		bounds := fill("SELECT "+x+` AS "x", `+some+` AS "taken", (`+strings.TrimPrefix(none, " AND ")+`) AS "none"`+
			from, f.holes...)
		gap := fill(`SELECT "x", "none", min("x") FILTER (WHERE "taken") OVER () AS "a", max("x") FILTER (WHERE `+
			`"taken") `+
			`OVER () AS "b" FROM (@0) AS "q"`, queryHole(bounds))
		d.addProbe(parts, ProbeCaseGap, -1, d.spanOr(n, parts.clause.all), []string{d.textOf(subject)},
			fill(`SELECT count(*), count(*) FILTER (WHERE "none" AND "x" > "a" AND "x" < "b") FROM (@0) AS "q"`,
				queryHole(gap)))
	})
}

// findOrsInJoins finds AND next to OR without parentheses in the condition of a join.
func findOrsInJoins(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		b := j.node.GetJoinExpr().GetQuals().GetBoolExpr()
		if b == nil || b.Boolop != pg_query.BoolExprType_OR_EXPR {
			continue
		}
		for i, arg := range b.Args {
			items := d.joinSides(j, arg)
			if items == 2 || i == 0 {
				continue
			}
			var f filler
			h, ok := d.expression(arg)
			if !ok {
				continue
			}
			m, from := f.put(h), f.put(j.hole(d.clauseText))
			first, ok := d.expression(b.Args[0])
			if !ok {
				continue
			}
			a := f.put(first)
			d.addProbe(parts, ProbeOrInJoin, j.stage, d.spanOr(arg, j.qual), nil,
				fill("SELECT count(*), count(*) FILTER (WHERE "+m+" AND "+a+" IS NOT TRUE) FROM "+from, f.holes...))
			break
		}
	}
}

// joinSides returns the number of sides of a join whose columns an expression has.
func (d *stageDeriver) joinSides(j *fromItem, n *pg_query.Node) (sides int) {
	refs := columnsOf(n)
	for _, side := range []*fromItem{j.left, j.right} {
		if slices.ContainsFunc(refs, func(r *pg_query.ColumnRef) bool { return d.tableOf(side.tables(), r) != nil }) {
			sides++
		}
	}
	return sides
}

// findNullsInTexts finds a || b in a SELECT list that is NULL because one of the parts is.
func findNullsInTexts(d *stageDeriver, parts *blockParts) {
	if parts.isGrouped() {
		return
	}
	for _, t := range parts.node.TargetList {
		value := t.GetResTarget().GetVal()
		left, right, _, ok := operator(value, "||")
		if !ok {
			continue
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{value, left, right})
		if !ok {
			continue
		}
		column, isOne := "", len(columnsOf(value)) == 1
		for _, ref := range columnsOf(value) {
			if c := d.columnOf(parts, &pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: ref}}); c != nil &&
				c.IsNullable {
				column = c.Name
			}
		}
		d.addFlagged(parts, ProbeConcatNull, -1, d.spanOr(value, parts.clause.targets), []string{column},
			map[string]bool{"one": isOne}, fill("SELECT count(*), count(*) FILTER (WHERE "+list[0]+" IS NULL)"+
				d.source(&f, parts), f.holes...))
	}
}

// findCaseRemainders finds CASE without ELSE that gives NULL to some rows, and is shown.
func findCaseRemainders(d *stageDeriver, parts *blockParts) {
	for _, t := range parts.node.TargetList {
		value := t.GetResTarget().GetVal()
		c := value.GetCaseExpr()
		if c == nil || c.Defresult != nil || callsIn([]*pg_query.Node{value}, func(f *pg_query.FuncCall) bool {
			return isAggregate(f) || f.Over != nil
		}) {
			continue
		}
		h, ok := d.expression(value)
		if !ok {
			continue
		}
		var f filler
		m := f.put(h)
		d.addProbe(parts, ProbeCaseRemainder, -1, d.spanOr(value, parts.clause.targets), nil,
			fill("SELECT count(*), count(*) FILTER (WHERE "+m+" IS NULL)"+d.source(&f, parts), f.holes...))
	}
}

// findUnknownCases finds a CASE as a column of the SELECT list whose ELSE takes rows for which a condition is unknown.
func findUnknownCases(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, at place) {
		c := n.GetCaseExpr()
		if c == nil || c.Arg != nil || !isValue(c.Defresult) || len(c.Args) > 9 || at != inTarget ||
			callsIn([]*pg_query.Node{n}, func(f *pg_query.FuncCall) bool { return isAggregate(f) || f.Over != nil }) ||
			!slices.ContainsFunc(parts.node.TargetList, func(t *pg_query.Node) bool {
				return t.GetResTarget().GetVal() == n
			}) {
			return
		}
		var f filler
		var is, isNot []string
		for _, w := range c.Args {
			h, ok := d.expression(w.GetCaseWhen().Expr)
			if !ok {
				return
			}
			m := f.put(h)
			is, isNot = append(is, m+" IS TRUE"), append(isNot, m+" IS FALSE")
		}
		other := "NOT (" + strings.Join(is, " OR ") + ")"
		d.addFlagged(parts, ProbeCaseRemainder, -1, d.spanOr(n, parts.clause.targets), []string{d.textOf(c.Defresult)},
			map[string]bool{"else": true},
			fill("SELECT count(*) FILTER (WHERE "+other+"), count(*) FILTER (WHERE "+other+" AND NOT ("+
				strings.Join(isNot, " AND ")+"))"+d.source(&f, parts), f.holes...))
	})
}

// findOtherTotals finds shares of a total that a subquery takes of rows which the conditions of the query leave out.
func findOtherTotals(d *stageDeriver, parts *blockParts) {
	if parts.node.WhereClause == nil || !hasDivision(parts.node.TargetList) || len(parts.node.GroupClause) == 0 {
		return
	}
	for _, t := range parts.node.TargetList {
		forEachNode(t, func(n *pg_query.Node) bool {
			_, right, _, ok := operator(n, "/")
			if !ok {
				return true
			}
			var link *pg_query.Node
			forEachNode(right, func(x *pg_query.Node) bool {
				if x.GetSubLink() != nil && link == nil {
					link = x
				}
				return link == nil
			})
			query := link.GetSubLink().GetSubselect().GetSelectStmt()
			if query == nil || query.WhereClause != nil || len(query.FromClause) != 1 || len(query.TargetList) != 1 {
				return true
			}
			r := query.FromClause[0].GetRangeVar()
			if r == nil || len(parts.items) == 0 {
				return true
			}
			same := slices.IndexFunc(parts.tables(), func(item *fromItem) bool {
				return item.node.GetRangeVar().GetRelname() == r.Relname
			})
			if same < 0 {
				return true
			}
			item := parts.tables()[same]
			var f filler
			from := f.put(item.hole(d.clauseText))
			own := ""
			for _, c := range parts.conjuncts {
				if d.isOnly(parts, c.node, item) {
					own += " AND " + f.put(exprHole(d.text(c.span), c.node)) + " IS TRUE"
				}
			}
			if own == "" {
				return true
			}
			d.addProbe(parts, ProbeOtherTotal, -1, d.spanOr(link, parts.clause.targets), []string{r.Relname},
				fill("SELECT count(*), count(*) FILTER (WHERE "+strings.TrimPrefix(own, " AND ")+") FROM "+from,
					f.holes...))
			return false
		})
	}
}
