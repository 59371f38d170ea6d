package httpapi_test

import (
	"fmt"
	"testing"

	"glasshouse/sandbox"
)

// Lists and sums of work leave out replays and statements that ran only to explain one, and say how many there are.
// Without the filter they have all.
func TestWorkWithoutReplaysAndExplanations(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	ran := c.run(t, id, "rows = await db_query('SELECT 1 AS n UNION ALL SELECT 2')\nlen(rows)").get("execution_id")
	path := fmt.Sprint("/executions/", ran)
	c.ok(t, "POST", path+"/replay", map[string]any{"record": true})
	c.ok(t, "POST", path+"/queries/1/stages", map[string]any{})
	c.ok(t, "POST", "/database/query", map[string]any{"query": "SELECT 3 AS n"})

	all := c.ok(t, "GET", "/executions", nil)
	if got := len(all.get("executions").([]any)); got != 4 || all.get("left_out") != nil {
		t.Errorf("got %d executions, %v left out, want all 4", got, all.get("left_out"))
	}
	work := c.ok(t, "GET", "/executions?work=true", nil)
	if kinds := textsOf(work, "executions", "kind"); fmt.Sprint(kinds) != "[database-query execute]" {
		t.Errorf("got the kinds %v, want the run and the statement of its own", kinds)
	}
	if got := work.get("left_out"); got != 2.0 {
		t.Errorf("got %v left out, want the replay and the stages", got)
	}
	if got := c.ok(t, "GET", "/executions?work=true&status=failed", nil).get("left_out"); got != nil {
		t.Errorf("got %v left out, want none that failed", got)
	}
	for query, want := range map[string][2]float64{"": {4, 4}, "?work=true": {2, 2}} {
		var runs, calls float64
		for _, hour := range c.ok(t, "GET", "/activity"+query, nil).get("hours").([]any) {
			runs += hour.(map[string]any)["executions"].(float64)
		}
		for _, s := range c.ok(t, "GET", "/statements/top"+query, nil).get("statements").([]any) {
			calls += s.(map[string]any)["calls"].(float64)
		}
		if got := [2]float64{runs, calls}; got != want {
			t.Errorf("%q: got %v runs and calls of statements, want %v", query, got, want)
		}
		if got := len(c.ok(t, "GET", "/statements"+query, nil).get("statements").([]any)); float64(got) != want[1] {
			t.Errorf("%q: got %d statements, want %v", query, got, want[1])
		}
	}
}
