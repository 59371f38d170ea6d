package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// findArbitraryRows finds DISTINCT ON whose ORDER BY does not say which row of a group is taken.
func findArbitraryRows(d *stageDeriver, parts *blockParts) {
	if parts.clause.distinctOn.isEmpty() || len(parts.node.SortClause) > len(parts.node.DistinctClause) ||
		parts.isGrouped() {
		return
	}
	keys := parts.node.DistinctClause
	var f filler
	list := ""
	for i, key := range keys {
		if key.GetAConst() != nil {
			return
		}
		h, ok := d.expression(key)
		if !ok {
			return
		}
		if i > 0 {
			list += ", "
		}
		list += f.put(h)
	}
	var values []string
	for _, t := range parts.node.TargetList {
		value := t.GetResTarget().GetVal()
		if slices.ContainsFunc(keys, func(k *pg_query.Node) bool { return equalNodes(k, value) }) {
			continue
		}
		h, ok := d.expression(value)
		if !ok || strings.Contains(h.text, "*") {
			continue
		}
		values = append(values, "count(DISTINCT coalesce("+f.put(h)+"::text, ''))")
	}
	if len(values) == 0 {
		return
	}
	inner := fill("SELECT count(*) AS \"n\", greatest("+strings.Join(values, ", ")+") AS \"v\""+d.source(&f, parts)+
		" GROUP BY "+list, f.holes...)
	d.addProbe(parts, ProbeArbitraryRow, parts.last, span{parts.clause.distinctOn.start - 3,
		parts.clause.distinctOn.end + 1}, nil,
		fill(`SELECT count(*), count(*) FILTER (WHERE "n" > 1), count(*) FILTER (WHERE "v" > 1) FROM (@0) AS "g"`,
			queryHole(inner)))
}

// findFineGroups finds groups that are finer than what the SELECT list shows of them.
func findFineGroups(d *stageDeriver, parts *blockParts) {
	if len(parts.node.GroupClause) == 0 || len(parts.node.DistinctClause) > 0 {
		return
	}
	keys, ok := d.groupKeys(parts)
	if !ok {
		return
	}
	var labels []*pg_query.Node
	for _, t := range parts.node.TargetList {
		if !callsIn([]*pg_query.Node{t}, func(f *pg_query.FuncCall) bool { return isAggregate(f) || f.Over != nil }) {
			labels = append(labels, t.GetResTarget().GetVal())
		}
	}
	for i, key := range keys {
		if slices.ContainsFunc(labels, func(l *pg_query.Node) bool { return equalNodes(l, key) }) ||
			key.GetColumnRef() == nil {
			continue
		}
		// A label is made of the column of the key, and may be the same for several of its values.
		at := slices.IndexFunc(labels, func(l *pg_query.Node) bool {
			return slices.ContainsFunc(columnsOf(l), func(ref *pg_query.ColumnRef) bool {
				_, a := columnName(ref)
				_, b := columnName(key.GetColumnRef())
				return a == b
			})
		})
		isUnseen := at < 0
		if isUnseen {
			if parts.id != 0 || len(labels) == 0 || d.isUniqueKey(parts, key) || d.readsKey(parts, key) {
				continue
			}
			at = 0
		}
		var f filler
		list := ""
		for n, l := range labels {
			h, ok := d.expression(l)
			if !ok {
				return
			}
			if n > 0 {
				list += ", "
			}
			list += f.put(h)
		}
		groups, ok := d.groups(&f, parts)
		if !ok {
			return
		}
		having := ""
		if parts.node.HavingClause != nil {
			having = " HAVING " + f.put(exprHole(d.text(parts.clause.having), parts.node.HavingClause))
		}
		inner := fill("SELECT ROW("+list+") AS \"label\""+groups+having, f.holes...)
		kind := ProbeFineGroups
		_, name := columnName(key.GetColumnRef())
		for _, t := range parts.node.TargetList {
			if target := t.GetResTarget(); target.Name == name && equalNodes(target.Val, labels[at]) {
				kind = ProbeAliasShadow
			}
		}
		d.addProbe(parts, kind, d.groupStage(parts), d.groupSpan(parts, i), []string{name, d.textOf(labels[at])},
			fill(`SELECT count(*), count(DISTINCT "label") FROM (@0) AS "g"`, queryHole(inner)))
		return
	}
}

func (d *stageDeriver) textOf(n *pg_query.Node) string {
	s, ok := d.spanOf(n)
	if !ok {
		return "?"
	}
	return d.text(s)
}

// isUniqueKey reports whether a column is a key of its table by itself, or a part of a key of several.
func (d *stageDeriver) isUniqueKey(parts *blockParts, key *pg_query.Node) bool {
	item := d.tableOf(parts.tables(), key.GetColumnRef())
	_, name := columnName(key.GetColumnRef())
	return item == nil || item.table == nil || slices.Contains(item.table.PrimaryKey, name) ||
		slices.Contains(item.table.Unique, name) || isReferenced(item.table, name)
}

func isReferenced(t *Table, column string) bool {
	table, _ := references(t, column)
	return table != ""
}

// readsKey reports whether HAVING, ORDER BY or an expression of the SELECT list has a key of GROUP BY.
func (d *stageDeriver) readsKey(parts *blockParts, key *pg_query.Node) (reads bool) {
	_, name := columnName(key.GetColumnRef())
	parts.visit(func(n *pg_query.Node, at place) {
		if _, other := columnName(n.GetColumnRef()); at != inGroup && at != inWhere && at != inJoin && other == name {
			reads = true
		}
	})
	return reads
}

// groupSpan returns the span of a key of GROUP BY, with the words.
func (d *stageDeriver) groupSpan(parts *blockParts, i int) span {
	items := d.split(parts.clause.group, pg_query.Token_ASCII_44)
	if i < len(items) {
		return items[i]
	}
	return parts.clause.group
}

// groupStage returns the stage of the groups of a block, or -1.
func (d *stageDeriver) groupStage(parts *blockParts) int {
	for i, s := range d.plan.Stages {
		if s.Block == parts.id && s.Kind == "group" {
			return i
		}
	}
	return -1
}

// findIntegerDivisions finds divisions that may be of integers.
func findIntegerDivisions(d *stageDeriver, parts *blockParts) {
	isRounded, isBucket := map[*pg_query.Node]bool{}, map[*pg_query.Node]bool{}
	parts.visit(func(n *pg_query.Node, at place) {
		if left, right, _, ok := operator(n, "*"); ok { // x / 10 * 10
			if _, divisor, _, ok := operator(left, "/"); ok && equalNodes(divisor, right) {
				isBucket[left] = true
			}
		}
		if f := n.GetFuncCall(); f != nil && functionName(f) == "round" {
			for _, a := range f.Args {
				isRounded[a] = true
			}
		}
		e := n.GetAExpr()
		if e == nil || len(e.Name) != 1 || e.Name[0].GetString_().GetSval() != "/" || e.Lexpr == nil ||
			at != inTarget && at != inHaving && at != inWhere && at != inOrder {
			return
		}
		if isBucket[n] || d.isGroupKey(parts, n) || len(columnsOf(e.Lexpr)) == 0 && !hasCall(e.Lexpr) {
			return // buckets
		}
		for _, side := range []*pg_query.Node{e.Lexpr, e.Rexpr} {
			if c := d.columnOf(parts, side); c != nil && !strings.Contains("integer bigint smallint", c.Type) {
				return
			}
			if side.GetTypeCast() != nil {
				return
			}
		}
		left, ok1 := d.expression(e.Lexpr)
		right, ok2 := d.expression(e.Rexpr)
		if !ok1 || !ok2 {
			return
		}
		var f filler
		list := "SELECT " + f.put(left) + ` AS "a", ` + f.put(right) + ` AS "b"`
		from, ok := d.source(&f, parts), true
		isAggregated := callsIn([]*pg_query.Node{n}, isAggregate)
		if parts.isGrouped() && isAggregated {
			f.holes = f.holes[:2]
			if from, ok = d.groups(&f, parts); !ok {
				return
			}
		} else if parts.isGrouped() && hasWindow(n) {
			return
		}
		const whole = `"a" OPERATOR(pg_catalog.%) nullif("b", 0)`
		s, _ := d.spanOf(n)
		d.addFlagged(parts, ProbeIntegerDivision, -1, s, nil, map[string]bool{"rounded": isRounded[n],
			"constant": e.Rexpr.GetAConst() != nil},
			fill(`SELECT min(pg_typeof("a")::text), min(pg_typeof("b")::text) FROM (@0) AS "q"`,
				queryHole(fill(list+from,
					f.holes...))),
			fill(`SELECT count(*) FILTER (WHERE "b" <> 0), count(*) FILTER (WHERE `+whole+` <> 0), `+
				`count(*) FILTER (WHERE `+whole+` <> 0 AND abs("a") < abs("b")) FROM (@0) AS "q"`,
				queryHole(fill(list+from, f.holes...))))
	})
}

// hasCall reports whether an expression calls a function.
func hasCall(n *pg_query.Node) bool {
	return callsIn([]*pg_query.Node{n}, func(*pg_query.FuncCall) bool { return true })
}

func hasWindow(n *pg_query.Node) bool {
	return callsIn([]*pg_query.Node{n}, func(f *pg_query.FuncCall) bool { return f.Over != nil })
}

func (d *stageDeriver) isGroupKey(parts *blockParts, n *pg_query.Node) bool {
	keys, _ := d.groupKeys(parts)
	return slices.ContainsFunc(keys, func(k *pg_query.Node) bool {
		found := false
		forEachNode(k, func(x *pg_query.Node) bool {
			found = found || equalNodes(x, n)
			return !found
		})
		return found
	})
}

// findMixedUnits finds sums of a column of a table whose rows have different units, as the values of another column
// say: the codes of currencies, or the symbols of units. Nothing else of the query reads that column.
func findMixedUnits(d *stageDeriver, parts *blockParts) {
	seen := map[*fromItem]bool{}
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); name != "sum" && name != "avg" || len(a.call.Args) != 1 {
			continue
		}
		amount := d.amountOf(parts, a.call.Args[0])
		item := d.onlyTable(parts, a.call.Args[0])
		if amount == nil || item == nil || item.table == nil || seen[item] {
			continue
		}
		seen[item] = true
		for _, c := range item.table.Columns {
			if !isTextType(c.Type) || c.IsMasked || d.mentions(parts, item, c.Name) {
				continue
			}
			var f filler
			u := f.put(ownHole(quoteName(item.name) + "." + quoteName(c.Name)))
			filter := ""
			if a.call.AggFilter != nil {
				h, ok := d.expression(a.call.AggFilter)
				if !ok {
					continue
				}
				filter = " FILTER (WHERE " + f.put(h) + ")"
			}
			groups, ok := d.groups(&f, parts)
			if !ok {
				continue
			}
			whole := "SELECT count(DISTINCT " + u + ") FILTER (WHERE " + u + " IN (" + unitList + ")), " +
				"count(DISTINCT " + u +
				"), count(*) FILTER (WHERE position(lower(" + u + ") IN " + quoteText(strings.ToLower(amount.Name)) +
				") > 0)" + d.source(&f, parts)
			inner := fill("SELECT count(DISTINCT "+u+")"+filter+` AS "n"`+groups, f.holes...)
			d.addProbe(parts, ProbeMixedUnits, -1, d.spanOr(a.node, parts.clause.targets),
				[]string{c.Name, item.table.Name}, fill(whole, f.holes...),
				fill(`SELECT count(*), count(*) FILTER (WHERE "n" > 1), coalesce(max("n"), 0) FROM (@0) AS "g"`,
					queryHole(inner)))
		}
	}
}

// unitList has the codes of currencies of ISO 4217 that are used most, and symbols of units.
var unitList = func() string {
	var list []string
	for _, unit := range strings.Fields(`EUR USD GBP JPY CHF CNY AUD CAD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY RUB ` +
		`UAH INR
		BRL MXN ARS CLP COP ZAR KRW SGD HKD TWD THB IDR MYR PHP VND ILS AED SAR EGP NGN KES ISK kg g mg lb oz t l L ml mL
		cl m cm mm km mi ft in h min s ms kWh MWh Wh GB MB KB`) {
		list = append(list, quoteText(unit))
	}
	return strings.Join(list, ", ")
}()

// amountOf returns the column that an aggregate adds up, if it is a number that is not converted by another one.
func (d *stageDeriver) amountOf(parts *blockParts, n *pg_query.Node) (amount *Column) {
	forEachNode(n, func(n *pg_query.Node) bool {
		if when := n.GetCaseWhen(); when != nil {
			if c := d.amountOf(parts, when.Result); c != nil {
				amount = c
			}
			return false
		}
		if left, right, _, ok := operator(n, "*", "/"); ok &&
			(len(columnsOf(left)) > 0) == (len(columnsOf(right)) > 0) {
			amount = nil
			return false
		}
		if c := d.columnOf(parts, n); c != nil && (strings.HasPrefix(c.Type, "numeric") ||
			c.Type == "double precision" || c.Type == "real" || c.Type == "money") {
			amount = c
		}
		return true
	})
	return amount
}

// findMeansOfMeans finds AVG of a column that is an AVG itself.
func findMeansOfMeans(d *stageDeriver, parts *blockParts) {
	d.forEachInnerAggregate(parts, "avg", func(a aggregate, inner *blockParts, target aggregate) {
		if functionName(target.call) != "avg" {
			return
		}
		var f filler
		groups, ok := d.groups(&f, inner)
		if !ok {
			return
		}
		sizes := fill(`SELECT count(*) AS "n"`+groups, f.holes...)
		d.addScoped(inner, ProbeMeanOfMeans, parts.id, d.spanOr(a.node, parts.clause.targets),
			fill(`SELECT count(*), coalesce(min("n"), 0), coalesce(max("n"), 0) FROM (@0) AS "g"`, queryHole(sizes)))
	})
}

// findDistinctSums finds sums of COUNT(DISTINCT ...) of groups.
func findDistinctSums(d *stageDeriver, parts *blockParts) {
	d.forEachInnerAggregate(parts, "sum", func(a aggregate, inner *blockParts, target aggregate) {
		if functionName(target.call) != "count" || !target.call.AggDistinct || len(target.call.Args) != 1 {
			return
		}
		h, ok := d.expression(target.call.Args[0])
		if !ok {
			return
		}
		var f filler
		mark := f.put(h)
		groups, ok := d.groups(&f, inner)
		if !ok {
			return
		}
		sums := fill("SELECT count(DISTINCT "+mark+`) AS "n"`+groups, f.holes...)
		var g filler
		m := g.put(h)
		d.addScoped(inner, ProbeSumOfDistinct, parts.id, d.spanOr(a.node, parts.clause.targets),
			fill(`SELECT coalesce(sum("n"), 0)::bigint FROM (@0) AS "g"`, queryHole(sums)),
			fill("SELECT count(DISTINCT "+m+")"+d.source(&g, inner), g.holes...))
	})
}

// addScoped adds a probe about a block with statements in the scope of another one.
func (d *stageDeriver) addScoped(scoped *blockParts, kind string, block int, s span, queries ...derivedQuery) {
	before := len(d.plan.Probes)
	d.addProbe(scoped, kind, -1, s, nil, queries...)
	if len(d.plan.Probes) > before {
		d.plan.Probes[before].Block = block
	}
}

// forEachInnerAggregate calls visit with each aggregate of a name over a column that is an aggregate of a subquery or a
// WITH query.
func (d *stageDeriver) forEachInnerAggregate(
	parts *blockParts, name string, visit func(outer aggregate, inner *blockParts, target aggregate),
) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != name || len(a.call.Args) != 1 || a.call.Args[0].GetColumnRef() == nil {
			continue
		}
		ref := a.call.Args[0].GetColumnRef()
		item := d.tableOf(parts.tables(), ref)
		if item == nil || item.child < 0 {
			continue
		}
		_, column := columnName(ref)
		for _, inner := range d.parts {
			if inner.id != item.child || len(inner.node.GroupClause) == 0 {
				continue
			}
			for _, target := range inner.aggregates() {
				if target.isWhole && (target.alias == column || target.alias == "" &&
					functionName(target.call) == column) {
					visit(a, inner, target)
				}
			}
		}
	}
}

// findDenominators finds shares of all rows after a condition on the column that the numerator selects by.
func findDenominators(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if a.call.AggFilter == nil {
			continue
		}
		for _, ref := range columnsOf(a.call.AggFilter) {
			_, name := columnName(ref)
			for _, c := range parts.conjuncts {
				if c.stage < 0 || !slices.ContainsFunc(columnsOf(c.node), func(r *pg_query.ColumnRef) bool {
					_, other := columnName(r)
					return other == name
				}) || !hasDivision(parts.node.TargetList) {
					continue
				}
				var f filler
				mark := f.put(exprHole(d.text(c.span), c.node))
				d.addProbe(parts, ProbeDenominator, c.stage, c.span, []string{name},
					fill("SELECT count(*), count(*) FILTER (WHERE "+mark+" IS NOT TRUE)"+d.from(&f, parts), f.holes...))
				return
			}
		}
	}
}

func hasDivision(nodes []*pg_query.Node) (has bool) {
	for _, n := range nodes {
		forEachNode(n, func(n *pg_query.Node) bool {
			e := n.GetAExpr()
			has = has || e != nil && len(e.Name) == 1 && e.Name[0].GetString_().GetSval() == "/"
			return !has
		})
	}
	return has
}

// findRemovedRows finds UNION in a subquery or WITH query whose rows are summed.
func findRemovedRows(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); name != "sum" && name != "avg" || a.call.AggDistinct {
			continue
		}
		for _, u := range d.unionsOf(parts, false) {
			left, right, ok := d.setPart(u.span, u.query.Op)
			if !ok {
				continue
			}
			l := queryHole(derivedQuery{d.text(left), u.query.Larg})
			r := queryHole(derivedQuery{d.text(right), u.query.Rarg})
			d.addProbe(&blockParts{id: u.id, scope: u.scope}, ProbeRemovedRows, -1, span{left.end, right.start}, nil,
				fill(`SELECT (SELECT count(*) FROM (@0) AS "a") + (SELECT count(*) FROM (@1) AS "b"), `+
					`(SELECT count(*) FROM (@2) AS "c")`, l, r, queryHole(derivedQuery{d.text(u.span), u.query})))
		}
		return
	}
}

// findDuplicates finds UNION ALL whose sides have rows in common that are counted.
func findDuplicates(d *stageDeriver, parts *blockParts) {
	for _, a := range parts.aggregates() {
		if functionName(a.call) != "count" || a.call.AggDistinct || a.call.AggFilter != nil {
			continue
		}
		for _, u := range d.unionsOf(parts, true) {
			columns := d.outputNames(u.query, nil)
			if len(columns) == 0 {
				continue
			}
			d.addProbe(&blockParts{id: parts.id, scope: u.scope}, ProbeDuplicates, -1,
				d.spanOr(a.node, parts.clause.targets), []string{columns[0]},
				fill(`SELECT count(@1), count(DISTINCT @1) FROM (@0) AS "u"`,
					queryHole(derivedQuery{d.text(u.span), u.query}), ownHole(quoteName(columns[0]))))
		}
		return
	}
}

// unionsOf returns the UNIONs whose rows a block reads, through blocks that pass each row on.
func (d *stageDeriver) unionsOf(parts *blockParts, isAll bool) (list []bareSet) {
	seen := map[int]bool{}
	var follow func(id int)
	follow = func(id int) {
		if id < 0 || seen[id] {
			return
		}
		seen[id] = true
		if u, ok := d.bareSets[id]; ok {
			if u.query.Op == pg_query.SetOperation_SETOP_UNION && u.query.All == isAll {
				list = append(list, u)
			}
			return
		}
		for _, p := range d.parts {
			if p.id == id && len(p.items) == 1 && p.items[0].left == nil && !p.isGrouped() &&
				len(p.node.DistinctClause) == 0 &&
				p.node.WhereClause == nil && p.node.LimitCount == nil {
				follow(p.items[0].child)
			}
		}
	}
	for _, item := range parts.tables() {
		follow(item.child)
	}
	return list
}
