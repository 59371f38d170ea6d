package history_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history/wal"
	"glasshouse/sandbox"
)

func statement(id string, number int64, sql, status string) sandbox.Progress {
	return sandbox.Progress{Execution: id, Number: number, Query: &sandbox.Query{SQL: sql, Status: status, StartedAt: time.Now().UTC()}}
}

func way(id string, number int64, host string, status sandbox.ConnectionStatus) sandbox.Progress {
	return sandbox.Progress{Execution: id, Number: number, Connection: &sandbox.Connection{Host: host, Port: 443, Status: status, StartedAt: time.Now().UTC()}}
}

// did is what an execution is said to have done, in short.
func did(e sandbox.Execution) (list []string) {
	for _, q := range e.Queries {
		list = append(list, q.SQL+" "+q.Status+" "+q.Error)
	}
	for _, c := range e.Connections {
		list = append(list, fmt.Sprint(c.Host, " ", c.Status, " ", c.Reason))
	}
	return list
}

// What a run does is in history while it goes on, in its order, and its end has it alone;
// where the service ended first, what was under way is said to be cut off.
func TestWhatARunningExecutionDoes(t *testing.T) {
	ctx, server := context.Background(), dbtest.Start(t)
	h := open(t, server)
	shows := func(when, id string, want ...string) {
		t.Helper()
		if e, err := h.Execution(ctx, id); err != nil || fmt.Sprintf("%q", did(e)) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: %q, %v; want %q", when, did(e), err, want)
		}
		list, _, err := h.Executions(ctx, sandbox.ExecutionFilter{})
		for _, e := range list {
			if e.ID == id && fmt.Sprintf("%q", did(e)) != fmt.Sprintf("%q", want) {
				t.Errorf("%s, in the list: %q; want %q", when, did(e), want)
			}
		}
		if err != nil || len(list) == 0 {
			t.Errorf("%s: a list of %d, %v", when, len(list), err)
		}
	}
	for _, id := range []string{"ends", "left"} {
		if err := h.Begin(ctx, execution(id)); err != nil {
			t.Fatal(err)
		}
		for n, p := range []sandbox.Progress{
			statement(id, 0, "SELECT 1", sandbox.QueryRunning), statement(id, 0, "SELECT 1", "ok"), statement(id, 1, "SELECT 2", sandbox.QueryRunning),
			way(id, 1, "b.example", sandbox.ConnectionOpen), way(id, 0, "a.example", sandbox.ConnectionOpen), way(id, 0, "a.example", sandbox.ConnectionAllowed),
		} {
			if err := h.Progress(ctx, p); err != nil {
				t.Fatal(err)
			}
			if n == 2 {
				shows("after three", id, "SELECT 1 ok ", "SELECT 2 running ")
			}
		}
		shows("while it goes on", id, "SELECT 1 ok ", "SELECT 2 running ", "a.example allowed ", "b.example open ")
	}
	over := execution("ends")
	over.Status, over.Queries = sandbox.StatusCompleted, []sandbox.Query{{SQL: "SELECT 3", Status: "ok"}}
	if err := h.Finish(ctx, over); err != nil {
		t.Fatal(err)
	}
	shows("after its end", "ends", "SELECT 3 ok ")
	if n := progressRows(t, server, "ends"); n != 0 {
		t.Errorf("%d things are kept beside the end that has them", n)
	}
	h.Close()
	h = open(t, server)
	defer h.Close()
	if n, err := h.Recover(ctx); n != 1 || err != nil {
		t.Fatalf("Recover = %d, %v", n, err)
	}
	const why = "the service ended meanwhile"
	shows("after a restart", "left", "SELECT 1 ok ", "SELECT 2 cancelled "+why, "a.example allowed ", "b.example allowed cut: "+why+"; how much passed is not known")
	if n := progressRows(t, server, "left"); n != 0 {
		t.Errorf("%d things are kept beside the end that has them", n)
	}
}

// A service that was killed left them in the log alone, in which some executions ended.
func TestProgressInTheLog(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	log, err := wal.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	const at = `"created_at":"2026-01-02T03:04:05Z"`
	for _, body := range []string{
		`{"execution_id":"left","status":"running",` + at + `}`,
		`{"progress_of":"left","number":0,"query":{"query":"SELECT 1","status":"running"}}`,
		`{"progress_of":"left","number":0,"query":{"query":"SELECT 1","status":"ok"}}`,
		`{"execution_id":"over","status":"running",` + at + `}`,
		`{"progress_of":"over","number":0,"query":{"query":"SELECT 1","status":"running"}}`,
		`{"progress_of":"left","number":1,"query":{"query":"SELECT 2","status":"running"}}`,
		`{"execution_id":"over","status":"completed",` + at + `,"completed_at":"2026-01-02T03:04:06Z","queries":[{"query":"SELECT 1","status":"ok"}]}`,
	} {
		if _, err := log.Append([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	server := dbtest.Start(t)
	h := openIn(t, server, dir)
	defer h.Close()
	if n := progressRows(t, server, "over"); n != 0 {
		t.Errorf("%d things of an execution that is over", n)
	}
	if _, err := h.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{"left": {"SELECT 1 ok ", "SELECT 2 cancelled the service ended meanwhile"}, "over": {"SELECT 1 ok "}} {
		if e, err := h.Execution(ctx, id); err != nil || fmt.Sprintf("%q", did(e)) != fmt.Sprintf("%q", want) {
			t.Errorf("%s: %q, %v; want %q", id, did(e), err, want)
		}
	}
}

// What can't be read of an execution that was cut off keeps the service from no start.
func TestRecoverIsNotHeldUp(t *testing.T) {
	ctx, server := context.Background(), dbtest.Start(t)
	h := open(t, server)
	for _, id := range []string{"opening", "progress", "good"} {
		if err := errors.Join(h.Begin(ctx, execution(id)), h.Progress(ctx, statement(id, 0, "SELECT 1", "ok"))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Execution(ctx, "good"); err != nil { // all of it is in the database
		t.Fatal(err)
	}
	h.Close()
	conn, err := pgx.Connect(ctx, server.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE executions SET record = '{"broken' WHERE id = 'opening'`,
		`INSERT INTO progress VALUES ('progress', 'query', 1, '{"broken')`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	h = open(t, server)
	defer h.Close()
	if n, err := h.Recover(ctx); n != 3 || err != nil {
		t.Fatalf("Recover = %d, %v", n, err)
	}
	for id, want := range map[string]string{"opening": "[]", "progress": `["SELECT 1 ok "]`, "good": `["SELECT 1 ok "]`} {
		e, err := h.Execution(ctx, id)
		if err != nil || e.Status != sandbox.StatusCancelled || e.Code != "1+1" || e.User != "ada" || fmt.Sprintf("%q", did(e)) != want {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
	}
}

func progressRows(t *testing.T, s *embedded.Server, id string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if err != nil {
		t.Fatal(err)
	}
	err = conn.QueryRow(context.Background(), `SELECT count(*) FROM progress WHERE execution_id = $1`, id).Scan(&n)
	if err = errors.Join(err, conn.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	return n
}
