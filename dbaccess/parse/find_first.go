package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// findNullsFirst finds ORDER BY ... DESC that puts NULL before all values where only the first rows are kept.
func findNullsFirst(d *stageDeriver, parts *blockParts) {
	sorts := parts.node.SortClause
	limit, hasLimit := constantNumber(parts.node.LimitCount)
	switch {
	case len(sorts) == 0:
	case len(parts.node.DistinctClause) == 0 && hasLimit && isNullsFirst(sorts[0]):
		key := parts.sortKey(sorts[0])
		var f filler
		h, ok := d.expression(key)
		mark := f.put(h)
		from, ok2 := d.rows(&f, parts)
		if key == nil || !ok || !ok2 {
			break
		}
		inner := fill("SELECT "+mark+` AS "k"`+from+" ORDER BY 1 DESC LIMIT "+strconv.Itoa(limit), f.holes...)
		d.addFlagged(parts, ProbeNullFirst, parts.last, parts.clause.tail,
			[]string{d.textOf(sorts[0].GetSortBy().Node)},
			map[string]bool{"limit": true, "time": d.isTime(parts, key)},
			fill(`SELECT count(*), count(*) FILTER (WHERE "k" IS NULL) FROM (@0) AS "q"`, queryHole(inner)))
	case !parts.clause.distinctOn.isEmpty() && len(sorts) > len(parts.node.DistinctClause) && !parts.isGrouped() &&
		isNullsFirst(sorts[len(parts.node.DistinctClause)]):
		at := len(parts.node.DistinctClause)
		d.nullInPartition(parts, parts.node.DistinctClause, parts.sortKey(sorts[at]), parts.clause.tail, parts.last)
	}
	for _, w := range parts.windowCalls() {
		if len(w.order) == 0 || !isNullsFirst(w.order[0]) || parts.isGrouped() {
			continue
		}
		isRank := slices.Contains([]string{"rank", "dense_rank", "percent_rank", "cume_dist"}, functionName(w.call))
		if functionName(w.call) == "first_value" || d.isChosen(parts, w) || isRank {
			d.nullInPartition(parts, w.partition, w.order[0].GetSortBy().Node,
				d.spanOr(w.node, parts.clause.targets), -1)
		}
	}
}

// isNullsFirst reports whether an item of ORDER BY has NULL first because of DESC alone.
func isNullsFirst(n *pg_query.Node) bool {
	sort := n.GetSortBy()
	return sort.GetSortbyDir() == pg_query.SortByDir_SORTBY_DESC &&
		sort.GetSortbyNulls() == pg_query.SortByNulls_SORTBY_NULLS_DEFAULT
}

// sortKey returns the expression of an item of ORDER BY: that of the column that it names by its number or alias.
func (p *blockParts) sortKey(n *pg_query.Node) *pg_query.Node {
	key := n.GetSortBy().GetNode()
	if i, ok := constantNumber(key); ok {
		if i < 1 || i > len(p.node.TargetList) {
			return nil
		}
		return p.node.TargetList[i-1].GetResTarget().GetVal()
	}
	if qualifier, name := columnName(key.GetColumnRef()); qualifier == "" && name != "" {
		for _, t := range p.node.TargetList {
			if target := t.GetResTarget(); target.GetName() == name {
				return target.GetVal()
			}
		}
	}
	return key
}

// findEarliest finds the choice of one row of each group by a time whose order is ascending because nothing else is
// written.
func findEarliest(d *stageDeriver, parts *blockParts) {
	isDefault := func(n *pg_query.Node) bool {
		return n.GetSortBy().GetSortbyDir() == pg_query.SortByDir_SORTBY_DEFAULT
	}
	if at := len(parts.node.DistinctClause); !parts.clause.distinctOn.isEmpty() && len(parts.node.SortClause) > at &&
		!parts.isGrouped() && isDefault(parts.node.SortClause[at]) {
		key := parts.sortKey(parts.node.SortClause[at])
		d.earliest(parts, parts.node.DistinctClause, key,
			d.spanOr(parts.node.SortClause[at].GetSortBy().GetNode(), parts.clause.order), parts.last)
	}
	for _, n := range d.numberedRows(parts) {
		if n.number == 1 && len(n.window.order) > 0 && isDefault(n.window.order[0]) && !n.inner.isGrouped() {
			d.earliest(n.inner, n.window.partition, n.window.firstKey(),
				d.spanOr(n.window.firstKey(), n.inner.clause.targets), -1)
		}
	}
}

// earliest adds a probe for the groups that have a row later than the one that is kept, the first by a time.
func (d *stageDeriver) earliest(parts *blockParts, partition []*pg_query.Node, key *pg_query.Node, s span, stage int) {
	var f filler
	list, ok1 := d.marks(&f, partition)
	h, ok2 := d.expression(key)
	if !ok1 || !ok2 || len(list) == 0 {
		return
	}
	k := f.put(h)
	inner := fill("SELECT min("+k+`) AS "a", max(`+k+`) AS "b"`+d.source(&f, parts)+" GROUP BY "+
		strings.Join(list, ", "), f.holes...)
	d.addProbe(parts, ProbeEarliest, stage, s, []string{d.textOf(key), d.textOf(partition[0])},
		fill(`SELECT count(*), count(*) FILTER (WHERE "a" < "b"), coalesce(min(pg_typeof("a")::text), '') `+
			`FROM (@0) AS "g"`, queryHole(inner)))
}

// isChosen reports whether another block keeps the rows with the first number that a window function gives.
func (d *stageDeriver) isChosen(parts *blockParts, w windowCall) bool {
	for _, p := range d.parts {
		for _, n := range d.numberedRows(p) {
			if n.inner == parts && n.window.node == w.node {
				return true
			}
		}
	}
	return false
}
