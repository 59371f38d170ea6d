package parse

import (
	"slices"
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"glasshouse/sandbox/stages"
)

// fromItem is an item of FROM: a table, or a join of two other items.
type fromItem struct {
	span
	node        *pg_query.Node
	stage       int
	left, right *fromItem // of a join
	qual        span
	isLateral   bool     // its rows depend on other items
	name        string   // of a table: its alias, or its own name
	columns     []string // of a table, if they are known
	table       *Table   // that a table is; nil: it is none of the catalog
	child       int      // the block whose rows it has; -1: none
}

func (f *fromItem) hole(c *clauseText) hole {
	return listHole(c.text(f.span), []*pg_query.Node{f.node})
}

// tables returns the tables of an item from left to right.
func (f *fromItem) tables() []*fromItem {
	if f.left == nil {
		return []*fromItem{f}
	}
	return append(f.left.tables(), f.right.tables()...)
}

// fromStages adds the stages of FROM, and returns the last one, or -1.
func (d *stageDeriver) fromStages(parts *blockParts) int {
	query, q := parts.node, parts.clause
	spans := d.split(q.from, pg_query.Token_ASCII_44)
	if len(spans) != len(query.FromClause) {
		return -1
	}
	last := -1
	for i, node := range query.FromClause {
		item := d.item(parts, node, d.parseItem(spans[i]), i > 0)
		if item == nil {
			return -1
		}
		parts.items = append(parts.items, item)
		if i == 0 {
			last = item.stage
		} else {
			last = d.listJoin(parts, i, spans, last)
		}
	}
	return last
}

// item adds the stages of an item of FROM.
func (d *stageDeriver) item(parts *blockParts, node *pg_query.Node, text *joinText, isLater bool) *fromItem {
	if text == nil {
		return nil
	}
	item := &fromItem{span: text.all, node: node, child: -1}
	if join := node.GetJoinExpr(); join != nil {
		if text.left == nil || (text.qual.isEmpty()) != (join.Quals == nil && len(join.UsingClause) == 0) {
			return nil
		}
		item.qual = text.qual
		if item.left = d.item(parts, join.Larg, text.left, isLater); item.left == nil {
			return nil
		}
		if item.right = d.item(parts, join.Rarg, text.right, true); item.right == nil {
			return nil
		}
		d.joinStage(parts, item)
		parts.joins = append(parts.joins, item)
		return item
	}
	if text.left != nil {
		return nil
	}
	item.stage = d.addStage(parts.id, stages.KindFrom, "", item.span)
	switch n := node.Node.(type) {
	case *pg_query.Node_RangeVar:
		d.tableItem(parts, item, n.RangeVar)
	case *pg_query.Node_RangeSubselect:
		item.name = n.RangeSubselect.Alias.GetAliasname()
		if n.RangeSubselect.Lateral && isLater {
			item.isLateral = true
			break
		}
		open := d.find(item.span, pg_query.Token_ASCII_40)
		query := n.RangeSubselect.Subquery.GetSelectStmt()
		if query == nil || open >= item.end {
			return nil
		}
		item.child = d.block(query, span{open + 1, d.closes[open]}, stages.BlockSubquery, item.name, parts.scope)
		d.adopt(parts.id, item.child)
		item.columns = d.outputNames(query, n.RangeSubselect.Alias)
	case *pg_query.Node_RangeFunction:
		item.name = n.RangeFunction.Alias.GetAliasname()
		item.isLateral = isLater && len(columnsOf(node)) > 0
	default:
		item.isLateral = isLater && len(columnsOf(node)) > 0
	}
	st := d.stage(item.stage)
	st.Name = item.name
	if item.isLateral {
		st.Reason, st.Message = stages.ReasonLateral, "it is computed for each row of the items before it"
		return item
	}
	rows := fill("SELECT * FROM @0", item.hole(d.clauseText))
	d.sample(item.stage, rows, parts.scope)
	if st.Reads = item.child; item.child >= 0 && d.plan.Blocks[item.child].Last >= 0 {
		st.Follows = d.plan.Blocks[item.child].Last
		return item
	}
	d.count(fill("SELECT count(*) FROM @0", item.hole(d.clauseText)), parts.scope, false,
		CountValue{item.stage, CountOut})
	return item
}

// tableItem sets what is known about a table.
func (d *stageDeriver) tableItem(parts *blockParts, item *fromItem, r *pg_query.RangeVar) {
	item.name = r.Relname
	if r.Alias != nil {
		item.name = r.Alias.Aliasname
	}
	if r.Schemaname == "" {
		item.child = parts.scope.lookup(r.Relname)
	}
	renames := r.Alias.GetColnames()
	if item.child >= 0 {
		if len(renames) == 0 {
			item.columns = d.withColumns(parts.scope, r.Relname)
		}
		return
	}
	if item.table = d.table(r); item.table != nil && len(renames) == 0 {
		for _, c := range item.table.Columns {
			item.columns = append(item.columns, c.Name)
		}
	}
}

// table returns the table that a name means, or nil if it is not known for sure.
func (d *stageDeriver) table(r *pg_query.RangeVar) (found *Table) {
	for i, t := range d.tables {
		if t.Name == r.Relname && (r.Schemaname == "" && t.IsVisible || r.Schemaname == t.Schema) {
			if found != nil {
				return nil
			}
			found = &d.tables[i]
		}
	}
	return found
}

// withColumns returns the columns of a WITH query, or nil if they are not known.
func (d *stageDeriver) withColumns(sc scope, name string) []string {
	for i := len(sc) - 1; i >= 0; i-- {
		for j := sc[i].visible - 1; j >= 0; j-- {
			if cte := sc[i].owner.Ctes[j].GetCommonTableExpr(); cte.Ctename == name {
				if len(cte.Aliascolnames) > 0 {
					return stringsOf(cte.Aliascolnames)
				}
				return d.outputNames(cte.Ctequery.GetSelectStmt(), nil)
			}
		}
	}
	return nil
}

func stringsOf(nodes []*pg_query.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.GetString_().GetSval())
	}
	return list
}

// outputNames returns the names of the columns of a query, or nil if they are not known.
func (d *stageDeriver) outputNames(query *pg_query.SelectStmt, alias *pg_query.Alias) (names []string) {
	if len(alias.GetColnames()) > 0 {
		return stringsOf(alias.Colnames)
	}
	for query.GetLarg() != nil {
		query = query.Larg
	}
	for _, t := range query.GetTargetList() {
		target := t.GetResTarget()
		name := target.GetName()
		if name == "" {
			name = figureName(target.GetVal())
		}
		if name == "" || name == "*" {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// figureName returns the name that PostgreSQL gives a column without AS, or "" if it is not known.
func figureName(n *pg_query.Node) string {
	switch v := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		_, name := columnName(v.ColumnRef)
		return name
	case *pg_query.Node_FuncCall:
		return functionName(v.FuncCall)
	case *pg_query.Node_TypeCast:
		return figureName(v.TypeCast.Arg)
	case *pg_query.Node_CoalesceExpr:
		return "coalesce"
	}
	return ""
}

// listJoin adds the stage in which the item with an index joins those before it in the list of FROM. Conditions of
// WHERE that need several of the items so far are the condition of the join.
func (d *stageDeriver) listJoin(parts *blockParts, i int, spans []span, left int) int {
	right := parts.items[i]
	stage := d.addStage(parts.id, stages.KindJoin, right.name, right.span)
	st := d.stage(stage)
	st.Left, st.Right, st.JoinKind = left, right.stage, "cross"
	for j := range parts.conjuncts {
		c := &parts.conjuncts[j]
		if c.stage >= 0 {
			continue
		}
		if items, isKnown := d.itemsOf(parts, c.node); isKnown && len(items) > 1 && slices.Max(items) == i {
			c.stage, st.JoinKind = stage, "inner"
			text, _ := nameParameters(d.text(c.span), d.names)
			st.Text += " ... " + text
			_, to := d.lines(c.span)
			st.To = max(st.To, to)
		}
	}
	rows := d.listRows(parts, spans[:i+1])
	d.count(fill(`SELECT count(*) FROM (@0) AS "stage rows"`, queryHole(rows)), parts.scope, false,
		CountValue{stage, CountOut})
	d.sample(stage, rows, parts.scope)
	return stage
}

// listRows returns the rows of the first items of the list of FROM, with the conditions that are those of their joins.
func (d *stageDeriver) listRows(parts *blockParts, spans []span) derivedQuery {
	list := span{spans[0].start, spans[len(spans)-1].end}
	holes := []hole{listHole(d.text(list), parts.node.FromClause[:len(spans)])}
	template := "SELECT * FROM @0"
	for _, c := range parts.conjuncts {
		if c.stage < 0 {
			continue
		}
		word := " AND "
		if len(holes) == 1 {
			word = " WHERE "
		}
		template += word + "@" + strconv.Itoa(len(holes))
		holes = append(holes, exprHole(d.text(c.span), c.node))
	}
	return fill(template, holes...)
}

// itemsOf returns the indexes of the items of FROM whose columns an expression has. isKnown is false if a column may
// be of another item.
func (d *stageDeriver) itemsOf(parts *blockParts, expression *pg_query.Node) (items []int, isKnown bool) {
	isKnown = true
	for _, ref := range columnsOf(expression) {
		found := d.itemOf(parts.items, ref)
		if found < 0 {
			isKnown = false
		} else if !slices.Contains(items, found) {
			items = append(items, found)
		}
	}
	return items, isKnown
}

// itemOf returns the index of the item that has a column, or -1 if it is not known.
func (d *stageDeriver) itemOf(items []*fromItem, ref *pg_query.ColumnRef) int {
	for i, item := range items {
		if d.tableOf(item.tables(), ref) != nil {
			return i
		}
	}
	return -1
}

// tableOf returns the table of a list that has a column, or nil if it is not known.
func (d *stageDeriver) tableOf(tables []*fromItem, ref *pg_query.ColumnRef) (found *fromItem) {
	qualifier, name := columnName(ref)
	for _, t := range tables {
		switch {
		case qualifier != "":
			if t.name == qualifier {
				return t
			}
		case slices.Contains(t.columns, name):
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

// joinStage adds the stage of a join.
func (d *stageDeriver) joinStage(parts *blockParts, item *fromItem) {
	join := item.node.GetJoinExpr()
	item.name = item.right.name
	end := item.qual.end // not the parenthesis after it
	if end == 0 {
		end = item.right.end
	}
	item.stage = d.addStage(parts.id, stages.KindJoin, item.name, span{item.left.end, end})
	st := d.stage(item.stage)
	st.Left, st.Right = item.left.stage, item.right.stage
	st.JoinKind = map[pg_query.JoinType]string{
		pg_query.JoinType_JOIN_INNER: "inner", pg_query.JoinType_JOIN_LEFT: "left",
		pg_query.JoinType_JOIN_RIGHT: "right", pg_query.JoinType_JOIN_FULL: "full",
	}[join.Jointype]
	if join.Jointype == pg_query.JoinType_JOIN_INNER && !join.IsNatural && item.qual.isEmpty() {
		st.JoinKind = "cross"
	}
	for _, pair := range d.equalPairs(item) {
		of := d.tableOf(item.left.tables(), pair.leftNode.GetColumnRef())
		_, name := columnName(pair.leftNode.GetColumnRef())
		st.LeftIsKey = st.LeftIsKey || pair.leftNode.GetColumnRef() != nil && of != nil && of.table != nil &&
			(slices.Contains(of.table.Unique, name) || slices.Equal(of.table.PrimaryKey, []string{name}))
	}
	d.count(fill("SELECT count(*) FROM @0", item.hole(d.clauseText)), parts.scope, false,
		CountValue{item.stage, CountOut})
	d.sample(item.stage, fill("SELECT * FROM @0", item.hole(d.clauseText)), parts.scope)
	if st.JoinKind == "cross" || join.Alias != nil {
		return
	}
	isLateral := slices.ContainsFunc(item.right.tables(), func(t *fromItem) bool { return t.isLateral })
	// One statement for each value: a FULL JOIN is impossible for some conditions, and a value may take long.
	variant := func(kind pg_query.JoinType, what CountKind) {
		d.count(fill("SELECT count(*) FROM @0", d.variant(item, kind)), parts.scope, true,
			CountValue{item.stage, what})
	}
	if join.Jointype != pg_query.JoinType_JOIN_INNER {
		variant(pg_query.JoinType_JOIN_INNER, CountPairs)
	}
	if join.Jointype != pg_query.JoinType_JOIN_LEFT {
		variant(pg_query.JoinType_JOIN_LEFT, CountWithLeft)
	}
	if join.Jointype != pg_query.JoinType_JOIN_RIGHT && !isLateral {
		variant(pg_query.JoinType_JOIN_RIGHT, CountWithRight)
	}
	if isLateral {
		return
	}
	left, right := d.joinKeys(item)
	d.keySamples(item, left, right, parts.scope)
	for _, side := range []struct {
		item      *fromItem
		keys      []hole
		max, null CountKind
	}{{item.left, left, CountMaxLeft, CountNullLeft}, {item.right, right, CountMaxRight, CountNullRight}} {
		if len(side.keys) == 0 {
			continue
		}
		d.count(d.keyCounts(side.item, side.keys), parts.scope, true,
			CountValue{item.stage, side.max}, CountValue{item.stage, side.null})
	}
}

// variant returns a join of the same sides of another kind.
func (d *stageDeriver) variant(item *fromItem, kind pg_query.JoinType) hole {
	join := proto.CloneOf(item.node.GetJoinExpr())
	join.Jointype = kind
	words := map[pg_query.JoinType]string{
		pg_query.JoinType_JOIN_INNER: " JOIN ", pg_query.JoinType_JOIN_LEFT: " LEFT JOIN ",
		pg_query.JoinType_JOIN_RIGHT: " RIGHT JOIN ", pg_query.JoinType_JOIN_FULL: " FULL JOIN ",
	}
	word := words[kind]
	if join.IsNatural {
		word = " NATURAL" + word
	}
	text := d.text(item.left.span) + word + d.text(item.right.span)
	if !item.qual.isEmpty() {
		text += " " + d.text(item.qual)
	}
	return listHole(text, []*pg_query.Node{{Node: &pg_query.Node_JoinExpr{JoinExpr: join}}})
}

// keyCounts returns the most rows of an item with one key, and the number of its rows whose key is NULL.
func (d *stageDeriver) keyCounts(item *fromItem, keys []hole) derivedQuery {
	isNull, list := "", ""
	holes := []hole{item.hole(d.clauseText)}
	for i, key := range keys {
		mark := "@" + strconv.Itoa(i+1)
		if i > 0 {
			isNull, list = isNull+" OR ", list+", "
		}
		isNull += mark + " IS NULL"
		list += mark
		holes = append(holes, key)
	}
	return fill(`SELECT coalesce(max("n") FILTER (WHERE NOT "is null"), 0), `+
		`coalesce(sum("n") FILTER (WHERE "is null"), 0)::bigint FROM (SELECT count(*) AS "n", `+
		`bool_or(`+isNull+`) AS "is null" FROM @0 GROUP BY `+list+`) AS "stage rows"`, holes...)
}

// joinKeys returns the expressions of both sides that a join compares with =, or none if there are none.
func (d *stageDeriver) joinKeys(item *fromItem) (left, right []hole) {
	join := item.node.GetJoinExpr()
	if join.Quals == nil {
		for _, n := range join.UsingClause {
			name := n.GetString_().GetSval()
			for _, side := range []struct {
				item *fromItem
				keys *[]hole
			}{{item.left, &left}, {item.right, &right}} {
				text := quoteName(name)
				*side.keys = append(*side.keys, exprHole(text, parsedSelect("SELECT " +
					text).TargetList[0].GetResTarget().Val))
			}
		}
		return left, right
	}
	for _, pair := range d.equalPairs(item) {
		left = append(left, exprHole(d.text(pair.left), pair.leftNode))
		right = append(right, exprHole(d.text(pair.right), pair.rightNode))
	}
	return left, right
}

// equalPair is a comparison of an expression of the left side of a join with one of the right side.
type equalPair struct {
	left, right         span
	leftNode, rightNode *pg_query.Node
}

// equalPairs returns the comparisons with = of the condition of a join.
func (d *stageDeriver) equalPairs(item *fromItem) (pairs []equalPair) {
	join := item.node.GetJoinExpr()
	if join == nil || join.Quals == nil {
		return nil
	}
	condition := span{item.qual.start + 1, item.qual.end}
	for _, c := range d.splitWhere(join.Quals, condition) {
		if pair, ok := d.equalPair(c, item.left.tables(), item.right.tables()); ok {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// equalPair returns a condition as a comparison of an expression over some tables with one over others.
func (d *stageDeriver) equalPair(c conjunct, left, right []*fromItem) (pair equalPair, ok bool) {
	e := c.node.GetAExpr()
	if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 ||
		e.Name[0].GetString_().GetSval() != "=" {
		return pair, false
	}
	s := d.unwrap(c.span)
	sides := d.split(s, pg_query.Token_ASCII_61)
	if len(sides) != 2 {
		return pair, false
	}
	a, b := d.sideOf(e.Lexpr, left, right), d.sideOf(e.Rexpr, left, right)
	switch {
	case a == 1 && b == 2:
		return equalPair{sides[0], sides[1], e.Lexpr, e.Rexpr}, true
	case a == 2 && b == 1:
		return equalPair{sides[1], sides[0], e.Rexpr, e.Lexpr}, true
	}
	return pair, false
}

// sideOf returns 1 if all columns of an expression are of the left tables, 2 if they are of the right ones, or 0.
func (d *stageDeriver) sideOf(n *pg_query.Node, left, right []*fromItem) (side int) {
	for _, ref := range columnsOf(n) {
		at := 0
		isLeft, isRight := d.tableOf(left, ref) != nil, d.tableOf(right, ref) != nil
		switch {
		case isLeft && !isRight:
			at = 1
		case isRight && !isLeft:
			at = 2
		}
		if at == 0 || side != 0 && side != at {
			return 0
		}
		side = at
	}
	return side
}
