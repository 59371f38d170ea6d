package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// The database helpers return typed values, plans and errors.
func TestDatabaseHelpersReturnTypedValues(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, x := range []struct{ code, want string }{
		{`frame = await db_frame("SELECT id, name, created_at, preferences FROM users WHERE id <= :n ORDER BY id", {"n": 3})
[list(frame.id), [str(t) for t in frame.dtypes][2], frame.attrs["truncated"], type(frame.preferences[0]).__name__]`,
			`[[1,2,3],"datetime64[us, UTC]",false,"dict"]`},
		{`from decimal import Decimal
row = db_query("SELECT :d AS d, pg_typeof(:d)::text AS t, :w + interval '1 day' AS w, :l AS l, :r @> 3 AS r", {"d": Decimal("1.10"), "w": datetime(2024, 1, 2), "l": [Decimal(1), None], "r": Range(1, 5)})[0]
[str(row["d"]), row["t"], row["w"] == datetime(2024, 1, 3), row["l"] == [Decimal(1), None], row["r"]]`,
			`["1.10","numeric",true,true,true]`},
		{`plan = await db_explain("SELECT * FROM users WHERE id = :id", {"id": 7})
[plan["rows"], plan["plan"]["Node Type"]]`,
			`[1,"Index Scan"]`},
		{`[type(v).__name__ for v in db_query("SELECT inet '10.0.0.1', int4range(1, 3), ROW(1, 'x'), '{[1,2)}'::int4multirange AS m")[0].values()]`,
			`["IPv4Address","Range","tuple","list"]`},
		{`columns = {c["column_name"]: c for c in db_schema("user_activities")}
[columns["user_id"]["references"], columns["id"]["primary_key"], columns["id"]["row_estimate"] > 20000, columns["duration_ms"]["comment"], columns["timestamp"]["column_default"]]`,
			`["users(id)",true,true,"NULL where the action has no duration","now()"]`},
		{`try:
    db_query("SELECT id,\n  nam FROM users")
except DatabaseError as e:
    told = [e.reason, e.sqlstate, e.position, e.line, e.nearest, e.hint]
told`,
			`["unknown-column","42703",14,2,"name","did you mean name?"]`},
		{`try:
    db_explain("DELETE FROM users")
except ReadOnlyError as e:
    told = e.reason
told`, `"read-only"`},
	} {
		a := c.run(t, id, x.code)
		if got := compactJSON(a.get("result")); got != x.want {
			t.Errorf("%s\n  got  %s %v\n  want %s", x.code, got, a.get("exception"), x.want)
		}
	}

	a := c.do(t, "POST", "/sandbox/"+id+"/database/query", map[string]any{"query": "SELECT id,\n  nam FROM users"})
	wantProblem(t, a, 422, "query-refused", `"reason":"unknown-column"`, `"sqlstate":"42703"`, `"position":14`,
		`"line":2`, `"nearest":"name"`)

	a = c.ok(t, "GET", "/sandbox/"+id+"/database/schema", nil)
	detail := compactJSON(a.get("schema.details.order_items"))
	for _, part := range []string{`"primary_key":["order_id","line"]`, `"table_type":"table"`, `"row_estimate":`,
		`{"columns":["order_id"],"referenced_columns":["id"],"references":"orders"}`} {
		if !strings.Contains(detail, part) {
			t.Errorf("want %s in %s", part, detail)
		}
	}
}

// Every statement is recorded, allowed or refused, without masked parameters.
func TestEveryStatementIsRecorded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `db_query("SELECT :a + 1 AS n FROM users LIMIT 3", {"a": 41})
db_query("SELECT :Secret::text, :a", {"Secret": "hush", "a": 2})
try:
    db_query("DELETE FROM users WHERE id = :a", {"a": 7})
except ReadOnlyError:
    pass`)
	type entry struct {
		Query, Status, Reason, Fingerprint string
		Parameters                         map[string]any
		Rows, Bytes                        int
		Duration                           float64 `json:"duration_ms"`
	}
	var kept struct{ Queries []entry }
	one := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
	if err := json.Unmarshal(one.text, &kept); err != nil || len(kept.Queries) != 3 {
		t.Fatalf("got %v, want three statements: %s", err, one.text)
	}
	first, second, third := kept.Queries[0], kept.Queries[1], kept.Queries[2]
	if first.Status != "ok" || first.Rows != 3 || first.Bytes != 6 || first.Duration <= 0 || first.Fingerprint == "" ||
		first.Parameters["a"] != 41.0 {
		t.Errorf("the first statement: got %+v", first)
	}
	if second.Parameters["Secret"] != "***" || second.Parameters["a"] != 2.0 ||
		strings.Contains(compactJSON(kept), "hush") {
		t.Errorf("the second statement: got %+v, want its secret masked", second)
	}
	if third.Status != "refused" || third.Reason != "read-only" || third.Fingerprint == "" ||
		third.Fingerprint == first.Fingerprint {
		t.Errorf("the third statement: got %+v, want it refused", third)
	}
}

// A masked column is hidden in every helper and route.
func TestMaskedColumnsAreHiddenEverywhere(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, x := range []struct{ code, want string }{
		{`db_query("SELECT id, email AS e FROM customers WHERE id <= 2 ORDER BY id")`,
			`[{"e":"***","id":1},{"e":"***","id":2}]`},
		{`frame = db_frame("SELECT id, email FROM customers WHERE id <= 2 ORDER BY id")
[list(frame.email), str(frame.id.dtype)]`, `[["***","***"],"int64"]`},
		{`[c["column_name"] for c in db_schema("customers") if c["masked"]]`, `["email"]`},
		{`db_explain("SELECT name FROM customers")["plan"]["Node Type"]`, `"Seq Scan"`},
		{`told = []
for ask, sql in [(db_query, "SELECT 1 FROM customers WHERE email = 'a'"),
                 (db_frame, "SELECT upper(email) FROM customers"),
                 (db_explain, "SELECT email || name FROM customers")]:
    try:
        ask(sql)
    except DatabaseError as e:
        told.append([e.reason, e.position])
told`, `[["masked-column",31],["masked-column",14],["masked-column",8]]`},
	} {
		a := c.run(t, id, x.code)
		if got := compactJSON(a.get("result")); got != x.want {
			t.Errorf("%s\n  got  %s %v\n  want %s", x.code, got, a.get("exception"), x.want)
		}
	}

	a := c.ok(t, "POST", "/sandbox/"+id+"/database/query",
		map[string]any{"query": "SELECT email FROM customers LIMIT 1"})
	if body := compactJSON(a.body); !strings.Contains(body, `"***"`) || strings.Contains(body, "@") {
		t.Error(body)
	}
	a = c.do(t, "POST", "/sandbox/"+id+"/database/query", map[string]any{"query": "SELECT email::text FROM customers"})
	wantProblem(t, a, 422, "query-refused", `"reason":"masked-column"`)
	a = c.run(t, id, `try:
    db_query("SELECT lower(email) FROM customers")
except DatabaseError:
    pass`)
	if record := compactJSON(a.get("queries")); !strings.Contains(record, `"reason":"masked-column"`) ||
		!strings.Contains(record, `"status":"refused"`) {
		t.Error("the refusal is not on record: " + record)
	}
}

// An answer with a value that was computed with "***" says so in the record of the execution, over HTTP and over MCP.
func TestValuesComputedWithMasksAreTold(t *testing.T) {
	t.Parallel()
	const sql, field, text = "SELECT row_to_json(c) FROM customers c LIMIT 1",
		`"computed_with_mask":["customers.email"]`, `in place of one of the masked columns customers.email`
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `db_query("`+sql+`")`)
	if record := compactJSON(a.get("queries")); !strings.Contains(record, field) {
		t.Errorf("the execution has the statements %s, want %s", record, field)
	}
	stored := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
	if record := compactJSON(stored.get("queries")); !strings.Contains(record, field) {
		t.Errorf("the stored execution has the statements %s, want %s", record, field)
	}
	a = c.ok(t, "POST", "/database/query", map[string]any{"query": sql})
	if body := compactJSON(a.body); !strings.Contains(body, field) {
		t.Errorf("POST /database/query answers %s, want %s", body, field)
	}
	a = c.ok(t, "POST", "/database/query", map[string]any{"query": "SELECT id, email FROM customers LIMIT 1"})
	if body := compactJSON(a.body); strings.Contains(body, "computed_with_mask") {
		t.Errorf("a masked column by itself: POST /database/query answers %s", body)
	}
	c.server = serveMCP(t)
	for tool, arguments := range map[string]string{
		"query_database": `"sql":"` + sql + `"`, "run_python": `"code":"db_query('` + sql + `')"`,
	} {
		a := c.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+
			`","arguments":{`+arguments+`}}}`, "Accept", "application/json, text/event-stream")
		if !strings.Contains(string(a.text), text) {
			t.Errorf("%s answers %s, want %s", tool, a.text, text)
		}
	}
}

// A statement ends on the server within a second after its execution was cancelled, deleted with its sandbox, killed,
// or timed out. Not parallel: it measures time.
func TestStatementEndsWhenItsExecutionEnds(t *testing.T) {
	const (
		counting = "SELECT count(*) AS asked_by_%s FROM generate_series(1, 10000000000)"
		stalling = "SELECT repeat('x', 1000), CASE WHEN n > 3000 THEN (SELECT count(*) FROM generate_series(1, 10000000000 + n)) END AS asked_by_%s FROM generate_series(1, 5000) n"
		flowing  = "SELECT gen_random_uuid(), repeat('x', 500) AS asked_by_%s FROM generate_series(1, 100000)"
		mortal   = "import os, threading\nthreading.Timer(1, os._exit, [3]).start()\n"
		hanging  = "import time, uuid\ndef hang(*_, **__): time.sleep(3600)\nuuid.UUID.__init__ = hang\n"
	)
	cancelled := func(c client, id string) {
		running, _ := c.ok(t, "GET", "/executions?status=running&sandbox_id="+id, nil).get("executions").([]any)
		c.ok(t, "POST", "/executions/"+running[0].(map[string]any)["execution_id"].(string)+"/cancel", nil)
	}
	for name, x := range map[string]struct {
		sql, before, status string
		end                 func(c client, id string)
	}{
		"cancel":            {counting, "", "cancelled", cancelled},
		"cancel after rows": {stalling, "", "cancelled", cancelled},
		"death after rows":  {stalling, mortal, "killed", func(client, string) {}},
		// The guest reads no more rows, so the server waits.
		"cancel of one that hangs":   {flowing, hanging, "cancelled", cancelled},
		"death of one that hangs":    {flowing, mortal + hanging, "killed", func(client, string) {}},
		"deadline of one that hangs": {flowing, hanging, "timeout", func(client, string) {}},
		"delete": {counting, "", "cancelled",
			func(c client, id string) { c.ok(t, "DELETE", "/sandbox/"+id, nil) }},
		"death": {counting, mortal, "killed", func(client, string) {}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.Contains(name, "rows") {
				return // the cases that hang read rows, too
			}
			t.Parallel()
			c := newUser(t, sandbox.RoleAdmin) // only an admin may choose a profile in which code can end its process
			observer, err := dbtest.Connect(t.Context(), testPostgres.URL(embedded.RoleAdmin, "postgres"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { observer.Close(context.Background()) })
			limit := 300
			if x.status == "timeout" {
				limit = 2
			}
			id := c.create(t, map[string]any{"profile": "unrestricted", "max_execution_time": limit})
			label := strings.ReplaceAll(name, " ", "_")
			active := func() (n int) {
				const query = `SELECT count(*)::int FROM pg_stat_activity
					WHERE query LIKE $1 AND state = 'active' AND pid <> pg_backend_pid()`
				if err := observer.QueryRow(t.Context(), query, "%asked_by_"+label+" %").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			done := make(chan answer, 1)
			go func() {
				code := x.before + fmt.Sprintf("db_query(%q)", fmt.Sprintf(x.sql, label))
				done <- c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code})
			}()
			for active() == 0 {
				select {
				case a := <-done:
					t.Fatalf("the execution ended before its statement was active: %s", a.text)
				case <-time.After(5 * time.Millisecond):
				}
			}
			x.end(c, id)
			var a answer
			select {
			case a = <-done:
			case <-time.After(2 * time.Minute):
				t.Fatal("the execution still runs after two minutes")
			}
			if a.get("status") != x.status {
				t.Errorf("got the status %v, want %s: %s", a.get("status"), x.status, a.text)
			}
			eventually(t, "the statement to end with its execution", func() bool { return active() == 0 })
			if name != "delete" {
				c.ok(t, "DELETE", "/sandbox/"+id, nil)
			}
		})
	}
}

// A statement and the schema need no sandbox. The statement is on record, and its owner and the key's limits apply.
func TestQueriesNeedNoSandbox(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.ok(t, "POST", "/database/query",
		map[string]any{"query": "SELECT :n::int + 1 AS n", "parameters": map[string]any{"n": 41}})
	if got := compactJSON(a.get("results")); got != `[{"n":42}]` || a.get("count") != 1.0 {
		t.Errorf("got %s", a.text)
	}
	if a := c.do(t, "POST", "/database/query", map[string]any{"query": "DELETE FROM users"}); a.status != 422 {
		t.Errorf("a write: got %d %s, want 422", a.status, a.text)
	}
	list := c.ok(t, "GET", "/executions", nil).get("executions").([]any)
	if len(list) != 2 || list[1].(map[string]any)["status"] != "completed" ||
		list[0].(map[string]any)["status"] != "failed" {
		t.Errorf("history: got %v, want both statements", list)
	}
	in := c.ok(t, "GET", "/sandbox/"+c.create(t, nil)+"/database/schema", nil)
	a = c.ok(t, "GET", "/database/schema", nil)
	if !reflect.DeepEqual(a.get("schema"), in.get("schema")) || a.get("schema.total_tables") == 0.0 {
		t.Errorf("schema: got %s, want that of a sandbox, %s", a.text, in.text)
	}
	c.secret = ""
	if a := c.do(t, "GET", "/database/schema", nil); a.status != 401 {
		t.Errorf("without a key: got %d, want 401", a.status)
	}
}
