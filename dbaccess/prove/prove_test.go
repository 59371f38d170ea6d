package prove_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/prove"
)

// No attack passes the reader or the check. Each other layer stops only some attacks. The attacks do not change the
// database.
func TestReaderRefusesEveryAttack(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	url := s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	state := func() (text string) {
		row := admin.QueryRow(
			ctx,
			`SELECT concat_ws(' ', (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc),
			(SELECT count(*) FROM pg_roles), (SELECT count(*) FROM pg_largeobject_metadata),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_replication_slots),
			(SELECT md5(string_agg(a::text, '' ORDER BY id)) FROM articles a))`,
		)
		if err := row.Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := state()
	outcomes, err := prove.Run(ctx, r, url, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before {
		t.Errorf("state of the database: got %s, want %s as before", after, before)
	}
	login, readOnly := 0, 0
	for _, o := range outcomes {
		if o.Check || o.Reader {
			t.Errorf("%s passes the check: %t, the reader: %t; want neither", o.Name, o.Check, o.Reader)
		}
		if o.Login {
			login++
		}
		if o.ReadOnly {
			readOnly++
		}
	}
	n := len(outcomes)
	if n < 90 || login == 0 || login > n/2 || readOnly == 0 || readOnly > n/2 {
		t.Errorf(
			"of %d attacks %d pass the login and %d READ ONLY; want 90 or more, and some but at most half for each",
			n,
			login,
			readOnly,
		)
	}
	var text bytes.Buffer
	succeeded, err := prove.Print(&text, outcomes)
	if lines := strings.Count(text.String(), "\n"); err != nil || succeeded != 0 || lines != n+2 {
		t.Errorf("Print: got %d succeeded, %d lines, %v; want 0 and %d", succeeded, lines, err, n+2)
	}
	t.Log(text.String())
}

// TestReachableFunctionsAreRevoked compares a new login in a database as PostgreSQL makes it, before and after the SQL
// of `glasshouse role-sql --revoke-from-public`.
func TestReachableFunctionsAreRevoked(t *testing.T) {
	ctx := context.Background()
	s := dbtest.StartPrivate(t) // its roles change
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	run := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	const calls = 9
	refused := func(url string) (n int) {
		t.Helper()
		conn, err := dbtest.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		for _, sql := range []string{
			"SELECT s.ts_stat FROM unnest(ARRAY['SELECT ''a''::tsvector']) s",
			"SELECT query_to_xml('SELECT 1', true, true, '')", "SELECT * FROM pg_stat_activity",
			"SELECT * FROM pg_locks", "SELECT pg_cancel_backend(0)", "SELECT pg_sleep(0)",
			"SELECT pg_advisory_unlock_all()", "SELECT lo_get(0)", "SELECT txid_current()",
		} {
			_, err := conn.Exec(ctx, sql)
			if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
				n++
			} else if err != nil && (!ok || pg.Code != "42704") { // lo_get finds no large object
				t.Errorf("%s: %v", sql, err)
			}
		}
		return n
	}
	url := s.URL("agents", "postgres")
	run(dbaccess.RoleSQL("agents", "postgres", dbaccess.RoleOptions{}))
	if reachable, err := prove.Reachable(ctx, url); err != nil || len(reachable) != 7 || refused(url) != 0 {
		t.Errorf("by default: got %v, %v and %d refused calls, want functions of 7 kinds and none",
			reachable, err, refused(url))
	}
	run("DROP OWNED BY agents; DROP ROLE agents")
	for range 2 { // it may run again
		run(dbaccess.RoleSQL("agents", "postgres", dbaccess.RoleOptions{RevokeFromPublic: true}))
		if reachable, err := prove.Reachable(ctx, url); err != nil || len(reachable) != 0 || refused(url) != calls {
			t.Errorf("revoked: got %v, %v and %d refused calls, want none and %d", reachable, err, refused(url), calls)
		}
		run("DROP OWNED BY agents; DROP ROLE agents")
	}
	run(dbaccess.RoleSQL("agents", "postgres", dbaccess.RoleOptions{}) + "GRANT pg_monitor TO agents")
	var text bytes.Buffer
	reachable, err := prove.Reachable(ctx, url)
	if err == nil {
		err = prove.PrintReachable(&text, reachable)
	}
	if err != nil || len(reachable) != 1 || !strings.Contains(text.String(), "  see what others do: pg_") {
		t.Errorf("a member of pg_monitor: got %s and %v, want that it sees what others do, and no more", &text, err)
	}
}

// No generated statement calls a function that is not listed. If the check lets one pass, PostgreSQL's tree shows it.
func TestGeneratedStatementsCallNothing(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	const functions = `CREATE FUNCTION leak(int) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
		CREATE FUNCTION leak_any(anyelement) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC`
	if _, err := owner.Exec(ctx, functions); err != nil {
		t.Fatal(err)
	}
	url := s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	generate := func(allowed ...string) prove.Generated {
		r, err := dbaccess.Open(ctx, dbaccess.Config{URL: url, AllowFunctions: allowed})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		g, err := prove.Generate(ctx, r, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := generate()
	if g.Functions < 300 || g.Statements < 42*g.Functions || g.Refused == 0 || g.Unfound == 0 || len(g.Calls) > 0 {
		t.Errorf("got %+v, want statements with more than 300 functions, and no call", g)
	}
	if g = generate("leak"); len(g.Calls) < 20 || !strings.HasSuffix(g.Calls[0], ": public.leak(int4)") {
		t.Errorf("a reader that may call leak: got %d calls %.3v, want those of leak", len(g.Calls), g.Calls)
	}
	var out bytes.Buffer
	if err := prove.PrintGenerated(&out, g); err != nil || !strings.Contains(out.String(), "CALLS SELECT ") ||
		!strings.Contains(out.String(), " generated statements with ") {
		t.Errorf("got %s and %v, want the calls and the numbers", out.String(), err)
	}
}
