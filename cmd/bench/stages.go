package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// largeTables are tables of a million rows, which the owner of the demo's database makes.
const largeTables = `SET client_min_messages = error;
CREATE TABLE bench_customers AS SELECT i AS id, 'customer ' || i AS name, (ARRAY['DE','FR','US','GB'])[1 + i % 4]
  AS country,
  i % 5 = 0 AS vip, CASE WHEN i % 7 > 0 THEN i % 900 END AS referrer FROM generate_series(1, 50000) i;
CREATE TABLE bench_orders AS SELECT i AS id, CASE WHEN i % 41 > 0 THEN 1 + (i::bigint * 7919 % 45000)::int END AS
  customer_id,
  (ARRAY['paid','paid','shipped','open'])[1 + i % 4] AS status, (i % 977) + 0.5 AS total, i % 12 AS month,
  CASE WHEN i % 6 = 0 THEN i % 50 END AS discount, timestamptz '2025-01-01' + i * interval '31 seconds' AS ordered_at
  FROM generate_series(1, 1000000) i;
CREATE TABLE bench_items AS SELECT i AS id, 1 + (i::bigint * 104729 % 400000)::int AS order_id, i % 500 AS product_id,
  1 + i % 4 AS quantity FROM generate_series(1, 1000000) i;
ALTER TABLE bench_customers ADD PRIMARY KEY (id);
ALTER TABLE bench_orders ADD PRIMARY KEY (id);
ALTER TABLE bench_items ADD PRIMARY KEY (id);
CREATE INDEX ON bench_orders (customer_id);
CREATE INDEX ON bench_items (order_id);
CREATE VIEW bench_paid AS SELECT o.id, o.customer_id, o.total, c.country FROM bench_orders o
  JOIN bench_customers c ON c.id = o.customer_id WHERE o.status = 'paid';
GRANT SELECT ON bench_customers, bench_orders, bench_items, bench_paid TO glasshouse_reader;
VACUUM (ANALYZE) bench_customers, bench_orders, bench_items;`

// stageStatements are statements over largeTables.
var stageStatements = []struct{ name, sql string }{
	{"groups of a condition", `SELECT month, count(*), sum(total) FROM bench_orders WHERE status = 'paid' AND
		total > 100 GROUP BY month ORDER BY 1`},
	{"a join", `SELECT c.country, count(*), avg(o.total) FROM bench_orders o JOIN bench_customers c ON c.id =
		o.customer_id
		WHERE o.status <> 'open' GROUP BY 1 HAVING count(*) > 10 ORDER BY 1`},
	{"a left join", `SELECT c.country, count(o.id) FROM bench_customers c LEFT JOIN bench_orders o ON
		o.customer_id = c.id
		AND o.status = 'paid' GROUP BY 1`},
	{"two joins that repeat rows", `SELECT c.country, sum(o.total) FROM bench_customers c JOIN bench_orders o ON
		o.customer_id = c.id
		JOIN bench_items i ON i.order_id = o.id WHERE c.vip GROUP BY 1`},
	{"a WITH query that is read twice", `WITH spent AS (SELECT customer_id, sum(total) AS total, count(*) AS n
		FROM bench_orders
		WHERE status = 'paid' GROUP BY 1) SELECT c.country, max(s.total) FROM spent s JOIN bench_customers c ON
  c.id = s.customer_id
		WHERE s.total > (SELECT avg(total) FROM spent) GROUP BY 1`},
	{"EXISTS", `SELECT count(*) FROM bench_customers c WHERE vip AND EXISTS (SELECT 1 FROM bench_orders o
		WHERE o.customer_id = c.id AND o.total > 900)`},
	{"NOT IN", `SELECT count(*) FROM bench_orders WHERE customer_id NOT IN (SELECT referrer FROM bench_customers)`},
	{"a scalar subquery for each row", `SELECT c.id, (SELECT max(o.total) FROM bench_orders o WHERE o.customer_id
		= c.id) AS most
		FROM bench_customers c WHERE c.country = 'DE' ORDER BY most DESC NULLS LAST LIMIT 10`},
	{"the first row of each partition", `SELECT * FROM (SELECT id, customer_id, row_number() OVER (PARTITION BY
		customer_id ORDER BY total DESC) AS n
		FROM bench_orders) x WHERE n = 1 ORDER BY id LIMIT 20`},
	{"DISTINCT", `SELECT DISTINCT customer_id, month FROM bench_orders WHERE discount > 10 ORDER BY 1, 2 LIMIT 50`},
	{"UNION ALL", `SELECT status, count(*) FROM bench_orders WHERE month < 6 GROUP BY 1 UNION ALL SELECT country,
		count(*)
		FROM bench_customers GROUP BY 1`},
	{"a view", `SELECT country, count(*), sum(total) FROM bench_paid WHERE total > 500 GROUP BY 1`},
	{"ROLLUP with FILTER", `SELECT status, month, count(*) FILTER (WHERE discount > 20) FROM bench_orders GROUP BY
		ROLLUP (status, month)`},
	{"one row by its key", `SELECT o.id, c.name FROM bench_orders o JOIN bench_customers c ON c.id = o.customer_id
		WHERE o.id = 77777`},
	{"the newest rows", `SELECT o.id, o.total FROM bench_orders o WHERE o.customer_id = 4711 AND o.status = 'paid'
		ORDER BY o.id DESC LIMIT 5`},
}

// stageCost has what the stages of one statement cost.
type stageCost struct{ own, total float64 } // in milliseconds

// stageCosts makes the tables once, and keeps the cost of each statement for the rows about all of them.
type stageCosts struct {
	load  sync.Once
	err   error
	costs []stageCost // by statement: the latest
}

// prepare makes the tables.
func (s *stageCosts) prepare(ctx context.Context, g *glasshouse) error {
	s.load.Do(func() {
		s.costs = make([]stageCost, len(stageStatements))
		cmd := exec.CommandContext(ctx, "psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h",
			filepath.Join(g.dir, "postgres", "socket"),
			"-U", "glasshouse_owner", "-d", "knowledge")
		stdin, err := cmd.StdinPipe()
		if err == nil {
			go func() {
				_, _ = stdin.Write([]byte(largeTables))
				_ = stdin.Close()
			}()
			var out []byte
			if out, err = cmd.CombinedOutput(); err != nil {
				err = fmt.Errorf("psql: %w: %s", err, out)
			}
		}
		s.err = err
	})
	return s.err
}

// measure asks for the stages of a statement.
func (s *stageCosts) measure(ctx context.Context, g *glasshouse, n int) error {
	var out struct {
		MS      float64 `json:"ms"`
		TotalMS float64 `json:"total_ms"`
	}
	took, err := timeIt(func() error {
		return g.call(ctx, "POST", "/database/stages", map[string]any{"sql": stageStatements[n].sql}, &out)
	})
	if err == nil && out.MS <= 0 {
		err = errors.New("the answer has no time of the statement")
	}
	s.costs[n] = stageCost{out.MS, took}
	return err
}

// leastOwn is the time, in milliseconds, that a statement is taken to have at least: the check of some ten derived
// statements takes as long, however fast the statement is.
const leastOwn = 25

// ratios returns the time of the stages of each statement, divided by its own.
func (s *stageCosts) ratios() (list []float64) {
	for _, c := range s.costs {
		list = append(list, c.total/max(c.own, leastOwn))
	}
	return list
}

// stageRows returns a row for the stages of each statement, whose peer is the statement itself, and rows about all.
func stageRows() (rows []measurement) {
	s := &stageCosts{}
	for n, st := range stageStatements {
		rows = append(rows, measurement{
			name: "stages of a million rows: " + st.name, unit: milliseconds, samples: 5,
			peerName: fmt.Sprintf("the statement, or %d ms", leastOwn),
			goal:     ofPeer(10, 0),
			open: func(ctx context.Context, g *glasshouse) (sampler, error) {
				return only(func() (float64, error) {
					err := s.measure(ctx, g, n)
					return s.costs[n].total, err
				}), s.prepare(ctx, g)
			},
			peer: func(context.Context, *bench) (sampler, error) {
				return only(func() (float64, error) { return max(s.costs[n].own, leastOwn), nil }), nil
			},
		})
	}
	all := func(name string, u unit, g goal, figure func() float64) measurement {
		return measurement{
			name: "stages of a million rows, " + name, unit: u, samples: oneSample, goal: g,
			open: func(ctx context.Context, service *glasshouse) (sampler, error) {
				return only(func() (float64, error) {
					for n := range stageStatements {
						if s.costs[n].own == 0 {
							if err := s.measure(ctx, service, n); err != nil {
								return 0, err
							}
						}
					}
					return figure(), nil
				}), s.prepare(ctx, service)
			},
		}
	}
	longest := func() (most float64) {
		for _, c := range s.costs {
			most = max(most, c.total)
		}
		return most
	}
	return append(rows,
		all("median, of the statement's time or 25 ms", times, absolute(3, 0),
			func() float64 { return median(s.ratios()) }),
		all("nine of ten, of the statement's time or 25 ms", times, absolute(10, 0),
			func() float64 { return quantile(s.ratios(), 0.9) }),
		all("the longest", unit{label: "ms"}, absolute(inMilliseconds(10*time.Second), 0), longest),
	)
}
