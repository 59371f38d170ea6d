package dbaccess

import (
	"reflect"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// walker visits every field of every node of one statement.
type walker struct {
	sql   string
	known *catalogue // nil: offline
	path  []string   // where unqualified names are looked for, after pg_catalog
	// written says that the server itself wrote the text out (a view, a policy, a
	// domain's check): it is judged for what it calls, not for what it shows.
	written bool
	writes  bool // the statement is one that writes, to be captured

	top       *pg_query.Node // the statement
	err       *sandbox.Refusal
	inserts   []insert        // what binds names to what was judged
	tables    []insert        // what would qualify the tables and types
	drop      map[string]bool // schemas whose operators must not be found
	ctes      map[string]bool
	names     map[string]bool // of types and functions mentioned: targets of casts
	relations map[*relation]bool
	used      map[*typ]bool
	// What table.name may mean is known only when every table has been seen.
	references []*pg_query.ColumnRef
	aliases    map[string][]*relation // nil: rows of something else
}

// insert puts text before a byte of the statement.
type insert struct {
	at   int
	text string
	name string
}

func newWalker(sql string, known *catalogue) *walker {
	w := &walker{sql: sql, known: known, drop: map[string]bool{}, ctes: map[string]bool{}, names: map[string]bool{}, relations: map[*relation]bool{}, used: map[*typ]bool{}, aliases: map[string][]*relation{}}
	if known != nil {
		w.path = known.path
	}
	return w
}

// statement walks a tree that must be of one statement.
func (w *walker) statement(tree string) *sandbox.Refusal {
	parsed, err := treeOf(tree)
	if err != nil {
		reason := "statement-not-allowed"
		if err == errDeep {
			reason = "too-large"
		}
		return refuse(reason, "%s", err)
	}
	switch len(parsed.Stmts) {
	case 0:
		return refuse("syntax-error", "the statement is empty")
	case 1:
	default:
		r := refuse("multiple-statements", "there are %d statements, and one is run at a time", len(parsed.Stmts))
		r.Hint = "call db_query once for each"
		return r
	}
	top := parsed.Stmts[0].Stmt
	w.top = top
	switch {
	case w.writes:
		if name, at := kindOf(top); !writingStatements[name] {
			w.fail(at, refusedNode(name))
		}
	case top.GetSelectStmt() != nil, top.GetExplainStmt() != nil:
	case top.GetVariableShowStmt() != nil:
		w.setting(top.GetVariableShowStmt().Name, -1)
	default:
		name, at := kindOf(top)
		w.fail(at, refusedNode(name))
	}
	if w.err == nil {
		one := reflect.ValueOf(parsed.Stmts[0])
		w.walk(shapeOf(one.Type().Elem()), one)
	}
	if w.err == nil {
		for _, n := range w.references {
			w.reference(n)
		}
		w.casts()
	}
	return w.err
}

func (w *walker) fail(at int, r *sandbox.Refusal) {
	if w.err == nil {
		if at >= 0 && at <= len(w.sql) {
			r.Position = at + 1 // in bytes of what was parsed; the plan maps it to the caller's text
		}
		w.err = r
	}
}

// walk visits a node, a pointer to a struct of the parser's, and all below it.
func (w *walker) walk(s *shape, node reflect.Value) {
	if w.err != nil {
		return
	}
	if !s.allowed && !(w.writes && writtenNodes[s.name]) {
		w.fail(s.at(node.Elem()), refusedNode(s.name))
		return
	}
	w.node(node.Interface())
	s.each(node.Elem(), w.walk)
}

// node judges what a node names; its children are walked whatever it is.
func (w *walker) node(m any) {
	switch n := m.(type) {
	case *pg_query.FuncCall:
		w.function(n)
	case *pg_query.TypeName:
		w.typeName(n)
	case *pg_query.A_Expr:
		w.expression(n)
	case *pg_query.SubLink:
		if len(n.OperName) > 0 {
			w.operator(n.OperName, int(n.Location))
		} else if n.SubLinkType == pg_query.SubLinkType_ANY_SUBLINK {
			w.implied(int(n.Location), "=")
		}
	case *pg_query.CaseExpr:
		if n.Arg != nil {
			w.implied(int(n.Location), "=")
		}
	case *pg_query.JoinExpr:
		w.alias(n.Alias, nil)
		w.alias(n.JoinUsingAlias, nil)
		if n.IsNatural || len(n.UsingClause) > 0 {
			w.implied(-1, "=")
		}
	case *pg_query.SortBy:
		if len(n.UseOp) > 0 {
			w.operator(n.UseOp, int(n.Location))
		}
	case *pg_query.RangeVar:
		w.table(n)
	case *pg_query.CommonTableExpr:
		w.ctes[n.Ctename] = true
		w.aliases[n.Ctename] = append(w.aliases[n.Ctename], nil)
	case *pg_query.RangeSubselect:
		w.alias(n.Alias, nil)
	case *pg_query.RangeFunction:
		w.alias(n.Alias, rowsOfFunction)
	case *pg_query.RangeTableFunc:
		w.alias(n.Alias, nil)
	case *pg_query.A_Indirection:
		for _, part := range n.Indirection {
			if s := part.GetString_(); s != nil {
				w.attribute(s.Sval, locationOf(n.Arg))
			}
		}
	case *pg_query.ColumnRef:
		if last := len(n.Fields) - 1; last > 0 && n.Fields[last].GetString_() != nil {
			w.references = append(w.references, n)
		}
	case *pg_query.RangeTableSample:
		if s := strs(n.Method); len(s) != 1 || s[0] != "system" && s[0] != "bernoulli" {
			w.fail(int(n.Location), refuse("function-not-allowed", "TABLESAMPLE takes SYSTEM or BERNOULLI"))
		}
	case *pg_query.ExplainStmt:
		w.explain(n)
	}
}

// explainOptions change what is printed; the others run the statement.
var explainOptions = words("format costs verbose settings summary buffers generic_plan")

func (w *walker) explain(n *pg_query.ExplainStmt) {
	for _, o := range n.Options {
		if d := o.GetDefElem(); d == nil || !explainOptions[d.Defname] {
			w.fail(-1, refuse("statement-not-allowed", "EXPLAIN takes no option that runs the statement"))
		}
	}
	if n.Query.GetSelectStmt() == nil {
		w.fail(-1, refuse("read-only", "EXPLAIN of a statement that would write is refused: db_query only reads"))
	}
}

// table sees which relation a name may mean.
func (w *walker) table(n *pg_query.RangeVar) {
	var r *relation
	system := n.Schemaname == "pg_catalog" || n.Schemaname == "" && strings.HasPrefix(n.Relname, "pg_")
	if w.known != nil {
		r = find(w.known.relations[n.Relname], n.Schemaname, w.path, func(r *relation) string { return r.schema })
		if r != nil {
			system = r.schema == "pg_catalog"
		}
	}
	if name := n.Alias.GetAliasname(); name != "" {
		w.aliases[name] = append(w.aliases[name], r)
	} else {
		w.aliases[n.Relname] = append(w.aliases[n.Relname], r)
	}
	switch {
	case w.written && system:
	case system && !policy.SQLCatalogRelations[n.Relname]:
		w.fail(int(n.Location), refuse("permission", "%s is refused: it shows what others do on this server", n.Relname))
	case n.Schemaname != "pg_catalog" && strings.HasPrefix(n.Schemaname, "pg_"):
		w.fail(int(n.Location), refuse("permission", "%s.%s is refused: it is the server's own", n.Schemaname, n.Relname))
	case r != nil && !system && r.schema != "information_schema":
		w.relations[r] = true
		if n.Schemaname == "" {
			w.tables = append(w.tables, insert{int(n.Location), quote(r.schema) + ".", n.Relname})
		}
	}
}

// setting refuses what is not on the list of settings that may be looked at.
func (w *walker) setting(name string, at int) {
	if w.written || policy.SQLSettings[strings.ToLower(name)] {
		return
	}
	r := refuse("setting-not-allowed", "the setting %s is not on the list of those that may be looked at", name)
	r.Nearest = nearest(strings.ToLower(name), policy.SQLSettings)
	w.fail(at, r)
}

// casts refuses a statement in which a cast that calls an unlisted function may be
// hidden: an implicit one where a value of its source or target can be, an
// explicit one where its target is named.
func (w *walker) casts() {
	if w.known == nil {
		return
	}
	for _, c := range w.known.casts {
		implicit := !c.explicit || c.target.name == "json" || c.target.name == "jsonb" // to_json looks for casts itself
		near := w.mentions(c.source) && (w.names[c.target.name] || implicit && w.mentions(c.target))
		if near {
			w.fail(-1, refuse("function-not-allowed", "the cast from %s to %s calls a function that is not known to only compute", c.source.name, c.target.name))
		}
	}
}

// mentions says that a value of the type may be about: one of a built-in type
// always may.
func (w *walker) mentions(t *typ) bool {
	if t.schema == "pg_catalog" || w.names[t.name] {
		return true
	}
	for r := range w.relations {
		if slices.Contains(r.userTypes, t.oid) || r.row == t.oid {
			return true
		}
	}
	return false
}

func strs(nodes []*pg_query.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}

func locationOf(n *pg_query.Node) int {
	_, at := kindOf(n)
	return at
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
