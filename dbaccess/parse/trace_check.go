package parse

import (
	"cmp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// edit replaces a part of a text.
type edit struct {
	start, end int
	text       string
}

// check makes the statement over the wanted rows alone. It changes a second tree of the statement, in which it finds
// the blocks and items by their numbers.
func (w *whyTracer) check(numbered string) {
	twin, bad := deriveBlocks(numbered, w.stageDeriver.names, w.stageDeriver.tables, false)
	if bad != nil || len(twin.parts) != len(w.parts) {
		w.plan.CheckReason = "the statement could not be read again"
		return
	}
	c := &restriction{whyTracer: w, twin: twin}
	for at := range w.uses {
		for _, use := range w.uses[at] {
			c.restrict(at, use)
		}
	}
	if c.reason == "" {
		c.restrictWhere()
		c.addKeys()
		c.addSets()
	}
	if c.reason != "" {
		w.plan.CheckReason = c.reason
		return
	}
	slices.SortStableFunc(c.edits, func(a, b edit) int { // what is put before a part comes before it
		return cmp.Or(a.start-b.start, a.end-b.end)
	})
	var text strings.Builder
	copied := 0
	for _, e := range c.edits {
		if e.start < copied {
			w.plan.CheckReason = "the parts of the statement were not found in its text"
			return
		}
		text.WriteString(numbered[copied:e.start] + e.text)
		copied = e.end
	}
	text.WriteString(numbered[copied:])
	statement, err := w.derive(derivedQuery{strings.TrimRight(text.String(), "; \n\t"), twin.tree.GetSelectStmt()})
	if err != nil {
		w.plan.CheckReason = err.Error()
		return
	}
	w.plan.Check = &statement
}

// restriction changes a statement so that it reads the wanted rows alone.
type restriction struct {
	*whyTracer
	twin   *stageDeriver
	edits  []edit
	where  map[int][]hole // by block
	seen   []*fromItem
	reason string
}

// restrict makes an item of FROM have the wanted rows only. If no outer join adds rows to it, this is a condition of
// WHERE, because GROUP BY of a primary key needs the table itself. Otherwise the item becomes a subquery.
func (c *restriction) restrict(at int, use useOfTable) {
	if slices.Contains(c.seen, use.item) {
		return
	}
	c.seen = append(c.seen, use.item)
	names := c.plan.Tables[at].Key
	renames := use.item.node.GetRangeVar().GetAlias().GetColnames()
	if !isNullable(use.parts.items, use.item) {
		if len(renames) > 0 {
			names = c.renamed(use.parts, use.item, names)
		}
		if c.where == nil {
			c.where = map[int][]hole{}
		}
		c.where[use.parts.id] = append(c.where[use.parts.id], c.matches(at, keyOfItem(use.item.name, names)))
		return
	}
	item := c.twinItem(use)
	r := item.node.GetRangeVar()
	if r == nil {
		c.reason = "a table of an outer join was not found in the text"
		return
	}
	bare := proto.CloneOf(r)
	bare.Alias = &pg_query.Alias{Aliasname: "table rows"}
	text := quoteName(r.Relname) + ` AS "table rows"`
	if r.Schemaname != "" {
		text = quoteName(r.Schemaname) + "." + text
	}
	if !r.Inh {
		text = "ONLY " + text
	}
	rows := fill("SELECT * FROM @0 WHERE @1",
		listHole(text, []*pg_query.Node{{Node: &pg_query.Node_RangeVar{RangeVar: bare}}}),
		c.matches(at, keyOfItem("table rows", names)))
	alias := &pg_query.Alias{Aliasname: use.item.name, Colnames: renames}
	name := quoteName(use.item.name)
	if len(renames) > 0 {
		var list []string
		for _, n := range stringsOf(renames) {
			list = append(list, quoteName(n))
		}
		name += " (" + strings.Join(list, ", ") + ")"
	}
	item.node.Node = subquery(rows.node, alias, false).Node
	c.edits = append(c.edits, c.replace(use.item.span, "("+rows.text+") AS "+name))
}

// twinItem returns the item in the second tree.
func (c *restriction) twinItem(use useOfTable) *fromItem {
	i := slices.Index(c.parts, use.parts)
	j := slices.Index(use.parts.tables(), use.item)
	if list := c.twin.parts[i].tables(); j < len(list) {
		return list[j]
	}
	return &fromItem{}
}

func (c *restriction) replace(s span, text string) edit {
	return edit{c.tokens[s.start].Start, c.tokens[s.end-1].End, text}
}

// restrictWhere adds the conditions to WHERE.
func (c *restriction) restrictWhere() {
	for i, p := range c.parts {
		conditions := c.where[p.id]
		if len(conditions) == 0 {
			continue
		}
		node := c.twin.origins[p.id]
		q := p.clause
		if node.WhereClause == nil {
			all := allOf(conditions...)
			node.WhereClause = all.nodes[0]
			end := c.tokens[q.from.end-1].End
			c.edits = append(c.edits, edit{end, end, " WHERE " + all.text})
			continue
		}
		all := allOf(append([]hole{exprHole("", c.twin.parts[i].node.WhereClause)}, conditions...)...)
		node.WhereClause = all.nodes[0]
		start, end := c.tokens[q.where.start].Start, c.tokens[q.where.end-1].End
		after := ")"
		for _, one := range conditions {
			after += " AND " + one.text
		}
		c.edits = append(c.edits, edit{start, start, "("}, edit{end, end, after})
	}
}

// addKeys adds the keys as columns, and takes ORDER BY and LIMIT of the statement away: an OFFSET skips rows.
func (c *restriction) addKeys() {
	p := c.byBlock[0]
	node := c.twin.origins[0]
	if p == nil {
		if node.LimitCount != nil || node.LimitOffset != nil {
			c.reason = "it has a set operation with LIMIT"
		}
		return
	}
	isByValue := len(c.plan.Keys) > 0 && c.plan.Keys[0].Output >= 0
	if !isByValue {
		keys, _ := c.groupKeys(p)
		if !p.isGrouped() {
			for _, f := range p.tables() {
				keys = append(keys, c.identity(p, f)...)
			}
		}
		text := ""
		for _, key := range keys {
			text += ", " + key.text
			target := pg_query.MakeResTargetNodeWithVal(proto.CloneOf(key.nodes[0]), -1)
			node.TargetList = append(node.TargetList, target)
		}
		if p.clause.targets.isEmpty() { // TABLE name
			table := p.clause.from.start - 1
			c.edits = append(c.edits, c.replace(span{table, table + 1}, "SELECT *"+text+" FROM"))
		} else if text != "" {
			end := c.tokens[p.clause.targets.end-1].End
			c.edits = append(c.edits, edit{end, end, text})
		}
	}
	if !p.clause.distinctOn.isEmpty() || p.clause.tail.isEmpty() {
		return
	}
	node.SortClause, node.LimitCount, node.LimitOffset, node.LockingClause = nil, nil, nil, nil
	node.LimitOption = parsedSelect("SELECT 1").LimitOption
	c.edits = append(c.edits, c.replace(p.clause.tail, ""))
}

// addSets adds the sets before the WITH queries of the statement.
func (c *restriction) addSets() {
	used := c.setsIn(c.twin.tree)
	if len(used) == 0 {
		return
	}
	text, nodes := withSets(used)
	node := c.twin.origins[0]
	first := 0
	for c.is(first, pg_query.Token_ASCII_59) || node.WithClause != nil && c.is(first, pg_query.Token_ASCII_40) {
		first++
	}
	at := c.tokens[first].Start
	if node.WithClause == nil {
		node.WithClause = &pg_query.WithClause{}
		text = "WITH " + text + " "
	} else {
		if !c.is(first, pg_query.Token_WITH, pg_query.Token_WITH_LA) {
			c.reason = "WITH was not found in the text"
			return
		}
		if c.is(first+1, pg_query.Token_RECURSIVE) {
			first++
		}
		at = c.tokens[first].End
		text = " " + text + ","
	}
	node.WithClause.Ctes = append(nodes, node.WithClause.Ctes...)
	c.edits = append(c.edits, edit{at, at, text})
}

// isNullable reports whether an outer join of the items of FROM adds rows in which a table is NULL.
func isNullable(items []*fromItem, table *fromItem) bool {
	var find func(item *fromItem, nullable bool) (found, isNull bool)
	find = func(item *fromItem, nullable bool) (found, isNull bool) {
		if item == table {
			return true, nullable
		}
		if item.left == nil {
			return false, false
		}
		kind := item.node.GetJoinExpr().GetJointype()
		isFull := kind == pg_query.JoinType_JOIN_FULL
		if found, isNull = find(item.left, nullable || isFull || kind == pg_query.JoinType_JOIN_RIGHT); found {
			return found, isNull
		}
		return find(item.right, nullable || isFull || kind == pg_query.JoinType_JOIN_LEFT)
	}
	for _, item := range items {
		if found, isNull := find(item, false); found {
			return isNull
		}
	}
	return true
}
