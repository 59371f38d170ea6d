package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

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

// window is a definition of a window, with those that it is based on.
type window struct {
	partition, order []*pg_query.Node
}

// addWindows adds a part for each window: its partitions, and the rows whose order is not decided.
func (d *stageDeriver) addWindows(parts *blockParts) {
	last := d.lastOf(parts, stages.KindFrom, stages.KindJoin, stages.KindWhere, stages.KindGroup, stages.KindHaving,
		stages.KindProject)
	if last < 0 {
		return
	}
	type use struct {
		window
		text      span
		needsTies bool
	}
	var uses []*use
	parts.visit(func(n *pg_query.Node, at place) {
		call := n.GetFuncCall()
		if call == nil || call.Over == nil || at != inTarget && at != inOrder {
			return
		}
		s, ok := d.spanOf(n)
		if !ok {
			return
		}
		w := parts.window(call.Over)
		i := slices.IndexFunc(uses, func(u *use) bool {
			return slices.EqualFunc(u.partition, w.partition, equalNodes) &&
				slices.EqualFunc(u.order, w.order, equalNodes)
		})
		if i < 0 {
			i = len(uses)
			uses = append(uses, &use{window: w, text: s})
		}
		uses[i].needsTies = uses[i].needsTies || dependsOnTies(functionName(call), len(w.order) > 0)
	})
	for _, u := range uses {
		stage := d.addPart(parts, stages.KindWindow, "", u.text, last)
		if stage < 0 {
			return
		}
		q, ok := d.windowCounts(parts, u.window, u.needsTies)
		if !ok {
			d.stage(stage).Reason = stages.ReasonNotTraceable
			continue
		}
		values := []CountValue{{stage, CountPartitions}, {stage, CountOut}, {stage, CountLargest}}
		if u.needsTies {
			values = append(values, CountValue{stage, CountTied})
		}
		d.countPart(q, parts.scope, values...)
	}
}

// rankFunctions give rows that are equal in the order the same value by definition.
var rankFunctions = words("rank dense_rank percent_rank cume_dist")

// orderFunctions give a row a value by its place among the others, whether there is an order or not.
var orderFunctions = words("row_number ntile lag lead first_value last_value nth_value")

// dependsOnTies reports whether the values of a window function depend on rows that are equal in its order.
func dependsOnTies(function string, hasOrder bool) bool {
	return orderFunctions[function] || hasOrder && !rankFunctions[function]
}

// window returns the partition and the order of a window, with those of the window that it names.
func (p *blockParts) window(def *pg_query.WindowDef) (w window) {
	for depth := 0; def != nil && depth < 10; depth++ {
		if len(w.partition) == 0 {
			w.partition = def.PartitionClause
		}
		if len(w.order) == 0 {
			for _, s := range def.OrderClause {
				w.order = append(w.order, s.GetSortBy().GetNode())
			}
		}
		name := def.Refname
		if name == "" && def.PartitionClause == nil && def.OrderClause == nil {
			name = def.Name // OVER w
		}
		def = nil
		for _, n := range p.node.WindowClause {
			if name != "" && n.GetWindowDef().GetName() == name {
				def = n.GetWindowDef()
			}
		}
	}
	return w
}

// windowCounts returns a query for the partitions of a window, all rows, the largest partition, and rows that are equal
// to others of their partition in the order.
func (d *stageDeriver) windowCounts(parts *blockParts, w window, needsTies bool) (q derivedQuery, ok bool) {
	var f filler
	columns, partition, order := []string{}, []string{}, []string{}
	for prefix, list := range map[string][]*pg_query.Node{"p": w.partition, "o": w.order} {
		for i, n := range list {
			h, ok := d.expression(n)
			if !ok {
				return q, false
			}
			name := quoteName("stage " + prefix + strconv.Itoa(i))
			columns = append(columns, f.put(h)+" AS "+name)
			if prefix == "p" {
				partition = append(partition, name)
			} else {
				order = append(order, name)
			}
		}
	}
	if len(columns) == 0 {
		columns = []string{`true AS "stage p0"`}
	}
	from := ""
	if parts.isGrouped() {
		if from, ok = d.groups(&f, parts); !ok {
			return q, false
		}
		if parts.node.HavingClause != nil {
			from += " HAVING " + f.put(exprHole(d.text(parts.clause.having), parts.node.HavingClause))
		}
	} else {
		from = d.source(&f, parts)
	}
	by := func(names []string) string {
		if len(names) == 0 {
			return ""
		}
		return " GROUP BY " + strings.Join(names, ", ")
	}
	peers := `SELECT ` + strings.Join(append(slices.Clone(partition), `count(*) AS "rows"`), ", ") + ` FROM (SELECT ` +
		strings.Join(columns, ", ") + from + `) AS "stage rows"` + by(slices.Concat(partition, order))
	tied := ""
	if needsTies {
		tied = `, coalesce(sum("tied"), 0)::bigint`
	}
	return fill(`SELECT count(*) FILTER (WHERE "rows" > 0), coalesce(sum("rows"), 0)::bigint, `+
		`coalesce(max("rows"), 0)::bigint`+tied+` FROM (SELECT sum("rows") AS "rows", `+
		`sum("rows") FILTER (WHERE "rows" > 1) AS "tied" FROM (`+peers+`) AS "stage peers"`+by(partition)+
		`) AS "stage partitions"`, f.holes...), true
}

// addSubqueries adds a block for each subquery in an expression of a block. One that reads columns of the block has one
// stage: the rows for which it runs, and what it gives.
func (d *stageDeriver) addSubqueries(parts *blockParts, isView bool) {
	for i := range parts.conjuncts {
		c := &parts.conjuncts[i]
		d.eachSubquery(c.node, func(n *pg_query.Node) { d.addSubquery(parts, n, c, inWhere, isView) })
	}
	parts.visit(func(n *pg_query.Node, at place) {
		if n.GetSubLink() != nil && (at == inTarget || at == inHaving || at == inJoin) {
			d.addSubquery(parts, n, nil, at, isView)
		}
	})
}

func (d *stageDeriver) eachSubquery(m proto.Message, visit func(*pg_query.Node)) {
	forEachNode(m, func(n *pg_query.Node) bool {
		if n.GetSubLink() != nil {
			visit(n)
		}
		return n.GetSelectStmt() == nil
	})
}

// linkName returns the name of the block of a subquery in an expression.
func linkName(link *pg_query.SubLink) string {
	switch link.SubLinkType {
	case pg_query.SubLinkType_EXISTS_SUBLINK:
		return "EXISTS"
	case pg_query.SubLinkType_ANY_SUBLINK:
		if len(link.OperName) == 0 {
			return "IN"
		}
		return "ANY"
	case pg_query.SubLinkType_ALL_SUBLINK:
		return "ALL"
	case pg_query.SubLinkType_ARRAY_SUBLINK:
		return "ARRAY"
	}
	return "scalar"
}

// addSubquery adds the block of a subquery in an expression. c is the condition of WHERE that has it, or nil.
func (d *stageDeriver) addSubquery(parts *blockParts, n *pg_query.Node, c *conjunct, at place, isView bool) {
	link := n.GetSubLink()
	query := link.Subselect.GetSelectStmt()
	open := d.at(link.Location)
	for open >= 0 && open < len(d.tokens) && !d.is(open, pg_query.Token_ASCII_40) {
		open++
	}
	if query == nil || open < 0 || open >= len(d.tokens) {
		return
	}
	body := span{open + 1, d.closes[open]}
	if !d.isCorrelated(parts, query) {
		d.addBlock(parts.id, isView, func() int {
			return d.block(query, body, stages.BlockSubquery, linkName(link), parts.scope)
		})
		return
	}
	d.addBlock(parts.id, isView, func() int {
		id := len(d.plan.Blocks)
		from, to := d.lines(body)
		d.plan.Blocks = append(d.plan.Blocks, PlanBlock{
			ID: id, Parent: -1, Kind: stages.BlockCorrelated, Name: linkName(link), From: from, To: to, Last: -1,
		})
		d.order = append(d.order, id)
		whole := d.spanOr(n, body)
		stage := d.addStage(id, stages.KindSubquery, linkName(link), whole)
		d.plan.Blocks[id].Last = stage
		d.countSubquery(parts, n, c, at, stage, whole)
		return id
	})
}

// countSubquery adds the counts of a subquery that reads columns of the block around it.
func (d *stageDeriver) countSubquery(
	parts *blockParts, n *pg_query.Node, c *conjunct, at place, stage int, whole span,
) {
	isSame := c != nil && c.stage >= 0 && d.stage(c.stage).Kind == stages.KindWhere && isLink(c.node, n)
	if isSame {
		d.stage(stage).Same = c.stage
	}
	if at != inWhere && (at != inTarget || parts.isGrouped()) {
		d.stage(stage).Reason = stages.ReasonNotTraceable
		d.stage(stage).Message = "it runs for rows that no statement can count by themselves"
		return
	}
	f := filler{}
	value := f.put(exprHole(d.text(whole), n)) + ` AS "value"`
	rows := ""
	if at == inTarget {
		rows += d.source(&f, parts)
	} else {
		rows += d.from(&f, parts)
		word := " WHERE "
		for i := range parts.conjuncts {
			other := &parts.conjuncts[i]
			isBefore := other.stage >= 0 && other.stage < c.stage
			if other != c && isBefore {
				rows += word + f.put(exprHole(d.text(other.span), other.node))
				word = " AND "
			}
		}
	}
	columns := ""
	for _, ref := range d.outerColumns(parts, n.GetSubLink().Subselect.GetSelectStmt()) {
		if h, ok := d.expression(ref); ok {
			columns += f.put(h) + ", "
		}
	}
	d.sample(stage, fill("SELECT "+columns+value+rows, f.holes...), parts.scope)
	if isSame {
		return
	}
	// OFFSET keeps the planner from computing the subquery once for each count.
	rows = "SELECT " + value + rows + " OFFSET 0"
	columns = `count(*), count(*) FILTER (WHERE "value" IS NOT NULL), count(*) FILTER (WHERE "value" IS NULL)`
	if isBooleanLink(n.GetSubLink()) {
		columns = `count(*), count(*) FILTER (WHERE "value"), count(*) FILTER (WHERE "value" IS NULL)`
	}
	d.countPart(fill("SELECT "+columns+" FROM ("+rows+`) AS "stage rows"`, f.holes...), parts.scope,
		CountValue{stage, CountIn}, CountValue{stage, CountOut}, CountValue{stage, CountNull})
}

func isBooleanLink(link *pg_query.SubLink) bool {
	return slices.Contains([]pg_query.SubLinkType{
		pg_query.SubLinkType_EXISTS_SUBLINK, pg_query.SubLinkType_ANY_SUBLINK, pg_query.SubLinkType_ALL_SUBLINK,
	}, link.SubLinkType)
}

// isLink reports whether a condition is a subquery that is true or false, or NOT of it.
func isLink(condition, link *pg_query.Node) bool {
	if b := condition.GetBoolExpr(); b != nil && b.Boolop == pg_query.BoolExprType_NOT_EXPR {
		condition = b.Args[0]
	}
	return condition == link && isBooleanLink(link.GetSubLink())
}

// isCorrelated reports whether a subquery may read a column of the block around it.
func (d *stageDeriver) isCorrelated(parts *blockParts, query *pg_query.SelectStmt) bool {
	return len(d.outerColumns(parts, query)) > 0
}

// outerColumns returns the columns of a subquery that may be those of the block around it. One of its own that is among
// them changes no count.
func (d *stageDeriver) outerColumns(parts *blockParts, query *pg_query.SelectStmt) (refs []*pg_query.Node) {
	outer := parts.tables()
	var names, columns []string
	isKnown := true
	forEachNode(&pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}, func(n *pg_query.Node) bool {
		switch v := n.Node.(type) {
		case *pg_query.Node_RangeVar:
			names = append(names, v.RangeVar.Relname, v.RangeVar.Alias.GetAliasname())
			table := d.table(v.RangeVar)
			isWith := v.RangeVar.Schemaname == "" && parts.scope.lookup(v.RangeVar.Relname) >= 0
			if isWith || table == nil || len(v.RangeVar.Alias.GetColnames()) > 0 {
				isKnown = false
				break
			}
			for _, c := range table.Columns {
				columns = append(columns, c.Name)
			}
		case *pg_query.Node_RangeSubselect:
			names, isKnown = append(names, v.RangeSubselect.Alias.GetAliasname()), false
		case *pg_query.Node_RangeFunction:
			names, isKnown = append(names, v.RangeFunction.Alias.GetAliasname()), false
		case *pg_query.Node_RangeTableFunc, *pg_query.Node_CommonTableExpr:
			isKnown = false
		}
		return true
	})
	isOuter := func(qualifier, name string, t *fromItem) bool {
		if qualifier != "" {
			return qualifier == t.name && !slices.Contains(names, qualifier)
		}
		return name != "*" && !slices.Contains(columns, name) &&
			(name == t.name && !slices.Contains(names, name) || slices.Contains(t.columns, name) ||
				isKnown && len(t.columns) == 0)
	}
	forEachNode(query, func(n *pg_query.Node) bool {
		if ref := n.GetColumnRef(); ref != nil {
			qualifier, name := columnName(ref)
			if slices.ContainsFunc(outer, func(t *fromItem) bool { return isOuter(qualifier, name, t) }) &&
				!slices.ContainsFunc(refs, func(known *pg_query.Node) bool { return equalNodes(known, n) }) {
				refs = append(refs, n)
			}
		}
		return true
	})
	return refs
}

// addView adds the block of a view, with the stages of its own query. Their lines are that of the item of FROM, and
// ViewLine is the line in the definition.
func (d *stageDeriver) addView(parts *blockParts, item *fromItem) {
	if known, ok := d.views[item.table]; ok {
		d.stage(item.stage).Reads = known
		return
	}
	definition := strings.TrimRight(strings.TrimSpace(item.table.Definition), ";")
	tree, err := pg_query.Parse(definition)
	if err != nil || len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil {
		return
	}
	text, err := newClauseText(definition)
	if err != nil {
		return
	}
	from, to := d.lines(item.span)
	first := len(d.plan.Stages)
	firstBlock := len(d.plan.Blocks)
	outer := d.clauseText
	d.clauseText = text
	id := d.addBlock(parts.id, true, func() int {
		query := tree.Stmts[0].Stmt.GetSelectStmt()
		if volatileCall(query) == "" {
			return d.block(query, span{0, len(text.tokens)}, stages.BlockView, item.table.Name, nil)
		}
		id := len(d.plan.Blocks)
		d.plan.Blocks = append(d.plan.Blocks, PlanBlock{
			ID: id, Parent: -1, Kind: stages.BlockView, Name: item.table.Name, Last: -1, Reason: stages.ReasonVolatile,
		})
		d.order = append(d.order, id)
		return id
	})
	d.clauseText = outer
	if id < 0 {
		return
	}
	d.plan.Blocks[id].Definition = definition
	for i := firstBlock; i < len(d.plan.Blocks); i++ {
		d.plan.Blocks[i].From, d.plan.Blocks[i].To = from, to
	}
	for i := first; i < len(d.plan.Stages); i++ {
		s := d.stage(i)
		s.ViewLine, s.From, s.To = s.From, from, to
	}
	d.views[item.table] = id
	d.stage(item.stage).Reads = id
}
