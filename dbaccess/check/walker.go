package check

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// walker visits every field of every node of one statement.
type walker struct {
	sql         string
	catalog     *Catalog // nil without a database
	searchPath  []string // where unqualified names are looked up, after pg_catalog
	allowWrites bool     // the statement may write, because it will be captured and not run

	statementNode  *pg_query.Node
	err            *sandbox.Refusal
	edits          []edit             // bind names to the checked meaning
	qualifications []qualification    // qualify what has one meaning; it would keep it on the whole search path
	masks          *maskNotes         // nil: the database has no masked columns
	allWithQueries []withQuery        // also those that are not visible
	withQueries    []withQuery        // that are visible at this point of the walk, the innermost last
	withCount      int                // of the statement, also those that are not visible
	target         *pg_query.RangeVar // of a statement that writes; it is not a WITH query
	mentionedNames map[string]bool    // types and functions in the statement: possible targets of casts
	relations      map[*relation]bool
	tables         map[*relation]bool // of relations, those that it uses, and those in the views among them
	readsClock     bool               // outside of functions, or in a view
	usedTypes      map[*Type]bool

	operatorNames map[string]int // without a schema, and where
	castTypes     map[*Type]bool // to which other values than literals are cast
	castLiterals  map[*pg_query.TypeName]*pg_query.A_Const
	numberTypes   map[*Type]bool              // to which literals are cast that are not strings
	castsToText   bool                        // a function that it calls casts arguments of any type to text
	unifiesTypes  bool                        // a literal may take its type from a column of a domain
	shortNames    []string                    // without a qualification: columns, or rows of an item of FROM
	unknownTable  *pg_query.RangeVar          // not in the catalog; nil: there is none
	calls         map[*function]bool          // of other schemas than pg_catalog
	assignedTypes map[string]bool             // of pg_catalog
	callTypes     map[uint32]bool             // of the arguments of these calls, true, and of their results, false
	keepsPath     bool                        // every schema must stay on the search path
	keptSchemas   map[string]bool             // these schemas must
	barredSchemas map[string]*sandbox.Refusal // these must not, and why
	// The meaning of item.name is known only after every item of FROM has been visited.
	references      []*pg_query.ColumnRef
	fromItems       map[string][]*fromItem
	itemsByNode     map[any]*fromItem
	steps           int                // of spend
	hasUnnamedItem  bool               // the name of an item is not known
	knownReferences map[reference]bool // whether they are certain to be columns
}

// qualification is a schema to put before a name at a byte offset of the statement.
type qualification struct {
	at     int
	prefix string
	name   string
}

func newWalker(sql string, cat *Catalog) *walker {
	w := &walker{
		sql:             sql,
		catalog:         cat,
		operatorNames:   map[string]int{},
		castTypes:       map[*Type]bool{},
		castLiterals:    map[*pg_query.TypeName]*pg_query.A_Const{},
		numberTypes:     map[*Type]bool{},
		calls:           map[*function]bool{},
		assignedTypes:   map[string]bool{},
		callTypes:       map[uint32]bool{},
		keptSchemas:     map[string]bool{},
		barredSchemas:   map[string]*sandbox.Refusal{},
		mentionedNames:  map[string]bool{},
		relations:       map[*relation]bool{},
		tables:          map[*relation]bool{},
		usedTypes:       map[*Type]bool{},
		fromItems:       map[string][]*fromItem{},
		itemsByNode:     map[any]*fromItem{},
		knownReferences: map[reference]bool{},
	}
	if cat != nil {
		w.searchPath = cat.searchPath
	}
	if cat != nil && len(cat.MaskedColumns) > 0 {
		w.masks = &maskNotes{
			samples:  map[*pg_query.RangeVar]*pg_query.RangeTableSample{},
			passedOn: map[any]bool{},
			computed: map[*pg_query.SelectStmt]bool{},
			named:    map[string]bool{},
		}
	}
	return w
}

// checkStatement walks a tree, which must have one statement.
func (w *walker) checkStatement(tree string) *sandbox.Refusal {
	parsed, err := readTree(tree)
	if err != nil {
		reason := "statement-not-allowed"
		if err == errTreeTooDeep {
			reason = "too-large"
		}
		return sandbox.Refusef(reason, "%s", err)
	}
	switch len(parsed.Stmts) {
	case 0:
		return sandbox.Refusef("syntax-error", "the statement is empty")
	case 1:
	default:
		r := sandbox.Refusef("multiple-statements", "the text has %d statements; only one is allowed",
			len(parsed.Stmts))
		r.Hint = "call db_query once for each statement"
		return r
	}
	top := parsed.Stmts[0].Stmt
	w.statementNode = top
	switch {
	case w.allowWrites:
		w.addWriteItems(top)
		if name, at := nodeNameAndOffset(top); !writingStatements[name] {
			w.fail(at, refuseNode(name))
		}
	case top.GetSelectStmt() != nil, top.GetExplainStmt() != nil:
	case top.GetVariableShowStmt() != nil:
		w.checkSetting(top.GetVariableShowStmt().Name, -1)
	default:
		name, at := nodeNameAndOffset(top)
		w.fail(at, refuseNode(name))
	}
	if w.err == nil {
		one := reflect.ValueOf(parsed.Stmts[0])
		w.walk(nodeTypeOf(one.Type().Elem()), one)
	}
	if w.err == nil {
		for _, n := range w.references {
			if w.checkReference(n); w.err != nil {
				return w.err
			}
		}
		w.checkCasts()
		w.checkOperatorSchemas()
	}
	if w.err == nil && w.masks != nil && w.allowWrites {
		w.checkMaskedWrite()
	}
	if w.err == nil && w.masks != nil && len(w.masks.items) > 0 {
		w.checkMaskUse()
		w.spliceMasks()
	}
	return w.err
}

func (w *walker) fail(at int, r *sandbox.Refusal) {
	if w.err == nil {
		if at >= 0 && at <= len(w.sql) {
			r.Position = at + 1 // byte of the parsed text; Statement maps it to the original text
		}
		w.err = r
	}
}

// maxSteps bounds the comparisons of one check that a statement multiplies: its names with its items of FROM, and these
// with their columns. They take about 0.1 s, and honest statements need some thousand.
const maxSteps = 10_000_000

// mapSteps is the time of a map's access, in comparisons.
const mapSteps = 25

// spend counts steps before they are made. It refuses the statement and returns false if there are too many.
func (w *walker) spend(steps int) bool {
	if w.steps += steps; w.steps > maxSteps {
		w.refuse(-1, "too-large", "the statement has too many names of columns and items of FROM: the check would "+
			"compare more than %d pairs of them; write it as several statements", maxSteps)
	}
	return w.err == nil
}

func (w *walker) refuse(at int, reason, format string, args ...any) {
	w.fail(at, sandbox.Refusef(reason, format, args...))
}

// walk visits a node (a pointer to a struct of the parser's package) and everything below it.
func (w *walker) walk(s *nodeType, node reflect.Value) {
	if w.err != nil {
		return
	}
	if !s.isAllowed && !(w.allowWrites && writeOnlyNodes[s.name]) {
		w.fail(s.offset(node.Elem()), refuseNode(s.name))
		return
	}
	content := node.Interface()
	w.checkNode(content)
	if with, ok := content.(*pg_query.WithClause); ok {
		w.walkWith(s, with)
		return
	}
	withClause := withClauseOf(content)
	if withClause == nil {
		s.forEachChild(node.Elem(), w.walk)
		return
	}
	// The names of the queries are visible in all other parts of the statement, and only there.
	outer, with := len(w.withQueries), reflect.ValueOf(withClause)
	w.walk(nodeTypeOf(with.Type().Elem()), with)
	s.forEachChild(node.Elem(), func(child *nodeType, node reflect.Value) {
		if node.Pointer() != with.Pointer() {
			w.walk(child, node)
		}
	})
	w.withQueries = w.withQueries[:outer]
}

// withClauseOf returns the WITH clause of a statement; nil: it has none.
func withClauseOf(node any) *pg_query.WithClause {
	switch n := node.(type) {
	case *pg_query.SelectStmt:
		return n.WithClause
	case *pg_query.InsertStmt:
		return n.WithClause
	case *pg_query.UpdateStmt:
		return n.WithClause
	case *pg_query.DeleteStmt:
		return n.WithClause
	case *pg_query.MergeStmt:
		return n.WithClause
	}
	return nil
}

// checkNode checks the names in a node. Its children are visited in any case.
func (w *walker) checkNode(m any) {
	w.noteAssignment(m)
	if w.masks != nil {
		w.noteForMasks(m)
	}
	switch n := m.(type) {
	case *pg_query.FuncCall:
		w.checkFunction(n)
	case *pg_query.TypeName:
		w.checkTypeName(n)
	case *pg_query.TypeCast:
		if c := n.Arg.GetAConst(); c != nil {
			w.castLiterals[n.TypeName] = c
			w.readsClock = w.readsClock || clockLiterals[strings.ToLower(c.GetSval().GetSval())]
		}
	case *pg_query.A_Expr:
		w.checkExpression(n)
	case *pg_query.InsertStmt:
		w.target = n.Relation
	case *pg_query.UpdateStmt:
		w.target = n.Relation
	case *pg_query.DeleteStmt:
		w.target = n.Relation
	case *pg_query.MergeStmt:
		w.target = n.Relation
	case *pg_query.SubLink:
		w.unifiesTypes = w.unifiesTypes || n.SubLinkType == pg_query.SubLinkType_ARRAY_SUBLINK
		if len(n.OperName) > 0 {
			w.checkOperator(n.OperName, int(n.Location))
		} else if n.SubLinkType == pg_query.SubLinkType_ANY_SUBLINK {
			w.checkImpliedOperators(int(n.Location), "=")
		}
	case *pg_query.CaseExpr:
		if n.Arg != nil {
			w.checkImpliedOperators(int(n.Location), "=")
		}
	case *pg_query.JoinExpr:
		if n.Alias != nil {
			w.addFromItem(n.Alias, "", w.itemOf(n))
		}
		if n.JoinUsingAlias != nil {
			w.addFromItem(n.JoinUsingAlias, "", &fromItem{})
		}
		if n.IsNatural || len(n.UsingClause) > 0 {
			w.checkImpliedOperators(-1, "=")
		}
	case *pg_query.SortBy:
		if len(n.UseOp) > 0 {
			w.checkOperator(n.UseOp, int(n.Location))
		}
	case *pg_query.RangeVar:
		w.checkTable(n)
	case *pg_query.RangeSubselect:
		w.addFromItem(n.Alias, "unnamed_subquery", w.itemOf(n))
	case *pg_query.RangeFunction:
		name := nameOfFunctionItem(n)
		w.hasUnnamedItem = w.hasUnnamedItem || n.Alias == nil && name == ""
		w.addFromItem(n.Alias, name, w.itemOf(n))
	case *pg_query.RangeTableFunc:
		w.addFromItem(n.Alias, "xmltable", &fromItem{})
	case *pg_query.A_Indirection:
		for _, part := range n.Indirection {
			if s := part.GetString_(); s != nil {
				w.checkAttribute(s.Sval, locationOf(n.Arg), "")
			}
		}
	case *pg_query.ColumnRef:
		switch last := len(n.Fields) - 1; {
		case n.Fields[last].GetString_() == nil:
		case last > 0:
			w.references = append(w.references, n)
			w.shortNames = append(w.shortNames, n.Fields[last].GetString_().Sval) // schema.table
		default:
			w.shortNames = append(w.shortNames, n.Fields[0].GetString_().Sval)
		}
	case *pg_query.A_ArrayExpr:
		w.unifiesTypes = true
	case *pg_query.RangeTableSample:
		if s := stringsOf(n.Method); len(s) != 1 || s[0] != "system" && s[0] != "bernoulli" {
			w.refuse(int(n.Location), "function-not-allowed", "TABLESAMPLE takes SYSTEM or BERNOULLI")
		}
	case *pg_query.ExplainStmt:
		w.checkExplain(n)
	case *pg_query.CollateClause:
		if s := stringsOf(n.Collname); len(s) == 1 && !builtInCollations[s[0]] {
			w.keepsPath = true
		}
	case *pg_query.SQLValueFunction:
		if n.Op == pg_query.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA {
			w.keepsPath = true
		}
		w.readsClock = w.readsClock || n.Op <= lastClockOp
	case *pg_query.JsonObjectConstructor:
		w.checkSyntaxCall("json_object", int(n.Location))
	case *pg_query.JsonArrayConstructor:
		w.checkSyntaxCall("json_array", int(n.Location))
	case *pg_query.JsonArrayQueryConstructor:
		w.checkSyntaxCall("json_array", int(n.Location))
	case *pg_query.JsonObjectAgg:
		w.checkSyntaxCall("json_objectagg", int(n.Constructor.GetLocation()))
	case *pg_query.JsonArrayAgg:
		w.checkSyntaxCall("json_arrayagg", int(n.Constructor.GetLocation()))
	}
}

// explainOptions only change the output. Other options of EXPLAIN run the statement.
var explainOptions = wordSet("format costs verbose settings summary buffers generic_plan")

func (w *walker) checkExplain(n *pg_query.ExplainStmt) {
	for _, o := range n.Options {
		if d := o.GetDefElem(); d == nil || !explainOptions[d.Defname] {
			w.refuse(-1, "statement-not-allowed", "EXPLAIN takes no option that runs the statement")
		}
	}
	if n.Query.GetSelectStmt() == nil {
		w.refuse(-1, "read-only", "EXPLAIN of a statement that would write is refused: db_query only reads")
	}
}

// checkTable resolves the name of a table.
func (w *walker) checkTable(n *pg_query.RangeVar) {
	var r *relation
	system := n.Schemaname == "pg_catalog" || n.Schemaname == "" && strings.HasPrefix(n.Relname, "pg_")
	if w.catalog != nil {
		if r = w.findRelation(n); r != nil {
			system = r.schema == "pg_catalog"
		}
	}
	w.addFromItem(n.Alias, n.Relname, w.itemOf(n))
	if n.Schemaname == "" && (r == nil || system) && w.findWithQuery(n) == nil {
		w.keepsPath = true // a table that is new or none, or one whose columns are printed as names
		if r == nil {
			w.unknownTable = n
		}
	}
	switch {
	case system && !policy.SQLCatalogRelations[n.Relname]:
		what := "the activity of other users"
		if slices.Contains(statistics, n.Relname) {
			what = "values of columns"
		}
		w.refuse(int(n.Location), "permission", "%s is refused: it shows %s", n.Relname, what)
	case n.Schemaname != "pg_catalog" && strings.HasPrefix(n.Schemaname, "pg_"):
		w.refuse(int(n.Location), "permission", "%s.%s is refused: it belongs to the server", n.Schemaname, n.Relname)
	case r != nil && !system && r.schema != "information_schema":
		w.relations[r] = true
		w.keepsPath = w.keepsPath || w.catalog.printsNames(r)
		if w.findWithQuery(n) == nil {
			w.tables[r] = true
		}
		switch {
		case w.findWithQuery(n) != nil:
		case r.usesMask:
			w.fail(int(n.Location), refuseMaskUser(r))
		case len(r.maskedColumns) > 0 && n != w.target:
			w.masks.items = append(w.masks.items, &maskedItem{n, r, w.masks.samples[n]})
		case n.Schemaname == "":
			w.qualifyLater(int(n.Location), r.schema, n.Relname)
		}
	}
}

// checkSetting refuses settings that are not on the list of readable settings.
func (w *walker) checkSetting(name string, at int) {
	w.keepsPath = w.keepsPath || strings.EqualFold(name, "search_path")
	if policy.SQLSettings[strings.ToLower(name)] {
		return
	}
	r := sandbox.Refusef("setting-not-allowed", "the setting %s is not on the list of readable settings", name)
	r.Nearest = policy.Nearest(strings.ToLower(name), maps.Keys(policy.SQLSettings))
	w.fail(at, r)
}

// checkCasts refuses a statement that may invoke a cast with a function that is not listed:
// an implicit cast if a value of its source or target type may occur, a cast for assignments if the statement assigns
// to its target, too, and an explicit cast if its target is named.
func (w *walker) checkCasts() {
	if w.catalog == nil {
		return
	}
	for _, c := range w.catalog.unlistedCasts {
		// to_json looks for casts to json itself.
		implicit := c.context == castImplicit || c.context == castAssignment && w.mayAssign(c.target) ||
			c.target.Name == "json" || c.target.Name == "jsonb"
		if w.mayOccur(c.source) && (w.mayCast(c.source, c.target) || implicit && w.mayOccur(c.target)) {
			if n := w.unknownTable; n != nil { // any value may occur in it
				w.fail(int(n.Location), RefuseUnknownTable(n.Relname, "that is older than a second",
					w.catalog.tableNames))
			}
			w.fail(-1, refuseCast(c))
		}
	}
}

// RefuseUnknownTable returns the refusal of a table that is not one of those in tables. what ends the message.
func RefuseUnknownTable(name, what string, tables Names) *sandbox.Refusal {
	quoted := name
	if !strings.Contains(name, `"`) {
		quoted = `"` + name + `"`
	}
	no := sandbox.Refusef("unknown-table", "there is no table %s %s", quoted, what)
	if no.Nearest = tables.nearest(strings.Trim(name[strings.LastIndexByte(name, '.')+1:], `"`)); no.Nearest != "" {
		no.Hint = "did you mean " + no.Nearest + "?"
	} else {
		no.Hint = "db_tables() lists the tables"
	}
	return no
}

func refuseCast(c cast) *sandbox.Refusal {
	return sandbox.Refusef("function-not-allowed",
		"the cast from %s to %s calls a function that is not on the list of allowed functions", c.source.Name,
		c.target.Name)
}

// mayCast reports whether the statement may cast between two types: it names the target, a domain over it or another
// type with its values, or it calls a function that casts its arguments to text. Casts of rows cast their fields.
func (w *walker) mayCast(source, target *Type) bool {
	if w.mentionedNames[target.Name] || w.castsToText && target.Name == "text" {
		return true
	}
	casts := func(t *Type) bool { return w.catalog.castsInto(t, target, 0) }
	for t := range w.castTypes {
		if casts(t) {
			return true
		}
	}
	for t := range w.numberTypes {
		if source.Schema == "pg_catalog" && casts(t) {
			return true
		}
	}
	return false
}

// castsInto reports whether a cast to a type casts to another type, too.
func (cat *Catalog) castsInto(t, target *Type, depth int) bool {
	if t == nil || depth > maxTypeDepth {
		return false
	}
	if t == target || t.Element != 0 && cat.castsInto(cat.TypesByOID[t.Element], target, depth+1) {
		return true
	}
	if r := cat.relationsByOID[t.relation]; r != nil && slices.Contains(r.columnTypes, target.oid) {
		return true
	}
	return slices.ContainsFunc(t.members, func(oid uint32) bool {
		return cat.castsInto(cat.TypesByOID[oid], target, depth+1)
	})
}

// addCall notes that the statement may call a function of another schema than pg_catalog. Its arguments are converted
// to their types, so values of these may be made.
func (w *walker) addCall(f *function) {
	w.calls[f] = true
	for _, oid := range f.args {
		w.callTypes[oid] = true
	}
	for _, oid := range append(f.rowTypes, f.result) {
		if _, known := w.callTypes[oid]; !known {
			w.callTypes[oid] = false
		}
	}
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
