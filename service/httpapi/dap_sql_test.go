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
	if sample := e.scope(frame, "Sample")["0"]; !strings.Contains(sample, "city=") || !strings.Contains(sample, "email=***") {
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
