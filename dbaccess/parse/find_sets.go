package parse

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// findSwappedColumns finds set operations whose sides have columns of the same names in another order.
func findSwappedColumns(d *stageDeriver, parts *blockParts) {
	if parts != d.parts[0] { // once for all blocks
		return
	}
	for _, set := range d.sets {
		query := set.rows.node
		left, right := d.outputNames(query.Larg, nil), d.outputNames(query.Rarg, nil)
		if len(left) == 0 || len(left) != len(right) || slices.Equal(left, right) || query.Rarg.Larg != nil {
			continue
		}
		a, b := slices.Sorted(slices.Values(left)), slices.Sorted(slices.Values(right))
		if !slices.Equal(a, b) {
			continue
		}
		at := slices.IndexFunc(left, func(name string) bool { return name != right[slices.Index(left, name)] })
		s, ok := d.spanOf(query.Rarg.TargetList[at].GetResTarget().GetVal())
		if !ok {
			continue
		}
		d.addProbe(&blockParts{id: set.block, scope: set.scope}, ProbeSwapped, set.stage, s,
			[]string{left[at], right[at]}, fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(set.rows)))
	}
}

// findListedUnions finds a UNION whose rows are the result, and that removes equal rows of one side.
func findListedUnions(d *stageDeriver, parts *blockParts) {
	if parts != d.parts[0] {
		return
	}
	for _, set := range d.sets {
		query := set.rows.node
		if set.block != 0 || query.Op != pg_query.SetOperation_SETOP_UNION || query.All {
			continue
		}
		u, ok := d.bareSets[0]
		if !ok || u.query != query {
			continue
		}
		left, right, ok := d.setPart(u.span, query.Op)
		if !ok {
			continue
		}
		l := queryHole(derivedQuery{d.text(left), query.Larg})
		r := queryHole(derivedQuery{d.text(right), query.Rarg})
		d.addFlagged(&blockParts{id: set.block, scope: set.scope}, ProbeRemovedRows, set.stage,
			span{left.end, right.start}, nil, map[string]bool{"listed": true},
			fill(`SELECT (SELECT count(*) FROM (@0) AS "a") + (SELECT count(*) FROM (@1) AS "b"), `+
				`(SELECT count(*) FROM (SELECT DISTINCT * FROM (@0) AS "a") AS "c") + `+
				`(SELECT count(*) FROM (SELECT DISTINCT * FROM (@1) AS "b") AS "d")`, l, r))
	}
}

// findSetPrecedence finds UNION and EXCEPT before INTERSECT without parentheses: INTERSECT is of the last two queries.
func findSetPrecedence(d *stageDeriver, parts *blockParts) {
	if parts != d.parts[0] { // once for all blocks
		return
	}
	for _, set := range d.sets {
		query := set.rows.node
		last := query.Rarg
		if query.Op == pg_query.SetOperation_SETOP_INTERSECT || last.Op != pg_query.SetOperation_SETOP_INTERSECT {
			continue
		}
		left, right, ok := d.setPart(set.span, query.Op)
		if !ok || d.unwrap(right) != right {
			continue
		}
		middle, end, ok := d.setPart(right, last.Op)
		if !ok {
			continue
		}
		a := queryHole(derivedQuery{d.text(left), query.Larg})
		b := queryHole(derivedQuery{d.text(middle), last.Larg})
		c := queryHole(derivedQuery{d.text(end), last.Rarg})
		other := fill(`SELECT * FROM (SELECT * FROM (@0) AS "a" `+d.setName(query)+
			` SELECT * FROM (@1) AS "b") AS "u" `+d.setName(last)+` SELECT * FROM (@2) AS "c"`, a, b, c)
		first := query.Larg
		for first.Op != pg_query.SetOperation_SETOP_NONE { // the last query of the left side
			first = first.Rarg
		}
		d.addFlagged(&blockParts{id: set.block, scope: set.scope}, ProbeSetPrecedence, set.stage,
			span{middle.end, end.start}, []string{d.setName(query)},
			map[string]bool{"same": isSameButConstants(first, last.Larg)},
			fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(set.rows)),
			fill(`SELECT count(*) FROM (@0) AS "q"`, queryHole(other)))
	}
}

// isSameButConstants reports whether two queries are the same with other constants.
func isSameButConstants(a, b *pg_query.SelectStmt) bool {
	plain := func(s *pg_query.SelectStmt) *pg_query.Node {
		s = proto.CloneOf(s)
		forEachNode(s, func(n *pg_query.Node) bool {
			if n.GetAConst() != nil {
				n.Node = pg_query.MakeAConstIntNode(0, -1).Node
			}
			return true
		})
		return &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: s}}
	}
	return equalNodes(plain(a), plain(b))
}

// findNegatedFirst finds NOT a OR b without parentheses, where both compare the same column: NOT is of a alone.
func findNegatedFirst(d *stageDeriver, parts *blockParts) {
	for _, c := range parts.conjuncts {
		b := c.node.GetBoolExpr()
		if b == nil || b.Boolop == pg_query.BoolExprType_AND_EXPR || len(b.Args) != 2 {
			continue
		}
		not := b.Args[0].GetBoolExpr()
		if not == nil || not.Boolop != pg_query.BoolExprType_NOT_EXPR || !d.isSameColumn(not.Args[0], b.Args[1]) {
			continue
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{not.Args[0], b.Args[1]})
		if !ok {
			continue
		}
		whole := f.put(exprHole(d.text(c.span), c.node))
		d.addFlagged(parts, ProbePrecedence, c.stage, c.span, nil, map[string]bool{"same": true, "not": true},
			fill("SELECT count(*) FILTER (WHERE "+whole+" IS TRUE), count(*) FILTER (WHERE (NOT ("+list[0]+" OR "+
				list[1]+")) IS TRUE)"+d.from(&f, parts), f.holes...))
	}
}
