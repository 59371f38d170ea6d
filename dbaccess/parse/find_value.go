package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// findDeadBranches finds branches of CASE whose rows all go to a branch before.
func findDeadBranches(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, _ place) {
		c := n.GetCaseExpr()
		if c == nil || len(c.Args) < 2 || len(c.Args) > 12 || callsIn([]*pg_query.Node{n},
			func(f *pg_query.FuncCall) bool {
				return isAggregate(f) || f.Over != nil
			}) {
			return
		}
		var f filler
		subject := ""
		if c.Arg != nil {
			h, ok := d.expression(c.Arg)
			if !ok {
				return
			}
			subject = f.put(h) + " = "
		}
		list, before := "SELECT count(*)", "false"
		var lines []string
		for _, w := range c.Args {
			when := w.GetCaseWhen()
			h, ok := d.expression(when.Expr)
			if !ok {
				return
			}
			condition := subject + f.put(h)
			list += ", count(*) FILTER (WHERE (" + condition + ") IS TRUE)" +
				", count(*) FILTER (WHERE CASE WHEN " + before + " THEN false ELSE (" + condition + ") IS TRUE END)"
			before = "(" + before + ") OR (" + condition + ") IS TRUE"
			s, _ := d.spanOf(when.Expr)
			from, _ := d.lines(s)
			lines = append(lines, strconv.Itoa(from), d.text(s))
		}
		s, ok := d.spanOf(n)
		if !ok {
			return
		}
		d.addProbe(parts, ProbeDeadBranch, -1, s, lines, fill(list+d.source(&f, parts), f.holes...))
	})
}

// frameNonDefault is set in WindowDef.frame_options if the window has a frame (FRAMEOPTION_NONDEFAULT).
const frameNonDefault = 1

// findISOWeeks finds ISO weeks next to calendar years.
func findISOWeeks(d *stageDeriver, parts *blockParts) {
	years, weeks := map[string]bool{}, map[string]*pg_query.Node{}
	dates := map[string]hole{}
	parts.visit(func(n *pg_query.Node, at place) {
		f := n.GetFuncCall()
		if f == nil || len(f.Args) != 2 {
			return
		}
		argument, format := f.Args[1], f.Args[0].GetAConst().GetSval().GetSval()
		name := functionName(f)
		isPart := name == "extract" || name == "date_part"
		if name == "to_char" {
			argument, format = f.Args[0], f.Args[1].GetAConst().GetSval().GetSval()
		} else if !isPart {
			return
		}
		h, ok := d.expression(argument)
		if !ok {
			return
		}
		dates[h.text] = h
		upper := strings.ToUpper(format)
		hasWeek := isPart && upper == "WEEK" || name == "to_char" && strings.Contains(upper, "IW")
		hasYear := isPart && upper == "YEAR" ||
			name == "to_char" && strings.Contains(upper, "YYYY") && !strings.Contains(upper, "IYYY")
		if hasWeek && weeks[h.text] == nil {
			weeks[h.text] = n
		}
		years[h.text] = years[h.text] || hasYear
	})
	for text, n := range weeks {
		if !years[text] {
			continue
		}
		var f filler
		mark := f.put(dates[text])
		d.addProbe(parts, ProbeISOWeek, -1, d.spanOr(n, parts.clause.targets), nil,
			fill("SELECT count(*), count(*) FILTER (WHERE extract(year FROM "+mark+") <> extract(isoyear FROM "+
				mark+"))"+
				d.source(&f, parts), f.holes...))
	}
}

// findLastDays finds upper bounds of a time that are the beginning of the last day.
func findLastDays(d *stageDeriver, parts *blockParts) {
	for _, c := range parts.conjuncts {
		e := c.node.GetAExpr()
		if e == nil || c.stage < 0 {
			continue
		}
		var upper *pg_query.Node
		isBetween := e.Kind == pg_query.A_Expr_Kind_AEXPR_BETWEEN
		if isBetween {
			if items := e.Rexpr.GetList().GetItems(); len(items) == 2 {
				upper = items[1]
			}
		} else if e.Kind == pg_query.A_Expr_Kind_AEXPR_OP && e.Name[0].GetString_().GetSval() == "<=" {
			upper = e.Rexpr
		}
		if upper == nil || len(columnsOf(upper)) > 0 || len(columnsOf(e.Lexpr)) == 0 {
			continue
		}
		if column := d.columnOf(parts, e.Lexpr); column != nil && !strings.HasPrefix(column.Type, "timestamp") {
			continue
		}
		x, ok1 := d.expression(e.Lexpr)
		u, ok2 := d.expression(upper)
		if !ok1 || !ok2 {
			continue
		}
		var f filler
		xm, um := f.put(x), f.put(u)
		others := d.othersHold(&f, parts, c)
		const start = "date_trunc('day', CAST(%u AS timestamp))"
		bound := strings.ReplaceAll(start, "%u", um)
		query := "SELECT count(*) FILTER (WHERE " + xm + " > " + um + " AND CAST(" + xm + " AS timestamp) < " + bound +
			" + interval '1 day' AND CAST(" + um + " AS timestamp) = " + bound + others + ")" + d.from(&f, parts)
		d.addFlagged(parts, ProbeLastDay, c.stage, c.span, []string{x.inner(), u.inner()},
			map[string]bool{"between": isBetween},
			fill(query, f.holes...))
	}
}

// findMonthEnds finds a time from the first day of a month to before the last day of one, and a time up to the date of
// another column, which is the midnight at which that day begins.
func findMonthEnds(d *stageDeriver, parts *blockParts) {
	for _, c := range parts.conjuncts {
		x, upper, _, ok := operator(c.node, "<")
		if !ok || c.stage < 0 || len(columnsOf(upper)) > 0 || x.GetColumnRef() == nil {
			continue
		}
		for _, other := range parts.conjuncts {
			y, lower, _, ok := operator(other.node, ">=", ">")
			if !ok || !equalNodes(x, y) || len(columnsOf(lower)) > 0 {
				continue
			}
			var f filler
			list, ok := d.marks(&f, []*pg_query.Node{x, upper, lower})
			if !ok {
				continue
			}
			time := func(mark string) string { return "CAST(" + mark + " AS timestamp)" }
			from, to, next := time(list[2]), time(list[1]), time(list[1])+" + interval '1 day'"
			d.addFlagged(parts, ProbeLastDay, c.stage, c.span, nil, map[string]bool{"exclusive": true},
				fill("SELECT count(*) FILTER (WHERE "+list[0]+" >= "+list[1]+" AND "+time(list[0])+" < "+next+" AND "+
					from+" = date_trunc('month', "+from+") AND "+to+" = date_trunc('day', "+to+") AND "+next+
					" = date_trunc('month', "+next+")"+d.othersHold(&f, parts, c)+")"+d.from(&f, parts), f.holes...))
		}
	}
	for _, j := range parts.joins {
		quals := j.node.GetJoinExpr().Quals
		if quals == nil {
			continue
		}
		list := d.splitWhere(quals, span{j.qual.start + 1, j.qual.end})
		for _, c := range list {
			d.dateColumnBound(parts, j, c, list)
		}
	}
}

// othersHold returns the conditions of WHERE but one as a part of a condition.
func (d *stageDeriver) othersHold(f *filler, parts *blockParts, but conjunct) (out string) {
	for _, other := range parts.conjuncts {
		if other.node != but.node {
			out += " AND " + f.put(exprHole(d.text(other.span), other.node)) + " IS TRUE"
		}
	}
	return out
}

// dateColumnBound adds a probe for a condition of a join that ends a time at a column of dates.
func (d *stageDeriver) dateColumnBound(parts *blockParts, j *fromItem, c conjunct, all []conjunct) {
	x, upper, _, ok := operator(c.node, "<=")
	isBetween := false
	if e := c.node.GetAExpr(); e != nil && e.Kind == pg_query.A_Expr_Kind_AEXPR_BETWEEN {
		x, upper, ok, isBetween = e.Lexpr, e.Rexpr.GetList().GetItems()[1], true, true
	}
	time, date := d.columnOf(parts, x), d.columnOf(parts, upper)
	if !ok || time == nil || date == nil || !strings.HasPrefix(time.Type, "timestamp") || date.Type != "date" {
		return
	}
	var f filler
	list, ok := d.marks(&f, []*pg_query.Node{x, upper})
	if !ok {
		return
	}
	left, right := f.put(j.left.hole(d.clauseText)), f.put(j.right.hole(d.clauseText))
	quals := f.put(exprHole(d.text(span{j.qual.start + 1, j.qual.end}), j.node.GetJoinExpr().Quals))
	// The period of another row may begin on that day, and have the time.
	query := "SELECT count(*) FROM " + left + ", " + right + " WHERE NOT EXISTS (SELECT 1 FROM " + right + " WHERE " +
		quals + ") AND " + list[0] + " > " + list[1] + " AND CAST(" + list[0] + " AS timestamp) < CAST(" + list[1] +
		" AS timestamp) + interval '1 day'"
	for _, other := range all {
		if other.node != c.node {
			query += " AND " + f.put(exprHole(d.text(other.span), other.node))
		}
	}
	d.addFlagged(parts, ProbeLastDay, j.stage, c.span, nil, map[string]bool{"between": isBetween},
		fill(query, f.holes...))
}

// findTextNumbers finds numbers that are compared or sorted as texts.
func findTextNumbers(d *stageDeriver, parts *blockParts) {
	first := 0
	if !parts.clause.distinctOn.isEmpty() { // the keys after those of the groups decide
		first = len(parts.node.DistinctClause)
	}
	if first < len(parts.node.SortClause) {
		n, what := parts.node.SortClause[first], "sorted"
		isWhole := parts.node.LimitCount == nil && parts.node.LimitOffset == nil && parts.clause.distinctOn.isEmpty()
		if isWhole && n.GetSortBy().GetSortbyDir() != pg_query.SortByDir_SORTBY_DESC {
			what = "shown" // the order only shows the rows of the result
		}
		d.textNumber(parts, parts.sortKey(n), d.spanOr(n.GetSortBy().GetNode(), parts.clause.order), what)
	}
	for _, w := range parts.windowCalls() {
		d.textNumber(parts, w.firstKey(), d.spanOr(w.firstKey(), parts.clause.targets), "sorted")
	}
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); (name == "max" || name == "min") && len(a.call.Args) == 1 {
			d.textNumber(parts, a.call.Args[0], d.spanOr(a.node, parts.clause.targets), "compared")
		}
	}
	for _, c := range parts.conjuncts {
		e := c.node.GetAExpr()
		if e != nil && e.Kind == pg_query.A_Expr_Kind_AEXPR_OP && e.Rexpr.GetAConst().GetSval() != nil &&
			slices.Contains([]string{"<", ">", "<=", ">="}, e.Name[0].GetString_().GetSval()) {
			d.textNumber(parts, e.Lexpr, c.span, "filtered")
		}
	}
}

// textNumber adds a probe for an expression that is a column, or one cast to a text: of the rows that WHERE leaves, or
// of all if WHERE has it.
func (d *stageDeriver) textNumber(parts *blockParts, n *pg_query.Node, s span, what string) {
	column := n
	if c := n.GetTypeCast(); c != nil && isTextName(c.TypeName) {
		column = c.Arg
	} else if c := d.columnOf(parts, n); c != nil && !isTextType(c.Type) {
		return
	}
	h, ok := d.expression(n)
	if !ok || column.GetColumnRef() == nil {
		return
	}
	var f filler
	m := f.put(h)
	from := d.source(&f, parts)
	if what == "filtered" {
		f.holes = f.holes[:1]
		from, what = d.from(&f, parts), "compared"
	}
	isShown := what == "shown"
	if isShown {
		what = "sorted"
	}
	d.addFlagged(parts, ProbeTextNumber, -1, s, []string{h.inner(), what}, map[string]bool{"shown": isShown},
		fill("SELECT count("+m+"), count(*) FILTER (WHERE "+m+" ~ '^[0-9]+([.][0-9]+)*$'), count(DISTINCT "+
			"length("+m+")) FILTER (WHERE "+m+" ~ '^[0-9]+([.][0-9]+)*$'), count(*) FILTER (WHERE "+m+" ~ "+
			"'^0[0-9]')"+from, f.holes...))
}

// isTextName reports whether a type is one of texts.
func isTextName(t *pg_query.TypeName) bool {
	return t != nil && len(t.Names) > 0 && slices.Contains([]string{"text", "varchar", "bpchar"},
		t.Names[len(t.Names)-1].GetString_().GetSval())
}

// findWildcards finds _ in patterns of LIKE that matches other characters.
func findWildcards(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, _ place) {
		e := n.GetAExpr()
		if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_LIKE && e.Kind != pg_query.A_Expr_Kind_AEXPR_ILIKE {
			return
		}
		pattern := e.Rexpr.GetAConst().GetSval().GetSval()
		literal := escapeUnderscores(pattern)
		word := map[string]string{"~~": "LIKE", "~~*": "ILIKE"}[e.Name[0].GetString_().GetSval()]
		if literal == pattern || word == "" {
			return
		}
		x, ok1 := d.expression(e.Lexpr)
		p, ok2 := d.expression(e.Rexpr)
		if !ok1 || !ok2 {
			return
		}
		var f filler
		xm, pm, lm := f.put(x), f.put(p), f.put(constant(literal))
		s := d.spanOr(n, parts.clause.where)
		d.addProbe(parts, ProbeWildcard, parts.stageWith(n), s, []string{pattern},
			fill("SELECT count(*) FILTER (WHERE "+xm+" "+word+" "+pm+"), count(*) FILTER (WHERE "+xm+" "+word+" "+
				lm+")"+
				d.from(&f, parts), f.holes...))
	})
}

// escapeUnderscores returns a pattern with each _ as itself, if it stands between other characters.
func escapeUnderscores(pattern string) string {
	if strings.Contains(pattern, `\`) || strings.Contains(pattern, "__") || strings.Trim(pattern, "_%") == "" {
		return pattern
	}
	return strings.ReplaceAll(pattern, "_", `\_`)
}

// findTies finds LIMIT at which rows with the same value of ORDER BY are left out.
func findTies(d *stageDeriver, parts *blockParts) {
	limit := parts.node.LimitCount.GetAConst()
	if limit == nil || len(parts.node.SortClause) == 0 || parts.node.LimitOffset != nil ||
		parts.clause.order.isEmpty() ||
		parts.node.LimitOption == pg_query.LimitOption_LIMIT_OPTION_WITH_TIES {
		return
	}
	with := proto.CloneOf(parts.node)
	with.LimitOption = pg_query.LimitOption_LIMIT_OPTION_WITH_TIES
	q := parts.clause
	head := span{q.all.start, q.tail.start}
	text := d.text(head) + " ORDER BY " + d.text(q.order) + " FETCH FIRST " +
		strconv.Itoa(int(limit.GetIval().GetIval())) + " ROWS WITH TIES"
	all := proto.CloneOf(parts.node)
	all.LimitCount, all.LimitOption = nil, parsedSelect("SELECT 1").LimitOption
	d.addProbe(parts, ProbeTies, parts.last, q.tail, []string{d.text(q.order)},
		fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(derivedQuery{text, with})),
		fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(derivedQuery{d.text(q.all), parts.node})))
}

// findPrecedence finds AND next to OR without parentheses.
func findPrecedence(d *stageDeriver, parts *blockParts) {
	if len(parts.conjuncts) != 1 {
		return
	}
	c := parts.conjuncts[0]
	b := c.node.GetBoolExpr()
	if b == nil || b.Boolop != pg_query.BoolExprType_OR_EXPR {
		return
	}
	for i, arg := range b.Args {
		and := arg.GetBoolExpr()
		if and == nil || and.Boolop != pg_query.BoolExprType_AND_EXPR {
			continue
		}
		if d.isWrapped(arg, c.span) {
			continue
		}
		// The other reading: the OR is of the condition next to it only.
		var f filler
		other, neighbour := "", -1
		switch {
		case i+1 < len(b.Args):
			neighbour = i + 1
		case i > 0:
			neighbour = i - 1
		default:
			continue
		}
		next, ok := d.expression(b.Args[neighbour])
		if !ok {
			return
		}
		for n, one := range and.Args {
			h, ok := d.expression(one)
			if !ok {
				return
			}
			if n > 0 {
				other += " AND "
			}
			if neighbour > i && n == len(and.Args)-1 || neighbour < i && n == 0 {
				other += "(" + f.put(h) + " OR " + f.put(next) + ")"
			} else {
				other += f.put(h) + " IS TRUE"
			}
		}
		whole := f.put(exprHole(d.text(c.span), c.node))
		at := len(and.Args) - 1
		if neighbour < i {
			at = 0
		}
		isSame := d.isSameColumn(and.Args[at], b.Args[neighbour]) && len(b.Args) == 2
		d.addFlagged(parts, ProbePrecedence, c.stage, d.spanOr(b.Args[neighbour], c.span), nil,
			map[string]bool{"same": isSame},
			fill("SELECT count(*) FILTER (WHERE "+whole+" IS TRUE), count(*) FILTER (WHERE ("+other+") IS TRUE)"+
				d.from(&f,
					parts),
				f.holes...))
		return
	}
}

// isSameColumn reports whether two conditions compare the same column with the same operator.
func (d *stageDeriver) isSameColumn(a, b *pg_query.Node) bool {
	x, y := a.GetAExpr(), b.GetAExpr()
	return x != nil && y != nil && x.Kind == y.Kind && len(x.Name) == 1 && len(y.Name) == 1 &&
		equalNodes(x.Name[0], y.Name[0]) && x.Lexpr.GetColumnRef() != nil && equalNodes(x.Lexpr, y.Lexpr)
}

// isWrapped reports whether an expression in a span has parentheses around it.
func (d *stageDeriver) isWrapped(n *pg_query.Node, around span) bool {
	s, ok := d.spanOf(n)
	return ok && s.start > around.start && d.is(s.start-1, pg_query.Token_ASCII_40) && d.closes[s.start-1] == s.end
}

// findMonths finds months without their year.
func findMonths(d *stageDeriver, parts *blockParts) {
	hasYear := false
	var months []*pg_query.Node
	parts.visit(func(n *pg_query.Node, at place) {
		f := n.GetFuncCall()
		if f == nil || len(f.Args) != 2 || at == inWhere && !parts.isGrouped() {
			return
		}
		format, argument := strings.ToUpper(f.Args[0].GetAConst().GetSval().GetSval()), f.Args[1]
		if functionName(f) == "to_char" {
			format, argument = strings.ToUpper(f.Args[1].GetAConst().GetSval().GetSval()), f.Args[0]
		}
		switch functionName(f) {
		case "date_trunc":
			hasYear = hasYear || at == inTarget || at == inGroup
		case "to_char", "extract", "date_part":
			isYear := strings.Contains(format, "YY") || format == "YEAR" || format == "ISOYEAR" || format == "EPOCH"
			hasYear = hasYear || isYear && at != inWhere // a year in WHERE leaves rows of one year
			if !isYear && (strings.Contains(format, "MM") || strings.HasPrefix(format, "MON") || format == "QUARTER") {
				months = append(months, argument)
			}
		}
	})
	if hasYear || len(months) == 0 {
		return
	}
	h, ok := d.expression(months[0])
	if !ok {
		return
	}
	var f filler
	m := f.put(h)
	s := d.spanOr(months[0], parts.clause.targets)
	d.addProbe(parts, ProbeMonths, -1, s, []string{h.inner()},
		fill("SELECT count(*), count(DISTINCT extract(year FROM "+m+"))"+d.source(&f, parts), f.holes...))
}

// findSoftDeletes finds tables with rows that a view over them leaves out by a time or a flag, and no condition here.
func findSoftDeletes(d *stageDeriver, parts *blockParts) {
	for _, item := range parts.tables() {
		if item.table == nil || item.table.IsView {
			continue
		}
		for _, column := range item.table.Columns {
			isFlag := column.Type == "boolean"
			if column.FilteredBy == "" || !isFlag && (!isTimeType(column.Type) || !column.IsNullable) ||
				d.mentions(parts, item, column.Name) {
				continue
			}
			var f filler
			m := f.put(ownHole(quoteName(item.name) + "." + quoteName(column.Name)))
			is := " IS NOT NULL"
			if isFlag {
				is = " IS TRUE"
			}
			d.addProbe(parts, ProbeSoftDelete, item.stage, item.span, []string{item.name, column.Name,
				column.FilteredBy},
				fill("SELECT count(*), count(*) FILTER (WHERE "+m+is+")"+d.source(&f, parts), f.holes...))
		}
	}
}

// findDays finds days and hours of a time with a zone that are those of the session's zone.
func findDays(d *stageDeriver, parts *blockParts) {
	found := false
	parts.visit(func(n *pg_query.Node, at place) {
		p, ok := partOf(n)
		if c := n.GetTypeCast(); c != nil && c.TypeName != nil && isDateName(c.TypeName) {
			p, ok = timePart{argument: c.Arg}, true
		}
		if !ok || found || at != inTarget && at != inGroup || p.field == "EPOCH" {
			return
		}
		column := d.columnOf(parts, p.argument)
		if column == nil || column.Type != "timestamp with time zone" {
			return
		}
		h, ok := d.expression(p.argument)
		if !ok {
			return
		}
		found = true
		var g filler
		m := g.put(h)
		d.addProbe(parts, ProbeDayOfZone, -1, d.spanOr(n, parts.clause.targets), []string{h.inner()},
			fill("SELECT count(*), count(*) FILTER (WHERE extract(hour FROM "+m+") >= 22)"+d.source(&g, parts),
				g.holes...))
	})
}
