package httpapi_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Other code may ask what the original did not ask. The answer names the statements that the database of now answered.
func TestReplayNamesTheStatementsOfNow(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": now})
	code := "a = db_query('SELECT 3 AS n')\ntry:\n    db_query('DROP TABLE users')\nexcept Exception:\n    pass\n" +
		now + "\nb = db_query('SELECT 4 AS n')"
	other := c.replay(t, first, map[string]any{"code": code})
	if got := other.get("replay.sources"); !reflect.DeepEqual(got, []any{"database"}) ||
		other.get("replay.rows") != "mixed" ||
		!reflect.DeepEqual(other.get("replay.statements_now"), []any{1.0, 4.0}) {
		t.Errorf("got %s, want the statements 1 and 4 from the database of now", mustJSON(t, other.get("replay")))
	}
	c.server = serveMCP(t)
	text := c.toolText(t, mcpVersion, "replay_execution", map[string]any{
		"execution_id": first.get("execution_id"), "code": code})
	if want := "(with other code or rows, and some rows of now: statements 1, 4)"; !strings.Contains(text, want) {
		t.Errorf("got %q, want %q", text, want)
	}
	same := c.replay(t, first, map[string]any{"code": "print(1)\n" + now})
	if same.get("replay.sources") != nil || same.get("replay.rows") != "log" ||
		same.get("replay.statements_now") != nil {
		t.Errorf("got %s, want all rows from the log", mustJSON(t, same.get("replay")))
	}
	tables := c.replay(t, first, map[string]any{"code": "db_tables()"})
	if got := tables.get("replay.sources"); !reflect.DeepEqual(got, []any{"database"}) {
		t.Errorf("got the sources %v of names of tables, want the database", got)
	}
}

// Other code gets the rows of the log each time that it sends a statement of the original.
func TestReplayAnswersARepeatedStatementFromTheLog(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": now + "\n" + now})
	other := c.replay(t, first, map[string]any{"code": now + "\n" + now + "\n" + now + "\n" + now})
	lines := strings.Split(strings.TrimSpace(first.get("stdout").(string)), "\n")
	if len(lines) != 2 || lines[0] == lines[1] {
		t.Fatalf("got %q, want two different lines", lines)
	}
	want := strings.Join([]string{lines[0], lines[1], lines[1], lines[1], ""}, "\n")
	if other.get("stdout") != want || other.get("replay.rows") != "log" || other.get("replay.sources") != nil {
		t.Errorf("got %s, want the output %q from the log", other.text, want)
	}
	live := c.replay(t, first, map[string]any{"code": now + "\n" + now + "\n" + now, "rows": "now"})
	if n := strings.Count(string(mustJSON(t, live.get("replay"))), `.rows"`); n != 2 {
		t.Errorf("got %s, want the rows of two statements as differences", live.text)
	}
}

// An edit that no statement of the code used is a source of differences, and a statement has one edit.
func TestReplayNamesEditsThatWereNotUsed(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "print(db_query('SELECT 1 AS n'), db_query('SELECT 2 AS n'))"})
	edit := func(statement int) map[string]any {
		return map[string]any{"statement": statement, "rows": []any{map[string]any{"n": 9}}}
	}
	used := c.replay(t, first, map[string]any{"edits": []any{edit(1), edit(2)}})
	if used.get("replay.sources") != nil || used.get("replay.rows") != "log" {
		t.Errorf("got %s, want no source", mustJSON(t, used.get("replay")))
	}
	other := c.replay(t, first, map[string]any{
		"code": "print(db_query('SELECT 1 AS n'), db_query('SELECT 2  AS n'))", "edits": []any{edit(1), edit(2)}})
	if got := other.get("replay.sources"); !reflect.DeepEqual(got, []any{"database", "edits"}) ||
		other.get("stdout") != "[{'n': 9}] [{'n': 2}]\n" {
		t.Errorf("got %s, want an edit that was not used", other.text)
	}
	wantProblem(t, c.do(t, "POST", "/executions/"+first.get("execution_id").(string)+"/replay",
		map[string]any{"edits": []any{edit(2), edit(1), edit(2)}}), http.StatusUnprocessableEntity, "invalid-input",
		"edits[2]", "statement 2")
}
