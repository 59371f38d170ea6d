package dbaccess_test

import (
	"errors"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// TestLargeMessagesCountForTheirUser reads values of the server that are larger than the user may hold, while a sink
// holds an earlier one.
func TestLargeMessagesCountForTheirUser(t *testing.T) {
	t.Parallel()
	results := limit.NewResults(20 << 20)
	s := dbtest.Start(t)
	if err := s.LoadDemo(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := openReader(t, dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), Results: results})
	const value = `SELECT repeat('x', 12 << 20) AS a`
	ann := sandbox.QueryLimits{User: "ann"}
	refused := func(err error) bool {
		known, ok := errors.AsType[*sandbox.Error](err)
		return ok && known.Fault == sandbox.FaultLimit && known.RetryAfter > 0
	}
	ignore := func(sandbox.RowBatch) error { return nil }
	_, err := r.Query(t.Context(), value, nil, ann, func(sandbox.RowBatch) error {
		if _, err := r.Query(t.Context(), value, nil, ann, ignore); !refused(err) {
			t.Errorf("while a sink holds 12 MiB: got %v, want FaultLimit with the time to retry", err)
		}
		if _, err := r.Query(t.Context(), value, nil, sandbox.QueryLimits{User: "bob"}, ignore); err != nil {
			t.Errorf("another user: got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("the statement that held the memory: got %v", err)
	}
	// One value after the other fits, whatever their number, and nothing is held after an error.
	_, err = r.Query(t.Context(), `SELECT repeat('x', 12 << 20) AS a FROM generate_series(1, 4)`, nil, ann, ignore)
	if err != nil {
		t.Errorf("four values of 12 MiB, one at a time: got %v", err)
	}
	if _, err = r.Query(t.Context(), `SELECT repeat('x', 30 << 20) AS a`, nil, ann, ignore); !refused(err) {
		t.Errorf("a value of 30 MiB: got %v, want FaultLimit", err)
	}
	full := func(rows sandbox.RowBatch) error { return rows.Hold(30 << 20) }
	if _, err = r.Query(t.Context(), `SELECT 1 AS a`, nil, ann, full); !refused(err) {
		t.Errorf("a sink that needs 30 MiB: got %v, want FaultLimit", err)
	}
	if err := results.Open("ann").Add(20 << 20); err != nil {
		t.Errorf("after all statements: got %v, want nothing held", err)
	}
}
