package check

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// PostgreSQL lets a statement compute with the constant of a masked column: count(email), email IS NULL. The answer
// would be silently wrong, so such a statement is refused where the text shows the name of the column. This protects no
// value, and therefore a name is looked up in the whole statement, without the scopes of its queries.

// maskNotes is what the walk notes of a statement in a database with masked columns.
type maskNotes struct {
	items    []*maskedItem
	samples  map[*pg_query.RangeVar]*pg_query.RangeTableSample
	columns  []*pg_query.ColumnRef
	passedOn map[any]bool                  // columns and subqueries that are outputs or keys, and no operands
	computed map[*pg_query.SelectStmt]bool // subqueries whose values are operands
	grouped  []*pg_query.SelectStmt
	conflict *pg_query.OnConflictClause

	named     map[string]bool // names of columns in the statement
	takesAll  bool            // it may take columns without their names
	renames   bool            // a list after a join renames columns, or NATURAL joins by names that are not written
	itemNames []string        // of items of FROM
}

// noteForMasks notes a node of a database with masked columns, before its children.
func (w *walker) noteForMasks(node any) {
	m := w.masks
	switch n := node.(type) {
	case *pg_query.SelectStmt:
		m.noteQuery(n)
	case *pg_query.SubLink:
		if n.SubLinkType != pg_query.SubLinkType_EXISTS_SUBLINK { // EXISTS takes no value
			isOutput := n.SubLinkType == pg_query.SubLinkType_EXPR_SUBLINK && m.passedOn[n]
			m.computed[n.Subselect.GetSelectStmt()] = !isOutput
		}
	case *pg_query.ColumnRef:
		m.columns = append(m.columns, n)
		name := n.Fields[len(n.Fields)-1].GetString_().GetSval()
		m.named[name] = true
		m.takesAll = m.takesAll || name == "" // *
	case *pg_query.JoinExpr:
		m.renames = m.renames || n.IsNatural || len(n.Alias.GetColnames()) > 0
		m.takesAll = m.takesAll || m.renames
		for _, name := range stringsOf(n.UsingClause) {
			m.named[name] = true
		}
	case *pg_query.RangeTableSample:
		m.samples[n.Relation.GetRangeVar()] = n
	case *pg_query.OnConflictClause:
		m.conflict = n
	}
}

// noteQuery notes which columns of a query are only passed on, or used where PostgreSQL refuses them.
func (m *maskNotes) noteQuery(q *pg_query.SelectStmt) {
	if m.computed[q] {
		m.computed[q.Larg], m.computed[q.Rarg] = true, true
	} else {
		for _, target := range q.TargetList {
			m.passOn(target.GetResTarget().GetVal())
		}
	}
	for _, key := range slices.Concat(q.GroupClause, q.DistinctClause) {
		m.passOn(key)
	}
	for _, key := range q.SortClause {
		m.passOn(key.GetSortBy().GetNode())
	}
	if len(q.GroupClause) > 0 {
		m.grouped = append(m.grouped, q)
	}
}

func (m *maskNotes) passOn(n *pg_query.Node) {
	switch n := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		m.passedOn[n.ColumnRef] = true
	case *pg_query.Node_SubLink:
		m.passedOn[n.SubLink] = true
	case *pg_query.Node_CaseExpr:
		for _, when := range n.CaseExpr.Args {
			m.passOn(when.GetCaseWhen().GetResult())
		}
		m.passOn(n.CaseExpr.Defresult)
	}
}

// checkMaskUse refuses a statement whose text shows a masked column in an expression.
func (w *walker) checkMaskUse() {
	w.masks.itemNames = slices.Sorted(maps.Keys(w.fromItems)) // in an order, so that a statement has one answer
	for _, n := range w.masks.columns {
		name := n.Fields[len(n.Fields)-1].GetString_().GetSval()
		if name != "" && !w.masks.passedOn[n] && w.refersToMask(n, map[itemColumn]bool{}) {
			w.fail(int(n.Location), sandbox.Refusef("masked-column",
				"the masked column %s is used in an expression or condition", name))
			w.err.Hint = maskHint
		}
		if w.err != nil {
			return
		}
	}
}

const maskHint = "select the masked column unchanged, and remove it from expressions, filters, joins, sorting and " +
	"grouping"

// itemColumn is a name of a column that an item of FROM may have.
type itemColumn struct {
	item *fromItem
	name string
}

// refersToMask reports whether a name means a masked column in every item of FROM that has it. visited is what has been
// looked up.
func (w *walker) refersToMask(n *pg_query.ColumnRef, visited map[itemColumn]bool) bool {
	parts := stringsOf(n.Fields)
	name, of := parts[len(parts)-1], ""
	if len(parts) > 1 {
		of = parts[len(parts)-2]
	}
	itemNames := w.masks.itemNames
	if of != "" {
		itemNames = []string{of}
	}
	masked, open := false, false
	for _, itemName := range itemNames {
		for _, item := range w.fromItems[itemName] {
			isMasked, isOpen := w.findMask(item, name, visited)
			masked, open = masked || isMasked, open || isOpen
		}
		if !w.spend(1) {
			return false
		}
	}
	return masked && !open
}

// findMask reports whether an item of FROM has a masked column of a name, and whether it has another one.
func (w *walker) findMask(item *fromItem, name string, visited map[itemColumn]bool) (masked, open bool) {
	if r := item.relation; r != nil {
		w.spend(len(item.listed) + len(r.columnOrder))
		column, ok := item.columnOf(name)
		return ok && r.maskedColumns[column], ok && !r.maskedColumns[column]
	}
	if visited[itemColumn{item, name}] || !w.spend(mapSteps+len(item.listed)+len(item.columns)) {
		return false, false
	}
	visited[itemColumn{item, name}] = true
	if len(item.listed) > 0 { // which columns a list renames is known of tables only
		return false, slices.Contains(item.listed, name)
	}
	for _, c := range item.columns {
		if c.name == name {
			isMasked := c.source != nil && w.refersToMask(c.source, visited)
			masked, open = masked || isMasked, open || !isMasked
		}
	}
	for _, part := range item.parts {
		isMasked, isOpen := w.findMask(part, name, visited)
		masked, open = masked || isMasked, open || isOpen
	}
	return masked, open
}

// columnOf returns the column of the item's relation that a name means.
func (item *fromItem) columnOf(name string) (column string, ok bool) {
	order := item.relation.columnOrder
	i := slices.Index(item.listed, name)
	if i < 0 {
		i = slices.Index(order, name)
		if i < len(item.listed) {
			return "", false // there is none, or the list has renamed it
		}
	}
	if i >= len(order) {
		return "", false
	}
	return order[i], true
}

// names returns the masked columns of the statement, for hints.
func (m *maskNotes) names() (names []string) {
	for _, m := range m.items {
		for _, column := range m.relation.columnOrder {
			if m.relation.maskedColumns[column] {
				names = append(names, strings.TrimPrefix(m.relation.schema+".", "public.")+m.relation.name+"."+column)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ExplainMask adds to an error of the server what masked columns have to do with it.
func (stmt *Statement) ExplainMask(no *sandbox.Refusal) {
	if len(stmt.MaskedNames) == 0 {
		return
	}
	what := ""
	switch {
	case strings.Contains(no.Message, "cstring"):
		no.Reason, what = "masked-column", maskHint
		for _, e := range maskErrors {
			if !strings.Contains(no.Message, e.text) {
				continue
			}
			name := "a masked column"
			if e.isAtColumn && no.Position > 0 {
				if found := nameAt.FindString(stmt.Original[byteOffset(stmt.Original, no.Position):]); found != "" {
					name = "the masked column " + found
				}
			}
			no.Message = name + " " + e.message + " (PostgreSQL: " + no.Message + ")"
			break
		}
	case no.SQLState == "42703" && systemColumn.MatchString(no.Message):
		what = "system columns of a table with masked columns cannot be read"
	case no.SQLState == "42712": // a name of FROM stands twice
		what = "give each table in FROM an alias, and use it in place of schema.table"
	case no.SQLState == "42803", strings.Contains(no.Message, "equality operator"):
		what = "with masked columns, GROUP BY needs each selected column of the table, or its primary key as plain " +
			"columns without GROUPING SETS"
	case strings.Contains(no.Message, `"`+MaskValue+`"`):
		no.Reason, what = "masked-column", "the value of a masked column is computed with: "+maskHint
	case strings.Contains(no.Message, "record"):
		what = "a row of a table with masked columns has no type of its own: pass its columns"
	default:
		return
	}
	no.Hint = what + "; masked columns of this statement: " + strings.Join(stmt.MaskedNames, ", ")
}

// maskErrors say what PostgreSQL's errors about the type of the constant mean. isAtColumn says that the position is
// that of the column.
var maskErrors = []struct {
	text       string
	isAtColumn bool
	message    string
}{
	{"ordering operator", true, "cannot be used to sort"},
	{"equality operator", true, "cannot be used in GROUP BY, DISTINCT, UNION or IN"},
	{"comparison function", false, "cannot be compared"},
	{"UNION types", false, "can be combined by UNION ALL only, and only with a masked column"},
	{"CASE types", false, "can be a result of CASE only if each other result is masked or NULL"},
	{"JOIN/USING types", false, "cannot be used in a join"},
	{" types ", false, "cannot be combined with a value that is not masked"},
	{"operator does not exist", false, "cannot be compared, matched or computed with"},
	{"function ", false, "cannot be passed to this function"},
	{"cannot cast", false, "cannot be cast"},
}

// nameAt matches the name at the beginning of a text, with the names before it.
var nameAt = regexp.MustCompile(`^("[^"]+"|[\pL_][\pL\pN_$]*)(\.("[^"]+"|[\pL_][\pL\pN_$]*))*`)

// systemColumn matches PostgreSQL's error for a system column.
var systemColumn = regexp.MustCompile(`column .*\b(ctid|xmin|xmax|cmin|cmax|tableoid)\b`)
