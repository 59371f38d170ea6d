package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// The server chooses among overloads by argument types, which are unknown here. Therefore every
// function that a call may resolve to is considered. If one of them is not allowed, the name is
// qualified with pg_catalog in the text, or the call is refused.

// checkFunction checks a call.
func (w *walker) checkFunction(n *pg_query.FuncCall) {
	parts := stringsOf(n.Funcname)
	name := parts[len(parts)-1]
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	at := int(n.Location)
	if len(parts) > 2 {
		w.fail(at, refuseFunction(strings.Join(parts, "."), false))
		return
	}
	w.mentionedNames[name] = true
	args := len(n.Args)
	if n.AggWithinGroup {
		args += len(n.AggOrder)
	}
	if name == "current_setting" && schema != "information_schema" && !w.isUserDefined(name) {
		w.checkCurrentSetting(n)
		return
	}
	if w.catalog == nil {
		if (schema == "" || schema == "pg_catalog") && len(policy.SQLFunctions[name]) > 0 {
			return
		}
		w.fail(at, refuseFunction(strings.Join(parts, "."), schema == "" || schema == "pg_catalog"))
		return
	}
	if args == 1 && !w.checkCastCall(schema, name, at) {
		return
	}
	if schema == "pg_catalog" && !w.hasText(at, "pg_catalog") {
		w.checkSyntaxCall(name, at)
	}
	system, users, schemas := candidates{}, candidates{}, map[string]bool{}
	for _, f := range w.catalog.functions[name] {
		switch {
		case !f.acceptsArgs(args) && !n.FuncVariadic:
			continue
		case f.schema == "pg_catalog" && (schema == "" || schema == "pg_catalog"):
			system.add(f.allowed)
		case f.schema == schema, schema == "" && slices.Contains(w.searchPath, f.schema):
			users.add(f.allowed)
			schemas[f.schema] = true
			w.addCall(f)
		default:
			continue
		}
		w.keepPathOf(f)
		w.unifiesTypes = w.unifiesTypes || w.catalog.isPolymorphic(f)
		w.castsToText = w.castsToText || f.castsArguments
	}
	switch {
	case system.allAllowed() && users.hasDisallowed:
		// A qualified name excludes better matches in other schemas.
		if !w.qualify(at, name, "pg_catalog.") {
			w.fail(at, refuseFunction(name, false))
		}
	case system.hasDisallowed, users.hasDisallowed:
		w.fail(at, refuseFunction(strings.Join(parts, "."), false))
	case system.found, users.found:
		switch homes := w.homesOf(schemas); {
		case schema != "":
		case !system.found && len(homes) == 1:
			w.qualifyLater(at, homes[0], name)
		default: // the server chooses by the arguments
			for _, s := range homes {
				w.keep(s)
			}
		}
	case args == 1 && w.findType(schema, name) != nil:
		if t := w.findType(schema, name); schema == "" && t.Schema != "pg_catalog" {
			w.qualifyLater(at, t.Schema, name)
		}
	case w.hasAllowedFunction(schema, name):
		// No function of this name takes this number of arguments; the server reports the error.
	case len(w.catalog.functions[name]) == 0:
		w.fail(at, refuseUnknownFunction(strings.Join(parts, "."), name))
	default:
		w.fail(at, refuseFunction(strings.Join(parts, "."), schema == "" || schema == "pg_catalog"))
	}
}

// candidates summarises the functions that a name may refer to.
type candidates struct{ found, hasDisallowed bool }

func (v *candidates) add(allowed bool) {
	v.found = true
	v.hasDisallowed = v.hasDisallowed || !allowed
}

func (v candidates) allAllowed() bool { return v.found && !v.hasDisallowed }

func refuseFunction(full string, suggest bool) *sandbox.Refusal {
	r := sandbox.Refusef("function-not-allowed", "the function %s is not on the list of allowed functions", full)
	if suggest {
		r.Nearest = policy.Nearest(full[strings.LastIndexByte(full, '.')+1:], maps.Keys(policy.SQLFunctions))
	}
	if r.Nearest != "" {
		r.Hint = "did you mean " + r.Nearest + "?"
	} else {
		r.Hint = "compute it in Python instead, or ask the operator to list the function"
	}
	return r
}

// qualifyLater notes that a name has one meaning, in a schema (bindNames).
func (w *walker) qualifyLater(at int, schema, name string) {
	w.qualifications = append(w.qualifications, qualification{at, pgx.Identifier{schema}.Sanitize() + ".", name})
}

// qualify inserts a schema before an unqualified name. It returns false if the text at that offset
// is not the name.
func (w *walker) qualify(at int, name, prefix string) bool {
	if at < 0 || at >= len(w.sql) {
		return false
	}
	isQuoted := w.sql[at] == '"' || w.hasText(at, `U&"`)
	if !isQuoted && !w.hasText(at, name) {
		return false
	}
	w.edits = append(w.edits, edit{at: at, end: at, text: prefix})
	return true
}

// hasText reports whether the statement has a text at an offset, in any case.
func (w *walker) hasText(at int, text string) bool {
	return at >= 0 && at+len(text) <= len(w.sql) && strings.EqualFold(w.sql[at:at+len(text)], text)
}

func (w *walker) isUserDefined(name string) bool {
	if w.catalog != nil {
		for _, f := range w.catalog.functions[name] {
			if slices.Contains(w.searchPath, f.schema) {
				return true
			}
		}
	}
	return false
}

// hasAllowedFunction reports whether an allowed function has that name, for any arguments.
func (w *walker) hasAllowedFunction(schema, name string) bool {
	for _, f := range w.catalog.functions[name] {
		if f.allowed && (f.schema == schema || schema == "" && w.isVisible(f.schema)) {
			return true
		}
	}
	return false
}

// checkCastCall checks type(value), which may be a cast. It returns false if that is refused.
func (w *walker) checkCastCall(schema, name string, at int) bool {
	t := w.findType(schema, name)
	if t == nil || t.Schema == "pg_catalog" && len(policy.SQLFunctions[name]) > 0 {
		return true
	}
	w.checkType(t, at)
	return w.err == nil
}

// checkCurrentSetting allows current_setting('name') with a constant name.
func (w *walker) checkCurrentSetting(n *pg_query.FuncCall) {
	if len(n.Args) > 0 {
		arg := n.Args[0]
		if c := arg.GetTypeCast(); c != nil {
			arg = c.Arg
		}
		if s := arg.GetAConst().GetSval(); s != nil {
			w.checkSetting(s.Sval, int(n.Location))
			return
		}
	}
	w.refuse(int(n.Location), "setting-not-allowed", "current_setting needs a constant name, so that it can be checked")
}

// betweenOperators are the operators that BETWEEN uses.
var betweenOperators = map[pg_query.A_Expr_Kind][]string{
	pg_query.A_Expr_Kind_AEXPR_BETWEEN: {">=", "<="}, pg_query.A_Expr_Kind_AEXPR_BETWEEN_SYM: {">=", "<="},
	pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN: {"<", ">"}, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM: {"<", ">"},
}

func (w *walker) checkExpression(n *pg_query.A_Expr) {
	if ops := betweenOperators[n.Kind]; ops != nil {
		w.checkImpliedOperators(int(n.Location), ops...)
		return
	}
	w.checkOperator(n.Name, int(n.Location))
}

func (w *walker) checkImpliedOperators(at int, ops ...string) {
	for _, op := range ops {
		w.checkOperatorName("", op, at)
	}
}

func (w *walker) checkOperator(op []*pg_query.Node, at int) {
	parts := stringsOf(op)
	switch len(parts) {
	case 0:
	case 1:
		w.checkOperatorName("", parts[0], at)
	case 2:
		w.checkOperatorName(parts[0], parts[1], at)
	default:
		w.fail(at, refuseOperator(strings.Join(parts, ".")))
	}
}

func refuseOperator(full string) *sandbox.Refusal {
	return sandbox.Refusef("function-not-allowed",
		"the operator %s is user-defined and not on the list of allowed operators", full)
}

// checkOperatorName checks an operator. checkOperatorSchemas decides about user-defined ones without a schema.
func (w *walker) checkOperatorName(schema, name string, at int) {
	if name == "!=" {
		name = "<>"
	}
	if w.catalog == nil {
		if schema != "" && schema != "pg_catalog" || len(policy.SQLOperators[name]) == 0 {
			w.fail(at, refuseOperator(name))
		}
		return
	}
	if schema == "" {
		w.operatorNames[name] = at
	}
	system, users := candidates{}, candidates{}
	for _, o := range w.catalog.operators[name] {
		switch {
		case o.schema == "pg_catalog" && (schema == "" || schema == "pg_catalog"):
			system.add(o.allowed)
			w.castsToText = w.castsToText || o.function != nil && o.function.castsArguments
		case schema != "" && o.schema == schema, schema == "" && slices.Contains(w.searchPath, o.schema):
			users.add(o.allowed)
			w.keepsPath = w.keepsPath || schema != "" && o.usesPath()
		}
	}
	switch {
	case system.hasDisallowed, users.hasDisallowed && (!system.found || schema != ""):
		w.fail(at, refuseOperator(name))
	case !system.found && !users.found && schema != "" && schema != "pg_catalog":
		w.fail(at, refuseOperator(schema+"."+name))
	}
}

// checkTypeName checks a type whose values the statement may create.
func (w *walker) checkTypeName(n *pg_query.TypeName) {
	parts := stringsOf(n.Names)
	if len(parts) == 0 {
		return // the type is in a function's column list or is %TYPE, which the server checks
	}
	name, schema := parts[len(parts)-1], ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	w.mentionedNames[name] = true
	at := int(n.Location)
	if len(parts) > 2 || n.PctType {
		w.fail(at, refuseType(strings.Join(parts, ".")))
		return
	}
	if w.catalog == nil {
		if schema != "" && schema != "pg_catalog" || !policy.SQLTypes[strings.TrimPrefix(name, "_")] {
			w.fail(at, refuseType(strings.Join(parts, ".")))
		}
		return
	}
	t := w.findType(schema, name)
	if t == nil {
		r := refuseType(strings.Join(parts, "."))
		r.Nearest = policy.Nearest(name, maps.Keys(policy.SQLTypes))
		w.fail(at, r)
		return
	}
	if schema == "" && t.Schema != "pg_catalog" {
		w.qualifyLater(at, t.Schema, name)
	}
	w.keepsPath = w.keepsPath || w.catalog.isNameType(t.oid)
	if c := w.castLiterals[n]; c == nil {
		w.castTypes[t] = true
	} else if !c.Isnull && c.GetSval() == nil { // a string is read as the type, without a cast
		w.numberTypes[t] = true
	}
	w.checkType(t, at)
}

func refuseType(full string) *sandbox.Refusal {
	return sandbox.Refusef("type-not-allowed",
		"values of type %s cannot be created: only built-in types, enums and types composed of them are allowed", full)
}

// checkType allows types that run no user-defined function, and types whose functions are checked
// later.
func (w *walker) checkType(t *Type, at int) {
	if !w.isTypeAllowed(t, 0) {
		w.fail(at, refuseType(t.Name))
	}
}

// maxTypeDepth bounds the search through arrays, domains, ranges and rows in one another.
const maxTypeDepth = 20

func (w *walker) isTypeAllowed(t *Type, depth int) bool {
	if t == nil || depth > maxTypeDepth {
		return false
	}
	w.usedTypes[t] = true
	if t.Element != 0 && t.Kind == 'b' { // an array
		return w.isTypeAllowed(w.catalog.TypesByOID[t.Element], depth+1)
	}
	switch {
	case t.Schema == "pg_catalog":
		return policy.SQLTypes[t.Name] || t.Kind == 'c'
	case t.Schema == "information_schema", t.Kind == 'e':
		return true
	case t.Kind == 'd', (t.Kind == 'r' || t.Kind == 'm') && !t.hasCanonicalFunction:
		return w.isTypeAllowed(w.catalog.TypesByOID[t.Element], depth+1)
	case t.Kind == 'c':
		for _, m := range t.members {
			if !w.isTypeAllowed(w.catalog.TypesByOID[m], depth+1) {
				return false
			}
		}
		return true
	}
	return policy.SQLExtensions[t.extension]
}
