package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// ask returns the answer to a question about a statement.
func ask[T any](t *testing.T, c client, path string, body any) (out T) {
	t.Helper()
	a := c.ok(t, "POST", path, body)
	if err := json.Unmarshal(a.text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// POST /database/why returns the rows behind a cell, with masked values as ***, and checks them.
func TestWhyCell(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	body := map[string]any{
		"sql": `SELECT c.city, count(*) AS n, sum(o.total) AS spent
FROM customers c JOIN orders o ON o.customer_id = c.id
WHERE o.status = :status GROUP BY c.city ORDER BY c.city`,
		"params": map[string]any{"status": "paid"}, "row": 0, "column": "n",
	}
	y := ask[stages.Why](t, c, "/database/why", body)
	first := c.ok(t, "POST", "/database/query", map[string]any{
		"query": `SELECT c.city, count(*) AS n, count(DISTINCT c.id) AS customers, min(c.id) AS first FROM customers c
			JOIN orders o ON o.customer_id = c.id WHERE o.status = 'paid' GROUP BY c.city ORDER BY c.city LIMIT 1`,
	}).get("results").([]any)[0].(map[string]any)
	if len(y.Tables) != 2 || y.Tables[0].Table != "customers" || y.Tables[1].Table != "orders" {
		t.Fatalf("got the tables %s", compactJSON(y))
	}
	customers, orders := y.Tables[0], y.Tables[1]
	wantCount(t, "customers", customers.Rows, int64(first["customers"].(float64)))
	wantCount(t, "orders", orders.Rows, int64(first["n"].(float64)))
	if len(orders.First.Rows) != stages.MaxTableRows || y.Check.State != stages.CheckSame {
		t.Errorf("got %d orders and the check %+v, want 20 and same", len(orders.First.Rows), y.Check)
	}
	if want := "c.city IS NOT DISTINCT FROM '" + first["city"].(string) + "'"; y.Predicate != want {
		t.Errorf("got the predicate %s, want %s", y.Predicate, want)
	}
	if text := compactJSON(y); strings.Contains(text, "@customer.example") || !strings.Contains(text, `"***"`) {
		t.Errorf("the answer shows a masked value, or has no mask: %s", text)
	}
	if y.Database != "knowledge" || !strings.Contains(y.Text, "Checked: the statement over these rows alone") {
		t.Errorf("got the database %q and the text %s", y.Database, y.Text)
	}
	for reason, change := range map[string]map[string]any{
		"unknown-row":    {"row": 9999},
		"unknown-column": {"column": "m"},
		"masked-column": {
			"sql": "SELECT id FROM customers WHERE email = 'a'", "params": map[string]any{}, "column": "id",
		},
		"read-only":     {"sql": "DELETE FROM customers", "params": map[string]any{}, "column": "id"},
		"not-traceable": {"sql": "SELECT 1 AS n GROUP BY CUBE (1)", "params": map[string]any{}},
	} {
		changed := map[string]any{}
		for _, fields := range []map[string]any{body, change} {
			for name, value := range fields {
				changed[name] = value
			}
		}
		wantProblem(t, c.do(t, "POST", "/database/why", changed), http.StatusUnprocessableEntity, "query-refused",
			`"reason":"`+reason+`"`)
	}
	delete(body, "column")
	wantProblem(t, c.do(t, "POST", "/database/why", body), http.StatusUnprocessableEntity, "invalid-input", "column")
	list, _ := c.ok(t, "GET", "/statements", nil).get("statements").([]any)
	if len(list) != 7 {
		t.Errorf("got %d statements on record, want 7", len(list))
	}
}

// POST /database/why-not returns the stage that loses a row, and masks what the statement selects.
func TestWhyNot(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	lost := c.ok(t, "POST", "/database/query", map[string]any{
		"query": "SELECT o.id, c.city FROM orders o JOIN customers c ON c.id = o.customer_id " +
			"WHERE status = 'open' OR total < 50 ORDER BY o.id LIMIT 1",
	}).get("results").([]any)[0].(map[string]any)
	body := map[string]any{
		"sql": "SELECT c.city, c.email, o.id\nFROM customers c\nJOIN orders o ON o.customer_id = c.id\n" +
			"WHERE o.total >= 0\n  AND o.id <> :other",
		"params": map[string]any{"other": lost["id"]}, "values": map[string]any{"orders.id": lost["id"]},
	}
	y := ask[stages.WhyNot](t, c, "/database/why-not", body)
	if y.Missing == nil || !*y.Missing || y.Lost == nil || y.Lost.FromLine != 5 || y.Because != stages.BecauseFalse {
		t.Errorf("got %s, want it lost in line 5", compactJSON(y))
	}
	if !strings.Contains(y.Text, "Lost at l5: o.id <> :other. The condition is false there.") {
		t.Errorf("got the text %s", y.Text)
	}
	body["params"] = map[string]any{"other": -1}
	if y = ask[stages.WhyNot](t, c, "/database/why-not", body); y.Missing == nil || *y.Missing || y.Lost != nil {
		t.Errorf("got %s, want it in the result", compactJSON(y))
	}
	for reason, values := range map[string]map[string]any{
		"masked-column": {"c.email": "a@customer.example"}, "unknown-column": {"nothing": 1},
		"invalid-value": {"o.id": "x"},
	} {
		body["values"] = values
		wantProblem(t, c.do(t, "POST", "/database/why-not", body), http.StatusUnprocessableEntity, "query-refused",
			`"reason":"`+reason+`"`)
	}
	delete(body, "values")
	wantProblem(t, c.do(t, "POST", "/database/why-not", body), 422, "invalid-input", "values")
}

// The routes of a past statement take it and its parameters from the record, and are for those who may see it.
func TestWhyOfAPastStatement(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `db_query("SELECT o.id FROM orders o WHERE o.id <= :secret", {"secret": 3})
len(db_query("SELECT o.id, o.total FROM orders o WHERE o.id <= :most ORDER BY o.id", {"most": 7}))`)
	path := "/executions/" + a.get("execution_id").(string) + "/queries/"
	cell, row := map[string]any{"row": 2, "column": "total"}, map[string]any{"values": map[string]any{"id": 8}}
	y := ask[stages.Why](t, c, path+"2/why", cell)
	if len(y.Tables) != 1 || len(y.Tables[0].First.Rows) != 1 || y.Tables[0].First.Rows[0][0] != "3" ||
		y.SameResult != "yes" || !strings.HasPrefix(y.Text, "Query 2, row 2, total = ") {
		t.Errorf("got %s", compactJSON(y))
	}
	not := ask[stages.WhyNot](t, c, path+"2/why-not", row)
	if not.Lost == nil || not.Lost.Text != "o.id <= :most" ||
		!strings.HasPrefix(not.Text, "Query 2, o.id = 8: not in") {
		t.Errorf("got %s", compactJSON(not))
	}
	other := newUser(t, sandbox.RoleAgent)
	for what, body := range map[string]any{"why": cell, "why-not": row} {
		wantProblem(t, c.do(t, "POST", path+"1/"+what, body), 422, "query-refused", "parameters-not-kept", ":secret")
		wantProblem(t, c.do(t, "POST", path+"3/"+what, body), 404, "not-found", "no statement 3")
		wantProblem(t, other.do(t, "POST", path+"2/"+what, body), 404, "not-found")
		admin.ok(t, "POST", path+"2/"+what, body)
	}
}

// The explanation of a value of code goes on into the SQL behind it: what a WHERE or a join loses is in the answer.
func TestWhyLooksAtTheSQL(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	execution := c.recorded(t, id, `rows = db_query("""SELECT o.total
FROM orders o
LEFT JOIN customers c ON c.id = o.customer_id
WHERE o.id <= :most
  AND c.city = 'Nowhere'""", {"most": 20})
other = db_query("SELECT 1 AS n, random() AS r")
x = sum(row["total"] for row in rows)
z = sum(row["n"] for row in other)`)
	y := c.why(t, execution, "name=x")
	if len(y.Queries) != 1 || len(y.Queries[0].Stages) != 1 {
		t.Fatalf("got the queries %+v, want the stages of one", y.Queries)
	}
	if line := y.Queries[0].Stages[0]; !strings.Contains(line, "l4 o.id <= :most 20 -> l5 c.city = 'Nowhere' 0") {
		t.Errorf("got the stages %s", line)
	}
	if !strings.Contains(y.Text, "c.city = 'Nowhere' 0") || len(y.Text) > 600*3 || len(y.NotLooked) > 0 {
		t.Errorf("got %d bytes and not_looked_at %q:\n%s", len(y.Text), y.NotLooked, y.Text)
	}
	y = c.why(t, execution, "name=z")
	if got := strings.Join(y.NotLooked, "; "); got != "the SQL of query 2 (volatile)" {
		t.Errorf("got not_looked_at %q, want that query 2 is volatile", got)
	}
}
