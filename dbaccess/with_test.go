package dbaccess_test

import (
	"context"
	"reflect"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// TestNamesMeanTheTableThatWasChecked has a table and, in the next schema of the search path, a view of the same name
// that may not be read. An operator of the owner takes the first schema out of the path, so that a name without a
// schema would mean the view.
func TestNamesMeanTheTableThatWasChecked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	if _, err := owner.Exec(ctx, `
		CREATE SCHEMA hidden;
		CREATE FUNCTION hidden.leak() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT -1';
		CREATE TABLE public.report AS SELECT 1 AS id, 2 AS leak;
		CREATE VIEW hidden.report AS SELECT 1 AS id, hidden.leak() AS leak;
		CREATE TABLE public.part AS SELECT 1 AS id, 2 AS leak;
		CREATE TABLE hidden.part AS SELECT 1 AS id;
		CREATE FUNCTION hidden.leak(hidden.part) RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT -1';
		CREATE FUNCTION public.glue(text, text) RETURNS text LANGUAGE sql AS 'SELECT $1';
		CREATE OPERATOR public.+ (LEFTARG = text, RIGHTARG = text, FUNCTION = public.glue);
		GRANT USAGE ON SCHEMA hidden TO glasshouse_reader;
		GRANT SELECT ON ALL TABLES IN SCHEMA hidden, public TO glasshouse_reader;
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA hidden TO PUBLIC`); err != nil {
		t.Fatal(err)
	}
	r, err := dbaccess.Open(ctx, dbaccess.Config{
		URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge) + "&search_path=public,hidden",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := reason(r.Check(ctx, "SELECT leak FROM hidden.report")); got != "function-not-allowed" {
		t.Fatalf("the view of the second schema: got %s, want function-not-allowed", got)
	}
	const two = int64(2) // + 0 uses the operator's name
	for sql, want := range map[string]any{
		"SELECT leak + 0 FROM report":                                               two,
		`SELECT leak + 0 FROM U&"r\0065port"`:                                       two,
		`SELECT leak + 0 FROM U&"r!0065port" UESCAPE '!'`:                           two,
		`SELECT leak + 0 FROM ONLY (/* a comment */ "report")`:                      two,
		"WITH report AS (SELECT leak + 0 AS n FROM report) SELECT n FROM report":    two,
		"WITH part AS (SELECT leak + 0 AS n FROM part) SELECT n FROM part":          two,
		"WITH part AS (SELECT x.leak + 0 AS n FROM ONLY part x) SELECT * FROM part": two,
		"WITH RECURSIVE report AS (SELECT 0 AS leak UNION SELECT leak + 1 FROM report WHERE leak < 2) " +
			"SELECT max(leak) FROM report": two,
		"WITH a AS (SELECT leak + 0 AS n FROM report), report AS (SELECT 5 AS leak) SELECT n FROM a":            two,
		"WITH report AS (SELECT 5 AS leak), a AS (SELECT leak - 3 + 0 AS n FROM report) SELECT n FROM a":        two,
		"SELECT (WITH report AS (SELECT 5 AS leak) SELECT leak FROM report) - 5 + leak FROM report":             two,
		"SELECT * FROM (WITH report AS (SELECT 2 AS leak) SELECT leak + 0 FROM report) s":                       two,
		"(WITH report AS (SELECT 2 AS leak) SELECT leak + 0 FROM report) INTERSECT SELECT leak + 0 FROM report": two,
		"SELECT leak + 0 FROM hidden.report":                          "function-not-allowed",
		"SELECT s.leak + 0 FROM hidden.part s":                        "unknown-column",
		"WITH part AS (SELECT 1 AS id) SELECT s.leak + 0 FROM part s": "unknown-column",
	} {
		rows, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		if refused, isReason := want.(string); isReason {
			if reason(err) != refused {
				t.Errorf("%s: got %v and %s, want %s", sql, rows.Data, reason(err), refused)
			}
		} else if err != nil || !reflect.DeepEqual(rows.Data, [][]any{{want}}) {
			t.Errorf("%s: got %v and %v, want %v", sql, rows.Data, err, want)
		}
	}
	// The target of a write is never a WITH query.
	const write = "WITH report AS (SELECT 1 AS id, 2 AS leak) UPDATE report AS r SET id = id + 0 RETURNING r.leak"
	if got := checkStatement(ctx, r, attributeStatement{sql: write, writes: true}); got != "ok" {
		t.Errorf("%s: got %s, want ok", write, got)
	}
}
