package dbaccess_test

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// A statement that the server still runs after it was cancelled keeps its slots. When a user has no
// other slot, another statement is refused at once, with the reason. Other users are not affected, and all is as before
// when the statements have ended. Stopped processes of the server stand for code of PostgreSQL that cannot be
// cancelled.
func TestOverdueStatementsKeepTheirSlots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.StartPrivate(t)
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	const (
		statements = 2
		long       = "SELECT count(*) FROM generate_series(1, 1000000000)"
	)
	reported := make(chan dbaccess.Overdue, 2*statements)
	r, err := dbaccess.Open(ctx, dbaccess.Config{
		URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), PerUser: statements,
		WriterURL: s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge),
		Overdue:   func(o dbaccess.Overdue) { reported <- o },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	nextReport := func() (o dbaccess.Overdue) {
		t.Helper()
		select {
		case o = <-reported:
		case <-time.After(time.Minute):
			t.Fatal("no report within a minute")
		}
		return o
	}
	run := func(sql, user string) error {
		_, err := all(ctx, r, sql, nil, sandbox.QueryLimits{User: user, Timeout: time.Second})
		return err
	}

	ends := make(chan error, statements)
	for range statements {
		go func() { ends <- run(long, "anna") }()
	}
	var pids []int
	eventually(t, "the statements run", func() bool {
		rows, _ := admin.Query(ctx, `SELECT pid FROM pg_stat_activity
			WHERE query LIKE 'SELECT count%' AND state = 'active' AND usename = $1`, embedded.RoleReader)
		pids, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err == nil && len(pids) == statements
	})
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for range statements {
		if err := <-ends; reason(err) != "timeout" {
			t.Errorf("got %v, want a timeout", err)
		}
	}
	for range statements {
		if o := nextReport(); o.HasEnded || o.User != "anna" || !slices.Contains(pids, int(o.PID)) {
			t.Errorf("got the report %+v, want one of a statement of anna that has not ended, in %v", o, pids)
		}
	}
	if err := run("SELECT 1", "anna"); reason(err) != "unavailable" ||
		!strings.Contains(err.Error(), "still runs 2 of your earlier statements") {
		t.Errorf("another statement of anna: got %v, want a refusal that names 2 earlier statements", err)
	}
	_, err = r.Capture(ctx, "DELETE FROM users", nil, sandbox.QueryLimits{User: "anna"})
	if reason(err) != "unavailable" {
		t.Errorf("the plan of a write of anna: got %v, want a refusal", err)
	}
	if err := run("SELECT 1", "ben"); err != nil {
		t.Errorf("a statement of ben: got %v", err)
	}

	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	for range statements {
		if o := nextReport(); !o.HasEnded || o.Took < time.Second {
			t.Errorf("got the report %+v, want a statement that has ended", o)
		}
	}
	eventually(t, "anna can run statements again", func() bool { return run("SELECT 1", "anna") == nil })
}
