package dbaccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// sampledTables has few rows, so that the sample of a write has all rows that it touches.
const sampledTables = `
	CREATE SCHEMA shop;
	CREATE TABLE customers (
		id int PRIMARY KEY, name text, vip bool, n int, tags int[] DEFAULT '{}', "odd ""name)" int, "where" int
	);
	INSERT INTO customers VALUES
		(1, 'ada', true, 1, '{1,2}', 1, 1), (2, 'Bob', false, 2, '{}', 2, NULL), (3, 'eve', NULL, 3, NULL, 3, 3),
		(4, 'a) WHERE (b', NULL, NULL, '{4}', 4, 4), (5, NULL, true, -5, '{5}', NULL, 5);
	CREATE TABLE old_customers () INHERITS (customers);
	INSERT INTO old_customers VALUES (6, 'old', NULL, 6, '{6}', 6, 6), (7, 'older', true, 7, '{7}', 7, 7);
	CREATE TABLE orders (id int PRIMARY KEY, customer_id int, total int);
	INSERT INTO orders VALUES (11, 1, 10), (12, 1, 20), (13, 2, 30), (14, 6, 40), (15, 99, 50);
	CREATE TABLE "delete" (id int PRIMARY KEY, set int, "from" text);
	INSERT INTO "delete" VALUES (1, 1, 'x'), (2, 2, 'y');
	CREATE TABLE shop.customers (id int PRIMARY KEY, name text);
	INSERT INTO shop.customers VALUES (1, 'shop'), (9, 'shop');
	GRANT USAGE ON SCHEMA shop TO glasshouse_reader;
	GRANT SELECT ON ALL TABLES IN SCHEMA public, shop TO glasshouse_reader`

// sampledWrites lists writes whose conditions a text that is made from the tree may change.
var sampledWrites = []string{
	// precedence
	"DELETE FROM customers WHERE (NOT vip) IS NULL",
	"DELETE FROM customers WHERE NOT vip IS NULL",
	"DELETE FROM customers WHERE NOT (vip IS NULL)",
	"DELETE FROM customers WHERE (vip IS NULL) = (n > 2)",
	"DELETE FROM customers WHERE vip IS NULL OR n = 1 AND vip",
	"DELETE FROM customers WHERE (vip IS NULL OR n = 1) AND NOT vip IS TRUE",
	"DELETE FROM customers WHERE (n BETWEEN 1 AND 2) IS NOT TRUE",
	"DELETE FROM customers WHERE NOT n BETWEEN 2 AND 6 AND vip",
	"DELETE FROM customers WHERE n BETWEEN SYMMETRIC 6 AND (2)",
	"DELETE FROM customers WHERE (n = 1) = vip",
	"DELETE FROM customers WHERE - n ^ 2 < -8",
	"DELETE FROM customers WHERE (- n) ^ 2 > 8",
	"DELETE FROM customers WHERE n - (2 - 1) = 1",
	"DELETE FROM customers WHERE - (n::text || '1')::int = -11",
	"DELETE FROM customers WHERE (n IS DISTINCT FROM 1) IS DISTINCT FROM vip",
	"DELETE FROM customers WHERE (n < 3) IN (vip, NULL)",
	"DELETE FROM customers WHERE (n IN (1, 2, 3)) IS UNKNOWN OR (name LIKE 'a%') IS FALSE",
	// operators, casts, collations
	`DELETE FROM customers WHERE name COLLATE "C" < 'a'`,
	`DELETE FROM customers WHERE (name || 'x') COLLATE "C" < 'Cx' OR name ~~* 'EVE'`,
	"DELETE FROM customers WHERE n OPERATOR(pg_catalog.=) 1 + 1",
	"DELETE FROM customers WHERE (n OPERATOR(pg_catalog.+) 1) * 2 = 6",
	"DELETE FROM customers WHERE CAST(n AS text) = '3' OR n::text::int = 7",
	"DELETE FROM customers WHERE tags[1] = 4 OR (tags)[2] = 2",
	"DELETE FROM customers WHERE tags @> ARRAY[5] OR 6 = ANY (tags) OR n > ALL ('{6}'::int[])",
	// rows, subqueries, CASE
	"DELETE FROM customers WHERE (id, n) = (1, 1) OR ROW(id, n) < (2, 9) OR (id, n) IN ((6, 6), (7, 0))",
	"DELETE FROM customers WHERE ROW(n, vip) IS NULL OR (n, vip) IS NOT NULL",
	"DELETE FROM customers WHERE CASE WHEN vip THEN n ELSE id END = 3 OR CASE n WHEN 1 THEN true END",
	"DELETE FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id AND total > 10)",
	"DELETE FROM customers WHERE n = (SELECT max(n) FROM customers WHERE vip) OR id NOT IN (SELECT 1 UNION SELECT 2)",
	"DELETE FROM customers WHERE n > ALL (SELECT total / 10 FROM orders WHERE customer_id = 1)",
	"DELETE FROM customers WHERE (SELECT bool_or(total > 15) FROM orders WHERE customer_id = customers.id) IS TRUE",
	// names, strings, comments
	`DELETE FROM customers WHERE "odd ""name)" = 2 OR "where" = 5`,
	`DELETE FROM customers WHERE customers.where = 5 -- RETURNING (`,
	"DELETE FROM customers WHERE name = 'a) WHERE (b' /* ) OR (true */",
	"DELETE FROM customers WHERE name = $q$a) WHERE (b$q$ OR name = E'e\\166e' OR name = U&'\\0042ob'",
	"DELETE FROM customers WHERE n = 1 -- OR true\n OR n = 2 -- (",
	"DELETE FROM customers WHERE name = 'e'\n've'",
	`DELETE FROM U&"c\0075stomers" WHERE n = 1`,
	"; DELETE FROM customers WHERE n = 2 ;;",
	"delete/**/from\ncustomers where(n)=(3)",
	`DELETE FROM "delete" WHERE set = 2`,
	`UPDATE "delete" AS set SET set = 3 WHERE set.set = 1`,
	`UPDATE "delete" AS "SET" SET "from" = 'RETURNING' WHERE "SET"."from" = 'x'`,
	`UPDATE "delete" SET set = "delete".set, "from" = "delete".from WHERE "delete".from = 'x'`,
	// targets
	"DELETE FROM customers",
	"DELETE FROM ONLY customers WHERE vip IS NULL",
	"DELETE FROM ONLY (customers) c WHERE c.vip",
	"DELETE FROM customers * WHERE n > 5",
	"DELETE FROM customers * AS c WHERE c.n > 5",
	"DELETE FROM public.customers WHERE customers.vip",
	"DELETE FROM public.customers WHERE public.customers.vip",
	"DELETE FROM public.customers AS x WHERE x IS NULL OR (x).n = 2",
	// other tables: a row that several of them match is touched once
	"DELETE FROM customers USING orders WHERE customer_id = customers.id",
	"DELETE FROM customers c USING orders o LEFT JOIN orders p USING (customer_id) WHERE o.customer_id " +
		"= c.id AND NOT p.total < 20",
	"DELETE FROM customers c USING orders o JOIN orders p ON (o.id < p.id) WHERE c.id = o.customer_id " +
		"AND c.id = p.customer_id",
	"DELETE FROM public.customers USING shop.customers s WHERE s.id = public.customers.id",
	"DELETE FROM customers USING orders",
	"WITH d AS (SELECT 1 AS n) DELETE FROM customers USING d WHERE d.n = customers.n",
	"WITH delete (n) AS (VALUES (1), (2)), update AS MATERIALIZED (TABLE delete) DELETE FROM customers " +
		"c USING update u WHERE (c.n = u.n) IS TRUE",
	"WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SEARCH DEPTH FIRST " +
		"BY n SET o DELETE FROM customers USING r WHERE r.n = customers.n",
	// UPDATE
	"UPDATE customers SET n = n + 1, name = upper(name) WHERE (NOT vip) IS NULL",
	"UPDATE customers SET vip = n IS DISTINCT FROM 1, n = CASE WHEN vip THEN 1 ELSE 2 END WHERE n IS " +
		"NOT DISTINCT FROM 1",
	"UPDATE customers SET vip = NOT vip IS NULL, n = - n - (1 - 2) WHERE n = 1 OR vip = (n = 3)",
	"UPDATE customers SET name = 'a, b = c', tags = ARRAY[1, 2], n = DEFAULT WHERE id = 1",
	"UPDATE customers SET (n, name) = (5, 'x'), vip = false WHERE vip",
	"UPDATE customers SET (n, vip) = (SELECT 5, false), name = 'y' WHERE n BETWEEN 1 AND 2",
	"UPDATE customers SET tags[1] = 9, n = 3 WHERE tags = '{}'",
	`UPDATE customers SET "odd ""name)" = 9, "where" = (SELECT 4 WHERE true) WHERE "where" = 4 RETURNING id, n AS from`,
	"UPDATE customers c SET n = total FROM orders WHERE customer_id = c.id AND total > 25",
	"UPDATE customers c SET n = o.n FROM (SELECT customer_id, sum(total) AS n FROM orders GROUP BY 1) " +
		"AS o WHERE o.customer_id = c.id",
	"UPDATE customers SET vip = total IS NOT DISTINCT FROM 10 FROM orders WHERE customer_id = " +
		"customers.id AND total = 40",
	"UPDATE customers SET vip = true FROM orders o, orders p WHERE o.customer_id = p.customer_id AND " +
		"o.customer_id = customers.id",
	"WITH o AS (SELECT * FROM orders WHERE NOT (total > 10) IS FALSE) UPDATE customers SET n = o.total " +
		"FROM o WHERE o.customer_id = customers.id AND o.id > 12",
	// INSERT
	"INSERT INTO customers (id, n) VALUES (21, 1), (22, 2)",
	"INSERT INTO customers SELECT id + 20 AS id, 'x' || name FROM customers WHERE (NOT vip) IS NULL",
	"INSERT INTO customers (id) (SELECT c.id + 30 FROM customers c JOIN orders o ON c.id = " +
		"o.customer_id AND o.id > 12)",
	"INSERT INTO public.customers AS c (n, id) OVERRIDING USER VALUE SELECT n, id + 40 FROM customers " +
		"ON CONFLICT (id) DO UPDATE SET n = c.n WHERE c.vip RETURNING id",
	"WITH x AS (SELECT 51 AS id) INSERT INTO customers (id, name) WITH y AS (TABLE x) SELECT y.id AS " +
		"returning, 'ON CONFLICT' FROM y RETURNING id",
	"INSERT INTO customers (id, vip) SELECT a.id + 50, conflict FROM (SELECT id, vip AS conflict FROM " +
		"customers) a JOIN orders ON conflict AND a.id = customer_id WHERE total = 10",
	"INSERT INTO customers TABLE customers EXCEPT TABLE customers",
}

// TestSampleHasTheRowsOfTheWrite runs writes in transactions that are rolled back.
func TestSampleHasTheRowsOfTheWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	owner, r := openSampled(t)
	for _, sql := range sampledWrites {
		rows, count, err := r.SampleQueries(ctx, sql, nil)
		if err != nil {
			t.Errorf("%s: got %v, want a sample", sql, err)
			continue
		}
		got, err := all(ctx, r, rows.SQL, nil, sandbox.QueryLimits{})
		if err != nil {
			t.Errorf("%s:\n%s\ngot %v, want rows", sql, rows.SQL, err)
			continue
		}
		counted, err := all(ctx, r, count.SQL, nil, sandbox.QueryLimits{})
		if err != nil {
			t.Errorf("%s:\n%s\ngot %v, want a number", sql, count.SQL, err)
			continue
		}
		sampled := objects(got)
		touched := touchedRows(t, owner, sql)
		if a, b := ids(sampled), ids(touched); !slices.Equal(a, b) {
			t.Errorf("%s:\n%s\ngot the rows %v, want %v", sql, rows.SQL, a, b)
			continue
		}
		if n := fmt.Sprint(counted.Data[0][0]); n != fmt.Sprint(len(touched)) {
			t.Errorf("%s:\n%s\ngot the number %s, want %d", sql, count.SQL, n, len(touched))
		}
		for i, row := range sampled {
			for name, value := range row {
				column, isNew := strings.CutPrefix(name, "new ")
				after, isReturned := touched[i][column]
				if want := fmt.Sprint(after); isNew && isReturned && fmt.Sprint(value) != want &&
					!strings.HasPrefix(fmt.Sprint(value), "(not shown") {
					t.Errorf("%s:\n%s\ngot the new value %v of %s, want %s", sql, rows.SQL, value, column, want)
				}
			}
		}
	}
}

// A write that a query cannot show is refused with the reason.
func TestSampleIsRefused(t *testing.T) {
	t.Parallel()
	_, r := openSampled(t)
	for sql, want := range map[string]string{
		"DELETE FROM customers WHERE CURRENT OF c":                                      "CURRENT OF",
		"UPDATE customers SET n = 1 WHERE CURRENT OF c":                                 "CURRENT OF",
		"WITH customers AS (SELECT 1 AS id) DELETE FROM customers WHERE id = 2":         "the same name",
		"INSERT INTO customers DEFAULT VALUES":                                          "DEFAULT",
		"INSERT INTO customers (id, n) VALUES (31, 1), (32, DEFAULT)":                   "DEFAULT",
		"INSERT INTO customers (id, tags[1]) VALUES (31, 1)":                            "part of the column",
		"MERGE INTO customers c USING orders o ON c.id = o.id WHEN MATCHED THEN DELETE": "only INSERT, UPDATE",
		`DELETE FROM U&"c!0075stomers" UESCAPE '!' WHERE id = 1; SELECT 1`:              "exactly one statement",
	} {
		_, _, err := r.SampleQueries(context.Background(), sql, nil)
		var no *sandbox.Refusal
		if !errors.As(err, &no) || no.Reason != "no-sample" || !strings.Contains(no.Message, want) {
			t.Errorf("%s: got %v, want a refusal with %q", sql, err, want)
		}
	}
}

// A sample has the parameters of the parts that it reads, and no others: a query refuses those that it does not use.
func TestSampleHasItsParameters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, r := openSampled(t)
	sql := "UPDATE customers SET (n, name) = (:n, ':n'), vip = :vip WHERE id = :id RETURNING :text"
	params := map[string]any{"n": json.Number("1"), "vip": true, "id": json.Number("2"), "text": "x"}
	rows, count, err := r.SampleQueries(ctx, sql, params)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Parameters) != 2 || rows.Parameters["vip"] != true || len(count.Parameters) != 1 {
		t.Errorf("got the parameters %v and %v, want vip and id, and id", rows.Parameters, count.Parameters)
	}
	for _, q := range []sandbox.BoundQuery{rows, count} {
		if got, err := all(ctx, r, q.SQL, q.Parameters, sandbox.QueryLimits{}); err != nil || got.Rows != 1 {
			t.Errorf("%s: got %d rows and %v, want 1 row", q.SQL, got.Rows, err)
		}
	}
}

// openSampled returns a connection of the owner of sampledTables and a reader of them.
func openSampled(t *testing.T) (owner *pgx.Conn, r *dbaccess.Reader) {
	t.Helper()
	s := dbtest.Start(t)
	owner, err := dbtest.Connect(context.Background(), s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close(context.Background()) })
	return owner, openWithWriter(t, s, sampledTables)
}

// openWithWriter returns a reader with a writing login, after statements of the owner.
func openWithWriter(t *testing.T, s *dbtest.Databases, statements string) *dbaccess.Reader {
	t.Helper()
	ctx := context.Background()
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	if _, err := owner.Exec(ctx, statements); err != nil {
		t.Fatal(err)
	}
	r, err := dbaccess.Open(ctx, dbaccess.Config{
		URL:       s.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
		WriterURL: s.URL(embedded.RoleWriter, embedded.DatabaseKnowledge), ServerCheck: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// touchedRows returns the rows that a write touches, as they are afterwards, in the order of their ids.
func touchedRows(t *testing.T, owner *pgx.Conn, sql string) []map[string]any {
	t.Helper()
	ctx := context.Background()
	tx, err := owner.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if sql = strings.Trim(sql, "; "); !strings.Contains(sql, "RETURNING id") {
		sql += "\nRETURNING *" // the columns of the target are the first ones
	}
	rows, err := tx.Query(ctx, sql, pgx.QueryExecModeExec)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	touched, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (map[string]any, error) {
		values, err := row.Values()
		out := map[string]any{}
		for i, field := range row.FieldDescriptions() {
			if _, isKnown := out[field.Name]; !isKnown && err == nil {
				out[field.Name] = values[i]
			}
		}
		return out, err
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	byID(touched)
	return touched
}

// objects returns the rows of a result in the order of their ids.
func objects(r result) []map[string]any {
	list := make([]map[string]any, r.Rows)
	for i := range list {
		list[i] = map[string]any{}
		for n, column := range r.Columns {
			list[i][column.Name] = r.Data[n][i]
		}
	}
	byID(list)
	return list
}

func byID(list []map[string]any) {
	slices.SortFunc(list, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["id"]), fmt.Sprint(b["id"]))
	})
}

func ids(list []map[string]any) (out []string) {
	for _, row := range list {
		out = append(out, fmt.Sprint(row["id"]))
	}
	return out
}
