package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"glasshouse/sandbox/stages"
)

// block adds the block of a query that fills a span, after those of its WITH queries and subqueries. It returns the
// index of the block.
func (d *stageDeriver) block(query *pg_query.SelectStmt, s span, kind, name string, sc scope) int {
	s = d.unwrap(s)
	from, to := d.lines(s)
	id := len(d.plan.Blocks)
	d.plan.Blocks = append(d.plan.Blocks,
		PlanBlock{ID: id, Parent: -1, Kind: kind, Name: name, From: from, To: to, Last: -1})
	reason := d.fillBlock(id, query, s, sc)
	if reason != "" {
		d.plan.Blocks[id].Reason = reason
	}
	d.order = append(d.order, id)
	return id
}

func (d *stageDeriver) adopt(parent, child int) { d.plan.Blocks[child].Parent = parent }

// fillBlock adds the stages of a block. It returns a reason if the block has none.
func (d *stageDeriver) fillBlock(id int, query *pg_query.SelectStmt, s span, sc scope) (reason string) {
	whole := derivedQuery{d.text(s), query}
	d.origins[id] = query
	if query.WithClause != nil {
		body := d.find(s, pg_query.Token_SELECT, pg_query.Token_VALUES, pg_query.Token_TABLE)
		level := &withLevel{source: d.clauseText, owner: query.WithClause, queries: d.splitWith(span{s.start, body})}
		if len(level.queries) != len(query.WithClause.Ctes) {
			return stages.ReasonNotTraceable
		}
		if query.WithClause.Recursive && readsForward(query.WithClause) {
			return stages.ReasonNotTraceable
		}
		for i, n := range query.WithClause.Ctes {
			cte := n.GetCommonTableExpr()
			before := *level
			before.visible = i
			child := d.withBlock(cte, level.queries[i], query.WithClause.Recursive, slices.Concat(sc, scope{&before}),
				level)
			d.adopt(id, child)
			level.blocks = append(level.blocks, child)
		}
		level.visible = len(level.queries)
		s.start = body
		query = withoutWith(query)
		sc = slices.Concat(sc, scope{level})
		whole = derivedQuery{d.text(s), query}
	}
	switch {
	case query.Op != pg_query.SetOperation_SETOP_NONE:
		return d.setBlock(id, query, s, sc)
	case len(query.ValuesLists) > 0:
		stage := d.addStage(id, stages.KindFrom, "VALUES", s)
		d.count(fill(`SELECT count(*) FROM (@0) AS "stage rows"`, queryHole(whole)), sc, false,
			CountValue{stage, CountOut})
		d.sample(stage, whole, sc)
		d.plan.Blocks[id].Last = stage
		return ""
	}
	q, ok := d.splitSelect(s)
	if !ok {
		return stages.ReasonNotTraceable
	}
	return d.selectBlock(id, query, q, sc)
}

// readsForward reports whether a WITH query reads one that is defined after it, which RECURSIVE allows.
func readsForward(with *pg_query.WithClause) bool {
	var later []string
	for _, n := range slices.Backward(with.Ctes) {
		if readsAny(n.GetCommonTableExpr().Ctequery, later) {
			return true
		}
		later = append(later, n.GetCommonTableExpr().Ctename)
	}
	return false
}

// withoutWith returns a query without its WITH clause. Both have the same nodes in them.
func withoutWith(query *pg_query.SelectStmt) *pg_query.SelectStmt {
	bare := &pg_query.SelectStmt{}
	query.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Name() != "with_clause" {
			bare.ProtoReflect().Set(field, value)
		}
		return true
	})
	return bare
}

// withBlock adds the block of a WITH query. A recursive one has the number of all its rows only.
func (d *stageDeriver) withBlock(
	cte *pg_query.CommonTableExpr, q withQuery, isRecursive bool, sc scope, level *withLevel,
) int {
	query := cte.Ctequery.GetSelectStmt()
	if query != nil && !(isRecursive && readsAny(cte.Ctequery, []string{cte.Ctename})) {
		return d.block(query, q.body, stages.BlockCTE, cte.Ctename, sc)
	}
	id := len(d.plan.Blocks)
	from, to := d.lines(q.body)
	d.plan.Blocks = append(d.plan.Blocks,
		PlanBlock{ID: id, Parent: -1, Kind: stages.BlockCTE, Name: cte.Ctename, From: from, To: to, Last: -1})
	d.order = append(d.order, id)
	stage := d.addStage(id, stages.KindCTE, cte.Ctename, q.body)
	d.plan.Blocks[id].Last = stage
	with := *level
	with.visible = sc[len(sc)-1].visible + 1 // this one, too
	with.blocks = append(slices.Clone(level.blocks), id)
	all := fill("SELECT * FROM " + quoteName(cte.Ctename))
	sc = slices.Concat(sc[:len(sc)-1], scope{&with})
	d.count(fill("SELECT count(*) FROM "+quoteName(cte.Ctename)), sc, false, CountValue{stage, CountOut})
	d.sample(stage, all, sc)
	return id
}

// setBlock adds the blocks of the sides of a set operation, and a stage for each operation.
func (d *stageDeriver) setBlock(
	id int, query *pg_query.SelectStmt, s span, sc scope,
) (reason string) {
	tail := d.find(s, pg_query.Token_ORDER, pg_query.Token_LIMIT, pg_query.Token_OFFSET, pg_query.Token_FETCH,
		pg_query.Token_FOR)
	bare := withoutWith(query)
	bare.SortClause, bare.LimitCount, bare.LimitOffset, bare.LockingClause = nil, nil, nil, nil
	bare.LimitOption = parsedSelect("SELECT 1").LimitOption
	d.bareSets[id] = bareSet{span{s.start, tail}, id, bare, sc}
	last := d.setStage(id, bare, span{s.start, tail}, sc)
	if last < 0 {
		return stages.ReasonNotTraceable
	}
	d.sets[len(d.sets)-1].whole = &derivedQuery{d.text(s), query}
	last = d.tailStages(id, query, s, span{tail, s.end}, last, sc)
	d.plan.Blocks[id].Last = last
	return ""
}

// setStage adds the sides of a set operation and its stage, which it returns, or -1.
func (d *stageDeriver) setStage(id int, query *pg_query.SelectStmt, s span, sc scope) int {
	left, right, ok := d.setPart(s, query.Op)
	if !ok {
		return -1
	}
	var sides [2]int
	for i, side := range []struct {
		node *pg_query.SelectStmt
		span
	}{{query.Larg, left}, {query.Rarg, right}} {
		inner := d.unwrap(side.span)
		isPlain := side.node.SortClause == nil && side.node.LimitCount == nil && side.node.LimitOffset == nil &&
			side.node.WithClause == nil
		if side.node.Op != pg_query.SetOperation_SETOP_NONE && isPlain {
			sides[i] = d.setStage(id, side.node, inner, sc)
			if sides[i] < 0 {
				return -1
			}
			continue
		}
		child := d.block(side.node, side.span, stages.BlockArm, "", sc)
		d.adopt(id, child)
		sides[i] = d.plan.Blocks[child].Last
	}
	stage := d.addStage(id, stages.KindSet, d.setName(query), s)
	st := d.stage(stage)
	st.Left, st.Right = sides[0], sides[1]
	rows := derivedQuery{d.text(s), query}
	d.count(fill(`SELECT count(*) FROM (@0) AS "stage rows"`, queryHole(rows)), sc, false, CountValue{stage, CountOut})
	d.sample(stage, rows, sc)
	d.sets = append(d.sets, &setParts{
		span: s, block: id, stage: stage, left: sides[0], right: sides[1], rows: rows, scope: sc,
	})
	return stage
}

func (d *stageDeriver) setName(query *pg_query.SelectStmt) string {
	name := map[pg_query.SetOperation]string{
		pg_query.SetOperation_SETOP_UNION: "UNION", pg_query.SetOperation_SETOP_INTERSECT: "INTERSECT",
		pg_query.SetOperation_SETOP_EXCEPT: "EXCEPT",
	}[query.Op]
	if query.All {
		name += " ALL"
	}
	return name
}

// tailStages adds the stages of ORDER BY and LIMIT, and returns the last stage of the block.
func (d *stageDeriver) tailStages(
	id int, query *pg_query.SelectStmt, all, tail span, last int, sc scope,
) int {
	whole := derivedQuery{d.text(all), query}
	limit := d.find(tail, pg_query.Token_LIMIT, pg_query.Token_OFFSET, pg_query.Token_FETCH, pg_query.Token_FOR)
	if tail.isEmpty() {
		return last
	}
	if len(query.SortClause) > 0 {
		stage := d.addStage(id, stages.KindOrder, "", span{tail.start, limit})
		d.stage(stage).Left, d.stage(stage).Follows = last, last
		ordered := proto.CloneOf(query)
		ordered.LimitCount, ordered.LimitOffset = nil, nil
		ordered.LimitOption = parsedSelect("SELECT 1").LimitOption
		d.sample(stage, derivedQuery{d.text(span{all.start, limit}), ordered}, sc)
		last = stage
	}
	if query.LimitCount != nil || query.LimitOffset != nil {
		stage := d.addStage(id, stages.KindLimit, "", span{limit, tail.end})
		d.stage(stage).Left = last
		d.count(fill(`SELECT count(*) FROM (@0) AS "stage rows"`, queryHole(whole)), sc, false,
			CountValue{stage, CountOut})
		d.sample(stage, whole, sc)
		last = stage
	}
	return last
}

// partial is a SELECT with the clauses up to some stage: those that a caller asks for, of its text and its tree.
type partial struct {
	group, having, distinct bool
	more                    string // a further column
}

// partialSelect returns a SELECT without its later clauses.
func (d *stageDeriver) partialSelect(query *pg_query.SelectStmt, q selectClauses, p partial) derivedQuery {
	node := proto.CloneOf(query)
	node.WithClause, node.SortClause, node.LimitCount, node.LimitOffset, node.LockingClause = nil, nil, nil, nil, nil
	node.LimitOption = parsedSelect("SELECT 1").LimitOption
	var out strings.Builder
	out.WriteString("SELECT ")
	switch {
	case !p.distinct || len(node.DistinctClause) == 0:
		node.DistinctClause = nil
	case q.distinctOn.isEmpty():
		out.WriteString("DISTINCT ")
	default:
		out.WriteString("DISTINCT ON (" + d.text(q.distinctOn) + ") ")
	}
	out.WriteString(d.text(q.targets))
	if p.more != "" {
		out.WriteString(", (" + d.text(q.having) + ") AS " + quoteName(p.more))
		node.TargetList = append(node.TargetList, pg_query.MakeResTargetNodeWithNameAndVal(p.more, node.HavingClause,
			-1))
	}
	if !q.from.isEmpty() {
		out.WriteString(" FROM " + d.text(q.from))
	}
	if !q.where.isEmpty() {
		out.WriteString(" WHERE " + d.text(q.where))
	}
	if !q.group.isEmpty() {
		out.WriteString(" GROUP BY ")
		if node.GroupDistinct {
			out.WriteString("DISTINCT ")
		}
		out.WriteString(d.text(q.group))
	}
	if q.group.isEmpty() && query.HavingClause != nil { // HAVING alone makes one group, and so does its stage before
		out.WriteString(" GROUP BY ()")
		node.GroupClause = parsedSelect("SELECT GROUP BY ()").GroupClause
	}
	if p.having && !q.having.isEmpty() {
		out.WriteString(" HAVING " + d.text(q.having))
	} else {
		node.HavingClause = nil
	}
	if !q.window.isEmpty() {
		out.WriteString(" WINDOW " + d.text(q.window))
	}
	return derivedQuery{out.String(), node}
}

// selectBlock adds the stages of a SELECT.
func (d *stageDeriver) selectBlock(
	id int, query *pg_query.SelectStmt, q selectClauses, sc scope,
) (reason string) {
	if hasForeignRows(query) {
		return stages.ReasonNotTraceable
	}
	parts := &blockParts{id: id, node: query, clause: q, scope: sc, last: -1, firstDraft: len(d.drafts)}
	d.parts = append(d.parts, parts)
	last := -1
	if query.WhereClause != nil {
		parts.conjuncts = d.splitWhere(query.WhereClause, q.where)
	}
	if len(query.FromClause) > 0 {
		if last = d.fromStages(parts); last < 0 {
			return stages.ReasonNotTraceable
		}
	}
	if query.WhereClause != nil {
		if last = d.whereStages(parts, last); last < 0 {
			return stages.ReasonNotTraceable
		}
	}
	isGrouped := len(query.GroupClause) > 0 || query.HavingClause != nil || callsIn(query.TargetList, isAggregate)
	count := func(stage int, rows derivedQuery) {
		d.stage(stage).Left = last
		d.count(fill(`SELECT count(*) FROM (@0) AS "stage rows"`, queryHole(rows)), sc, false,
			CountValue{stage, CountOut})
		d.sample(stage, rows, sc)
		last = stage
	}
	if isGrouped {
		s := q.group
		if s.isEmpty() {
			s = q.targets
		}
		stage := d.addStage(id, stages.KindGroup, "", s)
		if query.HavingClause == nil {
			count(stage, d.partialSelect(query, q, partial{group: true}))
		} else {
			having := d.addStage(id, stages.KindHaving, "", q.having)
			d.stage(stage).Left, d.stage(having).Left = last, stage
			rows := d.partialSelect(query, q, partial{group: true, more: "stage having"})
			d.count(fill(`SELECT count(*), count(*) FILTER (WHERE "stage having"), `+
				`count(*) FILTER (WHERE "stage having" IS NULL) FROM (@0) AS "stage rows"`, queryHole(rows)), sc, false,
				CountValue{stage, CountOut}, CountValue{having, CountOut}, CountValue{having, CountNull})
			d.sample(stage, d.partialSelect(query, q, partial{group: true}), sc)
			d.sample(having, d.partialSelect(query, q, partial{group: true, having: true}), sc)
			last = having
		}
	}
	if last < 0 || callsIn(query.TargetList, isSetReturning) {
		count(d.addStage(id, stages.KindProject, "", q.targets),
			d.partialSelect(query, q, partial{group: true, having: true}))
	}
	if len(query.DistinctClause) > 0 {
		s := q.distinctOn
		if s.isEmpty() {
			s = q.targets
		}
		count(d.addStage(id, stages.KindDistinct, "", s),
			d.partialSelect(query, q, partial{group: true, having: true, distinct: true}))
	}
	last = d.tailStages(id, query, q.all, q.tail, last, sc)
	d.plan.Blocks[id].Last, parts.last = last, last
	return ""
}

// whereStages adds a stage for each condition of WHERE except for those that join a list in FROM. It returns the last
// one.
func (d *stageDeriver) whereStages(parts *blockParts, last int) int {
	q := parts.clause
	conjuncts := parts.conjuncts
	var rest []int
	for i := range conjuncts {
		if conjuncts[i].stage < 0 {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return last
	}
	// A later condition is not computed where an earlier one is not true: x > 0 AND y/x > 3 would fail.
	columns, guard := []string{"count(*)"}, "true"
	var holes []hole
	var values []CountValue
	for n, i := range rest {
		stage := d.addStage(parts.id, stages.KindWhere, "", conjuncts[i].span)
		conjuncts[i].stage = stage
		d.stage(stage).Left = last
		if n == 0 && last >= 0 {
			values = append(values, CountValue{last, CountOut})
		} else if n == 0 {
			values = append(values, CountValue{stage, CountIn})
		}
		mark := "@" + strconv.Itoa(n)
		holes = append(holes, exprHole(d.text(conjuncts[i].span), conjuncts[i].node))
		for _, is := range []string{"IS TRUE", "IS UNKNOWN"} {
			columns = append(columns, "count(*) FILTER (WHERE CASE WHEN "+guard+" THEN "+mark+" "+is+" END)")
		}
		values = append(values, CountValue{stage, CountOut}, CountValue{stage, CountNull})
		// Nested, so that a condition is computed only after those before it.
		guard = "CASE WHEN " + guard + " THEN " + mark + " END"
		last = stage
	}
	from, where := " FROM @"+strconv.Itoa(len(holes)), ""
	if len(parts.node.FromClause) == 0 {
		from = ""
	}
	holes = append(holes, listHole(d.text(q.from), parts.node.FromClause))
	for i := range conjuncts {
		if slices.Contains(rest, i) {
			continue
		}
		where += " AND @" + strconv.Itoa(len(holes))
		holes = append(holes, exprHole(d.text(conjuncts[i].span), conjuncts[i].node))
	}
	where = strings.Replace(where, " AND ", " WHERE ", 1)
	// The first value is that of FROM, too, so FROM is counted alone only if the conditions fail.
	d.drafts = slices.Insert(d.drafts, parts.firstDraft, draft{
		fill("SELECT "+strings.Join(columns, ", ")+from+where, holes...), parts.scope, values, CountsRows,
	})
	// All conditions together may be fast where each row of FROM is too much.
	var f filler
	whole := "SELECT count(*)" + d.source(&f, parts)
	d.count(fill(whole, f.holes...), parts.scope, false, CountValue{last, CountOut})
	if d.samples && from != "" {
		for n, i := range rest {
			condition := where
			for m := range n + 1 {
				if condition += " AND @" + strconv.Itoa(m); where == "" && m == 0 {
					condition = " WHERE @0"
				}
			}
			d.sample(conjuncts[i].stage, fill("SELECT *"+from+condition, holes...), parts.scope)
		}
	}
	return last
}

// splitWhere returns the conditions that AND connects in WHERE.
func (d *stageDeriver) splitWhere(where *pg_query.Node, s span) []conjunct {
	nodes := andArgs(where)
	parts := d.splitConjuncts(s, len(nodes))
	if len(parts) != len(nodes) {
		return []conjunct{{s, where, -1}}
	}
	list := make([]conjunct, len(nodes))
	for i := range nodes {
		list[i] = conjunct{parts[i], nodes[i], -1}
	}
	return list
}

// splitConjuncts splits a condition into so many parts as its tree has. A part in parentheses may have several.
func (d *stageDeriver) splitConjuncts(s span, n int) []span {
	parts := d.splitAnd(d.unwrap(s))
	for i := 0; i < len(parts) && len(parts) < n; {
		inner := d.unwrap(parts[i])
		more := d.splitAnd(inner)
		if inner == parts[i] || len(more) == 1 {
			i++
			continue
		}
		parts = slices.Replace(parts, i, i+1, more...)
	}
	return parts
}
