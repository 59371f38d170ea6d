package dbaccess

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// value.name calls the function name(value) if the value has no such column, and casts the value if
// name is a type. It cannot be qualified in the text. Therefore it is refused if it may call a function
// that is not allowed.

// checkAttribute checks (expression).name, whose expression may have any type.
func (checker *statementChecker) checkAttribute(name string, at int) {
	switch {
	case checker.isServerText: // the server writes such calls in functional notation
		return
	case checker.catalog == nil:
		if strings.HasPrefix(name, "pg_") || strings.HasPrefix(name, "lo_") {
			checker.fail(at, refuseFunction(name+", in attribute notation,", false))
		}
		return
	}
	checker.mentionedNames[name] = true
	if t := findInPath(checker.catalog.types[name], "", checker.searchPath, schemaOfType); t != nil && !checker.catalog.columnNames[name] {
		checker.checkType(t, at)
	}
	for _, f := range checker.catalog.functions[name] {
		if !f.allowed && f.acceptsArgs(1) && checker.isVisible(f) {
			checker.fail(at, refuseFunction(name+", in attribute notation,", false))
		}
	}
}

// checkReference checks table.name, which can only call a function that takes a row.
func (checker *statementChecker) checkReference(n *pg_query.ColumnRef) {
	parts := stringsOf(n.Fields)
	of, name := parts[len(parts)-2], parts[len(parts)-1]
	if checker.catalog == nil || checker.isServerText {
		return
	}
	for _, f := range checker.catalog.functions[name] {
		if !f.allowed && f.acceptsArgs(1) && checker.isVisible(f) && checker.acceptsRow(f, of, name) {
			checker.fail(int(n.Location), refuseFunction(name+", in attribute notation,", false))
		}
	}
}

func (checker *statementChecker) isVisible(f *function) bool {
	return f.schema == "pg_catalog" || slices.Contains(checker.searchPath, f.schema)
}

// rowsOfFunction stands for a function in the FROM list, whose rows may have any type.
var rowsOfFunction = &relation{}

// rowTypes are the pseudo-types that accept a row.
var rowTypes = wordSet("record any anyelement anynonarray anycompatible anycompatiblenonarray")

// acceptsRow reports whether the function may be called with a row of the source `of`. If the source
// is a relation with a column of that name, the column is meant and the function is not called.
func (checker *statementChecker) acceptsRow(f *function, of, name string) bool {
	if len(f.args) == 0 {
		return false
	}
	first := checker.catalog.typesByOID[f.args[0]]
	if first != nil && first.kind != 'c' && first.kind != 'd' && !(first.kind == 'p' && rowTypes[first.name]) {
		return false
	}
	for _, r := range checker.aliases[of] {
		if named := first != nil && first.kind == 'c'; r == nil && named {
			continue // rows of a subquery or a join have no named type
		} else if r == nil || r == rowsOfFunction || !r.columns[name] && (!named || first.oid == r.rowType) {
			return true
		}
	}
	return len(checker.aliases[of]) == 0
}

// addAlias records what a name of the FROM list refers to.
func (checker *statementChecker) addAlias(a *pg_query.Alias, r *relation) {
	if a != nil {
		checker.aliases[a.Aliasname] = append(checker.aliases[a.Aliasname], r)
	}
}
