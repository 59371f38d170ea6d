package dbaccess_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// tracedTables has few rows, so that a reader of the tests can compute each answer.
const tracedTables = `
	CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, email text, city text);
	INSERT INTO customers VALUES (1, 'Ada', 'ada@secret', 'Rome'), (2, 'Ben', 'ben@secret', 'Rome'),
		(3, 'Cleo', 'cleo@secret', NULL), (4, 'Dan', 'dan@secret', 'Oslo'), (5, 'Eva', 'eva@secret', NULL);
	CREATE TABLE orders (id int PRIMARY KEY, customer_id int, status text, total numeric, weight float8, note json);
	INSERT INTO orders VALUES (10, 1, 'paid', 10, 0.1, '{}'), (11, 1, 'paid', 20, 0.2, NULL),
		(12, 2, 'open', 5, 0.3, NULL),
		(13, 3, 'paid', 7, 0.4, '{}'), (14, NULL, 'paid', 3, 0.5, '{}'), (15, 4, NULL, 9, 0.6, NULL),
		(16, 5, 'paid', 1.0, 0.7, NULL), (17, 5, 'paid', 1.00, 0.8, NULL);
	CREATE TABLE items (order_id int, line int, product text, PRIMARY KEY (order_id, line));
	INSERT INTO items VALUES (10, 1, 'pen'), (10, 2, 'ink'), (11, 1, 'pen'), (13, 1, 'cup');
	CREATE TABLE visits (customer_id int, page text, secret text, data json);
	INSERT INTO visits VALUES (1, 'home', 'secret', '1'), (1, 'home', 'secret', '2'), (1, 'cart', 'secret', '3'),
		(2, 'home', 'secret', '4'), (NULL, 'home', 'secret', '5');
	CREATE VIEW paid AS SELECT id, customer_id, total FROM orders WHERE status = 'paid';
	CREATE TABLE "Odd @0 name" ("Id @1" int PRIMARY KEY, "a""b" text);
	INSERT INTO "Odd @0 name" VALUES (1, 'x'), (2, 'y'), (3, 'x');
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader`

// openTraced returns a reader of a database that has tracedTables. Two columns of these are masked.
func openTraced(t testing.TB) *dbaccess.Reader {
	t.Helper()
	return openMade(t, dbaccess.Config{
		MaskColumns: []string{"customers.email", "visits.secret"}, ServerCheck: true,
	}, tracedTables)
}

// rowsText returns the rows of an answer by the keys of their tables: "orders 10 11; visits 1/home 1/home (1)", with
// the number of different rows if it is another.
func rowsText(y *stages.Why) string {
	var list []string
	for _, one := range y.Tables {
		text := one.Table
		if one.First == nil || one.Rows == nil {
			list = append(list, fmt.Sprintf("%s %s %s %s", text, one.State, one.Reason, one.Message))
			continue
		}
		for _, row := range one.First.Rows {
			var key []string
			for i, name := range one.First.Columns {
				for _, k := range one.Key {
					if k == name {
						key = append(key, fmt.Sprint(row[i]))
					}
				}
			}
			text += " " + strings.Join(key, "/")
		}
		if int(*one.Rows) != len(one.First.Rows) {
			text += fmt.Sprintf(" of %d", *one.Rows)
		}
		if one.Distinct != nil && *one.Distinct != *one.Rows {
			text += fmt.Sprintf(" (%d)", *one.Distinct)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// The rows behind a cell are those that a person finds by hand, and the statement over them alone gives the cell again.
func TestWhyFindsTheRows(t *testing.T) {
	t.Parallel()
	r := openTraced(t)
	for _, c := range []struct {
		name, sql string
		params    map[string]any
		row       int
		column    string
		value     string
		want      string
		predicate string
		check     string // "": same
		notLooked string
	}{
		{
			name: "plain row", sql: "SELECT name, email FROM customers WHERE city = 'Rome' ORDER BY id", row: 1,
			column: "email", value: "***", want: "customers 2", predicate: "'2'",
		}, {
			name: "group",
			sql: "SELECT c.city, sum(o.total) AS total FROM customers c JOIN orders o ON o.customer_id = c.id " +
				"WHERE o.status = :status GROUP BY c.city ORDER BY " +
				"1", params: map[string]any{"status": "paid"}, column: "total",
			value: "30", want: "customers 1; orders 10 11", predicate: "c.city IS NOT DISTINCT FROM 'Rome'",
		}, {
			name: "NULL key",
			sql: "SELECT c.city, count(*) AS n FROM customers c JOIN orders o ON o.customer_id = c.id " +
				"GROUP BY 1 ORDER BY 1 NULLS FIRST", column: "n", value: "3", want: "customers 3 5; orders 13 16 17",
			predicate: "c.city IS NOT DISTINCT FROM NULL",
		}, {
			name: "key that is not selected", sql: "SELECT count(*) AS n FROM orders GROUP BY status, total > 5 " +
				"ORDER BY status NULLS LAST, total > 5 DESC", column: "n", row: 1, value: "3", want: "orders 10 11 13",
		}, {
			name:   "numbers with other digits",
			sql:    "SELECT total, count(*) AS n FROM orders GROUP BY total ORDER BY total",
			column: "n", value: "2", want: "orders 16 17", predicate: "total IS NOT DISTINCT FROM '1",
		}, {
			name: "all rows", sql: "SELECT sum(weight) AS w FROM orders WHERE total > 100", column: "w", value: "NULL",
			want: "orders", predicate: "",
		}, {
			name: "left join",
			sql: "SELECT c.id, count(i.line) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.id " +
				"LEFT JOIN items i ON i.order_id = o.id GROUP BY c.id ORDER BY c.id", column: "n", value: "3",
			want: "customers 1; orders 10 11; items 10/1 10/2 11/1",
		}, {
			name: "left join without a partner", sql: "SELECT o.id, i.product FROM orders o LEFT JOIN items i " +
				"ON i.order_id = o.id ORDER BY o.id, " +
				"i.line", row: 3, column: "product", value: "NULL", want: "orders 12; items",
		}, {
			name: "group by a primary key",
			sql: "SELECT c.name, c.email, count(*) AS n FROM customers c JOIN orders o " +
				"ON o.customer_id = c.id GROUP BY c.id ORDER BY c.id", row: 3, column: "n", value: "1",
			want: "customers 4; orders 15",
		}, {
			name: "HAVING, LIMIT and OFFSET",
			sql: "SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id " +
				"HAVING count(*) > 1 ORDER BY customer_id DESC LIMIT 1 OFFSET " +
				"1", column: "n", value: "2", want: "orders 10 11",
		}, {
			name: "no primary key", sql: "SELECT customer_id, count(*) AS n FROM visits GROUP BY 1 ORDER BY 1",
			column: "n",
			value:  "3", want: "visits 1/cart 1/home 1/home (2)",
		}, {
			name: "no primary key, NULL", sql: "SELECT v.secret, v.page FROM visits v WHERE customer_id IS NULL",
			column: "secret", value: "***", want: "visits <nil>/home",
		}, {
			name: "DISTINCT", sql: "SELECT DISTINCT city FROM customers ORDER BY city", row: 1, column: "city",
			value: "Rome",
			want:  "customers 1 2", predicate: "city IS NOT DISTINCT FROM 'Rome'",
		}, {
			name: "DISTINCT ON", sql: "SELECT DISTINCT ON (customer_id) customer_id, total FROM orders " +
				"ORDER BY customer_id, total DESC", column: "total", value: "20", want: "orders 11",
		}, {
			name: "WITH",
			sql: "WITH per AS (SELECT customer_id AS c, sum(total) AS spent FROM orders WHERE status = 'paid' " +
				"GROUP BY customer_id), named AS (SELECT city, spent FROM per JOIN customers ON id = c) " +
				"SELECT city, max(spent) AS most FROM named GROUP BY city ORDER BY city", column: "most", value: "30",
			want: "orders 10 11; customers 1",
		}, {
			name: "WITH twice",
			sql: "WITH o AS (SELECT id, customer_id, total FROM orders) SELECT a.id, b.id AS other " +
				"FROM o a JOIN o b ON a.customer_id = b.customer_id AND a.id < b.id ORDER BY " +
				"1", column: "other", value: "11",
			want: "orders 10 11",
		}, {
			name: "subquery in FROM", sql: "SELECT x.n, count(*) AS k FROM (SELECT customer_id, count(*) FROM orders " +
				"GROUP BY 1) AS x (who, n) GROUP BY x.n ORDER BY x.n DESC", column: "k", value: "2",
			want: "orders 10 11 16 17",
		}, {
			name: "self join", sql: "SELECT a.name, count(b.id) AS n FROM customers a JOIN customers b USING (city) " +
				"GROUP BY a.name ORDER BY 1", column: "n", value: "2", want: "customers 1 2",
		}, {
			name: "UNION", sql: "SELECT customer_id AS c FROM orders UNION SELECT customer_id FROM visits ORDER BY 1",
			row:    1,
			column: "c", value: "2", want: "orders 12; visits 2/home",
		}, {
			name: "EXCEPT in a subquery", sql: "SELECT count(*) AS n FROM (SELECT id FROM customers EXCEPT " +
				"SELECT customer_id FROM visits) AS x", column: "n", value: "3", want: "customers 3 4 5",
			notLooked: "EXCEPT", check: stages.CheckSame,
		}, {
			name: "right and full join",
			sql: "SELECT o.id AS o, i.line FROM items i RIGHT JOIN orders o ON i.order_id = o.id " +
				"FULL JOIN customers c ON c.id = o.customer_id WHERE o.id = 14", column: "o", value: "14",
			want: "items; orders 14; customers",
		}, {
			name: "list in FROM", sql: "SELECT o.id FROM customers c, orders o, items i WHERE c.id = o.customer_id " +
				"AND i.order_id = o.id AND i.product = 'cup'", column: "id", value: "13",
			want: "customers 3; orders 13; items 13/1",
		}, {
			name: "view", sql: "SELECT sum(p.total) AS s FROM paid p WHERE p.customer_id = 1", column: "s", value: "30",
			want: "paid 10/1/10 11/1/20",
		}, {
			name:   "subquery in WHERE",
			sql:    "SELECT count(*) AS n FROM customers c WHERE id IN (SELECT customer_id FROM visits)",
			column: "n", value: "2", want: "customers 1 2", notLooked: "subqueries",
		}, {
			name: "window function", sql: "SELECT id, sum(id) OVER () AS s FROM customers ORDER BY id", column: "s",
			value: "15",
			want:  "customers 1", check: stages.CheckDiffers,
		}, {
			name: "odd names", sql: `WITH "c @0" AS (SELECT "a""b" AS "x @1", "Id @1" AS i FROM "Odd @0 name") ` +
				`SELECT "x @1" AS x, sum(i) AS s FROM "c @0" "q @2" GROUP BY 1 ORDER BY 1`, column: "s", value: "4",
			want: `"Odd @0 name" 1 3`,
		}, {
			name: "function in FROM",
			sql: "SELECT d, count(o.id) AS n FROM generate_series(1, 2) d LEFT JOIN orders o " +
				"ON o.customer_id = d GROUP BY d ORDER BY d", column: "n", value: "2", want: "orders 10 11",
			notLooked: "function",
		}, {
			name: "group that a subquery does not return",
			sql: "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM orders " +
				"GROUP BY status) x", column: "n", value: "6", want: "", notLooked: "groups by an expression " +
				"that it does not return",
		}, {
			name:   "LIMIT in a subquery",
			sql:    "SELECT count(*) AS n FROM (SELECT status FROM orders ORDER BY total DESC LIMIT 2) x",
			column: "n", value: "2", want: "orders 10 11",
		}, {
			name: "LIMIT of an arm",
			sql: "(SELECT id FROM customers ORDER BY id DESC LIMIT 2) UNION ALL SELECT customer_id " +
				"FROM visits WHERE page = 'cart' ORDER BY 1", column: "id", value: "1", want: "customers; " +
				"visits 1/cart",
		}, {
			name: "masked column of a WITH query", sql: "WITH c AS (SELECT * FROM customers), d AS (SELECT * FROM c) " +
				"SELECT d.email, d.id FROM d ORDER BY id", row: 3, column: "email", value: "***", want: "customers 4",
		}, {
			name: "TABLE", sql: "TABLE customers", row: 2, column: "email", value: "***", want: "customers 3",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			y, summary, err := r.Why(t.Context(), c.sql, c.params, c.row, c.column, sandbox.QueryLimits{})
			if err != nil {
				t.Fatalf("%v (%+v)", err, err)
			}
			value := "NULL"
			if y.Value != nil {
				value = *y.Value
			}
			if value != c.value {
				t.Errorf("got the value %s, want %s", value, c.value)
			}
			if got := rowsText(y); got != c.want {
				t.Errorf("got the rows %q, want %q\n%s", got, c.want, y.Text)
			}
			if want := or(c.check, stages.CheckSame); y.Check.State != want && c.want != "" {
				t.Errorf("got the check %s (%s), want %s", y.Check.State, y.Check.Message, want)
			}
			if !strings.Contains(y.Predicate, c.predicate) {
				t.Errorf("got the predicate %s, want %s", y.Predicate, c.predicate)
			}
			if got := strings.Join(y.NotLooked, "; "+
				""); !strings.Contains(got, c.notLooked) || c.notLooked == "" && got != "" {
				t.Errorf("got not_looked %q, want %q", got, c.notLooked)
			}
			if text := asJSON(t, y); strings.Contains(text, "secret\"") || strings.Contains(text, "@secret") {
				t.Errorf("the answer has a masked value: %s", text)
			}
			if summary.Rows <= c.row {
				t.Errorf("got a summary of %d rows", summary.Rows)
			}
		})
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// asJSON returns an answer as a client receives it, without the names of columns.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`["secret"`, "[", `,"secret"`, ",", `"column":"secret"`, "").Replace(string(text))
}

// What cannot be told is refused with a reason.
func TestWhyIsRefused(t *testing.T) {
	t.Parallel()
	r := openTraced(t)
	for _, c := range []struct {
		sql    string
		row    int
		column string
		reason string
	}{
		{"SELECT id FROM customers", 5, "id", "unknown-row"},
		{"SELECT id FROM customers", 0, "Id", "unknown-column"},
		{"SELECT city, count(*) AS n FROM customers GROUP BY ROLLUP (city)", 0, "n", "not-traceable"},
		{"VALUES (1)", 0, "column1", "not-traceable"},
		{"SELECT id FROM customers WHERE email = 'ada@secret'", 0, "id", "masked-column"},
		{"SELECT random() AS r FROM customers", 0, "r", "volatile"},
		{"EXPLAIN SELECT 1", 0, "QUERY PLAN", "no-stages"},
		{"DELETE FROM customers", 0, "id", "read-only"},
		{"SELECT id, 1 / (id - 1) AS x FROM customers", 0, "x", "division-by-zero"},
	} {
		_, _, err := r.Why(t.Context(), c.sql, nil, c.row, c.column, sandbox.QueryLimits{})
		if no, ok := errors.AsType[*sandbox.Refusal](err); !ok || no.Reason != c.reason {
			t.Errorf("%s: got %v, want %s", c.sql, err, c.reason)
		}
	}
}

// shopStatements returns statements on the shop of many forms, a few of them in short tests.
func shopStatements(t testing.TB) (list []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/stages/forms.json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stageCases(t) {
		list = append(list, c.SQL)
	}
	if !testing.Short() {
		return list
	}
	var few []string
	for i := 0; i < len(list); i += 8 {
		few = append(few, list[i])
	}
	return few
}

// othersToo matches statements whose last column depends on more rows than those of its own row.
var othersToo = regexp.MustCompile(`(?i)\bover\b`)

// For each statement on the shop, the statement over the rows that were found gives the cell again.
func TestWhyOfManyStatements(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	list := shopStatements(t)
	same, differs, untraced := 0, 0, 0
	for _, sql := range list {
		column := ""
		_, _, err := r.Why(t.Context(), sql, nil, 0, "no such column", sandbox.QueryLimits{})
		no, ok := errors.AsType[*sandbox.Refusal](err)
		switch {
		case ok && no.Reason == "unknown-column":
			column = no.Message[strings.LastIndexAny(no.Message, " ")+1:]
		case ok && (no.Reason == "unknown-row" || no.Reason == stages.ReasonNotTraceable):
			untraced++
			continue
		default:
			t.Errorf("%s: got %v", sql, err)
			continue
		}
		y, _, err := r.Why(t.Context(), sql, nil, 0, column, sandbox.QueryLimits{})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for _, one := range y.Tables {
			if one.State != stages.Counted {
				t.Errorf("%s: %s is %s (%s: %s)", sql, one.Table, one.State, one.Reason, one.Message)
			}
		}
		switch y.Check.State {
		case stages.CheckSame:
			same++
		case stages.CheckDiffers:
			differs++
			if !othersToo.MatchString(sql) {
				t.Errorf("%s: the check differs:\n%s", sql, y.Text)
			}
		default:
			untraced++
			t.Logf("%s: %s", sql, y.Check.Message)
		}
	}
	t.Logf("same %d, differs %d, not traced or checked %d", same, differs, untraced)
	if same+differs+untraced < len(list) || !testing.Short() && (same < 110 || untraced > 16) {
		t.Errorf("got %d statements with the same cell, and %d not traced", same, untraced)
	}
}
