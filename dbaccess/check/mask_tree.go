package check

import (
	"regexp"
	"slices"

	"glasshouse/dbaccess/nodetree"
)

// ComputesWithMask reports whether the statement computes with the constant of a masked column, or makes a row with it,
// by the first tree that the server makes of it (debug_print_rewritten). An output column, a branch of CASE and an arm
// of UNION ALL only pass it on.
func (stmt *Statement) ComputesWithMask(tree string) bool {
	if len(stmt.MaskedNames) == 0 {
		return false
	}
	stmt.mask.Do(func() { stmt.mask.isComputedWith = computesWithMask(tree) })
	return stmt.mask.isComputedWith
}

func computesWithMask(tree string) bool {
	if !maskOrRow.MatchString(tree) {
		return false
	}
	steps := 0
	for _, root := range nodetree.Parse(tree) {
		if (&maskedTree{node: root, steps: &steps}).computes(root) {
			return true
		}
	}
	return false
}

// maxTreeSteps bounds the nodes that the search for the constant visits. A row of a subquery that has two rows of
// another subquery takes a time exponential in the depth. A longer search finds the constant.
const maxTreeSteps = 300_000

// maskOrRow matches the type of a column with the constant, or of a row. The server breaks lines in a tree.
var maskOrRow = regexp.MustCompile(`:vartype\s+(2275|2249)\s`)

// maskedTree is a query in a tree. outer is the query around it; nil: none.
type maskedTree struct {
	node  *nodetree.Node
	outer *maskedTree
	steps *int // of the whole search
}

// inner returns the query in a node of q.
func (q *maskedTree) inner(n *nodetree.Node) *maskedTree { return &maskedTree{n, q, q.steps} }

// computes reports whether a node, or one in it, computes with the constant.
func (q *maskedTree) computes(n *nodetree.Node) bool {
	if n.Name == "QUERY" {
		q = q.inner(n)
		for _, target := range n.Nodes("targetList") {
			if !q.passesOn(target.Node("expr")) {
				return true
			}
		}
		return slices.ContainsFunc(n.Children("targetList"), q.computes)
	}
	if q.isMask(n) || isFieldOfRow(n) {
		return q.isMask(n)
	}
	return slices.ContainsFunc(n.Children("joinaliasvars"), q.computes)
}

// passesOn reports whether an output does not compute with the constant.
func (q *maskedTree) passesOn(n *nodetree.Node) bool {
	switch {
	case n == nil, n.Name == "CONST", n.Name == "VAR" && n.Int("vartype") == MaskType, isFieldOfRow(n):
		return true
	case n.Name == "SUBLINK" && n.Int("subLinkType") == scalarSubquery:
		return !q.computes(n.Node("subselect"))
	case n.Name == "CASEEXPR":
		for _, when := range n.Nodes("args") {
			if q.computes(when.Node("expr")) || !q.passesOn(when.Node("result")) {
				return false
			}
		}
		return q.passesOn(n.Node("defresult"))
	}
	return !q.computes(n)
}

// isFieldOfRow reports whether a node is a column of an item of FROM, written as one of its row: (u).name.
func isFieldOfRow(n *nodetree.Node) bool {
	arg := n.Node("arg")
	return n.Name == "FIELDSELECT" && arg != nil && arg.Name == "VAR"
}

// Values of SubLinkType in PostgreSQL's primnodes.h.
const (
	existsSubquery = 0
	scalarSubquery = 4
)

// typeFields have the type of an expression that can have the type of the constant.
var typeFields = []string{"vartype", "consttype", "casetype", "coalescetype", "resulttype", "aggtype", "wintype"}

// recordType is pg_type.oid of record, the type of a row of a subquery.
const recordType = 2249

// isMask reports whether a node has the value of a constant in place of a masked column, or a row with one.
func (q *maskedTree) isMask(n *nodetree.Node) bool {
	if *q.steps++; *q.steps > maxTreeSteps {
		return true
	}
	for _, field := range typeFields {
		if n.Int(field) == MaskType {
			return true
		}
	}
	switch n.Name {
	case "VAR":
		return n.Int("vartype") == recordType && n.Int("varattno") == 0 && q.hasMask(n)
	case "SUBLINK":
		if n.Int("subLinkType") == existsSubquery {
			return false
		}
		in := n.Node("subselect")
		targets := in.Nodes("targetList")
		return len(targets) > 0 && q.inner(in).isMask(targets[0].Node("expr"))
	}
	return false
}

// hasMask reports whether the row of an item of FROM has a masked column. A row of a WITH query may have one.
func (q *maskedTree) hasMask(row *nodetree.Node) bool {
	for range row.Int("varlevelsup") {
		if q = q.outer; q == nil {
			return true
		}
	}
	items, at := q.node.Nodes("rtable"), row.Int("varno")
	if at < 1 || at > len(items) {
		return true
	}
	item := items[at-1]
	switch item.Int("rtekind") {
	case rteSubquery:
		inner := q.inner(item.Node("subquery"))
		return slices.ContainsFunc(inner.node.Nodes("targetList"), func(target *nodetree.Node) bool {
			return inner.isMask(target.Node("expr"))
		})
	case rteJoin:
		return slices.ContainsFunc(item.Nodes("joinaliasvars"), q.isMask)
	}
	return item.Int("rtekind") == rteWithQuery
}
