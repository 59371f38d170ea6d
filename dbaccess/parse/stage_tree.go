package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// forEachNode calls visit with each node of a tree, the outer ones first. If visit returns false, the nodes in it are
// left out.
func forEachNode(m proto.Message, visit func(*pg_query.Node) bool) {
	var walk func(protoreflect.Message)
	walk = func(m protoreflect.Message) {
		if node, ok := m.Interface().(*pg_query.Node); ok && !visit(node) {
			return
		}
		m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			switch {
			case field.Kind() != protoreflect.MessageKind:
			case field.IsList():
				for i := range value.List().Len() {
					walk(value.List().Get(i).Message())
				}
			default:
				walk(value.Message())
			}
			return true
		})
	}
	if m != nil && m.ProtoReflect().IsValid() {
		walk(m.ProtoReflect())
	}
}

// readsAny reports whether a tree has a table without a schema of one of the names, or WITH queries of its own.
func readsAny(m proto.Message, names []string) (reads bool) {
	if len(names) == 0 {
		return false
	}
	forEachNode(m, func(n *pg_query.Node) bool {
		if r := n.GetRangeVar(); r != nil && r.Schemaname == "" && slices.Contains(names, r.Relname) {
			reads = true
		}
		return true
	})
	return reads
}

// hasWith reports whether a tree has a WITH clause in it.
func hasWith(m proto.Message) (has bool) {
	forEachNode(m, func(n *pg_query.Node) bool {
		has = has || n.GetCommonTableExpr() != nil
		return !has
	})
	return has
}

// columnsOf returns the references to columns in a tree, also those of subqueries in it.
func columnsOf(m proto.Message) (refs []*pg_query.ColumnRef) {
	forEachNode(m, func(n *pg_query.Node) bool {
		if r := n.GetColumnRef(); r != nil {
			refs = append(refs, r)
		}
		return true
	})
	return refs
}

// columnName returns the qualifier of a column, or "", and its name. The name of a star is "*".
func columnName(r *pg_query.ColumnRef) (qualifier, name string) {
	n := len(r.GetFields())
	if n == 0 {
		return "", ""
	}
	name = "*"
	if s := r.Fields[n-1].GetString_(); s != nil {
		name = s.Sval
	}
	if n > 1 {
		qualifier = r.Fields[n-2].GetString_().GetSval()
	}
	return qualifier, name
}

// functionName returns the name of a function without its schema.
func functionName(f *pg_query.FuncCall) string {
	if n := len(f.GetFuncname()); n > 0 {
		return f.Funcname[n-1].GetString_().GetSval()
	}
	return ""
}

// volatileFunctions return other values each time that they are called.
var volatileFunctions = words(`random random_normal clock_timestamp timeofday gen_random_uuid uuidv4 uuidv7
	uuid_generate_v1 uuid_generate_v1mc uuid_generate_v4 nextval currval lastval setval setseed gen_random_bytes
	pg_sleep array_shuffle array_sample`)

// setReturningFunctions make rows in a SELECT list.
var setReturningFunctions = words(`generate_series unnest generate_subscripts regexp_matches regexp_split_to_table
	string_to_table json_array_elements json_array_elements_text json_each json_each_text json_object_keys
	json_populate_recordset json_to_recordset jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text
	jsonb_object_keys jsonb_populate_recordset jsonb_to_recordset jsonb_path_query ts_stat aclexplode`)

// aggregateFunctions make one row of a group.
var aggregateFunctions = words(`count sum avg min max array_agg string_agg bool_and bool_or every json_agg jsonb_agg
	json_object_agg jsonb_object_agg xmlagg stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop
	covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy bit_and
	bit_or bit_xor percentile_cont percentile_disc mode rank dense_rank percent_rank cume_dist any_value range_agg
	range_intersect_agg`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(list) {
		set[word] = true
	}
	return set
}

// volatileCall returns what makes a statement give other rows each time that it runs, or "".
func volatileCall(m proto.Message) (name string) {
	forEachNode(m, func(n *pg_query.Node) bool {
		if f := n.GetFuncCall(); f != nil && volatileFunctions[functionName(f)] {
			name = functionName(f)
		}
		if s := n.GetRangeTableSample(); s != nil && s.Repeatable == nil {
			name = "TABLESAMPLE without REPEATABLE"
		}
		return name == ""
	})
	return name
}

// isAggregate reports whether a call is of an aggregate, as far as its name and its form tell.
func isAggregate(f *pg_query.FuncCall) bool {
	if f == nil || f.Over != nil {
		return false
	}
	return f.AggStar || f.AggDistinct || f.AggFilter != nil || f.AggWithinGroup || len(f.AggOrder) > 0 ||
		aggregateFunctions[functionName(f)]
}

// callsIn reports whether expressions call a function that is wanted, outside of subqueries.
func callsIn(nodes []*pg_query.Node, isWanted func(*pg_query.FuncCall) bool) (calls bool) {
	for _, node := range nodes {
		forEachNode(node, func(n *pg_query.Node) bool {
			if n.GetSubLink() != nil {
				return false
			}
			if f := n.GetFuncCall(); f != nil && isWanted(f) {
				calls = true
			}
			return !calls
		})
	}
	return calls
}

// hasForeignRows reports whether the number of rows of a SELECT is decided where its clauses do not show it: ORDER BY
// makes rows, DISTINCT ON chooses a row before the SELECT list makes several of it, or an aggregate in a subquery is
// one of the SELECT around it.
func hasForeignRows(query *pg_query.SelectStmt) bool {
	for _, n := range query.SortClause {
		isTarget := func(t *pg_query.Node) bool {
			return equalNodes(t.GetResTarget().GetVal(), n.GetSortBy().GetNode())
		}
		if callsIn([]*pg_query.Node{n}, isSetReturning) && !slices.ContainsFunc(query.TargetList, isTarget) {
			return true
		}
	}
	isOn := len(query.DistinctClause) > 0 && query.DistinctClause[0].GetNode() != nil
	if isOn && callsIn(query.TargetList, isSetReturning) {
		return true
	}
	found := false
	for _, n := range slices.Concat(query.TargetList, query.SortClause) {
		forEachNode(n, func(n *pg_query.Node) bool {
			if inner := n.GetSubLink().GetSubselect().GetSelectStmt(); inner != nil {
				found = found || hasOuterAggregate(inner)
			}
			return !found
		})
	}
	return found
}

// hasOuterAggregate reports whether a subquery has an aggregate over columns of an outer query.
func hasOuterAggregate(query *pg_query.SelectStmt) (found bool) {
	var names []string
	for _, n := range query.FromClause {
		forEachNode(n, func(n *pg_query.Node) bool {
			names = append(names, n.GetRangeVar().GetRelname(), n.GetRangeVar().GetAlias().GetAliasname(),
				n.GetRangeSubselect().GetAlias().GetAliasname(), n.GetRangeFunction().GetAlias().GetAliasname())
			return n.GetSelectStmt() == nil
		})
	}
	for _, n := range query.TargetList {
		forEachNode(n, func(n *pg_query.Node) bool {
			if refs := columnsOf(n); isAggregate(n.GetFuncCall()) && len(refs) > 0 {
				isOwn := func(r *pg_query.ColumnRef) bool {
					qualifier, _ := columnName(r)
					return len(query.FromClause) > 0 && (qualifier == "" || slices.Contains(names, qualifier))
				}
				found = found || !slices.ContainsFunc(refs, isOwn)
			}
			return n.GetSelectStmt() == nil
		})
	}
	return found
}

func isSetReturning(f *pg_query.FuncCall) bool { return setReturningFunctions[functionName(f)] }

// andArgs returns the conditions that AND connects, also those of an AND in an AND.
func andArgs(n *pg_query.Node) []*pg_query.Node {
	b := n.GetBoolExpr()
	if b == nil || b.Boolop != pg_query.BoolExprType_AND_EXPR {
		return []*pg_query.Node{n}
	}
	var args []*pg_query.Node
	for _, a := range b.Args {
		args = append(args, andArgs(a)...)
	}
	return args
}
