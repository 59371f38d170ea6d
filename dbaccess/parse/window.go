package parse

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// windowCall is a window function of a SELECT list or of ORDER BY.
type windowCall struct {
	call      *pg_query.FuncCall
	node      *pg_query.Node
	alias     string
	isWhole   bool // the column is the call, and no expression around it
	partition []*pg_query.Node
	order     []*pg_query.Node // SortBy
	frame     bool             // it has a frame of its own
}

// windowCalls returns the window functions of a block whose windows are known: those of OVER (...) and of WINDOW.
func (p *blockParts) windowCalls() (list []windowCall) {
	for _, t := range p.node.TargetList {
		target := t.GetResTarget()
		forEachNode(t, func(n *pg_query.Node) bool {
			f := n.GetFuncCall()
			if f == nil || f.Over == nil {
				return n.GetSelectStmt() == nil
			}
			w := f.Over
			if w.Name != "" {
				if w = p.namedWindow(w.Name); w == nil {
					return true
				}
			}
			if w.Refname == "" {
				list = append(list, windowCall{f, n, target.GetName(), n == target.GetVal(), w.PartitionClause,
					w.OrderClause, w.FrameOptions&frameNonDefault != 0})
			}
			return true
		})
	}
	return list
}

// firstKey returns the first expression of ORDER BY of a window, or nil.
func (w windowCall) firstKey() *pg_query.Node {
	if len(w.order) == 0 {
		return nil
	}
	return w.order[0].GetSortBy().GetNode()
}

// namedWindow returns a window of the clause WINDOW, or nil.
func (p *blockParts) namedWindow(name string) *pg_query.WindowDef {
	for _, n := range p.node.WindowClause {
		if w := n.GetWindowDef(); w.GetName() == name {
			return w
		}
	}
	return nil
}

// marks puts expressions into a template, and returns them as a list.
func (d *stageDeriver) marks(f *filler, nodes []*pg_query.Node) (list []string, ok bool) {
	for _, n := range nodes {
		h, ok := d.expression(n)
		if !ok {
			return nil, false
		}
		list = append(list, f.put(h))
	}
	return list, true
}

// arguments returns the arguments of a call in a template, with its FILTER outside of the parentheses.
func (d *stageDeriver) arguments(f *filler, call *pg_query.FuncCall) (text string, ok bool) {
	if call.AggStar {
		text = "(*)"
	} else {
		list, ok := d.marks(f, call.Args)
		if !ok {
			return "", false
		}
		text = "(" + strings.Join(list, ", ") + ")"
	}
	if call.AggFilter != nil {
		h, ok := d.expression(call.AggFilter)
		if !ok {
			return "", false
		}
		text += " FILTER (WHERE " + f.put(h) + ")"
	}
	return text, !call.AggDistinct && len(call.AggOrder) == 0
}

// orderItem returns an item of ORDER BY in a template, with its direction.
func (d *stageDeriver) orderItem(f *filler, n *pg_query.Node) (text string, ok bool) {
	sort := n.GetSortBy()
	h, ok := d.expression(sort.GetNode())
	if !ok || len(sort.UseOp) > 0 {
		return "", false
	}
	text = f.put(h)
	if sort.SortbyDir == pg_query.SortByDir_SORTBY_DESC {
		text += " DESC"
	}
	switch sort.SortbyNulls {
	case pg_query.SortByNulls_SORTBY_NULLS_FIRST:
		text += " NULLS FIRST"
	case pg_query.SortByNulls_SORTBY_NULLS_LAST:
		text += " NULLS LAST"
	}
	return text, true
}

// over returns PARTITION BY and ORDER BY of a window in a template.
func (d *stageDeriver) over(f *filler, w windowCall) (text string, ok bool) {
	partition, ok := d.marks(f, w.partition)
	if !ok {
		return "", false
	}
	if len(partition) > 0 {
		text = "PARTITION BY " + strings.Join(partition, ", ")
	}
	for i, n := range w.order {
		item, ok := d.orderItem(f, n)
		if !ok {
			return "", false
		}
		if i == 0 {
			text += " ORDER BY " + item
		} else {
			text += ", " + item
		}
	}
	return strings.TrimSpace(text), true
}

// rows returns the rows over which the SELECT list of a block is computed: those of WHERE, or its groups after HAVING.
func (d *stageDeriver) rows(f *filler, parts *blockParts) (out string, ok bool) {
	if !parts.isGrouped() {
		return d.source(f, parts), true
	}
	if out, ok = d.groups(f, parts); !ok {
		return "", false
	}
	if parts.node.HavingClause != nil {
		out += " HAVING " + f.put(exprHole(d.text(parts.clause.having), parts.node.HavingClause))
	}
	return out, true
}

// constantNumber returns the value of a whole number in a statement.
func constantNumber(n *pg_query.Node) (value int, ok bool) {
	c := n.GetAConst()
	if c == nil || c.Isnull || c.GetVal() == nil {
		return 0, false
	}
	if i, isInteger := c.GetVal().(*pg_query.A_Const_Ival); isInteger {
		return int(i.Ival.GetIval()), true
	}
	return 0, false
}

// operator returns the two sides of an expression with one of the operators, or ok == false.
func operator(n *pg_query.Node, operators ...string) (left, right *pg_query.Node, name string, ok bool) {
	e := n.GetAExpr()
	if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || e.Lexpr == nil || e.Rexpr == nil {
		return nil, nil, "", false
	}
	name = e.Name[0].GetString_().GetSval()
	for _, o := range operators {
		if o == name {
			return e.Lexpr, e.Rexpr, name, true
		}
	}
	return nil, nil, "", false
}

// block returns the parts of a block with an ID, or nil.
func (d *stageDeriver) partsOf(id int) *blockParts {
	for _, p := range d.parts {
		if p.id == id {
			return p
		}
	}
	return nil
}

// targetOf returns the column of a block with a name, or nil.
func (p *blockParts) targetOf(name string) *pg_query.Node {
	for _, t := range p.node.TargetList {
		target := t.GetResTarget()
		if target.GetName() == name || target.GetName() == "" && figureName(target.GetVal()) == name {
			return target.GetVal()
		}
	}
	return nil
}
