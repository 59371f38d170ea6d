package dbaccess

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// value.name calls the function name(value) where the value has no such column,
// and casts it where name is a type. It can't be bound in the text, so what may be
// a call of a function that is not allowed is refused.

// attribute judges (expression).name, whose expression may be of any type.
func (w *walker) attribute(name string, at int) {
	switch {
	case w.written: // the server writes calls as calls
		return
	case w.known == nil:
		if strings.HasPrefix(name, "pg_") || strings.HasPrefix(name, "lo_") {
			w.fail(at, unlisted(name+", in attribute notation,", false))
		}
		return
	}
	w.names[name] = true
	if t := find(w.known.types[name], "", w.path, schemaOfType); t != nil && !w.known.columns[name] {
		w.useType(t, at)
	}
	for _, f := range w.known.functions[name] {
		if !f.allowed && f.takes(1) && w.found(f) {
			w.fail(at, unlisted(name+", in attribute notation,", false))
		}
	}
}

// reference judges table.name, which can only call a function that takes a row.
func (w *walker) reference(n *pg_query.ColumnRef) {
	parts := strs(n.Fields)
	of, name := parts[len(parts)-2], parts[len(parts)-1]
	if w.known == nil || w.written {
		return
	}
	for _, f := range w.known.functions[name] {
		if !f.allowed && f.takes(1) && w.found(f) && w.takesRow(f, of, name) {
			w.fail(int(n.Location), unlisted(name+", in attribute notation,", false))
		}
	}
}

func (w *walker) found(f *function) bool {
	return f.schema == "pg_catalog" || slices.Contains(w.path, f.schema)
}

// rowsOfFunction stands for a function in the FROM list: its rows may be of any
// type.
var rowsOfFunction = &relation{}

// rowTypes are the pseudo-types that a row is one of.
var rowTypes = words("record any anyelement anynonarray anycompatible anycompatiblenonarray")

// takesRow says that the function may be called with a row of what a name stands
// for. Where that is a relation with a column of the function's name, the column
// is meant.
func (w *walker) takesRow(f *function, of, name string) bool {
	if len(f.args) == 0 {
		return false
	}
	first := w.known.typeOf[f.args[0]]
	if first != nil && first.kind != 'c' && first.kind != 'd' && !(first.kind == 'p' && rowTypes[first.name]) {
		return false
	}
	for _, r := range w.aliases[of] {
		if named := first != nil && first.kind == 'c'; r == nil && named {
			continue // a subquery's or a join's rows are of no named type
		} else if r == nil || r == rowsOfFunction || !r.columns[name] && (!named || first.oid == r.row) {
			return true
		}
	}
	return len(w.aliases[of]) == 0
}

// alias notes what a name of the FROM list stands for.
func (w *walker) alias(a *pg_query.Alias, r *relation) {
	if a != nil {
		w.aliases[a.Aliasname] = append(w.aliases[a.Aliasname], r)
	}
}
