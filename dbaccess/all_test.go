package dbaccess_test

import (
	"context"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
)

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
				out.Data[i] = append(out.Data[i], rows.Data[i].At(n))
			}
		}
		return nil
	})
	return out, err
}
