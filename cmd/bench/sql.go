package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	// rowsSQL returns 100 000 rows of six columns of different types.
	rowsSQL = "SELECT n::int AS a, n::bigint * 7 AS b, (n / 3.0)::numeric(12, 3) AS c, 'row ' || n AS d, now() AS e, n % 2 = 0 AS f " +
		"FROM generate_series(1, 100000) n"
	// refusedSQL has thirty lines, and is refused for a function in its last one. %d makes each sample a
	// statement that the service has not checked before.
	refusedSQL = `WITH months AS (
  SELECT generate_series(date_trunc('month', now()) - interval '11 months', date_trunc('month', now()), interval '1 month') AS month
), activity AS (
  SELECT date_trunc('month', a.created_at) AS month, a.user_id, count(*) AS total
  FROM (SELECT now() AS created_at, 1 AS user_id) a
  WHERE a.user_id <> 0 AND a.created_at >= now() - interval '1 year'
  GROUP BY 1, 2
), ranked AS (
  SELECT r.*, rank() OVER (PARTITION BY r.month ORDER BY r.total DESC) AS place,
         lag(r.total) OVER (PARTITION BY r.user_id ORDER BY r.month) AS before,
         avg(r.total) OVER (PARTITION BY r.user_id ORDER BY r.month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth
  FROM activity r
)
SELECT m.month::date AS month%d,
       round(coalesce(k.total, 0), 2) AS total,
       round(100 * (k.total - k.before) / nullif(k.before, 0), 1) AS growth,
       CASE
         WHEN k.place <= 3 THEN 'top'
         WHEN k.place <= 10 THEN 'good'
         ELSE 'rest'
       END AS class,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY k.smooth) AS median
FROM months m
LEFT JOIN ranked k USING (month)
WHERE k.total BETWEEN 1 AND 1000000
GROUP BY 1, 2, 3, 4
HAVING count(*) > 0
ORDER BY month%[1]d DESC, total DESC NULLS LAST
LIMIT (SELECT 100 FROM pg_sleep(1))`
)

func sqlRows(options) []measurement {
	oneRow := expectation{status: "completed", result: "1"}
	allRows := expectation{status: "completed", result: "100000"}
	large := map[string]any{"cpu_percent": 100, "max_memory_mb": 1024, "max_execution_time": 60}
	return append([]measurement{
		{name: "db_query of one row, in a loop", unit: milliseconds, samples: manySamples,
			open: inSandbox(nil, "rows = await db_query('SELECT 1 AS n')\nrows[0]['n']", oneRow.check, true)},
		{name: "db_query of 100 000 rows", unit: milliseconds, samples: fewSamples,
			open: inSandbox(large, fmt.Sprintf("len(await db_query(%q))", rowsSQL), allRows.check, false)},
		{name: "db_frame of 100 000 rows", unit: milliseconds, samples: fewSamples,
			open: inSandbox(large, fmt.Sprintf("len(await db_frame(%q))", rowsSQL), allRows.check, false)},
		{name: "check of a new statement of 30 lines", unit: milliseconds, samples: manySamples, open: openRefusal},
	}, stageRows()...)
}

// openRefusal measures a statement that is checked, refused and never sent to the database, in a loop.
func openRefusal(ctx context.Context, g *glasshouse) (sampler, error) {
	id, err := g.create(ctx, nil)
	n := 0
	return sampler{loop(func() (float64, error) {
		n++
		return timeIt(func() error {
			_, err := g.send(ctx, g.alone, "POST", "/sandbox/"+id+"/database/query", map[string]any{"query": fmt.Sprintf(refusedSQL, n)})
			if err == nil || !strings.Contains(err.Error(), "pg_sleep") {
				return fmt.Errorf("got %v, want a refusal of pg_sleep", err)
			}
			return nil
		})
	}), g.removal(ctx, id)}, err
}
