package httpapi_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// now is code whose rows differ each time that PostgreSQL is asked.
const now = `rows = db_query("SELECT clock_timestamp()::text AS at, :n::int AS n", {"n": 7})
print(rows[0]["at"], rows[0]["n"])
len(rows[0]["at"])`

func (c client) replay(t *testing.T, of answer, body map[string]any) answer {
	t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	return c.ok(t, "POST", "/executions/"+of.get("execution_id").(string)+"/replay", body)
}

func wantGrade(t *testing.T, a answer, want string) {
	t.Helper()
	if got := a.get("replay.grade"); got != want {
		t.Errorf("got the grade %v, want %s: %s", got, want, a.text)
	}
}

// A replay gets the rows that its original got, and is an execution of its own.
func TestReplayGetsTheRowsOfItsOriginal(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": now})
	again := c.replay(t, first, nil)
	wantGrade(t, again, "identical")
	if again.get("stdout") != first.get("stdout") || again.get("execution_id") == first.get("execution_id") {
		t.Errorf("got %s, want an execution of its own with the output of %s", again.text, first.text)
	}
	record := c.finished(t, again.get("execution_id").(string))
	if record.get("kind") != "replay" || record.get("replay.of") != first.get("execution_id") ||
		!strings.Contains(string(record.text), `"status":"ok","rows":1,`) {
		t.Errorf("got the record %s", record.text)
	}
	live := c.replay(t, first, map[string]any{"rows": "now"})
	wantGrade(t, live, "differs")
	if text := string(mustJSON(t, live.get("replay"))); !strings.Contains(text, `"statements[1].rows"`) ||
		!strings.Contains(text, `"stdout"`) || !strings.Contains(text, `"database"`) {
		t.Errorf("got %s, want the rows and the output as differences", text)
	}
}

// The earlier executions of a session run before the replay of a later one, also after a failure.
func TestReplayOfASessionRunsWhatRanBefore(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(t, id, now)
	c.run(t, id, "total = 40\ndef double(n): return 2 * n\nopen('notes.txt', 'w').write(rows[0]['at'])")
	c.run(t, id, "total += 1\n1 / 0")
	last := c.run(t, id, "total += 1\nprint(total, double(total), open('notes.txt').read() == rows[0]['at'])\n"+
		"import sys; sys._getframe().f_code.co_filename")
	again := c.replay(t, last, nil)
	wantGrade(t, again, "identical")
	if again.get("replay.restored.executions") != 3.0 || again.get("replay.restored.exact") != true {
		t.Errorf("got %s, want 3 executions restored exactly", mustJSON(t, again.get("replay")))
	}
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	wantGrade(t, c.replay(t, last, nil), "identical")
}

// Other code gets the same rows for the same statements, and rows of now for others.
func TestReplayOfOtherCode(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": now})
	other := c.replay(t, first, map[string]any{"code": "more = db_query('SELECT 3 AS n')\n" + now + " + more[0]['n']"})
	if other.get("replay.edited") != true || other.get("stdout") != first.get("stdout") ||
		other.get("result") != first.get("result").(float64)+3 {
		t.Errorf("got %s, want the rows of %s", other.text, first.text)
	}
	wantGrade(t, other, "differs")
}

// What if a statement had returned other rows? They have the types of those that it returned.
func TestReplayWithOtherRows(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": `import decimal
one = db_query("SELECT 1 AS n")
rows = db_query("SELECT 1.50 AS price, DATE '2024-02-03' AS \"the day\", ARRAY['a', 'b'] AS list")
frame = db_frame("SELECT 2 AS x")
print([type(v).__name__ for v in rows[0].values()], len(rows), one, int(frame.x.sum()))
sum((row["price"] or 0 for row in rows), decimal.Decimal(0))`})
	edits := []any{
		map[string]any{"statement": 2, "rows": []any{map[string]any{"price": "2.25", "the day": "2025-01-01"},
			map[string]any{"price": 1, "list": []any{"c"}, "the day": nil}}},
		map[string]any{"statement": 3, "rows": []any{map[string]any{"x": 5}, map[string]any{"x": 6}}},
	}
	other := c.replay(t, first, map[string]any{"edits": edits})
	if want := "['Decimal', 'date', 'NoneType'] 2 [{'n': 1}] 11\n"; other.get("stdout") != want ||
		other.get("result") != 3.25 && other.get("result") != "3.25" || other.get("replay.edited") != true {
		t.Errorf("got %s, want the output %q and the result 3.25", other.text, want)
	}
	path := "/executions/" + first.get("execution_id").(string) + "/replay"
	for _, bad := range []struct {
		edit any
		want string
	}{
		{map[string]any{"statement": 4, "rows": []any{}}, "no rows of statement 4"},
		{map[string]any{"statement": 2, "rows": []any{map[string]any{"prize": 1}}}, "returned price, the day"},
		{map[string]any{"statement": 2, "rows": map[string]any{}}, "list of objects"},
	} {
		wantProblem(t, c.do(t, "POST", path, map[string]any{"edits": []any{bad.edit}}), http.StatusUnprocessableEntity,
			"invalid-input", bad.want)
	}
	empty := c.replay(t, first, map[string]any{"edits": []any{map[string]any{"statement": 2, "rows": []any{}}}})
	if empty.get("status") != "failed" || !strings.Contains(string(empty.text), "IndexError") {
		t.Errorf("got %s, want the IndexError of no rows", empty.text)
	}
	wrong := c.replay(t, first, map[string]any{"edits": []any{
		map[string]any{"statement": 2, "rows": []any{map[string]any{"the day": "no day"}}}}})
	if wrong.get("status") != "failed" || !strings.Contains(string(wrong.text), "no day") {
		t.Errorf("got %s, want PostgreSQL's error for the value", wrong.text)
	}
}

// Two executions are compared value by value.
func TestDiffOfExecutions(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	quick := func(code string) string {
		e := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})
		return e.get("execution_id").(string)
	}
	one := quick("print('a')\nprint('b')\n[{'city': 'Bonn', 'n': 1}, {'city': 'Köln', 'n': 2.5}]")
	two := quick("print('a')\nprint('c')\n[{'city': 'Bonn', 'n': 1}, {'city': 'Köln', 'n': 3, 'new': True}]")
	got := compactJSON(c.ok(t, "GET", "/executions/"+one+"/diff/"+two, nil).get("differences"))
	for _, want := range []string{`{"original":"2.5","part":"result[1].n","replay":"3"}`,
		`{"original":"","part":"result[1].new","replay":"true"}`,
		`{"line":2,"original":"b","part":"stdout","replay":"c"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if same := c.ok(t, "GET", "/executions/"+one+"/diff/"+one, nil); string(same.text) != `{"differences":[]}`+"\n" {
		t.Errorf("got %q, want no differences", same.text)
	}
}

// A replay that asks something else than its original ends there, and says so.
func TestReplayDiverges(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "import threading, time\nn = []\nthread = threading.Thread(target=lambda: n.append(time.time_ns()))\n" +
			"thread.start()\nthread.join()\ndb_query(f'SELECT {n[0]} AS n')"})
	again := c.replay(t, first, nil)
	wantGrade(t, again, "diverged")
	if again.get("replay.diverged.request") != 1.0 ||
		again.get("replay.diverged.original") == again.get("replay.diverged.replay") {
		t.Errorf("got %s, want both statements", mustJSON(t, again.get("replay")))
	}
}

// A replay names the threads of its original as a source of differences, and only where the code started some.
func TestReplayNamesThreads(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for code, want := range map[string]any{
		"import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()": []any{"threads"},
		"import pandas as pd\npd.DataFrame({'a': range(9)}).to_html()":              nil,
	} {
		first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})
		again := c.replay(t, first, nil)
		if got := again.get("replay.sources"); !reflect.DeepEqual(got, want) {
			t.Errorf("got the sources %v, want %v: %s", got, want, again.text)
		}
	}
}

// A replay repeats the times of the directories and files that the session has.
func TestReplayHasTheTimesOfFiles(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "import os\nopen('a.txt', 'w').write('x')\n" +
			"print([os.stat(p).st_mtime_ns for p in ('a.txt', '/session', '/data/b.csv')])",
		"files": []any{map[string]any{"path": "b.csv", "content": "x"}}})
	again := c.replay(t, first, nil)
	wantGrade(t, again, "identical")
	if again.get("replay.sources") != nil {
		t.Errorf("got %s, want no sources", mustJSON(t, again.get("replay")))
	}
}

// A replay can be recorded although its original was not.
func TestReplayCanBeRecorded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": now})
	again := c.replay(t, first, map[string]any{"record": true})
	wantGrade(t, again, "identical")
	steps := c.ok(t, "GET", "/executions/"+again.get("execution_id").(string)+"/steps", nil)
	if steps.get("total_steps") != 3.0 || !strings.Contains(string(steps.text), "clock_timestamp") {
		t.Errorf("got %s, want the three steps of the code", steps.text)
	}
}

// Each kind of statement that code may send is answered from the log.
func TestReplayOfEachKindOfStatement(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for _, sql := range []string{"SHOW server_version", "VALUES (clock_timestamp())", "TABLE categories",
		"EXPLAIN SELECT 1", "/* a */ WITH t AS (SELECT clock_timestamp() AS at) SELECT * FROM t -- b",
		"SELECT * FROM users LIMIT :n"} {
		code := "print(db_query(sql, {'n': 2} if ':n' in sql else None))"
		first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code,
			"context": map[string]any{"sql": sql}})
		if again := c.replay(t, first, nil); first.get("status") != "completed" {
			t.Errorf("%s: got %s, want it completed", sql, first.text)
		} else {
			wantGrade(t, again, "identical")
		}
	}
}

// Files that came with the code come with its replay.
func TestReplayHasTheFilesOfItsOriginal(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code":  "print(open('/data/a.csv').read())",
		"files": []any{map[string]any{"path": "a.csv", "content": "x,y\n1,2"}}})
	wantGrade(t, c.replay(t, first, nil), "identical")
}

// A key restricts the modules of a replay as those of a new sandbox, even if another key of the user ran the original.
func TestReplayHasTheModulesOfTheKey(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute?include=user_id", map[string]any{"code": "1"})
	made := admin.ok(t, "POST", "/keys", map[string]any{"name": "restricted", "role": "developer",
		"user_id": first.get("user_id"), "blocked_modules": []string{"json"}})
	restricted := client{secret: made.get("key").(string)}
	again := restricted.replay(t, first, map[string]any{"code": "import json\n1"})
	if again.get("status") != "failed" || !strings.Contains(string(again.text), "json") {
		t.Errorf("got %s, want the import refused", again.text)
	}
	wantGrade(t, restricted.replay(t, first, nil), "identical")
}

// Only the owner and admins can replay, and only what ran.
func TestReplayIsRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
	path := "/executions/" + first.get("execution_id").(string) + "/replay"
	stranger := newUser(t, sandbox.RoleAgent)
	wantProblem(t, stranger.do(t, "POST", path, map[string]any{}), http.StatusNotFound, "not-found")
	wantGrade(t, admin.ok(t, "POST", path, map[string]any{}), "identical")
	c.ok(t, "POST", "/database/query", map[string]any{"query": "SELECT 1"})
	list := c.ok(t, "GET", "/executions?kind=database-query", nil)
	executions, _ := list.get("executions").([]any)
	if len(executions) != 1 {
		t.Fatalf("got %s, want the execution of the statement", list.text)
	}
	query := executions[0].(map[string]any)["execution_id"].(string)
	wantProblem(t, c.do(t, "POST", "/executions/"+query+"/replay", map[string]any{}), http.StatusUnprocessableEntity,
		"invalid-input", "cannot run again")
	admin.ok(t, "DELETE", "/executions/"+first.get("execution_id").(string), nil)
	wantProblem(t, c.do(t, "POST", path, map[string]any{}), http.StatusNotFound, "not-found")
}
