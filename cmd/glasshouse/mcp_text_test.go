package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/embedded"
)

// TestMCPHidesNoText calls every tool so that it succeeds, fails, cuts its answer, or answers about a run that
// continues. Several clients give a model the structured content of an answer instead of its text. An answer must
// therefore have no structured content, or one with the whole text.
func TestMCPHidesNoText(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	_, admin := start(t, binary(t), dir, withPackages())
	createWideTables(t, dir)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			testMCPHidesNoText(t, mcpClient{admin.newUser(t, "model-"+version), version})
		})
	}
}

// createWideTables gives the demo more columns than fit into an answer.
func createWideTables(t *testing.T, dir string) {
	t.Helper()
	url, err := embedded.URL(dir, embedded.RoleAdmin, embedded.DatabaseKnowledge)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	var columns []string
	for n := range 500 {
		columns = append(columns, fmt.Sprintf("a_long_name_of_column_%d int", n))
	}
	sql := fmt.Sprintf("CREATE TABLE wide (%s); GRANT SELECT ON wide TO %s", strings.Join(columns, ", "),
		embedded.RoleReader)
	if _, err := owner.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func testMCPHidesNoText(t *testing.T, c mcpClient) {
	type args = map[string]any
	var called []string
	call := func(tool string, arguments args, wants ...string) mcpAnswer {
		t.Helper()
		called = append(called, tool)
		a := c.tool(t, tool, arguments)
		for _, want := range wants {
			if !strings.Contains(a.text(), want) {
				t.Errorf("%s of %v: got %s, want %q in its text", tool, arguments, a.body, want)
			}
		}
		for _, content := range a.Result.Content {
			if fields := a.Result.StructuredContent; fields != nil && !strings.Contains(leaves(fields), content.Text) {
				t.Errorf("%s of %v: got structured content %v without the text %q; want none, or all of the text",
					tool, arguments, fields, content.Text)
			}
		}
		return a
	}
	execution := func(a mcpAnswer) args { return args{"execution_id": a.field("execution_id")} }
	with := func(a args, name string, value any) args { return args{"execution_id": a["execution_id"], name: value} }

	printed := call("run_python", args{"code": "print('seen')\n6 * 7"}, "seen\nresult: 42\n", "status=completed")
	session := printed.field("session_id")
	run := func(code string, wants ...string) mcpAnswer {
		t.Helper()
		return call("run_python", args{"session_id": session, "code": code}, wants...)
	}
	failed := execution(run("print('seen')\n{}['a']", "seen\nerror: KeyError", "status=failed"))
	cut := execution(run("for n in range(9999): print(n)", "left out; get_execution(", "status=completed"))
	drawn := run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('seen')", "seen\n", "status=completed")
	if len(drawn.Result.Content) != 2 {
		t.Errorf("a figure: got %d contents, want a text and an image", len(drawn.Result.Content))
	}
	call("run_python", args{"session_id": "none", "code": "1"}, "there is no such sandbox")

	for _, read := range []struct {
		arguments args
		want      string
	}{
		{execution(printed), "seen\nresult: 42\n"},
		{failed, "seen\nerror: KeyError"},
		{cut, "left out; get_execution("},
		{with(cut, "part", "stdout"), "go on with get_execution("},
		{with(cut, "part", "stderr"), "is empty"},
		{with(execution(drawn), "part", "output:1"), "Figure"},
		{args{"execution_id": "none"}, "there is no such execution"},
	} {
		call("get_execution", read.arguments, read.want)
	}
	call("explain_execution", failed, "KeyError")
	call("replay_execution", failed, "identical: ", "Before it ran 1 earlier execution", "status=failed")
	again := call("replay_execution", with(execution(printed), "code", "print('other')"), "differs: ",
		"  stdout, line 1\n    original  seen\n    replay    other\n", "execution_id=", "status=completed")
	call("get_execution", execution(again), "differs: ")
	call("replay_execution", with(execution(printed), "code", ""), "identical: ", "status=completed")
	call("replay_execution", args{"execution_id": "none"}, "there is no such execution")
	call("explain_execution", with(failed, "question", "line:1"), "needs a developer")
	asked := execution(run("rows = await db_query('SELECT 1 AS n')\nprint(rows[0]['n'])", "1\n", "status=completed"))
	edits := func(statement int) []any {
		return []any{args{"statement": statement, "rows": []any{args{"n": 5}}}}
	}
	call("replay_execution", with(asked, "edits", edits(1)), "stdout, line 1\n    original  1\n    replay    5\n")
	call("replay_execution", with(asked, "edits", edits(2)), "the log has no rows of statement 2")

	run("kept = 1", "status=completed")
	forks := call("fork_session", args{"session_id": session, "count": 2}, "session_id="+session+":\nsession_id=")
	if strings.Contains(forks.text(), "not exactly") {
		t.Errorf("fork_session: got %s, want exact copies", forks.text())
	}
	lines := strings.Split(forks.text(), "\nsession_id=")
	if len(lines) != 3 {
		t.Fatalf("fork_session: got %s, want two sessions", forks.text())
	}
	call("run_python", args{"session_id": lines[1], "code": "kept += 1; kept"}, "result: 2\n")
	call("run_python", args{"session_id": lines[2], "code": "kept"}, "result: 1\n")
	call("fork_session", args{"session_id": "none"}, "there is no such sandbox")
	wrong := run("kept = None", "status=completed").field("execution_id")
	call("rollback_session", args{"session_id": session, "before": wrong},
		"from before execution_id="+wrong+"\n", "session_id="+session+" execution_id=", "status=completed")
	run("kept", "result: 1\n")
	call("rollback_session", args{"session_id": lines[1], "before": wrong}, "ran in another sandbox")

	slow := call("run_python", args{
		"session_id": session, "code": "import time\ntime.sleep(300)", "timeout_seconds": 300, "wait_seconds": 0,
	}, "The run continues", "status=running")
	call("get_execution", execution(slow), "The run continues", "status=running")
	call("cancel_execution", execution(slow), "is cancelled")
	call("get_execution", execution(slow), "status=cancelled")
	call("cancel_execution", args{"execution_id": "none"}, "there is no such execution")

	call("query_database", args{"sql": "SELECT 7 AS n"}, "columns: [\"n\"]\n[7]\n1 row")
	call("query_database", args{"sql": "SELECT repeat('x', 99) FROM generate_series(1, 150)"}, "the answer is full")
	call("query_database", args{"sql": "SELECT n FROM generate_series(1, 9) n", "limit": 3}, "3 rows, truncated")
	call("query_database", args{"sql": "DROP TABLE users"}, "refused")
	callExplainQuery(call, asked)
	call("describe_database", args{"table": "users"}, "id integer, primary key")
	call("describe_database", args{"detail": "full"}, "lines left out")
	call("describe_database", args{"table": "none"}, "there is no table")
	file := func(action, text string, wants ...string) {
		t.Helper()
		arguments := args{"session_id": session, "action": action, "path": "a.csv"}
		if text != "" {
			arguments["text"] = text
		}
		call("session_files", arguments, wants...)
	}
	file("write", "a,b\n", "wrote 4 bytes")
	file("read", "", "a,b\n")
	file("list", "", "/data/a.csv")
	file("write", strings.Repeat("a,b\n", 9999), "wrote")
	file("read", "", "bytes shown; run_python")
	file("delete", "", "deleted")
	file("read", "", "a.csv")

	for _, tool := range c.request(t, "tools/list", args{}).Result.Tools {
		if !slices.Contains(called, tool.Name) {
			t.Errorf("the tool %s was not called; want a call of each tool", tool.Name)
		}
	}
}

// callExplainQuery asks explain_query every question, of a text and of the statement of an execution.
func callExplainQuery(call func(string, map[string]any, ...string) mcpAnswer, asked map[string]any) {
	const sql = "SELECT c.city, count(*) AS n\nFROM customers c\nJOIN orders o ON o.customer_id = c.id\n" +
		"WHERE o.status = :status\nGROUP BY c.city\nORDER BY c.city"
	with := func(fields map[string]any) map[string]any {
		out := map[string]any{"sql": sql, "params": map[string]any{"status": "paid"}}
		maps.Copy(out, fields)
		return out
	}
	of := func(fields map[string]any) map[string]any {
		out := maps.Clone(asked)
		maps.Copy(out, fields)
		return out
	}
	call("explain_query", with(nil), "Statement, 6 lines, ", "l4 o.status = :status ", "groups")
	call("explain_query", with(map[string]any{"row": 0, "column": "n"}), "Statement, row 0, n = ", "  orders (l3 o): ")
	call("explain_query", with(map[string]any{"missing": map[string]any{"city": "Atlantis"}}), "not in the result",
		"Lost at l")
	call("explain_query", of(nil), "Query 1, 1 line, 1 row, same result today as recorded. Rows after each stage:")
	call("explain_query", of(map[string]any{"query": 1, "column": "n"}), "Query 1, row 0, n = 1")
	call("explain_query", of(map[string]any{"missing": map[string]any{"n": 1}}), "Query 1, 1 = 1: ")

	call("explain_query", of(map[string]any{"query": 2}), "no statement 2")
	call("explain_query", of(map[string]any{"sql": sql}), "not both")
	call("explain_query", of(map[string]any{"database": "knowledge"}), "no database with execution_id")
	call("explain_query", with(map[string]any{"column": "n", "missing": map[string]any{"n": 1}}), "not both")
	call("explain_query", map[string]any{}, "give sql, or execution_id and query")
	call("explain_query", map[string]any{"sql": "DELETE FROM orders"}, "DELETE is refused")
}

// leaves returns the values of a JSON value, one a line, as far as they are neither objects nor arrays.
func leaves(value any) string {
	var lines []string
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			lines = append(lines, leaves(field))
		}
	case []any:
		for _, item := range value {
			lines = append(lines, leaves(item))
		}
	default:
		lines = append(lines, fmt.Sprint(value))
	}
	return strings.Join(lines, "\n")
}
