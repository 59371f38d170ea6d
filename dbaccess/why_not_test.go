package dbaccess_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// followedText returns the stages of an answer: "customers c 1, JOIN orders o ... 0".
func followedText(y *stages.WhyNot) string {
	var list []string
	for _, s := range y.Stages {
		n := "?" + s.Reason
		if s.Rows != nil {
			n = fmt.Sprint(*s.Rows)
		}
		list = append(list, s.Kind+" "+n)
	}
	return strings.Join(list, ", ")
}

// The stage that loses a row is the one that a person finds by hand, in each kind of stage.
func TestWhyNotFindsTheStage(t *testing.T) {
	t.Parallel()
	r := openTraced(t)
	type values = map[string]any
	n := func(text string) json.Number { return json.Number(text) }
	for _, c := range []struct {
		name, sql string
		params    map[string]any
		values    map[string]any
		want      string // the stages
		because   string // "": the row is in the result
		lost      string // a part of the text of the stage
		line      int
		notLooked string
		unknown   bool // it was not followed to the result
	}{
		{
			name: "no such row", sql: "SELECT id FROM orders", values: values{"id": n("99")}, want: "from 0",
			because: stages.BecauseNoRow, lost: "orders", line: 1,
		}, {
			name: "there", sql: "SELECT id, note FROM orders WHERE status = 'paid' ORDER BY id LIMIT 2",
			values: values{"orders.id": n("11")}, want: "from 1, where 1, limit 1",
		}, {
			name:   "condition is false",
			sql:    "SELECT o.id\nFROM orders o\nWHERE o.total > :least\n  AND o.status = 'paid'",
			params: values{"least": n("1")}, values: values{"o.id": n("12")}, want: "from 1, where 1, where 0",
			because: stages.BecauseFalse, lost: "o.status = 'paid'", line: 4,
		}, {
			name: "condition is NULL", sql: "SELECT id FROM orders WHERE status <> 'open'",
			values: values{"id": n("15")},
			want:   "from 1, where 0", because: stages.BecauseNull, lost: "status <> 'open'", line: 1,
		}, {
			name: "several rows", sql: "SELECT id FROM orders WHERE customer_id > 4 AND status = 'open'",
			values: values{"status": "paid"}, want: "from 6, where 2, where 0", because: stages.BecauseFalse,
			lost: "status = 'open'", line: 1,
		}, {
			name: "several rows, false or NULL", sql: "SELECT id FROM orders WHERE customer_id > 90",
			values: values{"status": "paid"}, want: "from 6, where 0", because: stages.BecauseFalseOrNull,
			lost: "customer_id > 90", line: 1,
		}, {
			name: "no partner", sql: "SELECT o.id FROM orders o\nJOIN items i ON i.order_id = o.id",
			values: values{"o.id": n("12")}, want: "from 1, join 0", because: stages.BecauseNoPartner,
			lost: "JOIN items i", line: 2,
		}, {
			name: "NULL key", sql: "SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer_id",
			values: values{"o.id": n("14")}, want: "from 1, join 0", because: stages.BecauseNullKey,
			lost: "JOIN customers", line: 1,
		}, {
			name:   "two tables that do not match",
			sql:    "SELECT o.id FROM orders o JOIN customers c ON c.id = o.customer_id",
			values: values{"o.id": n("10"), "c.id": n("2")}, want: "from 1, from 1, join 0",
			because: stages.BecauseNoPartner,
			lost:    "JOIN customers", line: 1,
		}, {
			name: "outer join keeps it", sql: "SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer_id",
			values: values{"o.id": n("14")}, want: "from 1, join 1",
		}, {
			name: "WHERE after an outer join",
			sql: "SELECT o.id FROM orders o LEFT JOIN customers c ON c.id = o.customer_id " +
				"WHERE c.city = 'Rome'", values: values{"o.id": n("14")}, want: "from 1, join 1, where 0",
			because: stages.BecauseNull, lost: "c.city", line: 1,
		}, {
			name: "list in FROM", sql: "SELECT o.id FROM orders o, customers c, items i WHERE o.status = 'paid' " +
				"AND c.id = o.customer_id AND i.order_id = o.id", values: values{"o.id": n("16")},
			want: "from 1, join 1, join 0", because: stages.BecauseNoPartner, lost: "items i", line: 1,
		}, {
			name:   "USING",
			sql:    "SELECT x.id FROM (SELECT id, id AS order_id FROM orders) x JOIN items i USING (order_id)",
			values: values{"orders.id": n("12")}, want: "from 1, from 1, join 0", because: stages.BecauseNoPartner,
			lost: "USING", line: 1,
		}, {
			name: "group", sql: "SELECT customer_id, sum(total) AS s FROM orders WHERE status = 'paid' GROUP BY 1",
			values: values{"id": n("11")}, want: "from 1, where 1, group 1",
		}, {
			name:   "HAVING is false",
			sql:    "SELECT customer_id, sum(total) AS s FROM orders GROUP BY 1 HAVING sum(total) > 9",
			values: values{"id": n("12")}, want: "from 1, group 1, having 0", because: stages.BecauseFalse,
			lost: "sum(total) > 9",
			line: 1,
		}, {
			name: "HAVING is NULL", sql: "SELECT customer_id FROM orders GROUP BY 1 HAVING max(status) <> 'open'",
			values: values{"customer_id": n("4")}, want: "from 1, group 1, having 0", because: stages.BecauseNull,
			lost: "max(status)", line: 1,
		}, {
			name: "value of an aggregate", sql: "SELECT customer_id, sum(total) AS s FROM orders GROUP BY customer_id",
			values: values{"s": n("31")}, want: "group 0", because: stages.BecauseNoGroup, lost: "customer_id", line: 1,
		}, {
			name:   "DISTINCT ON",
			sql:    "SELECT DISTINCT ON (customer_id) id FROM orders ORDER BY customer_id, total DESC",
			values: values{"orders.id": n("10")}, want: "from 1, distinct 0", because: stages.BecauseDistinct,
			lost: "customer_id",
			line: 1,
		}, {
			name:   "DISTINCT ON takes the first row",
			sql:    "SELECT DISTINCT ON (customer_id) id FROM orders ORDER BY customer_id, total",
			values: values{"orders.id": n("10")}, want: "from 1, distinct 1",
		}, {
			name:   "DISTINCT ON takes another row",
			sql:    "SELECT DISTINCT ON (customer_id) id FROM orders ORDER BY customer_id, total",
			values: values{"orders.id": n("11")}, want: "from 1, distinct 0", because: stages.BecauseDistinct,
			lost: "customer_id", line: 1,
		}, {
			name: "masked column of a WITH query",
			sql: "WITH c AS (SELECT * FROM customers), d AS (SELECT * FROM c) SELECT email FROM d WHERE " +
				"city = 'Rome'",
			values: values{"customers.id": n("4")}, want: "from 1, from 1, from 1, where 0",
			because: stages.BecauseFalse,
			lost:    "city = 'Rome'", line: 1,
		}, {
			name: "LIMIT", sql: "SELECT id FROM orders ORDER BY total DESC\nLIMIT 2", values: values{"id": n("13")},
			want: "from 1, limit 0", because: stages.BecauseLimit, lost: "LIMIT 2", line: 2,
		}, {
			name: "LIMIT of DISTINCT", sql: "SELECT DISTINCT status FROM orders ORDER BY status LIMIT 1",
			values: values{"orders.id": n("13")}, want: "from 1, limit 0", because: stages.BecauseLimit,
			lost: "LIMIT 1", line: 1,
		}, {
			name: "column of the result", sql: "SELECT upper(name) AS loud FROM customers WHERE id > 1",
			because: stages.BecauseFalse,
			values:  values{"loud": "ADA"}, want: "from 1, where 0", lost: "id > 1", line: 1,
		}, {
			name: "expression over two tables",
			sql: "SELECT c.name || o.id AS x FROM customers c JOIN orders o ON o.customer_id = c.id " +
				"WHERE o.id > 10", values: values{"x": "Ada10"}, want: "join 1, where 0", because: stages.BecauseFalse,
			lost: "o.id > 10", line: 1,
		}, {
			name: "in a WITH query", sql: "WITH per AS (\n  SELECT customer_id, sum(total) AS s FROM orders\n" +
				"  WHERE status = 'paid' GROUP BY 1)\nSELECT c.name, s FROM per JOIN customers c ON c.id = customer_id",
			values: values{"orders.id": n("12")}, want: "from 1, where 0", because: stages.BecauseFalse,
			lost: "status", line: 3,
		}, {
			name: "after a WITH query", sql: "WITH per AS (\n  SELECT customer_id, sum(total) AS s FROM orders\n" +
				"  WHERE status = 'paid' GROUP BY 1)\nSELECT c.name, s FROM per JOIN customers c ON c.id = customer_id",
			values: values{"orders.id": n("14")}, want: "from 1, where 1, group 1, from 1, join 0",
			because: stages.BecauseNullKey, lost: "JOIN customers", line: 4,
		}, {
			name: "through two WITH queries",
			sql: "WITH a AS (SELECT * FROM orders WHERE total > 1), b AS (SELECT customer_id AS who, " +
				"count(*) AS n FROM a GROUP BY customer_id)\nSELECT who FROM b WHERE n > " +
				"1", values: values{"orders.id": n("13")},
			want: "from 1, where 1, from 1, group 1, from 1, where 0", because: stages.BecauseFalse, lost: "n > 1",
			line: 2,
		}, {
			name: "row number",
			sql: "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY customer_id ORDER BY id) AS r " +
				"FROM orders) x WHERE r = 1", values: values{"orders.id": n("11")}, want: "from 1, from 1, where 0",
			because: stages.BecauseFalse, lost: "r = 1", line: 1,
		}, {
			name: "EXCEPT", sql: "SELECT id FROM customers EXCEPT SELECT customer_id FROM visits",
			values: values{"customers.id": n("2")}, want: "from 1, set 0", because: stages.BecauseSet, lost: "EXCEPT",
			line: 1,
		}, {
			name:   "UNION keeps one side",
			sql:    "SELECT id FROM customers WHERE id > 3 UNION ALL SELECT customer_id FROM visits",
			values: values{"id": n("2")}, want: "from 1, where 0, from 1, set 1",
		}, {
			name: "UNION of nothing",
			sql: "SELECT id FROM customers WHERE id > 3 UNION ALL SELECT customer_id FROM visits " +
				"WHERE page = 'cart'", values: values{"id": n("2")}, want: "from 1, where 0, from 1, where 0, set 0",
			because: stages.BecauseFalse, lost: "page = 'cart'", line: 1,
		}, {
			name: "NULL of an outer join", sql: "SELECT o.id, x.line FROM orders o LEFT JOIN (SELECT * FROM items) x " +
				"ON x.order_id = o.id WHERE o.id > 10", values: values{"line": nil}, want: "join 5, where 5",
		}, {
			name: "NULL key of the question", sql: "SELECT id FROM orders WHERE customer_id IS NOT NULL",
			values: values{"customer_id": nil}, want: "from 1, where 0", because: stages.BecauseFalse,
			lost: "customer_id", line: 1,
		}, {
			name: "duplicates without a primary key", sql: "SELECT page FROM visits WHERE customer_id = 2",
			values: values{"page": "home"}, want: "from 4, where 1",
		}, {
			name:   "masked column in the result",
			sql:    "SELECT c.email, v.secret FROM customers c JOIN visits v ON v.customer_id = c.id",
			values: values{"c.id": n("4")}, want: "from 1, join 0", because: stages.BecauseNoPartner, lost: "visits",
			line: 1,
		}, {
			name: "only in a subquery of WHERE",
			sql: "WITH v AS (SELECT customer_id FROM visits WHERE page = 'home') " +
				"SELECT id FROM customers WHERE id IN (SELECT customer_id FROM " +
				"v)", values: values{"visits.customer_id": n("1")},
			want: "from 3, where 2", unknown: true, notLooked: "the result",
		}, {
			name: "guarded conditions", sql: "SELECT id FROM orders WHERE id > 11 AND 1 / (id - 11) > 0",
			values: values{"id": n("11")}, want: "from 1, where 0", because: stages.BecauseFalse, lost: "id > 11",
			line: 1,
		}, {
			name: "odd names", sql: `SELECT "a""b" FROM "Odd @0 name" WHERE "Id @1" > 2`,
			values: values{"Id @1": n("2")},
			want:   "from 1, where 0", because: stages.BecauseFalse, lost: `"Id @1" > 2`, line: 1,
		}, {
			name: "text of a column with another type", sql: "SELECT id FROM orders WHERE total < 5",
			values: values{"id": "10"},
			want:   "from 1, where 0", because: stages.BecauseFalse, lost: "total < 5", line: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			y, _, err := r.WhyNot(t.Context(), c.sql, c.params, c.values, sandbox.QueryLimits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := followedText(y); got != c.want {
				t.Errorf("got the stages %q, want %q\n%s", got, c.want, y.Text)
			}
			if y.Because != c.because {
				t.Errorf("got because %q, want %q", y.Because, c.because)
			}
			wanted := "false"
			if c.because != "" {
				wanted = "true"
			}
			if c.unknown {
				wanted = "null"
			}
			if got := asJSON(t, y.Missing); got != wanted {
				t.Errorf("got missing %s, want %s", got, wanted)
			}
			if c.because != "" &&
				(y.Lost == nil || !strings.Contains(y.Lost.Text, c.lost) || y.Lost.FromLine != c.line) {
				t.Errorf("got lost at %s, want %s in line %d", asJSON(t, y.Lost), c.lost, c.line)
			}
			if got := strings.Join(y.NotLooked, "; "+
				""); !strings.Contains(got, c.notLooked) || c.notLooked == "" && got != "" {
				t.Errorf("got not_looked %q, want %q", got, c.notLooked)
			}
		})
	}
}

// What cannot be followed is refused with a reason.
func TestWhyNotIsRefused(t *testing.T) {
	t.Parallel()
	r := openTraced(t)
	for _, c := range []struct {
		sql    string
		values map[string]any
		reason string
	}{
		{"SELECT id FROM customers", map[string]any{}, "invalid-value"},
		{"SELECT id FROM customers", map[string]any{"id": []any{"1"}}, "invalid-value"},
		{"SELECT id FROM customers", map[string]any{"nothing": "1"}, "unknown-column"},
		{"SELECT v.page FROM visits v JOIN orders o USING " +
			"(customer_id)", map[string]any{"customer_id": "1"}, "ambiguous-name"},
		{"SELECT id, rank() OVER (ORDER BY name) AS r FROM customers", map[string]any{"r": "1"}, "not-traceable"},
		{"SELECT id, email FROM customers", map[string]any{"email": "ada@secret"}, "masked-column"},
		{"SELECT random() AS r FROM customers", map[string]any{"id": "1"}, "volatile"},
		{"DELETE FROM customers", map[string]any{"id": "1"}, "read-only"},
		{"SELECT id FROM customers", map[string]any{"id": "x"}, "invalid-value"},
	} {
		y, _, err := r.WhyNot(t.Context(), c.sql, nil, c.values, sandbox.QueryLimits{})
		if no, ok := errors.AsType[*sandbox.Refusal](err); !ok || no.Reason != c.reason {
			t.Errorf("%s, %v: got %v, want %s\n%s", c.sql, c.values, err, c.reason, asJSON(t, y))
		}
	}
}

// A row of a table that is in the result of a statement is followed to it through all its stages.
func TestWhyNotFollowsRowsToTheResult(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	list := shopStatements(t)
	followed := 0
	for _, sql := range list {
		_, _, err := r.Why(t.Context(), sql, nil, 0, "no such column", sandbox.QueryLimits{})
		no, ok := errors.AsType[*sandbox.Refusal](err)
		if !ok || no.Reason != "unknown-column" {
			continue
		}
		column := no.Message[strings.LastIndexAny(no.Message, " ")+1:]
		y, _, err := r.Why(t.Context(), sql, nil, 0, column, sandbox.QueryLimits{})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for _, table := range y.Tables {
			isChecked := y.Check.State == stages.CheckSame
			if !isChecked || len(table.Key) != 1 || table.First == nil || len(table.First.Rows) == 0 {
				continue
			}
			at := -1
			for i, name := range table.First.Columns {
				if name == table.Key[0] {
					at = i
				}
			}
			values := map[string]any{table.Items[0] + "." + table.Key[0]: table.First.Rows[0][at]}
			got, _, err := r.WhyNot(t.Context(), sql, nil, values, sandbox.QueryLimits{})
			no, isRefused := errors.AsType[*sandbox.Refusal](err)
			switch {
			case isRefused && no.Reason == "ambiguous-name":
			case err != nil:
				t.Errorf("%s, %v: %v", sql, values, err)
			case got.Missing == nil:
				t.Logf("%s, %v: not followed: %s", sql, values, got.Text)
			case *got.Missing:
				t.Errorf("%s, %v: got it missing\n%s", sql, values, got.Text)
			default:
				followed++
			}
		}
	}
	t.Logf("followed %d rows", followed)
	if followed < 140 && !testing.Short() || followed < 10 {
		t.Errorf("followed %d rows to the result, want 140", followed)
	}
}
