package httpapi_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
)

// Results of unusual shapes and large results reach the sandbox.
func TestLargeAndUnusualResults(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted", "max_memory_mb": 512, "max_execution_time": 300})
	for _, x := range []struct{ code, want string }{
		{`[db_query("SELECT FROM generate_series(1, 3)"), db_query("SELECT FROM users WHERE false"), db_frame("SELECT FROM generate_series(1, 3)").shape]`, `[[{},{},{}],[],[3,0]]`},
		{`f = db_frame("SELECT id, name, created_at FROM users WHERE false")
[db_query("SELECT id FROM users WHERE false"), [str(t) for t in f.dtypes], f.shape]`, `[[],["int64","str","datetime64[us, UTC]"],[0,3]]`},
		{`many = "SELECT " + ", ".join(f"{n} AS c" for n in range(1600)) + " FROM generate_series(1, 300)"
rows, f = db_query(many), db_frame(many)
[len(rows), len(rows[299]), rows[299]["c_1600"], f.shape, int(f["c_1600"].sum())]`, `[300,1600,1599,[300,1600],479700]`},
		{`big = "SELECT 1 AS a, repeat('é', 31 * 1048576) AS b, NULL AS c UNION ALL SELECT 2, 'x', 'y' ORDER BY a"
rows, f = db_query(big), db_frame(big)
[[len(r["b"]), r["c"]] for r in rows] + [len(f.b[0]), f.b[1], f.c[1]]`, `[[32505856,null],[1,"y"],32505856,"x","y"]`},
		{`rows = db_query("SELECT ARRAY[n, NULL] AS a, ARRAY[ARRAY['x', n::text]] AS b FROM generate_series(1, 100000) n")
[len(rows), rows[99999]["a"], rows[99999]["b"]]`, `[100000,[100000,null],[["x","100000"]]]`},
		// A time that pandas can't hold comes late, and NULLs come in some row batches only.
		{`sql = """SELECT n, CASE WHEN n > 70000 THEN 'infinity' ELSE timestamptz '2024-01-01 00:00Z' END AS t, CASE WHEN n > 70000 THEN date '0044-03-15 BC' ELSE '2024-02-29' END AS d,
  CASE WHEN n % 2 = 0 OR n < 40000 THEN n END AS i, CASE WHEN n > 90000 THEN NULL ELSE n::text END AS s, interval '1 day' * n AS v, CASE WHEN n < 70000 THEN n % 2 = 0 END AS b
FROM generate_series(1, 100000) n"""
rows, f = db_query(sql), db_frame(sql)
import pandas as pd
same = all([(None if pd.isna(a) is True else a) == b for a, b in zip(f[k], (r[k] for r in rows))].count(False) == 0 for k in f)
[same, {k: str(v) for k, v in f.dtypes.items()}, str(f.t[0]), f.t[99999], str(f.d[0]), f.d[99999]]`,
			`[true,{"b":"boolean","d":"object","i":"Int64","n":"int64","s":"str","t":"object","v":"timedelta64[us]"},"2024-01-01 00:00:00+00:00","infinity","2024-02-29","0044-03-15 BC"]`},
		// The frame's memory is writable.
		{`f = db_frame("SELECT n, n::text AS s, now() AS t, n / 2.0::float8 AS x FROM generate_series(1, 3) n")
f.loc[0, "n"], f.loc[0, "s"], f.loc[0, "t"], f.loc[0, "x"] = 7, "seven", f.t[1], 1.5
[f.n[0].item(), f.s[0], f.x[0].item(), f.n.to_numpy().sum().item()]`, `[7,"seven",1.5,12]`},
		// After an error behind many rows, the next statement works.
		{`def ask(helper):
    try:
        return len(helper("SELECT repeat('x', 100) AS x, 1 / (50001 - n) AS y FROM generate_series(1, 100000) n"))
    except DatabaseError as e:
        return [e.reason, e.sqlstate]
[ask(db_query), ask(db_frame), db_query("SELECT 1 AS a")]`, `[["division-by-zero","22012"],["division-by-zero","22012"],[{"a":1}]]`},
		// The queries of several threads run one after the other.
		{`import threading
def ask(n):
    got[n] = sum(r["n"] for r in db_query("SELECT n, repeat('x', 100) FROM generate_series(1, 50000) n")) + n
got = {}
threads = [threading.Thread(target=ask, args=[n]) for n in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
[got[n] for n in range(4)]`, `[1250025000,1250025001,1250025002,1250025003]`},
		// An error while rows are read loses no response; a query during another one is an error.
		{`import uuid
before, told = uuid.UUID.__init__, []
def wrong(self, *args, **more):
    try:
        db_query("SELECT 1")
    except RuntimeError as e:
        told.append(str(e))
    raise KeyError("mine")
uuid.UUID.__init__ = wrong
try:
    db_query("SELECT gen_random_uuid() FROM generate_series(1, 50000)")
except KeyError as e:
    told.append(str(e))
uuid.UUID.__init__ = before
[told, db_query("SELECT 2 AS a")]`, `[["another request is not answered yet: finish reading its rows first","'mine'"],[{"a":2}]]`},
	} {
		a := c.run(t, id, x.code)
		if got := compactJSON(a.get("result")); got != x.want {
			t.Errorf("%s\n  got  %s %v %v\n  want %s", x.code, got, a.get("exception"), a.get("error"), x.want)
		}
	}
}

// bulkQuery returns 56 MiB in 57 344 rows, which is under the limit in bytes.
const bulkQuery = "SELECT n AS a, repeat(chr(97 + n % 26), 1010) AS b FROM generate_series(1, 57344) n"

// A large result takes little memory of the service, even if it is read slowly and many are read concurrently. In the
// guest it takes little more than its size. Not parallel: it measures memory.
func TestLargeResultsTakeLittleServiceMemory(t *testing.T) {
	c := newUser(t, sandbox.RoleAgent)
	const at = 3
	for helper, maxMB := range map[string]float64{"db_query": 56 * 1.5, "db_frame": 56 * 1.5} {
		var ids []string
		var before float64 // peak memory of a guest without a result
		for range at {
			ids = append(ids, c.create(t, map[string]any{"max_memory_mb": 400}))
			before = peakMemory(c.run(t, ids[len(ids)-1], "import pandas\ndb_frame('SELECT 1 AS a')"))
		}
		var statsBefore, statsAfter runtime.MemStats
		runtime.ReadMemStats(&statsBefore)
		var group sync.WaitGroup
		for _, id := range ids {
			group.Go(func() {
				a := c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": fmt.Sprintf("n = len(%s(%q))\nn",
					helper, bulkQuery)})
				if a.get("result") != 57344.0 {
					t.Errorf("%s: got %s, want all rows", helper, a.text)
				} else if used := peakMemory(a) - before; used > maxMB {
					t.Errorf("%s of 56 MiB took %.0f MiB in the guest", helper, used)
				}
			})
		}
		group.Wait()
		runtime.ReadMemStats(&statsAfter)
		const most = 8<<20 + inputlog.MaxBytes // for each: the log keeps so much until the run has ended
		if allocated := statsAfter.TotalAlloc - statsBefore.TotalAlloc; allocated > at*most {
			t.Errorf("%d results of 56 MiB: the service allocated %d MiB, want at most %d each", at, allocated>>20,
				most>>20)
		}
		for _, id := range ids {
			c.ok(t, "DELETE", "/sandbox/"+id, nil)
		}
	}
}

// peakMemory returns the peak memory of an execution in MiB.
func peakMemory(a answer) float64 {
	mb, _ := a.get("usage.peak_memory_mb").(float64)
	return mb
}
