package dbaccess_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

const thirtyLines = `
WITH months AS (
  SELECT generate_series(date_trunc('month', now()) - interval '11 months', date_trunc('month', now()), interval '1 month') AS month
), revenue AS (
  SELECT date_trunc('month', o.ordered_at) AS month, o.customer_id,
         sum(i.quantity * i.unit_price) AS total,
         count(DISTINCT o.id) AS orders
  FROM orders o
  JOIN order_items i ON i.order_id = o.id
  WHERE o.status <> 'cancelled' AND o.ordered_at >= now() - interval '1 year'
  GROUP BY 1, 2
), ranked AS (
  SELECT r.*, rank() OVER (PARTITION BY r.month ORDER BY r.total DESC) AS place,
         lag(r.total) OVER (PARTITION BY r.customer_id ORDER BY r.month) AS before,
         avg(r.total) OVER (PARTITION BY r.customer_id ORDER BY r.month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth
  FROM revenue r
)
SELECT m.month::date AS month,
       c.name,
       c.address ->> 'street' AS street,
       round(coalesce(k.total, 0), 2) AS total,
       round(100 * (k.total - k.before) / nullif(k.before, 0), 1) AS growth,
       CASE WHEN k.place <= 3 THEN 'top' WHEN k.place <= 10 THEN 'good' ELSE 'rest' END AS class,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY k.smooth) AS median
FROM months m
LEFT JOIN ranked k USING (month)
LEFT JOIN customers c ON c.id = k.customer_id
WHERE c.name ILIKE '%o%' AND c.city IN ('Berlin', 'Lyon', 'Madrid') AND c.created_at BETWEEN '2000-01-01' AND now()
GROUP BY 1, 2, 3, 4, 5, 6
HAVING count(*) > 0
ORDER BY month DESC, total DESC NULLS LAST
LIMIT 100`

func benchReader(b *testing.B) (*dbaccess.Reader, *dbtest.Databases) {
	b.Helper()
	s := dbtest.Start(b)
	if err := s.LoadDemo(context.Background()); err != nil {
		b.Fatal(err)
	}
	r, err := dbaccess.Open(
		context.Background(),
		dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)},
	)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Close)
	return r, s
}

// BenchmarkCheck measures the cost of a check: of new texts, which are parsed and walked, and of a
// cached text.
func BenchmarkCheck(b *testing.B) {
	r, _ := benchReader(b)
	ctx := context.Background()
	for _, c := range []struct{ name, sql string }{
		{"short", "SELECT id, name FROM users WHERE id = 1"},
		{"thirty lines", thirtyLines},
	} {
		b.Run(c.name, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if err := r.Check(ctx, fmt.Sprintf("%s -- %d", c.sql, n)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+" again", func(b *testing.B) {
			for b.Loop() {
				if err := r.Check(ctx, c.sql); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func dropped(sandbox.RowBatch) error { return nil }

// BenchmarkTransaction compares the read-only transaction with the bare statement on a connection of
// the same kind.
func BenchmarkTransaction(b *testing.B) {
	r, s := benchReader(b)
	ctx := context.Background()
	conn, err := dbtest.Connect(ctx, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	const sql = "SELECT id, name FROM users WHERE id = 1"
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if res := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read(); res.Err != nil {
				b.Fatal(res.Err)
			}
		}
	})
	b.Run("safe", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Query(ctx, sql, nil, sandbox.QueryLimits{}, dropped); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("safe, analysed", func(b *testing.B) {
		r, err := dbaccess.Open(ctx, dbaccess.Config{
			URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), ServerCheck: true,
		})
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		for b.Loop() {
			if _, err := r.Query(ctx, sql, nil, sandbox.QueryLimits{}, dropped); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("safe, 16 readers", func(b *testing.B) {
		b.SetParallelism((16 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if _, err := r.Query(ctx, sql, nil, sandbox.QueryLimits{}, dropped); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("rows", func(b *testing.B) {
		const many = "SELECT n::int AS a, n::bigint * 7 AS b, (n / 3.0)::numeric(12, 3) AS c, 'row ' || n AS d, now() AS e, n % 2 = 0 AS f FROM generate_series(1, 100000) n"
		for b.Loop() {
			if rows, err := r.Query(ctx, many, nil, sandbox.QueryLimits{}, dropped); err != nil ||
				rows.Rows != 100_000 {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMasks measures the check and the run of statements that read a table with masked columns, and of one that
// reads none.
func BenchmarkMasks(b *testing.B) {
	_, s := benchReader(b)
	ctx := context.Background()
	for _, analysed := range []bool{false, true} {
		r, err := dbaccess.Open(ctx, dbaccess.Config{
			URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), ServerCheck: analysed,
			MaskColumns: []string{"users.email", "customers.email", "customers.address", "orders.status"},
		})
		if err != nil {
			b.Fatal(err)
		}
		defer r.Close()
		for _, c := range []struct{ name, sql string }{
			{"short", "SELECT id, name FROM users WHERE id = 1"},
			{"selected", "SELECT id, email FROM users WHERE id = 1"},
			{"join", "SELECT c.name, sum(i.quantity) FROM customers c JOIN orders o ON o.customer_id = c.id " +
				"JOIN order_items i ON i.order_id = o.id WHERE c.id = 7 GROUP BY c.id"},
			{"not masked", "SELECT id, name FROM products WHERE id = 1"},
		} {
			if !analysed {
				b.Run(c.name+", check", func(b *testing.B) {
					for n := 0; b.Loop(); n++ {
						if err := r.Check(ctx, fmt.Sprintf("%s -- %d", c.sql, n)); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			b.Run(fmt.Sprintf("%s, run, analysed %t", c.name, analysed), func(b *testing.B) {
				for b.Loop() {
					if _, err := r.Query(ctx, c.sql, nil, sandbox.QueryLimits{}, dropped); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
