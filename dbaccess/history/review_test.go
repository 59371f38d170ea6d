package history

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// reviewed returns an ended execution with n statements, a connection and an artifact.
func reviewed(id, user string, at time.Time, n int) *sandbox.Execution {
	e := runningExecution(id)
	e.User, e.SandboxID, e.CreatedAt, e.Code = user, "s-"+user, at, "total = 1 # of "+id
	for i := range n {
		e.Queries = append(e.Queries, sandbox.Query{Database: sandbox.DefaultDatabase,
			SQL: fmt.Sprintf("SELECT %d", i), Status: "ok", Rows: 10 * i,
			Fingerprint: "f1", DurationMS: float64(i + 1), StartedAt: at.Add(time.Duration(i) * time.Millisecond),
			Parameters: json.RawMessage(`{"secret":1}`)})
	}
	e.Queries = append(e.Queries, sandbox.Query{Database: sandbox.DefaultDatabase,
		SQL: "DELETE FROM users\x00", Status: "refused", Reason: "read-only", Error: "it writes",
		StartedAt: at.Add(time.Second)})
	e.Connections = []sandbox.Connection{{Host: "example.test", Port: 443, Status: sandbox.ConnectionRefused,
		StartedAt: at}}
	e.Artifacts = []sandbox.Artifact{{ID: "a-" + id}}
	e.Usage.CPUMS = 12.5
	return e
}

// storeReviewed stores executions e0, e1, ... of ada, and one of grace, with all that belongs to them.
func storeReviewed(t *testing.T, h *testStore, count int) (base time.Time) {
	t.Helper()
	ctx := context.Background()
	base = time.Date(2024, 5, 1, 12, 0, 0, 123_456_789, time.UTC)
	for n := range count + 1 {
		id, user := fmt.Sprint("e", n), "ada"
		if n == count {
			id, user = "g", "grace"
		}
		at := base.Add(time.Duration(n) * time.Minute)
		e := reviewed(id, user, at, 3)
		if n == 0 || n == count {
			err := h.CreateSandbox(ctx, sandbox.Sandbox{ID: e.SandboxID, Owner: user, State: sandbox.StateActive,
				CreatedAt: at})
			if err != nil {
				t.Fatal(err)
			}
		}
		h.finish(t, e, sandbox.StatusCompleted)
		artifact := sandbox.Artifact{ID: "a-" + id, ExecutionID: id, SandboxID: e.SandboxID, User: user, Folder: "f",
			Path: "Plot_" + id + ".png", SHA256: id, CreatedAt: at.Truncate(time.Microsecond)}
		if err := h.KeepArtifacts(ctx, []sandbox.Artifact{artifact}); err != nil {
			t.Fatal(err)
		}
		if err := h.KeepChunk(ctx, id, sandbox.Chunk{Sequence: 1, First: 1, Last: 2}); err != nil {
			t.Fatal(err)
		}
		if err := h.KeepInputs(ctx, &sandbox.Execution{ID: id}, encodedLog(t, id)); err != nil {
			t.Fatal(err)
		}
		write := sandbox.PendingWrite{ID: "w-" + id, ExecutionID: id, User: user, Status: sandbox.WritePending,
			CreatedAt: at}
		if err := h.AddWrite(ctx, write, 100, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// allPages returns the names of a list's items, and checks that each page has at most two.
func allPages[T any](
	t *testing.T, list func(after string) ([]T, string, error), name func(T) string,
) (names string) {
	t.Helper()
	for after, more := "", true; more; more = after != "" {
		page, next, err := list(after)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > 2 || len(page) < 2 && next != "" {
			t.Fatalf("got a page of %d and the cursor %q, want 2", len(page), next)
		}
		for _, item := range page {
			names += name(item) + " "
		}
		after = next
	}
	return strings.TrimSpace(names)
}

// Each list has all of its records once, newest first, in pages, and only those of its filter.
func TestListsHaveEachRecordOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	base := storeReviewed(t, h, 3)
	executions := func(f sandbox.ExecutionFilter) string {
		f.Limit = 2
		return allPages(t, func(after string) ([]sandbox.ExecutionSummary, string, error) {
			f.After = after
			return h.ExecutionSummaries(ctx, f)
		}, func(e sandbox.ExecutionSummary) string { return e.ID })
	}
	records := func(f sandbox.RecordFilter) (out [4]string) {
		f.Limit = 2
		out[0] = allPages(t, func(after string) ([]sandbox.Statement, string, error) {
			f.After = after
			return h.Statements(ctx, f)
		}, func(q sandbox.Statement) string { return fmt.Sprint(q.ExecutionID, ".", q.Number) })
		out[1] = allPages(t, func(after string) ([]sandbox.ConnectionRecord, string, error) {
			f.After = after
			return h.Connections(ctx, f)
		}, func(c sandbox.ConnectionRecord) string { return c.ExecutionID })
		out[2] = allPages(t, func(after string) ([]sandbox.Artifact, string, error) {
			f.After = after
			return h.ArtifactRecords(ctx, f)
		}, func(a sandbox.Artifact) string { return a.ID })
		out[3] = allPages(t, func(after string) ([]sandbox.SandboxSummary, string, error) {
			f.After = after
			return h.SandboxSummaries(ctx, f)
		}, func(b sandbox.SandboxSummary) string { return b.ID })
		return out
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"executions", executions(sandbox.ExecutionFilter{}), "g e2 e1 e0"},
		{"executions of ada", executions(sandbox.ExecutionFilter{User: "ada"}), "e2 e1 e0"},
		{"executions by kind", executions(sandbox.ExecutionFilter{Kind: sandbox.KindDebug}), ""},
		{"executions by text", executions(sandbox.ExecutionFilter{Text: "TOTAL"}), "g e2 e1 e0"},
		{"executions by rare text", executions(sandbox.ExecutionFilter{Text: "of e1", User: "ada"}), "e1"},
		{"executions by status", executions(sandbox.ExecutionFilter{Status: sandbox.StatusFailed}), ""},
		{"all", records(sandbox.RecordFilter{}), [4]string{
			"g.4 g.3 g.2 g.1 e2.4 e2.3 e2.2 e2.1 e1.4 e1.3 e1.2 e1.1 e0.4 e0.3 e0.2 e0.1", "g e2 e1 e0",
			"a-g a-e2 a-e1 a-e0", "s-grace s-ada"}},
		{"of grace", records(sandbox.RecordFilter{User: "grace"}), [4]string{"g.4 g.3 g.2 g.1", "g", "a-g", "s-grace"}},
		{"of an execution", records(sandbox.RecordFilter{ExecutionID: "e1"}),
			[4]string{"e1.4 e1.3 e1.2 e1.1", "e1", "a-e1", "s-grace s-ada"}},
		{"by time", records(sandbox.RecordFilter{Since: base.Add(time.Minute), Until: base.Add(2 * time.Minute)}),
			[4]string{"e1.4 e1.3 e1.2 e1.1", "e1", "a-e1", ""}},
		{"by text", records(sandbox.RecordFilter{Text: "SELECT 2"})[0], "g.3 e2.3 e1.3 e0.3"},
		{"by path", records(sandbox.RecordFilter{Text: "plot_E1"})[2], "a-e1"},
		{"by host", records(sandbox.RecordFilter{Host: "other"})[1], ""},
		{"by fingerprint", records(sandbox.RecordFilter{Fingerprint: "f1", User: "grace"})[0], "g.3 g.2 g.1"},
		{"refused", records(sandbox.RecordFilter{Status: "refused"})[0], "g.4 e2.4 e1.4 e0.4"},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
	for _, place := range []string{"nonsense", `{}`, `[]`, `["statements"]`, `["statements","x","y","z"]`,
		`["statements","2024-01-01T00:00:00Z","e","x"]`, `["statements","2024-01-01T00:00:00Z","e","3000000000"]`,
		`["statements","2024-01-01T00:00:00Z","e"]`, `["statements","0000-01-01T00:00:00Z","e","1"]`,
		`["connections","2024-01-01T00:00:00Z","e","1"]`, `["2024-01-01T00:00:00Z","e","1"]`} {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(place))
		if _, _, err := h.Statements(ctx, sandbox.RecordFilter{After: cursor}); !hasFault(err, sandbox.FaultInvalid) {
			t.Errorf("cursor of %s: got %v, want %s", place, err, sandbox.FaultInvalid)
		}
	}
}

// A list shows of an execution what its record has.
func TestSummariesAgreeWithRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	e := reviewed("e", "ada", time.Now().UTC().Truncate(time.Microsecond), 3)
	e.Code, e.Error = strings.Repeat("é", 500), new(strings.Repeat("x", 600))
	h.finish(t, e, sandbox.StatusFailed)
	h.begin(t, runningExecution("runs"))
	list, _, err := h.ExecutionSummaries(ctx, sandbox.ExecutionFilter{Status: sandbox.StatusFailed})
	if want := []sandbox.ExecutionSummary{e.Summary()}; err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, list, want)
	}
	want := sandbox.ExecutionSummary{Queries: 4, RowsRead: 30, Connections: 1, Artifacts: 1, CPUMS: 12.5,
		CodeBytes: 1000}
	got := e.Summary()
	got = sandbox.ExecutionSummary{Queries: got.Queries, RowsRead: got.RowsRead, Connections: got.Connections,
		Artifacts: got.Artifacts, CPUMS: got.CPUMS, CodeBytes: got.CodeBytes}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("numbers: got %+v, want %+v", got, want)
	}
	if code := e.Summary().Code; code != strings.Repeat("é", sandbox.SummaryCodeChars) {
		t.Errorf("code: got %d bytes, want %d characters", len(code), sandbox.SummaryCodeChars)
	}
	running, _, err := h.ExecutionSummaries(ctx, sandbox.ExecutionFilter{Status: sandbox.StatusRunning})
	if err != nil || len(running) != 1 || running[0].CompletedAt != nil {
		t.Errorf("running: got %+v, %v", running, err)
	}
}

func TestTopStatements(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	storeReviewed(t, h, 2)
	list, considered, err := h.TopStatements(context.Background(), sandbox.RecordFilter{}, sandbox.OrderCalls)
	if err != nil || len(list) != 2 || considered != 12 {
		t.Fatalf("got %+v of %d, %v; want 2 of 12", list, considered, err)
	}
	list[0].LastAt, list[1].LastAt = time.Time{}, time.Time{}
	want := []sandbox.StatementStatistics{
		{Fingerprint: "f1", SQL: "SELECT 2", Calls: 9, TotalMS: 18, MeanMS: 2, P95MS: 3, MaxMS: 3, Rows: 90,
			Reasons: map[string]int{}, Users: 2, MainUsers: []string{"ada", "grace"},
			Database: sandbox.DefaultDatabase},
		{SQL: "DELETE FROM users\uFFFD", Calls: 3, Refused: 3, Reasons: map[string]int{"read-only": 3}, Users: 2,
			MainUsers: []string{"ada", "grace"}, Database: sandbox.DefaultDatabase},
	}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got  %+v\nwant %+v", list, want)
	}
	ofGrace := sandbox.RecordFilter{User: "grace", Limit: 1}
	list, _, err = h.TopStatements(context.Background(), ofGrace, sandbox.OrderRefused)
	if err != nil || len(list) != 1 || list[0].Refused != 1 {
		t.Errorf("most refused of grace: got %+v, %v", list, err)
	}
}

// Erasing an execution leaves nothing of it, and everything of the others. Statistics count what is left.
func TestErase(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	storeReviewed(t, h, 2)
	running := runningExecution("runs")
	h.begin(t, running)
	refused := filepath.Join(h.dir, "refused", "e0.json")
	if err := writeFileDurably(refused, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.EraseExecution(ctx, "runs"); !hasFault(err, sandbox.FaultBusy) {
		t.Errorf("an execution that runs: got %v, want %s", err, sandbox.FaultBusy)
	}
	if _, err := h.EraseExecution(ctx, "nonsense"); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("an unknown execution: got %v, want %s", err, sandbox.FaultNotFound)
	}
	got, err := h.EraseExecution(ctx, "e0")
	if len(got.Files) != 1 || got.Files[0].Artifact.ID != "a-e0" || got.Files[0].Version != nil {
		t.Errorf("files: got %+v, want that of e0 without another version", got.Files)
	}
	got.Files = nil
	want := sandbox.Erased{Executions: 1, Statements: 4, Connections: 1, Artifacts: 1, Recordings: 1, PendingWrites: 1}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	left := func(id string) (tables []string) {
		for _, table := range []string{"executions WHERE id", "queries WHERE execution_id",
			"connections WHERE execution_id", "artifacts WHERE execution_id", "recording_chunks WHERE execution_id",
			"input_logs WHERE execution_id", "pending_writes WHERE execution_id"} {
			if h.query(t, "SELECT count(*)::text FROM "+table+" = $1", id)[0] != "0" {
				tables = append(tables, strings.Fields(table)[0])
			}
		}
		return tables
	}
	if tables := left("e0"); tables != nil {
		t.Errorf("the erased execution is in %q", tables)
	}
	if _, err := os.Stat(refused); !os.IsNotExist(err) {
		t.Errorf("the file of its refused record: got %v, want none", err)
	}
	if tables := left("e1"); len(tables) != 7 {
		t.Errorf("another execution is only in %q", tables)
	}
	if st, err := h.Statistics(ctx, ""); err != nil || st.TotalExecutions != 3 || st.SuccessfulExecutions != 2 {
		t.Errorf("statistics: got %+v, %v; want 3 executions, 2 successful", st, err)
	}
	if err := h.EndSandbox(ctx, "s-grace", "grace", sandbox.StateDeleted, time.Now()); err != nil {
		t.Fatal(err)
	}
	got, err = h.EraseUser(ctx, "grace")
	got.Files = nil
	if want.Sandboxes = 1; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("a user: got %+v, %v; want %+v", got, err, want)
	}
	if rows := h.query(t, `SELECT owner FROM executions WHERE owner = 'grace' UNION ALL SELECT owner FROM sandboxes
		WHERE owner = 'grace' UNION ALL SELECT owner FROM execution_totals WHERE owner = 'grace'`); len(rows) > 0 {
		t.Errorf("rows of the erased user: %q", rows)
	}
	if tables := left("g"); tables != nil {
		t.Errorf("the execution of the erased user is in %q", tables)
	}
	if got, err = h.EraseUser(ctx, "ada"); err != nil || got.Executions != 1 || got.Sandboxes != 0 {
		t.Errorf("ada, who has a live sandbox and a running execution: got %+v, %v", got, err)
	}
	h.finish(t, running, sandbox.StatusCompleted)
	if st, err := h.Statistics(ctx, "ada"); err != nil || st.TotalExecutions != 1 || st.SuccessfulExecutions != 1 {
		t.Errorf("statistics after the end of the other: got %+v, %v", st, err)
	}
}

func TestAuditLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	for n, action := range []sandbox.AuditAction{sandbox.AuditViewed, sandbox.AuditErased, sandbox.AuditViewed} {
		err := h.AddAudit(ctx, sandbox.AuditEntry{User: "root", KeyID: "k", Action: action, Owner: "ada",
			Object: fmt.Sprint("execution/", n), Detail: json.RawMessage(`{"n": 1}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	viewed := sandbox.RecordFilter{Action: "viewed", Limit: 1}
	list, next, err := h.AuditEntries(ctx, viewed)
	if err != nil || len(list) != 1 || list[0].Object != "execution/2" || next == "" || list[0].At.IsZero() {
		t.Fatalf("got %+v, %q, %v", list, next, err)
	}
	viewed.After = next
	if list, next, err = h.AuditEntries(ctx, viewed); err != nil || len(list) != 1 || list[0].Object != "execution/0" ||
		next != "" || string(list[0].Detail) != `{"n": 1}` {
		t.Errorf("second page: got %+v, %q, %v", list, next, err)
	}
	if list, _, err = h.AuditEntries(ctx, sandbox.RecordFilter{Object: "execution/1"}); err != nil || len(list) != 1 {
		t.Errorf("by object: got %+v, %v", list, err)
	}
}
