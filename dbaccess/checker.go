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
	catalog    *catalog // nil without a database
	searchPath []string // where unqualified names are looked up, after pg_catalog
	// isServerText is set for text that the server wrote (a view, a policy, the check of a
	// domain). Its calls are checked; what it reads is not.
	isServerText bool
	allowWrites  bool // the statement writes and is to be captured

	statementNode  *pg_query.Node
	err            *sandbox.Refusal
	insertions     []insertion     // bind names to the checked meaning
	qualifications []insertion     // would qualify tables and types
	droppedSchemas map[string]bool // schemas that must leave the search path because of their operators
	cteNames       map[string]bool
	mentionedNames map[string]bool // types and functions in the statement: possible targets of casts
	relations      map[*relation]bool
	usedTypes      map[*pgType]bool
	// The meaning of table.name is known only after every table has been visited.
	references []*pg_query.ColumnRef
	aliases    map[string][]*relation // nil element: rows of a subquery, join or function
}

// insertion puts text before a byte offset of the statement.
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

// checkStatement walks a tree, which must have one statement.
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
		r := refuse("multiple-statements", "the text has %d statements; only one is allowed", len(parsed.Stmts))
		r.Hint = "call db_query once for each statement"
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
			r.Position = at + 1 // byte of the parsed text; the checkedStatement maps it to the original
		}
		checker.err = r
	}
}

// walk visits a node (a pointer to a struct of the parser's package) and everything below it.
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

// checkNode checks the names in a node. Its children are visited in any case.
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

// explainOptions only change the output. Other options of EXPLAIN run the statement.
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

// checkTable resolves the name of a table.
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
		checker.fail(int(n.Location), refuse("permission", "%s is refused: it shows the activity of other users", n.Relname))
	case n.Schemaname != "pg_catalog" && strings.HasPrefix(n.Schemaname, "pg_"):
		checker.fail(int(n.Location), refuse("permission", "%s.%s is refused: it belongs to the server", n.Schemaname, n.Relname))
	case r != nil && !system && r.schema != "information_schema":
		checker.relations[r] = true
		if n.Schemaname == "" {
			checker.qualifications = append(checker.qualifications, insertion{int(n.Location), quoteIdentifier(r.schema) + ".", n.Relname})
		}
	}
}

// checkSetting refuses settings that are not on the list of readable settings.
func (checker *statementChecker) checkSetting(name string, at int) {
	if checker.isServerText || policy.SQLSettings[strings.ToLower(name)] {
		return
	}
	r := refuse("setting-not-allowed", "the setting %s is not on the list of readable settings", name)
	r.Nearest = nearestName(strings.ToLower(name), policy.SQLSettings)
	checker.fail(at, r)
}

// checkCasts refuses a statement that may invoke a cast with a function that is not listed:
// an implicit cast if a value of its source or target type may occur, an explicit cast if its target
// is named.
func (checker *statementChecker) checkCasts() {
	if checker.catalog == nil {
		return
	}
	for _, c := range checker.catalog.unlistedCasts {
		implicit := !c.isExplicit || c.target.name == "json" || c.target.name == "jsonb" // to_json looks for casts itself
		near := checker.mayHaveValue(c.source) && (checker.mentionedNames[c.target.name] || implicit && checker.mayHaveValue(c.target))
		if near {
			checker.fail(-1, refuse("function-not-allowed", "the cast from %s to %s calls a function that is not on the list of allowed functions", c.source.name, c.target.name))
		}
	}
}

// mayHaveValue reports whether a value of the type may occur in the statement. A value of a built-in
// type always may.
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
