package parse

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// findLabelOrders finds ORDER BY, MIN and MAX of a date as a text, which is in another order than the dates.
func findLabelOrders(d *stageDeriver, parts *blockParts) {
	check := func(n *pg_query.Node, s span, what string) {
		call := n.GetFuncCall()
		if functionName(call) != "to_char" || len(call.Args) != 2 {
			return
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{n, call.Args[0]})
		from := d.source(&f, parts)
		if !ok || callsIn([]*pg_query.Node{n}, isAggregate) {
			return
		}
		d.addProbe(parts, ProbeLabelOrder, -1, s, []string{d.textOf(n), what}, displaced(list[0], list[1], from, f))
	}
	sorted := func(key *pg_query.Node, s span) {
		check(key, s, "sorted")
		if item := d.tableOf(parts.tables(), key.GetColumnRef()); key.GetColumnRef() != nil && item != nil &&
			item.child >= 0 {
			d.labelOfChild(parts, item, key, s)
		}
	}
	if keys := parts.node.SortClause; len(keys) > 0 {
		sorted(parts.sortKey(keys[0]), d.spanOr(keys[0].GetSortBy().GetNode(), parts.clause.order))
	}
	for _, w := range parts.windowCalls() {
		if key := w.firstKey(); key != nil {
			sorted(key, d.spanOr(key, parts.clause.targets))
			d.labelOfWindow(parts, w)
		}
	}
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); (name == "max" || name == "min") && len(a.call.Args) == 1 {
			check(a.call.Args[0], d.spanOr(a.node, parts.clause.targets), "compared")
		}
	}
}

// displaced returns a query for the labels of times: how many there are, how many are at another place than their first
// times, how many have letters, and how many are also of times after the first one of the next label, as months without
// their year are.
func displaced(label, time, from string, f filler) derivedQuery {
	labels := fill("SELECT "+label+` AS "l", min(`+time+`) AS "d", max(`+time+`) AS "e"`+from+" GROUP BY 1", f.holes...)
	ranked := fill(`SELECT "l", "e", row_number() OVER (ORDER BY "l") AS "a", `+
		`row_number() OVER (ORDER BY "d") AS "b", lead("d") OVER (ORDER BY "d") AS "next" FROM (@0) AS "q"`,
		queryHole(labels))
	return fill(`SELECT count(*), count(*) FILTER (WHERE "a" <> "b"), count(*) FILTER (WHERE "l" ~ '[[:alpha:]]'), `+
		`count(*) FILTER (WHERE "e" >= "next") FROM (@0) AS "q"`, queryHole(ranked))
}

// labelOfChild adds the probe of a label that a subquery makes.
func (d *stageDeriver) labelOfChild(parts *blockParts, item *fromItem, key *pg_query.Node, s span) {
	inner := d.partsOf(item.child)
	if inner == nil {
		return
	}
	_, name := columnName(key.GetColumnRef())
	call := inner.targetOf(name).GetFuncCall()
	if functionName(call) != "to_char" || len(call.Args) != 2 {
		return
	}
	var f filler
	list, ok := d.marks(&f, []*pg_query.Node{inner.targetOf(name), call.Args[0]})
	from := d.source(&f, inner)
	if !ok || callsIn([]*pg_query.Node{inner.targetOf(name)}, isAggregate) {
		return
	}
	before := len(d.plan.Probes)
	d.addScoped(inner, ProbeLabelOrder, parts.id, s, displaced(list[0], list[1], from, f))
	if len(d.plan.Probes) > before {
		d.plan.Probes[before].Names = []string{d.textOf(inner.targetOf(name)), "sorted"}
	}
}

// labelOfWindow adds a probe for a window over the rows in the order of one column, whose result is in that of another:
// the row before is then not the one that is shown before, if each value of one belongs to one value of the other.
func (d *stageDeriver) labelOfWindow(parts *blockParts, w windowCall) {
	isOrdered := isNeighbour(w) || slices.Contains([]string{"sum", "avg", "count", "first_value", "last_value"},
		functionName(w.call))
	if key := w.firstKey(); !isOrdered || len(w.order) != 1 || key.GetColumnRef() == nil || parts.isGrouped() {
		return
	}
	for _, n := range parts.node.SortClause {
		shown := parts.sortKey(n)
		if shown.GetColumnRef() == nil || equalNodes(shown, w.firstKey()) {
			continue
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{w.firstKey(), shown})
		from := d.source(&f, parts)
		if !ok {
			continue
		}
		labels := fill("SELECT "+list[0]+` AS "l", min(`+list[1]+`) AS "d", max(`+list[1]+`) AS "e"`+from+
			" GROUP BY 1", f.holes...)
		ranked := fill(`SELECT "l", "d", "e", rank() OVER (ORDER BY "l") AS "a", rank() OVER (ORDER BY "d") AS "b", `+
			`count(*) OVER (PARTITION BY "d") AS "n" FROM (@0) AS "q"`, queryHole(labels))
		d.addProbe(parts, ProbeLabelOrder, -1, d.spanOr(w.firstKey(), parts.clause.targets),
			[]string{d.textOf(w.firstKey()), "sorted", functionName(w.call), d.textOf(shown)},
			fill(`SELECT count(*), count(*) FILTER (WHERE "a" <> "b"), `+
				`count(*) FILTER (WHERE "d" <> "e" OR "d" IS NULL OR "n" > 1), `+
				`coalesce(min(pg_typeof("l")::text), ''), coalesce(min(pg_typeof("d")::text), '') `+
				`FROM (@0) AS "q"`, queryHole(ranked)))
	}
}
