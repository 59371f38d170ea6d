package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox/stages"
)

// addParts adds what is in the stages of blocks: the queries of views and of expressions as blocks of their own, and
// filters, windows and grouping sets as stages that are parts of another. Their counts are of less importance than all
// others. isView says that the blocks are those of a view, whose own views are not divided.
func (d *stageDeriver) addParts(list []*blockParts, isView bool) {
	for _, parts := range list {
		d.addFilters(parts)
		d.addGroupingSets(parts)
		d.addWindows(parts)
		d.addSubqueries(parts, isView)
		if isView {
			continue
		}
		for _, item := range parts.tables() {
			if item.table != nil && item.table.Definition != "" && item.child < 0 {
				d.addView(parts, item)
			}
		}
	}
}

// addPart adds a stage that is a part of another, unless the plan is full. It returns its ID, or -1.
func (d *stageDeriver) addPart(parts *blockParts, kind, name string, s span, of int) int {
	if len(d.plan.Stages) >= maxStages {
		d.plan.HasMoreParts = true
		return -1
	}
	stage := d.addStage(parts.id, kind, name, s)
	d.stage(stage).PartOf = of
	return stage
}

// countPart adds a statement of counts of a part.
func (d *stageDeriver) countPart(q derivedQuery, s scope, values ...CountValue) {
	d.drafts = append(d.drafts, draft{q, s, values, CountsPart})
}

// addBlock adds a block that make adds, before its parent. If the plan becomes too large, it stays as it was, and the
// result is -1.
func (d *stageDeriver) addBlock(parent int, isView bool, add func() int) int {
	nStages, nBlocks, nDrafts := len(d.plan.Stages), len(d.plan.Blocks), len(d.drafts)
	order, parts, sets := d.order, d.parts, d.sets
	d.order, d.parts = nil, nil
	id := add()
	added, inner := d.order, d.parts
	d.order, d.parts, d.sets = order, parts, sets
	if len(d.plan.Stages) > maxStages {
		d.plan.Stages, d.plan.Blocks = d.plan.Stages[:nStages], d.plan.Blocks[:nBlocks]
		d.drafts = d.drafts[:nDrafts]
		d.plan.HasMoreParts = true
		return -1
	}
	for i := nDrafts; i < len(d.drafts); i++ {
		if d.drafts[i].class != CountsMatches {
			d.drafts[i].class = CountsPart
		}
	}
	d.adopt(parent, id)
	d.order = slices.Insert(d.order, slices.Index(d.order, parent), added...)
	d.addParts(inner, isView)
	return id
}

// lastOf returns the last stage of a block of some kinds, without parts of stages, or -1.
func (d *stageDeriver) lastOf(parts *blockParts, kinds ...string) int {
	for i, s := range slices.Backward(d.plan.Stages) {
		if s.Block == parts.id && s.PartOf < 0 && slices.Contains(kinds, s.Kind) {
			return i
		}
	}
	return -1
}

// addFilters adds a part for each FILTER of an aggregate: the rows that pass, and the groups in which none does.
func (d *stageDeriver) addFilters(parts *blockParts) {
	group := d.lastOf(parts, stages.KindGroup)
	if group < 0 {
		return
	}
	var known []*pg_query.Node
	parts.visit(func(n *pg_query.Node, at place) {
		call := n.GetFuncCall()
		if call == nil || call.AggFilter == nil || call.Over != nil || at != inTarget && at != inHaving ||
			slices.ContainsFunc(known, func(k *pg_query.Node) bool { return equalNodes(k, call.AggFilter) }) {
			return
		}
		known = append(known, call.AggFilter)
		var f filler
		whole, hasSpan := d.spanOf(n)
		condition, ok := d.expression(call.AggFilter)
		if !ok || !hasSpan {
			return
		}
		stage := d.addPart(parts, stages.KindFilter, "", whole, group)
		if stage < 0 {
			return
		}
		mark := f.put(condition)
		values := []CountValue{{stage, CountIn}, {stage, CountOut}, {stage, CountNull}}
		columns := "count(*), count(*) FILTER (WHERE " + mark + "), count(*) FILTER (WHERE " + mark + " IS NULL)"
		from, ok := d.groups(&f, parts)
		if !ok {
			f = filler{}
			f.put(condition)
			d.countPart(fill("SELECT "+columns+d.source(&f, parts), f.holes...), parts.scope, values...)
			return
		}
		d.countPart(fill(`SELECT coalesce(sum("rows"), 0)::bigint, coalesce(sum("pass"), 0)::bigint, `+
			`coalesce(sum("null"), 0)::bigint, count(*) FILTER (WHERE "pass" = 0) FROM (SELECT count(*) AS "rows", `+
			`count(*) FILTER (WHERE `+mark+`) AS "pass", count(*) FILTER (WHERE `+mark+` IS NULL) AS "null"`+from+
			`) AS "stage rows"`, f.holes...), parts.scope, append(values, CountValue{stage, CountEmptyGroups})...)
		d.sampleFilter(parts, stage, call.AggFilter)
	})
}

// sampleFilter gives a filter a sample: of some groups, their keys, their rows, and those that pass.
func (d *stageDeriver) sampleFilter(parts *blockParts, stage int, condition *pg_query.Node) {
	keys, ok := d.groupKeys(parts)
	if !ok || !d.samples {
		return
	}
	var f filler
	var columns []string
	for _, key := range keys {
		h, ok := d.expression(key)
		if !ok {
			return
		}
		columns = append(columns, f.put(h))
	}
	h, ok := d.expression(condition)
	if !ok {
		return
	}
	columns = append(columns, `count(*) AS "rows"`, "count(*) FILTER (WHERE "+f.put(h)+`) AS "pass"`)
	from, ok := d.groups(&f, parts)
	if ok {
		d.sample(stage, fill("SELECT "+strings.Join(columns, ", ")+from, f.holes...), parts.scope)
	}
}

// maxGroupingSets bounds the grouping sets of a block that are counted, and maxGroupingKeys their keys: GROUPING takes
// 31.
const (
	maxGroupingSets = 16
	maxGroupingKeys = 31
)

// addGroupingSets adds a part for each grouping set: its groups.
func (d *stageDeriver) addGroupingSets(parts *blockParts) {
	group := d.lastOf(parts, stages.KindGroup)
	isSets := func(n *pg_query.Node) bool { return n.GetGroupingSet() != nil }
	if group < 0 || !slices.ContainsFunc(parts.node.GroupClause, isSets) {
		return
	}
	var keys []*pg_query.Node
	namesTargets := false // by their names or numbers
	indexOf := func(n *pg_query.Node) int {
		if meant := d.groupKey(parts, n); meant != nil && meant != n {
			n, namesTargets = meant, true
		}
		i := slices.IndexFunc(keys, func(k *pg_query.Node) bool { return equalNodes(k, n) })
		if i < 0 {
			i = len(keys)
			keys = append(keys, n)
		}
		return i
	}
	sets := []uint32{0} // by their keys, as bits
	for _, n := range parts.node.GroupClause {
		var product []uint32
		options := groupingSets(n, indexOf)
		for _, a := range sets {
			for _, b := range options {
				if len(product) <= maxGroupingSets && !slices.Contains(product, a|b) {
					product = append(product, a|b)
				}
			}
		}
		sets = product
	}
	if len(sets) == 0 || len(sets) > maxGroupingSets || len(keys) == 0 || len(keys) > maxGroupingKeys {
		return
	}
	var f filler
	var marks, texts []string
	for _, key := range keys {
		s, ok := d.spanOf(key)
		if !ok {
			return
		}
		marks = append(marks, f.put(exprHole(d.text(s), key)))
		texts = append(texts, d.named(d.text(s)))
	}
	distinct := ""
	if parts.node.GroupDistinct {
		distinct = "DISTINCT "
	}
	targets := ""
	if namesTargets {
		targets = f.put(listHole(d.text(parts.clause.targets), parts.node.TargetList)) + ", "
	}
	rows := "SELECT " + targets + "GROUPING(" + strings.Join(marks, ", ") + `) AS "stage set"` +
		d.source(&f, parts) + " GROUP BY " + distinct +
		f.put(listHole(d.text(parts.clause.group), parts.node.GroupClause))
	var columns []string
	var values []CountValue
	for _, set := range sets {
		var names []string
		without := 0 // GROUPING has a bit for each key that is not in the set, the first one highest
		for i := range keys {
			if set&(1<<i) != 0 {
				names = append(names, texts[i])
			} else {
				without |= 1 << (len(keys) - 1 - i)
			}
		}
		stage := d.addPart(parts, stages.KindGroupingSet, "("+strings.Join(names, ", ")+")", parts.clause.group, group)
		if stage < 0 {
			return
		}
		columns = append(columns, `count(*) FILTER (WHERE "stage set" = `+strconv.Itoa(without)+")")
		values = append(values, CountValue{stage, CountOut})
	}
	d.countPart(fill("SELECT "+strings.Join(columns, ", ")+` FROM (`+rows+`) AS "stage rows"`, f.holes...),
		parts.scope, values...)
}

// groupingSets returns the sets that an item of GROUP BY stands for. indexOf gives each key a bit.
func groupingSets(n *pg_query.Node, indexOf func(*pg_query.Node) int) []uint32 {
	g := n.GetGroupingSet()
	if g == nil {
		return []uint32{keyBits(n, indexOf)}
	}
	var parts []uint32
	for _, item := range g.Content {
		parts = append(parts, keyBits(item, indexOf))
	}
	switch g.Kind {
	case pg_query.GroupingSetKind_GROUPING_SET_EMPTY:
		return []uint32{0}
	case pg_query.GroupingSetKind_GROUPING_SET_ROLLUP:
		sets := []uint32{0}
		all := uint32(0)
		for _, p := range parts {
			all |= p
			sets = append(sets, all)
		}
		slices.Reverse(sets)
		return sets
	case pg_query.GroupingSetKind_GROUPING_SET_CUBE:
		sets := []uint32{0}
		for _, p := range parts {
			for _, s := range slices.Clone(sets) {
				sets = append(sets, s|p)
			}
			if len(sets) > 2*maxGroupingSets {
				break
			}
		}
		slices.Reverse(sets)
		return sets
	}
	var sets []uint32
	for _, item := range g.Content {
		sets = append(sets, groupingSets(item, indexOf)...)
	}
	return sets
}

// keyBits returns the keys of an item of a grouping set, which may be a list in parentheses.
func keyBits(n *pg_query.Node, indexOf func(*pg_query.Node) int) (bits uint32) {
	items := []*pg_query.Node{n}
	switch v := n.Node.(type) {
	case *pg_query.Node_RowExpr:
		items = v.RowExpr.Args
		if v.RowExpr.RowFormat == pg_query.CoercionForm_COERCE_EXPLICIT_CALL { // ROW(a, b) is one key
			items = []*pg_query.Node{n}
		}
	case *pg_query.Node_List:
		items = v.List.Items
	case *pg_query.Node_GroupingSet:
		return 0
	}
	for _, item := range items {
		if item != n && item.GetRowExpr() != nil {
			bits |= keyBits(item, indexOf)
		} else if i := indexOf(item); i <= maxGroupingKeys {
			bits |= 1 << i
		}
	}
	return bits
}
