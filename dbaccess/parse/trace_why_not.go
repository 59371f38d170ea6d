package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox/stages"
)

// WhyNotPlan has the statements that follow rows through the stages of a query.
type WhyNotPlan struct {
	Stages    *StagePlan // Counts are in the order of the stages, and count the followed rows only
	Columns   []TracedColumn
	HasSets   bool // the rows of one side of a set operation may be lost, and those of the other not
	IsInMain  bool // the rows are followed up to the result
	NotLooked []string
}

// TracedColumn is a column whose value is given.
type TracedColumn struct {
	Name      string // as it was asked for
	Meaning   string // the column or expression of the statement
	Parameter string // that has the value
}

// condition is a condition for a row to be followed.
type condition struct {
	hole
	needs []*fromItem // it can be computed once all of them are joined
}

// followed are rows of a block that are followed.
type followed struct {
	rowSet
	usable []rowColumn // by column
}

// whyNotTracer follows rows from the tables to the result.
type whyNotTracer struct {
	*tracer
	plan       *WhyNotPlan
	nulls      []string            // columns whose value is NULL
	conditions map[int][]condition // by block
	groups     map[int][]hole      // conditions for the groups of a block
	followed   map[int]followed    // by block
}

// deriveWhyNot returns the statements that follow the rows whose columns have given values through the stages of a
// query. A column is "name" or "item.name". The query has $n in place of :name.
func deriveWhyNot(numbered string, names []string, q *Request) (*WhyNotPlan, *Fault) {
	t, bad := newTracer(numbered, names, q.Tables)
	if bad != nil {
		return nil, bad
	}
	w := &whyNotTracer{
		tracer: t, plan: &WhyNotPlan{Stages: t.stageDeriver.plan}, conditions: map[int][]condition{},
		groups: map[int][]hole{}, followed: map[int]followed{}, nulls: q.Nulls,
	}
	w.plan.HasSets = len(w.sets) > 0
	for _, name := range q.Columns {
		if bad := w.resolve(name); bad != nil {
			return nil, bad
		}
	}
	for _, id := range w.order {
		if p := w.byBlock[id]; p != nil {
			w.followSelect(p)
		} else if len(w.arms(id)) > 0 {
			w.followSet(id)
		}
	}
	_, w.plan.IsInMain = w.followed[0]
	for _, d := range w.drafts {
		statement, err := w.deriveWithSets(w.inScope(d.derivedQuery, d.scope, false))
		if err != nil {
			w.note("line " + strconv.Itoa(w.stage(d.values[0].Stage).From) + ": " + err.Error())
			continue
		}
		w.plan.Stages.Counts = append(w.plan.Stages.Counts, CountStatement{statement, d.values, d.class})
	}
	w.plan.NotLooked = w.notLooked
	return w.plan, nil
}

// candidate is a column of a table that a name may mean.
type candidate struct {
	parts *blockParts
	item  *fromItem
	depth int // the number of blocks between it and the result
	isKey bool
}

// resolve finds what a column means: one of the result, or else one of a table, the nearest to the result.
func (w *whyNotTracer) resolve(name string) *Fault {
	at := slices.IndexFunc(w.rowsOf(0), func(c rowColumn) bool { return c.name == name })
	if at >= 0 {
		return w.addOutput(name, 0, at)
	}
	qualifier, bare := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		qualifier, bare = name[:i], name[i+1:]
	}
	list := w.candidates(qualifier, bare)
	if len(list) == 0 {
		return newFault("unknown-column", "the tables and the result of the statement have no column %s", name)
	}
	nearest := slices.MinFunc(list, func(a, b candidate) int { return a.depth - b.depth }).depth
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.depth != nearest })
	if keys := slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return !c.isKey }); len(keys) > 0 {
		list = keys
	}
	if len(list) > 1 {
		var names []string
		for _, c := range list {
			names = append(names, c.item.name+"."+bare)
		}
		return newFault("ambiguous-name", "%s may be %s: name one of them", name, strings.Join(names, " or "))
	}
	c := list[0]
	w.addColumn(name, c.item.name+"."+bare, c.parts.id, column(c.item.name, bare), []*fromItem{c.item})
	w.noteOthers(c)
	return nil
}

// noteOthers notes the other uses of a table, through which its row may reach the result, too.
func (w *whyNotTracer) noteOthers(c candidate) {
	for _, other := range w.parts {
		for _, f := range other.tables() {
			if f != c.item && f.table != nil && f.table == c.item.table {
				w.note(f.table.Name + " in line " + strconv.Itoa(w.firstLine(f.span)) + ", which has the row, too")
			}
		}
	}
}

// addOutput adds the condition that a column of a block, which is of the result or passed on to it, has a given value.
func (w *whyNotTracer) addOutput(name string, block, at int) *Fault {
	p := w.byBlock[block]
	if p == nil {
		for _, arm := range w.arms(block) {
			if bad := w.addOutput(name, arm, at); bad != nil {
				return bad
			}
		}
		return nil
	}
	o := w.outputs(p)[at]
	if ref := o.node().GetColumnRef(); ref != nil {
		// NULL may come from an outer join, so the column of its nullable side is not followed.
		f := w.tableOf(p.tables(), ref)
		if f != nil && f.child >= 0 && !isNullable(p.items, f) && w.isFollowable(f.child) {
			_, bare := columnName(ref)
			inner := slices.IndexFunc(w.columnsOf(p, f), func(c rowColumn) bool { return c.name == bare })
			if inner >= 0 {
				return w.addOutput(name, f.child, inner)
			}
		}
	}
	switch {
	case o.isOfRow:
		w.addColumn(name, w.meaning(o), block, o.expression, w.needsOf(p, o.node()))
	case p.isGrouped() && !callsIn([]*pg_query.Node{o.node()}, isWindow):
		parameter, place := w.parameter()
		w.plan.Columns = append(w.plan.Columns, TracedColumn{name, w.meaning(o), parameter})
		w.groups[block] = append(w.groups[block], expressionOf("@0 IS NOT DISTINCT FROM @1", o.expression, place))
	default:
		return notTraceable("%s depends on other rows of the result", name)
	}
	return nil
}

// isFollowable reports whether a block has known stages, or is made of such blocks.
func (w *whyNotTracer) isFollowable(block int) bool {
	if w.byBlock[block] != nil {
		return true
	}
	arms := w.arms(block)
	return len(arms) > 0 && !slices.ContainsFunc(arms, func(arm int) bool { return !w.isFollowable(arm) })
}

func (w *whyNotTracer) firstLine(s span) int {
	from, _ := w.lines(s)
	return from
}

// candidates returns the columns of tables with a name.
func (w *whyNotTracer) candidates(qualifier, name string) (list []candidate) {
	for _, p := range w.parts {
		for _, f := range p.tables() {
			if f.table == nil || f.name == "" {
				continue
			}
			table := f.table.Name
			if qualifier != "" && qualifier != f.name && qualifier != table && qualifier != f.table.Schema+"."+table {
				continue
			}
			if slices.ContainsFunc(w.columnsOf(p, f), func(c rowColumn) bool { return c.name == name }) {
				isKey := len(f.table.PrimaryKey) == 1 && f.table.PrimaryKey[0] == name
				list = append(list, candidate{p, f, w.depthOf(p.id), isKey})
			}
		}
	}
	return list
}

// depthOf returns the number of blocks between a block and the result.
func (w *whyNotTracer) depthOf(block int) (depth int) {
	for b := w.stageDeriver.plan.Blocks[block]; b.Parent >= 0; b = w.stageDeriver.plan.Blocks[b.Parent] {
		if b.Kind != stages.BlockArm {
			depth++
		}
	}
	return depth
}

// addColumn adds the condition that an expression of a block has a given value.
func (w *whyNotTracer) addColumn(name, meaning string, block int, e hole, needs []*fromItem) {
	parameter, place := w.parameter()
	w.plan.Columns = append(w.plan.Columns, TracedColumn{name, meaning, parameter})
	p := w.byBlock[block]
	isOuter := func(f *fromItem) bool { return isNullable(p.items, f) }
	if slices.Contains(w.nulls, name) && slices.ContainsFunc(needs, isOuter) {
		needs = p.tables() // an outer join makes NULLs
	}
	w.conditions[block] = append(w.conditions[block], condition{
		expressionOf("@0 IS NOT DISTINCT FROM @1", e, place), needs,
	})
}

func isWindow(f *pg_query.FuncCall) bool { return f.Over != nil || isSetReturning(f) }

func (w *whyNotTracer) meaning(o output) string {
	text, err := nameParameters(o.expression.text, w.names)
	if err != nil {
		return o.expression.text
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
}

// needsOf returns the items of FROM that an expression reads, all if that is not known.
func (w *whyNotTracer) needsOf(p *blockParts, n *pg_query.Node) (needs []*fromItem) {
	all := p.tables()
	for _, ref := range columnsOf(n) {
		f := w.tableOf(all, ref)
		if f == nil {
			return all
		}
		if !slices.Contains(needs, f) {
			needs = append(needs, f)
		}
	}
	return needs
}

// conditionsFor returns the conditions that can be computed over some items, and those that need more than one side.
func (w *whyNotTracer) conditionsFor(p *blockParts, items []*fromItem) (list []hole) {
	for _, c := range w.conditions[p.id] {
		hasAll := !slices.ContainsFunc(c.needs, func(f *fromItem) bool { return !slices.Contains(items, f) })
		if hasAll && len(c.needs) > 0 || len(c.needs) == 0 && len(items) == len(p.tables()) {
			list = append(list, c.hole)
		}
	}
	return list
}

// followSelect follows rows through a SELECT.
func (w *whyNotTracer) followSelect(p *blockParts) {
	var used []int
	for _, f := range p.tables() {
		from, ok := w.followed[f.child]
		if f.child < 0 || !ok {
			continue
		}
		if slices.Contains(used, f.child) {
			w.note("the row through " + stages.Clip(w.text(f.span)) + ", the second use of the same query")
			continue
		}
		used = append(used, f.child)
		w.followFrom(p, f, from)
	}
	if len(w.conditions[p.id])+len(w.groups[p.id]) == 0 {
		return
	}
	w.followItems(p)
	w.followWhere(p)
	w.followRest(p)
}

// followFrom adds the condition that an item of FROM has a followed row of the block that it reads.
func (w *whyNotTracer) followFrom(p *blockParts, f *fromItem, from followed) {
	columns := w.columnsOf(p, f)
	if len(columns) != from.columns {
		w.note("the row through " + f.name + ", whose columns are not known")
		return
	}
	var pairs []pair
	for i, c := range columns {
		if c.isComparable && from.usable[i].isComparable {
			pairs = append(pairs, pair{column(f.name, c.name), i})
		}
	}
	if len(pairs) == 0 {
		w.note("the row through " + f.name + ", of which no column can be compared")
		return
	}
	w.conditions[p.id] = append(w.conditions[p.id], condition{isAmong(pairs, from.rowSet), []*fromItem{f}})
}

// followItems counts the followed rows of the items of FROM and after each join.
func (w *whyNotTracer) followItems(p *blockParts) {
	var before []*fromItem
	var spans []span
	for i, item := range p.items {
		w.followItem(p, item)
		spans = append(spans, item.span)
		before = append(before, item.tables()...)
		if i == 0 {
			continue
		}
		stage := w.listStage(p, item)
		conditions := w.conditionsFor(p, before)
		if stage < 0 || len(conditions) == 0 {
			continue
		}
		list := span{spans[0].start, item.end}
		holes := []hole{listHole(w.text(list), p.node.FromClause[:i+1])}
		for _, c := range p.conjuncts {
			if c.stage >= 0 && c.stage <= stage && !w.isWhere(c.stage) {
				holes = append(holes, exprHole(w.text(c.span), c.node))
			}
		}
		w.countRows(p, stage, append(holes, conditions...))
	}
}

// isWhere reports whether a stage is a condition of WHERE, and no join of the list of FROM.
func (w *whyNotTracer) isWhere(stage int) bool { return w.stage(stage).Kind == stages.KindWhere }

// listStage returns the stage in which an item of the list of FROM joins those before it, or -1.
func (w *whyNotTracer) listStage(p *blockParts, item *fromItem) int {
	for id, s := range w.stageDeriver.plan.Stages {
		isOfJoin := slices.ContainsFunc(p.joins, func(j *fromItem) bool { return j.stage == id })
		if s.Block == p.id && s.Kind == stages.KindJoin && s.Right == item.stage && !isOfJoin {
			return id
		}
	}
	return -1
}

// countRows counts the rows of an item, the first hole, for which conditions, the others, are true.
func (w *whyNotTracer) countRows(p *blockParts, stage int, holes []hole) {
	all := allOf(holes[1:]...)
	w.count(fill("SELECT count(*) FROM @0 WHERE @1", holes[0], all), p.scope, false, CountValue{stage, CountOut})
}

// followItem counts the followed rows of an item of FROM, and before that those of the items in it.
func (w *whyNotTracer) followItem(p *blockParts, item *fromItem) {
	if item.left != nil {
		w.followItem(p, item.left)
		w.followItem(p, item.right)
	}
	conditions := w.conditionsFor(p, item.tables())
	if len(conditions) == 0 || item.isLateral {
		return
	}
	w.countRows(p, item.stage, append([]hole{item.hole(w.clauseText)}, conditions...))
	if item.left != nil {
		w.followNullKeys(p, item)
	}
}

// followNullKeys counts the followed rows of the sides of a join whose key is NULL.
func (w *whyNotTracer) followNullKeys(p *blockParts, item *fromItem) {
	left, right := w.joinKeys(item)
	for _, side := range []struct {
		item *fromItem
		keys []hole
		what CountKind
	}{{item.left, left, CountNullLeft}, {item.right, right, CountNullRight}} {
		conditions := w.conditionsFor(p, side.item.tables())
		if len(conditions) == 0 || len(side.keys) == 0 ||
			slices.ContainsFunc(side.item.tables(), func(f *fromItem) bool { return f.isLateral }) {
			continue
		}
		holes := []hole{side.item.hole(w.clauseText), allOf(conditions...)}
		isNull := ""
		for i, key := range side.keys {
			if i > 0 {
				isNull += " OR "
			}
			isNull += "@" + strconv.Itoa(i+2) + " IS NULL"
			holes = append(holes, key)
		}
		w.count(fill("SELECT count(*) FILTER (WHERE "+isNull+") FROM @0 WHERE @1", holes...), p.scope, true,
			CountValue{item.stage, side.what})
	}
}

// followWhere counts the followed rows after each condition of WHERE. Like whereStages, it computes a condition only
// where those before it are true.
func (w *whyNotTracer) followWhere(p *blockParts) {
	conditions := w.conditionsFor(p, p.tables())
	if len(conditions) == 0 || len(p.node.FromClause) == 0 {
		return
	}
	holes := []hole{listHole(w.text(p.clause.from), p.node.FromClause)}
	columns, guard := []string{"count(*)"}, "true"
	var values []CountValue
	for _, c := range p.conjuncts {
		if c.stage < 0 || !w.isWhere(c.stage) {
			conditions = append(conditions, exprHole(w.text(c.span), c.node))
			continue
		}
		mark := "@" + strconv.Itoa(len(holes))
		holes = append(holes, exprHole(w.text(c.span), c.node))
		if len(values) == 0 {
			values = append(values, CountValue{c.stage, CountIn})
		}
		for _, is := range []string{"IS TRUE", "IS UNKNOWN"} {
			columns = append(columns, "count(*) FILTER (WHERE CASE WHEN "+guard+" THEN "+mark+" "+is+" END)")
		}
		values = append(values, CountValue{c.stage, CountOut}, CountValue{c.stage, CountNull})
		guard = "CASE WHEN " + guard + " THEN " + mark + " END"
	}
	if len(values) == 0 {
		return
	}
	holes = append(holes, allOf(conditions...))
	w.count(fill("SELECT "+strings.Join(columns, ", ")+" FROM @0 WHERE @"+strconv.Itoa(len(holes)-1), holes...),
		p.scope, false, values...)
}

// followRest counts the followed rows of a block after its groups, HAVING, DISTINCT and LIMIT, and keeps them for the
// block that reads it.
func (w *whyNotTracer) followRest(p *blockParts) {
	all := w.conditionsFor(p, p.tables())
	if len(all) < len(w.conditions[p.id]) {
		return
	}
	var mark hole
	switch {
	case p.isGrouped():
		var parts []hole
		if len(all) > 0 {
			parts = append(parts, expressionOf("coalesce(bool_or(@0), false)", allOf(all...)))
		}
		mark = allOf(append(parts, w.groups[p.id]...)...)
	default:
		mark = allOf(all...)
	}
	outputs := w.outputs(p)
	isDistinct := len(p.node.DistinctClause) > 0 && p.clause.distinctOn.isEmpty()
	name := whyName(len(outputs))
	mark = hole{mark.text + " AS " + name, []*pg_query.Node{
		pg_query.MakeResTargetNodeWithNameAndVal("why "+strconv.Itoa(len(outputs)), mark.nodes[0], -1),
	}, nil}
	count := func(kind string, rows derivedQuery) {
		q := fill("SELECT count(*) FILTER (WHERE "+name+`) FROM (@0) AS "why marked"`, queryHole(rows))
		for id, s := range w.stageDeriver.plan.Stages {
			if s.Block == p.id && s.Kind == kind {
				w.count(q, p.scope, false, CountValue{id, CountOut})
			}
		}
	}
	r := rebuilt{more: []hole{mark}, isGrouped: true}
	if p.isGrouped() {
		w.followGroups(p, mark, name)
	}
	last := w.rebuild(p, r)
	if !isDistinct {
		r.distinct = true
		if len(p.node.DistinctClause) > 0 {
			r.order = true // DISTINCT ON takes the first row
			last = w.rebuild(p, r)
			count(stages.KindDistinct, last)
		}
		if p.node.LimitCount != nil || p.node.LimitOffset != nil {
			r.tail = true
			last = w.rebuild(p, r)
			count(stages.KindLimit, last)
		}
	}
	if len(outputs) == 0 {
		w.followed[p.id] = followed{}
		return
	}
	// All rows of the block, with the mark as their last column.
	columns := len(outputs) + 1
	marked := fill("SELECT "+numberedNames(len(outputs))+` FROM (@0) AS "why marked" (`+numberedNames(columns)+
		") WHERE "+name, queryHole(last))
	f := followed{rowSet: w.newSet(w.inScope(marked, p.scope, false), len(outputs))}
	for _, o := range outputs {
		f.usable = append(f.usable, o.rowColumn)
	}
	if isDistinct && (p.node.LimitCount != nil || p.node.LimitOffset != nil) {
		limited := w.rebuild(p, rebuilt{isGrouped: true, distinct: true, tail: true})
		w.countAmong(p.id, stages.KindLimit, limited, f, p.scope)
	}
	w.followed[p.id] = f
}

// followGroups counts the followed groups before and after HAVING.
func (w *whyNotTracer) followGroups(p *blockParts, mark hole, name string) {
	group, having := -1, -1
	for id, s := range w.stageDeriver.plan.Stages {
		if s.Block == p.id && s.Kind == stages.KindGroup {
			group = id
		}
		if s.Block == p.id && s.Kind == stages.KindHaving {
			having = id
		}
	}
	if group < 0 {
		return
	}
	sql := "SELECT count(*) FILTER (WHERE " + name + ")"
	values := []CountValue{{group, CountOut}}
	r := rebuilt{more: []hole{mark}, isGrouped: true, noHaving: true}
	if having >= 0 {
		r.more = append(r.more, hole{"(" + w.text(p.clause.having) + `) AS "why having"`, []*pg_query.Node{
			pg_query.MakeResTargetNodeWithNameAndVal("why having", p.node.HavingClause, -1),
		}, nil})
		sql += ", count(*) FILTER (WHERE " + name + ` AND "why having"), count(*) FILTER (WHERE ` + name +
			` AND "why having" IS NULL)`
		values = append(values, CountValue{having, CountOut}, CountValue{having, CountNull})
	}
	w.count(fill(sql+` FROM (@0) AS "why marked"`, queryHole(w.rebuild(p, r))), p.scope, false, values...)
}

// countAmong counts the rows of a query that have the values of followed rows, as the rows of the stages of a kind.
func (w *whyNotTracer) countAmong(block int, kind string, rows derivedQuery, f followed, sc scope) {
	for id, s := range w.stageDeriver.plan.Stages {
		if s.Block == block && s.Kind == kind {
			w.count(fill(`SELECT count(*) FROM (@0) AS "why all"`, queryHole(w.among(rows, f))), sc, false,
				CountValue{id, CountOut})
		}
	}
}

// among returns the rows of a query that have the values of followed rows.
func (w *whyNotTracer) among(rows derivedQuery, f followed) derivedQuery {
	var pairs []pair
	for i, c := range f.usable {
		if c.isComparable {
			pairs = append(pairs, pair{column("why found", "why "+strconv.Itoa(i)), i})
		}
	}
	return fill(`SELECT * FROM (@0) AS "why found" (`+numberedNames(f.columns)+") WHERE @1", queryHole(rows),
		isAmong(pairs, f.rowSet))
}

// followSet counts the rows of set operations that have the values of followed rows of their sides.
func (w *whyNotTracer) followSet(block int) {
	of := map[int]followed{} // by stage
	for _, arm := range w.arms(block) {
		if f, ok := w.followed[arm]; ok && f.columns > 0 {
			of[w.stageDeriver.plan.Blocks[arm].Last] = f
		}
	}
	for _, s := range w.sets {
		if s.block != block {
			continue
		}
		left, hasLeft := of[s.left]
		right, hasRight := of[s.right]
		if !hasLeft && !hasRight {
			continue
		}
		f := left
		switch {
		case !hasLeft:
			f = right
		case hasRight && left.columns == right.columns:
			f.rowSet = w.newSet(fill(`SELECT * FROM (@0) AS "why left" UNION ALL SELECT * FROM (@1) AS "why right"`,
				queryHole(left.rows), queryHole(right.rows)), left.columns)
		}
		w.countAmongStage(s, s.rows, f)
		if s.whole != nil {
			rows := *s.whole
			f.rowSet = w.newSet(w.inScope(w.among(rows, f), s.scope, false), f.columns)
			w.countAmong(block, stages.KindLimit, rows, f, s.scope)
			w.followed[block] = f
			continue
		}
		f.rowSet = w.newSet(w.inScope(w.among(s.rows, f), s.scope, false), f.columns)
		of[s.stage] = f
	}
}

func (w *whyNotTracer) countAmongStage(s *setParts, rows derivedQuery, f followed) {
	w.count(fill(`SELECT count(*) FROM (@0) AS "why all"`, queryHole(w.among(rows, f))), s.scope, false,
		CountValue{s.stage, CountOut})
}
