package dbaccess_test

import (
	"context"
	"os"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// eventually polls for a state that has no event.
var eventually = polltest.Eventually

// result is a complete query result, column by column.
type result struct {
	sandbox.QuerySummary
	Columns []sandbox.Column
	Data    [][]any
}

// all runs a query and collects its complete result.
func all(
	ctx context.Context,
	r *dbaccess.Reader,
	sql string,
	params map[string]any,
	l sandbox.QueryLimits,
) (out result, err error) {
	out.QuerySummary, err = r.Query(ctx, sql, params, l, func(rows sandbox.RowBatch) error {
		if out.Columns == nil {
			out.Columns, out.Data = rows.Columns, make([][]any, len(rows.Columns))
		}
		for i := range rows.Data {
			for n := range rows.Count {
				out.Data[i] = append(out.Data[i], listOf(rows.Data[i].At(n)))
			}
		}
		return nil
	})
	return out, err
}

// listOf returns the items of an array as lists, and any other value as it is.
func listOf(v any) any {
	array, ok := v.(sandbox.Array)
	if !ok {
		return v
	}
	lists := [][]any{{}} // the last one is not complete
	for token, element := range array.Tokens() {
		if token == sandbox.ArrayBegin {
			lists = append(lists, []any{})
			continue
		}
		if token == sandbox.ArrayEnd {
			element, lists = lists[len(lists)-1], lists[:len(lists)-1]
		}
		last := len(lists) - 1
		lists[last] = append(lists[last], element)
	}
	return lists[0][0]
}
