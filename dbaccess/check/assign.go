package check

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// noteAssignment notes the types to which a node assigns values. The server then also uses casts that were made AS
// ASSIGNMENT, in a query too: where its grammar needs a value of one type (coerce_to_target_type with
// COERCION_ASSIGNMENT in parse_clause.c, parse_expr.c and parse_coerce.c of PostgreSQL, and the subscripting code).
func (w *walker) noteAssignment(node any) {
	assign := func(happens bool, types ...string) {
		if happens {
			for _, t := range types {
				w.assignedTypes[t] = true
			}
		}
	}
	switch n := node.(type) {
	case *pg_query.SelectStmt:
		assign(n.WhereClause != nil || n.HavingClause != nil, "bool")
		assign(n.LimitCount != nil || n.LimitOffset != nil, "int8")
	case *pg_query.FuncCall:
		assign(n.AggFilter != nil, "bool")
	case *pg_query.JoinExpr, *pg_query.BoolExpr, *pg_query.BooleanTest, *pg_query.CaseExpr, *pg_query.SubLink:
		assign(true, "bool")
	case *pg_query.A_Expr: // the results of the operators of IN, BETWEEN, ANY and rows become boolean
		assign(n.Kind != pg_query.A_Expr_Kind_AEXPR_OP || n.Lexpr.GetRowExpr() != nil, "bool")
	case *pg_query.A_Indices: // of an array, jsonb or hstore
		assign(true, "int4", "text")
	case *pg_query.WindowDef:
		assign(n.StartOffset != nil || n.EndOffset != nil, "int8")
	case *pg_query.RangeTableSample:
		assign(true, "float4", "float8")
	case *pg_query.XmlExpr, *pg_query.XmlSerialize, *pg_query.RangeTableFunc:
		assign(true, "xml", "text", "int4", "bool")
	}
}

// mayAssign reports whether the statement may use a cast that was made AS ASSIGNMENT.
func (w *walker) mayAssign(target *Type) bool {
	return w.allowWrites || target.Schema == "pg_catalog" && w.assignedTypes[target.Name]
}
