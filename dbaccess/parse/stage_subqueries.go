package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"glasshouse/sandbox/stages"
)

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
