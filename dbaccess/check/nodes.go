package check

import (
	"reflect"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// allowedNodes are the only nodes that a tree may contain. Any other node is refused, so a newer
// parser does not allow anything new. A test compares all fields of these nodes with the reviewed
// list in testdata/fields.txt.
var allowedNodes = wordSet(
	`Node RawStmt SelectStmt ExplainStmt VariableShowStmt DefElem ResTarget ColumnRef A_Star A_Const Integer Float Boolean BitString String List FuncCall A_Expr BoolExpr NullTest BooleanTest
SubLink ColumnDef CaseExpr CaseWhen CoalesceExpr MinMaxExpr RangeVar RangeSubselect RangeFunction RangeTableSample RangeTableFunc RangeTableFuncCol JoinExpr Alias SortBy WindowDef WithClause CommonTableExpr
CTESearchClause CTECycleClause GroupingSet GroupingFunc TypeCast TypeName A_ArrayExpr A_Indirection A_Indices RowExpr SQLValueFunction CollateClause NamedArgExpr ParamRef XmlExpr XmlSerialize
JsonObjectConstructor JsonArrayConstructor JsonArrayQueryConstructor JsonAggConstructor JsonObjectAgg JsonArrayAgg JsonIsPredicate JsonOutput JsonReturning JsonFormat JsonKeyValue JsonValueExpr`,
)

// writingStatements may be captured. Other statements with an effect are refused.
var writingStatements = wordSet("InsertStmt UpdateStmt DeleteStmt MergeStmt")

// writeOnlyNodes occur only in writing statements.
var writeOnlyNodes = wordSet(
	"InsertStmt UpdateStmt DeleteStmt MergeStmt MergeWhenClause OnConflictClause InferClause MultiAssignRef SetToDefault IndexElem",
)

// writingStatementNames are refused with the reason read-only.
var writingStatementNames = map[string]string{
	"InsertStmt": "INSERT", "UpdateStmt": "UPDATE", "DeleteStmt": "DELETE", "MergeStmt": "MERGE", "IntoClause": "SELECT INTO", "LockingClause": "a row lock (FOR UPDATE or SHARE)", "CopyStmt": "COPY", "TruncateStmt": "TRUNCATE",
	"DropStmt": "DROP", "CreateStmt": "CREATE TABLE", "CreateTableAsStmt": "CREATE TABLE AS", "ViewStmt": "CREATE VIEW", "IndexStmt": "CREATE INDEX", "AlterTableStmt": "ALTER", "GrantStmt": "GRANT or REVOKE", "VacuumStmt": "VACUUM",
	"CreateFunctionStmt": "CREATE FUNCTION", "CreateRoleStmt": "CREATE ROLE", "AlterRoleStmt": "ALTER ROLE", "CreateSchemaStmt": "CREATE SCHEMA", "CreateExtensionStmt": "CREATE EXTENSION", "RefreshMatViewStmt": "REFRESH", "RenameStmt": "ALTER",
	"CreateSeqStmt": "CREATE SEQUENCE", "CommentStmt": "COMMENT", "ReindexStmt": "REINDEX", "ClusterStmt": "CLUSTER", "CreateTrigStmt": "CREATE TRIGGER", "CreatedbStmt": "CREATE DATABASE", "DropdbStmt": "DROP DATABASE", "DropRoleStmt": "DROP ROLE",
	"GrantRoleStmt": "GRANT or REVOKE of a role", "ImportForeignSchemaStmt": "IMPORT FOREIGN SCHEMA", "SecLabelStmt": "SECURITY LABEL", "ReassignOwnedStmt": "REASSIGN OWNED", "RuleStmt": "CREATE RULE", "DefineStmt": "CREATE", "CompositeTypeStmt": "CREATE TYPE",
}

var unsupportedStatementNames = map[string]string{
	"VariableSetStmt": "SET", "TransactionStmt": "transaction control", "PrepareStmt": "PREPARE", "ExecuteStmt": "EXECUTE", "DeallocateStmt": "DEALLOCATE", "DeclareCursorStmt": "DECLARE CURSOR", "FetchStmt": "FETCH",
	"ListenStmt": "LISTEN", "NotifyStmt": "NOTIFY", "UnlistenStmt": "UNLISTEN", "DoStmt": "DO", "CallStmt": "CALL", "LockStmt": "LOCK", "DiscardStmt": "DISCARD", "LoadStmt": "LOAD", "CheckPointStmt": "CHECKPOINT", "ClosePortalStmt": "CLOSE",
	"ConstraintsSetStmt": "SET CONSTRAINTS", "AlterSystemStmt": "ALTER SYSTEM",
}

func wordSet(s string) map[string]bool { return setOf(strings.Fields(s)) }

// refuseNode returns the refusal of a node that is not allowed.
func refuseNode(name string) *sandbox.Refusal {
	if what, ok := unsupportedStatementNames[name]; ok {
		return sandbox.Refusef("statement-not-allowed",
			"%s is refused: only SELECT, VALUES, TABLE, WITH, plain EXPLAIN and SHOW are run", what)
	}
	if what, ok := writingStatementNames[name]; ok {
		return sandbox.Refusef("read-only", "%s is refused: db_query only reads", what)
	}
	if strings.HasPrefix(name, "Create") || strings.HasPrefix(name, "Alter") || strings.HasPrefix(name, "Drop") {
		return sandbox.Refusef("read-only", "%s is refused: db_query only reads", strings.TrimSuffix(name, "Stmt"))
	}
	return sandbox.Refusef("statement-not-allowed", "%s is refused: it is not on the list of allowed syntax", name)
}

// nodeNameAndOffset returns the name of a node's content and its byte offset, or -1 if unknown.
func nodeNameAndOffset(n *pg_query.Node) (name string, at int) {
	if n == nil || n.Node == nil {
		return "", -1
	}
	one := oneofMessage(reflect.ValueOf(n).Elem().FieldByName("Node"))
	if !one.IsValid() || one.IsNil() {
		return "", -1
	}
	s := nodeTypeOf(one.Type().Elem())
	return s.name, s.offset(one.Elem())
}
