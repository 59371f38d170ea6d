package httpapi_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// textsOf returns the field of each item of a list in an answer.
func textsOf(a answer, list, field string) (texts []string) {
	items, _ := a.get(list).([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		texts = append(texts, fmt.Sprint(object[field]))
	}
	return texts
}

// A user's lists have what the user's executions did. Other users do not see it; an admin does.
func TestReviewLists(t *testing.T) {
	t.Parallel()
	c, other := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `
db_query("SELECT 1")
try:
    db_query("DELETE FROM users")
except DatabaseError:
    pass
open("/session/artifacts/Report.txt", "w").write("done")
1 / 0`)
	execution, _ := a.get("execution_id").(string)
	user, _ := c.ok(t, "GET", "/me", nil).get("user_id").(string)
	for _, l := range []struct{ path, list, field, want string }{
		{"/executions", "executions", "execution_id", execution},
		{"/executions?kind=execute&status=failed&text=select+1", "executions", "execution_id", execution},
		{"/executions?kind=debug", "executions", "execution_id", ""},
		{"/executions?include=record", "executions", "stderr", ""},
		{"/sandboxes", "sandboxes", "sandbox_id", id},
		{"/sandboxes?status=active", "sandboxes", "status", "active"},
		{"/statements", "statements", "status", "refused ok"},
		{"/statements?status=refused", "statements", "reason", "read-only"},
		{"/statements?execution_id=" + execution, "statements", "number", "2 1"},
		{"/statements/top", "statements", "calls", "1 1"},
		{"/statements/top?order=refused&limit=1", "statements", "refused", "1"},
		{"/connections", "connections", "host", ""},
		{"/artifacts", "artifacts", "path", "Report.txt"},
		{"/artifacts", "artifacts", "user_id", user},
		{"/artifacts?text=report", "artifacts", "execution_id", execution},
	} {
		got := strings.TrimSpace(strings.Join(textsOf(c.ok(t, "GET", l.path, nil), l.list, l.field), " "))
		if got != l.want {
			t.Errorf("%s: got the %s %q, want %q", l.path, l.field, got, l.want)
		}
		separator := "?"
		if strings.Contains(l.path, "?") {
			separator = "&"
		}
		ofUser := l.path + separator + "user_id=" + url.QueryEscape(user)
		seen := strings.TrimSpace(strings.Join(textsOf(admin.ok(t, "GET", ofUser, nil), l.list, l.field), " "))
		if seen != l.want {
			t.Errorf("%s: an admin got %q, want %q", ofUser, seen, l.want)
		}
		if theirs := textsOf(other.ok(t, "GET", ofUser, nil), l.list, l.field); len(theirs) > 0 {
			t.Errorf("%s: another user got %q", ofUser, theirs)
		}
	}
	summary := c.ok(t, "GET", "/executions", nil)
	for field, want := range map[string]any{"queries": 2.0, "rows_read": 1.0, "artifacts": 1.0, "status": "failed",
		"error": "ZeroDivisionError: division by zero"} {
		if got := textsOf(summary, "executions", field); len(got) != 1 || got[0] != fmt.Sprint(want) {
			t.Errorf("summary: got %s %q, want %v", field, got, want)
		}
	}
	if strings.Contains(string(summary.text), `"stdout"`) {
		t.Errorf("summary: got outputs: %s", summary.text)
	}
	for _, path := range []string{"/audit", "/system"} {
		wantProblem(t, c.do(t, "GET", path, nil), http.StatusForbidden, "forbidden", "admin")
	}
	system := admin.ok(t, "GET", "/system", nil)
	if system.get("isolation") == "" || system.get("sandboxes.max") == nil ||
		system.get("history.database_bytes") == 0.0 {
		t.Errorf("/system: got %s", system.text)
	}
	pools, _ := system.get("warm_pools").([]any)
	inUse := 0.0
	for _, each := range pools {
		pool, _ := each.(map[string]any)
		waiting, _ := pool["waiting"].(map[string]any)
		now, most := waiting["now"].(float64), waiting["max"].(float64)
		if pool["environment"] != "default" || pool["name"] == "" || pool["warm"] != true || most < 1 || now > most {
			t.Errorf("/system: got the pool %v", pool)
		}
		inUse += pool["in_use"].(float64)
	}
	if len(pools) == 0 || inUse == 0 {
		t.Errorf("/system: got %d guests in use of the pools %v, want the test's sandbox", int(inUse), pools)
	}
}

// The sums by fingerprint have the statements of all users for an admin, and of a user only the user's own.
func TestTopStatementsAreSummedByFingerprint(t *testing.T) {
	t.Parallel()
	c, other := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	for n, user := range []client{c, other} {
		user.run(t, user.create(t, map[string]any{"write_policy": "capture"}), fmt.Sprintf(`
def attempt(sql, params=None):
    try:
        db_query(sql, params)
    except DatabaseError:
        pass
for n in range(%d):
    attempt(f"SELECT id AS top_read FROM products WHERE id <= {n + 1}")
attempt("SELECT 1 / (id - id) AS top_failed FROM products")
attempt("SELECT pg_sleep(1) AS top_refused")
attempt("SELECT lo_unlink(1) AS top_refused")
attempt("UPDATE products SET name = :name WHERE id > 0 RETURNING id AS top_captured", {"name": "x"})`, 3+n))
	}
	// sums returns the sums of this test's statements, by the alias in their text.
	sums := func(user client, query string) map[string]sandbox.StatementStatistics {
		t.Helper()
		var page struct{ Statements []sandbox.StatementStatistics }
		if err := json.Unmarshal(user.ok(t, "GET", "/statements/top?limit=1000"+query, nil).text, &page); err != nil {
			t.Fatal(err)
		}
		out := map[string]sandbox.StatementStatistics{}
		for _, s := range page.Statements {
			if _, alias, found := strings.Cut(s.SQL, "AS top_"); found {
				name, _, _ := strings.Cut(alias, " ")
				if name == "refused" {
					name += strings.ReplaceAll(s.SQL[len("SELECT"):strings.Index(s.SQL, "(")], " ", "-")
				}
				out[name] = s
			}
		}
		return out
	}
	type counts struct {
		calls, rows, failed, refused int64
		reasons                      string
		users                        int
	}
	check := func(who string, got map[string]sandbox.StatementStatistics, want map[string]counts) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("%s: got %d statements, want %d: %v", who, len(got), len(want), got)
		}
		for name, w := range want {
			s := got[name]
			if g := (counts{s.Calls, s.Rows, s.Failed, s.Refused, fmt.Sprint(s.Reasons), s.Users}); g != w {
				t.Errorf("%s: %s: got %+v, want %+v", who, name, g, w)
			}
			if s.MeanMS < 0 || s.P95MS > s.MaxMS || s.MeanMS > s.MaxMS || s.LastAt.IsZero() || s.Fingerprint == "" ||
				math.Abs(s.TotalMS-s.MeanMS*float64(s.Calls)) > 0.001 {
				t.Errorf("%s: %s: got the times %+v, want a mean and a p95 of at most max_ms", who, name, s)
			}
		}
	}
	const refused = "map[function-not-allowed:%d]"
	of := func(users int, calls, rows int64) map[string]counts {
		n, reasons := int64(users), fmt.Sprintf(refused, users)
		return map[string]counts{
			"read":              {calls, rows, 0, 0, "map[]", users},
			"failed":            {n, 0, n, 0, "map[]", users},
			"refused-pg_sleep":  {n, 0, 0, n, reasons, users},
			"refused-lo_unlink": {n, 0, 0, n, reasons, users},
			"captured":          {n, 0, 0, 0, "map[]", users}, // its rows are an estimate
		}
	}
	check("a user", sums(c, ""), of(1, 3, 1+2+3))
	check("another user", sums(other, ""), of(1, 4, 1+2+3+4))
	check("an admin", sums(admin, ""), of(2, 7, 16))
	name, _ := c.ok(t, "GET", "/me", nil).get("user_id").(string)
	second, _ := other.ok(t, "GET", "/me", nil).get("user_id").(string)
	if got, want := sums(admin, "")["read"].MainUsers, []string{second, name}; !slices.Equal(got, want) {
		t.Errorf("an admin: got the users %q, want %q, who sent it more often first", got, want)
	}
	if got, want := sums(c, "")["read"].MainUsers, []string{name}; !slices.Equal(got, want) {
		t.Errorf("a user: got the users %q, want %q", got, want)
	}
	check("an admin of one user", sums(admin, "&user_id="+url.QueryEscape(name)), of(1, 3, 6))
	for order, first := range map[string]func(sandbox.StatementStatistics) float64{
		"total": func(s sandbox.StatementStatistics) float64 { return s.TotalMS },
		"calls": func(s sandbox.StatementStatistics) float64 { return float64(s.Calls) },
		"mean":  func(s sandbox.StatementStatistics) float64 { return s.MeanMS },
		"p95":   func(s sandbox.StatementStatistics) float64 { return s.P95MS },
		"rows":  func(s sandbox.StatementStatistics) float64 { return float64(s.Rows) },
	} {
		var page struct{ Statements []sandbox.StatementStatistics }
		a := c.ok(t, "GET", "/statements/top?order="+order, nil)
		if err := json.Unmarshal(a.text, &page); err != nil {
			t.Fatal(err)
		}
		descends := slices.IsSortedFunc(page.Statements, func(a, b sandbox.StatementStatistics) int {
			return cmp.Compare(first(b), first(a))
		})
		if len(page.Statements) != 5 || !descends {
			t.Errorf("order %s: got %s, want five statements, the largest first", order, a.text)
		}
	}
	if got := len(sums(c, "&since=2999-01-01T00:00:00Z")); got != 0 {
		t.Errorf("of the future: got %d statements, want 0", got)
	}
	wantProblem(t, c.do(t, "GET", "/statements/top?order=nothing", nil), 422, "invalid-input", "order")
}

// An admin's look at another user's records, and each change, is in the audit log once.
func TestAuditLogSaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	c, boss := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAdmin)
	id := c.create(t, nil)
	a := c.run(t, id, `open("/session/artifacts/a.txt", "w").write("x")`)
	execution, _ := a.get("execution_id").(string)
	artifact := textsOf(c.ok(t, "GET", "/artifacts", nil), "artifacts", "artifact_id")[0]
	c.ok(t, "GET", "/executions/"+execution, nil) // the user's own, which is not an entry
	boss.ok(t, "GET", "/executions/"+execution, nil)
	boss.ok(t, "GET", "/executions/"+execution, nil)
	if got := boss.do(t, "GET", "/artifacts/"+artifact, nil); got.status != http.StatusOK {
		t.Fatalf("download: got HTTP %d: %s", got.status, got.text)
	}
	key := boss.ok(t, "POST", "/keys", `{"name":"more"}`).get("id").(string)
	boss.ok(t, "DELETE", "/keys/"+key, nil)
	user, _ := boss.ok(t, "GET", "/me", nil).get("user_id").(string)
	entries := boss.ok(t, "GET", "/audit?user_id="+url.QueryEscape(user), nil)
	got := textsOf(entries, "entries", "action")
	objects := textsOf(entries, "entries", "object")
	want := []string{"revoked key/" + key, "created key/" + key, "exported artifact/" + artifact,
		"viewed execution/" + execution}
	for n := range got {
		got[n] += " " + objects[n]
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What an admin erases is nowhere any more; what runs cannot be erased.
func TestErasedExecutionIsGone(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, map[string]any{"record": "always"})
	write := `open("/session/artifacts/a.txt", "w").write("%s"); db_query("SELECT 1")`
	first, _ := c.run(t, id, fmt.Sprintf(write, "first")).get("execution_id").(string)
	second, _ := c.run(t, id, fmt.Sprintf(write, "second")).get("execution_id").(string)
	user, _ := c.ok(t, "GET", "/me", nil).get("user_id").(string)
	wantProblem(t, c.do(t, "DELETE", "/executions/"+second, nil), http.StatusForbidden, "forbidden", "admin")
	artifacts := textsOf(c.ok(t, "GET", "/artifacts?execution_id="+second, nil), "artifacts", "artifact_id")
	c.ok(t, "GET", "/executions/"+second+"/steps", nil)

	erased := admin.ok(t, "DELETE", "/executions/"+second, nil)
	for field, want := range map[string]float64{"executions": 1, "statements": 1, "artifacts": 1, "recordings": 1} {
		if erased.get("erased."+field) != want {
			t.Errorf("erased %s: got %v, want %v", field, erased.get("erased."+field), want)
		}
	}
	for _, path := range []string{"/executions/" + second, "/executions/" + second + "/steps",
		"/artifacts/" + artifacts[0]} {
		wantProblem(t, c.do(t, "GET", path, nil), http.StatusNotFound, "not-found")
	}
	if got := textsOf(c.ok(t, "GET", "/sandbox/"+id+"/artifacts", nil), "artifacts", "execution_id"); len(got) != 1 ||
		got[0] != first {
		t.Errorf("the file after the erasure of its second version: got those of %q, want that of %s", got, first)
	}
	wantProblem(t, admin.do(t, "DELETE", "/executions/"+second, nil), http.StatusNotFound, "not-found")

	path := "/users/" + url.PathEscape(user) + "/history"
	wantProblem(t, admin.do(t, "DELETE", path, nil), http.StatusConflict, "busy", "1 live sandboxes")
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	erased = admin.ok(t, "DELETE", path, nil)
	if erased.get("erased.executions") != 1.0 || erased.get("erased.sandboxes") != 1.0 {
		t.Errorf("a user: got %s, want 1 execution and 1 sandbox", erased.text)
	}
	if left := c.ok(t, "GET", "/sandbox/statistics", nil); left.get("statistics.total_executions") != 0.0 {
		t.Errorf("statistics of the erased user: got %s", left.text)
	}
}

// A person signs in with a key. Requests with the cookie from other origins are refused, and the cookie ends with the
// key.
func TestSignIn(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	key := map[string]any{"key": c.secret}
	signedIn := client{}.ok(t, "POST", "/login", key)
	set := signedIn.header.Get("Set-Cookie")
	if !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") ||
		strings.Contains(string(signedIn.text), c.secret) {
		t.Fatalf("got the cookie %q and %s", set, signedIn.text)
	}
	cookie, _, _ := strings.Cut(set, ";")
	code := map[string]any{"code": "6 * 7"}
	const run = "/sandbox/agent/quick-execute"
	for name, r := range map[string]struct {
		method, path  string
		body          any
		header, value string
		want          int
	}{
		"own page":     {"POST", "/api/v1" + run, code, "Sec-Fetch-Site", "same-origin", http.StatusOK},
		"read":         {"GET", "/me", nil, "Sec-Fetch-Site", "none", http.StatusOK},
		"other site":   {"POST", run, code, "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"other port":   {"POST", run, code, "Sec-Fetch-Site", "same-site", http.StatusForbidden},
		"other origin": {"DELETE", "/sandbox/x", nil, "Origin", "http://evil.test", http.StatusForbidden},
		"wrong key": {"POST", "/login", map[string]any{"key": "gh_wrong"}, "Sec-Fetch-Site", "none",
			http.StatusUnauthorized},
		"no key": {"POST", "/login", "{}", "Sec-Fetch-Site", "none", http.StatusUnprocessableEntity},
		"space as key": {"POST", "/login", map[string]any{"key": " "}, "Sec-Fetch-Site", "none",
			http.StatusUnauthorized},
		"login by link":  {"POST", "/login", key, "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"logout by link": {"POST", "/logout", nil, "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"header first":   {"GET", "/me", nil, "Authorization", "Bearer gh_wrong", http.StatusUnauthorized},
	} {
		if a := (client{}).do(t, r.method, r.path, r.body, "Cookie", cookie, r.header, r.value); a.status != r.want {
			t.Errorf("%s: got HTTP %d, want %d: %s", name, a.status, r.want, a.text)
		}
	}
	// A page of another origin may open a WebSocket, which begins with a GET.
	a := client{}.do(t, "GET", "/debug/sessions/x/dap", nil, "Cookie", cookie, "Origin", "http://evil.test",
		"Connection", "Upgrade", "Upgrade", "websocket")
	wantProblem(t, a, http.StatusForbidden, "forbidden", "another origin")
	out := client{}.ok(t, "POST", "/logout", nil)
	if set := out.header.Get("Set-Cookie"); !strings.Contains(set, "Max-Age=0") {
		t.Errorf("sign out: got the cookie %q", set)
	}
	admin.ok(t, "DELETE", "/keys/"+fmt.Sprint(c.ok(t, "GET", "/me", nil).get("key_id")), nil)
	if a := (client{}).do(t, "GET", "/me", nil, "Cookie", cookie); a.status != http.StatusUnauthorized {
		t.Errorf("after the key was revoked: got HTTP %d, want 401", a.status)
	}
}

// The feed tells of the user's executions, and a reader that comes back continues where it was.
func TestExecutionFeed(t *testing.T) {
	t.Parallel()
	c, other := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	const path = "/executions/events"
	feed := c.stream(t, "GET", path, nil)
	if !feed.lines.Scan() { // it has begun
		t.Fatalf("got HTTP %d and no line", feed.resp.StatusCode)
	}
	code := map[string]any{"code": "6 * 7"}
	other.ok(t, "POST", "/sandbox/agent/quick-execute", code)
	ran := c.ok(t, "POST", "/sandbox/agent/quick-execute", code).get("execution_id")
	began, _ := feed.next()
	if began.name != "began" || began.data["execution_id"] != ran || began.data["completed_at"] != nil ||
		began.data["code"] != "6 * 7" {
		t.Errorf("first event: got %+v, want began of %s", began, ran)
	}
	wantEnded := func(name string, e serverEvent) {
		t.Helper()
		if e.name != "ended" || e.data["execution_id"] != ran || e.data["status"] != "completed" {
			t.Errorf("%s: got %+v, want ended of %s", name, e, ran)
		}
	}
	ended, _ := feed.next()
	wantEnded("second event", ended)
	ended, _ = c.stream(t, "GET", path, nil, "Last-Event-ID", strconv.FormatInt(began.id, 10)).next()
	wantEnded("resumed", ended)
	if e, _ := c.stream(t, "GET", path, nil, "Last-Event-ID", "1").next(); e.name != "gap" {
		t.Errorf("after an event that is not held: got %+v, want gap", e)
	}
	wantProblem(t, c.do(t, "GET", path, nil, "Last-Event-ID", "x"), http.StatusUnprocessableEntity,
		"invalid-input", "event")
	// What is erased is not told any more.
	admin.ok(t, "DELETE", fmt.Sprint("/executions/", ran), nil)
	erased := c.stream(t, "GET", path, nil, "Last-Event-ID", strconv.FormatInt(began.id-1, 10))
	for _, event := range []string{"began", "ended"} {
		if e, _ := erased.next(); e.name != "gap" || e.data["code"] != nil || e.data["execution_id"] != nil {
			t.Errorf("%s, after the erasure: got %+v, want a gap", event, e)
		}
	}
}

// A page of many summaries is a sixth of its size for a client that reads gzip, and the same JSON.
func TestSummariesAreCompressed(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	list := func(encoding string) answer {
		a := c.do(t, "GET", "/executions", nil, "Accept-Encoding", encoding)
		if a.status != http.StatusOK || a.header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("got HTTP %d, Vary %q, want 200 and Accept-Encoding", a.status, a.header.Get("Vary"))
		}
		return a
	}
	c.run(t, id, "1")
	if got := list("gzip").header.Get("Content-Encoding"); got != "" {
		t.Errorf("a short list: got the encoding %q, want none", got)
	}
	for range 15 {
		c.run(t, id, "# "+strings.Repeat("a comment ", 20)+"\n1")
	}
	plain, small := list("identity"), list("gzip")
	if got := plain.header.Get("Content-Encoding"); got != "" {
		t.Errorf("a client without gzip: got the encoding %q, want none", got)
	}
	if got := small.header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("got the encoding %q, want gzip", got)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(small.text))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil || !bytes.Equal(text, plain.text) {
		t.Errorf("got %.200s, %v, want %.200s", text, err, plain.text)
	}
	if len(small.text)*4 > len(plain.text) {
		t.Errorf("got %d bytes of %d, want at most a quarter", len(small.text), len(plain.text))
	}
}

// A sandbox has a record of its own with its limits, which outlives it. Other users do not see it.
func TestSandboxDetails(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"max_rows": 77, "write_policy": "capture"})
	c.run(t, id, "# Count\n1")
	path := "/sandboxes/" + id
	for _, l := range []struct {
		state     string
		isolation any
	}{{"active", admin.ok(t, "GET", "/system", nil).get("isolation")}, {"deleted", nil}} {
		if l.state == "deleted" {
			c.ok(t, "DELETE", "/sandbox/"+id, nil)
		}
		got := c.ok(t, "GET", path, nil)
		for field, want := range map[string]any{"sandbox_id": id, "status": l.state, "config.max_rows": 77.0,
			"config.write_policy": "capture", "runs": 1.0, "first_run": "# Count\n1", "isolation": l.isolation} {
			if got.get(field) != want {
				t.Errorf("%s: got %s %v, want %v", l.state, field, got.get(field), want)
			}
		}
		if hasEnd := got.get("ended_at") != nil; hasEnd != (l.state == "deleted") {
			t.Errorf("%s: got %s", l.state, got.text)
		}
	}
	wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "GET", path, nil), http.StatusNotFound, "not-found")
	admin.ok(t, "GET", path, nil)
	viewed := admin.ok(t, "GET", "/audit?action=viewed&object=sandbox/"+id, nil)
	if entries, _ := viewed.get("entries").([]any); len(entries) != 1 {
		t.Errorf("got %s, want one entry of the audit log", viewed.text)
	}
}

// Statements are found by the tables that they read, also through a view, and not by a WITH query of that name.
func TestStatementsOfATable(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.run(t, c.create(t, map[string]any{"write_policy": "capture"}), `
for sql in [
    "SELECT count(*) FROM customer_revenue",
    "SELECT count(*) FROM public.orders WHERE id IN (SELECT order_id FROM order_items)",
    "WITH orders AS (SELECT 1 AS id) SELECT count(*) FROM orders",
    "SELECT 'orders' AS text",
    "UPDATE orders SET status = 'x' WHERE id = 1",
    "SELECT 1 / (id - id) AS failed FROM order_items",
    "DELETE FROM orders; SELECT 1",
]:
    try:
        db_query(sql)
    except DatabaseError:
        pass`)
	for table, want := range map[string]string{
		"orders": "5 2 1", "customers": "1", "customer_revenue": "1", "order_items": "6 2", `"orders"`: "5 2 1",
		"users": "", "order": "", "public.orders": "",
	} {
		list := c.ok(t, "GET", "/statements?table="+url.QueryEscape(table), nil)
		if got := strings.Join(textsOf(list, "statements", "number"), " "); got != want {
			t.Errorf("%s: got the statements %q, want %q", table, got, want)
		}
		top := c.ok(t, "GET", "/statements/top?table="+url.QueryEscape(table), nil)
		if got := len(textsOf(top, "statements", "calls")); got != len(strings.Fields(want)) {
			t.Errorf("%s: got %d sums, want %d", table, got, len(strings.Fields(want)))
		}
	}
	list := c.ok(t, "GET", "/statements?table=customer_revenue", nil)
	if got := textsOf(list, "statements", "tables"); fmt.Sprint(got) != "[[customer_revenue customers orders]]" {
		t.Errorf("got the tables %v of %s", got, list.text)
	}
}
