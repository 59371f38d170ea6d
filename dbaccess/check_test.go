package dbaccess_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

func reason(err error) string {
	var r *sandbox.Refusal
	if err == nil {
		return "ok"
	}
	if errors.As(err, &r) {
		return r.Reason
	}
	return "error: " + err.Error()
}

// TestCheckOffline checks statements whose outcome does not depend on a catalog.
func TestCheckOffline(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := check.New(check.Config{})
	defer c.Close()
	n := 0
	for _, one := range dbtest.Cases(t, "testdata/check/*.sql") {
		if one.File == "hidden.sql" || one.File == "fixture.sql" {
			continue
		}
		n++
		if err := c.Check(ctx, one.SQL); reason(err) != one.Want {
			t.Errorf("%s: %s\n  got  %s (%v)\n  want %s", one.File, one.SQL, reason(err), err, one.Want)
		}
	}
	if n < 300 {
		t.Errorf("read %d cases, want at least 300", n)
	}
}

// TestWithQueriesAreBounded expects at most 200 WITH queries in a statement, also in its subqueries.
func TestWithQueriesAreBounded(t *testing.T) {
	t.Parallel()
	c := check.New(check.Config{})
	defer c.Close()
	chain := func(queries int) string {
		sql := "WITH a0 AS (SELECT 1 AS x)"
		for i := 1; i < queries; i++ {
			sql += fmt.Sprintf(", a%d AS (SELECT * FROM a%d)", i, i-1)
		}
		return sql + " SELECT 1"
	}
	for sql, want := range map[string]string{
		chain(200): "ok", chain(201): "too-large",
		strings.Replace(chain(101), "WITH", "WITH RECURSIVE", 1) + " UNION (" + chain(100) + ")": "too-large",
		"SELECT (" + chain(100) + "), (" + chain(100) + ")":                                      "ok",
		"SELECT (" + chain(100) + "), (" + chain(101) + ")":                                      "too-large",
	} {
		if got := reason(c.Check(t.Context(), sql)); got != want {
			t.Errorf("%.40s...: got %s, want %s", sql, got, want)
		}
	}
}

// TestCheckLive runs all cases against a database with objects that imitate built-in ones: hostile
// statements are refused for the reason in the case file, benign ones run.
func TestCheckLive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	createHostileObjects(t, s)
	testCases(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
}

// testCases runs all cases against a database with the demo and the hostile objects.
func testCases(t *testing.T, url string) {
	t.Helper()
	ctx := context.Background()
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: url,
		AllowFunctions: []string{"vouched", "public.by_type(int4)", "public.by_type(text)", "only_ints(text)"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, one := range dbtest.Cases(t, "testdata/check/*.sql") {
		if one.File == "fixture.sql" {
			continue
		}
		_, err := all(ctx, r, one.SQL, nil, sandbox.QueryLimits{})
		got := reason(err)
		if got == "unknown-function" && one.Want == "function-not-allowed" {
			got = one.Want // this server lacks the extension or the version that has the function
		}
		if got != one.Want {
			t.Errorf("%s: %s\n  got  %s (%v)\n  want %s", one.File, one.SQL, reason(err), err, one.Want)
		}
	}
}

// TestRefusalsSuggestTheIntendedName misspells names and uses those of other databases.
func TestRefusalsSuggestTheIntendedName(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for sql, want := range map[string][2]string{
		"SELECT coutn(*) FROM users":              {"unknown-function", "count"},
		"SELECT lenght(title) FROM documents":     {"unknown-function", "length"},
		"SELECT ifnull(title, '') FROM documents": {"unknown-function", "coalesce"},
		"SELECT no_such_thing_at_all(1)":          {"unknown-function", ""},
		"SELECT pg_read_file('x')":                {"function-not-allowed", ""},
		"SELECT titel FROM documents":             {"unknown-column", "title"},
		"SELECT d.titel FROM documents d":         {"unknown-column", "title"},
		"SELECT created_at FROM orders":           {"unknown-column", ""}, // another table's
	} {
		_, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		var no *sandbox.Refusal
		if !errors.As(err, &no) || no.Reason != want[0] || no.Nearest != want[1] || no.Hint == "" {
			t.Errorf("%s: got %+v, want %v", sql, no, want)
		}
	}
}

// createHostileObjects creates the objects of the fixture as the owner of the database.
func createHostileObjects(t testing.TB, s roleURLs) {
	t.Helper()
	ctx := context.Background()
	fixture, err := os.ReadFile("testdata/check/fixture.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, string(fixture)); err != nil {
		t.Fatal(err)
	}
}

// TestCheckSurvivesHugeStatements refuses statements that crash or stall the C parser, and allows long
// lists.
func TestCheckSurvivesHugeStatements(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := check.New(check.Config{})
	defer c.Close()
	repeat := strings.Repeat
	for name, one := range map[string]struct{ SQL, Want string }{
		"parentheses": {"SELECT " + repeat("(", 10_000) + "1" + repeat(")", 10_000), "too-large"},
		"casts":       {"SELECT 1" + repeat("::int", 10_000), "too-large"},
		"not":         {"SELECT " + repeat("NOT ", 30_000) + "true", "too-large"},
		"minus":       {"SELECT " + repeat("- ", 30_000) + "1", "too-large"},
		"union":       {"SELECT 1" + repeat(" UNION SELECT 1", 10_000), "too-large"},
		"union all":   {"VALUES (1)" + repeat(" UNION ALL VALUES (1)", 10_000), "too-large"},
		"case":        {"SELECT " + repeat("CASE WHEN true THEN ", 5_000) + "1" + repeat(" END", 5_000), "too-large"},
		"else":        {"SELECT " + repeat("CASE WHEN true THEN 1 ELSE ", 5_000) + "1" + repeat(" END", 5_000), "too-large"},
		"indirection": {"SELECT (a)" + repeat(".a", 30_000), "too-large"},
		"subscripts":  {"SELECT a" + repeat("[1]", 30_000), "too-large"},
		"collate":     {"SELECT 'a'" + repeat(` COLLATE "C"`, 30_000), "too-large"},
		"at time":     {"SELECT now()" + repeat(" AT TIME ZONE 'UTC'", 10_000), "too-large"},
		"is null":     {"SELECT 1" + repeat(" IS NULL", 10_000), "too-large"},
		"joins":       {"SELECT 1 FROM a" + repeat(" NATURAL JOIN a", 10_000), "too-large"},
		"cross joins": {"SELECT 1 FROM a" + repeat(" CROSS JOIN a", 10_000), "too-large"},
		"bytes":       {"SELECT '" + repeat("x", 1<<20) + "'", "too-large"},
		"megabyte":    {"SELECT '" + repeat("x", 1<<20-20) + "'", "ok"},
		"semicolons":  {repeat(";", 1<<20-1), "too-large"},
		"comments":    {repeat("/*", 500_000), "too-large"},
		"names":       {"SELECT " + repeat("a ", 500_000), "too-large"},
		"commas":      {"SELECT 1" + repeat(",1", 500_000), "too-large"},
		"rows":        {"VALUES (1)" + repeat(",(1)", 50_000), "ok"},
		"quotes":      {repeat("'", 1<<20-1), "syntax-error"},
		"dollars":     {repeat("$$", 500_000), "syntax-error"},
		"nul":         {"SELECT 1\x00; DROP TABLE users", "syntax-error"},
		"not UTF-8":   {"SELECT '\xff'", "syntax-error"},
		"list":        {"SELECT 1 WHERE 1 IN (" + repeat("1,", 50_000) + "1)", "ok"},
		"strings":     {"SELECT 1 WHERE 'a' IN (" + repeat("'a',", 50_000) + "'b')", "ok"},
		"columns":     {"SELECT " + repeat("1 + 2,", 1500) + "1", "ok"},
		"conditions":  {"SELECT 1 WHERE 1 = 1" + repeat(" OR 1 = 2", 900), "ok"},
		"nested":      {"SELECT " + repeat("(", 350) + "1" + repeat(")", 350), "ok"},
	} {
		if err := c.Check(ctx, one.SQL); reason(err) != one.Want {
			t.Errorf("%s: got %s, want %s", name, reason(err), one.Want)
		}
	}
	for _, op := range strings.Fields("+ - * / % ^ < > = <= >= <> != || -> ->> #> @> <@ && ~ ~* !~ ?| & | # << >> AND OR LIKE ILIKE") {
		if err := c.Check(ctx, "SELECT 1"+repeat(" "+op+" 1", 60_000)); reason(err) != "too-large" {
			t.Errorf("a chain of %s: got %s", op, reason(err))
		}
		// A chain within the lexical limits must not crash the parser.
		if err := c.Check(ctx, "SELECT 1"+repeat(" "+op+" 1", 1900)); reason(err) != "ok" &&
			reason(err) != "syntax-error" {
			t.Errorf("a chain of 1900 %s: got %s (%v)", op, reason(err), err)
		}
	}
}
