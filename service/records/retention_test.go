package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/service/records"
)

// interruptedHistory fails after a number of batches, as a service that is killed between two batches.
type interruptedHistory struct {
	*history.Store
	batches int
}

var errInterrupted = errors.New("interrupted")

func (h *interruptedHistory) EraseExecutions(ctx context.Context, ids []string) (sandbox.Erased, error) {
	if h.batches--; h.batches < 0 {
		return sandbox.Erased{}, errInterrupted
	}
	return h.Store.EraseExecutions(ctx, ids)
}

// Retention deletes the executions beyond an age with their files, even if it was interrupted, and says so in the audit
// log. Statistics count what is left.
func TestRetentionDeletesOldExecutions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	interrupted := &interruptedHistory{}
	s := start(t, func(c *records.Config, store *history.Store) {
		interrupted.Store = store
		c.History = interrupted
	})
	s.awaitFirstCheck()
	store := func(id string, at time.Time) sandbox.Artifact {
		t.Helper()
		s.finish(t, id, at)
		a, err := s.Blobs.Put("a.txt", strings.NewReader("of "+id))
		if err != nil {
			t.Fatal(err)
		}
		a.ID, a.ExecutionID, a.SandboxID, a.User = "a-"+id, id, "s", "ada"
		a.Folder, a.Path, a.CreatedAt = "outputs/"+id, "a.txt", at
		if err := s.History.KeepArtifacts(ctx, []sandbox.Artifact{a}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Blobs.Link(a); err != nil {
			t.Fatal(err)
		}
		s.Blobs.Unpin([]string{a.SHA256})
		return a
	}
	const old, young = 250, 3 // three batches
	now := s.clock.Now()
	var first sandbox.Artifact
	for n := range old + young {
		at := now.Add(-48*time.Hour + time.Duration(n)*time.Second)
		if n >= old {
			at = now.Add(-time.Hour)
		}
		if a := store("e"+string(rune('a'+n/26%26))+string(rune('a'+n%26)), at); n == 0 {
			first = a
		}
	}
	s.total(t) // all are inserted
	s.HistoryMaxAge, interrupted.batches = 24*time.Hour, 1
	if err := s.ApplyRetention(ctx); !errors.Is(err, errInterrupted) {
		t.Fatalf("got %v, want %v", err, errInterrupted)
	}
	if got := s.total(t); got != old+young-100 {
		t.Errorf("after one batch: got %d executions, want %d", got, old+young-100)
	}
	st := s.RetentionStatus()
	want := "interrupted"
	if st.Error != want || st.Deleted != 100 || st.MaxAgeSeconds != 86400 || !st.CheckedAt.Equal(now) {
		t.Errorf("status: got %+v; want 100 deleted executions, error %q and the last check at %s",
			st, want, now)
	}
	interrupted.batches = 100
	s.clock.move(time.Second)
	if err := s.ApplyRetention(ctx); err != nil {
		t.Fatal(err)
	}
	if got := s.total(t); got != young {
		t.Errorf("got %d executions, want %d", got, young)
	}
	if st = s.RetentionStatus(); st.Error != "" || st.Deleted != old || st.CheckedAt.Equal(now) || st.IsDeleting {
		t.Errorf("status: got %+v; want %d deleted executions and no error", st, old)
	}
	if err := s.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blobs.Open(first.SHA256); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("bytes of an artifact of a deleted execution: got %v, want %v", err, os.ErrNotExist)
	}
	var entries []string
	list, _, err := s.AuditEntries(ctx, root, sandbox.RecordFilter{Object: "history"})
	for _, entry := range list {
		var detail struct {
			Setting string
			Erased  *sandbox.Erased
		}
		if err := json.Unmarshal(entry.Detail, &detail); err != nil {
			t.Fatal(err)
		}
		text := entry.User + " " + string(entry.Action) + " " + detail.Setting
		if detail.Erased != nil {
			counts, _ := json.Marshal(detail.Erased.Executions)
			text += " " + string(counts)
		}
		entries = append([]string{text}, entries...)
	}
	want = "retention erased history-max-age | retention erased history-max-age 100 | " +
		"retention erased history-max-age | retention erased history-max-age 150"
	if got := strings.Join(entries, " | "); err != nil || got != want {
		t.Errorf("audit log: got %s, %v; want %s", got, err, want)
	}
	if err := s.ApplyRetention(ctx); err != nil {
		t.Fatal(err)
	}
	if list, _, err = s.AuditEntries(ctx, root, sandbox.RecordFilter{Object: "history"}); len(list) != 4 {
		t.Errorf("after a check that found nothing: got %d audit entries, %v; want 4", len(list), err)
	}
}

// A clock that is set forward deletes nothing: old is what has become old while the service ran, or before.
func TestClockThatIsSetForwardDeletesNothing(t *testing.T) {
	t.Parallel()
	var elapsed atomic.Int64
	elapsed.Store(int64(time.Minute))
	f := start(t, func(c *records.Config, _ *history.Store) {
		c.HistoryMaxAge, c.ArtifactAge = 24*time.Hour, 24*time.Hour
		c.Elapsed = func() time.Duration { return time.Duration(elapsed.Load()) }
	})
	f.awaitFirstCheck()
	f.finish(t, "e", f.clock.Now())
	executions := func() int {
		t.Helper()
		f.total(t) // the execution is in PostgreSQL
		if err := errors.Join(f.ApplyRetention(t.Context()), f.Sweep(t.Context())); err != nil {
			t.Fatal(err)
		}
		return f.total(t)
	}
	f.clock.move(10 * 365 * 24 * time.Hour)
	if n := executions(); n != 1 {
		t.Errorf("after a jump of ten years: got %d executions, want 1", n)
	}
	elapsed.Store(int64(25 * time.Hour))
	if n := executions(); n != 0 {
		t.Errorf("after 25 hours: got %d executions, want none", n)
	}
}
