package dbaccess

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// The server chooses among overloads by the types of the arguments, which are not
// known here. So every function that a call may resolve to is looked at, and
// where one of them is not allowed, the name is bound to pg_catalog in the text,
// or the call refused.

// function judges a call.
func (w *walker) function(n *pg_query.FuncCall) {
	parts := strs(n.Funcname)
	name := parts[len(parts)-1]
	schema := ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	at := int(n.Location)
	if len(parts) > 2 {
		w.fail(at, unlisted(strings.Join(parts, "."), false))
		return
	}
	w.names[name] = true
	args := len(n.Args)
	if n.AggWithinGroup {
		args += len(n.AggOrder)
	}
	if name == "current_setting" && schema != "information_schema" && !w.userMade(name) {
		w.currentSetting(n)
		return
	}
	if w.known == nil {
		if (schema == "" || schema == "pg_catalog") && len(policy.SQLFunctions[name]) > 0 {
			return
		}
		w.fail(at, unlisted(strings.Join(parts, "."), schema == "" || schema == "pg_catalog"))
		return
	}
	if args == 1 && !w.castByName(schema, name, at) {
		return
	}
	system, users, home := verdict{}, verdict{}, ""
	for _, f := range w.known.functions[name] {
		switch {
		case !f.takes(args) && !n.FuncVariadic:
		case f.schema == "pg_catalog" && (schema == "" || schema == "pg_catalog"):
			system.add(f.allowed)
		case f.schema == schema, schema == "" && slices.Contains(w.path, f.schema):
			users.add(f.allowed)
			home = f.schema
		}
	}
	switch {
	case system.good() && users.bad:
		// A better match of another schema is never found.
		if !w.bind(at, name, "pg_catalog.") {
			w.fail(at, unlisted(name, false))
		}
	case system.bad, users.bad:
		w.fail(at, unlisted(strings.Join(parts, "."), false))
	case system.some, users.some:
		if schema == "" && !system.some {
			w.tables = append(w.tables, insert{at, quote(home) + ".", name})
		}
	case args == 1 && find(w.known.types[name], schema, w.path, schemaOfType) != nil:
	case w.any(schema, name):
		// A function of that name takes another number of arguments: the server says so.
	case len(w.known.functions[name]) == 0:
		w.fail(at, unknown(strings.Join(parts, "."), name))
	default:
		w.fail(at, unlisted(strings.Join(parts, "."), schema == "" || schema == "pg_catalog"))
	}
}

// elsewhere is what functions of other databases are here.
var elsewhere = map[string]string{
	"ifnull": "coalesce", "isnull": "coalesce", "nvl": "coalesce", "len": "length", "getdate": "now", "curdate": "now", "group_concat": "string_agg",
	"listagg": "string_agg", "date_format": "to_char", "strftime": "to_char", "datetrunc": "date_trunc", "json_extract": "jsonb_path_query",
}

// unknown refuses a function that no schema has.
func unknown(full, name string) *sandbox.Refusal {
	r := refuse("unknown-function", "there is no function %s", full)
	if r.Nearest = elsewhere[name]; r.Nearest == "" {
		r.Nearest = nearest(name, keys(policy.SQLFunctions))
	}
	if r.Hint = "write it with PostgreSQL's functions, or compute it in Python instead"; r.Nearest != "" {
		r.Hint = "did you mean " + r.Nearest + "?"
	}
	return r
}

// verdict sums up the functions that a name may mean.
type verdict struct{ some, bad bool }

func (v *verdict) add(allowed bool) {
	v.some = true
	v.bad = v.bad || !allowed
}

func (v verdict) good() bool { return v.some && !v.bad }

func unlisted(full string, suggest bool) *sandbox.Refusal {
	r := refuse("function-not-allowed", "the function %s is not on the list of functions that are known to only compute", full)
	if suggest {
		r.Nearest = nearest(full[strings.LastIndexByte(full, '.')+1:], keys(policy.SQLFunctions))
	}
	if r.Nearest != "" {
		r.Hint = "did you mean " + r.Nearest + "?"
	} else {
		r.Hint = "compute it in Python instead, or ask the operator to list the function"
	}
	return r
}

// bind puts a schema before an unqualified name; false where the name does not
// stand where the parser says.
func (w *walker) bind(at int, name, prefix string) bool {
	if at < 0 || at+len(name) > len(w.sql) || w.sql[at] != '"' && !strings.EqualFold(w.sql[at:at+len(name)], name) {
		return false
	}
	w.inserts = append(w.inserts, insert{at, prefix, name})
	return true
}

func (w *walker) userMade(name string) bool {
	if w.known != nil {
		for _, f := range w.known.functions[name] {
			if slices.Contains(w.path, f.schema) {
				return true
			}
		}
	}
	return false
}

// any says that there is an allowed function of that name, whatever it takes.
func (w *walker) any(schema, name string) bool {
	for _, f := range w.known.functions[name] {
		if f.allowed && (f.schema == schema || schema == "" && (f.schema == "pg_catalog" || slices.Contains(w.path, f.schema))) {
			return true
		}
	}
	return false
}

// castByName sees type(value), which may be a cast; false where it is refused.
func (w *walker) castByName(schema, name string, at int) bool {
	t := find(w.known.types[name], schema, w.path, schemaOfType)
	if t == nil || t.schema == "pg_catalog" && len(policy.SQLFunctions[name]) > 0 {
		return true
	}
	w.useType(t, at)
	return w.err == nil
}

func schemaOfType(t *typ) string { return t.schema }

// currentSetting allows current_setting('name') where the name is a constant.
func (w *walker) currentSetting(n *pg_query.FuncCall) {
	if len(n.Args) > 0 {
		arg := n.Args[0]
		if c := arg.GetTypeCast(); c != nil {
			arg = c.Arg
		}
		if s := arg.GetAConst().GetSval(); s != nil {
			w.setting(s.Sval, int(n.Location))
			return
		}
	}
	w.fail(int(n.Location), refuse("setting-not-allowed", "current_setting takes the name of a setting as a constant, so that it can be checked"))
}

// betweens are the operators that BETWEEN stands for.
var betweens = map[pg_query.A_Expr_Kind][]string{
	pg_query.A_Expr_Kind_AEXPR_BETWEEN: {">=", "<="}, pg_query.A_Expr_Kind_AEXPR_BETWEEN_SYM: {">=", "<="},
	pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN: {"<", ">"}, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM: {"<", ">"},
}

func (w *walker) expression(n *pg_query.A_Expr) {
	if ops := betweens[n.Kind]; ops != nil {
		w.implied(int(n.Location), ops...)
		return
	}
	w.operator(n.Name, int(n.Location))
}

func (w *walker) implied(at int, ops ...string) {
	for _, op := range ops {
		w.operatorNamed("", op, at)
	}
}

func (w *walker) operator(op []*pg_query.Node, at int) {
	parts := strs(op)
	switch len(parts) {
	case 0:
	case 1:
		w.operatorNamed("", parts[0], at)
	case 2:
		w.operatorNamed(parts[0], parts[1], at)
	default:
		w.fail(at, badOperator(strings.Join(parts, ".")))
	}
}

func badOperator(full string) *sandbox.Refusal {
	return refuse("function-not-allowed", "the operator %s is defined by a user, and is not known to only compute", full)
}

// operatorNamed judges an operator. Binding one in the text would change its
// precedence, so where a user's is not allowed, its schema leaves the path that
// the statement is run with.
func (w *walker) operatorNamed(schema, name string, at int) {
	if name == "!=" {
		name = "<>"
	}
	if w.known == nil {
		if schema != "" && schema != "pg_catalog" || len(policy.SQLOperators[name]) == 0 {
			w.fail(at, badOperator(name))
		}
		return
	}
	system, users := verdict{}, verdict{}
	var drop []string
	for _, o := range w.known.operators[name] {
		switch {
		case o.schema == "pg_catalog" && (schema == "" || schema == "pg_catalog"):
			system.add(o.allowed)
		case schema != "" && o.schema == schema, schema == "" && slices.Contains(w.path, o.schema):
			users.add(o.allowed)
			if !o.allowed {
				drop = append(drop, o.schema)
			}
		}
	}
	switch {
	case system.bad, !system.some && users.bad:
		w.fail(at, badOperator(name))
	case users.bad:
		for _, s := range drop {
			w.drop[s] = true
		}
	case !system.some && !users.some && schema != "" && schema != "pg_catalog":
		w.fail(at, badOperator(schema+"."+name))
	}
}

// typeName judges a type that a value is made of.
func (w *walker) typeName(n *pg_query.TypeName) {
	parts := strs(n.Names)
	if len(parts) == 0 {
		return // of a function's column list, or %TYPE: the server decides
	}
	name, schema := parts[len(parts)-1], ""
	if len(parts) > 1 {
		schema = parts[len(parts)-2]
	}
	w.names[name] = true
	at := int(n.Location)
	if len(parts) > 2 || n.PctType {
		w.fail(at, badType(strings.Join(parts, ".")))
		return
	}
	if w.known == nil {
		if schema != "" && schema != "pg_catalog" || !policy.SQLTypes[strings.TrimPrefix(name, "_")] {
			w.fail(at, badType(strings.Join(parts, ".")))
		}
		return
	}
	t := find(w.known.types[name], schema, w.path, schemaOfType)
	if t == nil {
		r := badType(strings.Join(parts, "."))
		r.Nearest = nearest(name, policy.SQLTypes)
		w.fail(at, r)
		return
	}
	if schema == "" && t.schema != "pg_catalog" {
		w.tables = append(w.tables, insert{at, quote(t.schema) + ".", name})
	}
	w.useType(t, at)
}

func badType(full string) *sandbox.Refusal {
	return refuse("type-not-allowed", "a value of type %s cannot be made here: only built-in types, enums and what is made of them can", full)
}

// useType allows a type that runs no function of a user's, or whose checks are
// judged later.
func (w *walker) useType(t *typ, at int) {
	if !w.typeAllowed(t, 0) {
		w.fail(at, badType(t.name))
	}
}

func (w *walker) typeAllowed(t *typ, depth int) bool {
	if t == nil || depth > 20 {
		return false
	}
	w.used[t] = true
	if t.of != 0 && t.kind == 'b' { // an array
		return w.typeAllowed(w.known.typeOf[t.of], depth+1)
	}
	switch {
	case t.schema == "pg_catalog":
		return policy.SQLTypes[t.name] || t.kind == 'c'
	case t.schema == "information_schema", t.kind == 'e':
		return true
	case t.kind == 'd', (t.kind == 'r' || t.kind == 'm') && !t.canonical:
		return w.typeAllowed(w.known.typeOf[t.of], depth+1)
	case t.kind == 'c':
		for _, m := range t.members {
			if !w.typeAllowed(w.known.typeOf[m], depth+1) {
				return false
			}
		}
		return true
	}
	return policy.SQLExtensions[t.extension]
}
