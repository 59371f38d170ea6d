package history

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

func TestEveryFieldComesBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	e := runningExecution("e")
	e.Context = json.RawMessage(`{"b":1,"a":2}`)
	e.Tags, e.Title = map[string]string{"team": "risk", "": "any text"}, "a title"
	h.begin(t, e)
	begun, err := h.Execution(ctx, "e")
	if err != nil || string(begun.Result) != "null" || string(begun.Context) != string(e.Context) ||
		begun.Code != e.Code || begun.CompletedAt != nil || !reflect.DeepEqual(begun.Tags, e.Tags) {
		t.Errorf("running execution: got %+v, %v", begun, err)
	}
	wantSummary(t, h, e)
	at, message := e.CreatedAt.Add(time.Second), "ValueError: no"
	e.Error, e.Result = &message, json.RawMessage(`{"z":1,"a":[1e400,9007199254740993]}`)
	e.Exception = &sandbox.Exception{Type: "ValueError", Message: "no", Line: 3,
		Traceback: []sandbox.Frame{{Line: 3, Function: "<module>", Code: "raise"}}}
	e.ExecutionTime, e.MemoryUsage = 1.5, 12.25
	e.Usage = sandbox.Usage{WallMS: 1500, CPUMS: 900, PeakMemoryMB: 12.25}
	e.DebugInfo = sandbox.DebugInfo{
		Logs:      []sandbox.Note{{Time: at, Level: "INFO", Message: "here", Line: 1, Function: "f"}},
		Variables: map[string][]sandbox.Note{"x": {{Time: at, Name: "x", Type: "int", Repr: "1"}}},
	}
	e.Outputs = []sandbox.Output{{Data: map[string]json.RawMessage{"text/plain": json.RawMessage(`"hi"`)}}}
	e.Artifacts = []sandbox.Artifact{{Path: "a.csv", Size: 3}}
	e.ArtifactMap = map[string]string{"a.csv": "/artifacts/1"}
	e.Queries = []sandbox.Query{{SQL: "SELECT 1", Status: "ok", Rows: 1, StartedAt: at}}
	e.Connections = []sandbox.Connection{{Host: "example.org", Port: 443, Address: "44.1.1.1:443", BytesSent: 1,
		BytesReceived: 1 << 40, DurationMS: 0.5, StartedAt: at, Status: sandbox.ConnectionAllowed}}
	e.Truncated = map[string]int64{"stdout": 7}
	e.Isolation = sandbox.Isolation{Level: "full", EnforcedBy: map[string]string{"max_memory_mb": "cgroup"}}
	h.finish(t, e, sandbox.StatusFailed)
	if got, err := h.Execution(ctx, "e"); err != nil || !reflect.DeepEqual(got, *e) {
		t.Errorf("ended execution: %v\ngot  %+v\nwant %+v", err, got, *e)
	}
	wantSummary(t, h, e)
}

// wantSummary checks what the columns of an execution have of it, which lists show.
func wantSummary(t *testing.T, h *testStore, e *sandbox.Execution) {
	t.Helper()
	got, _, err := h.ExecutionSummaries(context.Background(), sandbox.ExecutionFilter{})
	if err != nil || len(got) != 1 {
		t.Fatalf("got %d summaries, %v, want one", len(got), err)
	}
	if want := e.Summary(); !reflect.DeepEqual(got[0], want) {
		t.Errorf("summary:\ngot  %+v\nwant %+v", got[0], want)
	}
}

func TestAnyBytesComeBack(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	message := "bad \xff\x00 error"
	e := runningExecution("e")
	e.Code, e.Error = "print('\x00 \xc3(')", &message
	e.Stdout, e.Stderr = "a\x00b\xff\xfe\u2028<&>", strings.Repeat("\x80", 1000)
	e.Result = json.RawMessage(`"\u0000 \ud800"`)
	e.Tags = map[string]string{"": "any\x00text"}
	h.begin(t, e)
	h.finish(t, e, sandbox.StatusFailed)
	got, err := h.Execution(context.Background(), "e")
	if err != nil || got.Code != e.Code || !reflect.DeepEqual(got.Tags, e.Tags) || got.Stdout != e.Stdout ||
		got.Stderr != e.Stderr || *got.Error != message ||
		string(got.Result) != string(e.Result) {
		t.Errorf("got code %q, stdout %q, stderr %.20q, result %s, %v",
			got.Code, got.Stdout, got.Stderr, got.Result, err)
	}
}

// Connections are in the record and, for searches, in the table connections: once, however often Finish is called.
func TestConnectionsAreInTheirTableOnce(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	e := runningExecution("e")
	e.Connections = []sandbox.Connection{
		{Host: "example.org", Port: 443, Address: "44.1.1.1:443", Status: sandbox.ConnectionAllowed, BytesSent: 1,
			BytesReceived: 1 << 40, DurationMS: 0.5, StartedAt: at},
		{Host: "loop.example", Port: 80, Status: sandbox.ConnectionRefused, Reason: "a 'loopback' \"address\" \x00",
			StartedAt: at.Add(time.Second)},
	}
	h.finish(t, e, sandbox.StatusCompleted)
	h.finish(t, e, sandbox.StatusCompleted)
	got, err := h.Execution(context.Background(), "e")
	if err != nil || !reflect.DeepEqual(got.Connections, e.Connections) {
		t.Errorf("in the record: got %+v, %v; want %+v", got.Connections, err, e.Connections)
	}
	rows := h.query(t, `SELECT concat_ws('|', number, sandbox_id, owner, host, port, address, status, bytes_sent,
		bytes_received, milliseconds, extract(epoch FROM started_at)) FROM connections ORDER BY number`)
	want := []string{
		"1|s1|ada|example.org|443|44.1.1.1:443|allowed|1|1099511627776|0.5|1772600767.000008",
		"2|s1|ada|loop.example|80||refused|0|0|0|1772600768.000008",
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("in the table: got %q, want %q", rows, want)
	}
}

func TestStatisticsCountByStatus(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	for n, status := range []sandbox.Status{sandbox.StatusCompleted, sandbox.StatusCompleted, sandbox.StatusFailed,
		sandbox.StatusKilled, sandbox.StatusTimeout} {
		e := runningExecution(fmt.Sprint("e", n))
		e.ExecutionTime, e.MemoryUsage = float64(n), float64(10*n)
		h.finish(t, e, status)
	}
	h.begin(t, runningExecution("running"))
	got, err := h.Statistics(context.Background(), "ada")
	got.Timestamp = time.Time{}
	want := sandbox.Statistics{TotalExecutions: 6, SuccessfulExecutions: 2, FailedExecutions: 2, TimeoutExecutions: 1,
		SuccessRate: 40, AverageExecutionTime: 2, PeakMemoryUsage: 40}
	if err != nil || got != want {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}

// numbersOf returns the numbers of executions e0, e1, ... in the order of the list.
func numbersOf(list []sandbox.Execution) (numbers string) {
	for _, e := range list {
		numbers += strings.TrimPrefix(e.ID, "e")
	}
	return numbers
}

// pagesOf returns the numbers of the executions of each page of a list.
func pagesOf(t *testing.T, h *testStore, f sandbox.ExecutionFilter) (pages []string) {
	t.Helper()
	for {
		list, next, err := h.Executions(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, numbersOf(list))
		if f.After = next; next == "" {
			return pages
		}
	}
}

func TestExecutionsFilter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	base := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for n := range 6 {
		e := runningExecution(fmt.Sprint("e", n))
		e.SandboxID = fmt.Sprint("s", n%2)
		e.CreatedAt = base.Add(time.Duration(n/2) * time.Hour) // pairs have the same time
		e.Code = fmt.Sprintf("total = %d # 100%%_Sum", n)
		status := sandbox.StatusCompleted
		if n == 5 {
			message := "KeyError: 'Revenue'"
			status, e.Error = sandbox.StatusFailed, &message
		}
		h.finish(t, e, status)
	}
	other := runningExecution("other")
	other.User, other.SandboxID = "grace", "s9"
	h.begin(t, other)
	for name, c := range map[string]struct {
		filter sandbox.ExecutionFilter
		want   string
	}{
		"user":      {sandbox.ExecutionFilter{User: "ada"}, "543210"},
		"sandbox":   {sandbox.ExecutionFilter{User: "ada", SandboxID: "s1"}, "531"},
		"status":    {sandbox.ExecutionFilter{User: "ada", Status: sandbox.StatusFailed}, "5"},
		"since":     {sandbox.ExecutionFilter{User: "ada", Since: base.Add(time.Hour)}, "5432"},
		"until":     {sandbox.ExecutionFilter{User: "ada", Until: base.Add(time.Hour)}, "10"},
		"code":      {sandbox.ExecutionFilter{User: "ada", Text: "TOTAL = 3"}, "3"},
		"wildcards": {sandbox.ExecutionFilter{User: "ada", Text: "100%_sum"}, "543210"},
		"error":     {sandbox.ExecutionFilter{User: "ada", Text: "revenue"}, "5"},
		"injection": {sandbox.ExecutionFilter{User: "x' OR true --"}, ""},
	} {
		list, next, err := h.Executions(ctx, c.filter)
		if err != nil || next != "" || numbersOf(list) != c.want {
			t.Errorf("by %s: got %s, cursor %q, %v; want %s", name, numbersOf(list), next, err, c.want)
		}
	}
	got, want := pagesOf(t, h, sandbox.ExecutionFilter{User: "ada", Limit: 1}), []string{"5", "4", "3", "2", "1", "0"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pages of one: got %q, want %q", got, want)
	}
	for _, cursor := range []string{"nonsense", "other"} { // the second is an execution of another user
		_, _, err := h.Executions(ctx, sandbox.ExecutionFilter{User: "ada", After: cursor})
		if !hasFault(err, sandbox.FaultInvalid) {
			t.Errorf("cursor %q: got %v, want %s", cursor, err, sandbox.FaultInvalid)
		}
	}
	if _, err := h.Execution(ctx, "nonsense"); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("Execution of an unknown id: got %v, want %s", err, sandbox.FaultNotFound)
	}
}

func TestLargePagesEndEarly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	for n, size := range []int{20 << 20, 1, 9 << 20, 9 << 20, 1} {
		e := runningExecution(fmt.Sprint("e", n))
		e.CreatedAt = e.CreatedAt.Add(time.Duration(n) * time.Second)
		h.begin(t, e)
		if n == 2 { // it runs, and its query is large
			query := queryProgress(e.ID, 0, strings.Repeat("x", size), sandbox.QueryRunning)
			if err := h.Progress(ctx, query); err != nil {
				t.Fatal(err)
			}
			continue
		}
		e.Stdout = strings.Repeat("x", size)
		h.finish(t, e, sandbox.StatusCompleted)
	}
	if got, want := pagesOf(t, h, sandbox.ExecutionFilter{}), []string{"43", "21", "0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pages: got %q, want %q", got, want)
	}
}

// A generic plan does not know how rare a status is.
func TestListsArePlannedForTheirArguments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	s.query(t, `INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, completed_at, record)
		SELECT format('e-%s', n), 'box', 'ada', 'execute', 'completed', '', now() - interval '1 second' * n, now(), '{}'
		FROM generate_series(1, 1000) n`)
	for range 12 { // PostgreSQL makes a generic plan after five executions
		f := sandbox.ExecutionFilter{Status: sandbox.StatusFailed}
		if list, _, err := s.ExecutionSummaries(ctx, f); err != nil || len(list) != 0 {
			t.Fatalf("got %d executions, %v, want none", len(list), err)
		}
	}
	for _, conn := range s.pool.AcquireAllIdle(ctx) {
		rows, _ := conn.Query(ctx, `SELECT statement FROM pg_prepared_statements
			WHERE generic_plans > 0 AND statement LIKE 'SELECT id, %status = $1%'`)
		statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if conn.Release(); err != nil || len(statements) > 0 {
			t.Errorf("got generic plans of %q, %v, want none", statements, err)
		}
	}
}

// Matches may be frequent among the newest executions, frequent among the older ones only, or rare.
func TestSearchReadsPagesInOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	const count, newest = maxSorted + 2*maxScanned, maxScanned + 100
	s.query(t, fmt.Sprintf(`INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, completed_at,
			record, seconds)
		SELECT format('e-%%s', n), 'box', 'ada', 'execute', 'completed',
			CASE WHEN n <= %d THEN 'profit' ELSE 'margin' END || CASE WHEN n %% 1000 = 7 THEN ' zebra' ELSE '' END,
			now() - interval '1 second' * n, now(), '{}', n
		FROM generate_series(1, %d) n`, newest, count))
	for _, c := range []struct {
		text        string
		order       sandbox.ExecutionOrder
		first, next int // number of the first one of a page, and of the one after it
	}{
		{"profit", "", 1, 2},
		{"margin", "", newest + 1, newest + 2},
		{"margin", sandbox.ListByDuration, count, count - 1},
		{"profit", sandbox.ListByDuration, newest, newest - 1},
		{"zebra", "", 7, 1007},
		{"zebra", sandbox.ListByDuration, count - 993, count - 1993},
	} {
		f := sandbox.ExecutionFilter{Text: c.text, Order: c.order, Limit: 3}
		for page := range 2 {
			list, cursor, err := s.ExecutionSummaries(t.Context(), f)
			var got, want []string
			for n, e := range list {
				got, want = append(got, e.ID), append(want, fmt.Sprint("e-", c.first+(3*page+n)*(c.next-c.first)))
			}
			if err != nil || len(got) != 3 || cursor == "" || !slices.Equal(got, want) {
				t.Errorf("%q by %q, page %d: got %v, cursor %q, %v, want three, %v", c.text, c.order, page, got, cursor,
					err, want)
			}
			f.After = cursor
		}
	}
}
