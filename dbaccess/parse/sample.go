package parse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Derivation says what is made of a statement.
type Derivation int

// The derivations.
const (
	Sample  Derivation = iota + 1 // a query for at most maxSampleRows rows that the statement would affect
	Count                         // a query for the number of these rows
	Preview                       // a statement that writes, and returns rows before and after (derivePreview)
	Changes                       // the same with MaxChanges rows
	Stages                        // of a query: statements that count the rows of its stages (deriveStages)
	Why                           // of a query: statements that read the rows behind a row of its result (deriveWhy)
	WhyNot                        // of a query: statements that follow rows through its stages (deriveWhyNot)
)

// maxSampleRows is the LIMIT of a query that samples the rows of a statement that writes.
const maxSampleRows = 10

// derive returns a query that reads the rows which a statement that writes would affect, or their number. The statement
// has $n in place of :name. The query has :name again, and derive returns the names that it has.
//
//	UPDATE  the rows as they are, and the new value of each column that is set, under the name "new NAME"
//	DELETE  the rows as they are
//	INSERT  the rows that would be inserted, before ON CONFLICT and triggers
//
// The query is spliced from the text of the statement. Its tree must be the tree that is made from the statement's own
// tree: otherwise the query does not mean what the statement means, and derive returns a Fault.
func derive(numbered string, names []string, d Derivation) (query string, used []string, bad *Fault) {
	w, bad := splitWrite(numbered)
	if bad == nil {
		bad = w.checkSample()
	}
	if bad != nil {
		return "", nil, bad
	}
	text, meant := w.sample()
	if d == Count {
		text, meant = w.count()
	}
	meant.WithClause = w.with
	query, err := nameParameters(strings.TrimLeft(w.withText+" "+text, " "), names)
	if err != nil {
		return "", nil, newFault("no-sample", "the query for the sample cannot be written: %v", err)
	}
	used, bad = compareTree(query, &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: meant}}, names)
	return query, used, bad
}

// checkSample returns a Fault for a statement whose rows a query cannot read.
func (w *writeStatement) checkSample() *Fault {
	if bad := w.checkTarget(); bad != nil || w.insert == nil {
		return bad
	}
	rows := w.insert.SelectStmt.GetSelectStmt()
	if rows == nil {
		return newFault("no-sample", "rows with DEFAULT have no sample: their values do not exist yet")
	}
	for _, row := range rows.ValuesLists {
		for _, value := range row.GetList().GetItems() {
			if value.GetSetToDefault() != nil {
				return newFault("no-sample", "rows with DEFAULT have no sample: their values do not exist yet")
			}
		}
	}
	for _, column := range w.insert.Cols {
		if target := column.GetResTarget(); len(target.GetIndirection()) > 0 {
			return newFault("no-sample", "an INSERT of a part of the column %q has no sample", target.GetName())
		}
	}
	return nil
}

// checkTarget returns a Fault if another statement cannot read the rows of an UPDATE or a DELETE.
func (w *writeStatement) checkTarget() *Fault {
	if w.condition.GetCurrentOfExpr() != nil {
		return newFault("no-sample", "WHERE CURRENT OF has no sample: its cursor does not exist in another statement")
	}
	isTarget := func(n *pg_query.Node) bool { return n.GetCommonTableExpr().GetCtename() == w.target.Relname }
	if w.insert == nil && w.target.Schemaname == "" && slices.ContainsFunc(w.with.GetCtes(), isTarget) {
		return newFault("no-sample", "the table and a query of WITH have the same name %q, which means the other "+
			"one in a query: rename the query of WITH, or name the schema of the table", w.target.Relname)
	}
	return nil
}

// count returns a query for the number of the rows.
func (w *writeStatement) count() (string, *pg_query.SelectStmt) {
	const count = "SELECT count(*)"
	query, text := parsedSelect(count), ""
	if w.insert != nil {
		text, query.FromClause = w.insertedRows()
		return count + " FROM " + text, query
	}
	query.FromClause = []*pg_query.Node{w.targetNode()}
	text, query.WhereClause = w.affected()
	return count + " FROM " + w.targetText + text, query
}

// sample returns a query for some of the rows.
func (w *writeStatement) sample() (string, *pg_query.SelectStmt) {
	limit := " LIMIT " + strconv.Itoa(maxSampleRows)
	query, text := parsedSelect("SELECT"+limit), ""
	if w.insert != nil {
		text, query.FromClause = w.insertedRows()
		query.TargetList = parsedSelect("SELECT *").TargetList
		return "SELECT * FROM " + text + limit, query
	}
	name := quoteName(w.targetName())
	columns, from := name+".*", w.targetText
	query.TargetList = parsedSelect("SELECT " + columns).TargetList
	query.FromClause = []*pg_query.Node{w.targetNode()}
	if w.update != nil {
		texts, values := w.newValues()
		if len(w.others) == 0 {
			columns += ", " + texts
			query.TargetList = append(query.TargetList, values...)
		} else {
			// A row that several rows of FROM match is updated once, with the values of one of them.
			const alias = `"new values"`
			where, condition := w.where()
			one := parsedSelect("SELECT LIMIT 1")
			one.TargetList, one.FromClause, one.WhereClause = values, w.others, condition
			columns += ", " + alias + ".*"
			from += ", LATERAL (SELECT " + texts + " FROM " + w.othersText + where + " LIMIT 1) AS " + alias
			query.TargetList = parsedSelect("SELECT " + columns).TargetList
			query.FromClause = append(query.FromClause, subquery(one, &pg_query.Alias{Aliasname: "new values"}, true))
		}
	}
	text, query.WhereClause = w.affected()
	return "SELECT " + columns + " FROM " + from + text + limit, query
}

// affected returns the condition for a row of the target to be affected: its text, with the word WHERE, and its tree. A
// row that several rows of FROM or USING match is affected once.
func (w *writeStatement) affected() (string, *pg_query.Node) {
	text, condition := w.where()
	if len(w.others) == 0 {
		return text, condition
	}
	one := parsedSelect("SELECT 1")
	one.FromClause, one.WhereClause = w.others, condition
	return " WHERE EXISTS (SELECT 1 FROM " + w.othersText + text + ")",
		&pg_query.Node{Node: &pg_query.Node_SubLink{SubLink: &pg_query.SubLink{
			SubLinkType: pg_query.SubLinkType_EXISTS_SUBLINK,
			Subselect:   &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: one}},
		}}}
}

// where returns the condition of the statement: its text, with the word WHERE and parentheses, and its tree.
func (w *writeStatement) where() (string, *pg_query.Node) {
	if w.condition == nil {
		return "", nil
	}
	return " WHERE (" + w.conditionText + ")", w.condition
}

// insertedRows returns the rows of an INSERT as an item of FROM.
func (w *writeStatement) insertedRows() (string, []*pg_query.Node) {
	alias, text := &pg_query.Alias{Aliasname: "inserted"}, "inserted"
	var columns []string
	for _, column := range w.insert.Cols {
		name := column.GetResTarget().GetName()
		alias.Colnames = append(alias.Colnames, pg_query.MakeStrNode(name))
		columns = append(columns, quoteName(name))
	}
	if len(columns) > 0 {
		text += " (" + strings.Join(columns, ", ") + ")"
	}
	item := subquery(w.insert.SelectStmt.GetSelectStmt(), alias, false)
	return "(" + w.rowsText + ") AS " + text, []*pg_query.Node{item}
}

// newValues returns the expressions of SET as columns of a query. A text says why a query cannot have a value; without
// it the column would look as if it stayed as it is.
func (w *writeStatement) newValues() (text string, columns []*pg_query.Node) {
	var texts []string
	item := -1 // of SET; one item sets several columns together
	for _, node := range w.update.TargetList {
		target := node.GetResTarget()
		value := target.GetVal()
		together := value.GetMultiAssignRef()
		if together == nil || together.Colno == 1 {
			item++
		}
		hidden := ""
		switch {
		case together != nil:
			hidden = "(not shown: it is set together with others)"
		case value.GetSetToDefault() != nil:
			hidden = "(not shown: its DEFAULT)"
		case len(target.GetIndirection()) > 0:
			hidden = "(not shown: a part of it is set)"
		}
		text := "''"
		if hidden != "" {
			text, value = "'"+hidden+"'", pg_query.MakeAConstStrNode(hidden, -1)
		} else if item < len(w.valueTexts) {
			text = "(" + w.valueTexts[item] + ")"
		}
		name := shortName("new " + target.GetName())
		texts = append(texts, text+" AS "+quoteName(name))
		columns = append(columns, pg_query.MakeResTargetNodeWithNameAndVal(name, value, -1))
	}
	return strings.Join(texts, ", "), columns
}

// targetName returns the name by which the statement's expressions know the target.
func (w *writeStatement) targetName() string {
	if w.target.Alias != nil {
		return w.target.Alias.Aliasname
	}
	return w.target.Relname
}

func (w *writeStatement) targetNode() *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_RangeVar{RangeVar: w.target}}
}

func subquery(query *pg_query.SelectStmt, alias *pg_query.Alias, isLateral bool) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{
		Lateral: isLateral, Alias: alias,
		Subquery: &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}},
	}}}
}

// parsedSelect returns the tree of a query of this package, whose nodes become parts of another.
func parsedSelect(sql string) *pg_query.SelectStmt {
	tree, err := pg_query.Parse(sql)
	if err != nil {
		panic(fmt.Sprintf("parse: the query %q of a sample: %v", sql, err))
	}
	return tree.Stmts[0].Stmt.GetSelectStmt()
}

// quoteName returns a name as SQL text.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// maxNameBytes is PostgreSQL's limit of a name. It cuts a longer one.
const maxNameBytes = 63

// shortName cuts a name as PostgreSQL does, between two characters.
func shortName(name string) string {
	for len(name) > maxNameBytes {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// compareTree returns the names of the parameters of a statement, or a Fault unless its tree is the one that is meant.
// The parameters of meant have the numbers of names.
func compareTree(sql string, meant *pg_query.Node, names []string) (used []string, bad *Fault) {
	tokens, bad := scanTokens(sql)
	if bad != nil {
		return nil, bad
	}
	given := map[string]bool{}
	for _, name := range names {
		given[name] = true
	}
	numbered, bad := numberParameters(sql, tokens, given, false)
	if bad != nil {
		return nil, bad
	}
	tree, err := pg_query.Parse(numbered.sql)
	if err != nil {
		return nil, newFault("no-sample", "the query for the sample is not valid: %v", err)
	}
	same := len(tree.Stmts) == 1 && sameTree(tree.Stmts[0].Stmt, numbered.names, meant, names)
	if !same {
		return nil, errNotSplit()
	}
	return numbered.names, nil
}

func errNotSplit() *Fault {
	return newFault("no-sample", "the parts of the statement were not found in its text, so a sample could show other "+
		"rows: review the statement itself")
}

// sameTree reports whether two trees are equal but for their locations. A parameter is compared by its name.
func sameTree(a *pg_query.Node, aNames []string, b *pg_query.Node, bNames []string) bool {
	return proto.Equal(normalize(a, aNames), normalize(b, bNames))
}

// normalize returns a copy of a tree without locations, in which each parameter is a reference to its name.
func normalize(tree *pg_query.Node, names []string) *pg_query.Node {
	tree = proto.CloneOf(tree)
	var visit func(protoreflect.Message)
	visit = func(m protoreflect.Message) {
		if node, ok := m.Interface().(*pg_query.Node); ok {
			if p := node.GetParamRef(); p != nil && p.Number >= 1 && int(p.Number) <= len(names) {
				node.Node = pg_query.MakeStrNode(":" + names[p.Number-1]).Node
			}
		}
		m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			switch {
			case field.Kind() == protoreflect.Int32Kind && strings.HasSuffix(string(field.Name()), "location"):
				m.Clear(field)
			case field.Kind() != protoreflect.MessageKind:
			case field.IsList():
				for i := range value.List().Len() {
					visit(value.List().Get(i).Message())
				}
			default:
				visit(value.Message())
			}
			return true
		})
	}
	visit(tree.ProtoReflect())
	return tree
}

// nameParameters replaces $n by :name. It is the reverse of numberParameters.
func nameParameters(sql string, names []string) (string, error) {
	tokens, bad := scanTokens(sql)
	if bad != nil {
		return "", bad
	}
	var out strings.Builder
	copied := 0
	for _, t := range tokens {
		if t.Kind != pg_query.Token_PARAM {
			continue
		}
		n, err := strconv.Atoi(sql[t.Start+1 : t.End])
		if err != nil || n < 1 || n > len(names) {
			return "", fmt.Errorf("the parameter %s is unknown", sql[t.Start:t.End])
		}
		out.WriteString(sql[copied:t.Start])
		out.WriteString(":" + names[n-1])
		copied = t.End
	}
	out.WriteString(sql[copied:])
	return out.String(), nil
}
