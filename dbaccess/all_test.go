package dbaccess_test

import (
	"context"
	"os"
	"testing"
	"time"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/sandbox"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// eventually polls for a state of the server, which has no event. The limit only ends a test that fails.
func eventually(t testing.TB, state string, reached func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", state)
		}
	}
}

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
