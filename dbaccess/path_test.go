package dbaccess_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/parse"
)

// jsonAggregates are what JSON_ARRAYAGG calls since PostgreSQL 16; it makes jsonb of jsonb.
var jsonAggregates = []string{"pg_catalog.json_agg_strict", "pg_catalog.jsonb_agg_strict"}

// listedFunctions may be called in the database of testdata/path.
var listedFunctions = strings.Fields(`counted counted_with_path plain with_default with_harmless_default takes_amount
	takes_mail takes_mails takes_contact takes_token gives_mail gives_mails gives_table`)

// namesDatabase makes a database with the objects of testdata/path, and returns its name.
func namesDatabase(t *testing.T, s roleURLs, name string) string {
	t.Helper()
	ctx := context.Background()
	createDatabase(t, s, name, embedded.RoleAdmin)
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, name))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	fixture, err := os.ReadFile("testdata/path/fixture.sql")
	if err != nil {
		t.Fatal(err)
	}
	const extensions = "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION pg_trgm"
	for _, sql := range []string{extensions, string(fixture)} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// TestNamesKeepTheirMeaning compares each statement that the check allows with the same text on the search path of the
// login: its rows must be the same, and it calls nothing that is not listed.
func TestNamesKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	testNames(t, dbtest.Start(t))
}

func testNames(t *testing.T, s roleURLs) {
	t.Helper()
	ctx := context.Background()
	database := namesDatabase(t, s, "names")
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, database))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, "SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	j := newJudge(t, s, database, listedFunctions...)
	n := map[string]int{}
	for _, c := range dbtest.Cases(t, "testdata/path/cases.sql") {
		n[c.Want]++
		got := j.judge(ctx, t, attributeStatement{sql: c.SQL},
			append(listedFunctions, jsonAggregates...)...)
		switch {
		case c.Want != "same":
			if got != "refused" && got != "finds nothing" && (c.Want != "uncalled" || got != "ok") {
				t.Errorf("%s\n  %s, want that it is refused or finds nothing", c.SQL, got)
			}
		case got != "ok":
			stmt, _ := j.checker.Statement(ctx, parse.Request{SQL: c.SQL, AllowAnyName: true}, false)
			t.Errorf("%s\n  %s, want ok: %v", c.SQL, got, stmt.Refusal)
		default:
			if got, want := runBoth(ctx, t, j, admin, c.SQL); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n  got %s, want %s", c.SQL, got, want)
			}
		}
	}
	stmt, err := j.checker.Statement(ctx, parse.Request{SQL: "SELECT id FROM peeple"}, false)
	if err != nil || stmt.Refusal == nil || stmt.Refusal.Reason != "unknown-table" || stmt.Refusal.Nearest != "people" {
		t.Errorf("an unknown table: got %+v, %v", stmt.Refusal, err)
	}
	if n["same"] < 50 || n["refused"] < 120 || n["uncalled"] < 7 {
		t.Errorf("read %v cases, want at least 50, 120 and 7", n)
	}
}

// A database in another encoding than UTF8 is refused: the server converts the text of a statement before it reads it.
func TestOtherEncodingsAreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := dbtest.Start(t)
	server, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(ctx)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := strings.ToLower(encoding)
		sql := "CREATE DATABASE " + name + " TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING " + encoding
		if _, err := server.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
		r, err := dbaccess.Open(ctx, dbaccess.Config{URL: s.URL(embedded.RoleReader, name)})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Check(ctx, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "encoding "+encoding) {
			t.Errorf("%s: got %v, want an error that names the encoding", encoding, err)
		}
	}
}

// runBoth returns the rows of a statement, as the check lets it run and as it is written.
func runBoth(ctx context.Context, t *testing.T, j judge, admin *pgx.Conn, sql string) (got, want string) {
	t.Helper()
	stmt, err := j.checker.Statement(ctx, parse.Request{SQL: sql}, false)
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(ctx, admin, stmt), rowsOf(ctx, admin, &check.Statement{SQL: sql, SearchPath: `"$user", public`})
}

// rowsOf returns the rows of a statement in PostgreSQL's text format, or its error.
func rowsOf(ctx context.Context, conn *pgx.Conn, stmt *check.Statement) string {
	if _, err := conn.Exec(ctx, "SET search_path = "+stmt.SearchPath); err != nil {
		return err.Error()
	}
	results, err := conn.PgConn().Exec(ctx, stmt.SQL).ReadAll()
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, r := range results {
		for _, row := range r.Rows {
			text += fmt.Sprintf("%q\n", row)
		}
	}
	return text
}

// The schemas of many names do not make a text grow without bounds.
func TestBoundTextIsLimited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := dbtest.Start(t)
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	schema := strings.Repeat("s", 63)
	_, err = admin.Exec(ctx, "CREATE SCHEMA "+schema+"; GRANT USAGE ON SCHEMA "+schema+" TO PUBLIC; "+
		"CREATE TYPE "+schema+".m AS ENUM ('a')")
	if err != nil {
		t.Fatal(err)
	}
	r, err := dbaccess.Open(ctx, dbaccess.Config{
		URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge) + "&search_path=" + schema,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for n, want := range map[int]string{1000: "ok", 70_000: "too-large"} {
		got := r.Check(ctx, "SELECT 1 WHERE 'a'::m IN ('a'"+strings.Repeat(",'a'::m", n)+")")
		if reason(got) != want || want != "ok" && !strings.Contains(got.Error(), "names of other schemas") {
			t.Errorf("%d names: got %v, want %s", n, got, want)
		}
	}
}
