package dbaccess

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// allowedNodes are the only nodes that a statement's tree may hold. A node that
// is not here is refused, so a parser that learns new tricks opens nothing.
var allowedNodes = words(`Node RawStmt ParseResult SelectStmt ExplainStmt DefElem ResTarget ColumnRef A_Star A_Const Integer Float Boolean BitString String List FuncCall A_Expr BoolExpr NullTest BooleanTest
SubLink ColumnDef CaseExpr CaseWhen CoalesceExpr MinMaxExpr RangeVar RangeSubselect RangeFunction RangeTableSample RangeTableFunc RangeTableFuncCol JoinExpr Alias SortBy WindowDef WithClause CommonTableExpr
CTESearchClause CTECycleClause GroupingSet GroupingFunc TypeCast TypeName A_ArrayExpr A_Indirection A_Indices RowExpr SQLValueFunction CollateClause NamedArgExpr ParamRef XmlExpr XmlSerialize`)

// writingNodes get the reason read-only: they would have an effect.
var writingNodes = map[string]string{
	"InsertStmt": "INSERT", "UpdateStmt": "UPDATE", "DeleteStmt": "DELETE", "MergeStmt": "MERGE", "IntoClause": "SELECT INTO", "LockingClause": "a row lock (FOR UPDATE or SHARE)", "CopyStmt": "COPY", "TruncateStmt": "TRUNCATE",
	"DropStmt": "DROP", "CreateStmt": "CREATE TABLE", "CreateTableAsStmt": "CREATE TABLE AS", "ViewStmt": "CREATE VIEW", "IndexStmt": "CREATE INDEX", "AlterTableStmt": "ALTER", "GrantStmt": "GRANT or REVOKE", "VacuumStmt": "VACUUM",
	"CreateFunctionStmt": "CREATE FUNCTION", "CreateRoleStmt": "CREATE ROLE", "AlterRoleStmt": "ALTER ROLE", "CreateSchemaStmt": "CREATE SCHEMA", "CreateExtensionStmt": "CREATE EXTENSION", "RefreshMatViewStmt": "REFRESH", "RenameStmt": "ALTER",
	"CreateSeqStmt": "CREATE SEQUENCE", "CommentStmt": "COMMENT", "ReindexStmt": "REINDEX", "ClusterStmt": "CLUSTER", "CreateTrigStmt": "CREATE TRIGGER", "CreatedbStmt": "CREATE DATABASE", "DropdbStmt": "DROP DATABASE", "DropRoleStmt": "DROP ROLE",
}

var otherStatements = map[string]string{
	"VariableSetStmt": "SET", "VariableShowStmt": "SHOW", "TransactionStmt": "transaction control", "PrepareStmt": "PREPARE", "ExecuteStmt": "EXECUTE", "DeallocateStmt": "DEALLOCATE", "DeclareCursorStmt": "DECLARE CURSOR", "FetchStmt": "FETCH",
	"ListenStmt": "LISTEN", "NotifyStmt": "NOTIFY", "UnlistenStmt": "UNLISTEN", "DoStmt": "DO", "CallStmt": "CALL", "LockStmt": "LOCK", "DiscardStmt": "DISCARD", "LoadStmt": "LOAD", "CheckPointStmt": "CHECKPOINT", "ClosePortalStmt": "CLOSE",
}

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// Check judges a statement offline: nil, or a *sandbox.Refusal. Against a live
// catalogue, Reader.Query also knows user-defined functions, operators and types.
func Check(sql string) error {
	_, err := check(sql, nil)
	return err
}

// check parses and walks the tree; it returns the statement's fingerprint.
func check(sql string, known *catalogue) (string, error) {
	if _, err := scan(sql); err != nil {
		return "", err
	}
	fingerprint, _ := pg_query.Fingerprint(sql)
	tree, err := pg_query.Parse(sql)
	if err != nil {
		return fingerprint, syntaxError(sql, err)
	}
	switch len(tree.Stmts) {
	case 0:
		return fingerprint, refuse("syntax-error", "the statement is empty")
	case 1:
	default:
		r := refuse("multiple-statements", "there are %d statements, and one is run at a time", len(tree.Stmts))
		r.Hint = "call db_query once for each"
		return fingerprint, r
	}
	w := walker{sql: sql, known: known}
	top := tree.Stmts[0].Stmt.ProtoReflect()
	top.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name := string(v.Message().Descriptor().Name())
		if name != "SelectStmt" && name != "ExplainStmt" {
			w.refuseNode(name, v.Message())
		}
		return false
	})
	if w.err == nil {
		w.walk(top)
	}
	if w.err != nil {
		return fingerprint, w.err
	}
	return fingerprint, nil
}

func syntaxError(sql string, err error) *sandbox.Refusal {
	return refuse("syntax-error", "%s", err.Error())
}

// walker visits every field of every node.
type walker struct {
	sql   string
	known *catalogue
	err   *sandbox.Refusal
}

func (w *walker) fail(at int, r *sandbox.Refusal) {
	if w.err == nil {
		if at >= 0 && at <= len(w.sql) {
			r.Position = at + 1 // in bytes of what was parsed; Query maps it to the caller's text
		}
		w.err = r
	}
}

func (w *walker) refuseNode(name string, m protoreflect.Message) {
	at := location(m)
	if what, ok := writingNodes[name]; ok {
		w.fail(at, refuse("read-only", "%s is refused: db_query only reads", what))
	} else if what, ok := otherStatements[name]; ok {
		w.fail(at, refuse("statement-not-allowed", "%s is refused: only SELECT, VALUES, TABLE, WITH and plain EXPLAIN are run", what))
	} else if strings.HasPrefix(name, "Create") || strings.HasPrefix(name, "Alter") || strings.HasPrefix(name, "Drop") {
		w.fail(at, refuse("read-only", "%s is refused: db_query only reads", strings.TrimSuffix(name, "Stmt")))
	} else {
		w.fail(at, refuse("statement-not-allowed", "%s is refused: it is not known to be harmless", name))
	}
}

func (w *walker) walk(m protoreflect.Message) {
	name := string(m.Descriptor().Name())
	if !allowedNodes[name] {
		w.refuseNode(name, m)
		return
	}
	switch n := m.Interface().(type) {
	case *pg_query.FuncCall:
		w.function(n)
	case *pg_query.TypeName:
		w.typeName(n)
	case *pg_query.A_Expr:
		w.operator(n.Name, int(n.Location))
	case *pg_query.SubLink:
		w.operator(n.OperName, int(n.Location))
	case *pg_query.SortBy:
		w.operator(n.UseOp, int(n.Location))
	case *pg_query.RangeVar:
		if policy.SQLHiddenRelations[n.Relname] && (n.Schemaname == "" || n.Schemaname == "pg_catalog") {
			w.fail(int(n.Location), refuse("permission", "%s is refused: it shows what others do on this server", n.Relname))
		}
	case *pg_query.A_Indirection:
		for _, part := range n.Indirection {
			w.attribute(part.GetString_(), true)
		}
	case *pg_query.ColumnRef:
		if len(n.Fields) > 1 {
			w.attribute(n.Fields[len(n.Fields)-1].GetString_(), false)
		}
	case *pg_query.RangeTableSample:
		if s := names(n.Method); len(s) != 1 || s[0] != "system" && s[0] != "bernoulli" {
			w.fail(int(n.Location), refuse("function-not-allowed", "TABLESAMPLE takes SYSTEM or BERNOULLI"))
		}
	case *pg_query.ExplainStmt:
		for _, o := range n.Options {
			if d := o.GetDefElem(); d == nil || d.Defname != "format" && d.Defname != "costs" && d.Defname != "verbose" && d.Defname != "settings" && d.Defname != "summary" {
				w.fail(-1, refuse("statement-not-allowed", "EXPLAIN takes no option that runs the statement"))
			}
		}
		if n.Query.GetSelectStmt() == nil {
			w.fail(-1, refuse("read-only", "EXPLAIN of a statement that would write is refused: db_query only reads"))
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				if w.err == nil {
					w.walk(v.List().Get(i).Message())
				}
			}
		default:
			w.walk(v.Message())
		}
		return w.err == nil
	})
}

func (w *walker) function(n *pg_query.FuncCall) {
	parts := names(n.Funcname)
	name := parts[len(parts)-1]
	full := strings.Join(parts, ".")
	ours := len(parts) == 1 || len(parts) == 2 && parts[0] == "pg_catalog"
	switch {
	case w.known.listed(full):
	case !ours || w.known.userFunction(name) && len(parts) == 1 || !policy.SQLFunctions[name]:
		r := refuse("function-not-allowed", "the function %s is not on the list of functions that are known to only compute", full)
		if ours {
			r.Nearest = nearest(name, policy.SQLFunctions)
		}
		if r.Nearest != "" {
			r.Hint = "did you mean " + r.Nearest + "?"
		} else {
			r.Hint = "compute it in Python instead, or ask the operator to list the function"
		}
		w.fail(int(n.Location), r)
	}
}

func (w *walker) typeName(n *pg_query.TypeName) {
	parts := names(n.Names)
	if len(parts) == 0 {
		return
	}
	name := parts[len(parts)-1]
	if policy.SQLTypes[name] && (len(parts) == 1 || parts[0] == "pg_catalog") && !w.known.userType(name) || w.known.enum(name) {
		return
	}
	w.fail(int(n.Location), refuse("type-not-allowed", "a value of type %s cannot be made here: only built-in types and enums can", strings.Join(parts, ".")))
}

func (w *walker) operator(op []*pg_query.Node, at int) {
	parts := names(op)
	if len(parts) == 0 {
		return
	}
	if len(parts) > 1 && parts[0] != "pg_catalog" || len(parts) == 1 && w.known.userOperator(parts[0]) {
		w.fail(at, refuse("function-not-allowed", "the operator %s is defined by a user, and is not known to only compute", strings.Join(parts, ".")))
	}
}

// attribute sees the notation row.function, which calls function(row).
func (w *walker) attribute(s *pg_query.String, anyValue bool) {
	if s == nil {
		return
	}
	if w.known.userFunction(s.Sval) && !w.known.column(s.Sval) || anyValue && !policy.SQLFunctions[s.Sval] && (w.known.builtin(s.Sval) && !w.known.column(s.Sval)) {
		w.fail(-1, refuse("function-not-allowed", "%s in attribute notation calls a function that is not known to only compute", s.Sval))
	}
}

func names(nodes []*pg_query.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}

func location(m protoreflect.Message) int {
	if f := m.Descriptor().Fields().ByName("location"); f != nil && f.Kind() == protoreflect.Int32Kind {
		return int(m.Get(f).Int())
	}
	return -1
}

// nearest is the closest name by edits, or "".
func nearest(name string, among map[string]bool) string {
	best, cost := "", max(len(name)/3, 1)+1
	for other := range among {
		if d := distance(name, other, cost); d < cost || d == cost && other < best {
			best, cost = other, d
		}
	}
	return best
}

func distance(a, b string, bound int) int {
	if len(a)-len(b) > bound || len(b)-len(a) > bound {
		return bound + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			keep := row[j]
			if a[i-1] == b[j-1] {
				row[j] = last
			} else {
				row[j] = 1 + min(last, row[j], row[j-1])
			}
			last = keep
		}
	}
	return row[len(b)]
}
