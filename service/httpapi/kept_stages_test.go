package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox/stages"
)

// The stages of a past statement say how its rows compare with those of now, and so do why and why-not.
func TestStagesCompareTheResult(t *testing.T) {
	t.Parallel()
	name := newDatabase(t, "sales")
	execAs(t, embedded.RoleOwner, name,
		`CREATE TABLE weights (id int PRIMARY KEY, kg float8, price numeric, at timestamptz)`,
		`INSERT INTO weights SELECT n, n / 3.0, n / 7.0, '2026-01-01'::timestamptz + n * '1 day'::interval
			FROM generate_series(1, 3) n`,
		`CREATE VIEW recent AS SELECT id, CURRENT_TIMESTAMP AS seen FROM weights`,
		`UPDATE orders SET seller = seller WHERE id = 1`, // comes last now
		`CREATE TABLE keyed (id int UNIQUE, other int)`, `CREATE TABLE gone (id int, name text)`,
		`INSERT INTO gone VALUES (1, 'a')`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+embedded.RoleReader)
	c := serveDatabases(t, dbaccess.Config{
		Name: "sales", URL: testPostgres.URL(embedded.RoleReader, name), NeedsAudit: true,
	}).newUser(t, nil)
	statements := []struct{ sql, want string }{
		{"SELECT * FROM weights WHERE id > 0 ORDER BY id", stages.SameNo},
		{"SELECT id, price, at FROM weights WHERE id > 1 ORDER BY id", stages.SameYes},
		{"SELECT id, kg FROM weights WHERE id > 1 ORDER BY id", stages.SameRounded},
		{"SELECT id, seller FROM orders", stages.SameOtherOrder},
		{"SELECT id, now() AS at FROM orders", stages.SameNoClock},
		{"SELECT id, seen FROM recent", stages.SameNoClock},
		{"SELECT count(*) AS n FROM weights WHERE id < 0", stages.SameYes},
		{"SELECT id FROM keyed", stages.SameNo},
	}
	id, code := c.create(t, nil), ""
	for _, s := range statements {
		code += fmt.Sprintf("db_query(%q, database='sales'); db_frame(%q, database='sales')\n", s.sql, s.sql)
	}
	code += "db_query('SELECT id FROM keyed', database='sales'); db_query('SELECT name FROM gone', database='sales')"
	path := "/executions/" + c.run(t, id, code).get("execution_id").(string) + "/queries/"
	c.ok(t, "POST", "/database/query", map[string]any{"query": "SELECT 1 AS n", "database": "sales"})
	list, _ := c.ok(t, "GET", "/executions?kind=database-query", nil).get("executions").([]any)
	alone := list[0].(map[string]any)["execution_id"].(string)

	execAs(t, embedded.RoleOwner, name,
		`UPDATE weights SET price = 100 WHERE id = 1`, `UPDATE weights SET kg = kg * (1 + 1e-12)`,
		`UPDATE orders SET seller = seller WHERE id = 2`, `INSERT INTO keyed VALUES (7)`)
	for i, s := range statements {
		for form := range 2 { // a list, and a data frame
			got := c.counted(t, fmt.Sprintf("%s%d/stages", path, 2*i+1+form), nil)
			if got.SameResult != s.want || got.SchemaChanged {
				t.Errorf("%s (form %d): got %s, schema changed %v, want %s", s.sql, form, got.SameResult,
					got.SchemaChanged, s.want)
			}
			if !strings.Contains(got.Text, ", "+stages.DescribeSame(s.want)+". Rows after") {
				t.Errorf("%s: got the text %s", s.sql, got.Text)
			}
		}
	}
	if got := c.counted(t, "/executions/"+alone+"/queries/1/stages", nil); got.SameResult != stages.SameUnknown {
		t.Errorf("got %s of a statement whose rows are not kept, want unknown", got.SameResult)
	}
	cell := ask[stages.Why](t, c, path+"3/why", map[string]any{"row": 0, "column": "price"})
	row := ask[stages.WhyNot](t, c, path+"7/why-not", map[string]any{"values": map[string]any{"orders.id": 9}})
	if cell.SameResult != stages.SameYes || row.SameResult != stages.SameOtherOrder {
		t.Errorf("got %s of a cell and %s of a row, want yes and other-order", cell.SameResult, row.SameResult)
	}

	execAs(t, embedded.RoleOwner, name, `ALTER TABLE keyed ADD UNIQUE (other)`)
	last := 2*len(statements) + 1
	eventually(t, "the new key to be told", func() bool { // the catalog is read once a second
		got := c.counted(t, fmt.Sprintf("%s%d/stages", path, last), nil)
		return got.SchemaChanged && strings.Contains(got.Text, "schema changed since")
	})
	execAs(t, embedded.RoleOwner, name, `ALTER TABLE gone DROP COLUMN name`)
	a := c.do(t, "POST", fmt.Sprintf("%s%d/stages", path, last+1), nil)
	wantProblem(t, a, 422, "query-refused", `"reason":"schema-changed"`, `"name\" does not exist`)
}

// The stages that were computed last are kept with the execution, and erased with it.
func TestStagesAreKeptAndErased(t *testing.T) {
	t.Parallel()
	c := newUser(t, "agent")
	id := c.create(t, nil)
	code := `db_query("SELECT id FROM orders WHERE id <= 5")`
	execution := c.run(t, id, code).get("execution_id").(string)
	path := "/executions/" + execution + "/queries/1/stages"
	wantProblem(t, c.do(t, "GET", path, nil), 404, "not-found", "compute them with POST")
	other := "/executions/" + execution + "/queries/2/stages"
	wantProblem(t, c.do(t, "GET", other, nil), 404, "not-found", "no statement 2")
	c.ok(t, "POST", path, nil)
	last := c.ok(t, "POST", path, map[string]any{"samples": true})
	if got := c.ok(t, "GET", path, nil); compactJSON(got.body) != compactJSON(last.body) {
		t.Errorf("got the kept stages %s, want %s", got.text, last.text)
	}
	admin.ok(t, "GET", path, nil)
	wantProblem(t, newUser(t, "agent").do(t, "GET", path, nil), 404, "not-found", "not yours")

	conn, err := dbtest.Connect(t.Context(), testPostgres.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	kept := func() (n int) {
		t.Helper()
		const sql = "SELECT count(*) FROM kept_stages WHERE execution_id = $1"
		if err := conn.QueryRow(t.Context(), sql, execution).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := kept(); n != 1 {
		t.Errorf("got %d kept records, want 1", n)
	}
	admin.ok(t, "DELETE", "/executions/"+execution, nil)
	if n := kept(); n != 0 {
		t.Errorf("got %d kept records of an erased execution, want none", n)
	}
}

// Kept stages are not shown if other columns are masked than when they were computed. They are computed again.
func TestKeptStagesHideWhatIsMaskedToday(t *testing.T) {
	t.Parallel()
	name := newDatabase(t, "sales")
	config := dbaccess.Config{Name: "sales", URL: testPostgres.URL(embedded.RoleReader, name), NeedsAudit: true}
	before := serveDatabases(t, config).newUser(t, nil)
	id := before.create(t, nil)
	code := `db_query("SELECT o.id FROM orders o WHERE o.id < 9", database="sales")`
	path := "/executions/" + before.run(t, id, code).get("execution_id").(string) + "/queries/1/stages"
	before.ok(t, "POST", path, map[string]any{"samples": true})
	if a := before.ok(t, "GET", path, nil); !strings.Contains(string(a.text), "a@example.com") {
		t.Fatalf("got %s, want a sample with all columns", a.text)
	}
	config.MaskColumns = []string{"orders.email"}
	after := serveDatabases(t, config)
	after.secret = before.secret
	wantProblem(t, after.do(t, "GET", path, nil), 410, "gone", "compute them again with POST")
	after.ok(t, "POST", path, map[string]any{"samples": true})
	a := after.ok(t, "GET", path, nil)
	if strings.Contains(string(a.text), "a@example.com") || !strings.Contains(string(a.text), "***") {
		t.Errorf("got %s, want the column masked", a.text)
	}
	wantProblem(t, before.do(t, "GET", path, nil), 410, "gone")
}
