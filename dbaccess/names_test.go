package dbaccess_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

const namesFixture = `
CREATE TABLE "OrderItem"("Id" int, "select" int, "Unit Price" numeric, "wie ""so""?" int, größe int);
CREATE TABLE "order"(id int, "end" int);
CREATE TABLE "Group.By"(id int);
CREATE TABLE people(id int, name text);
CREATE TABLE interval_of_days(id int);
CREATE SCHEMA sales;
CREATE TABLE sales.people(id int, region text);
CREATE TABLE sales.invoices(id int, total int);
CREATE SCHEMA "My Schema";
CREATE TABLE "My Schema"."Table"(id int);
CREATE SCHEMA hidden;
CREATE TABLE hidden.payroll(id int);
CREATE TABLE salaries(id int, "Start" date, amount int, note text);
CREATE TABLE secret_plan(id int);
CREATE TYPE payrol AS (id int);
REVOKE SELECT ON salaries, secret_plan FROM glasshouse_reader;
GRANT SELECT (id, "Start") ON salaries TO glasshouse_reader;
GRANT USAGE ON SCHEMA sales, "My Schema" TO glasshouse_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA sales, "My Schema", hidden TO glasshouse_reader;
`

// readerOfNames returns a reader of a database with tables of odd names.
func readerOfNames(t *testing.T) *dbaccess.Reader {
	t.Helper()
	ctx, s := context.Background(), dbtest.Start(t)
	conn, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, namesFixture); err != nil {
		t.Fatal(err)
	}
	return openReader(t, dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)})
}

// A name in a list can be pasted into a statement, and each way to write it finds the table.
func TestListedNamesCanBePasted(t *testing.T) {
	t.Parallel()
	ctx, r := context.Background(), readerOfNames(t)
	want := []string{
		`"Group.By"`, `"OrderItem"`, `"My Schema"."Table"`, "interval_of_days", "sales.invoices", `"order"`,
		"public.people", "sales.people", "salaries",
	}
	tables, err := r.Tables(ctx)
	if err != nil || strings.Join(tables, " ") != strings.Join(want, " ") {
		t.Errorf("Tables: got %v, %v\nwant %v", tables, err, want)
	}
	described, err := r.Schema(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range described {
		for _, c := range table.Columns {
			sql := "SELECT " + c.QuotedName + " FROM " + table.Name
			if rows, err := all(ctx, r, sql, nil, sandbox.QueryLimits{}); err != nil || rows.Columns[0].Name != c.Name {
				t.Errorf("%s: got %+v, %v, want the column %s", sql, rows.Columns, err, c.Name)
			}
		}
	}
	for given, want := range map[string]string{
		`"OrderItem"`: `"OrderItem"`, "OrderItem": `"OrderItem"`, "orderitem": `"OrderItem"`,
		`public."OrderItem"`:   `"OrderItem"`,
		`"public"."OrderItem"`: `"OrderItem"`, "public.OrderItem": `"OrderItem"`, "PUBLIC.salaries": "salaries",
		"order": `"order"`, `"order"`: `"order"`, "Group.By": `"Group.By"`, `"Group.By"`: `"Group.By"`,
		`public."Group.By"`: `"Group.By"`,
		"people":            "public.people", "public.people": "public.people", "sales.people": "sales.people",
		`"sales".people`: "sales.people",
		"Sales.Invoices": "sales.invoices", `"My Schema"."Table"`: `"My Schema"."Table"`,
		"My Schema.Table": `"My Schema"."Table"`,

		"invoices": "did you mean sales.invoices?", `"orderitem"`: `did you mean "OrderItem"?`,
		"publik.people": "did you mean public.people?",
		"payroll":       "db_tables() lists the tables", "secret_plan": "db_tables() lists the tables",
		`"`: "db_tables() lists the tables",
		"":  "db_tables() lists the tables",
	} {
		got, err := r.Schema(ctx, given)
		if no, ok := errors.AsType[*sandbox.Refusal](err); ok {
			got = []sandbox.Table{{Name: no.Hint}}
		}
		if len(got) != 1 || got[0].Name != want {
			t.Errorf("Schema(%q): got %+v, %v, want %s", given, got, err, want)
		}
	}
}

// The hint of a refusal names what can be pasted, or says what to do.
func TestHintsOfNamesCanBePasted(t *testing.T) {
	t.Parallel()
	ctx, r := context.Background(), readerOfNames(t)
	for sql, want := range map[string]string{
		// tables
		"SELECT * FROM OrderItem":                             `did you mean "OrderItem"?`,
		"SELECT * FROM ORDERITEMS":                            `did you mean "OrderItem"?`,
		"SELECT * FROM invoices":                              "did you mean sales.invoices?",
		"SELECT * FROM sale.people":                           "did you mean public.people?",
		"SELECT * FROM peple":                                 "did you mean public.people?",
		"SELECT * FROM payroll":                               "db_tables() lists the tables",
		"SELECT * FROM zzzzzzzzzz":                            "db_tables() lists the tables",
		`WITH "Totals"(x) AS (SELECT 1) SELECT * FROM Totals`: `did you mean "Totals"?`,
		`WITH recent AS (SELECT 1) SELECT * FROM recnt`:       "did you mean recent?",
		// columns
		"SELECT Id FROM \"OrderItem\"":                               `did you mean "Id"?`,
		"SELECT UnitPrice FROM \"OrderItem\"":                        `did you mean "Unit Price"?`,
		"SELECT o.id FROM \"OrderItem\" o":                           `did you mean "Id"?`,
		`SELECT grösse FROM "OrderItem"`:                             `did you mean "größe"?`,
		`SELECT id FROM (SELECT 1 AS "Id") t`:                        `did you mean "Id"?`,
		`WITH t("Unit Price") AS (SELECT 1) SELECT UnitPrice FROM t`: `did you mean "Unit Price"?`,
		`SELECT totl FROM (SELECT 1 AS total) t`:                     "did you mean total?",
		`SELECT t.b FROM (SELECT 1 a) t, (SELECT 2 b) u`: "the statement has a column of that name, but not at this " +
			"place; db_schema(table) lists the columns",
		"SELECT region FROM interval_of_days": "other tables have a column of that name, but they are not in this " +
			"statement; interval_of_days has the columns id",
		// keywords
		"SELECT * FROM order":                                `write the name as "order": order is a keyword of SQL`,
		"SELECT * FROM order WHERE id = 1":                   `write the name as "order": order is a keyword of SQL`,
		"SELECT 'é', * FROM people p JOIN ORDER o ON true":   `write the name as "order": order is a keyword of SQL`,
		"SELECT select FROM \"OrderItem\"":                   `write the name as "select": select is a keyword of SQL`,
		"SELECT end FROM \"order\"":                          `write the name as "end": end is a keyword of SQL`,
		`WITH "limit"(id) AS (SELECT 1) SELECT * FROM limit`: `write the name as "limit": limit is a keyword of SQL`,
		"SELECT id, FROM people":                             "remove the comma before that word",
		"SELECT id FROM people WHERE":                        "",
		"SELECT id FROM people GROUP id":                     "",
		// columns that may be read
		"SELECT * FROM salaries":             `of salaries only these columns may be read, and not *: id, "Start"`,
		"SELECT amount FROM public.salaries": `of salaries only these columns may be read, and not *: id, "Start"`,
		"SELECT 1 FROM people p, salaries s WHERE s.amount = p.id": `of salaries only these columns may be read, and ` +
			`not *: id, "Start"`,
		"SELECT amont FROM salaries": `salaries has the columns id, "Start"`,
		"SELECT nots FROM salaries":  `salaries has the columns id, "Start"`,
		"SELECT strat FROM salaries": `did you mean "Start"?`,
		"SELECT p.amount FROM people p, salaries s": `people has the columns id, name; salaries has the columns id, ` +
			`"Start"`,
		"SELECT amnt FROM secret_plan": "db_schema(table) lists the columns",
		"SELECT * FROM secret_plan":    "db_tables() lists the tables that may be read",
		"SELECT * FROM hidden.payroll": "",
	} {
		_, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		no, ok := errors.AsType[*sandbox.Refusal](err)
		if !ok || no.Hint != want {
			t.Errorf("%s\n  got  %+v %v\n  want %s", sql, no, err, want)
		}
	}
	if _, err := all(ctx, r, `SELECT id, "Start" FROM salaries`, nil, sandbox.QueryLimits{}); err != nil {
		t.Errorf("the columns that may be read: %v", err)
	}
}
