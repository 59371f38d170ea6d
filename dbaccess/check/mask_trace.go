package check

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// A masked column may be a bare output column of a statement and nothing else: computing with it,
// comparing, sorting or grouping by it reveals values. Therefore every name in a statement that
// reads a masked column is traced to its source, with the scoping rules of the server. Names
// that cannot be traced are refused.

// output is one column of a FROM item or a subquery.
type output struct {
	name        string // "" if only the server knows the name; never "" for a masked column that can be referenced
	masked      bool
	isOpenEnded bool // stands for any number of unmasked columns: those of a function
}

// source is one named item of a FROM list.
type source struct {
	name           string
	columns        []output
	hiddenColumns  []string // can be named but are not part of *
	hasMoreColumns bool     // has unmasked columns that are not listed
}

// scope holds the sources that are visible in one query level, and the enclosing level.
type scope struct {
	sources []source
	outer   *scope
	ctes    *cte
}

// cte is one WITH query; next may be hidden by it.
type cte struct {
	source
	next      *cte
	isForward bool
}

func (s *scope) nested() *scope {
	in := &scope{outer: s}
	if s != nil {
		in.ctes = s.ctes
	}
	return in
}

// tracer traces one statement.
type tracer struct {
	checker *walker
	// columnsOf returns the columns of a relation; a view is traced through its definition.
	columnsOf    func(*relation) ([]output, *sandbox.Refusal)
	refusal      *sandbox.Refusal
	serviceError error // an error that is not the statement's
}

func (t *tracer) fail(at int, format string, args ...any) {
	if t.refusal == nil {
		t.refusal = sandbox.Refusef("masked-column", format, args...)
		t.refusal.Hint = "select the masked column unchanged, and remove it from expressions, filters, joins, sorting and grouping"
		if at >= 0 && at <= len(t.checker.sql) {
			t.refusal.Position = at + 1
		}
	}
}

// failUntraceable refuses the statement because `what` has no known source.
func (t *tracer) failUntraceable(at int, what string) {
	t.fail(at, "%s cannot be traced to a column, and the statement reads a table with masked columns", what)
}

func anyMasked(outs []output) bool {
	return slices.ContainsFunc(outs, func(o output) bool { return o.masked })
}

// traceSelect traces a SELECT with everything inside, and returns its columns.
func (t *tracer) traceSelect(n *pg_query.SelectStmt, around *scope) []output {
	if n == nil || t.refusal != nil {
		return nil
	}
	in := around.nested()
	t.traceWith(n.WithClause, in)
	var outs []output
	switch {
	case isSetOperation(n):
		outs = t.traceSelect(n.Larg, in)
		if anyMasked(outs) || anyMasked(t.traceSelect(n.Rarg, in)) {
			t.fail(-1, "a masked column is in a UNION, INTERSECT or EXCEPT")
		}
		in.sources = []source{{columns: outs, hasMoreColumns: true}}
	case len(n.ValuesLists) > 0:
		for _, row := range n.ValuesLists {
			t.requireUnmasked(row, in)
		}
		if list := n.ValuesLists[0].GetList(); list != nil {
			for i := range list.Items {
				outs = append(outs, output{name: "column" + strconv.Itoa(i+1)})
			}
		}
	default:
		var stars []output
		for _, item := range n.FromClause {
			columns, sources := t.traceFromItem(item, in.sources, in)
			stars = append(stars, columns...)
			in.sources = append(in.sources, sources...)
		}
		for _, target := range n.TargetList {
			outs = append(outs, t.traceTarget(target.GetResTarget(), stars, in)...)
		}
	}
	for _, part := range []*pg_query.Node{n.WhereClause, n.HavingClause, n.LimitCount, n.LimitOffset} {
		t.requireUnmasked(part, in)
	}
	for _, window := range n.WindowClause {
		t.requireUnmasked(window, in)
	}
	for _, key := range n.GroupClause {
		t.traceKey(key, outs, in, true)
	}
	for _, key := range n.SortClause {
		t.traceKey(key.GetSortBy().GetNode(), outs, in, false)
	}
	for _, key := range n.DistinctClause {
		if key.GetNode() == nil { // plain DISTINCT is a list with one empty node
			if anyMasked(outs) {
				t.fail(-1, "a masked column is in SELECT DISTINCT")
			}
			continue
		}
		t.traceKey(key, outs, in, false)
	}
	return outs
}

func isSetOperation(n *pg_query.SelectStmt) bool { return n.Larg != nil }

func (t *tracer) traceWith(n *pg_query.WithClause, in *scope) {
	if n.GetRecursive() { // every query sees all others; one that is not traced yet is unknown
		for _, node := range n.Ctes {
			in.ctes = &cte{source: source{name: node.GetCommonTableExpr().GetCtename()}, next: in.ctes, isForward: true}
		}
	}
	for _, node := range n.GetCtes() {
		c := node.GetCommonTableExpr()
		q := c.GetCtequery().GetSelectStmt()
		if q == nil {
			t.failUntraceable(int(c.GetLocation()), "the result of WITH")
			return
		}
		made := source{name: c.Ctename}
		if n.Recursive && isSetOperation(q) {
			// The query may refer to itself by the names of its first arm. A set operation has no
			// masked column, so the reference has none either.
			first := t.traceSelect(q.Larg, &scope{outer: in, ctes: t.innerCTEs(q, in)})
			made.columns, made.hasMoreColumns = t.withColumnNames(first, c.Aliascolnames, int(c.Location)), true
			t.traceSelect(q, &scope{outer: in, ctes: &cte{source: made, next: in.ctes}})
		} else {
			made.columns = t.withColumnNames(t.traceSelect(q, in), c.Aliascolnames, int(c.Location))
		}
		made.hasMoreColumns = made.hasMoreColumns || c.SearchClause != nil || c.CycleClause != nil
		in.ctes = &cte{source: made, next: in.ctes}
	}
}

// innerCTEs returns the WITH queries of a set operation itself.
func (t *tracer) innerCTEs(q *pg_query.SelectStmt, in *scope) *cte {
	own := in.nested()
	t.traceWith(q.WithClause, own)
	return own.ctes
}

// traceTarget traces one entry of a SELECT list.
func (t *tracer) traceTarget(n *pg_query.ResTarget, stars []output, in *scope) []output {
	if n == nil || t.refusal != nil {
		return nil
	}
	if ref := n.Val.GetColumnRef(); ref != nil {
		if ref.Fields[len(ref.Fields)-1].GetAStar() != nil {
			if len(ref.Fields) == 1 {
				return stars
			}
			return t.columnsOfStar(ref, in)
		}
		name, hidden := t.traceReference(ref, in)
		if n.Name != "" {
			name = n.Name
		}
		return []output{{name: name, masked: hidden}}
	}
	if sub := n.Val.GetSubLink(); sub != nil && sub.SubLinkType == pg_query.SubLinkType_EXPR_SUBLINK {
		if outs := t.traceSelect(sub.Subselect.GetSelectStmt(), in); anyMasked(outs) {
			return []output{{name: n.Name, masked: true}}
		}
		return []output{{name: n.Name}}
	}
	t.requireUnmasked(n.Val, in)
	out := output{name: n.Name}
	if parts := stringsOf(n.Val.GetFuncCall().GetFuncname()); out.name == "" && len(parts) > 0 {
		out.name = parts[len(parts)-1]
	}
	if path := n.Val.GetAIndirection().GetIndirection(); len(path) > 0 {
		out.isOpenEnded = path[len(path)-1].GetAStar() != nil
	}
	return []output{out}
}

// traceKey traces a sort, group or distinct key: the number or name of an output column, or an
// expression.
func (t *tracer) traceKey(n *pg_query.Node, outs []output, in *scope, group bool) {
	if n == nil || t.refusal != nil {
		return
	}
	switch {
	case group && n.GetGroupingSet() != nil:
		for _, one := range n.GetGroupingSet().Content {
			t.traceKey(one, outs, in, group)
		}
		return
	case group && n.GetRowExpr() != nil:
		for _, one := range n.GetRowExpr().Args {
			t.traceKey(one, outs, in, group)
		}
		return
	case n.GetAConst() != nil:
		i := int(n.GetAConst().GetIval().GetIval()) - 1
		if slices.ContainsFunc(outs, func(o output) bool { return o.isOpenEnded }) && anyMasked(outs) ||
			i >= 0 && i < len(outs) && outs[i].masked {
			t.fail(int(n.GetAConst().Location), "output column %d is masked and used in ORDER BY, GROUP BY or DISTINCT",
				i+1)
		}
		return
	}
	ref := n.GetColumnRef()
	if ref == nil || len(ref.Fields) != 1 || ref.Fields[0].GetString_() == nil {
		t.requireUnmasked(n, in)
		return
	}
	name := ref.Fields[0].GetString_().Sval
	known, unnamed := false, false
	for _, o := range outs {
		unnamed = unnamed || o.name == "" || o.isOpenEnded
		if o.name == name {
			known = true
			if o.masked {
				t.fail(int(ref.Location), "the masked column %s is used in ORDER BY, GROUP BY or DISTINCT", name)
			}
		}
	}
	if known && !group {
		return // an output column takes precedence over a table's column
	}
	if hit, _, _ := in.lookUp("", name); hit || !known && !unnamed || in.sourceNamed(name) != nil {
		t.requireUnmasked(n, in)
	}
}

// requireUnmasked refuses an expression that contains a masked column.
func (t *tracer) requireUnmasked(n *pg_query.Node, in *scope) {
	if n != nil && t.refusal == nil {
		t.requireUnmaskedNode(reflect.ValueOf(n), in)
	}
}

func (t *tracer) requireUnmaskedNode(node reflect.Value, in *scope) {
	if t.refusal != nil {
		return
	}
	switch n := node.Interface().(type) {
	case *pg_query.ColumnRef:
		if n.Fields[len(n.Fields)-1].GetAStar() != nil {
			var outs []output
			if len(n.Fields) > 1 {
				outs = t.columnsOfStar(n, in)
			} else {
				for _, s := range in.sources {
					outs = append(outs, s.columns...)
				}
			}
			if anyMasked(outs) {
				t.fail(int(n.Location), "a whole row with a masked column is used in an expression")
			}
		} else if name, hidden := t.traceReference(n, in); hidden {
			t.fail(int(n.Location), "the masked column %s is used in an expression or condition", name)
		}
		return
	case *pg_query.SubLink:
		t.requireUnmasked(n.Testexpr, in)
		outs := t.traceSelect(n.Subselect.GetSelectStmt(), in)
		if n.SubLinkType != pg_query.SubLinkType_EXISTS_SUBLINK && anyMasked(outs) {
			t.fail(int(n.Location), "a subquery in an expression returns a masked column")
		}
		return
	case *pg_query.SelectStmt, *pg_query.RangeVar:
		t.failUntraceable(-1, "an expression")
		return
	}
	nodeTypeOf(
		node.Type().Elem(),
	).forEachChild(node.Elem(), func(_ *nodeType, below reflect.Value) { t.requireUnmaskedNode(below, in) })
}

// traceReference resolves a column name and reports whether the column is masked.
func (t *tracer) traceReference(n *pg_query.ColumnRef, in *scope) (name string, hidden bool) {
	parts := stringsOf(n.Fields)
	name, of := parts[len(parts)-1], ""
	if len(parts) > 1 {
		of = parts[len(parts)-2]
	}
	hit, hidden, loose := in.lookUp(of, name)
	if hit {
		return name, hidden
	}
	if row := in.sourceNamed(name); of == "" && row != nil {
		if anyMasked(row.columns) {
			t.fail(int(n.Location), "%s is a whole row with a masked column", name)
		}
		return name, false
	}
	if !loose {
		t.failUntraceable(int(n.Location), strings.Join(parts, "."))
		t.refusal.Nearest = strings.Clone(
			policy.Nearest(name, slices.Values(in.columnNames())),
		) // without Clone it keeps the text of the tree alive
	}
	return name, hidden
}

// columnsOfStar returns the columns of table.*.
func (t *tracer) columnsOfStar(n *pg_query.ColumnRef, in *scope) []output {
	parts := stringsOf(n.Fields)
	s := in.sourceNamed(parts[len(parts)-2])
	if s == nil {
		t.failUntraceable(int(n.Location), strings.Join(parts[:len(parts)-1], ".")+".*")
		return nil
	}
	return s.columns
}
