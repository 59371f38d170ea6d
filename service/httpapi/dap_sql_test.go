package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// sqlProgram sends one statement in line 2.
const sqlProgram = `first = db_query("SELECT 1 AS one")
rows = db_query("""WITH paid AS (
  SELECT customer_id, total
  FROM orders
  WHERE status = :status
)
SELECT c.city, count(*) AS n
FROM customers c
JOIN paid p ON p.customer_id = c.id
WHERE c.city <> 'Osaka'
GROUP BY c.city""", {"status": "paid"})
n = len(rows)`

// innermost returns the innermost frame.
func (e *dapClient) innermost() map[string]any {
	e.t.Helper()
	frames := e.mustRequest("stackTrace", map[string]any{"threadId": 1})["stackFrames"].([]any)
	return frames[0].(map[string]any)
}

// scope returns the variables of a scope of a frame, by name.
func (e *dapClient) scope(frame map[string]any, name string) map[string]string {
	e.t.Helper()
	for _, s := range e.mustRequest("scopes", map[string]any{"frameId": frame["id"]})["scopes"].([]any) {
		s := s.(map[string]any)
		if s["name"] != name {
			continue
		}
		values := map[string]string{}
		found := e.mustRequest("variables", map[string]any{"variablesReference": s["variablesReference"]})
		for _, v := range found["variables"].([]any) {
			v := v.(map[string]any)
			values[v["name"].(string)] = v["value"].(string)
		}
		return values
	}
	e.t.Fatalf("the frame %v has no scope %s", frame, name)
	return nil
}

// wantStage moves, and checks that the client is at a stage. It returns the frame.
func (e *dapClient) wantStage(move, frameName, text string, rows *int64) map[string]any {
	e.t.Helper()
	e.move(move)
	e.waitEvent("stopped")
	frame := e.innermost()
	if frame["name"] != frameName {
		e.t.Fatalf("after %s: got the frame %v, want %s", move, frame, frameName)
	}
	stage := e.scope(frame, "Stage")
	if !strings.Contains(stage["text"], text) || rows != nil && stage["rows"] != fmt.Sprint(*rows) {
		e.t.Fatalf("after %s: got the stage %v, want %q with %v rows", move, stage, text, rows)
	}
	return frame
}

// sqlStages returns the stages of the statement of sqlProgram.
func (c client) sqlStages(t *testing.T) stages.Stages {
	t.Helper()
	_, text, _ := strings.Cut(sqlProgram, `"""`)
	text, _, _ = strings.Cut(text, `"""`)
	return c.counted(t, "/database/stages", map[string]any{"sql": text, "params": map[string]any{"status": "paid"}})
}

// A step into a line enters the statement that it has sent, in a live program and in its recording.
func TestDAPStepsIntoSQL(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	want := c.sqlStages(t)
	e := dapAttach(t, c, sqlProgram).configure(breakpointAt(2))
	e.wantStop("breakpoint", 2)
	e.walkSQL(want)
	e.wantStop("step", 12) // after the statement
	e.wantEqual("n", e.evaluate("len(rows)", nil), want.Rows)
	e.move("continue")
	execution := e.waitEvent("exited")["execution_id"]
	e.waitEvent("terminated")

	past := dapConnect(t)
	past.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	past.mustRequest("attach", map[string]any{"token": c.secret, "execution": execution})
	past.configure()
	past.waitEvent("stopped")
	past.move("next")
	past.wantStop("step", 2)
	past.walkSQL(want)
	past.wantStop("step", 12)
	past.move("stepBack")
	frame := past.wantStop("step", 2)
	targets := past.mustRequest("stepInTargets", map[string]any{"frameId": frame})["targets"].([]any)
	past.wantEqual("targets", targets, []any{map[string]any{"id": 1.0, "label": "SQL: query 2"}})
	past.mustRequest("stepIn", map[string]any{"threadId": 1, "targetId": 1})
	past.waitEvent("stopped")
	past.wantEqual("frame", past.innermost()["name"], "SQL: query 2")
	past.move("stepBack") // before the first stage is the line
	past.wantStop("step", 2)
}

// walkSQL steps into line 2 of sqlProgram, through its statement, and out of it.
func (e *dapClient) walkSQL(want stages.Stages) {
	e.t.Helper()
	const name = "SQL: query 2"
	rows := func(kind, part string) *int64 { return find(e.t.(*testing.T), want, kind, part).RowsOut }
	frame := e.wantStage("stepIn", name, "customers", rows(stages.KindFrom, "customers"))
	e.wantEqual("line", frame["line"], 7)
	source := frame["source"].(map[string]any)
	text := e.mustRequest("source", map[string]any{"source": source, "sourceReference": source["sourceReference"]})
	if !strings.HasPrefix(text["content"].(string), "WITH paid AS (") {
		e.t.Errorf("got the source %v, want the statement", text)
	}
	sample := e.scope(frame, "Sample")["0"]
	if !strings.Contains(sample, "city=") || !strings.Contains(sample, "email=***") {
		e.t.Errorf("got the row %q, want a city and a masked email", sample)
	}
	e.wantEqual("parameters", e.scope(frame, "Parameters"), map[string]string{"status": `"paid"`})
	if column := fmt.Sprint(e.evaluate("c.city", frame["id"], "hover")); !strings.Contains(column, "in 5 rows") {
		e.t.Errorf("got %q for a column, want its values in the sample", column)
	}
	m := e.request("evaluate", map[string]any{"expression": "length(c.city)", "frameId": frame["id"]})
	if text := fmt.Sprint(m["message"]); m["success"] != false || !strings.Contains(text, "not evaluated") {
		e.t.Errorf("got %v for an expression, want an error that says so", m)
	}
	e.wantStage("next", name, "paid", rows(stages.KindFrom, "paid p"))
	e.wantStage("stepIn", name+", paid", "orders", rows(stages.KindFrom, "orders"))
	e.wantStage("next", name+", paid", "status = :status", rows(stages.KindWhere, "status"))
	join := e.wantStage("stepOut", name, "JOIN paid", rows(stages.KindJoin, "JOIN"))
	stage := e.scope(join, "Stage")
	if stage["lost"] == "" || stage["repeated"] == "" || stage["multiplied"] == "" || stage["state"] != "counted" {
		e.t.Errorf("got the join %v, want lost, repeated and multiplied", stage)
	}
	e.wantStage("stepBack", name, "paid", nil)
	e.wantStage("next", name, "JOIN paid", nil)
	e.wantStage("next", name, "c.city <> 'Osaka'", rows(stages.KindWhere, "Osaka"))
	e.move("stepOut")
}

// The program does not end before its last statement is left.
func TestDAPStepsIntoTheStatementOfTheLastLine(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	for _, move := range []string{"stepOut", "continue", "next", "stepIn"} {
		c.deleteSandboxes(t)
		e := dapAttach(t, c, "x = 1\nlen(db_query('SELECT 1 AS one'))").configure(breakpointAt(2))
		e.wantStop("breakpoint", 2)
		e.wantStage("stepIn", "SQL: query 1", "", nil)
		for isStopped := true; isStopped; { // next and stepIn may visit other stages
			e.move(move)
			for m := e.nextEvent(); ; m = e.nextEvent() {
				if isStopped = m["event"] == "stopped"; isStopped || m["event"] == "exited" {
					break
				}
			}
			if isStopped && e.innermost()["name"] != "SQL: query 1" {
				t.Fatalf("after %s: got the frame %v, want the statement or the end", move, e.innermost())
			}
		}
		e.waitEvent("terminated")
	}
	c.deleteSandboxes(t)
	e := dapAttach(t, c, "x = 1\nx + 1").configure(breakpointAt(2)) // without a statement it ends
	e.wantStop("breakpoint", 2)
	e.move("stepIn")
	e.wantEqual("status", e.waitEvent("exited")["status"], "completed")
}

// A function of the program comes before the statement of the line, which stepInTargets has in the recording.
func TestDAPStepsIntoFunctionsBeforeSQL(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	const code = "def count(rows):\n    return len(rows)\nn = count(db_query('SELECT id FROM orders LIMIT 3'))\nm = n"
	e := dapAttach(t, c, code).configure(breakpointAt(3))
	e.wantStop("breakpoint", 3)
	e.move("stepIn")
	e.wantStop("step", 2)
	e.move("stepBack")
	frame := e.wantStop("breakpoint", 3)
	targets := e.mustRequest("stepInTargets", map[string]any{"frameId": frame})["targets"]
	e.wantEqual("targets", targets, []any{map[string]any{"id": 1.0, "label": "SQL: query 1"}})
	e.mustRequest("stepIn", map[string]any{"threadId": 1, "targetId": 1})
	e.waitEvent("stopped")
	e.wantEqual("rows", e.scope(e.innermost(), "Stage")["rows"], "5000")
	e.move("reverseContinue")
	e.wantStop("entry", 1)
}

// A statement without stages has a frame that says why, and so has one that the reader's key may not run.
func TestDAPFrameSaysWhyAStatementHasNoStages(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	const code = "try:\n    db_query(\"SELECT id FROM customers WHERE email = 'a'\")\n" +
		"except DatabaseError:\n    x = 1\ndb_query('EXPLAIN SELECT 1')\ny = 1"
	e := dapAttach(t, c, code).configure(breakpointAt(2), breakpointAt(5))
	for _, want := range []struct {
		line, next   float64
		name, reason string
	}{
		{2, 3, "SQL: query 1 (masked-column)", "masked-column"}, {5, 6, "SQL: query 2 (no-stages)", "no-stages"},
	} {
		e.wantStop("breakpoint", want.line)
		e.move("stepIn")
		e.waitEvent("stopped")
		frame := e.innermost()
		stage := e.scope(frame, "Stage")
		isReason := stage["reason"] == want.reason && stage["message"] != ""
		if frame["name"] != want.name || !isReason || stage["rows"] != "" {
			t.Errorf("got the frame %v and the stage %v, want %s", frame, stage, want.name)
		}
		e.wantEqual("the sample", e.scope(frame, "Sample"), map[string]string{})
		e.move("next")
		e.wantStop("step", want.next)
		e.move("continue")
	}
	e.waitEvent("terminated")
}

// A breakpoint in a statement may be about the numbers of a stage. It stops moves through the statement.
func TestDAPBreakpointsInSQL(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	const code = `x = 0
rows = db_query("""SELECT o.id
FROM orders o
JOIN order_items i ON i.order_id = o.id
WHERE o.id > 100000
ORDER BY o.id""")
n = len(rows)
m = n`
	e := dapAttach(t, c, code).configure(breakpointAt(2), breakpointAt(8))
	e.wantStop("breakpoint", 2)
	frame := e.wantStage("stepIn", "SQL: query 1", "orders", nil)
	source := frame["source"]
	set := func(list ...map[string]any) []any {
		arguments := map[string]any{"source": source, "breakpoints": list}
		return e.mustRequest("setBreakpoints", arguments)["breakpoints"].([]any)
	}
	made := set(breakpointAt(3, "condition", "multiplied > 1 and kind == 'join'"),
		breakpointAt(4, "condition", "rows == 0"), breakpointAt(5, "condition", "lost > 0"))
	for n, b := range made {
		e.wantEqual(fmt.Sprintf("breakpoint %d", n), b.(map[string]any)["verified"], true)
	}
	for _, text := range []string{"JOIN order_items", "o.id > 100000"} {
		e.move("continue")
		body := e.waitEvent("stopped")
		stage := e.scope(e.innermost(), "Stage")
		if body["reason"] != "breakpoint" || !strings.Contains(stage["text"], text) {
			t.Errorf("got the stop %v at %v, want a breakpoint at %s", body, stage, text)
		}
	}
	e.wantEqual("rows", e.evaluate("rows", e.innermost()["id"]), "0")
	e.move("reverseContinue")
	e.wantEqual("reason", e.waitEvent("stopped")["reason"], "breakpoint")
	e.move("continue")
	e.waitEvent("stopped")
	e.move("continue") // lost is not known of ORDER BY: it goes on to the program's own breakpoint
	e.wantStop("breakpoint", 8)

	for condition, says := range map[string]string{"rowz == 0": "has no", "rows ==": ""} {
		b := set(breakpointAt(4, "condition", condition))[0].(map[string]any)
		if message := fmt.Sprint(b["message"]); b["verified"] != false || !strings.Contains(message, says) {
			t.Errorf("the condition %q: got %v, want it refused with %q", condition, b, says)
		}
	}
	e.wantEqual("a line that is none", set(breakpointAt(40))[0].(map[string]any)["verified"], false)
	e.move("continue")
	e.waitEvent("terminated")
}

// A client that disconnects cancels the statements that compute its stages.
func TestDAPDisconnectCancelsStages(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	const code = "db_query('SELECT count(*) FROM generate_series(1, 400000) a, generate_series(1, 100) b')\nn = 1"
	run := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code, "record": true})
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("attach", map[string]any{"token": c.secret, "execution": run.get("execution_id")})
	e.configure()
	e.waitEvent("stopped")
	e.move("stepIn")
	e.waitEvent("stopped")
	e.send("stackTrace", map[string]any{"threadId": 1})
	var list []any
	eventually(t, "the statement to run again", func() bool {
		list, _ = c.ok(t, "GET", "/executions?status=running", nil).get("executions").([]any)
		return len(list) > 0
	})
	e.send("disconnect", nil)
	id := list[0].(map[string]any)["execution_id"].(string)
	eventually(t, "the statement to end", func() bool {
		return c.ok(t, "GET", "/executions/"+id, nil).get("status") != "running"
	})
	text := string(c.ok(t, "GET", "/executions/"+id, nil).text)
	if strings.Contains(text, `"status":"ok"`) {
		t.Errorf("got %s, want a statement that was ended", text)
	}
}

// Over HTTP a step into a line stays in the program, and a target enters the statement.
func TestDebugCommandsEnterSQLByATarget(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	const code = "rows = db_query('SELECT id FROM orders WHERE id <= 3')\nn = 1"
	run := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code, "record": true})
	path := "/executions/" + run.get("execution_id").(string) + "/debug/sessions"
	session := "/debug/sessions/" + c.ok(t, "POST", path, nil).get("session_id").(string)
	top := func() map[string]any {
		frames := c.ok(t, "POST", session+"/stackTrace", map[string]any{}).get("stackFrames").([]any)
		return frames[0].(map[string]any)
	}
	c.ok(t, "POST", session+"/stepIn", map[string]any{})
	if frame := top(); frame["line"] != 2.0 || frame["name"] != "<module>" {
		t.Errorf("after stepIn: got the frame %v, want line 2", frame)
	}
	c.ok(t, "POST", session+"/stepBack", map[string]any{})
	c.ok(t, "POST", session+"/stepIn", map[string]any{"targetId": 1})
	if frame := top(); frame["name"] != "SQL: query 1" {
		t.Errorf("after stepIn with a target: got the frame %v, want the statement", frame)
	}
	c.ok(t, "POST", session+"/next", map[string]any{})
	stack := top()
	scopes := c.ok(t, "POST", session+"/scopes", map[string]any{"frameId": stack["id"]}).get("scopes").([]any)
	reference := scopes[0].(map[string]any)["variablesReference"]
	text := string(c.ok(t, "POST", session+"/variables", map[string]any{"variablesReference": reference}).text)
	if !strings.Contains(text, `"value":"3"`) || !strings.Contains(text, `"value":"where"`) {
		t.Errorf("got %s, want the condition with 3 rows", text)
	}
}

// Two keys that share a session see the stages with their own rights.
func TestStagesOfASessionHaveTheRightsOfTheReader(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	all := serveDatabases(t, sales, staff).newUser(t, map[string]any{"role": "developer"})
	narrow, _ := all.newKey(t, map[string]any{"name": "n", "role": "developer", "databases": []string{"staff"}})
	run := all.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "rows = db_query('SELECT id, email FROM orders', database='sales')\nn = 1", "record": true,
	})
	path := "/executions/" + run.get("execution_id").(string) + "/debug/sessions"
	session := "/debug/sessions/" + all.ok(t, "POST", path, nil).get("session_id").(string)
	all.ok(t, "POST", session+"/stepIn", map[string]any{"targetId": 1})
	for name, x := range map[string]struct {
		of     client
		frame  string
		sample bool
	}{"all": {all, "SQL: query 1", true}, "narrow": {narrow, "SQL: query 1 (unknown-database)", false}} {
		frames := x.of.ok(t, "POST", session+"/stackTrace", nil).get("stackFrames").([]any)
		frame := frames[0].(map[string]any)
		if frame["name"] != x.frame {
			t.Errorf("%s: got the frame %v, want %s", name, frame, x.frame)
		}
		scopes := x.of.ok(t, "POST", session+"/scopes", map[string]any{"frameId": frame["id"]}).get("scopes").([]any)
		sample := scopes[1].(map[string]any)["variablesReference"]
		text := string(x.of.ok(t, "POST", session+"/variables", map[string]any{"variablesReference": sample}).text)
		if strings.Contains(text, "email=***") != x.sample || strings.Contains(text, "@") {
			t.Errorf("%s: got the sample %s, want masked rows: %v", name, text, x.sample)
		}
	}
}
