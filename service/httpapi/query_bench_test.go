package httpapi_test

import (
	"fmt"
	"testing"

	"glasshouse/sandbox"
)

// manyRowsQuery returns 100 000 rows of six columns of different types.
const manyRowsQuery = "SELECT n::int AS a, n::bigint * 7 AS b, (n / 3.0)::numeric(12, 3) AS c, 'row ' || n AS d, now() AS e, n % 2 = 0 AS f FROM generate_series(1, 100000) n"

// BenchmarkRows measures 100 000 rows into Python's objects: ours in a sandbox, compared with drivers in a process of
// their own, from the same server. The figure is the median of the calls, in ms per 100 000 rows.
func BenchmarkRows(b *testing.B) {
	admin := newUser(b, sandbox.RoleAdmin)
	const timed = `
import time
def median(run, n=5):
    took = []
    for _ in range(n + 1):
        began = time.perf_counter()
        assert len(run()) == 100_000
        took.append(time.perf_counter() - began)
    return 1000 * sorted(took[1:])[n // 2]
`
	for _, name := range []string{"db_query", "db_frame"} {
		b.Run(name, func(b *testing.B) {
			id := admin.create(b, map[string]any{"profile": "unrestricted", "cpu_percent": 400, "max_memory_mb": 512,
				"max_execution_time": 60})
			for b.Loop() {
				a := admin.run(b, id, "import pandas\n"+timed+fmt.Sprintf("median(lambda: %s(%q))", name,
					manyRowsQuery))
				ms, ok := a.get("result").(float64)
				if !ok {
					b.Fatalf("got %s, want a number of milliseconds", a.text)
				}
				b.ReportMetric(ms, "ms/100krows")
			}
			admin.ok(b, "DELETE", "/sandbox/"+id, nil)
		})
	}
	for name, program := range map[string]string{
		"psycopg2 RealDictCursor": "import psycopg2, psycopg2.extras\nc = psycopg2.connect(URL)\ndef run():\n    cur = c.cursor(cursor_factory=psycopg2.extras.RealDictCursor)\n    cur.execute(Q)\n    return cur.fetchall()\n",
		"psycopg 3 dict_row":      "from psycopg.rows import dict_row\ndef run(): return conn.cursor(row_factory=dict_row).execute(Q).fetchall()\n",
		"psycopg2 to a DataFrame": "import psycopg2, pandas\nc = psycopg2.connect(URL)\ndef run():\n    cur = c.cursor()\n    cur.execute(Q)\n    return pandas.DataFrame(cur.fetchall(), columns=[d[0] for d in cur.description])\n",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var ms float64
				runPsycopg(b, timed+fmt.Sprintf("URL, Q = %s, %s\n%sprint(median(run))", compactJSON(knowledgeURL),
					compactJSON(manyRowsQuery), program), &ms)
				b.ReportMetric(ms, "ms/100krows")
			}
		})
	}
}
