package oracle_test

import (
	"context"
	"os"
	"reflect"
	"testing"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/oracle"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// The oracle sees calls in every form, through views, and of an owner's objects.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	_, err = owner.Exec(ctx, `CREATE TABLE notes (id int);
		CREATE FUNCTION leak(notes) RETURNS text LANGUAGE sql AS $$ SELECT 'a' $$;
		CREATE VIEW leaks AS SELECT leak(n) AS l FROM notes n; CREATE TYPE coin AS ENUM ('cent');
		CREATE FUNCTION coin_text(coin) RETURNS text LANGUAGE sql AS $$ SELECT 'a' $$;
		CREATE CAST (coin AS text) WITH FUNCTION coin_text(coin) AS IMPLICIT;
		CREATE FUNCTION same(coin, coin) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR = (LEFTARG = coin, RIGHTARG = coin, FUNCTION = same);
		CREATE FUNCTION leak_int() RETURNS int LANGUAGE sql AS 'SELECT 1';
		CREATE FUNCTION with_default(a int, b int DEFAULT leak_int()) RETURNS int LANGUAGE sql AS 'SELECT a';
		CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{embedded.RoleAdmin, embedded.RoleReader} {
		o, err := oracle.Open(ctx, s.URL(role, embedded.DatabaseKnowledge), "")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		for sql, want := range map[string][]string{
			"SELECT 1 + 1, upper('a'), now()::date, count(*) FROM notes": nil,
			"SELECT pg_sleep(0)":                                     {"pg_catalog.pg_sleep(float8)"},
			"SELECT (0::float8).pg_sleep":                            {"pg_catalog.pg_sleep(float8)"},
			"EXPLAIN (COSTS OFF) SELECT 1 WHERE pg_sleep(0) IS NULL": {"pg_catalog.pg_sleep(float8)"},
			"SELECT n.leak FROM notes n":                             {"public.leak(notes)"},
			"SELECT l FROM leaks":                                    {"public.leak(notes)"},
			"SELECT upper('cent'::coin)":                             {"public.coin_text(coin)"},
			"SELECT CASE 'cent'::coin WHEN 'cent' THEN 1 END":        {"public.same(coin,coin)"},
			// The planner adds leak_int().
			"SELECT with_default(1)":                                {"public.with_default(int4,int4)"},
			"SELECT (SELECT total(1)), total(1) OVER () FROM notes": {"public.total(int4)", "public.total(int4)"},
		} {
			got, err := o.Unlisted(ctx, sql, "public")
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %v and %v, want %v", role, sql, got, err, want)
			}
		}
		if got, err := o.Unlisted(ctx, "SELECT n.leak FROM notes n", "public", "leak"); err != nil || got != nil {
			t.Errorf("an allowed function: got %v and %v, want none", got, err)
		}
		if _, err := o.Unlisted(ctx, "SELECT n.leak FROM public.notes n", "pg_catalog"); err == nil {
			t.Error("a name that is not on the path: got no error")
		}
	}
}
