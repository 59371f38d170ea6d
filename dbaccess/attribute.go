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
func (checker *statementChecker) checkAttribute(name string, at int) {
	switch {
	case checker.isServerText: // the server writes calls as calls
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

// checkReference judges table.name, which can only call a function that takes a row.
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

// rowsOfFunction stands for a function in the FROM list: its rows may be of any
// type.
var rowsOfFunction = &relation{}

// rowTypes are the pseudo-types that a row is one of.
var rowTypes = wordSet("record any anyelement anynonarray anycompatible anycompatiblenonarray")

// acceptsRow says that the function may be called with a row of what a name stands
// for. Where that is a relation with a column of the function's name, the column
// is meant.
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
			continue // a subquery's or a join's rows are of no named type
		} else if r == nil || r == rowsOfFunction || !r.columns[name] && (!named || first.oid == r.rowType) {
			return true
		}
	}
	return len(checker.aliases[of]) == 0
}

// addAlias notes what a name of the FROM list stands for.
func (checker *statementChecker) addAlias(a *pg_query.Alias, r *relation) {
	if a != nil {
		checker.aliases[a.Aliasname] = append(checker.aliases[a.Aliasname], r)
	}
}
