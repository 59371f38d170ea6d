package dbaccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/oracle"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// PostgreSQL reads x.f as f(x) if x has no column f. The tests of this file write such a name after every kind of item
// of FROM, in every position. Before the check decides, a superuser prepares each statement: PostgreSQL finds the
// function, or the statement tests nothing.

// calledFunction is a function that is not allowed, and the value of one argument that it takes.
type calledFunction struct {
	name, value string
	returnsSet  bool // so it may stand in few positions
}

var functionsOfScalars = []calledFunction{
	{name: "pg_sleep", value: "0::double precision"},
	{name: "pg_sleep_for", value: "interval '0'"},
	{name: "pg_sleep_until", value: "now()"},
	{name: "ts_stat", value: "'SELECT ''a''::tsvector'::text", returnsSet: true},
	{name: "pg_stat_get_activity", value: "NULL::int", returnsSet: true},
	{name: "pg_stat_get_backend_activity", value: "1"},
	{name: "pg_cancel_backend", value: "0"},
	{name: "pg_terminate_backend", value: "0"},
	{name: "pg_advisory_lock", value: "1::bigint"},
	{name: "pg_try_advisory_xact_lock", value: "1::bigint"},
	{name: "lo_get", value: "1::oid"},
	{name: "lo_unlink", value: "1::oid"},
	{name: "pg_ls_dir", value: "'.'::text", returnsSet: true},
	{name: "pg_read_file", value: "'PG_VERSION'::text"},
	{name: "nextval", value: "NULL::regclass"},
	{name: "of_int", value: "1"},
	{name: "of_any", value: "1"},
	{name: "of_text", value: "'a'::text"},
	{name: "of_ints", value: "1"},
	{name: "checked_int", value: "'1'::text"}, // a cast, whose check calls a function
}

// fromItem is an item of FROM without the column. with comes before SELECT, and name refers to the item.
type fromItem struct {
	kind, with, from, name string
	functions              []string // that take a row of the item; nil: those of a scalar, {value}
}

var itemsWithoutColumn = []fromItem{
	{kind: "function", from: "unnest(ARRAY[{value}]) s", name: "s"},
	{kind: "function without an alias", from: "unnest(ARRAY[{value}])", name: "unnest"},
	{kind: "function with AS and a quoted name", from: `unnest(ARRAY[{value}]) AS "S s"`, name: `"S s"`},
	{kind: "ROWS FROM", from: "ROWS FROM (unnest(ARRAY[{value}])) s", name: "s"},
	{kind: "ROWS FROM without an alias", from: "ROWS FROM (unnest(ARRAY[{value}]))", name: "unnest"},
	{kind: "LATERAL function", from: "notes n, LATERAL unnest(ARRAY[{value}]) s", name: "s"},
	{kind: "joined function", from: "notes n JOIN unnest(ARRAY[{value}]) s ON true", name: "s"},
	{kind: "expression in place of a function", from: "coalesce({value}, NULL) s", name: "s"},
	{kind: "expression without an alias", from: "notes n, coalesce({value}, NULL)", name: "coalesce"},
	{kind: "function next to a table with the column and the name", name: "s",
		from: "unnest(ARRAY[{value}]) s LEFT JOIN (SELECT s.id FROM named s) other ON false"},
	{kind: "function around a table with the column and the name", name: "s",
		from: "unnest(ARRAY[{value}]) s, LATERAL (SELECT 1 WHERE EXISTS (SELECT FROM named s WHERE s.id = 1)) other"},
	{kind: "function without an alias next to a table with its name", name: "unnest",
		from: "unnest(ARRAY[{value}]) LEFT JOIN (SELECT unnest.id FROM public.unnest) other ON false"},
	{kind: "expression without an alias next to a table with its name", name: "coalesce",
		from: `coalesce({value}, NULL) LEFT JOIN (SELECT "coalesce".id FROM "coalesce") other ON false`},

	{kind: "table", from: "notes s", name: "s", functions: []string{"of_note", "of_row", "of_any"}},
	{kind: "table without an alias", from: "notes", name: "notes", functions: []string{"of_note", "of_row", "of_any"}},
	{kind: "table with its schema", from: "public.notes", name: "public.notes", functions: []string{"of_note"}},
	{kind: "table with a list that hides the column", name: "s", functions: []string{"of_row", "of_any"},
		from: "named s (a, b, c, d, e, f)"},
	{kind: "table under a WITH query's name", name: "named", functions: []string{"of_row", "of_any"},
		with: "WITH named AS (SELECT 1 AS id)", from: "named"},
	{kind: "table under an alias and a WITH query's name", name: "s", functions: []string{"of_row", "of_any"},
		with: "WITH named AS (SELECT 1 AS id)", from: "named s"},
	{kind: "ONLY", from: "ONLY notes s", name: "s", functions: []string{"of_note"}},
	{kind: "TABLESAMPLE", from: "notes s TABLESAMPLE system (100)", name: "s", functions: []string{"of_note"}},
	{kind: "child table", from: "child_notes s", name: "s", functions: []string{"of_note", "of_row", "of_any"}},
	{kind: "partition", from: "part_of_notes s", name: "s", functions: []string{"of_parted", "of_row"}},
	{kind: "partitioned table", from: "parted_notes s", name: "s", functions: []string{"of_parted"}},
	{kind: "typed table", from: "typed_notes s", name: "s", functions: []string{"of_type", "of_row", "of_any"}},
	{kind: "view", from: "viewed_notes s", name: "s", functions: []string{"of_view", "of_row", "of_any"}},
	{kind: "subquery", from: "(SELECT * FROM notes) s", name: "s", functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "subquery of * with a list that hides the column", name: "s", functions: []string{"of_row", "of_any"},
		from: "(SELECT * FROM named) s (a, b, c, d, e, f)"},
	{kind: "subquery of another item's *", name: "s", functions: []string{"of_row", "of_any"},
		from: "(SELECT n.* FROM notes n, named) s"},
	{kind: "subquery of * of its own WITH", name: "s", functions: []string{"of_row", "of_any"},
		from: "(WITH named AS (SELECT 1 AS id) SELECT * FROM named) s"},
	{kind: "UNION with its own WITH", name: "s", functions: []string{"of_row", "of_any"},
		from: "((WITH named AS (SELECT 1 AS id) SELECT * FROM named) UNION SELECT 2) s"},
	{kind: "subquery with other names", from: "(SELECT 1 AS a, 'b'::text AS b) s", name: "s",
		functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "subquery with a list that hides the column", name: "s", functions: []string{"of_row", "of_any"},
		from: "(SELECT 'a' AS of_row, 'b' AS of_any) s (a, b)"},
	{kind: "subquery with the name of a table with the column", name: "named", functions: []string{"of_row", "of_any"},
		from: "(SELECT 1 AS id) named LEFT JOIN (SELECT named.id FROM named) other ON false"},
	{kind: "LATERAL subquery", from: "notes n, LATERAL (SELECT n.id, n.body) s", name: "s",
		functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "UNION", from: "(SELECT * FROM notes UNION SELECT 1, 'of_row' AS of_row) s", name: "s",
		functions: []string{"of_note", "of_row"}},
	{kind: "VALUES", from: "(VALUES (1, 'a'::text)) s", name: "s", functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "WITH", with: "WITH s AS (SELECT * FROM notes)", from: "s", name: "s",
		functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "WITH under an alias", with: "WITH w AS (SELECT 1 AS a, 'b'::text AS b)", from: "w s", name: "s",
		functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "WITH of * of the WITH query before it", name: "s", functions: []string{"of_row", "of_any"},
		with: "WITH named AS (SELECT 1 AS id), s AS (SELECT * FROM named)", from: "s"},
	{kind: "WITH RECURSIVE of * of the query after it", name: "s", functions: []string{"of_row", "of_any"},
		with: "WITH RECURSIVE s AS (SELECT * FROM named), named AS (SELECT 1 AS id)", from: "s"},
	{kind: "WITH with a list at the item", from: "w s (a, b)", name: "s", functions: []string{"of_row", "of_any"},
		with: "WITH w AS (SELECT 'a' AS of_row, 'b' AS of_any)"},
	{kind: "table outside of the scope of a WITH query", name: "s", functions: []string{"of_note", "of_row"},
		from: "notes s LEFT JOIN (WITH notes AS (SELECT 1 AS of_note, 2 AS of_row) SELECT 1 FROM notes) o ON false"},
	{kind: "WITH with a list", with: "WITH s (a, b) AS (SELECT id AS of_note, body AS of_row FROM notes)", from: "s",
		name: "s", functions: []string{"of_note", "of_row"}},
	{kind: "WITH RECURSIVE", name: "s", functions: []string{"of_note", "of_row"}, from: "s",
		with: "WITH RECURSIVE s AS (SELECT * FROM notes UNION SELECT id + 1, body FROM s WHERE id < 2)"},
	{kind: "join", from: "(notes n JOIN holders ON true) AS s", name: "s", functions: []string{"of_row", "of_any"}},
	{kind: "join with a list that hides the column", name: "s", functions: []string{"of_row", "of_any"},
		from: "(named JOIN holders ON true) AS s (a, b, c, d, e, f)"},
	{kind: "JOIN USING with a name", from: "notes n JOIN named USING (id) AS s", name: "s",
		functions: []string{"of_row", "of_any"}},
	{kind: "JOIN USING with the name of a table with the column", name: "named",
		functions: []string{"of_row", "of_any"},
		from:      "(notes n JOIN holders USING (id) AS named) LEFT JOIN (SELECT named.id FROM named) other ON false"},
	{kind: "NATURAL JOIN", from: "notes s NATURAL JOIN named", name: "s", functions: []string{"of_note", "of_row"}},
	{kind: "WITH ORDINALITY", from: "unnest(ARRAY[1]) WITH ORDINALITY s", name: "s", functions: []string{"of_row"}},
	{kind: "several functions", from: "ROWS FROM (unnest(ARRAY[1]), unnest(ARRAY[2])) s", name: "s",
		functions: []string{"of_row"}},
	{kind: "column definitions", from: "json_to_record('{}') s (id int, body text)", name: "s",
		functions: []string{"of_note", "of_type", "of_row"}},
	{kind: "XMLTABLE", from: "XMLTABLE('/a' PASSING '<a/>' COLUMNS id int, body text) s", name: "s",
		functions: []string{"of_row"}},
	{kind: "XMLTABLE without an alias next to a table with its name", name: `"xmltable"`, functions: []string{"of_row"},
		from: "XMLTABLE('/a' PASSING '<a/>' COLUMNS id int, body text) " +
			`LEFT JOIN (SELECT "xmltable".id FROM "xmltable") other ON false`},
	{kind: "composite column", from: "holders h", name: "(h.held)", functions: []string{"of_type", "of_row", "of_any"}},
	{kind: "element of an array", from: "holders h", name: "h.many[1]", functions: []string{"of_type", "of_row"}},
	{kind: "row in parentheses", from: "notes s", name: "(s)", functions: []string{"of_note", "of_row"}},
	{kind: "built row", from: "notes n", name: "(ROW(1, 'a'::text))", functions: []string{"of_row"}},
	{kind: "scalar subquery", from: "notes n", name: "(SELECT s FROM notes s LIMIT 1)",
		functions: []string{"of_note", "of_row"}},
}

// positions are statements with an item {from} and {ref}, the name after it. In the first ones {ref} may return a set.
var positions = []struct{ kind, sql string }{
	{"SELECT", "{with} SELECT {ref} FROM {from}"},
	{"expression", "{with} SELECT ({ref})::text FROM {from}"},
	{"subquery in FROM", "{with} SELECT * FROM (SELECT {ref} AS x FROM {from}) outside"},
	{"UNION", "{with} SELECT ({ref})::text FROM {from} UNION ALL SELECT 'a'"},
	{"EXPLAIN", "EXPLAIN {with} SELECT {ref} FROM {from}"},
	{"GROUP BY", "{with} SELECT 1 FROM {from} GROUP BY ({ref})::text"},
	{"ORDER BY", "{with} SELECT 1 FROM {from} ORDER BY ({ref})::text"},
	{"DISTINCT ON", "{with} SELECT DISTINCT ON (({ref})::text) 1 FROM {from}"},
	{"argument", "{with} SELECT length(({ref})::text) FROM {from}"},
	{"scalar subquery", "{with} SELECT (SELECT ({ref})::text LIMIT 1) FROM {from}"},
	{"ARRAY of a subquery", "{with} SELECT ARRAY(SELECT ({ref})::text) FROM {from}"},
	{"VALUES", "{with} SELECT v.* FROM {from}, LATERAL (SELECT ({ref})::text) v"},

	{"WHERE", "{with} SELECT 1 FROM {from} WHERE ({ref})::text IS NOT NULL"},
	{"JOIN ON", "{with} SELECT 1 FROM {from} CROSS JOIN (notes a JOIN notes b ON EXISTS (SELECT WHERE false)) " +
		"WHERE EXISTS (SELECT FROM notes c JOIN notes d ON ({ref})::text = 'a')"},
	{"HAVING", "{with} SELECT 1 FROM {from} HAVING count(({ref})::text) > 0"},
	{"CASE", "{with} SELECT CASE WHEN ({ref})::text IS NULL THEN 1 END FROM {from}"},
	{"aggregate", "{with} SELECT max(({ref})::text) FROM {from}"},
	{"ORDER BY of an aggregate", "{with} SELECT array_agg(1 ORDER BY ({ref})::text) FROM {from}"},
	{"FILTER", "{with} SELECT count(*) FILTER (WHERE ({ref})::text = 'a') FROM {from}"},
	{"PARTITION BY", "{with} SELECT count(*) OVER (PARTITION BY ({ref})::text) FROM {from}"},
	{"window", "{with} SELECT rank() OVER w FROM {from} WINDOW w AS (ORDER BY ({ref})::text)"},
	{"IN", "{with} SELECT 1 FROM {from} WHERE 'a' IN (SELECT ({ref})::text)"},
	{"argument of a function in FROM", "{with} SELECT 1 FROM {from}, LATERAL unnest(ARRAY[({ref})::text]) u"},
	{"WITH", "WITH inside AS ({with} SELECT ({ref})::text AS x FROM {from}) SELECT x FROM inside"},

	{"INSERT", "INSERT INTO written {with} SELECT 1, ({ref})::text FROM {from}"},
	{"UPDATE", "{with} UPDATE written SET body = ({ref})::text FROM {from}"},
	{"DELETE", "{with} DELETE FROM written USING {from} WHERE ({ref})::text = 'a'"},
	{"RETURNING", "{with} DELETE FROM written USING {from} RETURNING ({ref})::text"},
}

const (
	positionsForSets    = 12 // the first of positions
	positionsOfWritings = 4  // the last of positions
)

// attributeStatement is a statement of this file.
type attributeStatement struct {
	name, sql string
	writes    bool
}

// in returns the statements with an item and a name after it, one for each position that takes it.
func (item fromItem) in(f calledFunction) (all []attributeStatement) {
	from := strings.ReplaceAll(item.from, "{value}", f.value)
	for n, p := range positions {
		if f.returnsSet && n >= positionsForSets {
			break
		}
		fill := strings.NewReplacer("{with}", item.with, "{from}", from, "{ref}", item.name+"."+f.name)
		all = append(all, attributeStatement{
			name:   item.kind + ", " + f.name + ", " + p.kind,
			sql:    strings.TrimSpace(fill.Replace(p.sql)),
			writes: n >= len(positions)-positionsOfWritings,
		})
	}
	return all
}

// attributeDatabase makes the objects of a file of testdata/attribute. It returns a reader, and a connection of a
// superuser.
func attributeDatabase(t *testing.T, s roleURLs, file string) (*dbaccess.Reader, *pgx.Conn) {
	t.Helper()
	ctx := context.Background()
	fixture, err := os.ReadFile("testdata/attribute/" + file)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	if _, err := owner.Exec(ctx, string(fixture)); err != nil {
		t.Fatal(err)
	}
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close(ctx) })
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, admin
}

// checkStatement returns why the check refuses a statement, or "ok".
func checkStatement(ctx context.Context, r *dbaccess.Reader, s attributeStatement) string {
	if s.writes {
		_, err := r.Capture(ctx, s.sql, nil, sandbox.QueryLimits{})
		return reason(err)
	}
	return reason(r.Check(ctx, s.sql))
}

// TestAttributeNotationCallsNoFunction writes a function that is not allowed after each kind of item, in each position.
func TestAttributeNotationCallsNoFunction(t *testing.T) {
	t.Parallel()
	s := dbtest.Start(t)
	_, admin := attributeDatabase(t, s, "generated.sql")
	testAttributeNotation(t, newJudge(t, s, embedded.DatabaseKnowledge), admin)
}

// judge compares the check with what PostgreSQL makes of a statement that it allows.
type judge struct {
	checker *check.Checker
	oracle  *oracle.Oracle
}

func newJudge(t *testing.T, s roleURLs, database string, allowed ...string) judge {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), s.URL(embedded.RoleReader, database))
	if err != nil {
		t.Fatal(err)
	}
	o, err := oracle.Open(t.Context(), s.URL(embedded.RoleAdmin, database), embedded.RoleReader)
	if err != nil {
		t.Fatal(err)
	}
	c := check.New(check.Config{Pool: pool, AllowFunctions: allowed})
	t.Cleanup(pool.Close)
	t.Cleanup(c.Close)
	t.Cleanup(o.Close)
	return judge{checker: c, oracle: o}
}

// judge returns "refused", "ok", "finds nothing" if PostgreSQL does not find a name on the statement's search path, or
// what the statement would call although it is not listed.
func (j judge) judge(ctx context.Context, t *testing.T, s attributeStatement, allowed ...string) string {
	t.Helper()
	stmt, err := j.checker.Statement(ctx, parse.Request{SQL: s.sql, AllowAnyName: true}, s.writes)
	if err != nil {
		t.Fatal(err)
	}
	if stmt.Refusal != nil {
		return "refused"
	}
	if len(stmt.ParameterNames) == 0 {
		if got, want := treeWithoutSchemas(t, stmt.SQL), treeWithoutSchemas(t, s.sql); got != want {
			return fmt.Sprintf("runs as %s, which has another tree: %s", stmt.SQL, got)
		}
	}
	calls, err := j.oracle.Unlisted(ctx, stmt.SQL, stmt.SearchPath, allowed...)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		if slices.Contains([]string{"42703", "42883", "42P01", "42809", "0A000"}, pg.Code) {
			return "finds nothing"
		}
		return pg.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) > 0 {
		return "calls " + strings.Join(calls, ", ")
	}
	return "ok"
}

// treeWithoutSchemas returns the tree of a statement, without positions and without the schemas that the check writes
// before names.
func treeWithoutSchemas(t *testing.T, sql string) string {
	t.Helper()
	text, err := pg_query.ParseToJSON(sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	var strip func(node any) any
	strip = func(node any) any {
		switch n := node.(type) {
		case map[string]any:
			for key, value := range n {
				switch key {
				case "location", "stmt_len", "schemaname":
					delete(n, key)
					continue
				case "funcname", "names", "name", "collname":
					if list, ok := value.([]any); ok && len(list) > 1 {
						value = list[1:]
					}
				}
				n[key] = strip(value)
			}
		case []any:
			for i := range n {
				n[i] = strip(n[i])
			}
		}
		return node
	}
	out, err := json.Marshal(strip(tree))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func testAttributeNotation(t *testing.T, j judge, admin *pgx.Conn) {
	t.Helper()
	ctx := context.Background()
	n, failed, outcomes := 0, 0, map[string]int{}
	for _, item := range itemsWithoutColumn {
		functions := functionsOfScalars
		if item.functions != nil {
			functions = nil
			for _, name := range item.functions {
				functions = append(functions, calledFunction{name: name})
			}
		}
		for _, f := range functions {
			for _, s := range item.in(f) {
				if n++; testing.Short() && n%7 != 0 {
					continue
				}
				if _, err := admin.Prepare(ctx, "", s.sql); err != nil {
					t.Errorf("%s: %s\n  PostgreSQL finds no function: %v", s.name, s.sql, err)
					failed++
				}
				got := j.judge(ctx, t, s)
				outcomes[got]++
				if got != "refused" && got != "finds nothing" {
					t.Errorf("%s: %s\n  %s, want that it is refused or finds no function", s.name, s.sql, got)
					failed++
				}
				if failed > 20 {
					t.Fatal("more than 20 failures")
				}
			}
		}
	}
	t.Logf("%d statements: %v", n, outcomes)
	if n < 6000 {
		t.Errorf("tried %d statements, want at least 6000", n)
	}
}

// TestAttributeNotationOfAnotherAuthor has statements whose author had not read the check: hostile ones, for which
// PostgreSQL was seen to call a function, and honest ones.
func TestAttributeNotationOfAnotherAuthor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := dbtest.Start(t)
	r, _ := attributeDatabase(t, db, "fixture.sql")
	j := newJudge(t, db, embedded.DatabaseKnowledge)
	n := map[string]int{}
	for _, c := range dbtest.Cases(t, "testdata/attribute/ho*.sql") {
		n[c.Want]++
		s := attributeStatement{sql: c.SQL, writes: reason(r.Check(ctx, c.SQL)) == "read-only"}
		got := j.judge(ctx, t, s)
		if want := c.Want == "ok"; (got == "ok") != want || !want && got != "refused" && got != "finds nothing" {
			t.Errorf("%s: %s\n  %s, want %s", c.File, c.SQL, got, c.Want)
		}
	}
	if n["refused"] < 220 || n["ok"] < 170 {
		t.Errorf("read %v cases, want at least 220 hostile and 170 honest ones", n)
	}
}

var itemsWithColumn = []fromItem{
	{kind: "table", from: "named s", name: "s"},
	{kind: "table without an alias", from: "named", name: "named"},
	{kind: "table with its schema", from: "public.named", name: "public.named"},
	{kind: "table with a list of other columns", from: "named s (x)", name: "s"},
	{kind: "TABLESAMPLE", from: "named s TABLESAMPLE system (100)", name: "s"},
	{kind: "view", from: "viewed_named s", name: "s"},
	{kind: "function with a list", from: "unnest(ARRAY[1]) s ({column})", name: "s"},
	{kind: "column definitions", from: "json_to_record('{}') s ({column} int)", name: "s"},
	{kind: "subquery with a list", from: "(SELECT 1) s ({column})", name: "s"},
	{kind: "subquery that names the column", from: "(SELECT 1 AS {column}) s", name: "s"},
	{kind: "subquery that selects the column", from: "(SELECT n.{column} FROM named n) s", name: "s"},
	{kind: "subquery that casts the column", from: "(SELECT n.{column}::text::varchar FROM named n) s", name: "s"},
	{kind: "subquery of *", from: "(SELECT * FROM notes, named) s", name: "s"},
	{kind: "subquery of a table's *", from: "(SELECT n.id, j.* FROM notes n JOIN named j USING (id)) s", name: "s"},
	{kind: "subquery of a join's *", from: "(SELECT j.* FROM (notes JOIN viewed_named USING (id)) j) s", name: "s"},
	{kind: "subquery of * of subqueries", from: "(SELECT * FROM (SELECT o.* FROM (TABLE named) o) i) s", name: "s"},
	{kind: "LATERAL subquery", from: "named n, LATERAL (SELECT 1 AS {column}) s", name: "s"},
	{kind: "UNION", from: "(SELECT 1 AS {column} UNION SELECT 2) s", name: "s"},
	{kind: "VALUES with a list", from: "(VALUES (1)) s ({column})", name: "s"},
	{kind: "WITH", with: "WITH s AS (SELECT 1 AS {column})", from: "s", name: "s"},
	{kind: "WITH under an alias", with: "WITH w AS (SELECT 1 AS {column})", from: "w s", name: "s"},
	{kind: "WITH of *", from: "b s", name: "s",
		with: "WITH a AS (SELECT * FROM named), b AS (SELECT a.*, 1 AS more FROM a)"},
	{kind: "WITH under the name of a table without the column", name: "s",
		with: "WITH notes AS (SELECT 1 AS {column})", from: "notes s"},
	{kind: "WITH RECURSIVE of *", from: "s", name: "s",
		with: "WITH RECURSIVE s AS (SELECT * FROM named UNION SELECT * FROM s WHERE id < 1)"},
	{kind: "WITH with a list", with: "WITH s ({column}) AS (SELECT 1)", from: "s", name: "s"},
	{kind: "WITH RECURSIVE", from: "s", name: "s",
		with: "WITH RECURSIVE s AS (SELECT 1 AS {column} UNION SELECT {column} + 1 FROM s WHERE {column} < 2)"},
	{kind: "join", from: "(named JOIN notes ON true) AS s", name: "s"},
	{kind: "join with a list", from: "(notes JOIN notes n ON true) AS s ({column})", name: "s"},
	{kind: "joined tables", from: "notes JOIN named s USING (id)", name: "s"},
	{kind: "the same name in two places", name: "s",
		from: "named s, LATERAL (SELECT s.{column} FROM (SELECT 1 AS {column}) s) t"},
}

// TestColumnsWithNamesOfFunctions writes such a name after each kind of item that is certain to have such a column.
func TestColumnsWithNamesOfFunctions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := dbtest.Start(t)
	r, admin := attributeDatabase(t, db, "generated.sql")
	j := newJudge(t, db, embedded.DatabaseKnowledge)
	n := 0
	for _, item := range itemsWithColumn {
		for _, column := range []string{"pg_sleep", "ts_stat", "of_int", "of_row", "of_any", "checked_int"} {
			one := item
			one.from = strings.ReplaceAll(item.from, "{column}", column)
			one.with = strings.ReplaceAll(item.with, "{column}", column)
			for _, s := range one.in(calledFunction{name: column}) {
				n++
				if _, err := admin.Prepare(ctx, "", s.sql); err != nil {
					t.Errorf("%s: %s: %v", s.name, s.sql, err)
				}
				if got := j.judge(ctx, t, s); got != "ok" {
					t.Errorf("%s: %s\n  %s, want ok", s.name, s.sql, got)
				}
			}
		}
	}
	t.Logf("%d statements", n)
	if n < 2000 {
		t.Errorf("tried %d statements, want at least 2000", n)
	}
	// Functions of pg_catalog with such names take the type internal, which no row has.
	for _, column := range []string{"system", "bernoulli"} {
		sql := "SELECT s." + column + " FROM (WITH w AS (SELECT 1 AS " + column + ") SELECT * FROM w) s"
		if got := reason(r.Check(ctx, sql)); got != "ok" {
			t.Errorf("%s: got %s, want ok", sql, got)
		}
	}
	// The search for a column through queries of * is bounded.
	chain := func(length int) string {
		sql := strings.Builder{}
		sql.WriteString("WITH c0 AS (SELECT * FROM named)")
		for n := range length {
			fmt.Fprintf(&sql, ", c%d AS (SELECT c%d.*, c%d.pg_sleep AS p FROM c%d)", n+1, n, n, n)
		}
		return sql.String() + " SELECT 1"
	}
	for length, want := range map[int]string{150: "ok", 1500: "too-large"} {
		if got := reason(r.Check(ctx, chain(length))); got != want {
			t.Errorf("a chain of %d queries: got %s, want %s", length, got, want)
		}
	}
	// Who follows the hint gets an answer.
	for sql, hint := range map[string]string{
		"SELECT s.pg_sleep FROM (WITH w AS (SELECT 1 AS pg_sleep) SELECT * FROM w) s": "AS s (column, ...)",
		"SELECT s.pg_sleep FROM named s WHERE EXISTS (SELECT FROM notes s)":           "this name for nothing else",
	} {
		var no *sandbox.Refusal
		if err := r.Check(ctx, sql); !errors.As(err, &no) || !strings.HasSuffix(no.Hint, hint) {
			t.Errorf("%s: got %v, want a refusal whose hint ends with %q", sql, err, hint)
		}
	}
	for _, sql := range []string{
		"SELECT s.pg_sleep FROM (WITH w AS (SELECT 1 AS pg_sleep) SELECT * FROM w) AS s (pg_sleep)",
		"SELECT s.pg_sleep FROM named s WHERE EXISTS (SELECT FROM notes n)",
		"SELECT s.of_int FROM named s WHERE EXISTS (SELECT FROM notes s)", // a function that is not on the path
	} {
		if got := reason(r.Check(ctx, sql)); got != "ok" {
			t.Errorf("%s: got %s, want ok", sql, got)
		}
	}
	// The inner of two WITH queries is meant.
	const shadowed = "WITH named AS (SELECT * FROM public.named) " +
		"SELECT * FROM (WITH named AS (SELECT 1 AS id) SELECT named.of_row FROM named) s"
	if got := j.judge(ctx, t, attributeStatement{sql: shadowed}); got != "finds nothing" {
		t.Errorf("%s: %s, want that it finds nothing", shadowed, got)
	}
	// The rows of a statement that writes are not items of FROM.
	const merge = "MERGE INTO notes n USING named s ON n.id = s.id WHEN MATCHED THEN UPDATE SET body = "
	const update = "ON CONFLICT (id) DO UPDATE SET body = "
	const insert = "INSERT INTO notes AS n SELECT 1, 'a' "
	for sql, want := range map[string]string{
		insert + update + "excluded.body":                                             "ok",
		insert + update + "excluded.of_note":                                          "function-not-allowed",
		"INSERT INTO notes SELECT 1, 'a' FROM excluded " + update + "excluded.of_row": "function-not-allowed",
		"WITH notes AS (SELECT 1 AS of_note) UPDATE notes SET body = notes.of_note":   "function-not-allowed",
		insert + "RETURNING n.body":                                                   "ok",
		insert + "RETURNING n.of_note":                                                "function-not-allowed",
		merge + "s.of_row":                                                            "ok",
		merge + "n.of_row":                                                            "function-not-allowed",
	} {
		if got := checkStatement(ctx, r, attributeStatement{sql: sql, writes: true}); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}
