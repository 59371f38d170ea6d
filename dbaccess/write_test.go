package dbaccess_test

import (
	"context"
	"errors"
	"testing"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// TestApplyKnowsItsOutcome cuts the connection of writes: before COMMIT, when nothing has changed, and while the server
// runs COMMIT, when only the database knows.
func TestApplyKnowsItsOutcome(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	r := openWithWriter(t, s, `
		CREATE TABLE totals (id int PRIMARY KEY, n int);
		INSERT INTO totals VALUES (1, 0), (2, 0), (3, 0);
		CREATE TABLE gate (id int);
		INSERT INTO gate VALUES (1);
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			PERFORM FROM gate FOR UPDATE;
			IF NEW.id = 3 THEN RAISE 'three is refused'; END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON totals DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION wait()`)
	// cut applies a statement and ends its session when it waits for a lock that the owner takes before.
	cut := func(lock, sql string) error {
		t.Helper()
		if _, err := owner.Exec(ctx, "BEGIN; "+lock); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			keep := func(context.Context, sandbox.WriteUndo) error { return nil }
			_, err := r.ApplyKeepingUndo(ctx, sql, nil, 1, keep)
			done <- err
		}()
		eventually(t, sql+" waits for a lock", func() bool {
			tag, err := owner.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_locks
				WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`)
			if err != nil {
				t.Fatal(err)
			}
			return tag.RowsAffected() == 1
		})
		err := <-done
		if _, err := owner.Exec(ctx, "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		return err
	}
	err = cut("SELECT FROM gate FOR UPDATE", "UPDATE totals SET n = n + 1 WHERE id = 1")
	if !errors.Is(err, sandbox.ErrOutcomeUnknown) || sandbox.FaultOf(err) != sandbox.FaultUnavailable {
		t.Errorf("cut in COMMIT: got %v, want an unknown outcome", err)
	}
	err = cut("SELECT FROM totals WHERE id = 2 FOR UPDATE", "UPDATE totals SET n = n + 1 WHERE id = 2")
	if err == nil || errors.Is(err, sandbox.ErrOutcomeUnknown) {
		t.Errorf("cut before COMMIT: got %v, want an error with a known outcome", err)
	}
	_, err = r.Apply(ctx, "UPDATE totals SET n = n + 1 WHERE id = 3", nil)
	var no *sandbox.Refusal
	if !errors.As(err, &no) || errors.Is(err, sandbox.ErrOutcomeUnknown) {
		t.Errorf("refused by COMMIT: got %v, want a refusal", err)
	}
	var changed int
	if err := owner.QueryRow(ctx, "SELECT sum(n) FROM totals").Scan(&changed); err != nil || changed != 0 {
		t.Errorf("got %d changed rows and %v, want none", changed, err)
	}
}
