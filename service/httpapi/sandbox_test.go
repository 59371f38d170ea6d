package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/service/help"
)

func TestSandboxKeepsVariablesAndHistory(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "/api/v1"} {
		c := newUser(t, sandbox.RoleAgent)
		c.prefix = root
		created := c.ok(t, "POST", "/sandbox/create", map[string]any{"max_rows": 5000})
		id, _ := created.get("sandbox_id").(string)
		if created.get("status") != "created" || created.get("data.config.max_rows") != 5000.0 ||
			created.get("data.config.max_memory_mb") != 256.0 || created.get("expires_at") == nil {
			t.Errorf("create: got %s", created.text)
		}
		nested := c.ok(t, "POST", "/sandbox/create", map[string]any{"config": map[string]any{"max_rows": 5000}})
		c.ok(t, "DELETE", fmt.Sprint("/sandbox/", nested.get("sandbox_id")), nil)
		if nested.get("data.config.max_rows") != 5000.0 || nested.get("data.config.max_memory_mb") != 256.0 {
			t.Errorf("create with config: got %s", nested.text)
		}
		first := c.run(
			t,
			id,
			"import pandas as pd\nrows = await db_query('SELECT user_id, action FROM user_activities WHERE timestamp > :since', {'since': datetime.now(timezone.utc) - timedelta(days=7)})\n"+
				"top = pd.DataFrame(rows).groupby('user_id').size().nlargest(10)\nprint(len(top))\ndebug('done')\n__result__ = top.to_dict()",
		)
		if result, _ := first.get("result").(map[string]any); first.get("status") != "completed" || len(result) != 10 ||
			first.get("stdout") != "10\n" {
			t.Fatalf("the analysis: got %s", first.text)
		}
		if queries, _ := first.get("queries").([]any); len(queries) != 1 ||
			!strings.Contains(string(first.text), `"debug_info":{"logs":[{`) {
			t.Errorf("got %s, want its query and note", first.text)
		}
		if a := c.run(t, id, "len(top)"); a.get("result") != 10.0 {
			t.Errorf("the next execution: got %s, want the variable", a.text)
		}
		if a := c.run(t, id, "x = 1\nx.nothing"); a.get("status") != "failed" ||
			a.get("exception.type") != "AttributeError" || a.get("exception.line") != 2.0 {
			t.Errorf("a failure: got %s", a.text)
		}
		if a := c.run(t, id, "await db_query('UPDATE documents SET processed = true')"); a.get("status") != "failed" ||
			a.get("exception.type") != "ReadOnlyError" {
			t.Errorf("an UPDATE: got %s", a.text)
		}
		if a := c.run(t, id, "def f(:\n  pass"); a.get("exception.type") != "SyntaxError" ||
			a.get("exception.line") != 1.0 || a.get("exception.column") == nil {
			t.Errorf("a syntax error: got %s", a.text)
		}
		status := c.ok(t, "GET", "/sandbox/"+id+"/status", nil)
		if status.get("status") != "active" || status.get("data.variables.x") == nil ||
			status.get("data.resource_usage.num_threads") == nil ||
			status.get("data.sandbox_metadata.created_at") == nil {
			t.Errorf("status: got %s", status.text)
		}
		past := c.ok(t, "GET", "/sandbox/"+id+"/history?limit=2", nil)
		if lines, _ := past.get("history").([]any); past.get("total_executions") != 5.0 || len(lines) != 2 {
			t.Errorf("history: got %s", past.text)
		}
		c.ok(t, "DELETE", "/sandbox/"+id, nil)
		wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1"}`), http.StatusGone, "gone", "deleted")
		if past := c.ok(t, "GET", "/sandbox/"+id+"/history", nil); past.get("total_executions") != 5.0 {
			t.Errorf("history of the deleted sandbox: got %s", past.text)
		}
		statistics := c.ok(t, "GET", "/sandbox/statistics", nil)
		if statistics.get("statistics.active_sandboxes") != 0.0 ||
			statistics.get("statistics.successful_executions").(float64) < 2 {
			t.Errorf("statistics: got %s", statistics.text)
		}
	}
}

// Code of any size reaches the guest, however JSON encodes it, and large output is complete.
func TestCodeOfAnySize(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, size := range []int{1, 8 << 10, 8<<10 + 1, 16 << 10, 99_000} {
		for _, one := range []string{"x", "\x01", "\u2028"} {
			n := max((size-len("len('')"))/len(one), 1)
			if a := c.run(t, id, "len('"+strings.Repeat(one, n)+"')"); a.get("result") != float64(n) {
				t.Errorf("%d times %q: got %.300s", n, one, a.text)
			}
			if a := c.run(t, id, fmt.Sprintf("print('x' * %d, end='')", 3*n)); a.get("stdout") != strings.Repeat("x",
				3*n) {
				t.Errorf("printing %d bytes: got %.300s", 3*n, a.text)
			}
		}
	}
}

// Output after a note is read while the execution runs, so it fills no pipe.
func TestLargeOutputAfterANoteIsComplete(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"max_execution_time": 60})
	for range 5 { // the note is sent in most of them
		if a := c.run(t, id, "debug('first')\nprint('x' * 300_000, end='')"); a.get("status") != "completed" ||
			a.get("stdout") != strings.Repeat("x", 300_000) {
			t.Errorf("got %.300s, want all 300000 bytes", a.text)
		}
	}
}

// An execution may take longer than huma's timeout of 5 s for reading a body.
func TestExecutionMayOutlastTheReadTimeout(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "import time\ntime.sleep(6)\n'slept'"})
	if a.get("status") != "completed" || a.get("result") != "slept" {
		t.Errorf("got %s, want the result", a.text)
	}
}

func TestContextKeepsDigits(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.ok(t, "POST", "/sandbox/agent/quick-execute",
		`{"code":"[str(n), context['n'] == n, context.n == n]","context":{"n":12345678901234567890123}}`)
	if string(mustJSON(t, a.get("result"))) != `["12345678901234567890123",true,true]` {
		t.Errorf("got %s, want all digits", a.text)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestExamplesAndTemplatesRunUnchanged(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	answer := c.ok(t, "GET", "/sandbox/"+id+"/help/examples", nil)
	examples, _ := answer.get("examples").([]any)
	if len(examples) < 5 || len(examples) != len(help.Examples()) {
		t.Errorf("got %d examples, want all of the service's", len(examples))
	}
	for _, e := range examples {
		example := e.(map[string]any)
		if a := c.run(t, id, example["code"].(string)); a.get("status") != "completed" || a.get("result") == nil {
			t.Errorf("%s: got %s", example["title"], a.text)
		}
	}
	for kind, used := range map[string]string{"data_processor": "data_processor", "text_analyzer": "text_analyzer",
		"database_connector": "database_connector", "no such": "data_processor"} {
		template := c.ok(t, "POST", "/sandbox/"+id+"/templates/processor", map[string]any{"processor_type": kind})
		code, _ := template.get("template_code").(string)
		if template.get("processor_type") != used {
			t.Errorf("%s: got %s", kind, template.text)
		}
		if a := c.run(t, id, code); a.get("status") != "completed" || a.get("result") == nil {
			t.Errorf("template %s: got %s", kind, a.text)
		}
	}
	functions := c.ok(t, "GET", "/sandbox/"+id+"/help/functions", nil)
	for _, name := range []string{"db_query", "inspect_var", "get_sandbox_state", "pandas", "max_memory_mb"} {
		if !strings.Contains(string(functions.text), name) {
			t.Errorf("the help does not mention %s", name)
		}
	}
}

func TestAnalyzeData(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.ok(t, "POST", "/sandbox/agent/analyze-data?table_name=user_activities&analysis_type=summary&limit=7", nil)
	if sample, _ := a.get("result.sample_data").([]any); len(sample) != 7 || a.get("result.total_rows") != 25000.0 ||
		!strings.Contains(string(a.text), `"null_count":`) {
		t.Errorf("summary: got %.2000s", a.text)
	}
	a = c.ok(t, "POST", "/sandbox/agent/analyze-data", map[string]any{"table_name": "orders",
		"analysis_type": "schema"})
	if a.get("result.column_count") != 5.0 || a.get("result.table_name") != "orders" {
		t.Errorf("schema: got %s", a.text)
	}
	a = c.ok(t, "POST", "/sandbox/agent/analyze-data", map[string]any{"analysis_type": "tables"})
	if tables, _ := a.get("result.tables").([]any); len(tables) < 10 {
		t.Errorf("tables: got %s", a.text)
	}
	for _, table := range []string{"customers", "products", "documents", "users", "customer_revenue", "raw_data"} {
		if a := c.ok(t, "POST", "/sandbox/agent/analyze-data",
			map[string]any{"table_name": table}); a.get("status") != "completed" {
			t.Errorf("%s: got %s", table, a.text)
		}
	}
	a = c.ok(t, "POST", "/sandbox/agent/analyze-data", map[string]any{"table_name": `x"; DROP TABLE users; --`})
	if a.get("status") != "failed" || !strings.Contains(string(a.text), "there is no table") {
		t.Errorf("a hostile table name: got %s", a.text)
	}
}

func TestDatabaseQueryRoute(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	path := "/sandbox/" + id + "/database/query"
	a := c.ok(
		t,
		"POST",
		path,
		`{"query":"SELECT 1 AS a, 2 AS a, 123456789012345678.1234567890::numeric AS n, 'NaN'::float8 AS f, '{\"k\":[1, 2]}'::jsonb AS j, NULL AS z, :big::int8 AS big","parameters":{"big":9007199254740993}}`,
	)
	for _, want := range []string{`"a":1`, `"a_2":2`, `"n":123456789012345678.1234567890`, `"type":"float"`,
		`"j":{"k":[1, 2]}`, `"z":null`, `"big":9007199254740993`, `"count":1`, `"truncated":false`} {
		if !strings.Contains(strings.ReplaceAll(string(a.text), `": `, `":`), want) {
			t.Errorf("want %s in %s", want, a.text)
		}
	}
	wantProblem(t, c.do(t, "POST", path, `{"query":"DELETE FROM users"}`), http.StatusUnprocessableEntity,
		"query-refused", "read-only")
	wantProblem(t, c.do(t, "POST", path, `{"query":"SELECT * FROM usrs"}`), http.StatusUnprocessableEntity,
		"query-refused", "users")
	schema := c.ok(t, "GET", "/sandbox/"+id+"/database/schema", nil)
	if schema.get("schema.total_tables").(float64) < 10 || schema.get("schema.schema.users") == nil {
		t.Errorf("schema: got %s", schema.text)
	}
	cut := c.create(t, map[string]any{"max_rows": 3})
	if a := c.ok(t, "POST", "/sandbox/"+cut+"/database/query",
		`{"query":"SELECT id FROM users"}`); a.get("count") != 3.0 || a.get("truncated") != true {
		t.Errorf("max_rows: got %s", a.text)
	}
	list := c.ok(t, "GET", "/executions?text=usrs", nil)
	if found, _ := list.get("executions").([]any); len(found) != 1 {
		t.Errorf("got %s, want the refused query on record", list.text)
	}
}

func TestBusySandboxCanBeCancelled(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	done := make(chan answer, 1)
	go func() {
		done <- c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"import time\nwhile True: time.sleep(0.01)"}`)
	}()
	var running []any
	for len(running) == 0 { // its row exists as soon as it runs
		running, _ = c.ok(t, "GET", "/executions?status=running&sandbox_id="+id, nil).get("executions").([]any)
	}
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1"}`), http.StatusConflict, "busy")
	if a := c.ok(t, "GET", "/sandbox/"+id+"/status", nil); a.get("data.status") != "running" {
		t.Errorf("status of a busy sandbox: got %s", a.text)
	}
	eid := running[0].(map[string]any)["execution_id"].(string)
	wantProblem(t, newUser(t, sandbox.RoleDeveloper).do(t, "POST", "/executions/"+eid+"/cancel", nil),
		http.StatusNotFound, "not-found")
	c.ok(t, "POST", "/executions/"+eid+"/cancel", nil)
	if a := <-done; a.get("status") != "cancelled" {
		t.Errorf("the cancelled execution: got %s", a.text)
	}
	if a := c.ok(t, "GET", "/executions/"+eid, nil); a.get("status") != "cancelled" || a.get("completed_at") == nil {
		t.Errorf("its record: got %s", a.text)
	}
	if a := c.run(t, id, "1+1"); a.get("result") != 2.0 {
		t.Errorf("the next execution: got %s, want 2", a.text)
	}
}

// Deleting a sandbox cancels its execution, and the record says so.
func TestDeleteCancelsTheRunningExecution(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	done := make(chan answer, 1)
	go func() { done <- c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"while True: pass"}`) }()
	var running []any
	for len(running) == 0 {
		running, _ = c.ok(t, "GET", "/executions?status=running&sandbox_id="+id, nil).get("executions").([]any)
	}
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	if a := <-done; a.get("status") != "cancelled" {
		t.Errorf("got %s, want it cancelled", a.text)
	}
}

// A status request must not make a sandbox busy for executions.
func TestStatusDoesNotMakeASandboxBusy(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-stop:
				return
			default:
				c.do(t, "GET", "/sandbox/"+id+"/status", nil)
			}
		}
	}()
	for range 100 {
		if a := c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1+1"}`); a.get("result") != 2.0 {
			t.Errorf("got HTTP %d %s, want 2", a.status, a.text)
			break
		}
	}
	close(stop)
	<-over
}

func TestDisconnectedClientCancelsItsExecution(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	req, err := http.NewRequest("POST", serverURL+"/sandbox/"+id+"/execute",
		strings.NewReader(`{"code":"while True: pass"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	req.Header.Set("Content-Type", "application/json")
	ctx, cancel := contextOf(t)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req.WithContext(ctx)); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	list := func(status string) int {
		found, _ := c.ok(t, "GET", "/executions?status="+status+"&sandbox_id="+id, nil).get("executions").([]any)
		return len(found)
	}
	for list("running") == 0 {
	}
	cancel()
	<-gone
	for list("running") > 0 {
	}
	if list("cancelled") != 1 {
		t.Error("the execution of a disconnected client is not recorded as cancelled")
	}
}

// Concurrent calls on one sandbox each get a clear answer.
func TestConcurrentCallsOnOneSandbox(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 5 {
				if a := c.do(t, "POST", "/sandbox/"+id+"/execute",
					`{"code":"await db_query('SELECT 1 AS n')"}`); a.status != http.StatusOK &&
					a.status != http.StatusConflict {
					t.Errorf("execute: got HTTP %d, want 200 or 409: %s", a.status, a.text)
				}
				if a := c.do(t, "POST", "/sandbox/"+id+"/database/query",
					`{"query":"SELECT 1"}`); a.status != http.StatusOK {
					t.Errorf("query: got HTTP %d, want 200: %s", a.status, a.text)
				}
				if a := c.do(t, "GET", "/sandbox/"+id+"/status", nil); a.status != http.StatusOK {
					t.Errorf("status: got HTTP %d, want 200: %s", a.status, a.text)
				}
			}
		}()
	}
	group.Wait()
}
