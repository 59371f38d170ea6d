package parse

import (
	"fmt"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// maxSampleRows is the LIMIT of a query that samples the rows of a statement that writes.
const maxSampleRows = 10

// sampleQuery returns a query that reads rows which a statement that writes would affect. The statement has $n in place
// of :name, and the query has :name again. It is made from the tree, so no text of the statement can change its kind.
//
//	UPDATE  the rows as they are, and the new value of each column that is set, under the name "new NAME"
//	DELETE  the rows as they are
//	INSERT  the rows that would be inserted
func sampleQuery(numbered string, names []string) (string, *Fault) {
	tree, err := pg_query.Parse(numbered)
	if err != nil {
		return "", syntaxFault(err)
	}
	if len(tree.Stmts) != 1 {
		return "", newFault("no-sample", "a sample needs exactly one statement, got %d", len(tree.Stmts))
	}
	var query *pg_query.SelectStmt
	switch s := tree.Stmts[0].Stmt.Node.(type) {
	case *pg_query.Node_UpdateStmt:
		u := s.UpdateStmt
		query = sampleTable(u.Relation, u.FromClause, u.WhereClause, newValues(u.TargetList))
		query.WithClause = u.WithClause
	case *pg_query.Node_DeleteStmt:
		d := s.DeleteStmt
		query = sampleTable(d.Relation, d.UsingClause, d.WhereClause, nil)
		query.WithClause = d.WithClause
	case *pg_query.Node_InsertStmt:
		if query = sampleInsert(s.InsertStmt); query == nil {
			return "", newFault("no-sample", "rows with DEFAULT have no sample: their values do not exist yet")
		}
	default:
		return "", newFault("no-sample", "only INSERT, UPDATE and DELETE have a sample of their rows")
	}
	query.LimitCount = pg_query.MakeAConstIntNode(maxSampleRows, -1)
	query.LimitOption = pg_query.LimitOption_LIMIT_OPTION_COUNT
	tree.Stmts[0].Stmt = &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: query}}
	text, err := pg_query.Deparse(tree)
	if err == nil {
		text, err = nameParameters(text, names)
	}
	if err != nil {
		return "", newFault("no-sample", "the query for the sample cannot be written: %v", err)
	}
	return text, nil
}

// sampleTable returns a query for the rows of a table that a condition selects, with more columns.
func sampleTable(
	table *pg_query.RangeVar, others []*pg_query.Node, where *pg_query.Node, columns []*pg_query.Node,
) *pg_query.SelectStmt {
	name := table.Relname
	if table.Alias != nil {
		name = table.Alias.Aliasname
	}
	all := pg_query.MakeColumnRefNode([]*pg_query.Node{pg_query.MakeStrNode(name), pg_query.MakeAStarNode()}, -1)
	return &pg_query.SelectStmt{
		TargetList:  append([]*pg_query.Node{pg_query.MakeResTargetNodeWithVal(all, -1)}, columns...),
		FromClause:  append([]*pg_query.Node{{Node: &pg_query.Node_RangeVar{RangeVar: table}}}, others...),
		WhereClause: where,
	}
}

// newValues returns the expressions of SET as columns of a query. A text says why a query cannot have a value; without
// it the column would look as if it stayed as it is.
func newValues(set []*pg_query.Node) (out []*pg_query.Node) {
	for _, node := range set {
		target := node.GetResTarget()
		value := target.GetVal()
		switch {
		case value.GetSetToDefault() != nil:
			value = pg_query.MakeAConstStrNode("(not shown: its DEFAULT)", -1)
		case len(target.GetIndirection()) > 0:
			value = pg_query.MakeAConstStrNode("(not shown: a part of it is set)", -1)
		case value.GetMultiAssignRef() != nil:
			value = pg_query.MakeAConstStrNode("(not shown: it is set together with others)", -1)
		}
		out = append(out, pg_query.MakeResTargetNodeWithNameAndVal("new "+target.GetName(), value, -1))
	}
	return out
}

// sampleInsert returns a query for the rows that would be inserted, and nil if a row has a DEFAULT.
func sampleInsert(s *pg_query.InsertStmt) *pg_query.SelectStmt {
	rows := s.SelectStmt.GetSelectStmt()
	if rows == nil {
		return nil
	}
	for _, row := range rows.ValuesLists {
		for _, value := range row.GetList().GetItems() {
			if value.GetSetToDefault() != nil {
				return nil
			}
		}
	}
	alias := &pg_query.Alias{Aliasname: "inserted"}
	for _, column := range s.Cols {
		alias.Colnames = append(alias.Colnames, pg_query.MakeStrNode(column.GetResTarget().GetName()))
	}
	all := pg_query.MakeColumnRefNode([]*pg_query.Node{pg_query.MakeAStarNode()}, -1)
	return &pg_query.SelectStmt{
		WithClause: s.WithClause,
		TargetList: []*pg_query.Node{pg_query.MakeResTargetNodeWithVal(all, -1)},
		FromClause: []*pg_query.Node{{Node: &pg_query.Node_RangeSubselect{
			RangeSubselect: &pg_query.RangeSubselect{Subquery: s.SelectStmt, Alias: alias}}}},
	}
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
