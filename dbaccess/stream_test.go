package dbaccess_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// bulk returns 56 MiB in 57 344 rows, below the default byte limit.
const bulk = "SELECT n AS a, repeat(chr(97 + n % 26), 1010) AS streamed FROM generate_series(1, 57344) n"

// TestRowsAreStreamed expects rows to flow from the server to the sink without being collected. It measures allocations
// of the whole process, so it does not run in parallel.
func TestRowsAreStreamed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	// One connection: a statement that keeps it blocks the next one.
	r, err := dbaccess.Open(
		ctx,
		dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), MaxConns: 1},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := all(ctx, r, "SELECT 1", nil, sandbox.QueryLimits{}); err != nil {
		t.Fatal(err)
	}
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	state := func(wait string) (n int) {
		if err := admin.QueryRow(ctx, `SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE '%streamed%' AND state = 'active' AND pid <> pg_backend_pid() AND concat(wait_event) LIKE $1`, wait).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// waitForBlockedServer returns when the server waits for its client to read.
	waitForBlockedServer := func() {
		eventually(t, "the server waits for its client", func() bool { return state("ClientWrite") > 0 })
	}
	next := func(t *testing.T, left error) {
		t.Helper()
		if reason(left) != "cancelled" {
			t.Errorf("got %v, want cancelled", left)
		}
		eventually(t, "the statement ends", func() bool { return state("%") == 0 })
		if got, err := all(ctx, r, "SELECT 7", nil, sandbox.QueryLimits{}); err != nil || got.Data[0][0] != int64(7) {
			t.Errorf("next statement: got %v, %v, want 7", got.Data, err)
		}
	}

	t.Run("a slow sink slows the server down", func(t *testing.T) {
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		batches, rows, bytes, largest := 0, 0, 0, 0
		total, err := r.Query(ctx, bulk, nil, sandbox.QueryLimits{}, func(batch sandbox.RowBatch) error {
			if batches++; batches%20 == 1 {
				waitForBlockedServer()
			}
			for i := range batch.Count {
				if v := &batch.Data[1]; int(v.TextAt(i)[0]) != 'a'+(rows+i+1)%26 ||
					batch.Data[0].Ints[i] != int64(rows+i+1) {
					return errors.New("another value")
				}
			}
			rows += batch.Count
			bytes += len(batch.Data[1].Text)
			largest = max(largest, len(batch.Data[1].Text))
			return nil
		})
		runtime.ReadMemStats(&is)
		if err != nil || rows != 57344 || total.Rows != rows || bytes != 57344*1010 || total.Truncated {
			t.Errorf("got %+v, %d rows, %d bytes, %v", total, rows, bytes, err)
		}
		if took := is.TotalAlloc - was.TotalAlloc; took > 4<<20 || largest > 1<<20 || batches < 100 {
			t.Errorf("allocated %d MiB for %d batches, the largest has %d KiB", took>>20, batches, largest>>10)
		}
	})

	t.Run("cancelling the context ends the statement", func(t *testing.T) {
		left, leave := context.WithCancel(ctx)
		defer leave()
		_, err := r.Query(left, bulk, nil, sandbox.QueryLimits{}, func(sandbox.RowBatch) error {
			if left.Err() == nil {
				waitForBlockedServer()
				leave()
			}
			return nil
		})
		next(t, err)
	})

	t.Run("an error of the sink ends the statement", func(t *testing.T) {
		batches := 0
		_, err := r.Query(ctx, bulk, nil, sandbox.QueryLimits{}, func(sandbox.RowBatch) error {
			if batches++; batches == 3 {
				waitForBlockedServer()
				return errors.New("gone")
			}
			return nil
		})
		if batches != 3 {
			t.Errorf("sink was called %d times, want 3", batches)
		}
		next(t, err)
	})

	t.Run("a hanging sink is subject to the timeout", func(t *testing.T) {
		_, err := r.Query(
			ctx,
			bulk,
			nil,
			sandbox.QueryLimits{Timeout: 100 * time.Millisecond},
			func(sandbox.RowBatch) error {
				eventually(t, "the timeout ends the statement", func() bool { return state("%") == 0 })
				return nil
			},
		)
		if reason(err) != "timeout" {
			t.Errorf("got %v, want timeout", err)
		}
	})

	t.Run("an error can follow rows", func(t *testing.T) {
		rows := 0
		_, err := r.Query(
			ctx,
			"SELECT repeat('x', 100), 1 / (50001 - n) FROM generate_series(1, 100000) n",
			nil,
			sandbox.QueryLimits{},
			func(batch sandbox.RowBatch) error {
				rows += batch.Count
				return nil
			},
		)
		if reason(err) != "division-by-zero" || rows == 0 || rows > 50000 {
			t.Errorf("got %d rows, %v, want some rows and division-by-zero", rows, err)
		}
	})

	t.Run("a huge value has a batch of its own", func(t *testing.T) {
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		var sizes []int
		_, err := r.Query(
			ctx,
			"SELECT n, repeat('x', CASE n WHEN 2 THEN 60 * 1048576 ELSE 10 END), NULL FROM generate_series(1, 3) n",
			nil,
			sandbox.QueryLimits{},
			func(batch sandbox.RowBatch) error {
				v := &batch.Data[1]
				sizes = append(sizes, len(v.Text))
				if strings.Trim(string(v.Text[:9]), "x") != "" || batch.Data[2].At(0) != nil {
					t.Error("got another value")
				}
				return nil
			},
		)
		runtime.ReadMemStats(&is)
		if err != nil || len(sizes) != 3 || sizes[1] != 60<<20 {
			t.Errorf("batch sizes: got %v, %v", sizes, err)
		}
		if took := is.TotalAlloc - was.TotalAlloc; took > 70<<20 {
			t.Errorf("allocated %d MiB, want at most 70", took>>20)
		}
	})

	t.Run("columns are passed on without rows", func(t *testing.T) {
		for sql, want := range map[string]int{"SELECT id, name FROM users WHERE false": 2, "SELECT FROM users WHERE false": 0} {
			calls := 0
			total, err := r.Query(ctx, sql, nil, sandbox.QueryLimits{}, func(batch sandbox.RowBatch) error {
				if calls++; len(batch.Columns) != want || batch.Count != 0 {
					t.Errorf("%s: got %+v", sql, batch)
				}
				return nil
			})
			if err != nil || calls != 1 || total.Rows != 0 {
				t.Errorf("%s: got %d calls, %+v, %v, want one call without rows", sql, calls, total, err)
			}
		}
		if got, err := all(ctx, r, "SELECT FROM generate_series(1, 5)", nil, sandbox.QueryLimits{}); err != nil ||
			got.Rows != 5 {
			t.Errorf("got %+v, %v, want 5 rows", got, err)
		}
	})
}
