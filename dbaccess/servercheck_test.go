package dbaccess_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// roleURLs is a server with the roles of the service.
type roleURLs interface {
	URL(role, database string) string
}

// serverChecked returns a reader that has the server analyse each statement, and runs sql as the owner first.
func serverChecked(
	t *testing.T, s roleURLs, sql string, allowed ...string,
) (r *dbaccess.Reader, run func(sql string)) {
	t.Helper()
	ctx := context.Background()
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(ctx) })
	run = func(sql string) {
		t.Helper()
		if _, err := owner.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	run(sql)
	return openReader(t, dbaccess.Config{
		URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), ServerCheck: true, AllowFunctions: allowed,
	}), run
}

// The server's own tree stops a call that the check of the text cannot know: the catalog is compared with the database
// once per second, and the database changes right after that.
func TestServerCheckStopsWhatTheCheckDoesNotKnow(t *testing.T) {
	t.Parallel()
	testServerCheckStops(t, dbtest.Start(t))
}

func testServerCheckStops(t *testing.T, s roleURLs) {
	t.Helper()
	ctx := context.Background()
	r, run := serverChecked(t, s, `
		CREATE FUNCTION reached() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
			$$ BEGIN RAISE EXCEPTION 'reached'; END $$;
		GRANT EXECUTE ON FUNCTION reached TO PUBLIC;
		CREATE TABLE noted (id int); INSERT INTO noted VALUES (1);
		CREATE VIEW seen AS SELECT 1 AS one FROM noted`)
	for _, change := range []string{
		"CREATE OR REPLACE VIEW seen AS SELECT reached() AS one FROM noted",
		"CREATE OR REPLACE VIEW seen AS SELECT 1 AS one FROM noted WHERE reached() = 1",
		"CREATE OR REPLACE VIEW seen AS SELECT 1 AS one FROM noted ORDER BY reached()",
	} {
		for _, prefix := range []string{"", "EXPLAIN ", "EXPLAIN (COSTS off) "} {
			run("CREATE OR REPLACE VIEW seen AS SELECT 1 AS one FROM noted")
			eventually(t, "the view to be allowed", func() bool {
				_, err := all(ctx, r, prefix+"SELECT one FROM seen", nil, sandbox.QueryLimits{})
				return err == nil
			})
			run(change)
			_, err := all(ctx, r, prefix+"SELECT one FROM seen", nil, sandbox.QueryLimits{})
			no, ok := err.(*sandbox.Refusal)
			if !ok || no.Reason != "function-not-allowed" || !strings.Contains(no.Message, "public.reached") {
				t.Errorf("%sSELECT after %s: got %v, want it refused because of public.reached", prefix, change, err)
			}
			// The connection goes on.
			got, err := all(ctx, r, "SELECT 2", nil, sandbox.QueryLimits{})
			if err != nil || got.Data[0][0] != int64(2) {
				t.Errorf("the next statement: got %v, %v", got.Data, err)
			}
		}
	}
}

// The server's own tree refuses no honest statement, and errors keep their positions.
func TestServerCheckAllowsHonestStatements(t *testing.T) {
	t.Parallel()
	testServerCheckAllows(t, dbtest.Start(t))
}

func testServerCheckAllows(t *testing.T, s roleURLs) {
	t.Helper()
	ctx := context.Background()
	r, _ := serverChecked(t, s, `
		CREATE FUNCTION tax(n int) RETURNS int LANGUAGE sql AS 'SELECT n + length(current_user::text) * 0';
		CREATE FUNCTION tax_text(n int) RETURNS text LANGUAGE plpgsql AS
			$$ BEGIN RETURN (SELECT pg_typeof(tax(n))::text); END $$;
		GRANT EXECUTE ON FUNCTION tax, tax_text TO PUBLIC;
		CREATE TABLE bills (id int, tags jsonb, at timestamptz DEFAULT now());
		INSERT INTO bills SELECT n, '{"a": 1}' FROM generate_series(1, 50) n;
		CREATE VIEW cheap AS SELECT id, tags ->> 'a' AS a, tax(id) AS tax FROM bills WHERE id < 3`, "tax", "tax_text")
	long := "SELECT count(*) FROM bills WHERE id IN (1" + strings.Repeat(", 1", 20_000) + ")"
	for _, sql := range []string{
		"SELECT 1", "SHOW timezone", "VALUES (1), (2)", "TABLE bills", "SELECT current_setting('TimeZone')", long,
		"SELECT a, tax, tax(3) FROM cheap", "SELECT tax_text(id) FROM bills", "EXPLAIN SELECT * FROM cheap",
		"EXPLAIN (FORMAT json) (SELECT 1)",
		"SELECT count(*) FILTER (WHERE id > 2), percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM bills",
		"SELECT id, lag(id) OVER w, rank() OVER w FROM bills WINDOW w AS (ORDER BY at, id)",
		"SELECT * FROM bills TABLESAMPLE bernoulli (50)",
		"WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) " +
			"SEARCH DEPTH FIRST BY n SET o SELECT n FROM r",
		"SELECT table_name, column_name FROM information_schema.columns WHERE table_name = 'bills'",
		"SELECT viewname FROM pg_views WHERE schemaname = 'public'",
		"SELECT relname FROM pg_class WHERE relname = 'bills'",
		"SELECT date_trunc('day', at) AT TIME ZONE 'UTC', to_char(at, 'YYYY'), tags @> '{\"a\": 1}' FROM bills",
		"SELECT x.* FROM jsonb_to_recordset('[{\"a\": 1}]') AS x (a int)", "SELECT lpad('a', 3), upper('b') || 'c'",
	} {
		if _, err := all(ctx, r, sql, nil, sandbox.QueryLimits{}); err != nil {
			t.Errorf("%.200s: %v", sql, err)
		}
	}
	got, err := all(ctx, r, "SELECT :n::int + id FROM bills WHERE id = :n", map[string]any{"n": json.Number("7")},
		sandbox.QueryLimits{})
	if err != nil || got.Data[0][0] != int64(14) {
		t.Errorf("with a parameter: got %v, %v", got.Data, err)
	}
	for sql, want := range map[string]int{"SELECT nothing FROM bills": 8, "EXPLAIN SELECT nothing FROM bills": 16} {
		_, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		if no, ok := err.(*sandbox.Refusal); !ok || no.Reason != "unknown-column" || no.Position != want {
			t.Errorf("%s: got %+v, want an unknown column at %d", sql, err, want)
		}
	}
	_, err = all(ctx, r, long, nil, sandbox.QueryLimits{MaxBytes: 1})
	if no, ok := err.(*sandbox.Refusal); !ok || no.Reason != "too-large" {
		t.Errorf("a tree over the limit of bytes: got %v", err)
	}
}

// The database changes between the analysis of a statement and its run: PostgreSQL analyses it again, and a call that
// is only in the second tree gives no row. A proxy holds the messages of the run until the change is made.
func TestServerCheckJudgesTheTreeOfTheRun(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	database := namesDatabase(t, s, "changed")
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, database))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	change := func() {
		const sql = `CREATE FUNCTION seen_late(citext, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
			CREATE OPERATOR = (LEFTARG = citext, RIGHTARG = text, FUNCTION = seen_late)`
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Error(err)
		}
	}
	var armed atomic.Bool
	r := openReader(t, dbaccess.Config{
		URL: proxied(t, s.URL(embedded.RoleReader, database), func() {
			if armed.CompareAndSwap(true, false) {
				change()
			}
		}), ServerCheck: true,
	})
	// The value of the type place opens that type, which makes the server read what has changed.
	const sql = "SELECT id FROM people WHERE email = 'x'::text AND :home::place IS NOT NULL"
	home := map[string]any{"home": "(High,1)"}
	armed.Store(true)
	got, err := all(ctx, r, sql, home, sandbox.QueryLimits{})
	no, ok := err.(*sandbox.Refusal)
	if !ok || no.Reason != "function-not-allowed" || got.Rows != 0 || armed.Load() {
		t.Errorf("got %v and %v, want it refused, after the change was made", got.Data, err)
	}
}

// proxied returns the URL of a socket that forwards to the server of url. It calls flushed after the client has sent a
// Flush message and before it forwards what the client sends next.
func proxied(t *testing.T, url string, flushed func()) string {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(config.Host, fmt.Sprintf(".s.PGSQL.%d", config.Port))
	dir, err := os.MkdirTemp("", "gh") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", config.Port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	forward := func(client net.Conn) {
		defer client.Close()
		conn, err := net.Dial("unix", server)
		if err != nil {
			return
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(client, conn); _ = client.Close() }()
		held, buf := false, make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if held {
				flushed()
			}
			held = bytes.HasSuffix(buf[:n], []byte{'H', 0, 0, 0, 4})
			if _, err := conn.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(client)
		}
	}()
	return strings.Replace(url, "host="+neturl.QueryEscape(config.Host), "host="+neturl.QueryEscape(dir), 1)
}
