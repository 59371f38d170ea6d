package history

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"glasshouse/sandbox"
)

func queryProgress(id string, number int64, sql, status string) sandbox.Progress {
	query := sandbox.Query{SQL: sql, Status: status, StartedAt: time.Now().UTC()}
	return sandbox.Progress{Execution: id, Number: number, Query: &query}
}

func connectionProgress(id string, number int64, host string, status sandbox.ConnectionStatus) sandbox.Progress {
	connection := sandbox.Connection{Host: host, Port: 443, Status: status, StartedAt: time.Now().UTC()}
	return sandbox.Progress{Execution: id, Number: number, Connection: &connection}
}

// summaryOf returns the queries and connections of an execution as short texts.
func summaryOf(e sandbox.Execution) []string {
	list := []string{}
	for _, q := range e.Queries {
		list = append(list, q.SQL+" "+q.Status+" "+q.Error)
	}
	for _, c := range e.Connections {
		list = append(list, fmt.Sprint(c.Host, " ", c.Status, " ", c.Reason))
	}
	return list
}

// checkProgress compares the queries and connections that Execution and Executions return with those wanted.
func checkProgress(t *testing.T, h *testStore, when, id string, want ...string) {
	t.Helper()
	e, err := h.Execution(context.Background(), id)
	if got := summaryOf(e); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s, Execution %s: got %q, %v; want %q", when, id, got, err, want)
	}
	list, _, err := h.Executions(context.Background(), sandbox.ExecutionFilter{})
	if err != nil || len(list) == 0 {
		t.Errorf("%s: Executions returned %d executions, %v", when, len(list), err)
	}
	for _, e := range list {
		if got := summaryOf(e); e.ID == id && !reflect.DeepEqual(got, want) {
			t.Errorf("%s, Executions, %s: got %q, want %q", when, id, got, want)
		}
	}
}

func checkProgressRows(t *testing.T, h *testStore, id string, want int) {
	t.Helper()
	if got := h.query(t, `SELECT kind FROM progress WHERE execution_id = $1`, id); len(got) != want {
		t.Errorf("table progress has %d rows of %s, want %d", len(got), id, want)
	}
}

const cutReason = "the service ended meanwhile"

// Queries and connections are in history while the execution runs. The record of its end replaces them. If the service
// ends first, open queries and connections are recorded as cut.
func TestProgressIsStoredUntilTheEnd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	for _, id := range []string{"ends", "open"} {
		h.begin(t, runningExecution(id))
		for n, p := range []sandbox.Progress{
			queryProgress(id, 0, "SELECT 1", sandbox.QueryRunning), queryProgress(id, 0, "SELECT 1", "ok"),
			queryProgress(id, 1, "SELECT 2", sandbox.QueryRunning),
			connectionProgress(id, 1, "b.example", sandbox.ConnectionOpen),
			connectionProgress(id, 0, "a.example", sandbox.ConnectionOpen),
			connectionProgress(id, 0, "a.example", sandbox.ConnectionAllowed),
		} {
			if err := h.Progress(ctx, p); err != nil {
				t.Fatal(err)
			}
			if n == 2 {
				checkProgress(t, h, "after three records", id, "SELECT 1 ok ", "SELECT 2 running ")
			}
		}
		checkProgress(t, h, "while it runs", id,
			"SELECT 1 ok ", "SELECT 2 running ", "a.example allowed ", "b.example open ")
	}
	e := runningExecution("ends")
	e.Queries = []sandbox.Query{{SQL: "SELECT 3", Status: "ok"}}
	h.finish(t, e, sandbox.StatusCompleted)
	checkProgress(t, h, "after its end", "ends", "SELECT 3 ok ")
	checkProgressRows(t, h, "ends", 0)
	h = h.reopen(t)
	if n, err := h.Recover(ctx); n != 1 || err != nil {
		t.Fatalf("Recover: got %d, %v; want 1", n, err)
	}
	checkProgress(
		t,
		h,
		"after a restart",
		"open",
		"SELECT 1 ok ",
		"SELECT 2 cancelled "+cutReason,
		"a.example allowed ",
		"b.example allowed cut: "+cutReason+"; the number of bytes is not known",
	)
	checkProgressRows(t, h, "open", 0)
}

// A killed service left all records in the log only, among them the end of one execution.
func TestProgressIsReplayed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const created = `"created_at":"2026-01-02T03:04:05Z"`
	writeLog(t, dir,
		`{"execution_id":"open","status":"running",`+created+`}`,
		`{"progress_of":"open","number":0,"query":{"query":"SELECT 1","status":"running"}}`,
		`{"progress_of":"open","number":0,"query":{"query":"SELECT 1","status":"ok"}}`,
		`{"execution_id":"ended","status":"running",`+created+`}`,
		`{"progress_of":"ended","number":0,"query":{"query":"SELECT 1","status":"running"}}`,
		`{"progress_of":"open","number":1,"query":{"query":"SELECT 2","status":"running"}}`,
		`{"execution_id":"ended","status":"completed",`+created+`,"completed_at":"2026-01-02T03:04:06Z",`+
			`"queries":[{"query":"SELECT 1","status":"ok"}]}`,
	)
	h := openStore(t, Config{URL: databaseURL(t), Dir: dir})
	checkProgressRows(t, h, "ended", 0)
	if _, err := h.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkProgress(t, h, "after Recover", "open", "SELECT 1 ok ", "SELECT 2 cancelled "+cutReason)
	checkProgress(t, h, "after Recover", "ended", "SELECT 1 ok ")
}

func TestRecoverGoesOnAfterUnreadableRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	for _, id := range []string{"opening", "progress", "good"} {
		h.begin(t, runningExecution(id))
		if err := h.Progress(ctx, queryProgress(id, 0, "SELECT 1", "ok")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Execution(ctx, "good"); err != nil { // waits until all is inserted
		t.Fatal(err)
	}
	h.query(t, `UPDATE executions SET record = '{"broken' WHERE id = 'opening' RETURNING id`)
	h.query(t, `INSERT INTO progress VALUES ('progress', 'query', 1, '{"broken') RETURNING kind`)
	h = h.reopen(t)
	if n, err := h.Recover(ctx); n != 3 || err != nil {
		t.Fatalf("Recover: got %d, %v; want 3", n, err)
	}
	for id, want := range map[string][]string{"opening": {}, "progress": {"SELECT 1 ok "}, "good": {"SELECT 1 ok "}} {
		e, err := h.Execution(ctx, id)
		if err != nil || e.Status != sandbox.StatusCancelled || e.Code != "1+1" || e.User != "ada" ||
			!reflect.DeepEqual(summaryOf(e), want) {
			t.Errorf("execution %s: got %+v, %v; want it cancelled with %q", id, e, err, want)
		}
	}
}
