package check

import (
	"glasshouse/policy"
	"glasshouse/sandbox"
	"maps"
	"reflect"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// systemColumns exist in every table in addition to its own columns.
var systemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// lookUp resolves a column name as the server does: in the innermost query level that has the column. If
// two sources of that level have the column, lookUp returns a masked one; the server reports the name as
// ambiguous. loose reports that the name may refer to a column that is not listed.
func (s *scope) lookUp(of, name string) (hit, hidden, loose bool) {
	for ; s != nil; s = s.outer {
		found := false
		for i := range s.sources {
			src := &s.sources[i]
			if of != "" && src.name != of {
				continue
			}
			found = true
			for _, c := range src.columns {
				if c.name == name && !c.isOpenEnded {
					hit, hidden = true, hidden || c.masked
				}
			}
			hit = hit || slices.Contains(src.hiddenColumns, name)
			// row.name may call a function with the row.
			loose = loose || src.hasMoreColumns && (of == "" || !anyMasked(src.columns))
		}
		if hit || of != "" && found {
			break
		}
	}
	return hit, hidden, loose
}

// sourceNamed returns the source of a name in the innermost level that has it. Two sources with the
// same name, from two schemas, are merged.
func (s *scope) sourceNamed(name string) *source {
	for ; s != nil; s = s.outer {
		var out *source
		for _, one := range s.sources {
			if one.name != name {
				continue
			}
			if out != nil {
				one.columns = append(slices.Clone(out.columns), one.columns...)
			}
			out = &one
		}
		if out != nil {
			return out
		}
	}
	return nil
}

// columnNames returns all column names that are visible, for suggestions.
func (s *scope) columnNames() (out []string) {
	for ; s != nil; s = s.outer {
		for _, src := range s.sources {
			for _, c := range src.columns {
				if c.name != "" {
					out = append(out, c.name)
				}
			}
		}
	}
	return out
}

// traceFromItem traces an item of the FROM list. left holds the items before it, which only LATERAL
// items see. It returns the columns of * and the sources that can be named.
func (t *tracer) traceFromItem(n *pg_query.Node, left []source, in *scope) ([]output, []source) {
	if n == nil || t.refusal != nil {
		return nil, nil
	}
	lateral := &scope{sources: left, outer: in.outer, ctes: in.ctes}
	plain := &scope{outer: in.outer, ctes: in.ctes}
	switch {
	case n.GetRangeVar() != nil:
		s := t.traceTable(n.GetRangeVar(), in)
		return s.columns, []source{s}
	case n.GetRangeSubselect() != nil:
		sub := n.GetRangeSubselect()
		around := plain
		if sub.Lateral {
			around = lateral
		}
		s := t.withAlias(source{columns: t.traceSelect(sub.Subquery.GetSelectStmt(), around)}, sub.Alias)
		return s.columns, []source{s}
	case n.GetRangeFunction() != nil:
		f := n.GetRangeFunction()
		for _, call := range f.Functions {
			t.requireUnmasked(call, lateral)
		}
		s := t.withAlias(source{name: functionName(f), columns: []output{{isOpenEnded: true}}, hasMoreColumns: true},
			f.Alias)
		return s.columns, []source{s}
	case n.GetRangeTableFunc() != nil:
		x := n.GetRangeTableFunc()
		t.requireUnmaskedNode(reflect.ValueOf(x), lateral)
		s := t.withAlias(source{name: "xmltable", columns: []output{{isOpenEnded: true}}, hasMoreColumns: true},
			x.Alias)
		return s.columns, []source{s}
	case n.GetRangeTableSample() != nil:
		x := n.GetRangeTableSample()
		for _, arg := range append(slices.Clone(x.Args), x.Repeatable) {
			t.requireUnmasked(arg, lateral)
		}
		return t.traceFromItem(x.Relation, left, in)
	case n.GetJoinExpr() != nil:
		return t.traceJoin(n.GetJoinExpr(), left, in)
	}
	t.failUntraceable(-1, "an item of the FROM list")
	return nil, nil
}

func functionName(f *pg_query.RangeFunction) string {
	if len(f.Functions) > 0 {
		if items := f.Functions[0].GetList().GetItems(); len(items) > 0 {
			if parts := stringsOf(items[0].GetFuncCall().GetFuncname()); len(parts) > 0 {
				return parts[len(parts)-1]
			}
		}
	}
	return ""
}

func (t *tracer) traceJoin(j *pg_query.JoinExpr, left []source, in *scope) ([]output, []source) {
	lstar, lsources := t.traceFromItem(j.Larg, left, in)
	rstar, rsources := t.traceFromItem(j.Rarg, append(slices.Clone(left), lsources...), in)
	sources := append(slices.Clone(lsources), rsources...)
	t.requireUnmasked(j.Quals, &scope{sources: sources, outer: in.outer, ctes: in.ctes})

	shared := stringsOf(j.UsingClause)
	if j.IsNatural {
		if (hasUnknownColumns(lstar) || hasUnknownColumns(rstar)) && (anyMasked(lstar) || anyMasked(rstar)) {
			t.failUntraceable(-1, "the columns of a NATURAL JOIN")
		}
		for _, c := range lstar {
			if slices.ContainsFunc(rstar, func(o output) bool { return o.name == c.name }) {
				shared = append(shared, c.name)
			}
		}
	}
	isShared := func(o output) bool { return slices.Contains(shared, o.name) }
	var star, merged []output
	for _, side := range [][]output{lstar, rstar} {
		for _, c := range side {
			if !c.masked || !isShared(c) {
				continue
			}
			t.fail(-1, "the masked column %s is used in a join", c.name)
		}
	}
	for _, name := range shared {
		merged = append(merged, output{name: name})
	}
	star = append(star, merged...)
	for _, side := range [][]output{lstar, rstar} {
		star = append(star, slices.DeleteFunc(slices.Clone(side), isShared)...)
	}
	if j.JoinUsingAlias != nil {
		sources = append(sources, source{name: j.JoinUsingAlias.Aliasname, columns: merged})
	}
	if j.Alias != nil { // hides the names inside the join
		s := t.withAlias(source{columns: star, hasMoreColumns: hasUnknownColumns(star)}, j.Alias)
		return s.columns, []source{s}
	}
	return star, sources
}

func hasUnknownColumns(outs []output) bool {
	return slices.ContainsFunc(outs, func(o output) bool { return o.isOpenEnded || o.name == "" })
}

// traceTable resolves a name of the FROM list to a relation or a WITH query.
func (t *tracer) traceTable(n *pg_query.RangeVar, in *scope) source {
	if n.Schemaname == "" {
		for c := in.ctes; c != nil; c = c.next {
			if c.name == n.Relname {
				if c.isForward {
					t.failUntraceable(int(n.Location), n.Relname)
				}
				return t.withAlias(c.source, n.Alias)
			}
		}
	}
	s := source{name: n.Relname, hiddenColumns: systemColumns}
	r := t.checker.findRelation(n)
	if r == nil {
		t.refusal = sandbox.Refusef("unknown-table", "there is no table %q that may be read", n.Relname)
		t.refusal.Nearest = policy.Nearest(n.Relname, maps.Keys(t.checker.catalog.TableNames))
		t.refusal.Position = int(n.Location) + 1
		return s
	}
	columns, err := t.columnsOf(r)
	if err != nil && t.refusal == nil {
		t.refusal = err
	}
	s.columns = columns
	return t.withAlias(s, n.Alias)
}

// withAlias applies the names of an alias to a source.
func (t *tracer) withAlias(s source, a *pg_query.Alias) source {
	for _, c := range s.columns {
		if c.masked && c.name == "" {
			t.failUntraceable(-1, "a masked column without a name (give it one with AS)")
		}
		s.hasMoreColumns = s.hasMoreColumns || c.name == "" || c.isOpenEnded
	}
	if a == nil {
		return s
	}
	s.name = a.Aliasname
	s.columns = t.withColumnNames(s.columns, a.Colnames, -1)
	return s
}

// withColumnNames renames columns from the left.
func (t *tracer) withColumnNames(outs []output, names []*pg_query.Node, at int) []output {
	if len(names) == 0 {
		return outs
	}
	if anyMasked(outs) && slices.ContainsFunc(outs, func(o output) bool { return o.isOpenEnded }) {
		t.failUntraceable(at, "a column alias list")
	}
	out := slices.Clone(outs)
	for i, name := range stringsOf(names) {
		if i < len(out) && !out[i].isOpenEnded {
			out[i].name = name
		} else {
			out = slices.Insert(out, i, output{name: name})
		}
	}
	return out
}
