package dbaccess_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// stageCase is a statement on the shop of testdata/stages: a wrong one with its cause, or a right one.
type stageCase struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"` // "": it is right
	Question  string `json:"question"`
	SQL       string `json:"sql"`
	Rows      int64  `json:"rows"`
	FaultLine int    `json:"fault_line"`
	Cause     string `json:"cause"`
}

func stageCases(t testing.TB) (list []stageCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/stages/cases.json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list) < 50 {
		t.Fatalf("got %d cases and %v, want at least 50", len(list), err)
	}
	return list
}

// openMade returns the reader of a database in which its owner has run statements.
func openMade(t testing.TB, c dbaccess.Config, statements ...string) *dbaccess.Reader {
	t.Helper()
	s := dbtest.Start(t)
	conn, err := dbtest.Connect(t.Context(), s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	c.URL = s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	r, err := dbaccess.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.AllowTime()
	return r
}

// openShop returns a reader of a database with the tables of a shop.
func openShop(t testing.TB, c dbaccess.Config) *dbaccess.Reader {
	t.Helper()
	s := dbtest.Start(t)
	var texts []string
	for _, name := range []string{"shop.sql", "pairs.sql"} {
		text, err := os.ReadFile("testdata/stages/" + name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	conn, err := dbtest.Connect(context.Background(), s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{
		"SET TimeZone = 'UTC'", texts[0], texts[1], "GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader",
	} {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	c.URL = s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	r, err := dbaccess.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.AllowTime()
	return r
}

// checkInvariants expects the counts of a statement to fit to each other.
func checkInvariants(t testing.TB, name string, s *stages.Stages) {
	t.Helper()
	for _, b := range s.Blocks {
		for _, one := range b.Stages {
			known := func(values ...*int64) bool {
				for _, v := range values {
					if v == nil {
						return false
					}
				}
				return true
			}
			if (one.RowsOut != nil) != (one.State == stages.Counted) {
				t.Errorf("%s: stage %d %s: state %s with rows %v", name, one.ID, one.Text, one.State, one.RowsOut)
			}
			switch m := one.Multiplied; {
			case one.Kind == stages.KindJoin && m != nil && one.JoinKind == "inner" && known(one.RowsOut, m.Pairs):
				if *one.RowsOut != *m.Pairs {
					t.Errorf("%s: %s: got %d rows and %d pairs", name, one.Text, *one.RowsOut, *m.Pairs)
				}
			case one.Kind == stages.KindJoin && m != nil && one.JoinKind == "left" &&
				known(one.RowsOut, m.Pairs, m.LeftUnmatched):
				if *one.RowsOut != *m.Pairs+*m.LeftUnmatched || *m.LeftUnmatched < 0 {
					t.Errorf("%s: %s: got %d rows, %d pairs and %d unmatched", name, one.Text, *one.RowsOut, *m.Pairs,
						*m.LeftUnmatched)
				}
			case one.Kind == stages.KindWhere && known(one.RowsIn, one.RowsOut, one.Null):
				if *one.RowsOut+*one.Null > *one.RowsIn {
					t.Errorf("%s: %s: got %d in, %d out and %d NULL", name, one.Text, *one.RowsIn, *one.RowsOut,
						*one.Null)
				}
			}
		}
	}
	last := s.Blocks[len(s.Blocks)-1]
	if last.Rows != nil && !s.Truncated && *last.Rows != s.Rows {
		t.Errorf("%s: got %d rows after the last stage, and %d rows of the statement", name, *last.Rows, s.Rows)
	}
}

// Each statement has stages whose counts fit to its rows.
func TestStagesFitToTheRows(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	for _, c := range stageCases(t) {
		got, err := r.Stages(t.Context(), c.SQL, nil, sandbox.QueryLimits{}, stages.Options{Samples: true})
		if err != nil {
			t.Errorf("%s: %v\n%s", c.ID, err, c.SQL)
			continue
		}
		checkInvariants(t, c.ID, got)
		if got.Rows != c.Rows {
			t.Errorf("%s: got %d rows, want %d", c.ID, got.Rows, c.Rows)
		}
		if last := got.Blocks[len(got.Blocks)-1]; last.Rows == nil {
			t.Errorf("%s: the last stage has no rows:\n%s\n%s", c.ID, c.SQL, got.Text)
		}
		for _, b := range got.Blocks {
			for _, s := range b.Stages {
				if s.State != stages.Counted {
					t.Errorf("%s: %s %q: got %s (%s: %s), want it counted", c.ID, s.Kind, s.Text, s.State, s.Reason,
						s.Message)
				} else if s.Kind == stages.KindJoin && s.JoinKind != "cross" && (s.Multiplied == nil ||
					s.Multiplied.LeftUnmatched == nil || s.Multiplied.RightUnmatched == nil) {
					t.Errorf("%s: %q: got the matches %+v, want all of them", c.ID, s.Text, s.Multiplied)
				} else if s.Sample == nil && s.Reads < 0 && s.PartOf < 0 {
					t.Errorf("%s: %s %q has no sample", c.ID, s.Kind, s.Text)
				}
			}
		}
		if testing.Verbose() {
			t.Logf("%s %d statements, %.0f ms\n%s", c.ID, got.Statements, got.TotalMS, got.Text)
		}
	}
}

// Statements of all forms have stages that fit to their rows, or the reason why they have none.
func TestStagesOfManyForms(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	text, err := os.ReadFile("testdata/stages/forms.json")
	var list []string
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range list {
		got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{Samples: true})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		checkInvariants(t, sql, got)
		for _, b := range got.Blocks {
			if b.Reason != "" || b.Rows == nil {
				t.Errorf("%s: the block at line %d has no rows (%s)", sql, b.FromLine, b.Reason)
			}
			for _, s := range b.Stages {
				if s.State != stages.Counted && s.Reason != stages.ReasonLateral {
					t.Errorf("%s: %s %q: got %s (%s: %s)", sql, s.Kind, s.Text, s.State, s.Reason, s.Message)
				}
			}
		}
	}
}

// stage returns the stage of a kind whose text has a part.
func stage(t *testing.T, s *stages.Stages, kind, part string) *stages.Stage {
	t.Helper()
	for _, b := range s.Blocks {
		for _, one := range b.Stages {
			if one.Kind == kind && strings.Contains(one.Text, part) {
				return one
			}
		}
	}
	t.Fatalf("there is no stage %s with %q:\n%s", kind, part, s.Text)
	return nil
}

// No sample, text or finding has a value of a masked column, and no derived statement uses one. The counts of other
// stages stay.
func TestStagesKeepMasks(t *testing.T) {
	t.Parallel()
	for _, serverCheck := range []bool{false, true} {
		r := openShop(t, dbaccess.Config{
			MaskColumns: []string{"customers.email", "customers.country", "orders.total"}, ServerCheck: serverCheck,
		})
		for _, sql := range []string{
			"SELECT * FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE o.status = 'paid' LIMIT 20",
			"SELECT c.email, n.email FROM newsletter n JOIN (SELECT * FROM customers) c ON c.name = n.email",
			"WITH a AS (SELECT email, country, id FROM customers WHERE vip) SELECT * FROM a JOIN orders o ON " +
				"o.customer_id = " +
				"a.id",
			"SELECT customer_id, count(*) AS orders FROM orders GROUP BY customer_id",
			"SELECT DISTINCT ON (o.customer_id) o.customer_id, o.total FROM orders o JOIN customers c ON c.id = " +
				"o.customer_id",
		} {
			got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{Samples: true, All: true})
			if err != nil {
				t.Errorf("%s: %v", sql, err)
				continue
			}
			checkInvariants(t, sql, got)
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "user1") && !strings.Contains(sql, "newsletter") {
				t.Errorf("%s: an answer has a masked value: %s", sql, text)
			}
			for _, b := range got.Blocks {
				for _, s := range b.Stages {
					if s.State != stages.Counted {
						t.Errorf("%s: %s %q: got %s (%s), want it counted", sql, s.Kind, s.Text, s.State, s.Message)
					}
					if s.Sample == nil {
						continue
					}
					for i, name := range s.Sample.Columns {
						if name != "email" && name != "country" && name != "total" || strings.Contains(sql,
							"newsletter") {
							continue
						}
						for _, row := range s.Sample.Rows {
							if row[i] != "***" {
								t.Errorf("%s: %q: the sample has %v in %s", sql, s.Text, row[i], name)
							}
						}
					}
				}
			}
		}
		_, err := r.Stages(t.Context(), "SELECT id FROM customers WHERE country = 'DE'", nil, sandbox.QueryLimits{},
			stages.Options{})
		if reason(err) != stages.ReasonMasked {
			t.Errorf("a condition on a masked column: got %v, want %s", err, stages.ReasonMasked)
		}
	}
}

// A derived statement that fails or takes too long leaves the others as they are. It has no count, which is not 0.
func TestStagesThatFail(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	// The join compares a text without a number, in a row that the condition leaves out.
	got, err := r.Stages(t.Context(), `SELECT d.id FROM documents d JOIN products p ON p.id = d.version::numeric * 10
		WHERE d.id < 0 AND 1 / d.id > 0`, nil, sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, "guarded", got)
	got, err = r.Stages(t.Context(), `SELECT n FROM (SELECT title, 1 AS n FROM documents WHERE id < 5) x
		WHERE n > 0 AND length(title) > 2 AND title LIKE '%a%'`, nil, sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, "subquery", got)

	got, err = r.Stages(t.Context(), `SELECT title::int FROM documents d JOIN employees e ON e.id = d.title::int
		WHERE d.id < 0`, nil, sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, "failing join", got)
	join := stage(t, got, stages.KindJoin, "JOIN employees")
	if join.State != stages.Failed || join.RowsOut != nil || join.Reason != "invalid-value" {
		t.Errorf("a join that fails: got %s (%s) and %v rows, want failed without rows", join.State, join.Reason,
			join.RowsOut)
	}
	if n := stage(t, got, stages.KindFrom, "documents").RowsOut; n == nil || *n != 200 {
		t.Errorf("the table next to it: got %v rows, want 200", n)
	}
	if n := stage(t, got, stages.KindWhere, "d.id < 0").RowsOut; n == nil || *n != 0 {
		t.Errorf("the condition after it: got %v rows, want 0", n)
	}
	if !strings.Contains(got.Text, "? (invalid-value)") {
		t.Errorf("the text does not say that the join has no count:\n%s", got.Text)
	}
}

// A count that would take far longer than the statement is estimated, and computed if all is asked for.
func TestStagesAreEstimatedBeyondTheBudget(t *testing.T) {
	t.Parallel()
	r := openMade(t, dbaccess.Config{},
		"CREATE TABLE large AS SELECT i AS id, i % 7 AS kind FROM generate_series(1, 150000) i",
		"ALTER TABLE large ADD PRIMARY KEY (id)", "ANALYZE large", "GRANT SELECT ON large TO glasshouse_reader",
	)
	const sql = "SELECT a.id FROM large a JOIN large b ON b.id = a.id + 1 WHERE a.id = 5"
	got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, sql, got)
	join := stage(t, got, stages.KindJoin, "JOIN large b")
	if join.State != stages.Estimated || join.RowsOut != nil || join.EstimatedOut == nil || *join.EstimatedOut < 1000 {
		t.Errorf("got %+v, want an estimate of the join", join)
	}
	if n := stage(t, got, stages.KindWhere, "a.id = 5").RowsOut; n == nil || *n != 1 {
		t.Errorf("the condition: got %v rows, want 1", n)
	}
	if got, err = r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{All: true}); err != nil {
		t.Fatal(err)
	}
	if n := stage(t, got, stages.KindJoin, "JOIN large b").RowsOut; n == nil || *n != 149999 {
		t.Errorf("with all: got %v rows of the join, want 149999", n)
	}
}

// A small statement is slow on a busy machine. If the planner gives it a small cost, all is counted.
func TestStagesOfASlowStatementThatIsSmall(t *testing.T) {
	t.Parallel()
	r := openMade(t, dbaccess.Config{AllowFunctions: []string{"slow"}},
		"CREATE FUNCTION slow(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE COST 1 AS "+
			"$$ DECLARE later timestamptz := clock_timestamp() + '10 ms'; "+
			"BEGIN WHILE clock_timestamp() < later LOOP END LOOP; RETURN n; END $$",
		"CREATE TABLE few AS SELECT generate_series(1, 30) AS id", "GRANT SELECT ON few TO glasshouse_reader",
		"GRANT EXECUTE ON FUNCTION slow TO glasshouse_reader",
	)
	const sql = "SELECT a.id FROM few a JOIN few b ON b.id = a.id WHERE slow(b.id) > 0"
	got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, sql, got)
	join := stage(t, got, stages.KindJoin, "JOIN few b")
	if m := join.Multiplied; m == nil || m.MaxRight == nil || len(got.NotLooked) > 0 {
		t.Errorf("got %+v of a join, and not looked at %v, want how its sides match", m, got.NotLooked)
	}
}

// A call that is cancelled ends its statement on the server, and its connection is used again.
func TestStagesAreCancelled(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{MaxConns: 1})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.Stages(ctx, "SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.total + b.total "+
			"+ "+
			"c.total "+
			"+ d.total < 0", nil, sandbox.QueryLimits{User: "ada"}, stages.Options{})
		ended <- err
	}()
	admin, err := dbtest.Connect(t.Context(), dbtest.Start(t).URL(embedded.RoleAdmin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	running := func() (n int) {
		err := admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE state = 'active'
			AND query LIKE '%a.total + b.total%' AND pid <> pg_backend_pid()`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, "the statement to run", func() bool { return running() > 0 })
	cancel()
	if got := reason(<-ended); got != "cancelled" {
		t.Errorf("got %s, want cancelled", got)
	}
	eventually(t, "the server to end the statement", func() bool { return running() == 0 })
	got, err := r.Stages(t.Context(), "SELECT count(*) FROM orders", nil, sandbox.QueryLimits{User: "ada"},
		stages.Options{})
	if err != nil || got.Rows != 1 {
		t.Errorf("after a cancelled call: got %+v, %v", got, err)
	}
}

// All statements of a call see one snapshot.
func TestStagesSeeOneSnapshot(t *testing.T) {
	t.Parallel()
	s := dbtest.Start(t)
	writer, err := dbtest.Connect(t.Context(), s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close(context.Background())
	for _, sql := range []string{"CREATE TABLE moving (id int)", "INSERT INTO moving SELECT generate_series(1, 1000)",
		"GRANT SELECT ON moving TO glasshouse_reader"} {
		if _, err := writer.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	r, err := dbaccess.Open(t.Context(), dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 2000; ; n++ {
			select {
			case <-stop:
				return
			default:
				_, _ = writer.Exec(context.Background(), "INSERT INTO moving VALUES ($1)", n)
			}
		}
	}()
	for range 10 {
		got, err := r.Stages(t.Context(), "SELECT a.id FROM moving a JOIN moving b ON b.id = a.id WHERE a.id > 0 "+
			"ORDER BY 1",
			nil, sandbox.QueryLimits{}, stages.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkInvariants(t, "moving", got)
		last := got.Blocks[len(got.Blocks)-1]
		if last.Rows == nil || *last.Rows != got.Rows || *stage(t, got, stages.KindFrom,
			"moving a").RowsOut != got.Rows {
			t.Errorf("got the counts of several snapshots:\n%s", got.Text)
		}
	}
	close(stop)
	<-done
}

// Parameters have their values in derived statements, even if a stage has some of them only.
func TestStagesTakeParameters(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	got, err := r.Stages(t.Context(), `SELECT o.id, :label AS label FROM orders o
JOIN customers c ON c.id = o.customer_id AND (:country::text IS NULL OR c.country = :country)
WHERE o.status = ANY (:states) AND o.total > :least
  AND o.ordered_at >= :since
LIMIT :most`, map[string]any{
		"label": "x", "country": "DE", "states": []any{"paid", "shipped"}, "least": json.Number("50"),
		"since": "2025-06-01",
		"most":  json.Number("40"),
	}, sandbox.QueryLimits{}, stages.Options{Samples: true})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, "parameters", got)
	for _, b := range got.Blocks {
		for _, s := range b.Stages {
			if s.State != stages.Counted || s.Sample == nil {
				t.Errorf("%s %q: got %s (%s) and the sample %v, want it counted with a sample", s.Kind, s.Text,
					s.State, s.Message,
					s.Sample)
			}
		}
	}
	if s := stage(t, got, stages.KindWhere, "o.total > :least"); s.FromLine != 3 || *s.RowsOut >= *s.RowsIn {
		t.Errorf("got %+v, want line 3 and fewer rows", s)
	}
}

// A name means in a derived statement what it means in the statement: a WITH query hides a table only for those after
// it.
func TestStagesKeepScopes(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	got, err := r.Stages(t.Context(), `WITH a AS (SELECT id FROM customers WHERE vip),
orders AS (SELECT o.* FROM orders o JOIN a ON a.id = o.customer_id WHERE o.total > 100),
b AS (SELECT orders.id FROM orders JOIN a ON a.id = orders.id)
SELECT count(*) FROM b JOIN orders ON orders.id = b.id JOIN a ON a.id = b.id`, nil, sandbox.QueryLimits{},
		stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, "scopes", got)
	table := stage(t, got, stages.KindFrom, "orders o").RowsOut
	inner := stage(t, got, stages.KindJoin, "a.id = o.customer_id").RowsOut
	want, err := r.Stages(t.Context(), "SELECT o.id FROM orders o JOIN customers a ON a.id = o.customer_id WHERE "+
		"a.vip", nil,
		sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if table == nil || *table != 2000 || inner == nil || *inner != want.Rows {
		t.Fatalf("in the WITH query: want 2000 rows of the table and %d of the join:\n%s", want.Rows, got.Text)
	}
	inner = stage(t, got, stages.KindWhere, "o.total > 100").RowsOut
	for _, b := range got.Blocks {
		for _, s := range b.Stages {
			if s.Kind == stages.KindFrom && s.Text == "orders" && (s.RowsOut == nil || *s.RowsOut != *inner) {
				t.Errorf("line %d: got %v rows of orders, want those of the WITH query: %d", s.FromLine, s.RowsOut,
					*inner)
			}
		}
	}
}

// Counts that contradict the rows of the statement are not shown: a function of an owner makes rows, which its name
// does not tell.
func TestStagesThatContradictTheRows(t *testing.T) {
	t.Parallel()
	r := openMade(t, dbaccess.Config{AllowFunctions: []string{"several"}},
		"CREATE FUNCTION several(int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS 'VALUES (1), (2)'",
		"CREATE TABLE few AS SELECT generate_series(1, 5) AS id", "GRANT SELECT ON few TO glasshouse_reader",
		"GRANT EXECUTE ON FUNCTION several TO glasshouse_reader",
	)
	got, err := r.Stages(t.Context(), `SELECT several(id) FROM few`, nil, sandbox.QueryLimits{}, stages.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, "contradiction", got)
	main := got.Blocks[len(got.Blocks)-1]
	if main.Reason != stages.ReasonInconsistent || main.Rows != nil || got.Rows == 0 {
		t.Errorf("got %+v, want it inconsistent and without rows", main)
	}
	for _, s := range main.Stages {
		if s.RowsOut != nil || s.State != stages.Refused {
			t.Errorf("%s: got %s and %v rows, want it refused", s.Kind, s.State, s.RowsOut)
		}
	}
}

// A SELECT whose number of rows is decided where its clauses do not show it has no stages, rather than wrong ones.
func TestStagesOfRowsThatNoClauseMakes(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	for _, sql := range []string{
		"SELECT DISTINCT ON (customer_id) customer_id, generate_series(1, 3) AS n FROM orders ORDER BY customer_id, id",
		"SELECT id FROM departments ORDER BY id, generate_series(1, 3) DESC",
		"SELECT (SELECT max(d.budget)) FROM departments d",
		"SELECT (SELECT max(d.budget) FROM employees e WHERE e.id = 1) FROM departments d",
		"WITH RECURSIVE x (id) AS (SELECT * FROM orders UNION ALL SELECT id + 1 FROM x WHERE id < 5), " +
			"orders (id) AS (VALUES (1)) SELECT * FROM x",
	} {
		got, err := r.Stages(t.Context(), "SELECT * FROM ("+sql+") AS inside", nil, sandbox.QueryLimits{},
			stages.Options{})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		checkInvariants(t, sql, got)
		inner := got.Blocks[len(got.Blocks)-2]
		if inner.Reason != stages.ReasonNotTraceable || inner.Rows != nil {
			t.Errorf("%s: got the reason %q and %v rows, want %s", sql, inner.Reason, inner.Rows,
				stages.ReasonNotTraceable)
		}
	}
	for _, sql := range []string{
		"SELECT 1 AS n FROM departments HAVING 1 < 2", "SELECT 1 AS n FROM departments HAVING 1 > 2",
		"SELECT generate_series(1, 3) AS n FROM departments ORDER BY generate_series(1, 3)",
		"SELECT (SELECT max(e.salary) FROM employees e WHERE e.department_id = d.id) FROM departments d",
	} {
		got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		checkInvariants(t, sql, got)
		if main := got.Blocks[len(got.Blocks)-1]; main.Rows == nil {
			t.Errorf("%s: got the reason %q, want the rows", sql, main.Reason)
		}
	}
}
