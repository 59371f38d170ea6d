package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/embedded"
)

// TestWriteOfAKilledServiceIsUnknown kills the service while PostgreSQL runs the COMMIT of a write. The write does not
// run again unless an admin has recorded that it was not applied.
func TestWriteOfAKilledServiceIsUnknown(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	ctx := context.Background()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir)
	connect := func() *pgx.Conn {
		t.Helper()
		url, err := embedded.URL(dir, embedded.RoleAdmin, embedded.DatabaseKnowledge)
		if err != nil {
			t.Fatal(err)
		}
		owner, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		return owner
	}
	owner := connect()
	if _, err := owner.Exec(ctx, `
		CREATE TABLE totals (id int PRIMARY KEY, n int);
		INSERT INTO totals VALUES (1, 0);
		GRANT SELECT, UPDATE ON totals TO glasshouse_writer;
		GRANT SELECT ON totals TO glasshouse_reader;
		CREATE TABLE gate (id int);
		INSERT INTO gate VALUES (1);
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
			$$ BEGIN PERFORM FROM gate FOR UPDATE; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON totals DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION wait()`); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(ctx, "BEGIN; SELECT FROM gate FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	const code = `db_query("UPDATE totals SET n = n + 1 WHERE id = 1")`
	sandbox := c.newSandbox(t, map[string]any{"write_policy": "capture"})
	eventually(t, func() error { // the table is new
		e := c.must(t, "POST", "/sandbox/"+sandbox+"/execute", map[string]any{"code": code})
		if e["status"] != "completed" {
			return fmt.Errorf("got %v, want the write captured", e)
		}
		return nil
	})
	writeWith := func(status string) map[string]any {
		t.Helper()
		list, _ := c.must(t, "GET", "/pending-writes?status="+status, nil)["pending_writes"].([]any)
		if len(list) != 1 {
			t.Fatalf("got %d writes with the status %s, want 1", len(list), status)
		}
		return list[0].(map[string]any)
	}
	route := "/pending-writes/" + fmt.Sprint(writeWith("pending")["id"]) + "/"
	applied := make(chan error, 1)
	go func() { applied <- c.call(ctx, "POST", route+"apply", nil, nil) }()
	eventually(t, func() error {
		var waiting int
		err := owner.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting)
		if err == nil && waiting == 0 {
			err = fmt.Errorf("no COMMIT waits")
		}
		return err
	})
	writeWith("applying")
	killService(t, cmd)
	if err := <-applied; err == nil {
		t.Error("the write was applied by a service that was killed")
	}

	_, c = start(t, path, dir)
	if w := writeWith("unknown"); !strings.Contains(fmt.Sprint(w["error"]), "look in the database") {
		t.Errorf("got %v, want an error that says what to do", w)
	}
	wantRefused := func(route string, body map[string]any) {
		t.Helper()
		if err := c.call(ctx, "POST", route, body, nil); err == nil || !strings.Contains(err.Error(), "409") {
			t.Errorf("%s: got %v, want 409", route, err)
		}
	}
	wantRefused(route+"apply", map[string]any{})
	wantRefused(route+"reject", map[string]any{})
	total := func() (n int) {
		t.Helper()
		owner := connect()
		defer owner.Close(ctx)
		if err := owner.QueryRow(ctx, "SELECT n FROM totals").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// PostgreSQL may have ended the COMMIT before it was killed, too.
	wasApplied := total() == 1
	c.must(t, "POST", route+"resolve", map[string]any{"applied": wasApplied})
	if !wasApplied {
		c.must(t, "POST", route+"apply", map[string]any{})
	}
	writeWith("applied")
	if n := total(); n != 1 {
		t.Errorf("got the total %d, want 1", n)
	}
}
