package check

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/nodetree"
	"glasshouse/sandbox"
)

// A view runs with the rights of its owner, and its text cannot be changed. So what it does with a masked column is
// read from its tree. An output that is a masked column is masked, too. A view that does anything else with one is
// refused unless the operator lists it: filters, sorting and grouping by it show in the rows, and what a view computes
// for an output may fail with the value in the error, or take its time, even where the constant replaces the output.

// statistics are the relations of PostgreSQL with values of columns.
var statistics = []string{"pg_statistic", "pg_statistic_ext_data", "pg_stats", "pg_stats_ext", "pg_stats_ext_exprs"}

// dependentViewsSQL finds all views over relations, directly or through other views, and their trees. PostgreSQL notes
// no dependency on its own relations.
const dependentViewsSQL = `WITH RECURSIVE dependent(rel) AS (
	SELECT unnest($1::int8[])::oid
	UNION SELECT ev_class FROM pg_rewrite WHERE ev_class >= 16384
		AND ev_action::text ~ (SELECT ':relid (' || string_agg(oid::text, '|') || ') ' FROM pg_class
			WHERE oid < 16384 AND relname = ANY ($2::text[]))
	UNION SELECT ev_class FROM dependent JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = rel
		AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite r ON r.oid = d.objid)
	SELECT ev_class, ev_action::text FROM dependent JOIN pg_rewrite ON ev_class = rel AND rulename = '_RETURN'`

// maskViews marks the outputs of views that masked columns take part in, and the views that do more with them than to
// pass them on. listed are those that may.
func (cat *Catalog) maskViews(ctx context.Context, tx pgx.Tx, relations []int64, listed map[string]bool) error {
	v := viewMasker{
		catalog: cat, trees: map[uint32]*nodetree.Node{}, known: map[*nodetree.Node]bool{},
		knownOutputs: map[*nodetree.Node][]bool{},
	}
	for _, name := range statistics {
		for _, r := range cat.relations[name] {
			r.usesMask = r.usesMask || r.oid < firstUserOID
		}
	}
	var oid uint32
	var tree string
	if err := forEachRow(ctx, tx, dependentViewsSQL, []any{&oid, &tree}, func() {
		if roots := nodetree.Parse(tree); len(roots) == 1 {
			v.trees[oid] = roots[0]
		}
	}, relations, statistics); err != nil {
		return err
	}
	for oid := range v.trees {
		v.mask(oid)
	}
	for oid := range v.trees {
		cat.allowListed(cat.relationsByOID[oid], listed)
	}
	return nil
}

// refuseMaskUser refuses a relation with usesMask.
func refuseMaskUser(r *relation) *sandbox.Refusal {
	if r.isView || r.isMaterialized {
		no := sandbox.Refusef("masked-column", "the view %s.%s computes with, filters, sorts or groups by a masked "+
			"column, or shows statistics of columns", r.schema, r.name)
		no.Hint = "query its underlying tables, or ask the operator to list the view (--allow-views)"
		return no
	}
	no := sandbox.Refusef("masked-column", "%s.%s is partitioned by a masked column, and so the partition of a row "+
		"tells about its value", r.schema, r.name)
	no.Hint = "ask the operator to list the table (--allow-views)"
	return no
}

// allowListed admits a relation that uses a masked column and that the operator lists.
func (cat *Catalog) allowListed(r *relation, listed map[string]bool) {
	if r != nil && (listed[r.schema+"."+r.name] || listed[r.name] && slices.Contains(cat.searchPath, r.schema)) {
		r.usesMask = false
	}
}

// partitionsSQL returns the partition keys of tables, and their partitions at all levels.
const partitionsSQL = `SELECT partrelid, array_to_string(partattrs::int2[], ' '), coalesce(partexprs::text, ''),
	(SELECT string_agg(relid::oid::text, ' ') FROM pg_partition_tree(partrelid))
	FROM pg_partitioned_table WHERE partrelid = ANY (SELECT unnest($1::int8[])::oid)`

// refusePartitions marks the tables whose partition key has a masked column, with their partitions. listed are those
// that may be read.
func (cat *Catalog) refusePartitions(ctx context.Context, tx pgx.Tx, relations []int64, listed map[string]bool) error {
	var table uint32
	var columns, expressions, partitions string
	return forEachRow(ctx, tx, partitionsSQL, []any{&table, &columns, &expressions, &partitions}, func() {
		key := parseOIDs(columns)
		var add func(n *nodetree.Node)
		add = func(n *nodetree.Node) {
			if n.Name == "VAR" {
				key = append(key, uint32(n.Int("varattno")))
			}
			for _, child := range n.Children() {
				add(child)
			}
		}
		for _, root := range nodetree.Parse(expressions) {
			add(root)
		}
		isMasked := func(column uint32) bool { return cat.MaskedColumns[Origin{table, uint16(column)}] }
		if !slices.ContainsFunc(key, isMasked) {
			return
		}
		for _, oid := range parseOIDs(partitions) {
			if r := cat.relationsByOID[oid]; r != nil {
				r.usesMask = true
				cat.allowListed(r, listed)
			}
		}
	}, relations)
}

// viewMasker marks the masked outputs of views.
type viewMasker struct {
	catalog *Catalog
	trees   map[uint32]*nodetree.Node // of views that are not marked yet; nil: marked

	// Answers of boundQuery.uses and outputs, because many variables lead to the same node.
	known        map[*nodetree.Node]bool
	knownOutputs map[*nodetree.Node][]bool
}

// relation returns the relation of an item of FROM, marked; nil: no statement may name it.
func (v *viewMasker) relation(item *nodetree.Node) *relation {
	oid := uint32(item.Int("relid"))
	v.mask(oid)
	return v.catalog.relationsByOID[oid]
}

// mask marks a view and those that it reads. No view can read itself.
func (v *viewMasker) mask(oid uint32) {
	tree, r := v.trees[oid], v.catalog.relationsByOID[oid]
	if tree == nil || r == nil {
		return
	}
	v.trees[oid] = nil
	q := &boundQuery{masker: v, node: tree}
	r.usesMask = q.computes()
	for i, isMasked := range q.outputs() {
		if isMasked && i < len(r.columnOrder) {
			v.catalog.mask(r, Origin{oid, uint16(i + 1)}, r.columnOrder[i])
		}
	}
}

// boundQuery is a query in the tree of a view. outer is the query around it; nil: none.
type boundQuery struct {
	masker *viewMasker
	node   *nodetree.Node
	outer  *boundQuery
}

// Values of RTEKind in PostgreSQL's parsenodes.h.
const (
	rteRelation = iota
	rteSubquery
	rteJoin
	rteFunction
	rteTableFunction
	rteValues
	rteWithQuery
	rteTuplestore
	rteResult
	rteGroup // since PostgreSQL 18
)

// setOperationUnion is SETOP_UNION in PostgreSQL's parsenodes.h.
const setOperationUnion = 1

func (q *boundQuery) nested(n *nodetree.Node) *boundQuery { return &boundQuery{q.masker, n, q} }

// outputs reports of each output column whether a masked column takes part in it.
func (q *boundQuery) outputs() []bool {
	masked, isKnown := q.masker.knownOutputs[q.node]
	if isKnown {
		return masked
	}
	for _, target := range q.node.Nodes("targetList") {
		if target.Word("resjunk") != "true" {
			masked = append(masked, q.uses(target.Node("expr")))
		}
	}
	if q.node.Node("setOperations") != nil {
		for _, arm := range q.node.Nodes("rtable") {
			for i, isMasked := range q.nested(arm.Node("subquery")).outputs() {
				masked[i] = masked[i] || isMasked
			}
		}
	}
	q.masker.knownOutputs[q.node] = masked
	return masked
}

// computes reports whether the query does more with masked columns than to pass them on.
func (q *boundQuery) computes() bool {
	for _, name := range []string{"jointree", "havingQual", "limitOffset", "limitCount", "windowClause"} {
		if q.usesAny(q.node.Nodes(name)) {
			return true
		}
	}
	for _, target := range q.node.Nodes("targetList") {
		isKey := target.Int("ressortgroupref") > 0 // of GROUP BY, ORDER BY, DISTINCT or a window
		if isKey && q.uses(target.Node("expr")) || !q.passesOn(target.Node("expr")) {
			return true
		}
	}
	for _, item := range q.node.Nodes("rtable") {
		switch item.Int("rtekind") {
		case rteSubquery:
			if q.nested(item.Node("subquery")).computes() {
				return true
			}
		case rteJoin, rteGroup:
		default:
			if q.uses(item) {
				return true
			}
		}
	}
	for _, with := range q.node.Nodes("cteList") {
		query := q.nested(with.Node("ctequery"))
		if query.computes() || with.Word("cterecursive") == "true" && q.uses(query.node) {
			return true
		}
	}
	return q.comparesArms(q.node.Node("setOperations")) && slices.Contains(q.outputs(), true)
}

// passesOn reports whether an expression only passes masked columns on: nothing in it can fail or branch by their
// values.
func (q *boundQuery) passesOn(n *nodetree.Node) bool {
	if !q.uses(n) {
		return true
	}
	switch n.Name {
	case "VAR":
		return true
	case "RELABELTYPE":
		return q.passesOn(n.Node("arg"))
	case "SUBLINK":
		return n.Int("subLinkType") == scalarSubquery && !q.nested(n.Node("subselect")).computes()
	case "CASEEXPR":
		for _, when := range n.Nodes("args") {
			if q.uses(when.Node("expr")) || !q.passesOn(when.Node("result")) {
				return false
			}
		}
		return !q.uses(n.Node("arg")) && q.passesOn(n.Node("defresult"))
	}
	return false
}

// comparesArms reports whether a set operation compares rows. nil: there is none.
func (q *boundQuery) comparesArms(n *nodetree.Node) bool {
	if n == nil || n.Name != "SETOPERATIONSTMT" {
		return false
	}
	return n.Word("all") != "true" || n.Int("op") != setOperationUnion ||
		q.comparesArms(n.Node("larg")) || q.comparesArms(n.Node("rarg"))
}

func (q *boundQuery) usesAny(nodes []*nodetree.Node) bool { return slices.ContainsFunc(nodes, q.uses) }

// uses reports whether a masked column takes part in an expression or an item of FROM. A subquery in it counts with all
// its parts.
func (q *boundQuery) uses(n *nodetree.Node) bool {
	if n == nil {
		return false
	}
	used, isKnown := q.masker.known[n]
	if isKnown {
		return used
	}
	q.masker.known[n] = false // for a recursive query
	inner := q
	switch {
	case n.Name == "VAR":
		used = q.isMasked(n)
	case n.Name == "QUERY":
		inner = q.nested(n)
	case n.Word("rtekind") != "" && n.Int("rtekind") == rteRelation:
		r := q.masker.relation(n)
		used = r != nil && r.usesMask
	}
	// The columns of a join or a group are read where a variable names them.
	used = used || inner.usesAny(n.Children("joinaliasvars", "groupexprs"))
	q.masker.known[n] = used
	return used
}

// isMasked reports whether a variable is a masked column, or a row with one.
func (q *boundQuery) isMasked(variable *nodetree.Node) bool {
	for range variable.Int("varlevelsup") {
		if q = q.outer; q == nil {
			return true // the tree is not understood
		}
	}
	items, at := q.node.Nodes("rtable"), variable.Int("varno")
	if at < 1 || at > len(items) {
		return true
	}
	item, column := items[at-1], variable.Int("varattno")
	of := func(outputs []bool) bool {
		return column == 0 && slices.Contains(outputs, true) ||
			column > 0 && (column > len(outputs) || outputs[column-1])
	}
	expression := func(list string) bool {
		parts := item.Nodes(list)
		return column < 1 || column > len(parts) || q.uses(parts[column-1])
	}
	switch item.Int("rtekind") {
	case rteRelation:
		r := q.masker.relation(item)
		if r == nil || column == 0 {
			return r != nil && len(r.maskedColumns) > 0
		}
		return column > 0 && q.masker.catalog.MaskedColumns[Origin{r.oid, uint16(column)}]
	case rteSubquery:
		return of(q.nested(item.Node("subquery")).outputs())
	case rteWithQuery:
		return of(q.outputsOfWith(item))
	case rteJoin:
		return expression("joinaliasvars")
	case rteGroup:
		return expression("groupexprs")
	case rteFunction, rteTableFunction, rteValues:
		return q.uses(item)
	}
	return true
}

// outputsOfWith returns the outputs of the WITH query that an item of FROM reads. Those of a recursive one are all
// masked if a masked column takes part in it; the view is refused then.
func (q *boundQuery) outputsOfWith(item *nodetree.Node) (masked []bool) {
	for range item.Int("ctelevelsup") {
		if q = q.outer; q == nil {
			return nil
		}
	}
	for _, with := range q.node.Nodes("cteList") {
		query := with.Node("ctequery")
		switch {
		case with.Word("ctename") != item.Word("ctename"):
		case with.Word("cterecursive") == "true":
			return slices.Repeat([]bool{q.uses(query)}, 3+len(query.Nodes("targetList"))) // SEARCH and CYCLE add 3
		default:
			return q.nested(query).outputs()
		}
	}
	return nil
}
