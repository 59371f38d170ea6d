package parse

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Write says what a statement that writes does.
type Write struct {
	Verb     string // INSERT, UPDATE or DELETE; "": another statement
	IsWhole  bool   // an UPDATE or DELETE of all rows: it has no condition, or one that is the same for each row
	IsUpsert bool   // an INSERT that may change rows which are there
}

// describeWrite describes a statement with $n. It returns the zero Write for any other statement.
func describeWrite(numbered string) Write {
	w, bad := splitWrite(numbered)
	if bad != nil {
		return Write{}
	}
	switch {
	case w.insert != nil:
		action := w.insert.OnConflictClause.GetAction()
		return Write{Verb: "INSERT", IsUpsert: action == pg_query.OnConflictAction_ONCONFLICT_UPDATE}
	case w.delete != nil:
		return Write{Verb: "DELETE", IsWhole: isSameForAllRows(w.condition)}
	}
	return Write{Verb: "UPDATE", IsWhole: isSameForAllRows(w.condition)}
}

// isSameForAllRows reports whether a condition is missing, or reads no column, calls no function and has no query.
func isSameForAllRows(condition *pg_query.Node) bool {
	if condition == nil {
		return true
	}
	isSame := true
	var visit func(protoreflect.Message)
	visit = func(m protoreflect.Message) {
		switch m.Interface().(type) {
		case *pg_query.ColumnRef, *pg_query.FuncCall, *pg_query.SubLink, *pg_query.CurrentOfExpr:
			isSame = false
		}
		m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			switch {
			case field.Kind() != protoreflect.MessageKind:
			case field.IsList():
				for i := range value.List().Len() {
					visit(value.List().Get(i).Message())
				}
			default:
				visit(value.Message())
			}
			return isSame
		})
	}
	visit(condition.ProtoReflect())
	return isSame
}
