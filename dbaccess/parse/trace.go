package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"glasshouse/sandbox/stages"
)

// tracer makes statements that follow rows through the blocks of a query: deriveWhy from the result to the tables,
// deriveWhyNot from a table to the result. Rows are compared by their values, with IS NOT DISTINCT FROM.
type tracer struct {
	*stageDeriver
	byBlock   map[int]*blockParts
	prefix    string // of the names of parameters of this package
	rowSets   []rowSet
	notLooked []string
}

// newTracer returns a tracer for a query whose first block is its main one.
func newTracer(numbered string, names []string, tables []Table) (*tracer, *Fault) {
	d, bad := deriveBlocks(numbered, names, tables, false)
	if bad != nil {
		return nil, bad
	}
	t := &tracer{stageDeriver: d, byBlock: map[int]*blockParts{}, prefix: "row_value_"}
	d.drafts, d.names = nil, slices.Clone(names)
	for _, p := range d.parts {
		t.byBlock[p.id] = p
	}
	for slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, t.prefix) }) {
		t.prefix += "_"
	}
	for _, p := range d.parts {
		for _, join := range p.joins {
			if join.node.GetJoinExpr().GetAlias() != nil { // it hides the names in it
				for _, f := range join.tables() {
					f.name = ""
				}
			}
		}
	}
	if reason := d.plan.Blocks[0].Reason; reason != "" {
		return nil, notTraceable("the clauses of the statement were not found in its text")
	}
	return t, nil
}

func notTraceable(format string, args ...any) *Fault {
	return newFault(stages.ReasonNotTraceable, format, args...)
}

// note adds what is not followed, once.
func (t *tracer) note(text string) {
	if !slices.Contains(t.notLooked, text) {
		t.notLooked = append(t.notLooked, text)
	}
}

// parameter returns the name of a further parameter, and its place in a statement.
func (t *tracer) parameter() (name string, place hole) {
	name = t.prefix + strconv.Itoa(len(t.names))
	t.names = append(t.names, name)
	return name, expression("$" + strconv.Itoa(len(t.names)))
}

// expression returns an expression of this package.
func expression(text string) hole { return expressionOf(text) }

// expressionOf returns an expression of this package with holes in it.
func expressionOf(template string, holes ...hole) hole {
	q := fill("SELECT "+template, holes...)
	return exprHole(strings.TrimPrefix(q.text, "SELECT "), q.node.TargetList[0].GetResTarget().GetVal())
}

// column returns a column of an item of FROM.
func column(item, name string) hole {
	text := quoteName(item) + "." + quoteName(name)
	return listHole(text, []*pg_query.Node{parsedSelect("SELECT " + text).TargetList[0].GetResTarget().GetVal()})
}

// allOf returns a condition that is true if all of some are. PostgreSQL's parser adds a condition to an AND that is on
// its left.
func allOf(conditions ...hole) hole {
	return connected(pg_query.BoolExprType_AND_EXPR, " AND ", conditions)
}

func connected(op pg_query.BoolExprType, word string, conditions []hole) hole {
	if len(conditions) == 1 {
		return conditions[0]
	}
	texts := make([]string, len(conditions))
	var all *pg_query.Node
	for i, c := range conditions {
		node := proto.CloneOf(c.nodes[0])
		texts[i] = c.text
		switch left := all.GetBoolExpr(); {
		case all == nil:
			all = node
		case left != nil && left.Boolop == op:
			left.Args = append(left.Args, node)
		default:
			all = &pg_query.Node{Node: &pg_query.Node_BoolExpr{BoolExpr: &pg_query.BoolExpr{
				Boolop: op, Args: []*pg_query.Node{all, node},
			}}}
		}
	}
	return exprHole(strings.Join(texts, word), all)
}

// pair is an expression with the number of the column of other rows that it is compared with.
type pair struct {
	expression hole
	column     int
}

// rowSet is a query of WITH that the derived statements share: rows that others are compared with. It is computed once
// for each statement.
type rowSet struct {
	name    string
	columns int
	rows    derivedQuery
}

// newSet returns a set with the rows of a query.
func (t *tracer) newSet(rows derivedQuery, columns int) rowSet {
	set := rowSet{"why set " + strconv.Itoa(len(t.rowSets)), columns, rows}
	t.rowSets = append(t.rowSets, set)
	return set
}

// setsIn returns the sets that a query reads, also through others, in the order in which they were made.
func (t *tracer) setsIn(m proto.Message) (list []rowSet) {
	wanted := map[string]bool{}
	for i := len(t.rowSets) - 1; i >= 0; i-- {
		set := t.rowSets[i]
		if !wanted[set.name] && !readsAny(m, []string{set.name}) {
			continue
		}
		list = append(list, set)
		for _, other := range t.rowSets[:i] {
			wanted[other.name] = wanted[other.name] || readsAny(set.rows.node, []string{other.name})
		}
	}
	slices.Reverse(list)
	return list
}

// withSets returns the list of WITH for sets: its text, and its trees.
func withSets(sets []rowSet) (text string, nodes []*pg_query.Node) {
	for i, set := range sets {
		if i > 0 {
			text += ", "
		}
		head := quoteName(set.name) + " (" + numberedNames(set.columns) + ") AS MATERIALIZED ("
		text += head + set.rows.text + ")"
		cte := parsedSelect("WITH " + head + "SELECT) SELECT").WithClause.Ctes[0]
		cte.GetCommonTableExpr().Ctequery = &pg_query.Node{Node: &pg_query.Node_SelectStmt{
			SelectStmt: proto.CloneOf(set.rows.node),
		}}
		nodes = append(nodes, cte)
	}
	return text, nodes
}

// deriveWithSets returns a query with the sets that it reads as a statement, like derive.
func (t *tracer) deriveWithSets(q derivedQuery) (DerivedStatement, error) {
	sets := t.setsIn(q.node)
	if len(sets) == 0 {
		return t.derive(q)
	}
	if q.node.WithClause != nil {
		q = fill(`SELECT * FROM (@0) AS "stage rows"`, queryHole(q))
	}
	text, nodes := withSets(sets)
	q = derivedQuery{"WITH " + text + " " + q.text, proto.CloneOf(q.node)}
	q.node.WithClause = &pg_query.WithClause{Ctes: nodes}
	return t.derive(q)
}

// isAmong returns the condition that a set has a row with the same values.
func isAmong(pairs []pair, set rowSet) hole {
	from := "FROM " + quoteName(set.name)
	if len(pairs) == 0 {
		return expressionOf("EXISTS (SELECT 1 " + from + ")")
	}
	// PostgreSQL can hash what IN compares, and nothing else. IN gives NULL for rows with NULL.
	var holes []hole
	var marks, names, isNull, same []string
	for i, p := range pairs {
		mark := "@" + strconv.Itoa(i)
		holes = append(holes, p.expression)
		marks, names = append(marks, mark), append(names, whyName(p.column))
		isNull = append(isNull, mark+" IS NULL")
		same = append(same, whyName(p.column)+" IS NOT DISTINCT FROM "+mark)
	}
	list := strings.Join(marks, ", ")
	if len(pairs) > 1 {
		list = "(" + list + ")"
	}
	return expressionOf(list+" IN (SELECT "+strings.Join(names, ", ")+" "+from+") OR ("+strings.Join(isNull, " OR ")+
		") AND EXISTS (SELECT 1 "+from+" WHERE "+strings.Join(same, " AND ")+")", holes...)
}

// whyName returns the name of a column of rows that are compared. Statements of users have no such names.
func whyName(i int) string { return quoteName("why " + strconv.Itoa(i)) }

func numberedNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = whyName(i)
	}
	return strings.Join(names, ", ")
}

// rowColumn is a column of an item of FROM, or of the rows of a block.
type rowColumn struct {
	name         string
	isComparable bool // it is not masked, and its type has =
}

// output is a column of a block with its expression.
type output struct {
	rowColumn
	expression hole
	isOfRow    bool // it has a value for each row of FROM: it has no aggregate and no window function
}

// node returns the tree of the expression.
func (o *output) node() *pg_query.Node { return o.expression.nodes[0] }

// outputs returns the columns of a block, or nil if they are not known.
func (t *tracer) outputs(p *blockParts) (list []output) {
	targets := p.node.TargetList
	spans := t.split(p.clause.targets, pg_query.Token_ASCII_44)
	if p.clause.targets.isEmpty() { // TABLE
		spans = make([]span, len(targets))
	}
	if len(spans) != len(targets) {
		return nil
	}
	for i, n := range targets {
		target := n.GetResTarget()
		if ref := target.GetVal().GetColumnRef(); ref != nil {
			if qualifier, name := columnName(ref); name == "*" {
				all, ok := t.starOutputs(p, qualifier)
				if !ok {
					return nil
				}
				list = append(list, all...)
				continue
			}
		}
		o := output{isOfRow: !callsIn([]*pg_query.Node{target.Val}, isOfRows)}
		o.name, o.isComparable = target.GetName(), t.isComparable(p, target.Val)
		if o.name == "" {
			o.name = figureName(target.Val)
		}
		o.expression = exprHole(t.text(t.withoutName(spans[i], target)), target.Val)
		list = append(list, o)
	}
	return list
}

// isOfRows reports whether a call reads other rows than the one that it is computed for.
func isOfRows(f *pg_query.FuncCall) bool { return f.Over != nil || isAggregate(f) || isSetReturning(f) }

// withoutName returns the span of a target without AS and its name.
func (t *tracer) withoutName(s span, target *pg_query.ResTarget) span {
	if target.Name == "" {
		return s
	}
	for i := s.start; i < s.end; i++ {
		if t.depths[i] == t.depths[s.start] && t.is(i, pg_query.Token_AS) && !t.is(i-1, pg_query.Token_ASCII_46) {
			return span{s.start, i}
		}
	}
	return span{s.start, s.end - 1}
}

// starOutputs returns the columns of * or item.*, or false if they are not known.
func (t *tracer) starOutputs(p *blockParts, qualifier string) (list []output, ok bool) {
	for _, item := range p.joins {
		join := item.node.GetJoinExpr()
		if qualifier == "" && (join.IsNatural || len(join.UsingClause) > 0) || join.Alias != nil {
			return nil, false
		}
	}
	for _, f := range p.tables() {
		if qualifier != "" && f.name != qualifier {
			continue
		}
		columns := t.columnsOf(p, f)
		if len(columns) == 0 {
			return nil, false
		}
		for _, c := range columns {
			list = append(list, output{c, column(f.name, c.name), true})
		}
	}
	return list, len(list) > 0
}

// incomparableTypes have no operator =, or none that DISTINCT can use.
var incomparableTypes = words(`json xml point box circle line lseg path polygon cstring json[] xml[] point[] refcursor`)

// columnsOf returns the columns of an item of FROM, or nil if they are not known.
func (t *tracer) columnsOf(p *blockParts, f *fromItem) (list []rowColumn) {
	var renames []string
	switch n := f.node.GetNode().(type) {
	case *pg_query.Node_RangeVar:
		renames = stringsOf(n.RangeVar.Alias.GetColnames())
		if f.child >= 0 {
			list = t.withRenames(t.rowsOf(f.child), t.columnNames(p.scope, n.RangeVar.Relname))
		}
	case *pg_query.Node_RangeSubselect:
		renames = stringsOf(n.RangeSubselect.Alias.GetColnames())
		if f.child >= 0 {
			list = t.rowsOf(f.child)
		}
	}
	if f.table != nil {
		for _, c := range f.table.Columns {
			list = append(list, rowColumn{c.Name, !c.IsMasked && !incomparableTypes[c.Type]})
		}
	}
	if f.name == "" {
		return nil
	}
	return t.withRenames(list, renames)
}

func (t *tracer) withRenames(list []rowColumn, names []string) []rowColumn {
	if len(names) > len(list) {
		return nil
	}
	list = slices.Clone(list)
	for i, name := range names {
		list[i].name = name
	}
	if slices.ContainsFunc(list, func(c rowColumn) bool { return c.name == "" || c.name == "*" }) {
		return nil
	}
	return list
}

// columnNames returns the names that a WITH query has in parentheses.
func (t *tracer) columnNames(sc scope, name string) []string {
	for i := len(sc) - 1; i >= 0; i-- {
		for j := sc[i].visible - 1; j >= 0; j-- {
			if cte := sc[i].owner.Ctes[j].GetCommonTableExpr(); cte.Ctename == name {
				return stringsOf(cte.Aliascolnames)
			}
		}
	}
	return nil
}

// rowsOf returns the columns of the rows of a block, or nil if they are not known.
func (t *tracer) rowsOf(block int) (list []rowColumn) {
	if p := t.byBlock[block]; p != nil {
		for _, o := range t.outputs(p) {
			list = append(list, o.rowColumn)
		}
		return list
	}
	for _, arm := range t.arms(block) {
		columns := t.rowsOf(arm)
		if list == nil {
			list = columns
		}
		if len(columns) != len(list) || len(list) == 0 {
			return nil
		}
		for i := range list {
			list[i].isComparable = list[i].isComparable && columns[i].isComparable
		}
	}
	return list
}

// arms returns the blocks of the sides of a block with set operations, from left to right.
func (t *tracer) arms(block int) (list []int) {
	for _, b := range t.plan.Blocks {
		if b.Parent == block && b.Kind == stages.BlockArm {
			list = append(list, b.ID)
		}
	}
	return list
}

// isComparable reports whether the values of an expression can be compared, as far as its columns tell.
func (t *tracer) isComparable(p *blockParts, n *pg_query.Node) bool {
	for _, ref := range columnsOf(n) {
		f := t.tableOf(p.tables(), ref)
		if f == nil {
			continue
		}
		_, name := columnName(ref)
		isBare := n.GetColumnRef() == ref
		for _, c := range t.columnsOf(p, f) {
			if c.name == name && isBare && !c.isComparable {
				return false
			}
		}
		if f.table != nil && slices.ContainsFunc(f.table.Columns, func(c Column) bool {
			return c.Name == name && c.IsMasked
		}) {
			return false
		}
	}
	return true
}

// groupKeys returns the expressions of GROUP BY, or a reason why they are not known.
func (t *tracer) groupKeys(p *blockParts) (keys []hole, reason string) {
	if len(p.node.GroupClause) == 0 {
		return nil, ""
	}
	spans := t.split(p.clause.group, pg_query.Token_ASCII_44)
	if len(spans) != len(p.node.GroupClause) {
		return nil, "the expressions of GROUP BY were not found in the text"
	}
	outputs := t.outputs(p)
	for i, n := range p.node.GroupClause {
		if n.GetGroupingSet() != nil {
			return nil, "a group of GROUPING SETS, ROLLUP or CUBE has no key of its own"
		}
		key := exprHole(t.text(spans[i]), n)
		if c := n.GetAConst(); c != nil && c.GetIval() != nil {
			at := int(c.GetIval().GetIval())
			if at < 1 || at > len(outputs) {
				return nil, "the columns of SELECT are not known"
			}
			key = outputs[at-1].expression
		} else if ref := n.GetColumnRef(); ref != nil && len(ref.Fields) == 1 {
			if key, reason = t.keyOfName(p, key, ref, outputs); reason != "" {
				return nil, reason
			}
		}
		keys = append(keys, key)
	}
	return keys, ""
}

// keyOfName returns what a name in GROUP BY means: a column of FROM, or else a column of SELECT.
func (t *tracer) keyOfName(
	p *blockParts, key hole, ref *pg_query.ColumnRef, outputs []output,
) (hole, string) {
	_, name := columnName(ref)
	isKnown := true
	for _, f := range p.tables() {
		columns := t.columnsOf(p, f)
		isKnown = isKnown && len(columns) > 0
		if slices.ContainsFunc(columns, func(c rowColumn) bool { return c.name == name }) {
			return key, ""
		}
	}
	for _, o := range outputs {
		if own := o.node().GetColumnRef(); o.name == name && own == nil {
			if !isKnown {
				return key, "GROUP BY " + name + " may be a column of FROM or of SELECT"
			}
			return o.expression, ""
		} else if o.name == name && own != nil {
			return o.expression, ""
		}
	}
	return key, ""
}

// sameExpression reports whether two expressions of a block are equal but for their places.
func sameExpression(a, b hole) bool {
	return proto.Equal(normalize(a.nodes[0], nil), normalize(b.nodes[0], nil))
}

// rebuilt says how a block is changed.
type rebuilt struct {
	targets   []hole // in place of those of SELECT
	more      []hole // further columns
	where     []hole // further conditions
	isGrouped bool   // with GROUP BY and HAVING
	noHaving  bool
	distinct  bool
	order     bool // with ORDER BY
	tail      bool // with ORDER BY and LIMIT
}

// rebuild returns a block with some changes, without its WITH queries.
func (t *tracer) rebuild(p *blockParts, r rebuilt) derivedQuery {
	q := p.clause
	node := proto.CloneOf(p.node)
	node.WithClause, node.LockingClause = nil, nil
	var text strings.Builder
	text.WriteString("SELECT ")
	switch {
	case !r.distinct || len(node.DistinctClause) == 0:
		node.DistinctClause = nil
	case q.distinctOn.isEmpty():
		text.WriteString("DISTINCT ")
	default:
		text.WriteString("DISTINCT ON (" + t.text(q.distinctOn) + ") ")
	}
	var columns []string
	switch {
	case r.targets != nil:
		node.TargetList = nil
	case q.targets.isEmpty():
		columns = append(columns, "*")
	default:
		columns = append(columns, t.text(q.targets))
	}
	for _, c := range slices.Concat(r.targets, r.more) {
		columns = append(columns, c.text)
		target := proto.CloneOf(c.nodes[0])
		if target.GetResTarget() == nil {
			target = pg_query.MakeResTargetNodeWithVal(target, -1)
		}
		node.TargetList = append(node.TargetList, target)
	}
	text.WriteString(strings.Join(columns, ", "))
	if !q.from.isEmpty() {
		text.WriteString(" FROM " + t.text(q.from))
	}
	conditions := r.where
	if node.WhereClause != nil {
		conditions = append([]hole{exprHole(t.text(q.where), node.WhereClause)}, conditions...)
	}
	if len(conditions) > 0 {
		all := allOf(conditions...)
		text.WriteString(" WHERE " + all.text)
		node.WhereClause = all.nodes[0]
	}
	t.writeGroups(&text, node, q, r)
	if r.tail && !q.tail.isEmpty() {
		text.WriteString(" " + t.text(q.tail))
		return derivedQuery{text.String(), node}
	}
	node.LimitCount, node.LimitOffset, node.LimitOption = nil, nil, parsedSelect("SELECT 1").LimitOption
	if r.order && !q.order.isEmpty() {
		text.WriteString(" ORDER BY " + t.text(q.order))
	} else {
		node.SortClause = nil
	}
	return derivedQuery{text.String(), node}
}

func (t *tracer) writeGroups(text *strings.Builder, node *pg_query.SelectStmt, q selectClauses, r rebuilt) {
	if !r.isGrouped {
		node.GroupClause, node.GroupDistinct, node.HavingClause, node.WindowClause = nil, false, nil, nil
		return
	}
	if !q.group.isEmpty() {
		text.WriteString(" GROUP BY ")
		if node.GroupDistinct {
			text.WriteString("DISTINCT ")
		}
		text.WriteString(t.text(q.group))
	}
	if !q.having.isEmpty() && !r.noHaving {
		text.WriteString(" HAVING " + t.text(q.having))
	} else {
		node.HavingClause = nil
	}
	if !q.window.isEmpty() {
		text.WriteString(" WINDOW " + t.text(q.window))
	}
}

// notFollowed notes the items of a block whose rows are of no table.
func (t *tracer) noteItem(f *fromItem) {
	switch {
	case f.isLateral:
		t.note("the LATERAL item " + f.name + ", which is computed for each row")
	case f.node.GetRangeFunction() != nil:
		t.note("the rows of a function (" + stages.Clip(t.text(f.span)) + ")")
	default:
		t.note("the rows of " + stages.Clip(t.text(f.span)))
	}
}
