package dbaccess

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// A masked column may leave a statement, as a bare output column, and may do
// nothing else in it: whatever is computed, compared, sorted or grouped by it
// tells of its values. So every name in a statement that reads a table with one
// is traced to where it comes from, by the scopes that the server itself uses.
// What can't be traced is refused.

// output is one column of what a FROM item or a subquery gives.
type output struct {
	name        string // "" is a name that only the server works out, and never of a masked one that can be referred to
	masked      bool
	isOpenEnded bool // stands for any number of columns, none masked: a function's
}

// source is what a name of the FROM list stands for.
type source struct {
	name           string
	columns        []output
	hiddenColumns  []string // can be named, and are not in *
	hasMoreColumns bool     // has more columns than are listed, none masked
}

// scope is where names are looked up: what one query level, or an arm of it,
// sees, and what is around it.
type scope struct {
	sources []source
	outer   *scope
	ctes    *cte
}

// cte is one of WITH; the next is one that it may hide.
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
	checker *statementChecker
	// columnsOf says what a relation gives: for a view, by its definition.
	columnsOf    func(*relation) ([]output, *sandbox.Refusal)
	refusal      *sandbox.Refusal
	serviceError error // not the statement's
}

func (t *tracer) fail(at int, format string, args ...any) {
	if t.refusal == nil {
		t.refusal = refuse("masked-column", format, args...)
		t.refusal.Hint = "a masked column can be selected as it is, and nothing else be done with it: leave it out of what is computed, compared, sorted or grouped"
		if at >= 0 && at <= len(t.checker.sql) {
			t.refusal.Position = at + 1
		}
	}
}

// failUntraceable are what a source's columns are where it can't be told.
func (t *tracer) failUntraceable(at int, what string) {
	t.fail(at, "%s can't be traced to a column, and the statement reads a table with masked columns", what)
}

func anyMasked(outs []output) bool {
	return slices.ContainsFunc(outs, func(o output) bool { return o.masked })
}

// traceSelect traces a SELECT and what is in it, and returns its columns.
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
		if key.GetNode() == nil { // plain DISTINCT, which is a list of nothing
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
	if n.GetRecursive() { // each sees all; what is not traced yet can't be
		for _, node := range n.Ctes {
			in.ctes = &cte{source: source{name: node.GetCommonTableExpr().GetCtename()}, next: in.ctes, isForward: true}
		}
	}
	for _, node := range n.GetCtes() {
		c := node.GetCommonTableExpr()
		q := c.GetCtequery().GetSelectStmt()
		if q == nil {
			t.failUntraceable(int(c.GetLocation()), "what WITH gives")
			return
		}
		made := source{name: c.Ctename}
		if n.Recursive && isSetOperation(q) {
			// It may refer to itself, by the names of its first arm. A set operation has no
			// masked column, so neither has what it refers to.
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

// innerCTEs are the common tables that a set operation's own WITH adds.
func (t *tracer) innerCTEs(q *pg_query.SelectStmt, in *scope) *cte {
	own := in.nested()
	t.traceWith(q.WithClause, own)
	return own.ctes
}

// traceTarget is one entry of a SELECT list.
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

// traceKey is what is sorted, grouped or made distinct by: the number or the name of an
// output column, or an expression.
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
		if slices.ContainsFunc(outs, func(o output) bool { return o.isOpenEnded }) && anyMasked(outs) || i >= 0 && i < len(outs) && outs[i].masked {
			t.fail(int(n.GetAConst().Location), "output column %d is masked, and is sorted or grouped by", i+1)
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
				t.fail(int(ref.Location), "%s is masked, and is sorted or grouped by", name)
			}
		}
	}
	if known && !group {
		return // an output column is meant before one of a table
	}
	if hit, _, _ := in.lookUp("", name); hit || !known && !unnamed || in.sourceNamed(name) != nil {
		t.requireUnmasked(n, in)
	}
}

// requireUnmasked refuses an expression that has a masked column anywhere in it.
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
			t.fail(int(n.Location), "%s is masked, and is used in an expression or a condition", name)
		}
		return
	case *pg_query.SubLink:
		t.requireUnmasked(n.Testexpr, in)
		outs := t.traceSelect(n.Subselect.GetSelectStmt(), in)
		if n.SubLinkType != pg_query.SubLinkType_EXISTS_SUBLINK && anyMasked(outs) {
			t.fail(int(n.Location), "a subquery in an expression gives a masked column")
		}
		return
	case *pg_query.SelectStmt, *pg_query.RangeVar:
		t.failUntraceable(-1, "what stands in an expression")
		return
	}
	nodeTypeOf(node.Type().Elem()).forEachChild(node.Elem(), func(_ *nodeType, below reflect.Value) { t.requireUnmaskedNode(below, in) })
}

// traceReference is what a column's name means, and whether that is masked.
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
		t.refusal.Nearest = strings.Clone(nearestName(name, in.columnNames())) // or it would keep the whole tree's text
	}
	return name, hidden
}

// columnsOfStar are the columns of table.*.
func (t *tracer) columnsOfStar(n *pg_query.ColumnRef, in *scope) []output {
	parts := stringsOf(n.Fields)
	s := in.sourceNamed(parts[len(parts)-2])
	if s == nil {
		t.failUntraceable(int(n.Location), strings.Join(parts[:len(parts)-1], ".")+".*")
		return nil
	}
	return s.columns
}
