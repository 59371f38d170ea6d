package history

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// A read waits for the records that it is about, and not for those of other users, which may be many.
func TestReadsWaitOnlyForTheirOwnRecords(t *testing.T) {
	h := newStore(t)
	ctx := context.Background()
	of := func(user string) *sandbox.Execution {
		return &sandbox.Execution{ID: "e-" + user, SandboxID: "s-" + user, User: user, Kind: sandbox.KindExecute,
			Status: sandbox.StatusRunning, CreatedAt: time.Now().UTC()}
	}
	for _, user := range []string{"many", "one"} {
		if err := h.Begin(ctx, of(user)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Execution(ctx, "e-"+user); err != nil { // inserted
			t.Fatal(err)
		}
	}
	blocker, err := pgx.Connect(ctx, h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close(ctx)
	if _, err := blocker.Exec(ctx, "BEGIN; LOCK TABLE progress IN EXCLUSIVE MODE"); err != nil { // reads go on
		t.Fatal(err)
	}
	if err := h.Progress(ctx, queryProgress("e-many", 0, "SELECT 1", "running")); err != nil {
		t.Fatal(err)
	}
	reads := map[string]func(context.Context, string) error{
		"Executions": func(ctx context.Context, user string) error {
			_, _, err := h.Executions(ctx, sandbox.ExecutionFilter{User: user})
			return err
		},
		"Executions of a sandbox": func(ctx context.Context, user string) error {
			_, _, err := h.Executions(ctx, sandbox.ExecutionFilter{SandboxID: "s-" + user})
			return err
		},
		"Execution": func(ctx context.Context, user string) error {
			_, err := h.Execution(ctx, "e-"+user)
			return err
		},
		"Statistics": func(ctx context.Context, user string) error {
			_, err := h.Statistics(ctx, user)
			return err
		},
		"CountExecutions": func(ctx context.Context, user string) error {
			_, err := h.CountExecutions(ctx, "s-"+user)
			return err
		},
	}
	for name, read := range reads {
		if err := read(ctx, "one"); err != nil {
			t.Errorf("%s of a user without waiting records: %v", name, err)
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		if err := read(short, "many"); !isUnavailable(err) {
			t.Errorf("%s of the user of a waiting record: got %v, want it to wait", name, err)
		}
		cancel()
	}
	if _, err := blocker.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	for name, read := range reads {
		if err := read(ctx, "many"); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the insertion: %v", name, err)
		}
	}
}
