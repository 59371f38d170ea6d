package parse_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/parse"
)

// FuzzTraces looks for statements for which following rows crashes, or gives what no statement can be.
func FuzzTraces(f *testing.F) {
	var forms []string
	var cases []struct{ SQL string }
	for file, into := range map[string]any{"forms.json": &forms, "cases.json": &cases} {
		text, err := os.ReadFile("../testdata/stages/" + file)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, c := range cases {
		f.Add(c.SQL, "id")
	}
	for _, sql := range forms {
		f.Add(sql, "orders.id")
	}
	for _, c := range dbtest.Cases(f, "../testdata/check/*.sql") {
		f.Add(c.SQL, "total")
	}
	for _, sql := range []string{
		"SELECT id FROM orders, (SELECT 1) WHERE id = :a", "SELECT * FROM (orders o JOIN orders p USING (id)) AS j",
		"SELECT id FROM (SELECT id FROM orders) WHERE id > 1", "WITH orders AS (TABLE orders) TABLE orders",
		"SELECT id FROM orders AS o (i, t), o.i", "SELECT 1 AS id UNION SELECT 2, 3", "SELECT FROM orders GROUP BY ()",
		"WITH a (x, y) AS (SELECT id FROM orders) SELECT x FROM a", "SELECT DISTINCT FROM orders LIMIT 1",
		"SELECT id FROM orders GROUP BY 99", `SELECT "@0", '@1' FROM orders AS "@2" GROUP BY 1 HAVING '@3' @> '@4'`,
		"WITH RECURSIVE a AS (SELECT id FROM orders UNION SELECT id FROM a) SELECT id FROM a LIMIT 1",
		"SELECT id FROM orders o LEFT JOIN LATERAL (SELECT o.total AS t) l ON true", "SELECT id FROM ONLY orders",
		"SELECT (SELECT id FROM orders LIMIT 1) AS id FROM orders TABLESAMPLE SYSTEM (1) REPEATABLE (1)",
	} {
		f.Add(sql, "id")
	}
	tables := []parse.Table{{Schema: "public", Name: "orders", IsVisible: true, PrimaryKey: []string{"id"},
		Columns: []parse.Column{{Name: "id", Type: "integer"}, {Name: "total", Type: "numeric", IsNullable: true},
			{Name: "note", Type: "text", IsMasked: true}}}}
	f.Fuzz(func(t *testing.T, sql, column string) {
		if len(sql) > 16<<10 || len(column) > 200 {
			return
		}
		stalled := time.AfterFunc(20*time.Second, func() { panic("stalled") })
		defer stalled.Stop()
		q := parse.Request{SQL: sql, Names: []string{"a"}, Derive: parse.Why, Tables: tables}
		r := parse.ParseInProcess(q)
		if (r.Fault == nil) == (r.Why == nil) {
			t.Fatalf("%q: got %v and %v, want rows or a fault", sql, r.Why, r.Fault)
		}
		var derived []*parse.DerivedStatement
		if r.Why != nil {
			derived = append(derived, &r.Why.Keyed, r.Why.Check)
			for _, table := range r.Why.Tables {
				derived = append(derived, table.Count, table.Rows)
			}
		}
		q.Derive, q.Columns, q.Nulls = parse.WhyNot, []string{column, "id"}, []string{"id"}
		if r = parse.ParseInProcess(q); (r.Fault == nil) == (r.WhyNot == nil) {
			t.Fatalf("%q, %q: got %v and %v, want stages or a fault", sql, column, r.WhyNot, r.Fault)
		}
		if r.WhyNot != nil {
			for i := range r.WhyNot.Stages.Counts {
				derived = append(derived, &r.WhyNot.Stages.Counts[i].DerivedStatement)
			}
		}
		for _, s := range derived {
			if s == nil {
				continue
			}
			if got := parse.ParseInProcess(parse.Request{SQL: s.SQL, Names: s.Names}); got.Fault != nil {
				t.Fatalf("%q: the derived statement %q is refused: %v", sql, s.SQL, got.Fault)
			}
		}
	})
}
