package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// A statement runs with the search path pg_catalog. Its tables, types and functions of other schemas are qualified in
// the text. So a text that the check reads in another way than the server cannot reach a function of another schema:
// there is none on the path.
//
// Some statements need more. Operators cannot be qualified without a change of their precedence, and IN, BETWEEN and
// LIKE not at all. Texts such as 'orders'::regclass are names which the server looks up while the statement runs, and
// so does the body of a function that sets no path. For these the schemas stay on the path. A schema cannot stay if the
// statement would then call one of its functions that is not allowed; such a statement is refused.

// keep notes that a schema must stay on the path.
func (w *walker) keep(schema string) { w.keptSchemas[schema] = true }

// keepPathOf notes that the schemas which a called function needs must stay: those of the login's path, or that of its
// extension, so that the body of an extension's function finds no function of another schema.
func (w *walker) keepPathOf(f *function) {
	switch {
	case !f.usesPath:
	case f.extension != "":
		w.keep(f.schema)
	default:
		w.keepsPath = true
	}
}

// bar notes that the statement would call something if a schema stayed on the path.
func (w *walker) bar(schema string, at int, why *sandbox.Refusal) {
	if w.barredSchemas[schema] == nil {
		why.Position = at + 1 // 0 if it is unknown
		w.barredSchemas[schema] = why
	}
}

// checkSyntaxCall bars the schemas with a function of a name that the parser reads as syntax, and that a server of
// another version reads as a call.
func (w *walker) checkSyntaxCall(name string, at int) {
	if w.catalog == nil {
		return
	}
	for _, f := range w.catalog.functions[name] {
		switch {
		case !slices.Contains(w.searchPath, f.schema):
		case f.allowed:
			w.keep(f.schema)
			w.addCall(f)
		default:
			w.bar(f.schema, at, refuseFunction(name, false))
		}
	}
}

// checkOperatorSchemas keeps the schemas of allowed operators that the statement may mean, and bars those of operators
// that are not allowed. The statement may mean an operator if values of its operands' types may occur. It is called
// after the walk, which finds these types.
func (w *walker) checkOperatorSchemas() {
	if w.catalog == nil || len(w.searchPath) == 0 {
		return
	}
	for name, at := range w.operatorNames {
		isBuiltIn := slices.ContainsFunc(w.catalog.operators[name],
			func(o *operator) bool { return o.schema == "pg_catalog" })
		for _, o := range w.catalog.operators[name] {
			if !slices.Contains(w.searchPath, o.schema) || isBuiltIn &&
				!(w.mayOccur(w.catalog.TypesByOID[o.left]) && w.mayOccur(w.catalog.TypesByOID[o.right])) {
				continue
			}
			if !o.allowed {
				w.bar(o.schema, at, refuseOperator(name))
				continue
			}
			w.keep(o.schema)
			if o.function != nil && o.function.schema != "pg_catalog" {
				w.addCall(o.function)
			}
			w.keepsPath = w.keepsPath || o.usesPath()
			w.unifiesTypes = w.unifiesTypes ||
				w.catalog.isPolymorphicType(o.left) || w.catalog.isPolymorphicType(o.right)
		}
	}
}

func (o *operator) usesPath() bool { return o.function != nil && o.function.usesPath }

// mayOccur reports whether a value of the type may occur in the statement. A value of a built-in type always may. nil
// stands for the missing operand of an operator with one operand.
func (w *walker) mayOccur(t *Type) bool {
	if t == nil || t.Schema == "pg_catalog" || w.unknownTable != nil || w.mentionedNames[t.Name] {
		return true
	}
	for r := range w.relations {
		if r.rowType == t.oid {
			return true
		}
		for _, oid := range r.userTypes {
			if w.catalog.contains(oid, t, 0) {
				return true
			}
		}
	}
	for oid := range w.callTypes {
		if w.catalog.typeName(oid) == "record" || w.catalog.contains(oid, t, 0) {
			return true
		}
	}
	for used := range w.usedTypes {
		if w.catalog.contains(used.oid, t, 0) {
			return true
		}
	}
	return false
}

// contains reports whether values of a type are, or have in them, values of the type part.
func (cat *Catalog) contains(oid uint32, part *Type, depth int) bool {
	t := cat.TypesByOID[oid]
	if t == nil || depth > maxTypeDepth {
		return false
	}
	return t == part || t.Element != 0 && cat.contains(t.Element, part, depth+1) ||
		slices.ContainsFunc(t.members, func(m uint32) bool { return cat.contains(m, part, depth+1) })
}

// maxBoundBytes bounds the text with the schemas of its names. A text of 1 MiB has at most half a million names.
const maxBoundBytes = 4 << 20

// bindNames sets the text that runs and its search path. It returns a refusal if the statement needs a schema that is
// barred.
func (stmt *Statement) bindNames(w *walker) *sandbox.Refusal {
	for _, i := range w.qualifications {
		if !w.qualify(i.at, i.name, i.prefix) {
			w.keepsPath = true // the name is not in the text, or it is written in another way
		}
	}
	// pg_temp is searched first unless the path names it, so it is named last. pg_catalog is searched first unless the
	// path names it: if a schema stays, it is not named, so current_schema() is the login's.
	path := []string{"pg_temp"}
	for _, s := range w.searchPath {
		no, must := w.barredSchemas[s], w.keepsPath || w.keptSchemas[s]
		if must && no != nil {
			if no.Hint == "" {
				no.Hint = "without the schema " + s + " on the search path it would not be called, but other names of the " +
					"statement, or the body of a function, need this schema there"
			}
			return no
		}
		if must || w.allowWrites && no == nil { // the triggers of a table may need it
			path = slices.Insert(path, len(path)-1, pgx.Identifier{s}.Sanitize())
		}
	}
	if len(path) == 1 {
		path = []string{"pg_catalog", "pg_temp"}
	}
	stmt.SearchPath = strings.Join(path, ", ")
	var no *sandbox.Refusal
	stmt.SQL, stmt.toSQL, no = apply(stmt.numbered, w.edits)
	return no
}

// builtInCollations have the same name on every server. Another collation may belong to any schema.
var builtInCollations = wordSet("C POSIX default ucs_basic und-x-icu unicode")

// homesOf returns the schemas of the search path that are in a set, in the order of the path.
func (w *walker) homesOf(schemas map[string]bool) []string {
	homes := slices.Collect(maps.Keys(schemas))
	place := func(schema string) int { return slices.Index(w.searchPath, schema) }
	slices.SortFunc(homes, func(a, b string) int { return place(a) - place(b) })
	return homes
}
