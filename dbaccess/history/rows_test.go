package history_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy"
	"glasshouse/sandbox"
)

func keep(t *testing.T, h *history.Store, e *sandbox.Execution) {
	t.Helper()
	if err := h.Begin(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	if err := h.Finish(context.Background(), e); err != nil {
		t.Fatal(err)
	}
}

func TestRows(t *testing.T) {
	s, folder := dbtest.Start(t), t.TempDir()
	h := openIn(t, s, folder)
	defer h.Close()
	for name, test := range map[string]func(*testing.T, *history.Store){
		"every field comes back": everyField, "any bytes come back": anyBytes,
		"a bad row spoils no other":   func(t *testing.T, h *history.Store) { badRow(t, h, folder) },
		"a short run is written once": func(t *testing.T, h *history.Store) { shortRun(t, h, s) },
		"list filters":                listFilters, "large pages end early": largePages,
		"connections have rows": func(t *testing.T, h *history.Store) { connections(t, h, s) },
		"sandboxes":             sandboxes, "keys": keys, "statistics": statistics,
	} {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
	t.Run("a newer database is refused", func(t *testing.T) {
		conn, err := pgx.Connect(context.Background(), s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), `INSERT INTO schema_versions (name) VALUES ('9999_future.sql')`); err != nil {
			t.Fatal(err)
		}
		if late, err := history.Open(context.Background(), history.Config{URL: s.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: t.TempDir()}, logrus.New()); err == nil {
			late.Close()
			t.Error("it was opened")
		} else if !strings.Contains(err.Error(), "9999_future.sql") || !strings.Contains(err.Error(), "newer") {
			t.Errorf("error = %v", err)
		}
	})
}

// connections are in the record and in rows, once, however often it is finished.
func connections(t *testing.T, h *history.Store, s *embedded.Server) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	e := execution("connected")
	e.SandboxID, e.User, e.Status = "box", "ada", sandbox.StatusCompleted
	e.Connections = []sandbox.Connection{
		{Host: "example.org", Port: 443, Address: "44.1.1.1:443", Status: sandbox.ConnectionAllowed, BytesSent: 1, BytesReceived: 1 << 40, DurationMS: 0.5, StartedAt: at},
		{Host: "loop.example", Port: 80, Status: sandbox.ConnectionRefused, Reason: "a 'loopback' \"address\" \x00", StartedAt: at.Add(time.Second)},
	}
	keep(t, h, e)
	keep(t, h, e)
	got, err := h.Execution(context.Background(), "connected")
	if err != nil || !reflect.DeepEqual(got.Connections, e.Connections) {
		t.Errorf("%v: %+v", err, got.Connections)
	}
	conn, err := pgx.Connect(context.Background(), s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, _ := conn.Query(context.Background(), `SELECT concat_ws('|', number, sandbox_id, owner, host, port, address, status, bytes_sent, bytes_received, milliseconds, extract(epoch FROM started_at))
		FROM connections WHERE execution_id = 'connected' ORDER BY number`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	want := []string{"1|box|ada|example.org|443|44.1.1.1:443|allowed|1|1099511627776|0.5|1772600767.000008", "2|box|ada|loop.example|80||refused|0|0|0|1772600768.000008"}
	if err != nil || !reflect.DeepEqual(lines, want) {
		t.Errorf("%v: %q", err, lines)
	}
}

// badRow puts rows that cannot be kept among good ones, in the same groups.
// badRow has rows that only the database can refuse: an index does not take that much.
func badRow(t *testing.T, h *history.Store, folder string) {
	ctx := context.Background()
	for n := range 40 {
		e := execution(fmt.Sprint("group", n))
		e.SandboxID = "group"
		if n%10 == 0 {
			e.ID, e.User = "bad"+e.ID, ""
			for range 1000 { // which no compression makes small
				e.User += rand.Text()
			}
		}
		if err := h.Finish(ctx, e); err != nil {
			t.Error(err)
		}
	}
	if n, err := h.CountExecutions(ctx, "group"); err != nil || n != 36 {
		t.Errorf("%d kept, %v", n, err)
	}
	for _, id := range []string{"badgroup0", "badgroup30"} {
		text, err := os.ReadFile(filepath.Join(folder, "refused", id+".json"))
		if err != nil || !strings.Contains(string(text), id) {
			t.Errorf("what was refused is %.100q, %v", text, err)
		}
	}
	// What is refused for its record alone is on record as that.
	e := execution("badhost")
	e.Status = sandbox.StatusCompleted
	keep(t, h, e)
	for range 1000 {
		e.Stdout += rand.Text()
	}
	e.Connections = []sandbox.Connection{{Host: e.Stdout}}
	if err := h.Finish(ctx, e); err != nil {
		t.Error(err)
	}
	if got, err := h.Execution(ctx, e.ID); err != nil || got.Status != sandbox.StatusCompleted || got.CompletedAt == nil || got.Error == nil || !strings.Contains(*got.Error, "refused/badhost.json") {
		t.Errorf("what points to it is %+v, %v", got, err)
	}
	far := execution("far")
	far.CreatedAt = time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := h.Finish(ctx, far); err == nil {
		t.Error("a time that no record can hold has no error")
	}
}

// shortRun is one that is over before its row is on its way: written once.
func shortRun(t *testing.T, h *history.Store, s *embedded.Server) {
	ctx := context.Background()
	if _, err := h.Statistics(ctx, ""); err != nil { // all before is there
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows := func() (all, open int) {
		if err := conn.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE completed_at IS NULL) FROM executions WHERE sandbox_id = 'short'`).Scan(&all, &open); err != nil {
			t.Fatal(err)
		}
		return all, open
	}
	for n := range 200 {
		e := execution(fmt.Sprint("short", n))
		e.SandboxID = "short"
		keep(t, h, e)
	}
	long := execution("long")
	long.SandboxID = "short"
	if err := h.Begin(ctx, long); err != nil {
		t.Fatal(err)
	}
	for all, open := rows(); all != 201; all, open = rows() { // nobody asks the store: it comes by itself
		if open > 1 {
			t.Fatalf("%d of %d rows are open", open, all)
		}
	}
	if e, err := h.Execution(ctx, "long"); err != nil || e.Status != sandbox.StatusRunning {
		t.Errorf("%+v, %v", e, err)
	}
	if err := h.Finish(ctx, long); err != nil {
		t.Fatal(err)
	}
	if e, err := h.Execution(ctx, "long"); err != nil || e.CompletedAt == nil {
		t.Errorf("%+v, %v", e, err)
	}
}

func listFilters(t *testing.T, h *history.Store) {
	ctx := context.Background()
	base := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for n := range 6 {
		e := execution(fmt.Sprint("list", n))
		e.User, e.SandboxID, e.CreatedAt = "lister", fmt.Sprint("box", n%2), base.Add(time.Duration(n/2)*time.Hour) // in pairs of the same time
		e.Status, e.Code = sandbox.StatusCompleted, fmt.Sprintf("total = %d # 100%%_Sum", n)
		if n == 5 {
			why := "KeyError: 'Revenue'"
			e.Status, e.Error = sandbox.StatusFailed, &why
		}
		keep(t, h, e)
	}
	for name, c := range map[string]struct {
		f    sandbox.ExecutionFilter
		want string
	}{
		"user":      {sandbox.ExecutionFilter{User: "lister"}, "543210"},
		"sandbox":   {sandbox.ExecutionFilter{User: "lister", SandboxID: "box1"}, "531"},
		"status":    {sandbox.ExecutionFilter{User: "lister", Status: sandbox.StatusFailed}, "5"},
		"since":     {sandbox.ExecutionFilter{User: "lister", Since: base.Add(time.Hour)}, "5432"},
		"until":     {sandbox.ExecutionFilter{User: "lister", Until: base.Add(time.Hour)}, "10"},
		"code":      {sandbox.ExecutionFilter{User: "lister", Text: "TOTAL = 3"}, "3"},
		"wildcards": {sandbox.ExecutionFilter{User: "lister", Text: "100%_sum"}, "543210"},
		"error":     {sandbox.ExecutionFilter{User: "lister", Text: "revenue"}, "5"},
		"nobody":    {sandbox.ExecutionFilter{User: "x' OR true --"}, ""},
	} {
		list, next, err := h.Executions(ctx, c.f)
		if err != nil || next != "" || numbers(list) != c.want {
			t.Errorf("%s: %s, %q, %v; want %s", name, numbers(list), next, err, c.want)
		}
	}
	all, f := "", sandbox.ExecutionFilter{User: "lister", Limit: 1}
	for {
		list, next, err := h.Executions(ctx, f)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d, %v", len(list), err)
		}
		all += numbers(list)
		if f.After = next; next == "" {
			break
		}
	}
	if all != "543210" {
		t.Errorf("page by page: %s", all)
	}
	if _, _, err := h.Executions(ctx, sandbox.ExecutionFilter{After: "nonsense"}); !isFault(err, sandbox.FaultInvalid) {
		t.Errorf("a wrong cursor: %v", err)
	}
	if _, err := h.Execution(ctx, "nonsense"); !isFault(err, sandbox.FaultNotFound) {
		t.Errorf("a wrong id: %v", err)
	}
}

func numbers(list []sandbox.Execution) string {
	out := ""
	for _, e := range list {
		out += strings.TrimPrefix(e.ID, "list")
	}
	return out
}

func largePages(t *testing.T, h *history.Store) {
	sizes := []int{20 << 20, 1, 9 << 20, 9 << 20, 1}
	for n, size := range sizes {
		e := execution(fmt.Sprint("list", n, "L"))
		e.User, e.CreatedAt = "large", e.CreatedAt.Add(time.Duration(n)*time.Second)
		if n == 2 { // it goes on, and is large by what it does
			if err := errors.Join(h.Begin(context.Background(), e), h.Progress(context.Background(), statement(e.ID, 0, strings.Repeat("x", size), sandbox.QueryRunning))); err != nil {
				t.Fatal(err)
			}
			defer keep(t, h, e)
			continue
		}
		e.Stdout = strings.Repeat("x", size)
		keep(t, h, e)
	}
	got, f := []string{}, sandbox.ExecutionFilter{User: "large"}
	for {
		list, next, err := h.Executions(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, numbers(list))
		if f.After = next; next == "" {
			break
		}
	}
	if want := []string{"4L3L", "2L1L", "0L"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pages %v, want %v", got, want)
	}
}

func sandboxes(t *testing.T, h *history.Store) {
	ctx := context.Background()
	now := time.Now().UTC().Truncate(time.Microsecond)
	b := sandbox.Sandbox{ID: "home", Owner: "ada", Policy: policy.Default(), State: sandbox.StateActive, CreatedAt: now, LastUsed: now}
	if err := h.CreateSandbox(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Sandbox(ctx, "home"); err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, b)
	}
	e := execution("athome")
	e.SandboxID, e.CreatedAt = "home", now.Add(time.Minute)
	keep(t, h, e)
	if got, err := h.Sandbox(ctx, "home"); err != nil || !got.LastUsed.Equal(e.CreatedAt) {
		t.Errorf("last used %s, %v; want %s", got.LastUsed, err, e.CreatedAt)
	}
	if err := h.EndSandbox(ctx, "home", sandbox.StateExpired, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := h.EndSandbox(ctx, "home", sandbox.StateDeleted, now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Sandbox(ctx, "home"); err != nil || got.State != sandbox.StateExpired || got.EndedAt == nil || !got.EndedAt.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v, %v: its first end counts", got, err)
	}
	if err := h.CreateSandbox(ctx, sandbox.Sandbox{ID: "open", State: sandbox.StateActive, CreatedAt: now}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Sandbox(ctx, "open"); err != nil || got.State != sandbox.StateLost || got.EndedAt == nil {
		t.Errorf("after Recover %+v, %v", got, err)
	}
	if _, err := h.Sandbox(ctx, "no\x00where"); !isFault(err, sandbox.FaultNotFound) {
		t.Errorf("a sandbox that is not there: %v", err)
	}
}

func keys(t *testing.T, h *history.Store) {
	ctx := context.Background()
	now := time.Now().UTC().Truncate(time.Microsecond)
	for n, user := range []string{"kate", "liam"} {
		k := sandbox.Key{ID: "key-" + user, Name: "first", User: user, Role: sandbox.RoleAgent, CreatedAt: now.Add(time.Duration(n) * time.Second)}
		if err := h.CreateKey(ctx, k, []byte("hash of "+user)); err != nil {
			t.Fatal(err)
		}
		if err := h.CreateKey(ctx, k, []byte("hash of "+user)); !isFault(err, sandbox.FaultInvalid) {
			t.Errorf("the same key twice: %v", err)
		}
	}
	if k, err := h.KeyByHash(ctx, []byte("hash of kate")); err != nil || k.User != "kate" || k.Role != sandbox.RoleAgent || k.RevokedAt != nil {
		t.Errorf("%+v, %v", k, err)
	}
	if err := h.RevokeKey(ctx, "key-kate", "liam"); !isFault(err, sandbox.FaultNotFound) {
		t.Errorf("liam revokes kate's key: %v", err)
	}
	for range 2 {
		if err := h.RevokeKey(ctx, "key-kate", "kate"); err != nil {
			t.Fatal(err)
		}
	}
	if k, err := h.KeyByHash(ctx, []byte("hash of kate")); err != nil || k.RevokedAt == nil {
		t.Errorf("a revoked key: %+v, %v", k, err)
	}
	if _, err := h.KeyByHash(ctx, []byte("no hash")); !isFault(err, sandbox.FaultNotFound) {
		t.Errorf("no such key: %v", err)
	}
	if own, err := h.Keys(ctx, "liam"); err != nil || len(own) != 1 || own[0].ID != "key-liam" {
		t.Errorf("%+v, %v", own, err)
	}
	if all, err := h.Keys(ctx, ""); err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
}

func statistics(t *testing.T, h *history.Store) {
	for n, status := range []sandbox.Status{sandbox.StatusCompleted, sandbox.StatusCompleted, sandbox.StatusFailed, sandbox.StatusKilled, sandbox.StatusTimeout} {
		e := execution(fmt.Sprint("stat", n))
		e.User, e.Status, e.ExecutionTime, e.MemoryUsage = "counted", status, float64(n), float64(10*n)
		keep(t, h, e)
	}
	running := execution("stat-running")
	running.User = "counted"
	if err := h.Begin(context.Background(), running); err != nil {
		t.Fatal(err)
	}
	got, err := h.Statistics(context.Background(), "counted")
	got.Timestamp = time.Time{}
	want := sandbox.Statistics{TotalExecutions: 6, SuccessfulExecutions: 2, FailedExecutions: 2, TimeoutExecutions: 1, SuccessRate: 40, AverageExecutionTime: 2, PeakMemoryUsage: 40}
	if err != nil || got != want {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
}
