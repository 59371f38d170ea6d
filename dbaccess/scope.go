package dbaccess

import (
	"reflect"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// systemColumns are those that every table has besides its own.
var systemColumns = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}

// column looks a name up as the server does: in the innermost level that has it.
// Where two sources of that level do, which is an error of the server's, one that
// is masked counts. loose says that it may be a column which is not known by name.
func (s *scope) column(of, name string) (hit, hidden, loose bool) {
	for ; s != nil; s = s.outer {
		found := false
		for i := range s.sources {
			src := &s.sources[i]
			if of != "" && src.name != of {
				continue
			}
			found = true
			for _, c := range src.columns {
				if c.name == name && !c.many {
					hit, hidden = true, hidden || c.masked
				}
			}
			hit = hit || slices.Contains(src.extra, name)
			// row.name may be a call of a function with the row.
			loose = loose || src.loose && (of == "" || !masked(src.columns))
		}
		if hit || of != "" && found {
			break
		}
	}
	return hit, hidden, loose
}

// named is the source of a name, in the innermost level that has it. Two of one
// name, from two schemas, are taken for one with the columns of both.
func (s *scope) named(name string) *source {
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

// names are all that a column may be meant by.
func (s *scope) names() map[string]bool {
	out := map[string]bool{}
	for ; s != nil; s = s.outer {
		for _, src := range s.sources {
			for _, c := range src.columns {
				if c.name != "" {
					out[c.name] = true
				}
			}
		}
	}
	return out
}

// from traces an item of the FROM list. left is what stands before it, which is
// seen by LATERAL alone. It returns what * gives, and what can be named.
func (t *tracer) from(n *pg_query.Node, left []source, in *scope) ([]output, []source) {
	if n == nil || t.err != nil {
		return nil, nil
	}
	lateral := &scope{sources: left, outer: in.outer, ctes: in.ctes}
	plain := &scope{outer: in.outer, ctes: in.ctes}
	switch {
	case n.GetRangeVar() != nil:
		s := t.table(n.GetRangeVar(), in)
		return s.columns, []source{s}
	case n.GetRangeSubselect() != nil:
		sub := n.GetRangeSubselect()
		around := plain
		if sub.Lateral {
			around = lateral
		}
		s := t.aliased(source{columns: t.query(sub.Subquery.GetSelectStmt(), around)}, sub.Alias)
		return s.columns, []source{s}
	case n.GetRangeFunction() != nil:
		f := n.GetRangeFunction()
		for _, call := range f.Functions {
			t.clean(call, lateral)
		}
		s := t.aliased(source{name: functionName(f), columns: []output{{many: true}}, loose: true}, f.Alias)
		return s.columns, []source{s}
	case n.GetRangeTableFunc() != nil:
		x := n.GetRangeTableFunc()
		t.cleanNode(reflect.ValueOf(x), lateral)
		s := t.aliased(source{name: "xmltable", columns: []output{{many: true}}, loose: true}, x.Alias)
		return s.columns, []source{s}
	case n.GetRangeTableSample() != nil:
		x := n.GetRangeTableSample()
		for _, arg := range append(slices.Clone(x.Args), x.Repeatable) {
			t.clean(arg, lateral)
		}
		return t.from(x.Relation, left, in)
	case n.GetJoinExpr() != nil:
		return t.join(n.GetJoinExpr(), left, in)
	}
	t.untraceable(-1, "an item of the FROM list")
	return nil, nil
}

func functionName(f *pg_query.RangeFunction) string {
	if len(f.Functions) > 0 {
		if items := f.Functions[0].GetList().GetItems(); len(items) > 0 {
			if parts := strs(items[0].GetFuncCall().GetFuncname()); len(parts) > 0 {
				return parts[len(parts)-1]
			}
		}
	}
	return ""
}

func (t *tracer) join(j *pg_query.JoinExpr, left []source, in *scope) ([]output, []source) {
	lstar, lsources := t.from(j.Larg, left, in)
	rstar, rsources := t.from(j.Rarg, append(slices.Clone(left), lsources...), in)
	sources := append(slices.Clone(lsources), rsources...)
	t.clean(j.Quals, &scope{sources: sources, outer: in.outer, ctes: in.ctes})

	shared := strs(j.UsingClause)
	if j.IsNatural {
		if (manyIn(lstar) || manyIn(rstar)) && (masked(lstar) || masked(rstar)) {
			t.untraceable(-1, "what a NATURAL JOIN joins by")
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
			t.fail(-1, "%s is masked, and is joined by", c.name)
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
	if j.Alias != nil { // hides what is in it
		s := t.aliased(source{columns: star, loose: manyIn(star)}, j.Alias)
		return s.columns, []source{s}
	}
	return star, sources
}

func manyIn(outs []output) bool {
	return slices.ContainsFunc(outs, func(o output) bool { return o.many || o.name == "" })
}

// table is a relation of the FROM list, or what WITH gives by that name.
func (t *tracer) table(n *pg_query.RangeVar, in *scope) source {
	if n.Schemaname == "" {
		for c := in.ctes; c != nil; c = c.next {
			if c.name == n.Relname {
				if c.later {
					t.untraceable(int(n.Location), n.Relname)
				}
				return t.aliased(c.source, n.Alias)
			}
		}
	}
	s := source{name: n.Relname, extra: systemColumns}
	r := find(t.w.known.relations[n.Relname], n.Schemaname, t.w.path, func(r *relation) string { return r.schema })
	if r == nil {
		t.err = refuse("unknown-table", "there is no table %q that may be read", n.Relname)
		t.err.Nearest = nearest(n.Relname, t.w.known.tables)
		t.err.Position = int(n.Location) + 1
		return s
	}
	columns, err := t.columnsOf(r)
	if err != nil && t.err == nil {
		t.err = err
	}
	s.columns = columns
	return t.aliased(s, n.Alias)
}

// aliased gives a source the names that an alias has for it.
func (t *tracer) aliased(s source, a *pg_query.Alias) source {
	for _, c := range s.columns {
		if c.masked && c.name == "" {
			t.untraceable(-1, "a masked column without a name (give it one with AS)")
		}
		s.loose = s.loose || c.name == "" || c.many
	}
	if a == nil {
		return s
	}
	s.name = a.Aliasname
	s.columns = t.renamed(s.columns, a.Colnames, -1)
	return s
}

// renamed gives columns new names, from the left.
func (t *tracer) renamed(outs []output, names []*pg_query.Node, at int) []output {
	if len(names) == 0 {
		return outs
	}
	if masked(outs) && slices.ContainsFunc(outs, func(o output) bool { return o.many }) {
		t.untraceable(at, "a list of names")
	}
	out := slices.Clone(outs)
	for i, name := range strs(names) {
		if i < len(out) && !out[i].many {
			out[i].name = name
		} else {
			out = slices.Insert(out, i, output{name: name})
		}
	}
	return out
}
