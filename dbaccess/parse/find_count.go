package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The kinds of probes about aggregates.
const (
	ProbeCountedCase  = "count-of-condition"
	ProbeCountedElse  = "count-distinct-else"
	ProbeSumDistinct  = "sum-distinct"
	ProbeApartMaxima  = "independent-extremes"
	ProbeRoundedParts = "sum-of-rounded"
	ProbeZeroForNull  = "null-as-zero"
	ProbeProductCount = "count-of-combinations"
	ProbeMissingZero  = "mean-without-empty"
	ProbeMeanOfRatio  = "mean-of-ratios"
	ProbeKeptGroups   = "having-keeps-group"
)

// isBoolean reports whether the form of an expression shows that it is true, false or NULL.
func isBoolean(n *pg_query.Node) bool {
	if n.GetBoolExpr() != nil || n.GetNullTest() != nil || n.GetBooleanTest() != nil {
		return true
	}
	if link := n.GetSubLink(); link != nil {
		return link.SubLinkType == pg_query.SubLinkType_EXISTS_SUBLINK ||
			link.SubLinkType == pg_query.SubLinkType_ANY_SUBLINK
	}
	e := n.GetAExpr()
	if e == nil {
		return false
	}
	switch e.Kind {
	case pg_query.A_Expr_Kind_AEXPR_OP:
		return len(e.Name) == 1 && slices.Contains([]string{"=", "<>", "<", ">", "<=", ">=", "~", "~*"},
			e.Name[0].GetString_().GetSval())
	case pg_query.A_Expr_Kind_AEXPR_IN, pg_query.A_Expr_Kind_AEXPR_LIKE, pg_query.A_Expr_Kind_AEXPR_ILIKE,
		pg_query.A_Expr_Kind_AEXPR_BETWEEN, pg_query.A_Expr_Kind_AEXPR_OP_ANY, pg_query.A_Expr_Kind_AEXPR_DISTINCT,
		pg_query.A_Expr_Kind_AEXPR_NOT_DISTINCT, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		return true
	}
	return false
}

// isValue reports whether an expression is a constant other than NULL.
func isValue(n *pg_query.Node) bool {
	c := n.GetAConst()
	return c != nil && !c.Isnull
}

// findCountedCases finds COUNT of an expression that says yes or no, and is never NULL: each row is counted.
func findCountedCases(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != "count" || len(a.call.Args) != 1 {
			continue
		}
		arg := a.call.Args[0]
		condition, otherwise := "", "else"
		var f filler
		switch c := arg.GetCaseExpr(); {
		case c != nil && len(c.Args) == 1 && c.Arg == nil && isValue(c.Defresult) &&
			(isValue(c.Args[0].GetCaseWhen().Result) || a.call.AggDistinct):
			h, ok := d.expression(c.Args[0].GetCaseWhen().Expr)
			if !ok {
				continue
			}
			condition = f.put(h)
			otherwise = d.textOf(c.Defresult)
		case isBoolean(arg) && !a.call.AggDistinct:
			h, ok := d.expression(arg)
			if !ok {
				continue
			}
			condition, otherwise = f.put(h), ""
		default:
			continue
		}
		kind := ProbeCountedCase
		if a.call.AggDistinct {
			kind = ProbeCountedElse
		}
		d.addProbe(parts, kind, -1, d.spanOr(a.node, parts.clause.targets), []string{otherwise},
			fill("SELECT count(*), count(*) FILTER (WHERE "+condition+" IS TRUE), count(*) FILTER (WHERE "+condition+
				" IS FALSE)"+d.source(&f, parts), f.holes...))
	}
}

// findDistinctAmounts finds SUM and AVG of DISTINCT values, which leave out rows that have an amount by chance.
func findDistinctAmounts(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); name != "sum" && name != "avg" || !a.call.AggDistinct ||
			len(a.call.Args) != 1 {
			continue
		}
		item := d.onlyTable(parts, a.call.Args[0])
		if item == nil || item.isLateral || item.node.GetRangeFunction() != nil {
			continue
		}
		var f filler
		value, ok1 := d.expression(a.call.Args[0])
		identity, isKey := d.rowIdentity(item)
		v, id := f.put(value), f.put(identity)
		from, ok2 := d.groups(&f, parts)
		if !ok1 || !ok2 || !isKey {
			continue
		}
		inner := "SELECT count(DISTINCT " + v + `) AS "v", count(DISTINCT ` + id + ") FILTER (WHERE " + v +
			` IS NOT NULL) AS "r"` + from
		d.addProbe(parts, ProbeSumDistinct, -1, d.spanOr(a.node, parts.clause.targets),
			[]string{functionName(a.call), item.name},
			fill(`SELECT count(*), count(*) FILTER (WHERE "v" < "r"), coalesce(sum("r" - "v"), 0)::bigint FROM (@0) `+
				`AS "g"`, queryHole(fill(inner, f.holes...))))
	}
}

// onlyTable returns the table that has all columns of an expression, or nil.
func (d *stageDeriver) onlyTable(parts *blockParts, n *pg_query.Node) (only *fromItem) {
	for _, ref := range columnsOf(n) {
		item := d.tableOf(parts.tables(), ref)
		if item == nil || only != nil && item != only {
			return nil
		}
		only = item
	}
	return only
}

// findApartMaxima finds the latest time and the largest value of a group next to each other, which are of other rows.
func findApartMaxima(d *stageDeriver, parts *blockParts) {
	if len(parts.node.GroupClause) == 0 {
		return
	}
	list := parts.aggregates()
	for i, a := range list {
		if !isExtreme(a) || !d.isTime(parts, a.call.Args[0]) {
			continue
		}
		item := d.onlyTable(parts, a.call.Args[0])
		for j, b := range list {
			if i == j || !isExtreme(b) || functionName(a.call) != functionName(b.call) || item == nil ||
				d.onlyTable(parts, b.call.Args[0]) != item || d.isTime(parts, b.call.Args[0]) {
				continue
			}
			var f filler
			time, ok1 := d.expression(a.call.Args[0])
			value, ok2 := d.expression(b.call.Args[0])
			t, v := f.put(time), f.put(value)
			from, ok3 := d.groups(&f, parts)
			if !ok1 || !ok2 || !ok3 {
				continue
			}
			order := " DESC"
			if functionName(a.call) == "min" {
				order = ""
			}
			inner := "SELECT " + functionName(b.call) + "(" + v + `)::text AS "a", (array_agg(` + v + " ORDER BY " + t +
				order + `))[1]::text AS "b"` + from
			d.addProbe(parts, ProbeApartMaxima, -1, d.spanOr(b.node, parts.clause.targets),
				[]string{d.textOf(a.node), d.textOf(b.call.Args[0])},
				fill(`SELECT count(*), count(*) FILTER (WHERE "a" IS DISTINCT FROM "b") FROM (@0) AS "g"`,
					queryHole(fill(inner, f.holes...))))
			return
		}
	}
}

func isExtreme(a aggregate) bool {
	name := functionName(a.call)
	return (name == "max" || name == "min") && len(a.call.Args) == 1 && a.call.AggFilter == nil &&
		a.call.Args[0].GetColumnRef() != nil && a.isWhole
}

// isTime reports whether an expression is a column of a table with a date or a time.
func (d *stageDeriver) isTime(parts *blockParts, n *pg_query.Node) bool {
	c := d.columnOf(parts, n)
	return c != nil && isTimeType(c.Type)
}

func isTimeType(name string) bool { return name == "date" || strings.HasPrefix(name, "timestamp") }

// findRoundedParts finds sums of values that are rounded before.
func findRoundedParts(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != "sum" || len(a.call.Args) != 1 || a.call.AggFilter != nil || a.call.AggDistinct {
			continue
		}
		inner := a.call.Args[0].GetFuncCall()
		if inner == nil || !slices.Contains([]string{"round", "floor", "ceil", "ceiling", "trunc"},
			functionName(inner)) || len(inner.Args) == 0 {
			continue
		}
		var f filler
		rounded, ok1 := d.expression(a.call.Args[0])
		exact, ok2 := d.expression(inner.Args[0])
		r, e := f.put(rounded), f.put(exact)
		from, ok3 := d.groups(&f, parts)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		again := functionName(inner) + "(sum(" + e + ")"
		if len(inner.Args) > 1 {
			h, ok := d.expression(inner.Args[1])
			if !ok {
				continue
			}
			again += ", " + f.put(h)
		}
		d.addProbe(parts, ProbeRoundedParts, -1, d.spanOr(a.node, parts.clause.targets),
			[]string{functionName(inner)},
			fill(`SELECT count(*), count(*) FILTER (WHERE "a" IS DISTINCT FROM "b") FROM (@0) AS "g"`,
				queryHole(fill("SELECT sum("+r+`) AS "a", `+again+`) AS "b"`+from, f.holes...))))
	}
}

// findZerosForNull finds AVG and MIN of coalesce(x, 0), which take a missing value for a 0.
func findZerosForNull(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); name != "avg" && name != "min" || len(a.call.Args) != 1 {
			continue
		}
		c := a.call.Args[0].GetCoalesceExpr()
		if c == nil || len(c.Args) != 2 || !isValue(c.Args[1]) {
			continue
		}
		h, ok := d.expression(c.Args[0])
		if !ok {
			continue
		}
		var f filler
		m := f.put(h)
		d.addProbe(parts, ProbeZeroForNull, -1, d.spanOr(a.node, parts.clause.targets),
			[]string{d.textOf(c.Args[0]), d.textOf(c.Args[1])},
			fill("SELECT count(*), count(*) FILTER (WHERE "+m+" IS NULL)"+d.source(&f, parts), f.holes...))
	}
}

// findMeansOfAllRows finds sum(x) / count(*), a mean in which a row whose x is NULL counts as one with 0.
func findMeansOfAllRows(d *stageDeriver, parts *blockParts) {
	for _, t := range parts.node.TargetList {
		forEachNode(t, func(n *pg_query.Node) bool {
			left, right, _, ok := operator(n, "/")
			if !ok {
				return n.GetSelectStmt() == nil
			}
			sum, count := left.GetFuncCall(), right.GetFuncCall()
			if functionName(sum) != "sum" || len(sum.Args) != 1 || sum.AggFilter != nil || sum.Over != nil ||
				functionName(count) != "count" || !count.AggStar || count.AggFilter != nil || count.Over != nil ||
				sum.Args[0].GetColumnRef() == nil {
				return true
			}
			h, ok := d.expression(sum.Args[0])
			if !ok {
				return true
			}
			var f filler
			m := f.put(h)
			d.addProbe(parts, ProbeZeroForNull, -1, d.spanOr(n, parts.clause.targets),
				[]string{d.textOf(sum.Args[0]), "0"},
				fill("SELECT count(*), count(*) FILTER (WHERE "+m+" IS NULL)"+d.source(&f, parts), f.holes...))
			return true
		})
	}
}

// findProductCounts finds COUNT(*) after joins that repeat the rows of all tables: what it counts is the row of none.
func findProductCounts(d *stageDeriver, parts *blockParts) {
	tables := parts.tables()
	if len(tables) < 2 || len(parts.joins) == 0 || d.isSelfJoin(tables) {
		return
	}
	for _, j := range parts.joins { // other conditions, such as a time within a period, are meant to combine rows
		if j.node.GetJoinExpr().Quals == nil && len(j.node.GetJoinExpr().UsingClause) == 0 || !d.hasOnlyKeys(j) {
			return
		}
	}
	for _, a := range parts.aggregates() {
		if !a.call.AggStar || a.call.AggFilter != nil {
			continue
		}
		var f filler
		list := "SELECT count(*)"
		var names []string
		for _, item := range tables {
			identity, isKey := d.rowIdentity(item)
			if !isKey || item.isLateral || item.node.GetRangeFunction() != nil {
				return
			}
			m := f.put(identity)
			list += ", count(" + m + ") - count(DISTINCT " + m + ")"
			names = append(names, item.name)
		}
		query := fill(list+d.source(&f, parts), f.holes...)
		s := d.spanOr(a.node, parts.clause.targets)
		d.addProbe(parts, ProbeProductCount, -1, s, names, query)
		return
	}
}

// hasOnlyKeys reports whether each condition of a join with columns of both sides compares them with =.
func (d *stageDeriver) hasOnlyKeys(j *fromItem) bool {
	quals := j.node.GetJoinExpr().Quals
	if quals == nil {
		return true
	}
	for _, c := range d.splitWhere(quals, span{j.qual.start + 1, j.qual.end}) {
		if _, ok := d.equalPair(c, j.left.tables(), j.right.tables()); ok {
			continue
		}
		if d.sideOf(c.node, j.left.tables(), j.right.tables()) == 0 {
			return false
		}
	}
	return true
}

// isSelfJoin reports whether a table is joined with itself.
func (d *stageDeriver) isSelfJoin(tables []*fromItem) bool {
	for i, t := range tables {
		for _, other := range tables[:i] {
			if t.table != nil && t.table == other.table {
				return true
			}
		}
	}
	return false
}

// findMissingZeros finds AVG and other aggregates over counts of groups: who has no row has no group, and is left out.
func findMissingZeros(d *stageDeriver, parts *blockParts) {
	d.forEachInnerAggregate(parts, "avg", func(a aggregate, inner *blockParts, target aggregate) {
		if name := functionName(target.call); name != "count" && name != "sum" || len(inner.node.GroupClause) != 1 {
			return
		}
		keys, ok := d.groupKeys(inner)
		if !ok || len(keys) != 1 {
			return
		}
		item := d.tableOf(inner.tables(), keys[0].GetColumnRef())
		if keys[0].GetColumnRef() == nil || item == nil || item.table == nil {
			return
		}
		_, name := columnName(keys[0].GetColumnRef())
		parent, column := references(item.table, name)
		if parent == "" {
			return
		}
		var f filler
		groups, ok := d.groups(&f, inner)
		if !ok {
			return
		}
		d.addScoped(inner, ProbeMissingZero, parts.id, d.spanOr(a.node, parts.clause.targets),
			fill(`SELECT count(*) FROM (@0) AS "g"`, queryHole(fill("SELECT 1"+groups, f.holes...))),
			fill("SELECT count("+quoteName(column)+") FROM "+parent))
		if n := len(d.plan.Probes); n > 0 && d.plan.Probes[n-1].Kind == ProbeMissingZero {
			d.plan.Probes[n-1].Names = []string{functionName(target.call), parent, item.name}
		}
	})
}

// references returns the name of the table, as PostgreSQL prints it, and the column that a foreign key of one column
// refers to, or "".
func references(t *Table, column string) (table, referenced string) {
	for _, k := range t.ForeignKeys {
		if len(k.Columns) == 1 && k.Columns[0] == column {
			return k.Table, k.ReferencedColumns[0]
		}
	}
	return "", ""
}

// findMeansOfRatios finds AVG of a quotient, in which each row has the same weight.
func findMeansOfRatios(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != "avg" || len(a.call.Args) != 1 || a.call.AggFilter != nil {
			continue
		}
		var ratio *pg_query.Node
		forEachNode(a.call.Args[0], func(n *pg_query.Node) bool {
			if left, right, _, ok := operator(n, "/"); ok && ratio == nil && len(columnsOf(left)) > 0 &&
				len(columnsOf(right)) > 0 {
				ratio = n
			}
			return ratio == nil
		})
		if ratio == nil {
			continue
		}
		left, right, _, _ := operator(ratio, "/")
		var f filler
		list, ok1 := d.marks(&f, []*pg_query.Node{ratio, left, right})
		from, ok2 := d.groups(&f, parts)
		if !ok1 || !ok2 {
			continue
		}
		inner := "SELECT avg(" + list[0] + `)::float8 AS "a", sum(` + list[1] + ")::float8 / nullif(sum(" + list[2] +
			`)::float8, 0) AS "b", count(DISTINCT ` + list[2] + `) AS "n"` + from
		d.addProbe(parts, ProbeMeanOfRatio, -1, d.spanOr(a.node, parts.clause.targets), []string{d.textOf(ratio)},
			fill(`SELECT count(*), count(*) FILTER (WHERE "n" > 1 AND abs("a" - "b") > 0.001 * abs("b")) FROM (@0) `+
				`AS "g"`, queryHole(fill(inner, f.holes...))))
	}
}

// findKeptGroups finds HAVING with the largest or smallest value of a column: all rows of a group stay if one passes.
func findKeptGroups(d *stageDeriver, parts *blockParts) {
	if parts.node.HavingClause == nil || len(parts.node.GroupClause) == 0 {
		return
	}
	left, right, name, ok := operator(parts.node.HavingClause, "<", ">", "<=", ">=")
	call := left.GetFuncCall()
	if function := functionName(call); !ok || function != "max" && function != "min" || len(call.Args) != 1 ||
		len(columnsOf(right)) > 0 || callsIn([]*pg_query.Node{right}, isAggregate) ||
		!slices.ContainsFunc(parts.aggregates(), func(a aggregate) bool { return !isInvariant(a.call) }) {
		return
	}
	var f filler
	list, ok := d.marks(&f, []*pg_query.Node{call.Args[0], right})
	from, ok2 := d.groups(&f, parts)
	if !ok || !ok2 {
		return
	}
	having := f.put(exprHole(d.text(parts.clause.having), parts.node.HavingClause))
	inner := "SELECT count(*) AS \"n\", count(*) FILTER (WHERE " + list[0] + " " + name + " " + list[1] + `) AS ` +
		`"p"` + from +
		" HAVING " + having
	d.addProbe(parts, ProbeKeptGroups, -1, parts.clause.having, nil,
		fill(`SELECT coalesce(sum("n"), 0)::bigint, coalesce(sum("p"), 0)::bigint FROM (@0) AS "g"`,
			queryHole(fill(inner, f.holes...))))
}
