package dbaccess_test

import (
	"encoding/json"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// stagesOf returns the stages of a query that fit to its rows.
func stagesOf(t *testing.T, r *dbaccess.Reader, sql string) *stages.Stages {
	t.Helper()
	got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{Samples: true, All: true})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	checkInvariants(t, sql, got)
	return got
}

// block returns the block with a kind and a name.
func block(t *testing.T, s *stages.Stages, kind, name string) *stages.Block {
	t.Helper()
	for i := range s.Blocks {
		if s.Blocks[i].Kind == kind && s.Blocks[i].Name == name {
			return &s.Blocks[i]
		}
	}
	t.Fatalf("there is no block %s %s:\n%s", kind, name, s.Text)
	return nil
}

// wantRows expects a number to be that of the rows of a query.
func wantRows(t *testing.T, r *dbaccess.Reader, what string, got *int64, sql string) {
	t.Helper()
	if want := stagesOf(t, r, sql).Rows; got == nil || *got != want {
		t.Errorf("%s: got %v rows, want %d as those of %s", what, value(got), want, sql)
	}
}

func value(n *int64) any {
	if n == nil {
		return "no"
	}
	return *n
}

// A view has a block with the stages of its own query, and the last one has the view's rows. Views in a view have none.
func TestStagesOfViews(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	got := stagesOf(t, r, "SELECT a.id\nFROM active_customers a\nJOIN paid_orders p ON p.customer_id = a.id")
	for name, line := range map[string]int{"active_customers": 2, "paid_orders": 3} {
		view := block(t, got, stages.BlockView, name)
		wantRows(t, r, name, view.Rows, "TABLE "+name)
		read := stage(t, got, stages.KindFrom, name)
		if read.Reads != view.ID || view.Parent != read.Block || view.FromLine != line || view.Definition == "" {
			t.Errorf("%s: got the block %+v, read by %+v", name, view, read)
		}
		for _, s := range view.Stages {
			if s.State != stages.Counted || s.FromLine != line || s.ViewLine == 0 || s.Sample == nil {
				t.Errorf("%s: %s %q: got %+v, want it counted, with a sample and both lines", name, s.Kind, s.Text, s)
			}
		}
	}
	where := stage(t, got, stages.KindWhere, "segment")
	wantRows(t, r, "NULL of a condition of the view", where.Null,
		"SELECT 1 FROM customers WHERE deleted_at IS NULL AND segment IS NULL")
	if main := got.Blocks[len(got.Blocks)-1]; main.Kind != stages.BlockMain {
		t.Errorf("the last block is %s, want the main one", main.Kind)
	}
	got = stagesOf(t, r, "SELECT 1 FROM order_revenue a JOIN order_revenue b USING (id)")
	if n := strings.Count(got.Text, "view order_revenue"); n != 1 {
		t.Errorf("a view that is read twice has %d blocks, want 1:\n%s", n, got.Text)
	}
}

// What a view reads may be refused to the login, and be other rows for it. The view then has no counts of its own
// query, and its rows stay. Masked columns in a view's query are not used either.
func TestStagesOfViewsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	r := openMade(t, dbaccess.Config{MaskColumns: []string{"masked.word"}, AllowViews: []string{"of_words"}},
		"CREATE TABLE secret AS SELECT i AS id, 'value' || i AS word FROM generate_series(1, 90) i",
		"CREATE VIEW of_secret AS SELECT id FROM secret WHERE id > 10",
		"CREATE TABLE own AS SELECT i AS id, i % 3 AS who FROM generate_series(1, 90) i",
		"ALTER TABLE own ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON own FOR SELECT USING (who = 1)",
		"CREATE VIEW of_own AS SELECT id FROM own WHERE id > 30",
		"CREATE TABLE masked AS SELECT i AS id, 'value' || i % 5 AS word FROM generate_series(1, 90) i",
		"CREATE VIEW of_masked AS SELECT id, word FROM masked WHERE id > 20",
		"CREATE VIEW of_words AS SELECT id FROM masked WHERE word = 'value3'",
		"CREATE VIEW of_view AS SELECT id FROM of_masked WHERE id > 30",
		"REVOKE ALL ON secret FROM glasshouse_reader",
		"GRANT SELECT ON of_secret, of_own, own, masked, of_masked, of_words, of_view TO glasshouse_reader",
	)
	for _, c := range []struct {
		view, reason string
		rows         int64
	}{
		{"of_secret", "", 80}, {"of_own", stages.ReasonInconsistent, 60}, {"of_words", "", 18},
		{"of_masked", "", 70}, {"of_view", "", 60},
	} {
		got := stagesOf(t, r, "SELECT * FROM "+c.view)
		view := block(t, got, stages.BlockView, c.view)
		read := stage(t, got, stages.KindFrom, c.view)
		if read.RowsOut == nil || *read.RowsOut != c.rows || view.Reason != c.reason {
			t.Errorf("%s: got %v rows and the reason %q, want %d and %q", c.view, value(read.RowsOut), view.Reason,
				c.rows, c.reason)
		}
		isCounted := c.view == "of_masked" || c.view == "of_view"
		if (view.Rows != nil) != isCounted {
			t.Errorf("%s: got %v rows of its query, counted: %v", c.view, value(view.Rows), isCounted)
		}
		for _, s := range view.Stages {
			if !isCounted && (s.State == stages.Counted || s.Sample != nil) && s.Kind == stages.KindWhere {
				t.Errorf("%s: got %+v, want no count of its query", c.view, s)
			}
		}
		text, err := json.Marshal(got)
		if err != nil || strings.Contains(strings.ReplaceAll(string(text), "'value3'", ""), "value") &&
			strings.Contains(string(text), `"value`) {
			t.Errorf("%s: %v; the answer has a masked value: %s", c.view, err, text)
		}
	}
}

// A subquery in an expression is a block. One that reads columns of the block around it has one stage: how often it
// runs at most, and what it gives.
func TestStagesOfSubqueriesInExpressions(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	got := stagesOf(t, r, `SELECT name FROM customers c WHERE vip
		AND EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 300)
		AND id NOT IN (SELECT customer_id FROM events WHERE customer_id IS NOT NULL)`)
	exists := block(t, got, stages.BlockCorrelated, "EXISTS").Stages[0]
	wantRows(t, r, "EXISTS runs", exists.RowsIn, "SELECT 1 FROM customers WHERE vip")
	wantRows(t, r, "EXISTS keeps", exists.RowsOut, "SELECT 1 FROM customers c WHERE vip AND EXISTS (SELECT 1 "+
		"FROM orders o WHERE o.customer_id = c.id AND o.total > 300)")
	if exists.Sample == nil || strings.Join(exists.Sample.Columns, " ") != "id value" {
		t.Errorf("EXISTS: got the sample %+v, want the outer key and the value", exists.Sample)
	}
	if exists.Lost == nil || *exists.Lost != *exists.RowsIn-*exists.RowsOut {
		t.Errorf("EXISTS: got %v lost rows", value(exists.Lost))
	}
	wantRows(t, r, "the list", block(t, got, stages.BlockSubquery, "IN").Rows,
		"SELECT customer_id FROM events WHERE customer_id IS NOT NULL")

	got = stagesOf(t, r, `SELECT o.id, (SELECT max(r.amount) FROM refunds r WHERE r.order_id = o.id) FROM orders o
		WHERE o.status <> 'paid' AND (o.total > (SELECT avg(x.total) FROM orders x WHERE x.customer_id = o.customer_id)
		OR NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id))`)
	for part, want := range map[string][3]string{
		"avg(x.total)": {
			"SELECT 1 FROM orders WHERE status <> 'paid'",
			"SELECT 1 FROM orders WHERE status <> 'paid' AND customer_id IS NOT NULL",
			"SELECT 1 FROM orders WHERE status <> 'paid' AND customer_id IS NULL",
		},
		"payments p": {
			"SELECT 1 FROM orders WHERE status <> 'paid'",
			"SELECT DISTINCT o.id FROM orders o JOIN payments p ON p.order_id = o.id WHERE o.status <> 'paid'", "",
		},
		"max(r.amount)": {
			"SELECT 1 FROM orders o WHERE o.status <> 'paid' AND (o.total > (SELECT avg(x.total) FROM orders x " +
				"WHERE x.customer_id = o.customer_id) OR o.id NOT IN (SELECT order_id FROM payments))",
			"SELECT DISTINCT o.id FROM orders o JOIN refunds r ON r.order_id = o.id WHERE o.status <> 'paid' AND " +
				"(o.total > (SELECT avg(x.total) FROM orders x WHERE x.customer_id = o.customer_id) " +
				"OR o.id NOT IN (SELECT order_id FROM payments))", "",
		},
	} {
		s := stage(t, got, stages.KindSubquery, part)
		wantRows(t, r, part+" runs", s.RowsIn, want[0])
		wantRows(t, r, part+" gives", s.RowsOut, want[1])
		if want[2] != "" {
			wantRows(t, r, part+" is NULL", s.Null, want[2])
		}
	}

	got = stagesOf(t, r, `SELECT customer_id, (SELECT name FROM customers c WHERE c.id = o.customer_id) AS name,
		count(*) FROM orders o GROUP BY customer_id`)
	if s := stage(t, got, stages.KindSubquery, "name"); s.Reason != stages.ReasonNotTraceable || s.RowsOut != nil {
		t.Errorf("a subquery for each group: got %+v, want the reason %s", s, stages.ReasonNotTraceable)
	}
}

// FILTER of an aggregate has the rows that pass, of all rows of the groups, and the groups without any.
func TestStagesOfFilters(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	got := stagesOf(t, r, `SELECT channel, count(*) FILTER (WHERE status = 'returned'),
		sum(total) FILTER (WHERE discount > 4) FROM orders WHERE id < 1000 GROUP BY 1 HAVING count(*) > 10`)
	s := stage(t, got, stages.KindFilter, "discount")
	wantRows(t, r, "pass", s.RowsOut, "SELECT 1 FROM orders WHERE id < 1000 AND discount > 4")
	wantRows(t, r, "of", s.RowsIn, "SELECT 1 FROM orders WHERE id < 1000")
	wantRows(t, r, "NULL", s.Null, "SELECT 1 FROM orders WHERE id < 1000 AND discount IS NULL")
	wantRows(t, r, "groups without", s.EmptyGroups, "SELECT channel FROM orders WHERE id < 1000 GROUP BY 1 "+
		"HAVING coalesce(sum((discount > 4)::int), 0) = 0")
	if group := stage(t, got, stages.KindGroup, "1"); s.PartOf != group.ID {
		t.Errorf("the filter is a part of %d, want the groups, %d", s.PartOf, group.ID)
	}
	if n := stage(t, got, stages.KindFilter, "status").RowsOut; n == nil || *n == 0 {
		t.Errorf("the other filter: got %v rows", value(n))
	}
	if s.Sample == nil || strings.Join(s.Sample.Columns, " ") != "channel rows pass" {
		t.Errorf("got the sample %+v, want the rows of groups, and those that pass", s.Sample)
	}
}

// Each grouping set has its groups.
func TestStagesOfGroupingSets(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	for _, c := range []struct {
		sql  string
		want map[string]string
	}{
		{"SELECT country, city FROM customers GROUP BY ROLLUP (country, city)", map[string]string{
			"(country, city)": "SELECT DISTINCT country, city FROM customers",
			"(country)":       "SELECT DISTINCT country FROM customers", "()": "SELECT 1",
		}},
		{"SELECT status AS s, channel FROM orders GROUP BY GROUPING SETS ((s, channel), 2, ()) HAVING count(*) > 1",
			map[string]string{
				"(status, channel)": "SELECT DISTINCT status, channel FROM orders",
				"(channel)":         "SELECT DISTINCT channel FROM orders", "()": "SELECT 1",
			}},
		{"SELECT status, channel, currency FROM orders GROUP BY status, CUBE ((channel, currency))", map[string]string{
			"(status, channel, currency)": "SELECT DISTINCT status, channel, currency FROM orders",
			"(status)":                    "SELECT DISTINCT status FROM orders",
		}},
		{"SELECT channel FROM orders GROUP BY DISTINCT ROLLUP (channel), ROLLUP (channel)", map[string]string{
			"(channel)": "SELECT DISTINCT channel FROM orders", "()": "SELECT 1",
		}},
	} {
		got := stagesOf(t, r, c.sql)
		found := 0
		for _, s := range got.Blocks[len(got.Blocks)-1].Stages {
			if s.Kind != stages.KindGroupingSet {
				continue
			}
			found++
			if c.want[s.Name] == "" {
				t.Errorf("%s: got the set %s", c.sql, s.Name)
				continue
			}
			wantRows(t, r, c.sql+": "+s.Name, s.RowsOut, c.want[s.Name])
		}
		if found != len(c.want) {
			t.Errorf("%s: got %d sets, want %d:\n%s", c.sql, found, len(c.want), got.Text)
		}
	}
}

// A window has its partitions, and rows that are equal in its order where a value depends on which of them comes first.
func TestStagesOfWindows(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	got := stagesOf(t, r, `SELECT row_number() OVER w, sum(total) OVER (w ROWS UNBOUNDED PRECEDING),
		rank() OVER (PARTITION BY status ORDER BY total), avg(total) OVER (PARTITION BY channel),
		lag(id) OVER () FROM orders WHERE total > 0
		WINDOW base AS (PARTITION BY customer_id), w AS (base ORDER BY ordered_at::date)`)
	for part, want := range map[string][2]string{
		"row_number": {
			"SELECT DISTINCT customer_id FROM orders WHERE total > 0",
			"SELECT 1 FROM (SELECT count(*) OVER (PARTITION BY customer_id, ordered_at::date) AS n FROM orders " +
				"WHERE total > 0) x WHERE n > 1",
		},
		"rank": {"SELECT DISTINCT status FROM orders WHERE total > 0", ""},
		"avg":  {"SELECT DISTINCT channel FROM orders WHERE total > 0", ""},
		"lag":  {"SELECT 1", "SELECT 1 FROM orders WHERE total > 0"},
	} {
		s := stage(t, got, stages.KindWindow, part)
		if s.Window == nil || (s.Window.Tied != nil) != (want[1] != "") {
			t.Errorf("%s: got the window %+v", part, s.Window)
			continue
		}
		wantRows(t, r, part+": partitions", &s.Window.Partitions, want[0])
		wantRows(t, r, part+": rows", s.RowsOut, "SELECT 1 FROM orders WHERE total > 0")
		if want[1] != "" {
			wantRows(t, r, part+": tied", s.Window.Tied, want[1])
		}
	}
	got = stagesOf(t, r, `SELECT channel, lag(sum(total)) OVER (ORDER BY count(*)) FROM orders GROUP BY channel
		HAVING count(*) > 1`)
	s := stage(t, got, stages.KindWindow, "lag")
	wantRows(t, r, "over groups", s.RowsOut, "SELECT channel FROM orders GROUP BY 1 HAVING count(*) > 1")
	if s.Window == nil || s.Window.Partitions != 1 || s.Window.Largest != *s.RowsOut {
		t.Errorf("over groups: got %+v", s.Window)
	}
	if n := stagesOf(t, r, "SELECT row_number() OVER () FROM orders WHERE id < 0"); stage(t, n, stages.KindWindow,
		"row_number").Window.Partitions != 0 {
		t.Errorf("a window without rows:\n%s", n.Text)
	}
}

// A plan that is full leaves out what is in stages, and says so.
func TestStagesAreBoundedWithTheirParts(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	sql := strings.Repeat("(SELECT min(total) FROM orders WHERE id > 0), ", 40)
	got := stagesOf(t, r, "SELECT "+sql+"id FROM orders")
	n := 0
	for _, b := range got.Blocks {
		n += len(b.Stages)
	}
	if n > 64 || !strings.Contains(strings.Join(got.NotLooked, " "), "too many") {
		t.Errorf("got %d stages, not looked at: %q", n, got.NotLooked)
	}
	if main := got.Blocks[len(got.Blocks)-1]; main.Rows == nil || *main.Rows != got.Rows {
		t.Errorf("got %v rows, want %d", value(main.Rows), got.Rows)
	}
}
