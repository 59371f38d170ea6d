package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The kinds of probes about windows.
const (
	ProbeFrame        = "default-frame"
	ProbeRunningTies  = "range-ties"
	ProbeNoPartition  = "window-without-partition"
	ProbeNeighbours   = "window-order-ties"
	ProbeGaps         = "window-over-gaps"
	ProbeRowTies      = "row-number-ties"
	ProbeRankGap      = "rank-skips"
	ProbeLateFilter   = "filter-after-window"
	ProbeNullFirst    = "null-first"
	ProbeLoneRows     = "window-of-one-row"
	ProbeDistinctRows = "distinct-of-numbered"
	ProbeRunningShare = "share-of-running-total"
	ProbeEarliest     = "earliest-kept"
)

// findFrames finds window functions whose frame ends at the last row with the same value of ORDER BY.
func findFrames(d *stageDeriver, parts *blockParts) {
	for _, w := range parts.windowCalls() {
		if w.frame || len(w.order) == 0 {
			continue
		}
		kind, frame := "", ""
		name := functionName(w.call)
		switch name {
		case "last_value", "nth_value":
			kind, frame = ProbeFrame, " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
		case "sum", "count", "avg":
			kind, frame = ProbeRunningTies, " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
		default:
			continue
		}
		var f filler
		arguments, ok1 := d.arguments(&f, w.call)
		over, ok2 := d.over(&f, w)
		from, ok3 := d.rows(&f, parts)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		inner := fill("SELECT "+name+arguments+" OVER ("+over+`) AS "a", `+name+arguments+" OVER ("+over+frame+
			`) AS "b"`+from, f.holes...)
		d.addProbe(parts, kind, -1, d.spanOr(w.node, parts.clause.targets), nil,
			fill(`SELECT count(*), count(*) FILTER (WHERE "a" IS DISTINCT FROM "b") FROM (@0) AS "q"`,
				queryHole(inner)))
	}
}

// findRunningShares finds x / SUM(x) OVER (... ORDER BY ...), which is a share of the rows so far.
func findRunningShares(d *stageDeriver, parts *blockParts) {
	windows := parts.windowCalls()
	for _, t := range parts.node.TargetList {
		forEachNode(t, func(n *pg_query.Node) bool {
			left, right, _, ok := operator(n, "/")
			if !ok {
				return n.GetSelectStmt() == nil
			}
			for _, w := range windows {
				if !hasNode(right, w.node) || functionName(w.call) != "sum" || w.frame || len(w.order) == 0 ||
					len(w.call.Args) != 1 || !containsEqual(left, w.call.Args[0]) {
					continue
				}
				var f filler
				arguments, ok1 := d.arguments(&f, w.call)
				over, ok2 := d.over(&f, w)
				partition, ok3 := d.marks(&f, w.partition)
				from, ok4 := d.rows(&f, parts)
				if !ok1 || !ok2 || !ok3 || !ok4 {
					continue
				}
				whole := ""
				if len(partition) > 0 {
					whole = "PARTITION BY " + strings.Join(partition, ", ")
				}
				inner := fill("SELECT sum"+arguments+" OVER ("+over+`) AS "a", sum`+arguments+" OVER ("+whole+`) AS `+
					`"b"`+from,
					f.holes...)
				d.addProbe(parts, ProbeRunningShare, -1, d.spanOr(w.node, parts.clause.targets), nil,
					fill(`SELECT count(*), count(*) FILTER (WHERE "a" IS DISTINCT FROM "b") FROM (@0) AS "q"`,
						queryHole(inner)))
			}
			return true
		})
	}
}

// hasNode reports whether an expression has a node in it.
func hasNode(n, wanted *pg_query.Node) (has bool) {
	forEachNode(n, func(x *pg_query.Node) bool {
		has = has || x == wanted
		return !has
	})
	return has
}

// containsEqual reports whether an expression has one in it that is equal to another.
func containsEqual(n, wanted *pg_query.Node) (has bool) {
	forEachNode(n, func(x *pg_query.Node) bool {
		has = has || equalNodes(x, wanted)
		return !has
	})
	return has
}

// isNeighbour reports whether a window function takes the value of a row before or after the current one.
func isNeighbour(w windowCall) bool {
	return slices.Contains([]string{"lag", "lead"}, functionName(w.call))
}

// findUnpartitioned finds windows that are ordered by a group first, and then by a time that begins again in each
// group: the row before the first one of a group is the last one of another.
func findUnpartitioned(d *stageDeriver, parts *blockParts) {
	for _, w := range parts.windowCalls() {
		isRunning := slices.Contains([]string{"sum", "count", "avg"}, functionName(w.call)) && !w.frame
		if len(w.partition) > 0 || len(w.order) < 2 || !isNeighbour(w) && !isRunning ||
			slices.ContainsFunc(parts.windowCalls(), func(o windowCall) bool { // the group before is looked at
				return isNeighbour(o) && len(o.call.Args) > 0 && equalNodes(o.call.Args[0], w.firstKey())
			}) {
			continue
		}
		var f filler
		keys, ok1 := d.marks(&f, []*pg_query.Node{w.order[0].GetSortBy().GetNode(), w.order[1].GetSortBy().GetNode()})
		over, ok2 := d.over(&f, w)
		from, ok3 := d.rows(&f, parts)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		inner := "SELECT " + keys[0] + ` AS "k", lag(` + keys[0] + ") OVER (" + over + `) AS "before", ` + keys[1] +
			` AS "t", lag(` + keys[1] + ") OVER (" + over + `) AS "t before", row_number() OVER (` + over +
			`) AS "n"` + from
		descends := `"t" <= "t before"`
		if w.order[1].GetSortBy().GetSortbyDir() == pg_query.SortByDir_SORTBY_DESC {
			descends = `"t" >= "t before"`
		}
		const changes = `"n" > 1 AND "k" IS DISTINCT FROM "before"`
		d.addFlagged(parts, ProbeNoPartition, -1, d.spanOr(w.node, parts.clause.targets),
			[]string{functionName(w.call), d.textOf(w.order[0].GetSortBy().GetNode())},
			map[string]bool{"neighbour": isNeighbour(w), "reference": d.isReferring(parts, w.firstKey())},
			fill(`SELECT count(*), count(*) FILTER (WHERE `+changes+`), count(*) FILTER (WHERE `+changes+` AND `+
				descends+`), coalesce(min(pg_typeof("k")::text), ''), coalesce(min(pg_typeof("t")::text), '') `+
				`FROM (@0) AS "q"`, queryHole(fill(inner, f.holes...))))
	}
}

// isReferring reports whether an expression is a column that refers to a row of a table.
func (d *stageDeriver) isReferring(parts *blockParts, n *pg_query.Node) bool {
	item := d.tableOf(parts.tables(), n.GetColumnRef())
	_, name := columnName(n.GetColumnRef())
	return n.GetColumnRef() != nil && item != nil && item.table != nil && isReferenced(item.table, name)
}

// findNeighbourTies finds LAG and LEAD over rows with the same values of ORDER BY and other values of the argument:
// which one is the row before is by chance.
func findNeighbourTies(d *stageDeriver, parts *blockParts) {
	for _, w := range parts.windowCalls() {
		if !isNeighbour(w) || len(w.order) == 0 || len(w.call.Args) == 0 {
			continue
		}
		var f filler
		value, ok1 := d.expression(w.call.Args[0])
		over, ok2 := d.over(&f, w)
		v := f.put(value)
		from, ok3 := d.rows(&f, parts)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		inner := "SELECT min(" + v + "::text) OVER (" + over + ` RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS "a", ` +
			"max(" + v + "::text) OVER (" + over + ` RANGE BETWEEN CURRENT ROW AND CURRENT ROW) AS "b"` + from
		d.addProbe(parts, ProbeNeighbours, -1, d.spanOr(w.node, parts.clause.targets),
			[]string{functionName(w.call), d.overText(w)},
			fill(`SELECT count(*), count(*) FILTER (WHERE "a" IS DISTINCT FROM "b") FROM (@0) AS "q"`,
				queryHole(fill(inner, f.holes...))))
	}
}

// overText returns the keys of ORDER BY of a window as a text.
func (d *stageDeriver) overText(w windowCall) string {
	var list []string
	for _, n := range w.order {
		list = append(list, d.textOf(n.GetSortBy().GetNode()))
	}
	return strings.Join(list, ", ")
}

// findGaps finds windows that take the row before for the day or month before, although some have no row: LAG, LEAD and
// frames of a number of rows.
func findGaps(d *stageDeriver, parts *blockParts) {
	for _, w := range parts.windowCalls() {
		isFramed := w.frame && d.isRowFrame(parts, w)
		if !isNeighbour(w) && !isFramed || len(w.order) != 1 {
			continue
		}
		key := w.order[0].GetSortBy().GetNode()
		if isNeighbour(w) && slices.ContainsFunc(w.call.Args, func(a *pg_query.Node) bool {
			return equalNodes(a, key)
		}) {
			continue // the time since the row before
		}
		var f filler
		over, ok1 := d.over(&f, w)
		h, ok2 := d.expression(key)
		k := f.put(h)
		from, ok3 := d.rows(&f, parts)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		inner := fill("SELECT "+k+` AS "k", lag(`+k+") OVER ("+over+`) AS "b"`+from, f.holes...)
		typed := fill("SELECT "+k+` AS "k"`+from, f.holes...)
		const months = `(extract(year FROM "k") * 12 + extract(month FROM "k") - extract(year FROM "b") * 12 - ` +
			`extract(month FROM "b"))`
		const days = `(extract(epoch FROM "k") - extract(epoch FROM "b"))`
		const steps = `count(*) FILTER (WHERE "b" IS NOT NULL), ` +
			`count(*) FILTER (WHERE extract(day FROM "k") <> 1), ` +
			`count(*) FILTER (WHERE extract(epoch FROM "k")::bigint % 86400 <> 0), ` +
			`coalesce(mode() WITHIN GROUP (ORDER BY abs(` + months + `)), 0)::bigint, ` +
			`count(*) FILTER (WHERE abs(` + months + `) > 1), ` +
			`coalesce(mode() WITHIN GROUP (ORDER BY abs(` + days + `)), 0)::bigint, ` +
			`count(*) FILTER (WHERE abs(` + days + `) > 86400), count(*) FILTER (WHERE ` + days + ` = 0)`
		d.addFlagged(parts, ProbeGaps, -1, d.spanOr(w.node, parts.clause.targets),
			[]string{functionName(w.call), d.textOf(key)}, map[string]bool{"neighbour": isNeighbour(w),
				"MONTH": d.cutTo(parts, key) == "MONTH",
				"DAY":   d.cutTo(parts, key) == "DAY"},
			fill(`SELECT coalesce(min(pg_typeof("k")::text), '') FROM (@0) AS "q"`, queryHole(typed)),
			fill("SELECT "+steps+` FROM (@0) AS "q"`, queryHole(inner)))
	}
}

// cutTo returns the unit to which an expression cuts a time, as date_trunc does, or "".
func (d *stageDeriver) cutTo(parts *blockParts, n *pg_query.Node) string {
	n = d.resolve(parts, n)
	for n.GetTypeCast() != nil {
		inner := n.GetTypeCast()
		if p, ok := partOf(inner.Arg); (!ok || !p.isTrunc) && isDateName(inner.TypeName) {
			return "DAY"
		}
		n = inner.Arg
	}
	if p, ok := partOf(n); ok && p.isTrunc {
		return p.field
	}
	return ""
}

// isRowFrame reports whether the frame of a window is a number of rows.
func (d *stageDeriver) isRowFrame(parts *blockParts, w windowCall) bool {
	def := w.call.Over
	if def.Name != "" {
		def = parts.namedWindow(def.Name)
	}
	const rows = 0x4 // FRAMEOPTION_ROWS
	_, isNumber := constantNumber(def.GetStartOffset())
	return def.GetFrameOptions()&rows != 0 && isNumber
}

// numbered is a condition on the number of a row that a window function of another block gives.
type numbered struct {
	condition conjunct
	item      *fromItem
	inner     *blockParts
	window    windowCall
	column    string
	number    int
	isEqual   bool
}

// numberedRows returns the conditions of WHERE that compare a number of ROW_NUMBER, RANK or DENSE_RANK.
func (d *stageDeriver) numberedRows(parts *blockParts) (list []numbered) {
	for _, c := range parts.conjuncts {
		left, right, name, ok := operator(c.node, "=", "<=", "<")
		number, isNumber := constantNumber(right)
		ref := left.GetColumnRef()
		if !ok || !isNumber || ref == nil {
			continue
		}
		item := d.itemFor(parts, ref)
		if item == nil || item.child < 0 {
			continue
		}
		inner := d.partsOf(item.child)
		if inner == nil {
			continue
		}
		_, column := columnName(ref)
		if name == "<" {
			number--
		}
		for _, w := range inner.windowCalls() {
			if w.isWhole && w.alias == column &&
				slices.Contains([]string{"row_number", "rank", "dense_rank"}, functionName(w.call)) {
				list = append(list, numbered{c, item, inner, w, column, number, name == "="})
			}
		}
	}
	return list
}

// findRowTies finds two effects of rows with equal values of ORDER BY: ROW_NUMBER keeps only some of them, and RANK
// skips the numbers after them.
func findRowTies(d *stageDeriver, parts *blockParts) {
	for _, n := range d.numberedRows(parts) {
		var f filler
		over, ok1 := d.over(&f, n.window)
		from, ok2 := d.rows(&f, n.inner)
		partition, ok3 := d.marks(&f, n.window.partition)
		if !ok1 || !ok2 || !ok3 || len(n.window.order) == 0 {
			continue
		}
		s := d.spanOr(n.window.node, n.inner.clause.targets)
		number := strconv.Itoa(n.number)
		switch functionName(n.window.call) {
		case "row_number":
			inner := "SELECT row_number() OVER (" + over + `) AS "n", rank() OVER (` + over + `) AS "r"` + from
			d.addScoped(n.inner, ProbeRowTies, n.inner.id, s,
				fill(`SELECT count(*), count(*) FILTER (WHERE "r" <= `+number+` AND "n" > `+number+`) FROM (@0) AS "q"`,
					queryHole(fill(inner, f.holes...))))
		case "rank":
			if !n.isEqual || n.number < 2 || n.window.isGroupedWindow(n.inner) {
				continue
			}
			key := "ROW(" + strings.Join(append(partition, "1"), ", ") + ")"
			inner := "SELECT " + key + ` AS "p", rank() OVER (` + over + `) AS "r", dense_rank() OVER (` + over +
				`) AS "d"` + from
			groups := fill(`SELECT bool_or("r" = `+number+`) AS "has", bool_or("d" = `+number+`) AS "may" FROM (@0) `+
				`AS `+
				`"q" GROUP BY "p"`, queryHole(fill(inner, f.holes...)))
			d.addScoped(n.inner, ProbeRankGap, parts.id, n.condition.span,
				fill(`SELECT count(*), count(*) FILTER (WHERE "may" AND NOT "has") FROM (@0) AS "g"`,
					queryHole(groups)))
		}
	}
}

// isGroupedWindow reports whether the rows of a window are groups whose keys it may not have in an expression.
func (w windowCall) isGroupedWindow(p *blockParts) bool { return p.isGrouped() && len(w.partition) > 0 }

// findLateFilters finds a condition after the choice of one row of each partition that the chosen row does not pass,
// where another row of the partition would.
func findLateFilters(d *stageDeriver, parts *blockParts) {
	if len(parts.items) == 0 {
		return
	}
	for _, n := range d.numberedRows(parts) {
		if len(n.window.partition) == 0 {
			continue
		}
		keys := d.outputsOf(n, n.window.partition)
		if keys == nil {
			continue
		}
		for _, c := range parts.conjuncts {
			if c.node == n.condition.node || !d.isOnly(parts, c.node, n.item) || d.readsOutputs(c.node, keys) ||
				d.readsOutputs(c.node, []string{n.column}) {
				continue
			}
			var f filler
			chosen, other := f.put(exprHole(d.text(n.condition.span), n.condition.node)),
				f.put(exprHole(d.text(c.span), c.node))
			list := ""
			for i, k := range keys {
				if i > 0 {
					list += ", "
				}
				list += quoteName(n.item.name) + "." + quoteName(k)
			}
			from := f.put(n.item.hole(d.clauseText))
			groups := fill("SELECT bool_or(("+chosen+" AND "+other+`) IS TRUE) AS "kept", bool_or(`+other+
				` IS TRUE) AS "any" FROM `+from+" GROUP BY "+list, f.holes...)
			d.addProbe(parts, ProbeLateFilter, c.stage, c.span,
				[]string{d.text(n.condition.span), functionName(n.window.call), strings.Join(keys, ", ")},
				fill(`SELECT count(*), count(*) FILTER (WHERE "any" AND NOT "kept") FROM (@0) AS "g"`,
					queryHole(groups)))
			break
		}
	}
}

// outputsOf returns the names of the columns that a block gives expressions, or nil if it does not show all of them.
func (d *stageDeriver) outputsOf(n numbered, expressions []*pg_query.Node) (names []string) {
	for _, e := range expressions {
		found := ""
		for _, t := range n.inner.node.TargetList {
			target := t.GetResTarget()
			name := target.GetName()
			if name == "" {
				name = figureName(target.GetVal())
			}
			if equalNodes(target.GetVal(), e) {
				found = name
			}
			if _, column := columnName(e.GetColumnRef()); name == "*" && column != "" {
				found = column
			}
		}
		if found == "" {
			return nil
		}
		names = append(names, found)
	}
	return names
}

// isOnly reports whether an expression has columns, and all of one table.
func (d *stageDeriver) isOnly(parts *blockParts, n *pg_query.Node, item *fromItem) bool {
	refs := columnsOf(n)
	return len(refs) > 0 && !slices.ContainsFunc(refs, func(ref *pg_query.ColumnRef) bool {
		return d.itemFor(parts, ref) != item
	})
}

// itemFor returns the table that has a column: the only one of FROM, if its columns are not known.
func (d *stageDeriver) itemFor(parts *blockParts, ref *pg_query.ColumnRef) *fromItem {
	tables := parts.tables()
	if qualifier, _ := columnName(ref); qualifier == "" && len(tables) == 1 && tables[0].columns == nil {
		return tables[0]
	}
	return d.tableOf(tables, ref)
}

func (d *stageDeriver) readsOutputs(n *pg_query.Node, names []string) bool {
	return slices.ContainsFunc(columnsOf(n), func(ref *pg_query.ColumnRef) bool {
		_, name := columnName(ref)
		return slices.Contains(names, name)
	})
}

// nullInPartition adds a probe for partitions whose first row by key DESC has NULL, although others have a value.
func (d *stageDeriver) nullInPartition(parts *blockParts, partition []*pg_query.Node, key *pg_query.Node, s span,
	stage int) {
	var f filler
	h, ok := d.expression(key)
	if !ok {
		return
	}
	k := f.put(h)
	list, ok := d.marks(&f, partition)
	if !ok {
		return
	}
	inner := "SELECT bool_or(" + k + ` IS NULL) AS "null", bool_or(` + k + ` IS NOT NULL) AS "value"` +
		d.source(&f, parts)
	if len(list) > 0 {
		inner += " GROUP BY " + strings.Join(list, ", ")
	}
	d.addFlagged(parts, ProbeNullFirst, stage, s, []string{d.textOf(key)},
		map[string]bool{"time": d.isTime(parts, key)},
		fill(`SELECT count(*), count(*) FILTER (WHERE "null" AND "value") FROM (@0) AS "g"`,
			queryHole(fill(inner, f.holes...))))
}

// findLoneRows finds aggregates and neighbours of windows each of whose partitions has one row.
func findLoneRows(d *stageDeriver, parts *blockParts) {
	for _, w := range parts.windowCalls() {
		name := functionName(w.call)
		if len(w.partition) == 0 || !isNeighbour(w) && !slices.Contains([]string{"sum", "avg", "count"}, name) {
			continue
		}
		var f filler
		partition, ok1 := d.marks(&f, w.partition)
		from, ok2 := d.rows(&f, parts)
		if !ok1 || !ok2 {
			continue
		}
		inner := "SELECT count(*) OVER (PARTITION BY " + strings.Join(partition, ", ") + `) AS "n"` + from
		d.addProbe(parts, ProbeLoneRows, -1, d.spanOr(w.node, parts.clause.targets), []string{name},
			fill(`SELECT count(*), count(*) FILTER (WHERE "n" > 1) FROM (@0) AS "q"`,
				queryHole(fill(inner, f.holes...))))
	}
}

// findNumberedDistinct finds SELECT DISTINCT of rows that a number makes different.
func findNumberedDistinct(d *stageDeriver, parts *blockParts) {
	if len(parts.node.DistinctClause) == 0 || !parts.clause.distinctOn.isEmpty() {
		return
	}
	for _, w := range parts.windowCalls() {
		if functionName(w.call) != "row_number" || !w.isWhole {
			continue
		}
		var others []*pg_query.Node
		for _, t := range parts.node.TargetList {
			if value := t.GetResTarget().GetVal(); value != w.node {
				others = append(others, value)
			}
		}
		var f filler
		list, ok1 := d.marks(&f, others)
		from, ok2 := d.rows(&f, parts)
		if !ok1 || !ok2 || len(list) == 0 {
			continue
		}
		inner := "SELECT ROW(" + strings.Join(list, ", ") + `) AS "r"` + from
		d.addProbe(parts, ProbeDistinctRows, parts.last, d.spanOr(w.node, parts.clause.targets), nil,
			fill(`SELECT count(*), count(DISTINCT "r") FROM (@0) AS "q"`, queryHole(fill(inner, f.holes...))))
	}
}
