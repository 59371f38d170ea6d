package httpapi_test

import (
	"strings"
	"sync"
	"testing"

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
	pendingOf := func(status string) (out []map[string]any) {
		list, _ := admin.ok(t, "GET", "/pending-writes?status="+status, nil).get("pending_writes").([]any)
		for _, w := range list {
			if w := w.(map[string]any); w["sandbox_id"] == id {
				out = append(out, w)
			}
		}
		return out
	}
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
		group.Go(func() { answers[i] = admin.do(t, "POST", path, nil) })
	}
	group.Wait()
	applied := 0
	for _, one := range answers {
		if one.status == 200 {
			applied++
			if one.get("status") != "applied" || one.get("affected_rows") != 1.0 || one.get("decided_by") != "root" {
				t.Errorf("got %s, want it applied to one row by root", one.text)
			}
		} else {
			wantProblem(t, one, 409, "busy")
		}
	}
	if applied != 1 {
		t.Errorf("applied %d times, want 1", applied)
	}
	a = c.run(t, id, `str(db_query("SELECT price FROM products WHERE id = 7")[0]["price"])`)
	if a.get("result") != "77.70" {
		t.Errorf("got the price %v, want 77.70", a.get("result"))
	}

	admin.ok(t, "POST", "/pending-writes/"+remove["id"].(string)+"/reject", nil)
	wantProblem(t, admin.do(t, "POST", "/pending-writes/"+remove["id"].(string)+"/apply", nil), 409, "busy", "rejected")
	if a = c.run(t, id, `len(db_query("SELECT 1 FROM raw_data WHERE id = 9"))`); a.get("result") != 1.0 {
		t.Errorf("a rejected write ran: got %s", a.text)
	}

	// A write that fails when it is applied changes nothing, and records why.
	c.run(t, id, `db_query("UPDATE products SET price = -1")`)
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
	if a.get("exception.type") != "ReadOnlyError" || len(pendingOf("pending")) != 0 {
		t.Errorf("without the policy: got %s, want a ReadOnlyError and no pending write", a.text)
	}
}
