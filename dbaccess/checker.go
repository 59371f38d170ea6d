package dbaccess

import (
	"reflect"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// statementChecker visits every field of every node of one statement.
type statementChecker struct {
	sql        string
	catalog    *catalog // nil: offline
	searchPath []string // where unqualified names are looked for, after pg_catalog
	// written says that the server itself wrote the text out (a view, a policy, a
	// domain's check): it is judged for what it calls, not for what it shows.
	isServerText bool
	allowWrites  bool // the statement is one that writes, to be captured

	statementNode  *pg_query.Node // the statement
	err            *sandbox.Refusal
	insertions     []insertion     // what binds names to what was judged
	qualifications []insertion     // what would qualify the tables and types
	droppedSchemas map[string]bool // schemas whose operators must not be found
	cteNames       map[string]bool
	mentionedNames map[string]bool // of types and functions mentioned: targets of casts
	relations      map[*relation]bool
	usedTypes      map[*pgType]bool
	// What table.name may mean is known only when every table has been seen.
	references []*pg_query.ColumnRef
	aliases    map[string][]*relation // nil: rows of something else
}

// insertion puts text before a byte of the statement.
type insertion struct {
	at   int
	text string
	name string
}

func newStatementChecker(sql string, cat *catalog) *statementChecker {
	checker := &statementChecker{sql: sql, catalog: cat, droppedSchemas: map[string]bool{}, cteNames: map[string]bool{}, mentionedNames: map[string]bool{}, relations: map[*relation]bool{}, usedTypes: map[*pgType]bool{}, aliases: map[string][]*relation{}}
	if cat != nil {
		checker.searchPath = cat.searchPath
	}
	return checker
}

// checkStatement walks a tree that must be of one statement.
func (checker *statementChecker) checkStatement(tree string) *sandbox.Refusal {
	parsed, err := readTree(tree)
	if err != nil {
		reason := "statement-not-allowed"
		if err == errTreeTooDeep {
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
	checker.statementNode = top
	switch {
	case checker.allowWrites:
		if name, at := nodeNameAndOffset(top); !writingStatements[name] {
			checker.fail(at, refuseNode(name))
		}
	case top.GetSelectStmt() != nil, top.GetExplainStmt() != nil:
	case top.GetVariableShowStmt() != nil:
		checker.checkSetting(top.GetVariableShowStmt().Name, -1)
	default:
		name, at := nodeNameAndOffset(top)
		checker.fail(at, refuseNode(name))
	}
	if checker.err == nil {
		one := reflect.ValueOf(parsed.Stmts[0])
		checker.walk(nodeTypeOf(one.Type().Elem()), one)
	}
	if checker.err == nil {
		for _, n := range checker.references {
			checker.checkReference(n)
		}
		checker.checkCasts()
	}
	return checker.err
}

func (checker *statementChecker) fail(at int, r *sandbox.Refusal) {
	if checker.err == nil {
		if at >= 0 && at <= len(checker.sql) {
			r.Position = at + 1 // in bytes of what was parsed; the plan maps it to the caller's text
		}
		checker.err = r
	}
}

// walk visits a node, a pointer to a struct of the parser's, and all below it.
func (checker *statementChecker) walk(s *nodeType, node reflect.Value) {
	if checker.err != nil {
		return
	}
	if !s.isAllowed && !(checker.allowWrites && writeOnlyNodes[s.name]) {
		checker.fail(s.offset(node.Elem()), refuseNode(s.name))
		return
	}
	checker.checkNode(node.Interface())
	s.forEachChild(node.Elem(), checker.walk)
}

// checkNode judges what a node names; its children are walked whatever it is.
func (checker *statementChecker) checkNode(m any) {
	switch n := m.(type) {
	case *pg_query.FuncCall:
		checker.checkFunction(n)
	case *pg_query.TypeName:
		checker.checkTypeName(n)
	case *pg_query.A_Expr:
		checker.checkExpression(n)
	case *pg_query.SubLink:
		if len(n.OperName) > 0 {
			checker.checkOperator(n.OperName, int(n.Location))
		} else if n.SubLinkType == pg_query.SubLinkType_ANY_SUBLINK {
			checker.checkImpliedOperators(int(n.Location), "=")
		}
	case *pg_query.CaseExpr:
		if n.Arg != nil {
			checker.checkImpliedOperators(int(n.Location), "=")
		}
	case *pg_query.JoinExpr:
		checker.addAlias(n.Alias, nil)
		checker.addAlias(n.JoinUsingAlias, nil)
		if n.IsNatural || len(n.UsingClause) > 0 {
			checker.checkImpliedOperators(-1, "=")
		}
	case *pg_query.SortBy:
		if len(n.UseOp) > 0 {
			checker.checkOperator(n.UseOp, int(n.Location))
		}
	case *pg_query.RangeVar:
		checker.checkTable(n)
	case *pg_query.CommonTableExpr:
		checker.cteNames[n.Ctename] = true
		checker.aliases[n.Ctename] = append(checker.aliases[n.Ctename], nil)
	case *pg_query.RangeSubselect:
		checker.addAlias(n.Alias, nil)
	case *pg_query.RangeFunction:
		checker.addAlias(n.Alias, rowsOfFunction)
	case *pg_query.RangeTableFunc:
		checker.addAlias(n.Alias, nil)
	case *pg_query.A_Indirection:
		for _, part := range n.Indirection {
			if s := part.GetString_(); s != nil {
				checker.checkAttribute(s.Sval, locationOf(n.Arg))
			}
		}
	case *pg_query.ColumnRef:
		if last := len(n.Fields) - 1; last > 0 && n.Fields[last].GetString_() != nil {
			checker.references = append(checker.references, n)
		}
	case *pg_query.RangeTableSample:
		if s := stringsOf(n.Method); len(s) != 1 || s[0] != "system" && s[0] != "bernoulli" {
			checker.fail(int(n.Location), refuse("function-not-allowed", "TABLESAMPLE takes SYSTEM or BERNOULLI"))
		}
	case *pg_query.ExplainStmt:
		checker.checkExplain(n)
	}
}

// explainOptions change what is printed; the others run the statement.
var explainOptions = wordSet("format costs verbose settings summary buffers generic_plan")

func (checker *statementChecker) checkExplain(n *pg_query.ExplainStmt) {
	for _, o := range n.Options {
		if d := o.GetDefElem(); d == nil || !explainOptions[d.Defname] {
			checker.fail(-1, refuse("statement-not-allowed", "EXPLAIN takes no option that runs the statement"))
		}
	}
	if n.Query.GetSelectStmt() == nil {
		checker.fail(-1, refuse("read-only", "EXPLAIN of a statement that would write is refused: db_query only reads"))
	}
}

// checkTable sees which relation a name may mean.
func (checker *statementChecker) checkTable(n *pg_query.RangeVar) {
	var r *relation
	system := n.Schemaname == "pg_catalog" || n.Schemaname == "" && strings.HasPrefix(n.Relname, "pg_")
	if checker.catalog != nil {
		r = findInPath(checker.catalog.relations[n.Relname], n.Schemaname, checker.searchPath, func(r *relation) string { return r.schema })
		if r != nil {
			system = r.schema == "pg_catalog"
		}
	}
	if name := n.Alias.GetAliasname(); name != "" {
		checker.aliases[name] = append(checker.aliases[name], r)
	} else {
		checker.aliases[n.Relname] = append(checker.aliases[n.Relname], r)
	}
	switch {
	case checker.isServerText && system:
	case system && !policy.SQLCatalogRelations[n.Relname]:
		checker.fail(int(n.Location), refuse("permission", "%s is refused: it shows what others do on this server", n.Relname))
	case n.Schemaname != "pg_catalog" && strings.HasPrefix(n.Schemaname, "pg_"):
		checker.fail(int(n.Location), refuse("permission", "%s.%s is refused: it is the server's own", n.Schemaname, n.Relname))
	case r != nil && !system && r.schema != "information_schema":
		checker.relations[r] = true
		if n.Schemaname == "" {
			checker.qualifications = append(checker.qualifications, insertion{int(n.Location), quoteIdentifier(r.schema) + ".", n.Relname})
		}
	}
}

// checkSetting refuses what is not on the list of settings that may be looked at.
func (checker *statementChecker) checkSetting(name string, at int) {
	if checker.isServerText || policy.SQLSettings[strings.ToLower(name)] {
		return
	}
	r := refuse("setting-not-allowed", "the setting %s is not on the list of those that may be looked at", name)
	r.Nearest = nearestName(strings.ToLower(name), policy.SQLSettings)
	checker.fail(at, r)
}

// checkCasts refuses a statement in which a cast that calls an unlisted function may be
// hidden: an implicit one where a value of its source or target can be, an
// explicit one where its target is named.
func (checker *statementChecker) checkCasts() {
	if checker.catalog == nil {
		return
	}
	for _, c := range checker.catalog.unlistedCasts {
		implicit := !c.isExplicit || c.target.name == "json" || c.target.name == "jsonb" // to_json looks for casts itself
		near := checker.mayHaveValue(c.source) && (checker.mentionedNames[c.target.name] || implicit && checker.mayHaveValue(c.target))
		if near {
			checker.fail(-1, refuse("function-not-allowed", "the cast from %s to %s calls a function that is not known to only compute", c.source.name, c.target.name))
		}
	}
}

// mayHaveValue says that a value of the type may be about: one of a built-in type
// always may.
func (checker *statementChecker) mayHaveValue(t *pgType) bool {
	if t.schema == "pg_catalog" || checker.mentionedNames[t.name] {
		return true
	}
	for r := range checker.relations {
		if slices.Contains(r.userTypes, t.oid) || r.rowType == t.oid {
			return true
		}
	}
	return false
}

func stringsOf(nodes []*pg_query.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}

func locationOf(n *pg_query.Node) int {
	_, at := nodeNameAndOffset(n)
	return at
}

func quoteIdentifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
