package check

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// value.name calls the function name(value) if the value has no such column, and casts the value if
// name is a type. It cannot be qualified in the text. Therefore it is refused if it may call a function
// that is not allowed.

// checkAttribute checks (expression).name, whose expression may have any type.
func (w *walker) checkAttribute(name string, at int) {
	switch {
	case w.isServerText: // the server writes such calls in functional notation
		return
	case w.catalog == nil:
		if strings.HasPrefix(name, "pg_") || strings.HasPrefix(name, "lo_") {
			w.fail(at, refuseFunction(name+", in attribute notation,", false))
		}
		return
	}
	w.mentionedNames[name] = true
	if t := w.findType("", name); t != nil &&
		!w.catalog.ColumnNames[name] {
		w.checkType(t, at)
	}
	for _, f := range w.catalog.functions[name] {
		if !f.allowed && f.acceptsArgs(1) && w.isVisible(f) {
			w.fail(at, refuseFunction(name+", in attribute notation,", false))
		}
	}
}

// checkReference checks table.name, which can only call a function that takes a row.
func (w *walker) checkReference(n *pg_query.ColumnRef) {
	parts := stringsOf(n.Fields)
	of, name := parts[len(parts)-2], parts[len(parts)-1]
	if w.catalog == nil || w.isServerText {
		return
	}
	for _, f := range w.catalog.functions[name] {
		if !f.allowed && f.acceptsArgs(1) && w.isVisible(f) && w.acceptsRow(f, of, name) {
			w.fail(int(n.Location), refuseFunction(name+", in attribute notation,", false))
		}
	}
}

func (w *walker) isVisible(f *function) bool {
	return f.schema == "pg_catalog" || slices.Contains(w.searchPath, f.schema)
}

// rowsOfFunction stands for a function in the FROM list, whose rows may have any type.
var rowsOfFunction = &relation{}

// rowTypes are the pseudo-types that accept a row.
var rowTypes = wordSet("record any anyelement anynonarray anycompatible anycompatiblenonarray")

// acceptsRow reports whether the function may be called with a row of the source `of`. If the source
// is a relation with a column of that name, the column is meant and the function is not called.
func (w *walker) acceptsRow(f *function, of, name string) bool {
	if len(f.args) == 0 {
		return false
	}
	first := w.catalog.TypesByOID[f.args[0]]
	if first != nil && first.Kind != 'c' && first.Kind != 'd' && !(first.Kind == 'p' && rowTypes[first.Name]) {
		return false
	}
	for _, r := range w.aliases[of] {
		if named := first != nil && first.Kind == 'c'; r == nil && named {
			continue // rows of a subquery or a join have no named type
		} else if r == nil || r == rowsOfFunction || !r.columns[name] && (!named || first.oid == r.rowType) {
			return true
		}
	}
	return len(w.aliases[of]) == 0
}

// addAlias records the relation that a name of the FROM list refers to.
func (w *walker) addAlias(a *pg_query.Alias, r *relation) {
	if a != nil {
		w.aliases[a.Aliasname] = append(w.aliases[a.Aliasname], r)
	}
}
