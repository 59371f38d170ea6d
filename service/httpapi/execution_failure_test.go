package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The record of a failed execution, debugged or not, has the variables and the queries before the failure.
func TestFailedExecutionShowsVariablesAndQueries(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	code := `rows = await db_query("SELECT user_id, action FROM user_activities ORDER BY 1 LIMIT 2")
def actions(rows):
    first = rows[0]
    return first["actoin"]
actions(rows)`
	debugged := c.debugStream(t, id, map[string]any{"code": code}).execution
	for _, text := range []string{string(c.run(t, id, code).text), string(mustJSON(t, debugged))} {
		for _, want := range []string{`"nearest":"action"`, `"first":"{'user_id':`, `"rows":"[{'user_id':`,
			`"query":"SELECT user_id, action`, `"rows":2`, `"line":4`} {
			if !strings.Contains(strings.ReplaceAll(text, `": `, `":`), want) {
				t.Errorf("want %s in %s", want, text)
			}
		}
	}
	a := c.run(t, id, "import time\nfor n in range(5): await db_query(f'SELECT {n}')\n1 / 0")
	if list, _ := a.get("exception.queries").([]any); len(list) != 3 ||
		fmt.Sprint(list[2].(map[string]any)["query"]) != "SELECT 4" {
		t.Errorf("got %s, want the last three queries", a.text)
	}
}
