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

// 56 MiB in 57 344 rows, under the budget of bytes.
const bulk = "SELECT n AS a, repeat(chr(97 + n % 26), 1010) AS streamed FROM generate_series(1, 57344) n"

// Rows flow from the server to who takes them, and are not held between.
func TestRowsFlow(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	// One connection: a statement that kept it would be seen.
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := all(ctx, r, "SELECT 1", nil, sandbox.QueryLimits{}); err != nil {
		t.Fatal(err)
	}
	look, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close(ctx)
	state := func(wait string) (n int) {
		if err := look.QueryRow(ctx, `SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE '%streamed%' AND state = 'active' AND pid <> pg_backend_pid() AND concat(wait_event) LIKE $1`, wait).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// stuck returns when the server waits for somebody to read.
	stuck := func() {
		for state("ClientWrite") == 0 {
			runtime.Gosched()
		}
	}
	next := func(t *testing.T, left error, began time.Time) {
		t.Helper()
		if reason(left) != "cancelled" {
			t.Errorf("got %v", left)
		}
		for state("%") > 0 {
			if time.Since(began) > time.Second {
				t.Fatal("it still runs a second later")
			}
		}
		if got, err := all(ctx, r, "SELECT 7", nil, sandbox.QueryLimits{}); err != nil || got.Data[0][0] != int64(7) {
			t.Errorf("the next: %v, %v", got.Data, err)
		}
	}

	t.Run("a slow taker slows the server", func(t *testing.T) {
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		parts, rows, bytes, largest := 0, 0, 0, 0
		total, err := r.Query(ctx, bulk, nil, sandbox.QueryLimits{}, func(part sandbox.RowBatch) error {
			if parts++; parts%20 == 1 {
				stuck()
			}
			for i := range part.Count {
				if v := &part.Data[1]; int(v.TextAt(i)[0]) != 'a'+(rows+i+1)%26 || part.Data[0].Ints[i] != int64(rows+i+1) {
					return errors.New("another value")
				}
			}
			rows += part.Count
			bytes += len(part.Data[1].Text)
			largest = max(largest, len(part.Data[1].Text))
			return nil
		})
		runtime.ReadMemStats(&is)
		if err != nil || rows != 57344 || total.Rows != rows || bytes != 57344*1010 || total.Truncated {
			t.Errorf("%+v, %d rows, %d bytes, %v", total, rows, bytes, err)
		}
		if took := is.TotalAlloc - was.TotalAlloc; took > 4<<20 || largest > 1<<20 || parts < 100 {
			t.Errorf("%d MiB were allocated for %d parts, the largest of %d KiB", took>>20, parts, largest>>10)
		}
	})

	t.Run("one that leaves ends it", func(t *testing.T) {
		left, leave := context.WithCancel(ctx)
		defer leave()
		var began time.Time
		_, err := r.Query(left, bulk, nil, sandbox.QueryLimits{}, func(sandbox.RowBatch) error {
			if began.IsZero() {
				stuck()
				leave()
				began = time.Now()
			}
			return nil
		})
		next(t, err, began)
	})

	t.Run("one that fails ends it", func(t *testing.T) {
		parts := 0
		var began time.Time
		_, err := r.Query(ctx, bulk, nil, sandbox.QueryLimits{}, func(sandbox.RowBatch) error {
			if parts++; parts == 3 {
				stuck()
				began = time.Now()
				return errors.New("gone")
			}
			return nil
		})
		if parts != 3 {
			t.Errorf("it was called %d times", parts)
		}
		next(t, err, began)
	})

	t.Run("one that hangs is waited for no longer than the statement may take", func(t *testing.T) {
		_, err := r.Query(ctx, bulk, nil, sandbox.QueryLimits{Timeout: 100 * time.Millisecond}, func(sandbox.RowBatch) error {
			for state("%") > 0 {
				runtime.Gosched()
			}
			return nil
		})
		if reason(err) != "timeout" {
			t.Errorf("got %v", err)
		}
	})

	t.Run("an error may come after rows", func(t *testing.T) {
		rows := 0
		_, err := r.Query(ctx, "SELECT repeat('x', 100), 1 / (50001 - n) FROM generate_series(1, 100000) n", nil, sandbox.QueryLimits{}, func(part sandbox.RowBatch) error {
			rows += part.Count
			return nil
		})
		if reason(err) != "division-by-zero" || rows == 0 || rows > 50000 {
			t.Errorf("%d rows, %v", rows, err)
		}
	})

	t.Run("a huge value comes alone", func(t *testing.T) {
		var was, is runtime.MemStats
		runtime.ReadMemStats(&was)
		var sizes []int
		_, err := r.Query(ctx, "SELECT n, repeat('x', CASE n WHEN 2 THEN 60 * 1048576 ELSE 10 END), NULL FROM generate_series(1, 3) n", nil, sandbox.QueryLimits{}, func(part sandbox.RowBatch) error {
			v := &part.Data[1]
			sizes = append(sizes, len(v.Text))
			if strings.Trim(string(v.Text[:9]), "x") != "" || part.Data[2].At(0) != nil {
				t.Error("another value")
			}
			return nil
		})
		runtime.ReadMemStats(&is)
		if err != nil || len(sizes) != 3 || sizes[1] != 60<<20 {
			t.Errorf("%v, %v", sizes, err)
		}
		if took := is.TotalAlloc - was.TotalAlloc; took > 70<<20 {
			t.Errorf("%d MiB were allocated for it", took>>20)
		}
	})

	t.Run("columns are told where there are no rows", func(t *testing.T) {
		for sql, want := range map[string]int{"SELECT id, name FROM users WHERE false": 2, "SELECT FROM users WHERE false": 0} {
			calls := 0
			total, err := r.Query(ctx, sql, nil, sandbox.QueryLimits{}, func(part sandbox.RowBatch) error {
				if calls++; len(part.Columns) != want || part.Count != 0 {
					t.Errorf("%s: %+v", sql, part)
				}
				return nil
			})
			if err != nil || calls != 1 || total.Rows != 0 {
				t.Errorf("%s: %d calls, %+v, %v", sql, calls, total, err)
			}
		}
		if got, err := all(ctx, r, "SELECT FROM generate_series(1, 5)", nil, sandbox.QueryLimits{}); err != nil || got.Rows != 5 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
