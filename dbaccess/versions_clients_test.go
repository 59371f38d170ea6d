//go:build clients

package dbaccess_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/prove"
	"glasshouse/sandbox"
)

// newerSyntax has statements that the grammar of the parser does not read, by the version of PostgreSQL that reads
// them first, and whether the parser refuses them as a syntax error. It reads calls of JSON functions as plain calls.
var newerSyntax = []struct {
	sql           string
	since         string
	isSyntaxError bool
}{
	{`SELECT * FROM JSON_TABLE('[1]'::jsonb, '$[*]' COLUMNS (a int PATH '$')) AS t`, "17", true},
	{`SELECT now() AT LOCAL`, "17", true},
	{`SELECT JSON_VALUE('{"a": 1}'::jsonb, '$.a' RETURNING int)`, "17", true},
	{`SELECT JSON_EXISTS('{"a": 1}'::jsonb, '$.a')`, "17", false},
	// It reads the name of a type from a text, and evaluates the checks of a domain.
	{`SELECT pg_input_is_valid('1', 'public.a_domain')`, "16", false},
	{`WITH x AS (MERGE INTO users u USING users v ON false WHEN MATCHED THEN DO NOTHING RETURNING u.id) SELECT * FROM x`,
		"17", true},
	{`WITH x AS (UPDATE users SET name = 'x' RETURNING WITH (OLD AS o) o.name) SELECT * FROM x`, "18", true},
}

// TestOtherVersionsOfPostgreSQL runs the reader, the catalogue, the check and the attacks against real servers that are
// newer than Debian's.
func TestOtherVersionsOfPostgreSQL(t *testing.T) {
	for version, programs := range newerVersions(t) {
		t.Run(version, func(t *testing.T) {
			server := startVersion(t, programs)
			url := server.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
			r, err := dbaccess.Open(t.Context(), dbaccess.Config{
				Name: "newer", URL: url, MaskColumns: []string{"customers.email"}, NeedsAudit: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			if got, err := r.Status(t.Context()); err != nil || !strings.HasPrefix(got, version+".") {
				t.Fatalf("got the version %q and %v, want %s", got, err, version)
			}
			testReads(t, r)
			testNewerSyntax(t, r, url, version)
			loadMasks(t, server)
			testMaskedColumns(t, server, maskedReader(t, server))
			testMaskedWrites(t, server)
			if version == "18" {
				testVirtualColumns(t, server)
			}
			createHostileObjects(t, server)
			testCases(t, url)
			_, admin := attributeDatabase(t, server, "generated.sql")
			testAttributeNotation(t, newJudge(t, server, embedded.DatabaseKnowledge), admin)
			testNames(t, server)
			testGenerated(t, server, 1, 5000, time.Time{})
			testServerCheckStops(t, server)
			testServerCheckAllows(t, server)
			owner, err := dbaccess.Open(t.Context(), dbaccess.Config{
				URL: server.URL(embedded.RoleOwner, embedded.DatabaseKnowledge),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(owner.Close)
			if err := owner.AuditLogin(t.Context()); err == nil || !strings.Contains(err.Error(), "CREATE ROLE") {
				t.Errorf("the audit of the owner: got %v, want an error with the SQL of a login", err)
			}
			outcomes, err := prove.Run(t.Context(), r, url, server.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range outcomes {
				if o.Reader || o.Check {
					t.Errorf("the attack %q passes: check %t, reader %t", o.Name, o.Check, o.Reader)
				}
			}
		})
	}
}

// testVirtualColumns expects a column that is generated of a masked one when it is read, the default kind since
// PostgreSQL 18, to be masked.
func testVirtualColumns(t *testing.T, s roleURLs) {
	t.Helper()
	ctx := context.Background()
	_, run := serverChecked(t, s, `CREATE TABLE virtual (id int, code text, low text GENERATED ALWAYS AS (lower(code)));
		INSERT INTO virtual VALUES (1, 'SECRET'); GRANT SELECT ON virtual TO glasshouse_reader`)
	r := maskedReader(t, s, "virtual.code")
	rows, err := all(ctx, r, "SELECT * FROM virtual", nil, sandbox.QueryLimits{})
	if got := outcome(rows, err); got != "2,3" || rows.Data[2][0] != "***" {
		t.Errorf("got %s, %v, %v, want the columns 2 and 3 masked", got, rows.Data, err)
	}
	run("DROP TABLE virtual")
}

// testReads reads every table, and a masked column.
func testReads(t *testing.T, r *dbaccess.Reader) {
	t.Helper()
	ctx := t.Context()
	tables, err := r.Schema(ctx)
	if err != nil || len(tables) < 5 {
		t.Fatalf("got %d tables and %v, want those of the demo", len(tables), err)
	}
	for _, table := range tables {
		if len(table.Columns) == 0 {
			t.Errorf("%s: got no columns", table.Name)
		}
		if _, err := all(ctx, r, "SELECT * FROM "+table.Name+" LIMIT 5", nil, sandbox.QueryLimits{}); err != nil {
			t.Errorf("%s: %v", table.Name, err)
		}
	}
	got, err := all(ctx, r, `SELECT email, count(*) OVER () AS n FROM customers ORDER BY id LIMIT 1`, nil,
		sandbox.QueryLimits{})
	if err != nil || got.Data[0][0] != "***" {
		t.Errorf("got %v and %v, want the column masked", got.Data, err)
	}
}

// testNewerSyntax has statements that the server reads and the parser does not.
func testNewerSyntax(t *testing.T, r *dbaccess.Reader, url, version string) {
	t.Helper()
	conn, err := dbtest.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, x := range newerSyntax {
		_, err := conn.Prepare(t.Context(), "", x.sql)
		reads := err == nil || !strings.Contains(err.Error(), "42601") // syntax_error
		if x.isSyntaxError && reads != (version >= x.since) {
			t.Errorf("%s: the server of version %s says %v", x.sql, version, err)
		}
		var no *sandbox.Refusal
		_, err = all(t.Context(), r, x.sql, nil, sandbox.QueryLimits{})
		if !errors.As(err, &no) || no.Failed {
			t.Errorf("%s: got %v, want it refused before it runs", x.sql, err)
			continue
		}
		const hint = "this version of the checker reads PostgreSQL 16's syntax"
		if want := x.isSyntaxError && version > "16"; (no.Hint == hint) != want || want && no.Reason != "syntax-error" {
			t.Errorf("%s: got %+v, want the hint about the syntax: %t", x.sql, no, want)
		}
	}
}
