package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// counted returns the stages of a statement.
func (c client) counted(t *testing.T, path string, body map[string]any) (out stages.Stages) {
	t.Helper()
	// Otherwise a busy machine leaves out counts for which the time is used up.
	all := map[string]any{"all": true}
	maps.Copy(all, body)
	a := c.ok(t, "POST", path, all)
	if err := json.Unmarshal(a.text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// find returns the stage of a kind whose text has a part.
func find(t *testing.T, s stages.Stages, kind, part string) *stages.Stage {
	t.Helper()
	for _, b := range s.Blocks {
		for _, one := range b.Stages {
			if one.Kind == kind && strings.Contains(one.Text, part) {
				return one
			}
		}
	}
	t.Fatalf("there is no stage %s with %q:\n%s", kind, part, s.Text)
	return nil
}

// number returns a count of the demo.
func (c client) number(t *testing.T, sql string) int64 {
	t.Helper()
	a := c.ok(t, "POST", "/database/query", map[string]any{"query": sql})
	n, _ := a.get("results").([]any)[0].(map[string]any)["n"].(float64)
	return int64(n)
}

func wantCount(t *testing.T, what string, got *int64, want int64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: got no count, want %d", what, want)
	} else if *got != want {
		t.Errorf("%s: got %d, want %d", what, *got, want)
	}
}

// POST /database/stages counts the rows after each stage, with parameters and samples, in which masked values are ***.
func TestStagesCountRows(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	s := c.counted(t, "/database/stages", map[string]any{
		"sql": `SELECT c.city, c.email, count(*) AS n
FROM customers c
LEFT JOIN orders o ON o.customer_id = c.id AND o.total > :least
WHERE c.city <> 'Osaka'
  AND o.status = :status
GROUP BY c.id
HAVING count(*) > 1
ORDER BY n DESC`,
		"params": map[string]any{"least": 10, "status": "paid"}, "samples": true,
	})
	const joined = `customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.total > 10`
	join := find(t, s, stages.KindJoin, "LEFT JOIN")
	wantCount(t, "join", join.RowsOut, c.number(t, "SELECT count(*) AS n FROM "+joined))
	wantCount(t, "left side", join.RowsIn, 300)
	wantCount(t, "pairs", join.Multiplied.Pairs, c.number(t, "SELECT count(*) AS n FROM "+joined+" WHERE o.id > 0"))
	wantCount(t, "unmatched", join.Multiplied.LeftUnmatched, *join.RowsOut-*join.Multiplied.Pairs)
	city := find(t, s, stages.KindWhere, "Osaka")
	wantCount(t, "city", city.RowsOut, c.number(t, "SELECT count(*) AS n FROM "+joined+" WHERE c.city <> 'Osaka'"))
	status := find(t, s, stages.KindWhere, "o.status = :status")
	if status.FromLine != 5 {
		t.Errorf("status: got line %d, want 5", status.FromLine)
	}
	wantCount(t, "status", status.RowsOut,
		c.number(t, "SELECT count(*) AS n FROM "+joined+" WHERE c.city <> 'Osaka' AND o.status = 'paid'"))
	wantCount(t, "NULL", status.Null, c.number(t, "SELECT count(*) AS n FROM "+joined+
		" WHERE c.city <> 'Osaka' AND o.status IS NULL"))
	wantCount(t, "having", find(t, s, stages.KindHaving, "count(*) > 1").RowsOut, s.Rows)
	if s.Rows == 0 || s.Database != "knowledge" || !strings.Contains(s.Text, "LEFT JOIN orders") {
		t.Errorf("got %d rows of %q, want some of knowledge:\n%s", s.Rows, s.Database, s.Text)
	}

	sample := find(t, s, stages.KindFrom, "customers").Sample
	if sample == nil || len(sample.Rows) != stages.MaxSampleRows || len(sample.Columns) != len(sample.Rows[0]) {
		t.Fatalf("got the sample %+v, want 5 rows", sample)
	}
	if text := compactJSON(s); strings.Contains(text, "@customer.example") || !strings.Contains(text, "***") {
		t.Errorf("a sample shows a masked value: %s", text)
	}
}

// A statement that is refused, one that writes and one without stages get the reason. The statement is on record.
func TestStagesAreRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for sql, reason := range map[string]string{
		"SELECT id FROM customers WHERE email = 'a'":  "masked-column",
		"DELETE FROM customers":                       "read-only",
		"SELECT id FROM nothing":                      "unknown-table",
		"SELECT count(*) FROM customers, pg_sleep(9)": "function-not-allowed",
		"SELECT clock_timestamp()":                    "volatile",
		"EXPLAIN SELECT 1":                            "no-stages",
		"SELECT 1 / 0 FROM customers":                 "division-by-zero",
	} {
		a := c.do(t, "POST", "/database/stages", map[string]any{"sql": sql})
		wantProblem(t, a, http.StatusUnprocessableEntity, "query-refused", `"reason":"`+reason+`"`)
	}
	c.ok(t, "POST", "/database/stages", map[string]any{"sql": "SELECT id FROM orders WHERE id = 1"})
	list, _ := c.ok(t, "GET", "/statements", nil).get("statements").([]any)
	if last := list[0].(map[string]any); last["status"] != "ok" || last["rows"] != 1.0 || last["fingerprint"] == nil {
		t.Errorf("got the record %v, want one row and a fingerprint", last)
	}
	if len(list) != 8 {
		t.Errorf("got %d statements on record, want 8", len(list))
	}
}

// POST /executions/{id}/queries/{n}/stages takes the statement and its parameters from the record.
func TestStagesOfAPastStatement(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `db_query("SELECT 1")
db_query("SELECT o.id FROM orders o WHERE o.id <= :most AND o.total >= :secret", {"most": 50, "secret": 0})
len(db_query("SELECT o.id FROM orders o WHERE o.id <= :most", {"most": 7}))`)
	path := "/executions/" + a.get("execution_id").(string) + "/queries/"
	s := c.counted(t, path+"3/stages", nil)
	wantCount(t, "condition", find(t, s, stages.KindWhere, "o.id <= :most").RowsOut, 7)
	if s.SameResult != "yes" || !strings.HasPrefix(s.Text, "Query 3, 1 line, 7 rows, same result today") {
		t.Errorf("got same_result %q and the text %s", s.SameResult, s.Text)
	}
	wantProblem(t, c.do(t, "POST", path+"2/stages", nil), 422, "query-refused", "parameters-not-kept", ":secret")
	wantProblem(t, c.do(t, "POST", path+"4/stages", nil), 404, "not-found", "no statement 4")
	wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "POST", path+"3/stages", nil), 404, "not-found")
	if s := admin.counted(t, path+"3/stages", map[string]any{"samples": true}); s.Rows != 7 {
		t.Errorf("an admin got %d rows, want 7", s.Rows)
	}
}

// A key that may run one execution at a time gets no stages while it runs one.
func TestStagesCountAsAStatement(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"concurrent_executions": 1})
	id := c.create(t, nil)
	body := map[string]any{"sql": "SELECT count(*) FROM orders"}
	var group sync.WaitGroup
	group.Go(func() { c.run(t, id, "import time; time.sleep(60)") })
	var list []any
	eventually(t, "the run to begin", func() bool {
		list, _ = c.ok(t, "GET", "/executions?status=running", nil).get("executions").([]any)
		return len(list) > 0
	})
	wantProblem(t, c.do(t, "POST", "/database/stages", body), http.StatusTooManyRequests, "limit-reached",
		"1 concurrent executions")
	c.ok(t, "POST", "/executions/"+list[0].(map[string]any)["execution_id"].(string)+"/cancel", nil)
	group.Wait()
	c.ok(t, "POST", "/database/stages", body)
}

// A view, a subquery for each row, a filter, a window and grouping sets have counts of their own.
func TestStagesOfPartsOfStatements(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	s := c.counted(t, "/database/stages", map[string]any{"samples": true, "sql": `WITH RECURSIVE days (n) AS (
  SELECT 1 UNION ALL SELECT n + 1 FROM days WHERE n < :days
)
SELECT c.city, count(*) FILTER (WHERE v.revenue > 100) AS large, sum(count(*)) OVER (ORDER BY c.city) AS running
FROM customer_revenue v
JOIN customers c USING (id)
WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 'paid')
  AND c.id > (SELECT count(*) FROM days)
GROUP BY ROLLUP (c.city)`, "params": map[string]any{"days": 7}})
	kinds := map[string]stages.Block{}
	for _, b := range s.Blocks {
		kinds[b.Kind] = b
	}
	wantCount(t, "view", kinds[stages.BlockView].Rows, c.number(t, "SELECT count(*) AS n FROM customer_revenue"))
	if v := kinds[stages.BlockView]; v.Name != "customer_revenue" || v.FromLine != 5 || v.Definition == "" {
		t.Errorf("got the view %+v, want customer_revenue of line 5 with its definition", v)
	}
	wantCount(t, "recursion", kinds[stages.BlockCTE].Rows, 7)
	exists := find(t, s, stages.KindSubquery, "EXISTS")
	const paid = "SELECT count(DISTINCT customer_id) AS n FROM orders WHERE status = 'paid'"
	wantCount(t, "EXISTS runs", exists.RowsIn, 300)
	wantCount(t, "EXISTS", exists.RowsOut, c.number(t, paid))
	passed := c.number(t, paid+" AND customer_id > 7")
	wantCount(t, "filter of", find(t, s, stages.KindFilter, "revenue").RowsIn, passed)
	cities := find(t, s, stages.KindGroupingSet, "c.city")
	wantCount(t, "cities", cities.RowsOut, s.Rows-1)
	if text := compactJSON(s); strings.Contains(text, "@customer.example") {
		t.Errorf("an answer has a masked value: %s", text)
	}
}
