package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// Expired executions are those that ended, the oldest first, without those whose writes wait for a decision.
func TestExpiredExecutions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	base := storeReviewed(t, h, 4) // e0 to e3, and g; each has a pending write
	decided := func(id string, status sandbox.WriteStatus) {
		w := sandbox.PendingWrite{ID: "w-" + id, ExecutionID: id, Status: status, CreatedAt: base}
		if err := h.MoveWrite(ctx, w, sandbox.WritePending); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"e0", "e1", "e3"} {
		decided(id, sandbox.WriteRejected)
	}
	decided("e2", sandbox.WriteApplying)
	running := runningExecution("runs")
	running.CreatedAt = base
	h.begin(t, running)
	if err := h.writer.waitInserted(ctx, scope{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before time.Time
		limit  int
		want   []string
	}{
		{base, 10, nil},
		{base.Add(time.Minute), 10, []string{"e0"}},
		{base.Add(time.Hour), 2, []string{"e0", "e1"}},
		{base.Add(time.Hour), 10, []string{"e0", "e1", "e3"}}, // g has a write that waits
	} {
		got, err := h.ExpiredExecutions(ctx, c.before, false, c.limit)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("before %s, limit %d: got %q, %v; want %q", c.before, c.limit, got, err, c.want)
		}
	}
}

// An execution that was open when the service was killed expires with its key's history_days, and keeps the id of its
// trace, whether its record was in the database by then or only in the log.
func TestExecutionOpenAtAKillExpires(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := runningExecution("open")
	e.TraceID, e.ExpiresAt = "4bf92f3577b34da6a3ce929d0e0e4736", new(e.CreatedAt.AddDate(0, 0, 2))
	inDatabase := newStore(t)
	inDatabase.begin(t, e)
	inDatabase = inDatabase.reopen(t)
	r, err := executionRow(e)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeLog(t, dir, string(r.record))
	for name, h := range map[string]*testStore{
		"in the database": inDatabase, "in the log": openStore(t, Config{URL: databaseURL(t), Dir: dir}),
	} {
		if n, err := h.Recover(ctx); err != nil || n != 1 {
			t.Fatalf("%s: Recover: got %d, %v; want 1", name, n, err)
		}
		got, err := h.Execution(ctx, e.ID)
		if err != nil || got.Status != sandbox.StatusCancelled || got.TraceID != e.TraceID || got.ExpiresAt == nil ||
			!got.ExpiresAt.Equal(*e.ExpiresAt) {
			t.Errorf("%s: got %+v, %v; want it cancelled, with trace %s until %s",
				name, got, err, e.TraceID, e.ExpiresAt)
		}
		for days, want := range map[int][]string{1: nil, 3: {e.ID}} {
			expired, err := h.ExpiredExecutions(ctx, e.CreatedAt.AddDate(0, 0, days), true, 10)
			if err != nil || !slices.Equal(expired, want) {
				t.Errorf("%s: after %d days: got %q, %v; want %q", name, days, expired, err, want)
			}
		}
		if erased, err := h.EraseExecutions(ctx, []string{e.ID}); err != nil || erased.Executions != 1 {
			t.Errorf("%s: erased %+v, %v; want one execution", name, erased, err)
		}
	}
}

// A write that was being applied when the service ended has an unknown outcome. Its execution does not expire.
func TestInterruptedWriteIsUnknown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	base := storeReviewed(t, h, 2)
	for id, status := range map[string]sandbox.WriteStatus{
		"e0": sandbox.WriteApplying, "e1": sandbox.WriteApplied, "g": sandbox.WriteApplying,
	} {
		w := sandbox.PendingWrite{ID: "w-" + id, ExecutionID: id, SQL: "DELETE", Status: status, CreatedAt: base}
		if err := h.MoveWrite(ctx, w, sandbox.WritePending); err != nil {
			t.Fatal(err)
		}
	}
	finished := sandbox.PendingWrite{ID: "w-g", Status: sandbox.WriteFailed, CreatedAt: base}
	for range 2 { // an attempt whose confirmation was lost is repeated
		if err := h.FinishWrite(ctx, finished); err != nil {
			t.Fatal(err)
		}
	}
	h = h.reopen(t)
	for id, want := range map[string]sandbox.WriteStatus{
		"w-e0": sandbox.WriteUnknown, "w-e1": sandbox.WriteApplied, "w-g": sandbox.WriteFailed,
	} {
		w, err := h.Write(ctx, id)
		if err != nil || w.Status != want || (want == sandbox.WriteUnknown) != (w.Error != "" && w.SQL == "DELETE") {
			t.Errorf("%s: got %+v, %v; want the status %s", id, w, err, want)
		}
	}
	if list, _, err := h.Writes(ctx, sandbox.WriteFilter{Status: sandbox.WriteUnknown}); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v; want one unknown write", list, err)
	}
	expired, err := h.ExpiredExecutions(ctx, base.Add(time.Hour), false, 10)
	if err != nil || !slices.Equal(expired, []string{"e1", "g"}) {
		t.Errorf("got the expired executions %q, %v; want e1 and g", expired, err)
	}
}

// EraseEnded deletes what is left when the executions are gone, and nothing that lives.
func TestEraseEnded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	base := storeReviewed(t, h, 1) // e0 of ada in s-ada, and g of grace in s-grace
	for _, b := range []sandbox.Sandbox{
		{ID: "old", Owner: "ada"}, {ID: "live", Owner: "ada"}, {ID: "new", Owner: "ada"},
	} {
		b.State, b.CreatedAt = sandbox.StateActive, base
		if err := h.CreateSandbox(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	for id, at := range map[string]time.Time{"old": base, "s-ada": base, "new": base.Add(48 * time.Hour)} {
		if err := h.EndSandbox(ctx, id, "ada", sandbox.StateDeleted, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []sandbox.Conversation{
		{ID: "c-old", User: "ada", CreatedAt: base, UpdatedAt: base},
		{ID: "c-new", User: "ada", CreatedAt: base, UpdatedAt: base.Add(48 * time.Hour)},
	} {
		if err := h.CreateConversation(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"e0", "gone", "young"} {
		if err := writeFileDurably(filepath.Join(h.refusedDir, id+".json"), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if id != "young" {
			if err := os.Chtimes(filepath.Join(h.refusedDir, id+".json"), base, base); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.writer.waitInserted(ctx, scope{}); err != nil {
		t.Fatal(err)
	}
	before := base.Add(24 * time.Hour)
	var total sandbox.Erased
	for rounds := 0; ; rounds++ {
		erased, err := h.EraseEnded(ctx, before, 1)
		if err != nil || rounds > 10 {
			t.Fatalf("round %d: got %+v, %v", rounds, erased, err)
		}
		if total.Add(erased); erased.Sandboxes+erased.Conversations == 0 {
			break
		}
	}
	if total.Sandboxes != 1 || total.Conversations != 1 {
		t.Errorf("got %+v, want 1 sandbox and 1 conversation", total)
	}
	left := h.query(t, `SELECT id FROM sandboxes UNION ALL SELECT id FROM conversations ORDER BY 1`)
	want := []string{"c-new", "live", "new", "s-ada", "s-grace"} // s-ada has an execution
	if !slices.Equal(left, want) {
		t.Errorf("left: got %q, want %q", left, want)
	}
	var files []string
	entries, err := os.ReadDir(h.refusedDir)
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	if want := []string{"e0.json", "young.json"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files of refused records: got %q, %v; want %q", files, err, want)
	}
}

// SizeLimit finds the time since which history has a size, however executions are spread.
func TestSizeLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	const count, size = 60, 40_000
	if limit, err := h.SizeLimit(ctx, 1); err != nil || !limit.IsZero() {
		t.Errorf("an empty history: got %s, %v; want no limit", limit, err)
	}
	base := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	random := rand.NewChaCha8([32]byte{}) // so that it cannot be compressed
	for n := range count {
		e := runningExecution(fmt.Sprintf("e%02d", n))
		e.CreatedAt = base.Add(time.Duration(n) * time.Second)
		if n < 3 {
			e.CreatedAt = e.CreatedAt.Add(-300 * 24 * time.Hour)
		}
		content := make([]byte, size/2)
		_, _ = random.Read(content)
		e.Stdout = fmt.Sprintf("%x", content)
		h.finish(t, e, sandbox.StatusCompleted)
	}
	if err := h.writer.waitInserted(ctx, scope{}); err != nil {
		t.Fatal(err)
	}
	if limit, err := h.SizeLimit(ctx, 1<<40); err != nil || !limit.IsZero() {
		t.Errorf("a large limit: got %s, %v; want none", limit, err)
	}
	for _, maxBytes := range []int64{0, size / 2, 10 * size, 57 * size} {
		limit, err := h.SizeLimit(ctx, maxBytes)
		if err != nil || limit.IsZero() {
			t.Fatalf("limit of %d bytes: got %s, %v", maxBytes, limit, err)
		}
		kept := h.query(t, `SELECT coalesce(sum(pg_column_size(record)), 0)::text || ' ' || count(*)
			FROM executions WHERE created_at >= $1`, limit)[0]
		var bytes, rows int64
		if _, err := fmt.Sscan(kept, &bytes, &rows); err != nil {
			t.Fatal(err)
		}
		if bytes > maxBytes || maxBytes-bytes > 2*size {
			t.Errorf("limit of %d bytes: got %d bytes in %d executions since %s, want at most 2 records less",
				maxBytes, bytes, rows, limit)
		}
	}
}
