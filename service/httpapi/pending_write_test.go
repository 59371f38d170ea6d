package httpapi_test

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// A captured write runs when an admin applies it, and only once.
func TestCapturedWriteRunsOnceWhenApplied(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	a := c.run(t, id, `from decimal import Decimal
said = [db_query("UPDATE products SET price = :p WHERE id = :id", {"p": Decimal("77.70"), "id": 7}),
    db_query("DELETE FROM raw_data WHERE id = :id", {"id": 9})]
before = db_query("SELECT price FROM products WHERE id = 7")[0]["price"] != Decimal("77.70")
refused = []
for sql in ["DROP TABLE users", "UPDATE users SET name = pg_sleep(1)::text", "TRUNCATE users", "DELETE FROM nowhere", "SELECT 1 FROM users FOR UPDATE", "UPDATE users SET nam = 'x'"]:
    try:
        db_query(sql)
    except DatabaseError as e:
        refused.append(e.reason)
[said, before, refused]`)
	if got, want := compactJSON(a.get("result")),
		`[[[{"affected_rows":0,"captured":true}],[{"affected_rows":0,"captured":true}]],true,["read-only","function-not-allowed","read-only","unknown-table","read-only","unknown-column"]]`; got != want {
		t.Fatalf("got  %s\nwant %s\n%s", got, want, a.text)
	}
	if n := strings.Count(string(a.text), `"status":"captured"`); n != 2 {
		t.Errorf("got %d captured queries, want 2: %s", n, a.text)
	}

	wantProblem(t, c.do(t, "GET", "/pending-writes", nil), 403, "forbidden", "admin")
	pendingOf := func(status string) []map[string]any { return pendingWrites(t, admin, c, id, status) }
	pending := pendingOf("pending")
	if len(pending) != 2 {
		t.Fatalf("got the pending writes %v, want 2", pending)
	}
	remove, update := pending[0], pending[1]
	if update["query"] != "UPDATE products SET price = :p WHERE id = :id" ||
		compactJSON(update["parameters"]) != `{"id":7,"p":"77.70"}` || update["row_estimate"] != 1.0 ||
		!strings.Contains(compactJSON(update["plan"]), `"ModifyTable"`) ||
		update["execution_id"] != a.get("execution_id") || update["user_id"] == "" {
		t.Errorf("got %v, want the query with its parameters, plan and execution", update)
	}

	// Several admins apply the write concurrently; it runs once.
	path := "/pending-writes/" + update["id"].(string) + "/apply"
	wantProblem(t, c.do(t, "POST", path, nil), 403, "forbidden")
	var group sync.WaitGroup
	answers := make([]answer, 4)
	for i := range answers {
		group.Go(func() { answers[i] = admin.do(t, "POST", path, map[string]any{"reason": fmt.Sprint("admin ", i)}) })
	}
	group.Wait()
	applied := 0
	for i, one := range answers {
		if one.status == 200 {
			applied++
			if one.get("status") != "applied" || one.get("affected_rows") != 1.0 || one.get("decided_by") != "root" ||
				one.get("reason") != fmt.Sprint("admin ", i) {
				t.Errorf("got %s, want it applied to one row by root, with the reason of admin %d", one.text, i)
			}
		} else {
			wantProblem(t, one, 409, "busy")
		}
	}
	if applied != 1 {
		t.Errorf("applied %d times, want 1", applied)
	}
	script := "/pending-writes/" + update["id"].(string) + "/undo"
	undo := admin.ok(t, "GET", script, nil)
	if text, _ := undo.get("script").(string); undo.get("rows") != 1.0 || !strings.Contains(text, `"price":77.70}`) ||
		len(undo.get("cannot").([]any)) == 0 {
		t.Errorf("got %s, want a script that restores the price of one row", undo.text)
	}
	wantProblem(t, c.do(t, "GET", script, nil), 403, "forbidden")
	wantProblem(t, admin.do(t, "GET", "/pending-writes/"+remove["id"].(string)+"/undo", nil), 404, "not-found")
	wantProblem(t, c.do(t, "GET", "/pending-writes/count", nil), 403, "forbidden")
	a = c.run(t, id, `str(db_query("SELECT price FROM products WHERE id = 7")[0]["price"])`)
	if a.get("result") != "77.70" {
		t.Errorf("got the price %v, want 77.70", a.get("result"))
	}

	reject := "/pending-writes/" + remove["id"].(string) + "/reject"
	for _, reason := range []string{strings.Repeat("x", 1001), "\x00"} {
		wantProblem(t, admin.do(t, "POST", reject, map[string]any{"reason": reason}), 422, "invalid-input", "reason")
	}
	reason := strings.Repeat("é", 996) + "<\""
	admin.ok(t, "POST", reject, map[string]any{"reason": " " + reason + "\n"})
	if w := pendingOf("rejected"); len(w) != 1 || w[0]["reason"] != reason || w[0]["decided_by"] != "root" {
		t.Errorf("got %v, want the rejected write with its reason", w)
	}
	entries, _ := admin.ok(t, "GET", "/audit?object=pending-write/"+remove["id"].(string), nil).get("entries").([]any)
	wanted := compactJSON(map[string]any{"reason": reason})
	if len(entries) != 1 || compactJSON(entries[0].(map[string]any)["detail"]) != wanted {
		t.Errorf("got the audit entries %v, want one with the reason", entries)
	}
	wantProblem(t, admin.do(t, "POST", "/pending-writes/"+remove["id"].(string)+"/apply", nil), 409, "busy", "rejected")
	if a = c.run(t, id, `len(db_query("SELECT 1 FROM raw_data WHERE id = 9"))`); a.get("result") != 1.0 {
		t.Errorf("a rejected write ran: got %s", a.text)
	}

	// A write that fails when it is applied changes nothing, and records why.
	c.run(t, id, `db_query("UPDATE products SET price = -1")`)
	if alarms := compactJSON(pendingOf("pending")[0]["alarms"]); alarms != `["no-condition"]` ||
		update["alarms"] != nil {
		t.Errorf("got the alarms %s, want one, for an UPDATE of a whole table only", alarms)
	}
	failing := pendingOf("pending")[0]["id"].(string)
	wantProblem(t, admin.do(t, "POST", "/pending-writes/"+failing+"/apply", nil), 422, "query-refused",
		"check constraint")
	if w := pendingOf("failed"); len(w) != 1 || w[0]["id"] != failing ||
		!strings.Contains(compactJSON(w[0]["error"]), "check constraint") {
		t.Errorf("got %v, want the failed write with its error", w)
	}
	wantProblem(t, admin.do(t, "POST", "/pending-writes/none/apply", nil), 404, "not-found")

	other := c.create(t, map[string]any{"write_policy": "capture"})
	a = c.run(t, other, `for n in range(1000):
    db_query("DELETE FROM raw_data WHERE id = :n", {"n": n})`)
	if a.get("exception.type") != "DatabaseError" || !strings.Contains(string(a.text), "INSERT ... SELECT") {
		t.Errorf("got %s, want an error that suggests INSERT ... SELECT", a.text)
	}

	// Without the policy, nothing is captured.
	plain := c.create(t, nil)
	a = c.run(t, plain, `db_query("DELETE FROM raw_data WHERE id = 9")`)
	if a.get("exception.type") != "ReadOnlyError" || len(pendingWrites(t, admin, c, plain, "pending")) != 0 {
		t.Errorf("without the policy: got %s, want a ReadOnlyError and no pending write", a.text)
	}
}

// The list of pending writes has a cursor, so that the writes of one agent cannot hide those of another.
func TestPendingWritesArePaged(t *testing.T) {
	t.Parallel()
	first, second := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	capture := map[string]any{"write_policy": "capture"}
	boxes := map[string]bool{}
	for _, c := range []client{first, second, first} {
		id := c.create(t, capture)
		boxes[id] = true
		c.run(t, id, `for n in range(3):
    db_query("DELETE FROM raw_data WHERE id = :n", {"n": n})`)
	}
	seen := map[any]bool{}
	var order []string
	user := ""
	for path := "/pending-writes?limit=2"; len(order) < 9; { // many older ones may follow
		page := admin.ok(t, "GET", path, nil)
		list, _ := page.get("pending_writes").([]any)
		for _, w := range list {
			w := w.(map[string]any)
			if seen[w["id"]] {
				t.Fatalf("the write %v is on two pages", w["id"])
			}
			seen[w["id"]] = true
			if boxes[w["sandbox_id"].(string)] {
				order = append(order, w["created_at"].(string))
				user = w["user_id"].(string)
			}
		}
		next, _ := page.get("next").(string)
		if next == "" {
			break
		}
		if len(list) != 2 {
			t.Fatalf("got a page of %d writes before the last, want 2", len(list))
		}
		path = "/pending-writes?limit=2&after=" + next
	}
	if len(order) != 9 || !slices.IsSortedFunc(order, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("got the writes of %v, want 9, newest first", order)
	}
	ofUser := "/pending-writes?status=pending&user_id=" + url.QueryEscape(user)
	for path, want := range map[string]int{ofUser + "&limit=1000": 6, ofUser + "&limit=4": 4} {
		page := admin.ok(t, "GET", path, nil)
		if list := page.get("pending_writes").([]any); len(list) != want {
			t.Errorf("%s: got %d writes, want %d", path, len(list), want)
		}
		if next, _ := page.get("next").(string); want == 6 && next != "" {
			t.Errorf("%s: got the cursor %s behind the last write, want none", path, next)
		} else if want == 4 {
			page = admin.ok(t, "GET", path+"&after="+next, nil)
			if list := page.get("pending_writes").([]any); len(list) != 2 || page.get("next") != nil {
				t.Errorf("the second page: got %d writes and the cursor %v, want 2 and none", len(list),
					page.get("next"))
			}
		}
	}
	for _, after := range []string{"none", "%00", "'", "a%20b"} {
		wantProblem(t, admin.do(t, "GET", "/pending-writes?after="+after, nil), 422, "invalid-input", "after")
	}
	wantProblem(t, admin.do(t, "GET", "/pending-writes?limit=1001", nil), 422, "invalid-input", "limit")
}

// The pending writes of one user are limited in number and in bytes. The code learns what to do, and an admin's
// decision makes room again.
func TestPendingWritesOfAUserAreLimited(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	const maxWrites, maxLarge = 500, 41
	const small = `db_query("DELETE FROM raw_data WHERE id = 1")`
	const large = `db_query("UPDATE documents SET content = :text WHERE id = 1", {"text": "x" * 800_000})`
	config := map[string]any{"write_policy": "capture"}
	// capture captures a statement, and returns the result or the refusal as JSON.
	capture := func(c client, id, statement string) string {
		a := c.run(t, id, fmt.Sprintf(`try:
    result = %s
except DatabaseError as e:
    result = [e.reason, str(e)]
result`, statement))
		return compactJSON(a.get("result"))
	}
	wantCaptured := func(when, got string) {
		t.Helper()
		if !strings.Contains(got, `"captured":true`) {
			t.Errorf("%s: got %s, want the write captured", when, got)
		}
	}
	// fill captures a write of a new user, and stores it again until the next one is the last.
	fill := func(statement string, limit int) (c client, id string) {
		c = newUser(t, sandbox.RoleAgent)
		id = c.create(t, config)
		wantCaptured("the first one", capture(c, id, statement))
		w, err := testConfig.writes.Write(t.Context(), newestPendingWrite(t, admin, c, id)["id"].(string))
		for n := 0; err == nil && n < limit-2; n++ {
			w.ID = fmt.Sprintf("%s%08x", w.ID[:24], n)
			err = testConfig.runs.History.AddWrite(t.Context(), w, math.MaxInt32, math.MaxInt32)
		}
		if err != nil {
			t.Fatal(err)
		}
		wantCaptured("the last one", capture(c, id, statement))
		return c, id
	}

	c, id := fill(small, maxWrites)
	if got := capture(c, id, small); !strings.Contains(got, "too-many-pending-writes") ||
		!strings.Contains(got, "admin") || !strings.Contains(got, "500 writes") {
		t.Errorf("got %s, want a refusal that says what to do", got)
	}
	other := newUser(t, sandbox.RoleAgent)
	wantCaptured("another user", capture(other, other.create(t, config), small))
	write := newestPendingWrite(t, admin, c, id)["id"].(string)
	admin.ok(t, "POST", "/pending-writes/"+write+"/reject", nil)
	wantCaptured("after a decision", capture(c, id, small))

	c, id = fill(large, maxLarge)
	if got := capture(c, id, large); !strings.Contains(got, "too-many-pending-writes") ||
		!strings.Contains(got, "32 MiB") {
		t.Errorf("got %.500s, want a refusal after 32 MiB", got)
	}
}

// A sample shows the rows that a pending write would affect, and changes nothing.
func TestSampleOfAPendingWrite(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	for _, w := range []struct {
		sql    string
		params string // Python
		rows   string // a piece of the JSON
		count  float64
		all    string // a query for the number of all rows
	}{
		{"UPDATE products p SET price = price * 2, name = DEFAULT WHERE p.id = :id", `{"id": 7}`,
			`"new name":"(not shown: its DEFAULT)","new price":`, 1,
			"SELECT count(id) AS n FROM products WHERE id = :id"},
		{"UPDATE products SET (price, name) = (SELECT 1, 'x') WHERE name LIKE '%:id%' OR id = :id",
			`{"id": 7}`, `"new name":"(not shown: it is set together with others)","new price":"(not shown`, 1,
			"SELECT count(id) AS n FROM products WHERE name LIKE '%:id%' OR id = :id"},
		{"UPDATE users SET preferences['theme'] = '\"dark\"' WHERE id = 1", `{}`,
			`"new preferences":"(not shown: a part of it is set)"`, 1,
			"SELECT 1 AS n"},
		{"DELETE FROM products WHERE id BETWEEN :low AND :high", `{"low": 1, "high": 500}`, `"id":`, 10,
			"SELECT count(id) AS n FROM products WHERE id BETWEEN :low AND :high"},
		{"DELETE FROM products p USING raw_data r WHERE r.id = p.id AND p.id = 3", `{}`, `"id":3`, 1,
			"SELECT 1 AS n"},
		{"WITH few AS (SELECT id FROM products WHERE id < 4) UPDATE products SET price = 0 FROM few " +
			"WHERE few.id = products.id RETURNING *",
			`{}`, `"new price":0`, 3,
			"SELECT 3 AS n"},
		{"INSERT INTO raw_data (id) SELECT id + :n FROM products", `{"n": 100000}`, `[{"id":100001}`, 10,
			"SELECT count(id + :n) AS n FROM products"},
		{"INSERT INTO raw_data (id) VALUES (1234567), (1234568) ON CONFLICT (id) DO NOTHING", `{}`,
			`[{"id":1234567},{"id":1234568}]`, 2,
			"SELECT 2 AS n"},
		{"UPDATE customers SET email = 'a' WHERE id = 1", `{}`, `"email":"***"`, 1,
			"SELECT 1 AS n"},
	} {
		a := c.run(t, id, fmt.Sprintf("db_query(%q, %s)", w.sql, w.params))
		if compactJSON(a.get("result")) != `[{"affected_rows":0,"captured":true}]` {
			t.Errorf("%s: got %s, want it captured", w.sql, a.text)
			continue
		}
		write := newestPendingWrite(t, admin, c, id)
		path := "/pending-writes/" + write["id"].(string)
		wantProblem(t, c.do(t, "POST", path+"/sample", nil), 403, "forbidden", "admin")
		sample := admin.ok(t, "POST", path+"/sample", nil)
		if rows := compactJSON(sample.get("rows")); !strings.Contains(rows, w.rows) || sample.get("count") != w.count {
			t.Errorf("%s: got %s, want %v rows with %s", w.sql, sample.text, w.count, w.rows)
		}
		all := c.run(t, id, fmt.Sprintf("db_query(%q, %s)", w.all, w.params)).get("result")
		if want := compactJSON(all); want != fmt.Sprintf(`[{"n":%v}]`, sample.get("affected_rows")) {
			t.Errorf("%s: got %s, want the number %s", w.sql, sample.text, want)
		}
		record := admin.ok(t, "GET", "/executions/"+sample.get("execution_id").(string), nil)
		if record.get("kind") != "database-query" || record.get("code") != sample.get("query") {
			t.Errorf("%s: got %s, want the record of the query", w.sql, record.text)
		}
		admin.ok(t, "POST", path+"/reject", nil)
		wantProblem(t, admin.do(t, "POST", path+"/sample", nil), 409, "busy", "already rejected")
	}
	wantProblem(t, admin.do(t, "POST", "/pending-writes/none/sample", nil), 404, "not-found")

	// No sample: what the reader may not do is refused as in any query.
	for sql, reason := range map[string]string{
		"INSERT INTO raw_data DEFAULT VALUES":                    "no-sample",
		"INSERT INTO raw_data (id, content) VALUES (1, DEFAULT)": "no-sample",
	} {
		a := c.run(t, id, fmt.Sprintf("db_query(%q)", sql))
		if compactJSON(a.get("result")) != `[{"affected_rows":0,"captured":true}]` {
			t.Errorf("%s: got %s, want it captured", sql, a.text)
			continue
		}
		path := "/pending-writes/" + newestPendingWrite(t, admin, c, id)["id"].(string)
		wantProblem(t, admin.do(t, "POST", path+"/sample", nil), 422, "query-refused", reason)
		admin.ok(t, "POST", path+"/reject", nil)
	}
}

// An admin records what a write with an unknown outcome did: it was applied, or it is pending again.
func TestUnknownWriteIsResolved(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	for _, wasApplied := range []bool{true, false} {
		c.run(t, id, `db_query("UPDATE products SET price = price WHERE id = 11")`)
		write := newestPendingWrite(t, admin, c, id)["id"].(string)
		path := "/pending-writes/" + write
		w, err := testConfig.writes.Write(t.Context(), write)
		if err != nil {
			t.Fatal(err)
		}
		resolve := map[string]any{"applied": wasApplied, "reason": "the price says so"}
		wantProblem(t, admin.do(t, "POST", path+"/resolve", resolve), 409, "busy", "status unknown")
		w.Status = sandbox.WriteApplying
		if err := testConfig.writes.MoveWrite(t.Context(), w, sandbox.WritePending); err != nil {
			t.Fatal(err)
		}
		w.Status, w.Error = sandbox.WriteUnknown, "cut"
		if err := testConfig.writes.FinishWrite(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		for _, decision := range []string{"/apply", "/reject"} {
			wantProblem(t, admin.do(t, "POST", path+decision, map[string]any{}), 409, "busy", "resolve it first")
		}
		wantProblem(t, admin.do(t, "POST", path+"/resolve", map[string]any{}), 422, "invalid-input", "applied")
		wantProblem(t, c.do(t, "POST", path+"/resolve", resolve), 403, "forbidden", "admin")
		status, want := "pending", `{"reason":"the price says so","status":"pending"}`
		if wasApplied {
			status, want = "applied", `{"reason":"the price says so","status":"applied"}`
		}
		if a := admin.ok(t, "POST", path+"/resolve", resolve); a.get("status") != status ||
			a.get("reason") != "the price says so" || a.get("decided_by") != "root" || a.get("error") == "cut" {
			t.Errorf("got %s, want it %s, with the admin's reason", a.text, status)
		}
		entries, _ := admin.ok(t, "GET", "/audit?object=pending-write/"+write, nil).get("entries").([]any)
		if len(entries) != 1 || compactJSON(entries[0].(map[string]any)["detail"]) != want {
			t.Errorf("got the audit entries %v, want %s", entries, want)
		}
		if !wasApplied {
			if a := admin.ok(t, "POST", path+"/apply", map[string]any{}); a.get("affected_rows") != 1.0 {
				t.Errorf("got %s, want it applied to one row", a.text)
			}
		}
	}
}

// A preview runs a write, shows the rows before and after, and changes nothing.
func TestPreviewOfAPendingWrite(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	c.run(t, id, `db_query("UPDATE products SET price = :p WHERE id = 12", {"p": 4711.5})`)
	write := newestPendingWrite(t, admin, c, id)["id"].(string)
	path := "/pending-writes/" + write
	wantProblem(t, c.do(t, "POST", path+"/preview", nil), 403, "forbidden", "admin")
	preview := admin.ok(t, "POST", path+"/preview", nil)
	rows, _ := preview.get("rows").([]any)
	if preview.get("affected_rows") != 1.0 || len(rows) != 1 {
		t.Fatalf("got %s, want one row", preview.text)
	}
	row := rows[0].(map[string]any)
	before, after := row["before"].(map[string]any), row["after"].(map[string]any)
	if before["id"] != 12.0 || before["price"] == 4711.5 || after["price"] != 4711.5 || after["name"] != before["name"] {
		t.Errorf("got %s, want the price before and after", preview.text)
	}
	if a := c.run(t, id, `float(db_query("SELECT price FROM products WHERE id = 12")[0]["price"])`); a.get(
		"result") != before["price"] {
		t.Errorf("got %s, want the price unchanged", a.text)
	}
	entries, _ := admin.ok(t, "GET", "/audit?object=pending-write/"+write, nil).get("entries").([]any)
	if len(entries) != 1 || entries[0].(map[string]any)["action"] != "previewed" {
		t.Errorf("got the audit entries %v, want the preview", entries)
	}
	admin.ok(t, "POST", path+"/reject", nil)
	wantProblem(t, admin.do(t, "POST", path+"/preview", nil), 409, "busy", "already rejected")

	c.run(t, id, `db_query("UPDATE products SET price = random()")`)
	path = "/pending-writes/" + newestPendingWrite(t, admin, c, id)["id"].(string)
	wantProblem(t, admin.do(t, "POST", path+"/preview", nil), 422, "query-refused", "random()")
	admin.ok(t, "POST", path+"/reject", nil)
}

// A count that takes too long leaves the planner's estimate.
func TestSampleWithoutCount(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	name := newDatabase(t, "sales")
	execAs(t, embedded.RoleOwner, name, `INSERT INTO orders SELECT n, 's', 'e' FROM generate_series(4, 20) n`)
	admin := serveDatabases(t, dbaccess.Config{
		Name: "sales", URL: testPostgres.URL(embedded.RoleReader, name),
		WriterURL: testPostgres.URL(embedded.RoleWriter, name), Limits: sandbox.QueryLimits{Timeout: 3 * time.Second},
	})
	id := admin.create(t, map[string]any{"write_policy": "capture"})
	// The first ten rows are quick.
	const slow = "DELETE FROM orders WHERE id <= 10 OR (SELECT count(*) FROM generate_series(1, 1000000000) g " +
		"WHERE g > id) > 0"
	a := admin.run(t, id, fmt.Sprintf(`db_query(%q, database="sales")`, slow))
	if compactJSON(a.get("result")) != `[{"affected_rows":0,"captured":true}]` {
		t.Fatalf("got %s, want the write captured", a.text)
	}
	path := "/pending-writes/" + newestPendingWrite(t, admin, admin, id)["id"].(string)
	sample := admin.ok(t, "POST", path+"/sample", nil)
	reason, _ := sample.get("count_error").(string)
	if sample.get("count") != 10.0 || sample.get("affected_rows") != nil ||
		!strings.Contains(reason, "longer than 3s") {
		t.Errorf("got %s, want ten rows, and that the count took too long", sample.text)
	}
	admin.ok(t, "POST", path+"/reject", nil)
}

// pendingWrites returns the writes of a user's sandbox that have a status, newest first. It asks for those of the user,
// because the writes of all users are more than a page, and some are large.
func pendingWrites(t *testing.T, admin, user client, sandboxID, status string) (writes []map[string]any) {
	t.Helper()
	id, _ := user.ok(t, "GET", "/me", nil).get("user_id").(string)
	a := admin.ok(t, "GET", "/pending-writes?status="+status+"&user_id="+url.QueryEscape(id), nil)
	list, _ := a.get("pending_writes").([]any)
	for _, w := range list {
		if w := w.(map[string]any); w["sandbox_id"] == sandboxID {
			writes = append(writes, w)
		}
	}
	return writes
}

// newestPendingWrite returns the newest write of a user's sandbox that waits for an admin.
func newestPendingWrite(t *testing.T, admin, user client, sandboxID string) map[string]any {
	t.Helper()
	writes := pendingWrites(t, admin, user, sandboxID, "pending")
	if len(writes) == 0 {
		t.Fatalf("the sandbox %s has no pending write", sandboxID)
	}
	return writes[0]
}
