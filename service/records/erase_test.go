package records_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// What runs is not erased: neither an execution that is still known as running when history has its end, nor anything
// of a user who has a sandbox. After an erase nothing of it remains in history, on the disk or in memory.
func TestEraseWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	ctx := t.Context()
	f.finish(t, "e1", f.clock.Now())
	f.finish(t, "e2", f.clock.Now())
	store, unpin := f.StorePinned()
	a, err := store("a.txt", strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	a.Path = "a.txt"
	files := []sandbox.Artifact{a}
	e := &sandbox.Execution{ID: "e1", SandboxID: "s", User: ada.User}
	if _, err := f.KeepArtifacts(ctx, e, "outputs/e1", files, time.Minute); err != nil {
		t.Fatal(err)
	}
	unpin()
	_, err = f.EraseExecution(ctx, grace, "e1")
	isFault(t, err, sandbox.FaultForbidden)
	f.life.executions = []string{"e1"}
	_, err = f.EraseExecution(ctx, root, "e1")
	isFault(t, err, sandbox.FaultBusy)
	_, err = f.EraseUser(ctx, root, ada.User)
	isFault(t, err, sandbox.FaultBusy)
	f.life.executions = nil
	f.life.sandboxes = map[string]sandbox.Sandbox{"s": {ID: "s", Owner: ada.User}}
	_, err = f.EraseUser(ctx, root, ada.User)
	isFault(t, err, sandbox.FaultBusy)
	if n := f.total(t); n != 2 || len(f.life.forgotten) != 0 {
		t.Errorf("after refusals: got %d executions and %d calls of Forget, want 2 and none", n, len(f.life.forgotten))
	}

	erased, err := f.EraseExecution(ctx, root, "e1")
	if err != nil || erased.Executions != 1 {
		t.Fatalf("got %+v, %v; want one execution erased", erased, err)
	}
	if len(f.life.forgotten) != 1 || !f.life.forgotten[0]("e1", ada.User) || f.life.forgotten[0]("e2", ada.User) {
		t.Error("the process does not forget exactly the erased execution")
	}
	_, err = f.Execution(ctx, ada, "e1")
	isFault(t, err, sandbox.FaultNotFound)
	_, _, err = f.OpenArtifact(ctx, ada, files[0].ID)
	isFault(t, err, sandbox.FaultNotFound)
	if err := f.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Blobs.Open(a.SHA256); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("bytes of an erased artifact: got %v, want %v", err, os.ErrNotExist)
	}
	f.life.sandboxes = nil
	if erased, err = f.EraseUser(ctx, root, ada.User); err != nil || erased.Executions != 1 {
		t.Errorf("got %+v, %v; want the other execution erased", erased, err)
	}
}

// A caller sees the own records, an admin those of all, and the audit log says what an admin has seen.
func TestRecordsAreForTheirUsers(t *testing.T) {
	t.Parallel()
	f := start(t)
	ctx := t.Context()
	f.finish(t, "e1", f.clock.Now())
	if e, err := f.Execution(ctx, ada, "e1"); err != nil || e.ID != "e1" {
		t.Errorf("the owner: got %+v, %v; want the execution", e, err)
	}
	_, err := f.Execution(ctx, grace, "e1")
	isFault(t, err, sandbox.FaultNotFound)
	for caller, want := range map[*sandbox.Key]int{&ada: 1, &grace: 0, &root: 1} {
		list, _, err := f.ExecutionSummaries(ctx, *caller, sandbox.ExecutionFilter{})
		if err != nil || len(list) != want {
			t.Errorf("%s: got %d executions, %v; want %d", caller.User, len(list), err, want)
		}
	}
	if _, err := f.Execution(ctx, root, "e1"); err != nil {
		t.Fatal(err)
	}
	views, _, err := f.AuditEntries(ctx, root, sandbox.RecordFilter{})
	isView := func(e sandbox.AuditEntry) bool {
		return e.Action == sandbox.AuditViewed && e.Object == "execution/e1" && e.User == root.User &&
			e.Owner == ada.User
	}
	if err != nil || len(views) != 1 || !slices.ContainsFunc(views, isView) {
		t.Errorf("got the audit entries %+v, %v; want the view of the admin", views, err)
	}
	_, _, err = f.AuditEntries(ctx, grace, sandbox.RecordFilter{})
	isFault(t, err, sandbox.FaultForbidden)
}
