package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const explainingCode = `
sql = "SELECT c.email, o.id FROM customers c JOIN orders o ON o.customer_id = c.id WHERE o.total > :least"
e = await db_explain(sql, {"least": 50})
before = e["plan"]["Node Type"]
stages = [s for b in e.blocks for s in b["stages"]]
print(e)
[before, [s["kind"] for s in stages], stages[-1]["rows_out"], len(db_query(sql, {"least": 50}))]`

// db_explain gives code the plan without a run of the statement, and then its stages, which are a statement on record.
// A replay has them from the log.
func TestCodeExplainsAStatement(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	const joined = "customers c JOIN orders o ON o.customer_id = c.id"
	rows := c.number(t, "SELECT count(*) AS n FROM "+joined+" WHERE o.total > 50")
	a := c.run(t, c.create(t, nil), explainingCode)
	result, _ := a.get("result").([]any)
	if len(result) != 4 || compactJSON(result[1]) != `["from","from","join","where"]` || result[2] != float64(rows) ||
		result[3] != float64(rows) {
		t.Fatalf("got %v, want the stages of a join with %d rows: %s", result, rows, a.text)
	}
	if out, _ := a.get("stdout").(string); !strings.HasPrefix(out, "Statement, 1 line, ") ||
		!strings.Contains(out, "JOIN orders o") {
		t.Errorf("got the output %q, want the text for a model", out)
	}
	queries, _ := a.get("queries").([]any)
	if len(queries) != 3 || queries[1].(map[string]any)["rows"] != float64(rows) ||
		!strings.HasPrefix(queries[1].(map[string]any)["query"].(string), "SELECT c.email") {
		t.Fatalf("got the statements %v, want the plan, the stages and the rows", queries)
	}
	path := "/executions/" + a.get("execution_id").(string) + "/replay"
	for _, x := range []struct{ body, grade, rows string }{
		{`{}`, "identical", "log"}, {`{"rows": "now"}`, "identical", "now"},
	} {
		replay := c.ok(t, "POST", path, json.RawMessage(x.body)).get("replay").(map[string]any)
		if replay["grade"] != x.grade || replay["rows"] != x.rows {
			t.Errorf("a replay with %s: got %v, want it %s", x.body, replay, x.grade)
		}
	}
}

// A statement that only writes is refused at once, and one without stages when they are read.
func TestCodeExplainsNoRefusedStatement(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.run(t, c.create(t, nil), `found = []
for sql in ["DELETE FROM users", "SELECT id FROM customers WHERE email = 'a'", "SELECT random()"]:
    try:
        e = db_explain(sql)
        found.append("plan")
        e.text
    except DatabaseError as error:
        found.append(error.reason)
found`)
	if got := compactJSON(a.get("result")); got != `["read-only","masked-column","plan","volatile"]` {
		t.Errorf("got %s: %s", got, a.text)
	}
}
