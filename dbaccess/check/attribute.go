package check

import (
	"fmt"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// The server reads x.y as y(x), or as a cast of x to the type y, if x has no column y. The text of such a call cannot
// be qualified, and the type of x is often unknown here: a row of a table is also a row of its parents and of its
// type, and an item of FROM may be a scalar. Therefore x.y is allowed only if
//
//   - x is certain to have the column y, or
//   - every function y of pg_catalog that can take one argument is allowed, and every type y is. Functions and types of
//     other schemas are not on the search path, unless the statement needs them there (path.go).

// reference is the name of an item of FROM and what follows it.
type reference struct{ of, name string }

// isColumn reports whether a reference is certain to be a column. The name of an item may refer to another item in
// another part of the statement. Therefore each item of that name must have the column.
func (w *walker) isColumn(r reference) bool {
	is, known := w.knownReferences[r]
	if !known {
		items, columns := w.fromItems[r.of], map[*fromItem]bool{}
		lacks := func(item *fromItem) bool { return !w.spend(1) || !w.hasColumn(item, r.name, columns) }
		is = len(items) > 0 && !w.hasUnnamedItem && !slices.ContainsFunc(items, lacks)
		w.knownReferences[r] = is
	}
	return is
}

// checkReference checks item.name. It is called after the walk, which finds all items of FROM.
func (w *walker) checkReference(n *pg_query.ColumnRef) {
	last := len(n.Fields) - 1
	r := reference{n.Fields[last-1].GetString_().GetSval(), n.Fields[last].GetString_().GetSval()}
	isCallable := w.catalog == nil || len(w.catalog.functions[r.name]) > 0 || len(w.catalog.types[r.name]) > 0
	if !isCallable || w.isColumn(r) {
		return
	}
	w.checkAttribute(r.name, int(n.Location), r.of)
}

// checkAttribute checks .name after an expression of any type. If the expression is an item of FROM, of is its name.
func (w *walker) checkAttribute(name string, at int, of string) {
	refuse := func(schema string, no *sandbox.Refusal) {
		if of != "" {
			no.Message += fmt.Sprintf(", and %s is not certain to have a column %s", of, name)
			no.Hint = fmt.Sprintf("if it has one, list its columns in FROM: AS %s (column, ...)", of)
			if len(w.fromItems[of]) > 1 {
				no.Hint += ", and use this name for nothing else"
			}
		}
		if schema == "pg_catalog" || w.allowWrites { // somebody may approve it before the server reads it
			w.fail(at, no)
		} else {
			w.bar(schema, at, no)
		}
	}
	if w.catalog == nil {
		if strings.HasPrefix(name, "pg_") || policy.SQLHasEffect(name) {
			refuse("pg_catalog", refuseFunction(name+", in attribute notation,", false))
		}
		return
	}
	for _, t := range w.catalog.types[name] {
		// The server does not cast to types of rows in this notation. Only cstring, of the pseudo-types, has values.
		if w.isVisible(t.Schema) && t.Kind != 'c' && (t.Kind != 'p' || t.Name == "cstring") {
			w.mentionedNames[name] = true
			w.keepsPath = w.keepsPath || w.catalog.isNameType(t.oid)
			if !w.isTypeAllowed(t, 0) {
				refuse(t.Schema, refuseType(t.Name))
			}
		}
	}
	for _, f := range w.catalog.functions[name] {
		// No row has the pseudo-type internal. A NULL may have any type.
		if !f.allowed && f.acceptsArgs(1) && w.isVisible(f.schema) && !(of != "" && w.catalog.takesInternal(f)) {
			refuse(f.schema, refuseFunction(name+", in attribute notation,", false))
		} else if f.allowed && f.acceptsArgs(1) && w.isVisible(f.schema) {
			w.keepPathOf(f)
			w.castsToText = w.castsToText || f.castsArguments
			if f.schema != "pg_catalog" {
				w.addCall(f)
				w.keep(f.schema)
			}
		}
	}
}

// isVisible reports whether an unqualified name may refer to an object of the schema.
func (w *walker) isVisible(schema string) bool {
	return schema == "pg_catalog" || slices.Contains(w.searchPath, schema)
}
