package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/dbaccess/history/wal"
	"glasshouse/sandbox"
)

func open(t testing.TB, s *embedded.Server) *history.Store {
	t.Helper()
	return openIn(t, s, t.TempDir())
}

// openIn opens a store with its log in a folder; what it says goes nowhere.
func openIn(t testing.TB, s *embedded.Server, dir string) *history.Store {
	t.Helper()
	say := logrus.New()
	say.SetOutput(io.Discard)
	h, err := history.Open(context.Background(), history.Config{URL: s.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: dir}, say)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func execution(id string) *sandbox.Execution {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &sandbox.Execution{ID: id, SandboxID: "s1", User: "ada", Kind: sandbox.KindExecute, Status: sandbox.StatusRunning, Code: "1+1", CreatedAt: now, Timestamp: now}
}

// What was open when the service died is closed as cancelled; what was finished
// is whole, odd bytes included.
func TestExecutionsSurviveACrash(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	h := open(t, s)
	odd := execution("odd")
	odd.Code = "print('\x00')"
	if err := h.Begin(ctx, odd); err != nil {
		t.Fatal(err)
	}
	odd.Status, odd.Stdout = sandbox.StatusCompleted, "a\x00b\u2028"
	now := time.Now().UTC()
	odd.CompletedAt = &now
	if err := h.Finish(ctx, odd); err != nil {
		t.Fatal(err)
	}
	if err := h.Begin(ctx, execution("left")); err != nil {
		t.Fatal(err)
	}
	h.Close()
	h = open(t, s)
	defer h.Close()
	n, err := h.Recover(ctx)
	if err != nil || n != 1 {
		t.Fatalf("Recover = %d, %v; want 1", n, err)
	}
	left, err := h.Execution(ctx, "left")
	if err != nil || left.Status != sandbox.StatusCancelled || left.Error == nil || !strings.Contains(*left.Error, "service") {
		t.Errorf("left open: %+v, %v", left, err)
	}
	if shown, err := json.Marshal(left); err != nil || !strings.Contains(string(shown), `"outputs":[]`) || !strings.Contains(string(shown), `"logs":[]`) {
		t.Errorf("its lists are not empty ones: %s, %v", shown, err)
	}
	if got, err := h.Execution(ctx, "odd"); err != nil || got.Stdout != odd.Stdout || got.Code != odd.Code {
		t.Errorf("odd bytes: %q %q, %v", got.Stdout, got.Code, err)
	}
	list, next, err := h.Executions(ctx, sandbox.ExecutionFilter{SandboxID: "s1", Limit: 1})
	if err != nil || len(list) != 1 || next == "" {
		t.Fatalf("first page: %d, %q, %v", len(list), next, err)
	}
	if list, next, err = h.Executions(ctx, sandbox.ExecutionFilter{SandboxID: "s1", Limit: 1, After: next}); err != nil || len(list) != 1 || next != "" || list[0].ID != "odd" {
		t.Errorf("second page: %+v, %q, %v", list, next, err)
	}
}

// A record that can't be read keeps no other, nor the service, from coming back.
func TestAnUnreadableRecord(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	log, err := wal.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"outputs":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, `{"execution_id":"good","status":"completed","created_at":"2026-01-02T03:04:05Z","completed_at":"2026-01-02T03:04:06Z"}`} {
		if _, err := log.Append([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	h := openIn(t, dbtest.Start(t), dir)
	defer h.Close()
	if e, err := h.Execution(ctx, "good"); err != nil || e.Status != sandbox.StatusCompleted {
		t.Errorf("%+v, %v", e, err)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "refused", "unread-*.json")); err != nil || len(kept) != 1 {
		t.Errorf("%q, %v", kept, err)
	}
}

func TestConcurrentExecutionsAreAllKept(t *testing.T) {
	ctx := context.Background()
	h := open(t, dbtest.Start(t))
	defer h.Close()
	var all sync.WaitGroup
	for n := range 64 {
		all.Add(1)
		go func() {
			defer all.Done()
			e := execution(fmt.Sprint("e", n))
			if err := h.Begin(ctx, e); err != nil {
				t.Error(err)
			}
			e.Status = sandbox.StatusCompleted
			now := time.Now()
			e.CompletedAt = &now
			if err := h.Finish(ctx, e); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	st, err := h.Statistics(ctx, "ada")
	if err != nil || st.TotalExecutions != 64 || st.SuccessRate != 100 {
		t.Errorf("Statistics = %+v, %v", st, err)
	}
	if st, _ := h.Statistics(ctx, "grace"); st.TotalExecutions != 0 {
		t.Errorf("another user sees %d executions", st.TotalExecutions)
	}
}
